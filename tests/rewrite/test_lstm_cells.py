"""LSTM cells and layers of unrolled steps.

Found in both usual spellings, with their gradients, and only where it is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.numpy import lstm_kernels as lstm
from headrace.program.nodes import walk
from tests.rewrite.rewriting import program_of, same

RNG = np.random.RandomState(3)
WIDE, HIDDEN, STEPS = 5, 6, 4


def weights(kind: Any = np.float32, wide: int = WIDE) -> tuple[Any, Any]:
    shape = (wide + HIDDEN, 4 * HIDDEN)
    return (
        tf.Variable(RNG.randn(*shape).astype(kind) * 0.5),
        tf.Variable(RNG.randn(4 * HIDDEN).astype(kind)),
    )


def basic(x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    """As tf.nn.rnn_cell.BasicLSTMCell computes it."""
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias)
    i, j, f, o = tf.split(value=gates, num_or_size_splits=4, axis=1)
    new_c = tf.add(
        tf.multiply(c, tf.sigmoid(tf.add(f, 1.0))), tf.multiply(tf.sigmoid(i), tf.tanh(j))
    )
    return tf.multiply(tf.tanh(new_c), tf.sigmoid(o)), new_c


def plain(x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    i, f, g, o = tf.split(tf.matmul(tf.concat([x, h], 1), kernel) + bias, 4, axis=-1)
    new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(new_c), new_c


CELLS = {"basic": basic, "plain": plain}


def steps_of(x: Any) -> list[Any]:
    return tf.unstack(x, STEPS, axis=1)


def unrolled(cell: Any, xs: list[Any], h: Any, c: Any, *w: Any) -> tuple[list[Any], Any]:
    outputs = []
    for x in xs:
        h, c = cell(x, h, c, *w)
        outputs.append(h)
    return outputs, c


def batch(kind: Any = tf.float32) -> Any:
    return tf.placeholder(kind, [None, STEPS, WIDE])


def data(rows: int, kind: Any = np.float32) -> Any:
    return RNG.randn(rows, STEPS, WIDE).astype(kind)


def zeros(x: Any) -> Any:
    return tf.zeros([tf.shape(x)[0], HIDDEN], x.dtype)


def ops(program: Any) -> list[str]:
    return [n.opdef.name for n in walk(program.body)]


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("cell", CELLS)
def test_layer_in_inference(cell: str, rows: int) -> None:
    x = batch()
    outputs, c = unrolled(CELLS[cell], steps_of(x), zeros(x), zeros(x), *weights())
    program = program_of([*outputs, c], [x])
    assert program.notes["LSTM layer"] == 1 and ops(program).count("_LSTMLayer") == 1
    assert "Sigmoid" not in ops(program) and "MatMul" not in ops(program)
    assert "_LSTMLayer" not in ops(program_of([*outputs, c], [x], exact=True))
    same([*outputs, c], {x: data(rows)}, 1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cell", CELLS)
def test_layers_in_training(cell: str, kind: Any) -> None:
    """Two layers, one after the other in each step; gradients of everything that goes in."""
    x = batch(kind)
    first, second = weights(kind), weights(kind, HIDDEN)
    start = tf.Variable(RNG.randn(1, HIDDEN).astype(kind))
    state = tf.tile(start, [tf.shape(x)[0], 1])
    h1, c1, h2, c2 = zeros(x), state, state, zeros(x)
    outputs = []
    for step in steps_of(x):
        h1, c1 = CELLS[cell](step, h1, c1, *first)
        h2, c2 = CELLS[cell](h1, h2, c2, *second)
        outputs.append(h2)
    loss = tf.reduce_sum(tf.sin(tf.stack(outputs, 1))) + tf.reduce_sum(tf.square(c2))
    fetches = [loss, *tf.gradients(loss, [x, start, *first, *second])]
    program = program_of(fetches, [x])
    assert program.notes["LSTM layer"] == 2 and ops(program).count("_LSTMLayerGrad") == 2
    assert "Sigmoid" not in ops(program) and "SigmoidGrad" not in ops(program)
    for rows in (1, 8):
        same(fetches, {x: data(rows, kind)}, 1e-4 if kind == np.float32 else 1e-9)


def test_only_the_last_output_matters() -> None:
    x, w = batch(), weights()
    outputs, _ = unrolled(basic, steps_of(x), zeros(x), zeros(x), *w)
    loss = tf.reduce_sum(tf.sin(outputs[-1]))
    fetches = tf.gradients(loss, [x, *w])
    assert program_of(fetches, [x]).notes["LSTM layer"] == 1
    same(fetches, {x: data(5)}, 1e-5)


def test_a_first_layer_whose_inputs_have_no_gradient() -> None:
    """Nothing with a gradient lies behind the first step's inputs: a layer all the same."""
    x, w = batch(), weights()
    outputs, _ = unrolled(basic, steps_of(x), zeros(x), zeros(x), *w)
    fetches = tf.gradients(tf.reduce_sum(tf.sin(tf.stack(outputs))), list(w))
    program = program_of(fetches, [x])
    assert program.notes["LSTM layer"] == 1 and ops(program).count("_LSTMLayerGrad") == 1
    same(fetches, {x: data(5)}, 1e-5)


@pytest.mark.parametrize("stopped", [0, 1, 2])
def test_gradients_that_are_stopped_inside(stopped: int) -> None:
    """Between steps, and at a first step whose input is another step's too."""
    x, w = batch(), weights()
    first = tf.Variable(RNG.randn(3, WIDE).astype(np.float32))
    xs = [first, *steps_of(x)[1:-1], first]
    outputs, _ = unrolled(basic, xs, zeros(x), zeros(x), *w)
    loss = tf.reduce_sum(tf.sin(tf.stack(outputs)))
    joined = [op for op in tf.get_default_graph().get_operations() if op.type == "ConcatV2"]
    stops = ([outputs[0]], [joined[0].outputs[0]], [joined[1].outputs[0]])[stopped]
    fetches = tf.gradients(loss, [*w, first], stop_gradients=stops)
    same(fetches, {x: data(3)}, 1e-5)


def test_step_that_depends_on_the_one_before() -> None:
    """What goes in is made of what came out: no layer, only cells."""
    x, w = batch(), weights()
    h, c, y = zeros(x), zeros(x), steps_of(x)[0]
    for _ in range(STEPS):
        h, c = plain(y, h, c, *w)
        y = tf.sin(h[:, :WIDE])
    loss = tf.reduce_sum(tf.square(h))
    fetches = [h, *tf.gradients(loss, [x, *w])]
    program = program_of(fetches, [x])
    assert "LSTM layer" not in program.notes and program.notes["LSTM cell"] == STEPS
    assert any("depends on an output" in m.why_not for m in program.near_misses)
    same(fetches, {x: data(5)}, 1e-5)
    assert program_of([h], [x]).notes["LSTM cell"] == STEPS
    same([h], {x: data(5)}, 1e-5)


def test_state_that_others_read() -> None:
    x, w = batch(), weights()
    h, c, states = zeros(x), zeros(x), []
    for step in steps_of(x):
        h, c = basic(step, h, c, *w)
        states.append(c)
    loss = tf.reduce_sum(tf.sin(h)) + tf.reduce_sum(states[1] ** 2)
    fetches = [loss, *tf.gradients(loss, [x, *w])]
    program = program_of(fetches, [x])
    assert "LSTM layer" not in program.notes and program.notes["LSTM cell"] == STEPS
    same(fetches, {x: data(5)}, 1e-5)


def test_single_cell() -> None:
    x, w = batch(), weights()
    c0 = tf.Variable(RNG.randn(1, HIDDEN).astype(np.float32))  # one row for all
    h, c = basic(steps_of(x)[0], zeros(x), c0, *w)
    loss = tf.reduce_sum(tf.sin(h) + tf.cos(c))
    fetches = [h, c, *tf.gradients(loss, [x, c0, *w])]
    program = program_of(fetches, [x])
    assert program.notes["LSTM cell"] == 1 and "_LSTMCellGrad" in ops(program)
    same(fetches, {x: data(5)}, 1e-5)


def test_gate_that_others_read() -> None:
    x, w = batch(), weights()
    joined = tf.concat([steps_of(x)[0], zeros(x)], 1)
    i, f, g, o = tf.split(tf.matmul(joined, w[0]) + w[1], 4, axis=1)
    gate = tf.sigmoid(f)
    h = tf.sigmoid(o) * tf.tanh(gate * zeros(x) + tf.sigmoid(i) * tf.tanh(g))
    program = program_of([h, gate], [x])
    assert "_LSTMCell" not in ops(program)
    same([h, gate], {x: data(3)}, 1e-6)


def test_other_cells_stay() -> None:
    x = batch()
    w = weights()
    joined = tf.concat([steps_of(x)[0], zeros(x)], 1)
    a, b, c, d = tf.split(tf.matmul(joined, w[0]) + w[1], 4, axis=1)
    twice = tf.sigmoid(a) * tf.tanh(tf.sigmoid(a) * zeros(x) + tf.sigmoid(b) * tf.tanh(c))
    relu = tf.sigmoid(a) * tf.nn.relu(tf.sigmoid(b) * zeros(x) + tf.sigmoid(c) * tf.tanh(d))
    for y in (twice, relu):
        assert not any("LSTM" in op for op in ops(program_of([y], [x])))


def test_training_follows_the_reference() -> None:
    def losses(**options: Any) -> list[float]:
        random = np.random.RandomState(0)
        with tf.Graph().as_default():
            x = batch()
            kernel = tf.Variable(random.randn(WIDE + HIDDEN, 4 * HIDDEN).astype(np.float32) * 0.3)
            bias = tf.Variable(tf.zeros(4 * HIDDEN))
            outputs, _ = unrolled(basic, steps_of(x), zeros(x), zeros(x), kernel, bias)
            loss = tf.reduce_mean(tf.square(tf.stack(outputs) - 0.3))
            step = tf.train.AdamOptimizer(0.02).minimize(loss)
            with tf.Session(**options) as session:
                session.run(tf.global_variables_initializer())
                value = random.randn(7, STEPS, WIDE)
                return [session.run([loss, step], {x: value})[0] for _ in range(15)]

    got, want = losses(), losses(executor="reference")
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert got[-1] < 0.8 * got[0]


@pytest.mark.parametrize("rows", [2, 300])
@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
def test_functions(rows: int, forget_bias: float) -> None:
    """The cell and its gradient beside numbers in double precision.

    300 rows of 4 x 100 go over threads.
    """
    width, order = 100, (0, 2, 1, 3)
    product = RNG.randn(rows, 4 * width).astype(np.float32)
    c = RNG.randn(rows, width).astype(np.float32)
    h, new, gates, tanh_c = lstm.cell(product, c, order, forget_bias)
    wide = product.astype(np.float64).reshape(rows, 4, width)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    i, g, f, o = (
        sigmoid(wide[:, 0]),
        np.tanh(wide[:, 1]),
        sigmoid(wide[:, 2] + forget_bias),
        sigmoid(wide[:, 3]),
    )
    want = f * c + i * g
    np.testing.assert_allclose(new, want, atol=2e-6)
    np.testing.assert_allclose(h, o * np.tanh(want), atol=2e-6)
    np.testing.assert_allclose(gates.reshape(rows, 4, width)[:, 1], g, atol=2e-6)
    dh, dc = (RNG.randn(rows, width).astype(np.float32) for _ in range(2))
    d = dc + dh * o * (1 - np.tanh(want) ** 2)
    parts = [
        d * g * i * (1 - i),
        d * i * (1 - g * g),
        d * c * f * (1 - f),
        dh * np.tanh(want) * o * (1 - o),
    ]
    got, back = lstm.cell_grad(dh, dc, c, gates, tanh_c, order)
    np.testing.assert_allclose(got.reshape(rows, 4, width), np.stack(parts, 1), atol=1e-5)
    np.testing.assert_allclose(back, d * f, atol=1e-5)
