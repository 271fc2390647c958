"""All steps of an LSTM layer as compiled code: against NumPy's kernels, and through the API."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace.compat.v1 as tf
from headrace.kernels.numpy import lstm_kernels
from headrace.lower.native_groups import native_expected
from headrace.runtime.thread_pool import limited

pytestmark = pytest.mark.skipif(not native_expected(), reason="no compiler")

ORDERS = [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)]
#: Steps, rows, the inputs' and the state's width: whole and broken tiles and panels.
SHAPES = [(1, 1, 1, 1), (3, 2, 5, 7), (4, 13, 3, 16), (5, 32, 24, 33), (2, 70, 10, 128)]


def _numbers(rng: Any, *shape: int) -> Any:
    return (rng.randn(*shape) * 0.4).astype(np.float32)


def _given(shape: tuple[int, int, int, int], first_rows: int | None = None) -> tuple[Any, ...]:
    """Inputs, the first output and state, the kernel and the bias."""
    rng = np.random.RandomState(0)
    steps, rows, wide, width = shape
    state = [_numbers(rng, first_rows or rows, width) for _ in range(2)]
    inputs = [_numbers(rng, rows, wide) for _ in range(steps)]
    return inputs, *state, _numbers(rng, wide + width, 4 * width), _numbers(rng, 4 * width)


def _forward(given: tuple[Any, ...], order: Any, training: bool = True) -> Any:
    from headrace.kernels.native import recurrent_kernels

    inputs, *others = given
    return recurrent_kernels.layer(
        *inputs, *others, N=len(inputs), order=order, forget_bias=1.0, training=training
    )


def _near(made: Any, wanted: Any) -> None:
    assert len(made) == len(wanted)
    for a, b in zip(made, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stretched", [False, True])
def test_a_compiled_layer_is_numpys(
    order: tuple[int, int, int, int], shape: tuple[int, int, int, int], stretched: bool
) -> None:
    from headrace.kernels.native import recurrent_kernels

    given = _given(shape, 1 if stretched else None)
    inputs, h, c, kernel, bias = given
    steps, rows, _, width = shape
    outputs, states, gates, tanhs = lstm_kernels.layer(inputs, h, c, kernel, bias, order, 1.0)
    made = _forward(given, order)
    _near(made, (*outputs, states[-1], states, gates, tanhs))
    rng = np.random.RandomState(1)
    dh = list(_numbers(rng, rows, steps, width).transpose(1, 0, 2))  # (parts of rows, not whole)
    for dc in (_numbers(rng, rows, width), np.float32(0)):
        after = (inputs, h, c, kernel, outputs, states, gates, tanhs)
        dx, *others = lstm_kernels.layer_grad(dh, dc, *after, order)
        flat = [*dh, dc, *inputs, h, c, kernel, *outputs, states, gates, tanhs]
        found = recurrent_kernels.layer_grad(*flat, N=steps, order=order)
        assert found is not None
        _near(found, (*dx, *others))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 1, 4, 64), (2, 1, 4, 50), (6, 1, 4, 72)])
def test_steps_of_inference_are_numpys(
    order: tuple[int, int, int, int], shape: tuple[int, int, int, int]
) -> None:
    """Without what the gradient reads: a single row has tiles of its own."""
    from headrace.kernels.native.recurrent_kernels import Steps, in_panels

    inputs, h, c, kernel, bias = _given(shape)
    steps, rows, wide, width = shape
    outputs, states, _, _ = lstm_kernels.layer(inputs, h, c, kernel, bias, order, 1.0)
    made, last = np.empty((steps, rows, width), np.float32), c.copy()
    gates = np.concatenate(inputs) @ kernel[:wide] + bias
    arrays = [in_panels(kernel[wide:]), h, last, gates, made]
    Steps.of_inference(arrays, (steps, rows, width), order, 1.0)()
    _near((*made, last), (*outputs, states[-1]))


def test_threads_do_not_change_a_bit() -> None:
    given = _given((6, 45, 40, 96))
    with limited(1):
        alone = _forward(given, ORDERS[0])
    together = _forward(given, ORDERS[0])
    for a, b in zip(alone, together):
        np.testing.assert_array_equal(a, b)


def test_special_values() -> None:
    inputs, h, c, kernel, bias = given = _given((2, 8, 3, 8))
    c[:, 0] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 200.0, -200.0, 1e-40]
    h[0, 3] = np.nan
    with np.errstate(invalid="ignore"):
        outputs, states, gates, tanhs = lstm_kernels.layer(
            inputs, h, c, kernel, bias, (0, 1, 2, 3), 1.0
        )
    _near(_forward(given, (0, 1, 2, 3)), (*outputs, states[-1], states, gates, tanhs))


def test_what_is_left_to_numpy() -> None:
    inputs, h, c, kernel, bias = given = _given((2, 3, 4, 5))
    assert _forward(given, ORDERS[0]) is not None
    assert _forward(given, ORDERS[0], training=False) is None
    doubles = ([x.astype(np.float64) for x in inputs], *(a.astype(np.float64) for a in given[1:]))
    assert _forward(doubles, ORDERS[0]) is None
    large = (inputs, *(np.zeros(s, np.float32) for s in ((3, 500), (3, 500), (504, 2000), (2000,))))
    assert _forward(large, ORDERS[0]) is None
    nothing = ([x[:0] for x in inputs], h[:0], c[:0], kernel, bias)
    assert _forward(nothing, ORDERS[0]) is None


def test_numpys_layer_takes_a_first_output_that_is_a_view() -> None:
    """A kernel library reads rows at their addresses: views and single rows are laid out first."""
    inputs, h, c, kernel, bias = _given((2, 8, 3, 16))
    wanted = lstm_kernels.layer(inputs, h, c, kernel, bias, (0, 1, 2, 3), 1.0)
    for view in (np.asfortranarray(h), np.repeat(h, 2, axis=1)[:, ::2]):
        _near(lstm_kernels.layer(inputs, view, c, kernel, bias, (0, 1, 2, 3), 1.0)[0], wanted[0])


def _trained(monkeypatch: pytest.MonkeyPatch, native: str) -> tuple[Any, Any]:
    """The losses of unrolled cells, and who computes their layers."""
    monkeypatch.setenv("HEADRACE_NATIVE", native)
    rng = np.random.RandomState(0)
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [8, 6, 16])
    with tf.variable_scope("net", initializer=tf.constant_initializer(0.1)):
        cell = tf.nn.rnn_cell.BasicLSTMCell(16)
        outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs) - 0.3))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    feed = {x: rng.randn(8, 6, 16)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], feed)[0] for _ in range(5)]
        steps = session.explain([loss, step], feed).steps
        return losses, {s.op_type: s.by for s in steps if "LSTMLayer" in s.op_type}


def test_an_unrolled_layer_trains_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with_numpy, by = _trained(monkeypatch, "0")
    assert set(by.values()) == {"NumPy or library"}
    native, by = _trained(monkeypatch, "always")
    assert by == {"_LSTMLayer": "native", "_LSTMLayerGrad": "native"}
    np.testing.assert_allclose(native, with_numpy, rtol=1e-5)
    assert native[-1] < native[0]
