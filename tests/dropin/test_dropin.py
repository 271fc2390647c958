"""``import tensorflow`` meaning Headrace: the drop-in from Python, and ``headrace run``."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, cwd=cwd
    )


def python(program: str) -> str:
    done = run("-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def headrace(
    script: Path, program: str, *args: str, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    script.write_text(textwrap.dedent(program))
    return run("-m", "headrace", "run", *before, str(script), *args)


# from Python ------------------------------------------------------------------------------------


def test_install_and_uninstall() -> None:
    python("""
        import sys
        import headrace
        headrace.dropin.install(api="v1")
        headrace.dropin.install()
        import tensorflow as tf
        import tensorflow.compat.v1 as tf1
        from tensorflow.compat.v1 import placeholder
        assert tf.Session is tf1.Session is headrace.Session and placeholder is headrace.placeholder
        headrace.dropin.uninstall()
        assert not [m for m in sys.modules if m.split(".")[0] == "tensorflow"]
        try:
            import tensorflow
        except ModuleNotFoundError:
            pass
        else:
            assert tensorflow.Session is not headrace.Session
        headrace.dropin.uninstall()
    """)


def test_install_refuses_after_tensorflow() -> None:
    python("""
        import sys, types
        sys.modules["tensorflow"] = types.ModuleType("tensorflow")
        import headrace.dropin
        try:
            headrace.dropin.install()
        except RuntimeError as e:
            assert "already" in str(e)
        else:
            raise AssertionError
        assert not headrace.dropin.is_installed()
    """)


def test_install_goes_before_an_installed_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("genuine = True")
    python(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import headrace.dropin
        headrace.dropin.install()
        import tensorflow
        assert not hasattr(tensorflow, "genuine")
        headrace.dropin.uninstall()
        import tensorflow
        assert tensorflow.genuine
    """)


def test_unknown_api() -> None:
    from headrace import dropin

    with pytest.raises(ValueError, match="v1"):
        dropin.install(api="v3")


IMPORTS = [
    "import tensorflow",
    "import tensorflow.compat.v1 as tf; tf.Session",
    "from tensorflow import nn, train; nn.relu; train.AdamOptimizer",
    "import tensorflow.nn; tensorflow.nn.relu",
    "from tensorflow.nn import relu",
    "from tensorflow.compat.v1.train import AdamOptimizer",
    "from tensorflow.python.framework import ops, dtypes, tensor_shape, constant_op, "
    "errors, tensor_util; ops.Graph; ops.name_scope; ops.convert_to_tensor; "
    "ops.GraphKeys; ops.reset_default_graph; ops.Tensor; ops.get_collection; "
    "tensor_shape.TensorShape; tensor_shape.dimension_value; tensor_shape.unknown_shape; "
    "dtypes.float32; dtypes.as_dtype; constant_op.constant; tensor_util.constant_value; "
    "ops.RegisterGradient",
    "from tensorflow.python.framework.ops import control_dependencies, add_to_collection, "
    "colocate_with, device",
    "from tensorflow.python.ops import array_ops, math_ops, nn_ops, nn, variable_scope, "
    "variables, state_ops; array_ops.concat; math_ops.cast; nn_ops.relu; nn.moments; "
    "variable_scope.variable_scope; variables.Variable; state_ops.assign_sub",
    "from tensorflow.python.ops import control_flow_ops, init_ops, gradients, random_ops, "
    "tensor_array_ops; control_flow_ops.cond; control_flow_ops.with_dependencies; "
    "init_ops.constant_initializer; gradients.gradients; random_ops.random_uniform; "
    "tensor_array_ops.TensorArray",
    "from tensorflow.python.ops import control_flow_ops as c; c.switch; c.merge; c.group; "
    "c.while_loop",
    "from tensorflow.python.ops import gen_math_ops, gen_array_ops; gen_math_ops.mat_mul; "
    "gen_array_ops.reshape",
    "from tensorflow.python.ops.variable_scope import get_variable, get_variable_scope",
    "from tensorflow.python.ops.variables import VariableAggregation, VariableSynchronization",
    "from tensorflow.python.ops.clip_ops import clip_by_value",
    "from tensorflow.python.client import device_lib; assert "
    "device_lib.list_local_devices()[0].device_type == 'CPU'",
    "from tensorflow.python.client.session import Session",
    "from tensorflow.python.training import optimizer, moving_averages, training_util; "
    "optimizer.Optimizer; moving_averages.assign_moving_average; "
    "training_util.get_global_step",
    "from tensorflow.python.util import nest, compat; nest.flatten([1]); compat.as_bytes('a')",
    "from tensorflow.python.platform import gfile, flags, app, tf_logging; gfile.GFile; "
    "flags.FLAGS; app.run; tf_logging.info",
    "from tensorflow.python.lib.io import file_io; file_io.file_exists('/')",
    "from tensorflow.core.protobuf import config_pb2, saver_pb2, rewriter_config_pb2; "
    "config_pb2.ConfigProto(); saver_pb2.SaverDef; rewriter_config_pb2.RewriterConfig",
    "from tensorflow.core.framework import graph_pb2, summary_pb2, node_def_pb2; "
    "graph_pb2.GraphDef(); node_def_pb2.NodeDef",
    "from tensorflow.core.framework.summary_pb2 import Summary",
    "from tensorflow.python.eager import context; assert not context.executing_eagerly()",
    "import tensorflow as tf; tf.python.framework.ops.Graph",
    "from tensorflow.python.framework import ops; import tensorflow.python.framework.ops "
    "as o; assert ops is o",
]


@pytest.mark.parametrize("line", IMPORTS, ids=lambda line: line.partition(";")[0])
def test_import_paths(line: str) -> None:
    python(f"import headrace.dropin; headrace.dropin.install()\n{line}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "import tensorflow.keras.layers",
            "tf.keras is part of TensorFlow 1.15, but Headrace does not have it yet",
        ),
        ("from tensorflow import keras", "tf.keras is part of TensorFlow 1.15"),
        (
            "from tensorflow.contrib import tensorrt",
            "tf.contrib.tensorrt is part of TensorFlow 1.15",
        ),
        ("import tensorflow.contrib.tensorrt", "tf.contrib.tensorrt is part of TensorFlow 1.15"),
        ("from tensorflow.python.ops import arry_ops", "Near: tf.python.ops.array_ops"),
    ],
)
def test_missing_modules(line: str, message: str) -> None:
    done = run("-c", f"import headrace.dropin; headrace.dropin.install()\n{line}")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named" in done.stderr
    assert message in done.stderr


# headrace run -----------------------------------------------------------------------------------

TRAINING = """
    import numpy as np
    import tensorflow as tf

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    step = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    data = np.random.RandomState(0).rand(50, 3).astype(np.float32)
    target = data @ np.array([[1], [2], [3]], np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(500):
            _, value = sess.run([step, loss], {x: data, y: target})
        print("loss", value < 1e-4)
        print(np.round(sess.run(w).ravel()).tolist())
"""


@pytest.mark.parametrize("executor", ["numpy", "reference"])
def test_run_a_training_program(script: Path, executor: str) -> None:
    done = headrace(script, TRAINING, before=("--executor", executor))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "loss True\n[1.0, 2.0, 3.0]\n"
    assert done.stderr == ""


def test_run_with_report(script: Path) -> None:
    done = headrace(script, TRAINING, before=("--report",))
    assert done.returncode == 0, done.stderr
    lines = dict(
        line.strip().split("  ", 1) for line in done.stderr.splitlines() if line.startswith("  ")
    )
    assert done.stderr.startswith("headrace report")
    assert lines["runs"].strip().startswith("502,")
    assert "3 made" in lines["plans"]
    assert lines["sessions"].strip() == "1 opened, 1 closed"
    assert lines["variables"].strip() == "12 bytes"


def test_report_comes_after_a_failure_too(script: Path) -> None:
    done = headrace(script, "raise ValueError('x')", before=("--report",))
    assert done.returncode == 1
    assert "headrace report" in done.stderr


def test_program_sees_what_python_would_show(script: Path) -> None:
    program = """
        import sys, os, __main__
        first = sys.path[0] == os.path.dirname(__file__)
        print(__name__, __main__.__file__ == __file__, sys.argv[1:], first)
        print(os.path.samefile(sys.argv[0], __file__), __spec__, __package__)
        import neighbour
    """
    (script.parent / "neighbour.py").write_text("print('neighbour')")
    done = headrace(script, program, "--flag", "-m", "--report")
    expected = run(str(script), "--flag", "-m", "--report").stdout
    assert done.stdout == expected


@pytest.mark.parametrize(
    "program",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('message')",
        "raise SystemExit",
        "def f():\n  1 / 0\nf()",
        "x = =",
    ],
    ids=["code", "text", "plain", "error", "syntax"],
)
def test_exit_codes_and_tracebacks_are_pythons(script: Path, program: str) -> None:
    done = headrace(script, program)
    wanted = run(str(script))
    assert (done.returncode, done.stdout, done.stderr) == (
        wanted.returncode,
        wanted.stdout,
        wanted.stderr,
    )


def test_errors_end_at_the_users_line(script: Path) -> None:
    program = """
        import tensorflow as tf
        a = tf.placeholder(tf.float32, [2, 3])
        b = tf.matmul(a, a)
    """
    done = headrace(script, program)
    assert done.returncode == 1
    assert "ValueError: Dimensions must be equal, but are 3 and 2" in done.stderr
    assert f'File "{script}", line 4' in done.stderr
    assert "headrace/cli" not in done.stderr


def test_import_error_shows_no_hook(script: Path) -> None:
    done = headrace(script, "import tensorflow.lite")
    assert "dropin" not in done.stderr and "does not have it yet" in done.stderr


def test_run_a_module(script: Path) -> None:
    script.write_text("import sys, tensorflow as tf; print(__name__, sys.argv[1:], tf.__version__)")
    done = run("-m", "headrace", "run", "-m", "program", "a", "--b", cwd=script.parent)
    assert done.stdout == "__main__ ['a', '--b'] 1.15.0\n", done.stderr


def test_run_a_package(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "other.py").write_text("value = 5")
    (tmp_path / "package" / "__main__.py").write_text(
        "from .other import value; print(value, __package__)"
    )
    assert run("-m", "headrace", "run", "-m", "package", cwd=tmp_path).stdout == "5 package\n"


def test_missing_script_and_module(tmp_path: Path) -> None:
    done = run("-m", "headrace", "run", str(tmp_path / "none.py"))
    assert done.returncode == 2 and "can't open file" in done.stderr
    done = run("-m", "headrace", "run", "-m", "no_such_module_here")
    assert done.returncode == 1 and "No module named no_such_module_here" in done.stderr


# the other commands -----------------------------------------------------------------------------


def test_ops_table() -> None:
    table = json.loads(run("-m", "headrace", "ops", "--json").stdout)
    by_name = {row["name"]: row for row in table}
    assert by_name["MatMul"]["gradient"] == "yes"
    assert by_name["Shape"]["gradient"] == "not differentiable"
    assert "elementwise" in by_name["Tanh"]["traits"]
    assert by_name["Sum"]["family"] == "math"
    plain = run("-m", "headrace", "ops", "--family", "linalg").stdout.splitlines()
    assert 5 < len(plain) < len(table)


def test_ops_of_an_unknown_family() -> None:
    done = run("-m", "headrace", "ops", "--family", "nothing")
    assert done.returncode == 1 and "linalg" in done.stderr


def test_where_an_op_is_defined() -> None:
    for name, file in (("MatMul", "matmul.py"), ("ApplyAdam", "update_rules.py")):
        place = run("-m", "headrace", "ops", "--where", name).stdout.strip()
        path, _, line = place.rpartition(":")
        assert path.endswith(file) and int(line) > 1
    done = run("-m", "headrace", "ops", "--where", "MatMull")
    assert done.returncode == 1 and "MatMul" in done.stderr


def test_version_and_help() -> None:
    assert run("-m", "headrace", "version").stdout.startswith("headrace 0.")
    assert run("-m", "headrace", "--version").stdout.startswith("headrace 0.")
    assert "run" in run("-m", "headrace", "--help").stdout
    assert run("-m", "headrace").returncode == 2
