"""Loops that are written out once a program has run often: numbers, errors, and when not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executors import options_for
from headrace.executors.reference import make_reference
from headrace.executors.specialised import RUNS
from headrace.lower.passes import Choices, make_plan
from headrace.lower.session_state import State
from headrace.program.fed_shapes import with_fed_shapes
from headrace.program.nodes import While
from headrace.program.snapshot import snapshot
from headrace.rewrite.engine import rewrite
from headrace.rewrite.rule_table import RULES
from headrace.rewrite.rules.loop_rounds import RULE

#: The rules that find out how many rounds there are.
_COUNTING = ("known shape", "known size of a list", "known part of a shape", "constant folding")
RNG = np.random.RandomState(3)


def _weights(*shape: int) -> Any:
    return tf.Variable(RNG.normal(0, 0.3, shape).astype(np.float32))


def _often(fetch: Any, feed: dict[Any, Any], **options: Any) -> tuple[Any, Any, Any]:
    """The first result, the last of many, and the explanation of that."""
    with tf.Session(**options) as session:
        session.run(tf.global_variables_initializer())
        first = session.run(fetch, feed)
        for _ in range(RUNS + 4):
            last = session.run(fetch, feed)
        return first, last, session.explain(fetch, list(feed))


def _written_out(fetch: Any, feed: dict[Any, Any], tolerance: float = 1e-5) -> Any:
    """The loop is written out in the end, and by itself that changes no bit."""
    _same_bits(fetch, feed)
    for options in ({"exact": True}, {}):
        first, last, explained = _often(fetch, feed, **options)
        assert explained.rewrites.get(RULE) == 1, str(explained)
        np.testing.assert_allclose(last, first, rtol=tolerance, atol=tolerance)
    return last


def _same_bits(fetch: Any, feed: dict[Any, Any]) -> None:
    """The loop and what it is written out, both computed by the kernels one after the other."""
    whole = snapshot([fetch], list(feed))
    arrays = [np.asarray(a, t.dtype.as_numpy_dtype) for t, a in feed.items()]
    program = with_fed_shapes(whole, tuple(a.shape for a in arrays))
    rules = [r for r in RULES if r.name in (RULE, *_COUNTING)]
    written = rewrite(program, rules)
    assert not any(isinstance(s, While) for s in written.body)
    state, results = State(), []
    for v in tf.global_variables():
        state.values[v.op.name] = np.random.RandomState(5).rand(*v.shape).astype(np.float32)
    for one in (whole, written):
        made = make_reference(make_plan(one, Choices(fusion=False)), options_for("reference"))
        results.append(made.run(state, state.values, *arrays)[0])
    np.testing.assert_array_equal(*results)


def _why_not(fetch: Any, feed: dict[Any, Any]) -> str:
    first, last, explained = _often(fetch, feed)
    assert RULE not in explained.rewrites
    np.testing.assert_allclose(last, first, rtol=1e-6)
    return " ".join(str(explained).split())


def _recurrence(x: Any, steps: int, change: Callable[[Any], Any] = tf.tanh) -> Any:
    """h = change(x_t @ w + h @ u), all of them stacked, and the last."""
    w, u = _weights(6, 128), _weights(128, 128)
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))
    outputs = tf.TensorArray(tf.float32, steps)

    def body(i: Any, h: Any, outputs: Any) -> Any:
        h = change(tf.matmul(inputs.read(i), w) + tf.matmul(h, u))
        return i + 1, h, outputs.write(i, h)

    start = (tf.constant(0), tf.zeros([tf.shape(x)[0], 128]), outputs)
    _, h, outputs = tf.while_loop(lambda i, *_: i < steps, body, start)
    return tf.concat([tf.reshape(tf.transpose(outputs.stack(), [1, 0, 2]), [-1, 128]), h], 0)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("declared", [True, False])
def test_a_recurrence(batch: int, declared: bool) -> None:
    x = tf.placeholder(tf.float32, [batch if declared else None, 5, 6])
    _written_out(_recurrence(x, 5), {x: RNG.rand(batch, 5, 6)})


@pytest.mark.parametrize("cell", ["BasicRNNCell", "GRUCell", "BasicLSTMCell", "LSTMCell"])
@pytest.mark.parametrize("batch", [1, 4])
def test_dynamic_rnn(cell: str, batch: int) -> None:
    tf.set_random_seed(4)
    x = tf.placeholder(tf.float32, [None, None, 6])
    outputs, _ = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, cell)(128), x, dtype=tf.float32)
    _written_out(outputs, {x: RNG.rand(batch, 7, 6)})


def test_it_runs_for_each_length() -> None:
    """Same graph, same session; other lengths have other plans, or the loop."""
    x = tf.placeholder(tf.float32, [None, None, 6])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(128), x, dtype=tf.float32)
    feeds = [RNG.rand(2, n, 6).astype(np.float32) for n in (3, 5, 3, 9)]
    with tf.Session() as session, tf.Session(executor="reference") as reference:
        session.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            v.load(session.run(v), reference)
        want = [reference.run(outputs, {x: f}) for f in feeds]
        for _ in range(RUNS + 4):
            for feed, expected in zip(feeds, want, strict=True):
                np.testing.assert_allclose(session.run(outputs, {x: feed}), expected, atol=1e-5)


def test_new_values_of_feeds_and_variables_are_seen() -> None:
    """The key of a plan is the shapes: the same, and the answer is not."""
    x = tf.placeholder(tf.float32, [2, 4, 6])
    y = _recurrence(x, 4)
    w = tf.global_variables()[0]
    with tf.Session() as session, tf.Session(executor="reference") as reference:
        session.run(tf.global_variables_initializer())
        reference.run(tf.global_variables_initializer())
        for n in range(2 * RUNS):
            feed = {x: np.full((2, 4, 6), n / 50, np.float32)}
            got = session.run(y, feed)
            if n % 10 == 9:
                np.testing.assert_allclose(got, reference.run(y, feed), atol=1e-5)
                new = RNG.normal(0, 0.3, (6, 128)).astype(np.float32)
                w.load(new, session)
                w.load(new, reference)
        assert RULE in session.explain(y, [x]).rewrites


def test_predictions_of_a_graph_that_is_trained() -> None:
    """The record of the backward pass speaks of the loop, not of its rounds."""
    x = tf.placeholder(tf.float32, [None, 4, 6])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(128), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - 0.5))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    feed = {x: RNG.rand(3, 4, 6)}
    with tf.Session() as session, tf.Session(executor="reference") as reference:
        session.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            v.load(session.run(v), reference)
        for _ in range(RUNS + 4):
            for s in (session, reference):
                s.run(train, feed)
            want = reference.run(outputs, feed)
            np.testing.assert_allclose(session.run(outputs, feed), want, atol=1e-5)
        assert RULE in session.explain(outputs, [x]).rewrites
        trained = session.explain(train, [x])
        assert RULE not in trained.rewrites


def test_values_change_places() -> None:
    x, w = tf.placeholder(tf.float32, [2, 256]), _weights(256, 256)

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 2, b, tf.tanh(tf.matmul(a, w))

    i, a, b = tf.while_loop(lambda i, *_: i < 7, body, (tf.constant(1), x, x + 1.0))
    count = tf.cast(i, tf.float32) * tf.ones([1, 256])
    last = _written_out(tf.concat([a, b, count], 0), {x: RNG.rand(2, 256)})
    assert last[-1, 0] == 7


def test_a_loop_without_rounds() -> None:
    x, w = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4)
    _, y = tf.while_loop(
        lambda i, _: i < 0, lambda i, y: (i + 1, tf.matmul(y, w)), (tf.constant(0), x)
    )
    assert "with loops written out: 0 rounds" in _why_not(y * 2.0, {x: RNG.rand(2, 4)})


# when not -----------------------------------------------------------------------------------------


def test_rounds_that_depend_on_what_is_fed() -> None:
    x, n, w = tf.placeholder(tf.float32, [2, 4]), tf.placeholder(tf.int32, []), _weights(4, 4)
    body = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)))
    _, y = tf.while_loop(lambda i, _: i < n, body, (tf.constant(0), x))
    why = _why_not(y, {x: RNG.rand(2, 4), n: 3})
    assert "not known before the run: while/Less (Less) takes what the run gives" in why


def test_rounds_that_depend_on_the_values_inside() -> None:
    x, w = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4)
    body = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)))
    _, y = tf.while_loop(
        lambda i, y: tf.logical_and(i < 9, tf.reduce_sum(y) < 100.0), body, (tf.constant(0), x)
    )
    assert "not known before the run" in _why_not(y, {x: RNG.rand(2, 4)})


def test_many_rounds() -> None:
    x, w = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4)
    body = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)))
    _, y = tf.while_loop(lambda i, _: i < 5000, body, (tf.constant(0), x))
    why = _why_not(y, {x: RNG.rand(2, 4)})
    assert "not known before the run: there are more than 128" in why


def test_a_test_that_fails() -> None:
    """The error belongs to the run; explain says that it stood in the way of the rule, too."""
    x, w = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4)
    body = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)))
    _, y = tf.while_loop(lambda i, _: i < tf.gather([9, 9, 9], i), body, (tf.constant(0), x))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(RUNS + 4):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: RNG.rand(2, 4)})
        misses = {why for rule, _, why in session.explain(y, [x]).near_misses if rule == RULE}
        planned = " ".join(session.explain(y, [x]).planned_again)
    assert "GatherV2) fails: " in f"{misses} {planned}"


def test_random_numbers_and_writes_stay_in_their_loop() -> None:
    x, w, v = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4), tf.Variable(0.0)

    def drawing(i: Any, y: Any) -> Any:
        return i + 1, tf.matmul(y, w) + tf.random_normal([2, 4], seed=1) * 0.0

    def writing(i: Any, y: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1, tf.matmul(y, w)

    for body in (drawing, writing):
        _, y = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), x))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(RUNS + 4):
                session.run(y, {x: np.ones((2, 4))})
            assert RULE not in session.explain(y, [x]).rewrites
            assert session.run(v) == (0.0 if body is drawing else 3.0 * (RUNS + 4))


def test_a_branch_in_the_loop() -> None:
    x, w = tf.placeholder(tf.float32, [2, 4]), _weights(4, 4)

    def body(i: Any, y: Any) -> Any:
        y = tf.matmul(y, w)
        return i + 1, tf.cond(tf.reduce_sum(y) > 0.0, lambda: y * 0.5, lambda: y * 2.0)

    _, y = tf.while_loop(lambda i, _: i < 4, body, (tf.constant(0), x))
    _why_not(y, {x: RNG.rand(2, 4)})


# lists --------------------------------------------------------------------------------------------


def _errors_stay(make: Callable[[Any, Any], Any], match: str) -> None:
    """A loop whose lists are used wrongly raises the same at first and later."""
    x, w = tf.placeholder(tf.float32, [3, 2, 4]), _weights(4, 4)
    y = make(x, w)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(RUNS + 4):
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                session.run(y, {x: RNG.rand(3, 2, 4)})


def _over_rounds(x: Any, w: Any, n: int, step: Callable[[Any, Any, Any], Any]) -> Any:
    start = (tf.constant(0), x[0], tf.TensorArray(tf.float32, 3, clear_after_read=True))
    loop = tf.while_loop(lambda i, *_: i < n, lambda i, y, a: (i + 1, *step(i, y, a)), start)
    return loop[1], loop[2]


def test_an_index_that_is_written_twice() -> None:
    def make(x: Any, w: Any) -> Any:
        y, array = _over_rounds(x, w, 3, lambda i, y, a: (tf.matmul(y, w), a.write(i * 0, y)))
        return y + array.read(0)

    _errors_stay(make, "already been written")


def test_an_index_beyond_the_end() -> None:
    def make(x: Any, w: Any) -> Any:
        y, array = _over_rounds(x, w, 3, lambda i, y, a: (tf.matmul(y, w), a.write(i + 1, y)))
        return y + array.read(1)

    _errors_stay(make, "not resizeable")


def test_an_index_that_is_read_twice() -> None:
    def make(x: Any, w: Any) -> Any:
        array = tf.TensorArray(tf.float32, 3, clear_after_read=True).unstack(x)
        body = lambda i, y: (i + 1, tf.matmul(y, w) + array.read(i * 0))
        return tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), x[0]))[1]

    _errors_stay(make, "twice")


def test_an_index_that_was_never_written() -> None:
    """An element of a known shape is zero then, as in TensorFlow; the list stays a list."""
    x, w = tf.placeholder(tf.float32, [3, 2, 128]), _weights(128, 128)
    y, array = _over_rounds(x, w, 2, lambda i, y, a: (tf.matmul(y, w), a.write(i, y)))
    first, last, _ = _often([y, array.stack()], {x: RNG.rand(3, 2, 128)})
    np.testing.assert_allclose(last[0], first[0], rtol=1e-4)
    np.testing.assert_allclose(last[1], first[1], rtol=1e-4)
    assert not last[1][2].any() and last[1][1].any()


def test_a_list_that_is_read_in_another_order() -> None:
    x, w = tf.placeholder(tf.float32, [None, 2, 256]), _weights(256, 256)
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(y, w)) + array.read(2 - i) * array.read(i)

    y = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), x[0]))[1]
    total = y + tf.reduce_sum(array.gather([2, 0]), 0)
    _written_out(total, {x: RNG.rand(3, 2, 256)})
