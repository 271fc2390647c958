"""The v2 namespaces: what they have, TF 2's signatures, and ``import tensorflow`` as TF 2."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf1
from headrace.api import v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401

MODULES = [
    "autodiff",
    "bitwise",
    "compat",
    "config",
    "debugging",
    "dtypes",
    "experimental",
    "experimental.dlpack",
    "initializers",
    "keras",
    "linalg",
    "math",
    "nn",
    "optimizers",
    "optimizers.schedules",
    "random",
    "signal",
    "sparse",
    "strings",
    "train",
]


def parameters(function: Any) -> list[str]:
    return [p for p in inspect.signature(function).parameters if p != "self"]


@pytest.mark.parametrize("name", ["", *MODULES])
def test_every_listed_name_is_there(name: str) -> None:
    module = importlib.import_module("headrace.api.v2" + (f".{name}" if name else ""))
    for n in getattr(module, "__all__", ()):
        assert hasattr(module, n), n


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("cond", ["pred", "true_fn", "false_fn", "name"]),
        ("convert_to_tensor", ["value", "dtype", "dtype_hint", "name"]),
        ("gather", ["params", "indices", "validate_indices", "axis", "batch_dims", "name"]),
        ("squeeze", ["input", "axis", "name"]),
        ("transpose", ["a", "perm", "conjugate", "name"]),
        ("where", ["condition", "x", "y", "name"]),
        ("argmax", ["input", "axis", "output_type", "name"]),
        ("boolean_mask", ["tensor", "mask", "axis", "name"]),
        ("nn.softmax", ["logits", "axis", "name"]),
        ("nn.dropout", ["x", "rate", "noise_shape", "seed", "name"]),
        ("nn.moments", ["x", "axes", "shift", "keepdims", "name"]),
        ("nn.max_pool", ["input", "ksize", "strides", "padding", "data_format", "name"]),
        (
            "nn.conv2d",
            ["input", "filters", "strides", "padding", "data_format", "dilations", "name"],
        ),
        ("nn.embedding_lookup", ["params", "ids", "max_norm", "name"]),
        (
            "math.confusion_matrix",
            ["labels", "predictions", "num_classes", "weights", "dtype", "name"],
        ),
        ("random.poisson", ["shape", "lam", "dtype", "seed", "name"]),
        ("tuple", ["tensors", "control_inputs", "name"]),
    ],
)
def test_signatures_are_tf2s(path: str, want: list[str]) -> None:
    found: Any = tf
    for part in path.split("."):
        found = getattr(found, part)
    assert parameters(found) == want


def test_a_missing_name_says_so() -> None:
    with pytest.raises(
        AttributeError, match=r"tf.placeholder is not in TensorFlow 2's API as Headrace has it"
    ):
        _ = tf.placeholder
    with pytest.raises(AttributeError, match=r"Near: tf.math.reduce_sum"):
        _ = tf.math.reduce_summ
    assert not hasattr(tf.nn, "rnn_cell")


def test_the_other_api_is_in_reach() -> None:
    assert tf.compat.v1.placeholder is tf1.placeholder
    assert tf.compat.v2 is tf
    assert tf.compat.v1.compat.v2 is tf
    assert tf.errors is tf1.errors
    assert issubclass(tf1.Variable, tf.Variable)


def test_new_functions() -> None:
    x = tf.constant([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(
        tf.nn.gelu(x).numpy(), [-0.15865526, 0.34573123, 1.9544997], rtol=1e-5
    )
    np.testing.assert_allclose(
        tf.nn.gelu(x, approximate=True).numpy(), [-0.15880796, 0.345714, 1.9545977], rtol=1e-5
    )
    np.testing.assert_allclose(
        tf.nn.silu(x).numpy(), [-0.26894143, 0.31122968, 1.7615942], rtol=1e-5
    )
    assert float(tf.nn.compute_average_loss([1.0, 3.0])) == 2.0
    assert float(tf.nn.compute_average_loss([1.0, 3.0], global_batch_size=4)) == 1.0
    first, second = tf.map_fn(
        lambda a: (a, a * 2), tf.constant([1, 2]), fn_output_signature=(tf.int32, tf.int32)
    )
    assert first.numpy().tolist() + second.numpy().tolist() == [1, 2, 2, 4]
    assert tf.cond(True, lambda: 1, lambda: 2) == 1
    small = tf.random_normal_initializer(seed=1)([1000]).numpy()
    assert 0.04 < small.std() < 0.06
    assert np.abs(tf.initializers.RandomUniform()([100]).numpy()).max() <= 0.05


def python(code: str, *args: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *args, "-c", textwrap.dedent(code)]
        if not args
        else [sys.executable, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_compat_v2_turns_eager_execution_on() -> None:
    out = python(
        """
        import headrace.compat.v2 as tf
        total = (tf.constant([1, 2]) + 1).numpy().tolist()
        print(tf.executing_eagerly(), total, tf.ones([2, 3]).shape[1])
        tf.compat.v1.disable_v2_behavior()
        print(tf.executing_eagerly(), tf.compat.v1.placeholder(tf.float32).name)
        """
    )
    assert out.splitlines() == ["True [2, 3] 3", "False Placeholder:0"]


def test_importing_headrace_loads_nothing_of_it() -> None:
    out = python(
        """
        import sys
        import headrace as tf
        assert not tf.executing_eagerly()
        tf.compat.v1
        print([m for m in sys.modules if m.startswith(("headrace.eager", "headrace.api.v2"))])
        """
    )
    assert out.strip() == "[]"


def test_dropin() -> None:
    out = python(
        """
        from headrace import dropin
        dropin.install(api="v2")
        import tensorflow as tf
        from tensorflow.keras import optimizers
        import tensorflow.compat.v1 as tf1
        names = optimizers.Adam.__name__, tf1.Session.__name__
        print(tf.executing_eagerly(), tf.__version__[0], *names)
        dropin.uninstall()
        """
    )
    assert out.strip() == "True 2 Adam Session"


def test_headrace_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import tensorflow as tf\nprint(tf.reduce_sum(tf.Variable([1.0, 2.0])).numpy())\n"
    )
    assert python("", "-m", "headrace", "run", "--api", "v2", "program.py", cwd=tmp_path) == "3.0\n"


def test_naming_compat_v2_in_a_graph_program_turns_nothing_on() -> None:
    out = python(
        """
        import headrace as tf
        x = tf.compat.v2.math.reduce_sum(tf.constant([1, 2]))
        print(tf.executing_eagerly(), type(x).__name__)
        """
    )
    assert out.strip() == "False Tensor"
