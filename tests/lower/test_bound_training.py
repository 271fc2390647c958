"""Training steps of dense layers: bound up to their first write, the writes as ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.lower import bound_runs, select_bound, stage_split
from headrace.lower.passes import make_plan
from headrace.program.snapshot import snapshot
from tests.lower.bound_networks import RNG, bindings, like, needs_library

pytestmark = needs_library

WIDE, HIDDEN, CLASSES, ROWS = 40, 112, 10, 48
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": tf.nn.relu,
    "tanh": tf.nn.tanh,
    "sigmoid": tf.nn.sigmoid,
}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
}


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select_bound, "MIN_WORK", 1)


@pytest.fixture(autouse=True)
def same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ran before: with some data a step of this size diverges."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(5))


def classifier(activation: str = "relu", optimizer: str = "adam", sparse: bool = True) -> Any:
    """x, labels, [step, loss] in a graph of their own."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [None, WIDE])
        y = tf.placeholder(
            tf.int32 if sparse else tf.float32, [None] if sparse else [None, CLASSES]
        )
        h, n = x, WIDE
        for k in (HIDDEN, HIDDEN):
            w = tf.Variable(tf.random_normal([n, k], stddev=0.2))
            h, n = ACTIVATIONS[activation](tf.matmul(h, w) + tf.Variable(tf.zeros([k]))), k
        logits = tf.matmul(h, tf.Variable(tf.random_normal([n, CLASSES]))) + tf.Variable(
            tf.zeros([CLASSES])
        )
        if sparse:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        else:
            each = 0.1 * tf.square(logits - y)
        loss = tf.reduce_mean(each)
        step = OPTIMIZERS[optimizer]().minimize(loss)
    return graph, x, y, [step, loss]


def batch(sparse: bool = True, rows: int = ROWS) -> tuple[Any, Any]:
    x = RNG.normal(size=(rows, WIDE)).astype(np.float32)
    if sparse:
        return x, RNG.integers(0, CLASSES, rows).astype(np.int32)
    return x, RNG.normal(size=(rows, CLASSES)).astype(np.float32)


def started(graph: Any) -> Any:
    session = tf.Session(graph=graph)
    with graph.as_default():
        session.run(tf.global_variables_initializer())
    return session


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_trains_as_the_reference_does(activation: str, optimizer: str, sparse: bool) -> None:
    graph, x, y, fetches = classifier(activation, optimizer, sparse)
    session = started(graph)
    other = like(session, graph)
    for n in range(6):
        a, b = batch(sparse)
        got, want = (s.run(fetches, {x: a, y: b})[1] for s in (session, other))
        np.testing.assert_allclose(got, want, rtol=2e-4, err_msg=f"step {n}")
    (found,) = bindings(session)
    assert not found.failures, found.failure
    assert found.binding.notes["primitives"] >= 8
    with graph.as_default():
        for v in tf.global_variables():
            np.testing.assert_allclose(session.run(v), other.run(v), rtol=5e-3, atol=5e-4)


def test_bound_after_a_few_steps_only() -> None:
    graph, x, y, fetches = classifier()
    session = started(graph)
    for n in range(bound_runs.MIN_TRAINING_RUNS):
        assert not bindings(session), n
        session.run(fetches, dict(zip((x, y), batch())))
    assert len(bindings(session)) == 1
    for rows in range(1, 30):  # ever new sizes are not bound
        session.run(fetches, dict(zip((x, y), batch(rows=rows))))
    assert len(bindings(session)) == 1


def test_large_variables_are_overwritten_where_they_lie() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 200])
        w = tf.Variable(tf.random_normal([200, 200], seed=1))
        loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
    session = started(graph)
    feed = {x: RNG.normal(size=(64, 200)).astype(np.float32)}
    for _ in range(5):
        session.run([step, loss], feed)
    assert bindings(session)
    key = next(k for k, v in session._state.values.items() if np.shape(v) == (200, 200))
    before = id(session._state.values[key])
    session.run([step, loss], feed)
    assert id(session._state.values[key]) == before


def test_writes_between_steps_are_seen() -> None:
    graph, x, y, fetches = classifier(optimizer="descent")
    session = started(graph)
    feed = dict(zip((x, y), batch()))
    for _ in range(5):
        session.run(fetches, feed)
    with graph.as_default():
        for v in tf.trainable_variables():
            v.load(np.zeros(v.shape.as_list(), np.float32), session)
    assert session.run(fetches, feed)[1] == pytest.approx(np.log(CLASSES), rel=1e-5)


def test_a_wrong_label_is_said_and_nothing_is_written() -> None:
    graph, x, y, fetches = classifier()
    session = started(graph)
    a, b = batch()
    for _ in range(5):
        session.run(fetches, {x: a, y: b})
    with graph.as_default():
        before = session.run(tf.global_variables())
        for bad in (-1, CLASSES):
            wrong = b.copy()
            wrong[3] = bad
            with pytest.raises(tf.errors.InvalidArgumentError, match="label value of"):
                session.run(fetches, {x: a, y: wrong})
        for v, w in zip(before, session.run(tf.global_variables())):
            np.testing.assert_array_equal(v, w)
    session.run(fetches, {x: a, y: b})
    assert bindings(session)


def test_nan_reaches_the_loss() -> None:
    graph, x, y, fetches = classifier()
    session = started(graph)
    a, b = batch()
    for _ in range(5):
        session.run(fetches, {x: a, y: b})
    a[0, 0] = np.nan
    assert np.isnan(session.run(fetches, {x: a, y: b})[1])


def test_a_variable_of_another_shape() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, None])
        w = tf.Variable(tf.ones([80, 60]), validate_shape=False)
        y = tf.matmul(x, w)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
        wider = tf.assign(w, tf.ones([90, 60]), validate_shape=False)
    session = started(graph)
    for _ in range(5):
        session.run([step, y], {x: np.ones((8, 80), np.float32)})
    session.run(wider)
    (got,) = session.run([y], {x: np.ones((8, 90), np.float32)})
    np.testing.assert_allclose(got, 90.0)
    _, got = session.run([step, y], {x: np.ones((8, 90), np.float32)})
    np.testing.assert_allclose(got, 90.0)


def test_an_error_of_a_write_names_the_operation() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 80])
        w = tf.Variable(tf.ones([80, 60]))
        kept = tf.Variable(tf.zeros([4]))
        at = tf.placeholder(tf.int32, [])
        y = tf.reduce_mean(tf.matmul(x, w))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(y)
        note = tf.scatter_update(kept, at, y, name="note")
    session = started(graph)
    feed = {x: np.ones((8, 80), np.float32)}
    for n in range(6):
        session.run([step, note], {**feed, at: n % 4})
    with pytest.raises(tf.errors.InvalidArgumentError, match="note"):
        session.run([step, note], {**feed, at: 9})


# what comes before the writes -------------------------------------------------------------------


def _parts(fetches: list[Any], feeds: list[Any]) -> tuple[list[Any], list[Any]]:
    plan = make_plan(snapshot(fetches, feeds))
    return stage_split.before_writes(plan.block, plan.program)


def test_order_of_reads_and_writes() -> None:
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    doubled = v * x
    with tf.control_dependencies([tf.assign_add(v, x)]):
        after = tf.identity(v.read_value() * 3.0)
    first, rest = _parts([doubled, after], [x])
    assert [n.opdef.name for n in first if n.opdef.name == "Mul"] == ["Mul"]
    assert not any(n.writes for n in first) and any(n.writes for n in rest)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([doubled, after], {x: [10.0, 10.0]})
    np.testing.assert_array_equal(a, [10.0, 20.0])
    np.testing.assert_array_equal(b, [33.0, 36.0])


def test_nothing_comes_before_the_writes() -> None:
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    first, rest = _parts([tf.assign_add(v, x)], [x])
    assert not first and rest


def test_an_old_value_that_is_read_after_the_write() -> None:
    """The write comes first in the graph; what read the variable before it still sees the old."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 96])
        v = tf.Variable(tf.random_normal([96, 96], seed=4))
        y = tf.matmul(x, v)
        write = tf.assign_sub(v, 0.5 * tf.matmul(x, y, transpose_a=True))
        with tf.control_dependencies([write]):
            new = tf.reduce_sum(v.read_value())
        old = tf.reduce_sum(v)
    session = started(graph)
    other = like(session, graph)
    for _ in range(6):
        feed = {x: 0.05 * RNG.normal(size=(16, 96)).astype(np.float32)}
        got, want = (s.run([y, new, old, v], feed) for s in (session, other))
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert bindings(session)


def test_results_of_a_bound_step_are_the_callers_own() -> None:
    """Neither the next step nor a change of a result by its owner shows in another."""
    graph, x, y, fetches = classifier(optimizer="descent")
    with graph.as_default():
        found = tf.trainable_variables()
        gradient = tf.gradients(fetches[1], found[0])[0]
    session = started(graph)
    results = []
    for _ in range(8):
        a, b = batch()
        _, g, w = session.run([fetches[0], gradient, found[0]], {x: a, y: b})
        results.append((g, w, g.copy(), w.copy()))
        g += 1.0
        w += 1.0
        results[-1] = (g, w, *results[-1][2:])
    assert bindings(session)
    for g, w, g_then, w_then in results:
        np.testing.assert_array_equal(g, g_then + 1.0)
        np.testing.assert_array_equal(w, w_then + 1.0)
