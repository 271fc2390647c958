"""LSTM cells as compiled code: through loops of the public API, and against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace.compat.v1 as tf
from headrace.kernels.numpy import lstm_kernels
from headrace.lower.native_groups import native_expected

pytestmark = pytest.mark.skipif(not native_expected(), reason="no compiler")

ORDERS = [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 16), (64, 200), (2, 67)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_compiled_cell_is_numpys(
    order: tuple[int, int, int, int], shape: tuple[int, int], dtype: str
) -> None:
    from headrace.kernels.native import cell_kernels

    rng = np.random.RandomState(0)
    rows, width = shape
    product = rng.randn(rows, 4 * width).astype(dtype) * 3
    c, dh, dc = (rng.randn(rows, width).astype(dtype) for _ in range(3))
    wanted = lstm_kernels.cell(product, c, order, 1.0)
    made = cell_kernels.cell(product, c, order=order, forget_bias=1.0)
    assert made is not None
    near = 2e-6 if dtype == "float32" else 1e-14
    for a, b in zip(made, wanted):
        np.testing.assert_allclose(a, b, rtol=near, atol=near)
    for state in (dc, np.dtype(dtype).type(0.5)):
        expected = lstm_kernels.cell_grad(dh, state, c, wanted[2], wanted[3], order)
        found = cell_kernels.cell_grad(dh, state, c, wanted[2], wanted[3], order=order)
        assert found is not None
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=10 * near, atol=10 * near)


def test_special_values() -> None:
    from headrace.kernels.native import cell_kernels

    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 200.0, -200.0, 1e-40], np.float32)
    product, c = np.tile(special, (3, 4)), np.tile(special[::-1], (3, 1)).copy()
    with np.errstate(invalid="ignore"):
        wanted = lstm_kernels.cell(product, c, (0, 1, 2, 3), 0.0)
    made = cell_kernels.cell(product, c, order=(0, 1, 2, 3), forget_bias=0.0)
    assert made is not None
    for a, b in zip(made, wanted):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_what_is_not_contiguous_or_broadcast_is_left_to_numpy() -> None:
    from headrace.kernels.native import cell_kernels

    product, c = np.zeros((4, 8), np.float32), np.zeros((4, 2), np.float32)
    attrs: dict[str, Any] = {"order": (0, 1, 2, 3), "forget_bias": 0.0}
    assert cell_kernels.cell(product, c, **attrs) is not None
    assert cell_kernels.cell(product, c[:1], **attrs) is None
    assert cell_kernels.cell(np.asfortranarray(product), c, **attrs) is None
    assert cell_kernels.cell(product, c.astype(np.float64), **attrs) is None
    assert cell_kernels.cell(product.astype(np.float16), c.astype(np.float16), **attrs) is None
    assert cell_kernels.cell(np.zeros((0, 8), np.float32), c[:0], **attrs) is None


def _trained(monkeypatch: pytest.MonkeyPatch, native: str) -> tuple[Any, Any]:
    """The losses of an LSTM in a loop, and who computes its cells in an inference run."""
    monkeypatch.setenv("HEADRACE_NATIVE", native)
    rng = np.random.RandomState(0)
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, 6, 5])
    with tf.variable_scope("net", initializer=tf.constant_initializer(0.1)):
        cell = tf.nn.rnn_cell.BasicLSTMCell(7)
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - 0.3))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    feed = {x: rng.randn(4, 6, 5)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], feed)[0] for _ in range(5)]
        session.run(outputs, feed)
        steps = session.explain(outputs, feed).steps
        return losses, {s.by for s in steps if s.op_type == "_LSTMCell"}


def test_a_loop_of_cells_trains_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with_numpy, by = _trained(monkeypatch, "0")
    assert by == {"NumPy or library"}
    native, by = _trained(monkeypatch, "always")
    assert by == {"native"}
    np.testing.assert_allclose(native, with_numpy, rtol=1e-5)
    assert native[-1] < native[0]
