"""Nothing grows without bound: plans, calls, sessions, graphs."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from typing import Any

import numpy as np

import headrace as tf
from headrace.executors import shared_code
from headrace.session import plan_cache
from headrace.session import session as sessions


class Watched(np.ndarray):
    """An array that a weak reference can point to."""


def held(session: Any) -> Any:
    return next(iter(session._state.values.values()))


def test_dropping_a_session_frees_its_variables_at_once() -> None:
    v = tf.Variable(np.zeros(1000, np.float32))
    s = tf.Session()
    s.run(v.initializer)
    s.run([v, v + 1.0], {})
    x = tf.placeholder(tf.float32, [])
    s.run(x + v, {x: 1.0})
    array = weakref.ref(held(s))
    state = weakref.ref(s._state)
    gc.disable()
    try:
        del s
        assert array() is None and state() is None  # by reference counts alone: no cycle holds them
    finally:
        gc.enable()


def test_closing_frees_variables_though_the_session_is_still_held() -> None:
    v = tf.Variable(np.zeros(1000, np.float32))
    s = tf.Session()
    s.run(v.initializer)
    s.run(v + 1.0)
    array = weakref.ref(held(s))
    s.close()
    gc.collect()
    assert array() is None


def test_a_with_block_frees() -> None:
    v = tf.Variable(np.zeros(1000, np.float32))
    with tf.Session() as s:
        s.run(v.initializer)
        array = weakref.ref(held(s))
    gc.collect()
    assert array() is None


def test_results_do_not_keep_the_session() -> None:
    v = tf.Variable(np.zeros(1000, np.float32))
    s = tf.Session()
    s.run(v.initializer)
    result, old = s.run([v, v + 1.0])
    state = weakref.ref(s._state)
    del s
    gc.collect()
    assert state() is None and result.shape == old.shape == (1000,)


def test_a_failed_run_does_not_keep_its_arrays() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x) + tf.constant([1.0, 2.0])
    s = tf.Session()
    value = np.zeros(100000, np.float32).view(Watched)
    array = weakref.ref(value)
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        s.run(y, {x: value})
    del value
    gc.collect()
    assert array() is None


def _trained_graph() -> Any:
    with tf.Graph().as_default() as g, tf.Session(graph=g) as s:
        v = tf.Variable([1.0, 2.0])
        loss = tf.while_loop(
            lambda i, a: i < 2, lambda i, a: (i + 1, a * tf.reduce_sum(v)), [0, 1.0]
        )[1]
        step = tf.train.AdamOptimizer().minimize(tf.cond(loss > 0.0, lambda: loss, lambda: -loss))
        s.run(tf.global_variables_initializer())
        s.run([step, tf.py_func(lambda a: a, [v], tf.float32)])
    return g


def test_graphs_are_collected() -> None:
    graphs = []
    for i in range(4):  # equal structures: what is shared between them must not keep any of them
        with tf.Graph().as_default() as g, tf.Session(graph=g) as s:
            x = tf.placeholder(tf.float32, [None, 3])
            y = tf.reduce_sum(tf.tanh(x * float(i) + 1.0))
            s.run(y, {x: np.ones((2, 3))})
            s.explain(y, [x])
        graphs.append(weakref.ref(g))
        del g, s, x, y
    graphs.append(weakref.ref(_trained_graph()))
    gc.collect()
    assert [r() is None for r in graphs] == [True] * 5


def test_default_graph_is_collected_after_a_reset() -> None:
    c = tf.constant(np.zeros(1000))
    tf.Session().run(c + 1.0)
    graph = weakref.ref(c.graph)
    del c
    tf.reset_default_graph()
    gc.collect()
    assert graph() is None


def test_plans_and_calls_are_bounded() -> None:
    x = tf.placeholder(tf.float32, [])
    ys = [x + float(k) for k in range(2000)]
    s = tf.Session()
    for k, y in enumerate(ys):
        assert s.run(y, {x: 1.0}) == 1.0 + k
    assert len(s._calls) <= sessions.MAX_CALLS
    assert len(plan_cache.plans_of(s.graph).plans) <= plan_cache.MAX_PLANS
    assert len(shared_code._families) <= shared_code.MAX_SHARED
    assert s.run(ys[0], {x: 1.0}) == 1.0 and s.run(ys[-1], {x: 1.0}) == 2000.0  # forgotten or not


def _blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def test_many_sessions_do_not_grow_memory() -> None:
    v = tf.Variable(np.zeros(100, np.float32))
    y = v * 2.0

    def use(n: int) -> None:
        for _ in range(n):
            s = tf.Session()
            s.run(v.initializer)
            s.run(y)

    use(50)
    before = _blocks()
    use(2000)
    assert _blocks() - before < 2000  # less than one block a session


def test_many_runs_and_batch_sizes_do_not_grow_memory() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    v = tf.Variable(np.zeros(4, np.float32))
    y = tf.reduce_sum(tf.nn.relu(x * 2.0) + v)
    up = v.assign_add(tf.reduce_mean(x, 0))
    s = tf.Session()
    s.run(v.initializer)

    def use(sizes: range) -> None:
        for n in sizes:
            s.run([y, up], {x: np.ones((n, 4), np.float32)})

    use(range(1, 60))
    before = _blocks()
    use(range(1, 1500))
    assert _blocks() - before < 1000


def test_many_graphs_do_not_grow_memory() -> None:
    def use(n: int) -> None:
        for i in range(n):
            with tf.Graph().as_default(), tf.Session() as s:
                x = tf.placeholder(tf.float32, [2])
                w = tf.Variable([1.0, float(i)])
                y = tf.reduce_sum(x * w)
                s.run(tf.global_variables_initializer())
                s.run([y, tf.gradients(y, w)[0]], {x: [1.0, 2.0]})

    use(30)
    before = _blocks()
    use(300)
    assert _blocks() - before < 3000


def test_failures_do_not_grow_memory() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x + tf.constant([1.0, 2.0])
    s = tf.Session()

    def use(n: int) -> None:
        for _ in range(n):
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                s.run(y, {x: [1.0, 2.0, 3.0]})

    use(20)
    before = _blocks()
    use(500)
    assert _blocks() - before < 500


def test_unfinished_partial_runs_are_freed_with_the_session() -> None:
    a, b = tf.placeholder(tf.float32, [1000]), tf.placeholder(tf.float32, [1000])
    s = tf.Session()
    h = s.partial_run_setup([a + 1.0, a + b], [a, b])
    y = a + 1.0
    h = s.partial_run_setup([y], [a])
    assert h in s._partial_runs
    s.close()
    assert not s._partial_runs
