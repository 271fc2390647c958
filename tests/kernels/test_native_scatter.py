"""Scattered rows as compiled code: NumPy's bits, and what is left to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace.compat.v1 as tf
from headrace.lower.native_groups import native_expected

pytestmark = pytest.mark.skipif(not native_expected(), reason="no compiler")

UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("how", [*UFUNCS, "update"])
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(7,), (7, 1), (5, 3), (9, 16), (4, 67), (3, 5, 7)])
def test_the_bits_are_numpys(how: str, kind: str, shape: tuple[int, ...]) -> None:
    from headrace.kernels.native import scatter_kernels

    rng = np.random.RandomState(0)
    ref = (rng.randn(*shape) * 9).astype(kind)
    rows = rng.randint(0, shape[0], 40).astype(np.int32 if len(shape) == 2 else np.int64)
    updates = (rng.randn(40, *shape[1:]) * 9).astype(kind)
    if kind.startswith("float"):
        special = [np.nan, np.inf, -np.inf, -0.0, 1e-40]
        updates.reshape(-1)[: len(special)] = special
    if how == "div" and kind.startswith("int"):
        assert not scatter_kernels.takes(how, ref, rows, updates)
        return
    wanted = ref.copy()
    with np.errstate(all="ignore"):
        if how == "update":
            wanted[rows] = updates
        else:
            UFUNCS[how].at(wanted, rows, updates)
    assert scatter_kernels.takes(how, ref, rows, updates)
    scatter_kernels.scatter(how, ref, rows, updates)
    np.testing.assert_array_equal(ref, wanted)


def test_what_is_left_to_numpy() -> None:
    from headrace.kernels.native.scatter_kernels import takes

    ref, rows, updates = np.zeros((4, 3), "f"), np.array([0, 2]), np.ones((2, 3), "f")
    assert takes("add", ref, rows, updates)
    assert not takes("add", ref, rows, updates.astype("d"))
    assert not takes("add", ref, rows, updates[:, :2])
    assert not takes("add", np.asfortranarray(ref), rows, updates)
    assert not takes("add", ref, rows[:0], updates[:0])
    assert not takes("add", ref.astype(np.float16), rows, updates.astype(np.float16))


@pytest.mark.parametrize("op", ["scatter_add", "scatter_sub", "scatter_update", "scatter_max"])
def test_variables(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """The same numbers with and without compiled code, and refused rows leave a variable alone."""
    rng = np.random.RandomState(0)
    start, rows, updates = rng.randn(6, 9).astype("f"), rng.randint(0, 6, 30), rng.randn(30, 9)
    found = []
    for native in ("0", "always"):
        monkeypatch.setenv("HEADRACE_NATIVE", native)
        tf.reset_default_graph()
        variable = tf.Variable(start)
        places = tf.placeholder(tf.int32, [None])
        step = getattr(tf, op)(variable, places, updates.astype("f"))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step, {places: rows})
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(step, {places: rows + 1})
            found.append(session.run(variable))
    np.testing.assert_array_equal(*found)


def test_sums_of_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.RandomState(0).randn(640, 128).astype("f")
    ids = np.random.RandomState(1).randint(-1, 65, 640)
    wanted = np.zeros((65, 128), "f")
    np.add.at(wanted, ids[ids >= 0], data[ids >= 0])
    for native in ("0", "always"):
        monkeypatch.setenv("HEADRACE_NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            made = session.run(tf.unsorted_segment_sum(tf.constant(data), ids, 65))
        np.testing.assert_array_equal(made, wanted)
