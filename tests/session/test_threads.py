"""Many threads on one session, and the defaults that each thread has for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.runtime import thread_pool as pool

both = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def together(n: int, work: Callable[[int], None]) -> None:
    """Run ``work(i)`` on n threads that start at the same time; the first failure is raised
    here.
    """
    failures: list[BaseException] = []
    gate = threading.Barrier(n)

    def body(i: int) -> None:
        try:
            gate.wait(120)
            work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


def started() -> tf.Session:
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    return s


@both
@pytest.mark.parametrize("shape", [[], [3], [200, 300]])
def test_no_update_is_lost(resource: bool, shape: list[int]) -> None:
    v = tf.Variable(tf.zeros(shape), use_resource=resource)
    up = v.assign_add(tf.ones(shape))
    s = started()
    together(6, lambda i: [s.run(up.op) for _ in range(50)] and None)
    np.testing.assert_array_equal(s.run(v), np.full(shape, 300, np.float32))


@both
def test_no_sparse_update_is_lost(resource: bool) -> None:
    v = tf.Variable(tf.zeros([10, 4]), use_resource=resource)
    rows = tf.placeholder(tf.int32, [None])
    up = tf.scatter_add(v, rows, tf.ones([3, 4]))
    s = started()
    together(5, lambda i: [s.run(up, {rows: [0, 0, i + 1]}) for _ in range(30)] and None)
    got = s.run(v)[:, 0]
    assert got[0] == 300 and got[1:6].tolist() == [30] * 5


@both
def test_reads_are_never_torn(resource: bool) -> None:
    """A large variable is updated in place; every reader sees one value throughout."""
    v = tf.Variable(tf.zeros([300000]), use_resource=resource)
    up = v.assign_add(tf.ones([300000]))
    low, high = tf.reduce_min(v), tf.reduce_max(v)
    s = started()

    def work(i: int) -> None:
        for _ in range(25):
            if i < 2:
                s.run(up.op)
            elif i == 2:
                array = s.run(v)
                assert array.min() == array.max()
            else:
                a, b = s.run([low, high])
                assert a == b

    together(5, work)
    assert s.run(high) == 50


@both
def test_the_value_before_the_run_is_older_than_the_runs_own_write(resource: bool) -> None:
    """Also when another thread was writing as the run began, and the old value is used only after
    the new one.
    """
    v = tf.Variable(tf.zeros([200000]), use_resource=resource)
    up = v.assign_add(tf.ones([200000]))
    before = v.value()[:1] * 1.0
    with tf.control_dependencies([up]):
        after = v.read_value()[:1] * 1.0
    s = started()

    def work(i: int) -> None:
        for _ in range(60):
            a, b = s.run([before, after])
            assert a < b

    together(6, work)
    assert s.run(v)[0] == 360


def test_each_run_computes_with_its_own_feeds() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(tf.exp(x * 0.0) * x + 1.0)
    s = tf.Session()

    def work(i: int) -> None:
        for n in (10, 40000, 200000):
            for _ in range(4):
                got = s.run(y, {x: np.full(n, i, np.float32)})
                assert got == pytest.approx((i + 1) * n, rel=1e-5)

    together(5, work)


def test_first_runs_of_many_plans_at_once() -> None:
    x = tf.placeholder(tf.float32, [])
    ys = [x * float(k) + 1.0 for k in range(40)]
    s = tf.Session()

    def work(i: int) -> None:
        for k, y in enumerate(ys):
            assert s.run(y, {x: i}) == i * k + 1
            assert s.run([y, x], {x: i}) == [i * k + 1, i]

    together(6, work)


def test_initialisation_while_others_read() -> None:
    v = tf.Variable(tf.ones([1000]))
    total = tf.reduce_sum(v)
    s = started()

    def work(i: int) -> None:
        for _ in range(40):
            if i == 0:
                s.run(v.initializer)
            else:
                assert s.run(total) == 1000

    together(4, work)


def test_close_lets_a_run_under_way_finish() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(x: Any) -> Any:
        inside.set()
        assert go_on.wait(120)
        return x

    v = tf.Variable(5.0)
    y = tf.py_func(wait, [v], tf.float32) + v * 2.0
    s = started()
    results: list[Any] = []
    runner = threading.Thread(target=lambda: results.append(s.run(y)))
    runner.start()
    assert inside.wait(120)
    s.close()
    with pytest.raises(RuntimeError, match="closed"):
        s.run(v)
    go_on.set()
    runner.join(120)
    assert results == [15.0]
    with pytest.raises(RuntimeError, match="closed"):
        s.run(y)


def test_a_python_function_may_use_the_session() -> None:
    v = tf.Variable(2.0)
    s = started()
    read = v * 10.0
    y = tf.py_func(lambda x: s.run(read) + x, [v], tf.float32)
    assert s.run(y) == 22.0


def test_a_failing_thread_does_not_disturb_the_others() -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(0.0)
    bad = tf.reduce_sum(x + tf.constant([1.0, 2.0, 3.0]))
    up = v.assign_add(bad * 0.0 + 1.0)
    s = started()

    def work(i: int) -> None:
        for _ in range(40):
            if i % 2:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    s.run(up.op, {x: [1.0, 2.0]})
            else:
                s.run(up.op, {x: [1.0, 2.0, 3.0]})

    together(4, work)
    assert s.run(v) == 80


def test_default_graph_and_session_are_each_threads_own() -> None:
    g = tf.Graph()
    outside = tf.get_default_graph()
    s = tf.Session(graph=g)
    seen: list[Any] = []

    def other() -> None:
        seen.append(tf.get_default_graph())
        seen.append(tf.get_default_session())
        with tf.Graph().as_default() as mine:
            seen.append(tf.constant(1).graph is mine)

    with g.as_default(), s.as_default():
        t = threading.Thread(target=other)
        t.start()
        t.join()
        assert tf.get_default_graph() is g
    assert seen[0] is not g and seen[0] is outside
    assert seen[1] is None and seen[2] is True


def test_graphs_built_in_threads_at_the_same_time() -> None:
    def work(i: int) -> None:
        with tf.Graph().as_default() as g, tf.Session(graph=g) as s:
            x = tf.placeholder(tf.float32, [])
            y = x
            for k in range(40):
                with tf.name_scope(f"layer{k}"):
                    y = y + float(i)
            assert s.run(y, {x: 1.0}) == 1.0 + 40 * i
            assert y.op.name.startswith("layer39")

    together(6, work)


def test_one_graph_built_by_several_threads() -> None:
    g = tf.get_default_graph()

    def work(i: int) -> None:
        with g.as_default():
            for _ in range(100):
                tf.constant(i)

    together(4, work)
    names = [op.name for op in g.get_operations()]
    assert len(names) == len(set(names)) == 400
    assert [op._id for op in g.get_operations()] == list(range(400))


def _trained(graph: tf.Graph, scope: str, scale: float) -> tuple[Any, ...]:
    """A branch, a loop, a layer norm and their gradients: every fact that one stage of building or
    planning hands to a later one is in it.
    """
    with graph.as_default(), tf.name_scope(scope):
        x = tf.placeholder(tf.float32, [4, 8])
        mean, variance = tf.nn.moments(x, [1], keep_dims=True)
        y = (x - mean) * tf.rsqrt(variance + 1e-6) * np.full(8, scale, np.float32) + 0.5
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: y * 2.0, lambda: tf.tanh(y))
        (inner,) = tf.gradients(tf.reduce_sum(tf.square(y)), x)
        (second,) = tf.gradients(tf.reduce_sum(tf.square(inner)), x)
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, tf.sigmoid(z) * z), (0, y))
        loss = tf.reduce_mean(tf.square(y))
        (dx,) = tf.gradients(loss, x)
    return x, [loss, dx, second]


@pytest.mark.parametrize("shared", [False, True], ids=["graphs", "one graph"])
@pytest.mark.parametrize("imported", [False, True])
def test_what_stages_tell_each_other_in_threads(shared: bool, imported: bool) -> None:
    """Branches, loops and backward passes that several threads build and plan at the same time,
    in one graph or each in its own, also from a GraphDef.
    """
    n = 6
    feeds = [np.random.RandomState(i).randn(4, 8).astype(np.float32) for i in range(n)]
    graph = tf.Graph()

    def work(i: int, own: tf.Graph) -> Any:
        x, fetches = _trained(own, f"thread{i}", 1.0 + i)
        if imported:
            names = [t.name for t in (x, *fetches)]
            with own._lock:
                message = own.as_graph_def()
            own = tf.Graph()
            with own.as_default():
                x, *fetches = tf.import_graph_def(message, return_elements=names, name="")
        with tf.Session(graph=own) as session:
            return session.run(fetches, {x: feeds[i]})

    found: list[Any] = [None] * n

    def keep(i: int) -> None:
        found[i] = work(i, graph if shared else tf.Graph())

    together(n, keep)
    for i in range(n):
        for got, expected in zip(found[i], work(i, tf.Graph())):
            assert np.array_equal(got, expected), i


def test_sessions_in_threads_are_independent() -> None:
    v = tf.Variable(0.0)
    up = v.assign_add(1.0)

    def work(i: int) -> None:
        with tf.Session(graph=v.graph) as s:
            s.run(v.initializer)
            for _ in range(i + 1):
                s.run(up.op)
            assert s.run(v) == i + 1

    together(6, work)


def test_a_session_keeps_to_its_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is spread over threads asks how many it may use; the answer is the session's."""
    seen: list[int] = []
    real = pool._offer

    def counted(job: Any, helpers: int) -> None:
        seen.append(1 + helpers)
        real(job, helpers)

    monkeypatch.setattr(pool, "_offer", counted)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x * 1.1 + 0.1)
        rows = np.linspace(-1, 1, 1_000_000, dtype=np.float32)
        results = []
        for n in (1, 3, 0):
            config = tf.ConfigProto(intra_op_parallelism_threads=n)
            with tf.Session(config=config) as session:
                seen.clear()
                results.append(session.run(y, {x: rows}))
                assert max(seen, default=1) == (n or pool.thread_count())
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


def test_the_setting_for_all() -> None:
    before = pool.thread_count()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        assert pool.thread_count() == 1 == tf.config.threading.get_intra_op_parallelism_threads()
        with accel.limited_threads(3):
            assert pool.thread_count() == 3
        assert pool.thread_count() == 1
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert pool.thread_count() == before


@pytest.mark.parametrize("trained_before", [False, True])
def test_steps_of_sixteen_threads_are_whole(trained_before: bool) -> None:
    """An update of a variable and its slot is one: with a gradient of ones, after N steps the slot
    is N and the variable minus the sum of the numbers up to N, whichever thread made them in which
    order.
    """
    n, threads, steps = 256, 16, 12
    x = tf.placeholder(tf.float32, [n, n])
    v = tf.Variable(tf.zeros([n, n]))
    optimizer = tf.train.MomentumOptimizer(1.0, 1.0)
    step = optimizer.minimize(tf.reduce_sum(tf.matmul(x, v)))
    slot = optimizer.get_slot(v, "momentum")
    low, high = tf.reduce_min(v), tf.reduce_max(v)
    s, feed = started(), {x: np.full((n, n), 1 / n, np.float32)}
    before = 10 if trained_before else 0
    for _ in range(before):
        s.run(step, feed)

    def work(i: int) -> None:
        for _ in range(steps):
            s.run(step, feed)
            a, b = s.run([low, high])
            assert a == b

    together(threads, work)
    made = before + threads * steps
    assert (s.run(slot) == made).all()
    assert (s.run(v) == -made * (made + 1) / 2).all()


def test_every_kind_of_write_waits_for_an_update_under_way() -> None:
    """Large updates compute without the lock; what others write meanwhile is not lost."""
    n = 256
    x = tf.placeholder(tf.float32, [n, n])
    v = tf.Variable(tf.zeros([n, n]))
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(tf.matmul(x, v)))
    add, one = v.assign_add(tf.ones([n, n])), tf.scatter_add(v, [7], tf.ones([1, n]))
    s, feed = started(), {x: np.full((n, n), 1 / n, np.float32)}

    def work(i: int) -> None:
        for _ in range(40):
            if i % 2:
                s.run(step, feed)
            else:
                s.run([add.op, one.op] if i % 4 else add.op)

    together(8, work)
    got = s.run(v)
    assert (got[7] == 80).all() and (np.delete(got, 7, 0) == 0).all()
