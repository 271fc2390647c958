"""The ``tf.*`` namespaces.

What they have, what they say about what they do not have, and the parts beside graphs.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pkgutil
import subprocess
import sys
import textwrap
import tomllib
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
import headrace.ops
from headrace.api import missing, raw_ops
from headrace.api.v1 import compat
from headrace.core import nest

ROOT = Path(__file__).parent.parent.parent


def python(program: str, *args: str, code: int = 0) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *args],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


# names ------------------------------------------------------------------------------------------


def test_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tf.HEADRACE_VERSION
    assert tf.__version__ == tf.VERSION == tf.version.VERSION == "1.15.0"


def test_compat_v1_is_the_api_itself() -> None:
    assert tf.compat.v1 is tf.compat.v1.compat.v1
    assert tf.compat.v1.Session is tf.Session


def test_import_paths_of_compat() -> None:
    python("""
        import headrace.compat.v1 as tf
        from headrace.compat.v1 import Session
        import headrace
        assert tf.Session is headrace.Session is Session
        assert tf is headrace.compat.v1
    """)


def test_train_is_the_namespace() -> None:
    assert tf.train.AdamOptimizer is tf.compat.v1.train.AdamOptimizer
    assert tf.train.__name__ == "headrace.api.v1.train"


@pytest.mark.parametrize(
    "namespace", ["", "nn", "math", "linalg", "random", "train", "initializers", "losses"]
)
def test_every_name_in_all_exists(namespace: str) -> None:
    module = getattr(tf, namespace) if namespace else tf.compat.v1
    assert [n for n in module.__all__ if not hasattr(module, n)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_import_is_light() -> None:
    loaded = python("import sys, headrace; print(*sorted(sys.modules))").split()
    heavy = {
        "scipy",
        "tensorboard",
        "google.protobuf",
        "rich",
        "absl",
        "unittest",
        "tensorflow",
        "jax",
        "asyncio",
    }
    assert not heavy & set(loaded)


def test_the_import_is_light_and_ops_are_found_when_asked_for() -> None:
    python("""
        import sys
        import headrace
        late = {"ml_dtypes", "scipy", "google.protobuf", "rich"}
        late.add("headrace.ops.sparse.sparse_tensor")
        late.add("headrace.ops.sparse.sparse_arranging")
        assert not late & set(sys.modules)
        from headrace.core.opdef import ALL_OPS, lookup
        assert "SparseToDense" not in ALL_OPS
        assert lookup("SparseToDense").name == "SparseToDense"
        assert lookup("Cholesky").name == "Cholesky"
    """)


def test_late_names_are_there_in_every_way() -> None:
    python("""
        import headrace.train.optimizers.slots
        import headrace as tf
        from headrace import nn, train
        assert train is tf.train and tf.train.__name__ == "headrace.api.v1.train"
        assert nn is tf.nn is tf.compat.v1.nn
        assert tf.print is tf.compat.v1.print and tf.print.__name__ == "print_v2"
        assert {"nn", "print", "cholesky"} <= set(dir(tf))
        names = {}
        exec("from headrace import *", names)
        assert names["cholesky"] is tf.cholesky and names["nn"] is tf.nn
    """)


def test_bfloat16_comes_with_its_first_use() -> None:
    python("""
        import sys
        import headrace as tf
        assert "ml_dtypes" not in sys.modules
        import ml_dtypes, numpy as np
        array = np.ones(2, ml_dtypes.bfloat16)
        assert tf.as_dtype(array.dtype) is tf.bfloat16
        assert tf.constant(array).dtype is tf.bfloat16
        assert tf.bfloat16._as_ref.as_numpy_dtype is ml_dtypes.bfloat16
    """)
    python("""
        import headrace as tf
        assert tf.bfloat16.size == 2 and tf.bfloat16.name == "bfloat16"
        with tf.Session() as sess:
            assert sess.run(tf.cast([1.5], tf.bfloat16)).dtype.name == "bfloat16"
    """)


def test_nothing_public_was_forgotten() -> None:
    """A function that an ops module lists, under a name that TensorFlow exports, is exported here
    too.
    """
    listed = {
        name
        for module in pkgutil.walk_packages(headrace.ops.__path__, "headrace.ops.")
        for name in getattr(importlib.import_module(module.name), "__all__", ())
    }
    assert sorted(n for n in listed & missing.known_symbols() if not hasattr(tf, n)) == []
    in_nn = {k.removeprefix("nn.") for k in missing.known_symbols() if k.startswith("nn.")}
    assert sorted(n for n in listed & in_nn if not hasattr(tf.nn, n)) == []


# what is missing --------------------------------------------------------------------------------


def test_known_symbol_that_is_missing() -> None:
    with pytest.raises(
        AttributeError,
        match=r"tf\.keras is part of TensorFlow 1.15, but Headrace does not have it yet",
    ):
        tf.keras  # noqa: B018


def test_unknown_symbol_names_what_is_near() -> None:
    with pytest.raises(AttributeError, match=r"has no tf\.reduce_summ, .* Near: tf\.reduce_sum"):
        tf.reduce_summ  # noqa: B018
    with pytest.raises(AttributeError, match=r"Near: .*tf\.matmul"):
        tf.nn.matmul  # noqa: B018


def test_contrib_says_so() -> None:
    with pytest.raises(
        AttributeError, match=r"tf\.contrib\.tensorrt is part of TensorFlow 1.15, but"
    ):
        tf.contrib.tensorrt  # noqa: B018
    with pytest.raises(AttributeError, match=r"does not have this part of tf\.contrib"):
        tf.contrib.no_such_thing  # noqa: B018
    with pytest.raises(
        AttributeError,
        match=r"tf\.contrib\.layers\.real_valued_column is part of TensorFlow 1.15, but",
    ):
        tf.contrib.layers.real_valued_column  # noqa: B018
    assert callable(tf.contrib.layers.xavier_initializer())


def test_known_symbols_are_tensorflows() -> None:
    assert {
        "matmul",
        "nn.relu",
        "keras.layers.Dense",
        "train.AdamOptimizer",
    } <= missing.known_symbols()


# raw ops ----------------------------------------------------------------------------------------


def test_raw_ops_take_keywords() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(tf.raw_ops.AddV2(x=1.0, y=2.0)) == 3.0
        with pytest.raises(TypeError):
            tf.raw_ops.AddV2(1.0, 2.0)
        with pytest.raises(AttributeError, match=r"tf\.raw_ops\.AddV3.*Near: tf\.raw_ops\.AddV2"):
            tf.raw_ops.AddV3  # noqa: B018


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("MatMul", "mat_mul"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("L2Loss", "l2_loss"),
        ("LRN", "lrn"),
        ("FusedBatchNormV3", "fused_batch_norm_v3"),
        ("IFFT2D", "ifft2d"),
        ("TopKV2", "top_kv2"),
    ],
)
def test_snake_case_is_tensorflows(op: str, name: str) -> None:
    assert raw_ops.snake_case(op) == name


def test_generated_functions_take_positions() -> None:
    with tf.Graph().as_default() as graph:
        raw_ops.generated("mat_mul")([[1.0]], [[2.0]], True, name="m")
        assert graph.get_operation_by_name("m").get_attr("transpose_a") is True
        with pytest.raises(TypeError):
            raw_ops.generated("mat_mul")([[1.0]])


# messages ---------------------------------------------------------------------------------------


def test_messages() -> None:
    config = tf.ConfigProto(allow_soft_placement=True, gpu_options=tf.GPUOptions(allow_growth=True))
    assert config.gpu_options.allow_growth
    assert tf.train.SaverDef().DESCRIPTOR.name == "SaverDef"
    assert (
        tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE).trace_level == tf.RunOptions.FULL_TRACE
    )


# files ------------------------------------------------------------------------------------------


def test_gfile_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b.txt")
    tf.gfile.MakeDirs(os.path.dirname(path))
    with tf.gfile.GFile(path, "w") as f:
        f.write("one\nzwei ü\n")
    assert tf.gfile.Exists(path)
    assert tf.gfile.Open(path).readlines() == ["one\n", "zwei ü\n"]
    with tf.gfile.FastGFile(path, "rb") as f:
        assert f.read(3) == b"one"
        assert f.tell() == 3
        f.seek(4)
        assert f.readline() == "zwei ü\n".encode()
        assert f.size() == 12
    assert tf.gfile.Stat(path).length == 12
    assert tf.gfile.Glob(str(tmp_path / "*" / "*.txt")) == [path]
    assert tf.io.gfile.listdir(str(tmp_path)) == ["a"]


def test_gfile_moves_and_removes(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    with tf.gfile.Open(a, "w") as f:
        f.write("x")
    tf.gfile.Copy(a, b)
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.Copy(a, b)
    tf.gfile.Rename(a, b, overwrite=True)
    assert not tf.gfile.Exists(a)
    tf.gfile.Remove(b)
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        tf.gfile.Remove(b)
    tf.gfile.MkDir(a)
    assert tf.gfile.IsDirectory(a)
    assert [d for d, _, _ in tf.gfile.Walk(str(tmp_path))] == [str(tmp_path), a]
    tf.gfile.DeleteRecursively(a)
    assert not tf.gfile.Exists(a)


def test_gfile_errors(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.GFile(str(tmp_path / "none")).read()
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.ListDirectory(str(tmp_path / "none"))
    with pytest.raises(tf.errors.PermissionDeniedError):
        tf.gfile.GFile(str(tmp_path / "w"), "w").read()


# flags, app, logging ----------------------------------------------------------------------------

FLAGS_PROGRAM = """
    import headrace as tf
    flags = tf.app.flags
    flags.DEFINE_string("name", "x", "a string")
    flags.DEFINE_integer("steps", 5, "an integer")
    flags.DEFINE_float("rate", 0.5, "a float")
    flags.DEFINE_boolean("fast", True, "a boolean")
    flags.DEFINE_bool(flag_name="deep", default_value=False, docstring="old parameter names")
    flags.DEFINE_list("parts", ["a"], "a list")
    flags.DEFINE_enum("mode", "train", ["train", "eval"], "one of them")
    FLAGS = flags.FLAGS
"""
SHOW = "print(FLAGS.name, FLAGS.steps, FLAGS.rate, FLAGS.fast, FLAGS.deep, FLAGS.parts, FLAGS.mode)"


def test_flags_are_parsed_at_first_use() -> None:
    out = python(
        FLAGS_PROGRAM + "    " + SHOW,
        "--name=y",
        "--steps",
        "7",
        "--rate=1e-3",
        "--nofast",
        "--deep",
        "--parts=b,c",
        "--mode=eval",
    )
    assert out == "y 7 0.001 False True ['b', 'c'] eval\n"


def test_app_run_leaves_unknown_flags_in_argv() -> None:
    program = (
        FLAGS_PROGRAM
        + f"""
    def main(argv):
        {SHOW}
        print(argv[1:])
        return 4
    tf.app.run()
    """
    )
    out = python(program, "--steps=9", "--other=1", "rest", code=4)
    assert out == "x 9 0.5 True False ['a'] train\n['--other=1', 'rest']\n"


def test_bad_flag_value() -> None:
    assert "steps" in python(FLAGS_PROGRAM + "    FLAGS.steps", "--steps=many", code=1)


def test_required_flag() -> None:
    program = (
        FLAGS_PROGRAM
        + """
    flags.DEFINE_string("needed", None, "")
    flags.mark_flag_as_required("needed")
    tf.app.run(lambda argv: None)
    """
    )
    assert "needed" in python(program, code=1)
    python(program, "--needed=1")


def test_flags_are_absls() -> None:
    python("""
        import headrace as tf
        from absl import flags
        flags.DEFINE_integer("n", 3, "")
        assert tf.flags.FLAGS.n == flags.FLAGS.n == 3
        tf.flags.FLAGS.n = 4
        assert flags.FLAGS.n == 4
    """)


def test_logging() -> None:
    out = python("""
        import headrace as tf
        assert tf.logging.get_verbosity() == tf.logging.WARN
        tf.logging.info("not shown")
        tf.logging.set_verbosity(tf.logging.INFO)
        tf.logging.info("step %d", 3)
        tf.logging.warn("careful")
        for i in range(5):
            tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, i)
            tf.logging.log_first_n(tf.logging.INFO, "first %d", 1, i)
        assert tf.get_logger().name == "tensorflow"
    """)
    assert out.splitlines() == [
        "INFO:tensorflow:step 3",
        "WARNING:tensorflow:careful",
        "INFO:tensorflow:every 0",
        "INFO:tensorflow:first 0",
        "INFO:tensorflow:every 2",
        "INFO:tensorflow:every 4",
    ]


# compat -----------------------------------------------------------------------------------------


def test_compat_text() -> None:
    assert tf.compat.as_bytes("ü") == "ü".encode()
    assert tf.compat.as_text(b"a") == tf.compat.as_str(b"a") == tf.compat.as_str_any(b"a") == "a"
    assert compat.as_str_any(3) == "3"
    with pytest.raises(TypeError, match="Expected binary or unicode string"):
        tf.compat.as_bytes(3)
    assert tf.compat.dimension_value(tf.Dimension(3)) == tf.compat.dimension_value(3) == 3


def test_switches_of_tf2() -> None:
    tf.disable_v2_behavior()
    tf.disable_eager_execution()
    assert tf.executing_eagerly() is False
    tf.enable_v2_behavior()
    try:
        assert tf.executing_eagerly() is True
        assert tf.constant([1, 2]).numpy().tolist() == [1, 2]
        with tf.Graph().as_default():
            assert tf.executing_eagerly() is False
    finally:
        tf.disable_v2_behavior()
    assert tf.executing_eagerly() is False


# tf.test ----------------------------------------------------------------------------------------


def test_test_case() -> None:
    out = python(
        """
        import headrace as tf

        class Square(tf.test.TestCase):
            def testSquare(self):
                with self.session() as sess:
                    x = tf.square([2.0, 3.0])
                    self.assertAllEqual(x.eval(), [4, 9])
                    self.assertAllClose(sess.run(x), [4 + 1e-7, 9])
                    with self.assertRaises(AssertionError):
                        self.assertAllClose(sess.run(x), [4.1, 9])
                self.assertAllEqual(tf.get_default_graph().seed, 87654321)

            def testErrors(self):
                with self.cached_session() as sess:
                    x = tf.placeholder(tf.float32, name="fed")
                    with self.assertRaisesOpError("must feed a value"):
                        sess.run(x)
                    self.assertIs(tf.get_default_session(), sess)

            def testGradient(self):
                with self.test_session():
                    x = tf.placeholder(tf.float64, [2, 3])
                    y = tf.square(x)
                    error = tf.test.compute_gradient_error(x, [2, 3], y, [2, 3], delta=1e-4)
                    self.assertLess(error, 1e-6)

        class OwnSetUp(tf.test.TestCase):
            def setUp(self):
                self.x = tf.constant(3.0)

            def testSessionAndFolder(self):
                with self.cached_session() as sess:
                    self.assertEqual(sess.run(self.x), 3)
                with self.test_session(graph=self.x.graph):
                    self.assertEqual(self.x.eval(), 3)
                self.assertTrue(tf.gfile.Exists(self.get_temp_dir()))

        assert not tf.test.is_gpu_available() and not tf.test.is_built_with_cuda()
        tf.test.main()
        """
    )
    assert "OK" in out


# devices ----------------------------------------------------------------------------------------


def test_device_spec() -> None:
    spec = tf.DeviceSpec.from_string("/job:worker/task:1/gpu:0")
    assert spec.to_string() == "/job:worker/task:1/device:GPU:0"
    spec.merge_from(tf.DeviceSpec(job="ps", device_type="CPU", device_index=2))
    assert spec.to_string() == "/job:ps/task:1/device:CPU:2"
    with tf.Graph().as_default(), tf.device(spec):
        assert tf.constant(1).device == "/job:ps/task:1/device:CPU:2"
    with pytest.raises(ValueError, match="Unknown attribute"):
        tf.DeviceSpec.from_string("/planet:earth")


def test_config() -> None:
    assert [d.device_type for d in tf.config.list_physical_devices()] == ["CPU"]
    assert tf.config.experimental.list_physical_devices("GPU") == []


def test_inner_modules_by_attribute() -> None:
    assert tf.python.framework.ops.Graph is tf.Graph
    assert tf.python.ops.math_ops.reduce_sum is tf.reduce_sum


# nest -------------------------------------------------------------------------------------------

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Record:
    b: Any
    a: Any


STRUCTURES = [
    3,
    [1, 2],
    (1, [2, (3,)]),
    {"b": 1, "a": [2]},
    Point(1, (2, 3)),
    Record([1], 2),
    OrderedDict([("z", 1), ("a", 2)]),
    [],
    {},
    (),
    {"k": ()},
    [None, "text", b"bytes"],
]


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_nest_round_trip(structure: Any) -> None:
    flat = nest.flatten(structure)
    assert nest.pack_sequence_as(structure, flat) == structure
    assert nest.map_structure(lambda x: x, structure) == structure
    nest.assert_same_structure(structure, structure)


def test_nest_order() -> None:
    assert nest.flatten({"b": 2, "a": [1, (3, 4)]}) == [1, 3, 4, 2]
    assert nest.flatten(OrderedDict([("z", 1), ("a", 2)])) == [2, 1]
    assert nest.flatten(Record(b=1, a=2)) == [1, 2]
    made = nest.pack_sequence_as(defaultdict(list, b=0, a=0), [1, 2])
    assert made == {"a": 1, "b": 2} and made.default_factory is list


def test_nest_differences() -> None:
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        nest.assert_same_structure([1, [2]], [1, 2])
    with pytest.raises(TypeError, match="sequence type"):
        nest.assert_same_structure([1], (1,))
    nest.assert_same_structure([1], (1,), check_types=False)
    with pytest.raises(ValueError, match="set of keys"):
        nest.assert_same_structure({"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="had 2 elements"):
        nest.pack_sequence_as([0, 0], [1, 2, 3])


def test_nest_up_to() -> None:
    assert nest.flatten_up_to([0, 0], [[1, 2], {"a": 3}]) == [[1, 2], {"a": 3}]
    assert nest.map_structure_up_to({"a": 0}, len, {"a": [1, 2, 3]}) == {"a": 3}
    with pytest.raises(TypeError):
        nest.flatten_up_to([0], 1)


def test_nest_paths() -> None:
    assert nest.flatten_with_joined_string_paths({"a": [1, 2]}) == [("a/0", 1), ("a/1", 2)]
    assert list(nest.yield_flattened_paths(Point(1, [2]))) == [("x",), ("y", 0)]


def test_nest_flatten_dict_items() -> None:
    assert nest.flatten_dict_items({(4, 5, (6, 8)): ("a", "b", ("c", "d"))}) == {
        4: "a",
        5: "b",
        6: "c",
        8: "d",
    }


def test_packages_do_not_hide_namespaces_of_their_name() -> None:
    """Whichever is imported first, and whether or not the namespace was asked for before."""
    program = """
        import importlib, pkgutil, sys
        first = sys.argv[1] == "packages"
        import headrace as tf
        from headrace.api.lazy_names import LAZY_MODULES
        names = [m.name for m in pkgutil.iter_modules(tf.__path__) if m.name in LAZY_MODULES]
        assert {"layers", "train", "distributions", "profiler", "data"} <= set(names), names
        if not first:
            before = {n: getattr(tf, n) for n in names}
        for name in names:
            package = importlib.import_module(f"headrace.{name}")
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"headrace.{name}.{module.name}")
        if not first:
            assert all(getattr(tf, n) is before[n] for n in names)
        tf.layers.dense, tf.train.Saver, tf.distributions.Normal, tf.data.Dataset
        tf.profiler.profile, tf.autograph.to_graph, tf.compat.v1
    """
    python(program, "packages")
    python(program, "namespaces")
