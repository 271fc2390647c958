"""Layers with weights that stay the same keep them packed: same numbers, and never stale ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.kernels import packed_weights as packed
from headrace.session import events

pytestmark = pytest.mark.skipif(
    accel.library() is None, reason=f"no kernel library that packs: {accel.status()}"
)
RNG = np.random.default_rng(0)


def array(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32) * 0.1


def dense(weights: Any, activation: Any, transpose_b: bool) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 300])
    y = tf.matmul(x, weights, transpose_b=transpose_b)
    return x, y if activation is None else activation(y + array(256))


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("rows", [1, 15, 16, 100])
@pytest.mark.parametrize("activation", [None, "relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("frozen", [False, True])
def test_products(activation: str | None, rows: int, transpose_b: bool, frozen: bool) -> None:
    values = array(256, 300) if transpose_b else array(300, 256)
    function = None if activation is None else getattr(tf.nn, activation)
    with tf.Graph().as_default() as graph:
        weights = tf.constant(values) if frozen else tf.Variable(values)
        x, y = dense(weights, function, transpose_b)
        init = tf.global_variables_initializer()
    feed = {x: array(rows, 300)}
    results = []
    for executor in ("numpy", "reference"):
        with tf.Session(graph=graph, executor=executor) as session:
            session.run(init)
            results.append(session.run(y, feed))
            np.testing.assert_array_equal(session.run(y, feed), results[-1])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)
    with tf.Session(graph=graph) as session:
        assert "_PackedMatMul" in {s.op_type for s in session.explain(y, [x]).steps}


def network() -> tuple[Any, ...]:
    images = tf.placeholder(tf.float32, [None, 12, 12, 16])
    w, b = tf.Variable(array(3, 3, 16, 32)), tf.Variable(array(32))
    h = tf.nn.relu(tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME") + b)
    v = tf.Variable(array(12 * 12 * 32, 64))
    y = tf.matmul(tf.reshape(h, [-1, 12 * 12 * 32]), v)
    step = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.square(y)))
    return images, y, step, (w, b, v)


def expected(session: Any, graph: Any, feed: Any, y: Any, variables: Any) -> Any:
    """What the reference executor makes of the same variables."""
    with tf.Session(graph=graph, executor="reference") as other:
        for variable, value in zip(variables, session.run(list(variables))):
            variable.load(value, other)
        return other.run(y, feed)


def test_training_and_inference_in_turn() -> None:
    with tf.Graph().as_default() as graph:
        images, y, step, variables = network()
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    feed = {images: array(20, 12, 12, 16)}
    for _ in range(3):
        got = [session.run(y, feed) for _ in range(2)]
        want = expected(session, graph, feed, y, variables)
        np.testing.assert_allclose(got[0], want, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(got[0], got[1])
        for _ in range(2):
            session.run(step, feed)


def counted_packs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one with each packing."""
    packs: list[Any] = []
    real = packed.PackedForms.get

    def counted(self: Any, key: Any, pack: Any, at_once: bool = False) -> Any:
        return real(self, key, lambda: packs.append(key) or pack(), at_once)

    monkeypatch.setattr(packed.PackedForms, "get", counted)
    return packs


def test_weights_that_are_written_after_each_use_are_not_packed_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Packing costs what a product does. When they rest, they are packed after a few uses."""
    with tf.Graph().as_default() as graph:
        weights = tf.Variable(array(300, 256))
        x, y = dense(weights, None, False)
        fetches = [y, tf.unique(tf.reshape(y, [-1]))[0]]  # keeps it from being bound to its feeds
        step = tf.assign_add(weights, 0.1 * tf.ones_like(weights))
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    packs = counted_packs(monkeypatch)
    feed = {x: array(40, 300)}
    for _ in range(6):
        got = session.run(fetches, feed)[0]
        np.testing.assert_allclose(
            got, expected(session, graph, feed, y, [weights]), rtol=1e-3, atol=1e-3
        )
        session.run(step)
    assert len(packs) <= 1
    before = len(packs)
    for _ in range(8):
        session.run(fetches, feed)
    assert len(packs) == before + 1


def test_packed_once_while_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default() as graph:
        images, y, _, variables = network()
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    packs = counted_packs(monkeypatch)
    feed = {images: array(20, 12, 12, 16)}
    for _ in range(4):
        session.run(y, feed)
    assert len(packs) == 2  # the filter and the matrix
    hits = events.snapshot()["kept_hits"]
    session.run(y, feed)
    assert events.snapshot()["kept_hits"] == hits + 1
    variables[0].load(array(3, 3, 16, 32), session)
    session.run(y, feed)
    assert len(packs) == 4


def test_changing_sizes_keep_few() -> None:
    with tf.Graph().as_default() as graph:
        images, y, _, variables = network()
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    for rows in (1, 3, 17, 20, 33, 40, 17):
        feed = {images: array(rows, 12, 12, 16)}
        want = expected(session, graph, feed, y, variables)
        np.testing.assert_allclose(session.run(y, feed), want, rtol=1e-3, atol=1e-4)
    for entry in session._state.kept.values():
        assert all(len(v.forms) <= packed.MAX_KEPT for v in entry.values)


def test_wrong_sizes_are_said() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.matmul(x, tf.Variable(array(300, 256)))
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            session.run(y, {x: array(4, 7)})


# other types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
@pytest.mark.parametrize(("kind", "tolerance"), [("bfloat16", 0.02), ("int8", 0.04)])
def test_weights_of_other_types(kind: str, tolerance: float, activation: str, rows: int) -> None:
    """Near the numbers of float32, and not the same; a write is seen."""
    function = None if activation is None else getattr(tf.nn, activation)
    with tf.Graph().as_default() as graph:
        weights = tf.Variable(array(300, 256))
        x, y = dense(weights, function, False)
        twice = tf.assign(weights, 2 * weights)
        init = tf.global_variables_initializer()
    feed = {x: array(rows, 300)}
    with tf.Session(graph=graph) as plain, tf.Session(graph=graph, weights=kind) as session:
        for s in (plain, session):
            s.run(init)
        for _ in range(2):
            want, got = plain.run(y, feed), session.run(y, feed)
            assert np.abs(got - want).max() <= tolerance * np.abs(want).max()
            way = session.explain(y, [x]).weights  # its error bounds: test_narrow_weights.py
            assert kind != "int8" or (got != want).any() == (way.kind != "float32")
            for s in (plain, session):
                s.run(twice)


def test_training_is_in_float32_whatever_weights_are_asked_for() -> None:
    with tf.Graph().as_default() as graph:
        images, _, step, variables = network()
        init = tf.global_variables_initializer()
    start, data = None, array(8, 12, 12, 16)
    results = []
    for kind in ("float32", "int8"):
        with tf.Session(graph=graph, weights=kind) as session:
            session.run(init)
            start = session.run(list(variables)) if start is None else start
            for v, value in zip(variables, start):
                v.load(value, session)
            for _ in range(3):
                session.run(step, {images: data})
            results.append(session.run(list(variables)))
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_int8_leaves_what_is_not_finite_to_float32() -> None:
    x, y = dense(tf.constant(array(300, 256)), None, False)
    value = array(3, 300)
    value[1, 7] = np.inf
    with tf.Session(weights="int8") as session:
        got = session.run(y, {x: value})
    assert np.isfinite(got[[0, 2]]).all() and not np.isfinite(got[1]).any()


def test_unknown_type_of_weights() -> None:
    with pytest.raises(ValueError, match="float32, bfloat16, int8, not 'int4'"):
        tf.Session(weights="int4")


# LSTM layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["basic", "plain"])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_lstm_layers_keep_their_kernel(cell: str, rows: int) -> None:
    """Numbers of the reference's, for both orders of gates, and after the kernel was written."""
    from tests.rewrite.test_lstm_cells import (
        CELLS,
        STEPS,
        WIDE,
        batch,
        steps_of,
        unrolled,
        weights,
        zeros,
    )

    with tf.Graph().as_default() as graph:
        x, w = batch(), weights()
        start = tf.constant(RNG.normal(size=(1, 6)).astype(np.float32))  # one row for all
        outputs, c = unrolled(CELLS[cell], steps_of(x), zeros(x), zeros(x) + start, *w)
        fetches = [*outputs, c]
        change = tf.group(*[tf.assign(v, v * 0.5) for v in w])
        init = tf.global_variables_initializer()
    feed = {x: array(rows, STEPS, WIDE)}
    results: dict[str, list[Any]] = {"numpy": [], "reference": []}
    for executor, found in results.items():
        with tf.Session(graph=graph, executor=executor) as session:
            session.run(init)
            for _ in range(2):
                found += session.run(fetches, feed) + session.run(fetches, feed)
                session.run(change)
            if executor == "numpy":
                steps = {s.op_type for s in session.explain(fetches, [x]).steps}
                assert "_PackedLSTMLayer" in steps and "MatMul" not in steps
    for got, want in zip(results["numpy"], results["reference"]):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_lstm_layer_keeps_a_nan_in_its_row() -> None:
    from tests.rewrite.test_lstm_cells import (
        STEPS,
        WIDE,
        batch,
        plain,
        steps_of,
        unrolled,
        weights,
        zeros,
    )

    x = batch()
    outputs, _ = unrolled(plain, steps_of(x), zeros(x), zeros(x), *weights())
    value = array(4, STEPS, WIDE)
    value[2, 1, 0] = np.nan
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got = np.stack(session.run(outputs, {x: value}))
    assert np.isnan(got[1:, 2]).all() and np.isfinite(got[:, [0, 1, 3]]).all()


@pytest.mark.parametrize("rows", [20, 128])
@pytest.mark.parametrize("wide", [(128, 128), (256, 256), (128, 256)])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_matrix_and_its_transpose_are_two_packed_forms(
    rows: int, wide: tuple[int, int], frozen: bool
) -> None:
    """A layer and the gradient of its input share a holder; of square weights both have one
    shape.
    """
    values = array(*wide)
    with tf.Graph().as_default() as graph:
        weights = tf.constant(values) if frozen else tf.Variable(values)
        x = tf.placeholder(tf.float32, [None, wide[0]])
        y = tf.square(tf.matmul(x, weights) + array(wide[1]))
        (gradient,) = tf.gradients(y, [x])
        init = tf.global_variables_initializer()
    feed = {x: array(rows, wide[0])}
    results = []
    for executor in ("numpy", "reference"):
        with tf.Session(graph=graph, executor=executor) as session:
            session.run(init)
            results.append([session.run([y, gradient], feed) for _ in range(3)])
    for ours, wanted in zip(*results):
        for a, b in zip(ours, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wide", [(300, 256), (128, 4200)])
def test_weights_of_few_and_many_rows_are_two_packed_forms(wide: tuple[int, int]) -> None:
    """On AVX2 a product of some numbers of rows is a convolution, whose weights lie otherwise."""
    with tf.Graph().as_default() as graph:
        values = tf.placeholder(tf.float32, wide)
        weights = tf.Variable(array(*wide))
        x = tf.placeholder(tf.float32, [None, wide[0]])
        y = tf.nn.relu(tf.matmul(x, weights) + array(wide[1]))
        write = tf.assign(weights, values)
        init = tf.global_variables_initializer()
    runs = [(rows, array(rows, wide[0])) for rows in (1, 8, 64, 600, 8, 1, 600, 64)]
    written = [array(*wide) for _ in range(2)]
    results: list[list[Any]] = []
    for executor in ("numpy", "reference"):
        results.append([])
        with tf.Session(graph=graph, executor=executor) as session:
            session.run(init)
            for new in written:
                session.run(write, {values: new})
                results[-1] += [session.run(y, {x: fed}) for _, fed in runs for _ in range(2)]
    for ours, wanted in zip(*results):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)
