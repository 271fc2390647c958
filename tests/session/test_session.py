"""Sessions: what run, eval, make_callable and close mean, and which default is in force."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.session.events import EVENTS


def sess(**kwargs: Any) -> tf.Session:
    return tf.Session(**kwargs)


# structures of one tensor -----------------------------------------------------------------------


def test_single_fetch_and_list_of_one_are_told_apart_in_either_order() -> None:
    a = tf.placeholder_with_default(2.0, []) * 3.0
    one, two = sess(), sess()
    assert one.run(a) == 6.0
    assert one.run([a]) == [6.0]
    assert one.run((a,)) == (6.0,)
    assert one.run({"a": a}) == {"a": 6.0}
    assert one.run(a) == 6.0
    assert two.run([a]) == [6.0]
    assert isinstance(two.run(a), np.float32)


def test_single_fetch_and_list_of_one_with_feeds() -> None:
    x = tf.placeholder(tf.float32, [])
    a = x * 3.0
    s = sess()
    assert s.run(a, {x: 1}) == 3.0
    assert s.run([a], {x: 1}) == [3.0]
    assert s.run((a,), {x: 1}) == (3.0,)
    assert s.run([a, x], {x: 2}) == [6.0, 2.0]
    assert s.run(a, {x: 3}) == 9.0


def test_feed_order_does_not_matter() -> None:
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    z = x - y
    s = sess()
    for _ in range(2):
        assert s.run(z, {x: 5, y: 1}) == 4.0
        assert s.run(z, {y: 1, x: 5}) == 4.0
        assert s.run([z], {y: 2, x: 5}) == [3.0]


def test_empty_structures() -> None:
    tf.constant(1)
    s = sess()
    assert s.run([]) == []
    assert s.run(()) == ()
    assert s.run({}) == {}
    assert s.run([[], {}]) == [[], {}]


def test_types_of_results() -> None:
    s = sess()
    scalar = s.run(tf.constant(1.5) + 1.0)
    assert isinstance(scalar, np.float32) and scalar == 2.5
    vector = s.run(tf.constant([1, 2]) + 1)
    assert type(vector) is np.ndarray and vector.dtype == np.int32
    assert s.run(tf.constant(True)) is np.True_ or isinstance(s.run(tf.constant(True)), np.bool_)
    assert s.run(tf.constant("abc")) == b"abc"
    text = s.run(tf.constant(["a", "bc"]))
    assert text.dtype == object and list(text) == [b"a", b"bc"]
    assert s.run(tf.no_op()) is None


# running only what is needed ---------------------------------------------------------------------


def test_only_what_the_fetches_need_is_computed() -> None:
    calls: list[str] = []

    def note(name: str) -> Any:
        def f(x: Any) -> Any:
            calls.append(name)
            return x

        return f

    x = tf.constant(1.0)
    a = tf.py_func(note("a"), [x], tf.float32)
    b = tf.py_func(note("b"), [a], tf.float32)
    tf.py_func(note("c"), [a], tf.float32)
    s = sess()
    s.run(a)
    assert calls == ["a"]
    calls.clear()
    s.run([b, a, b])
    assert sorted(calls) == ["a", "b"]
    calls.clear()
    s.run(b, {a: np.float32(7)})
    assert calls == ["b"]


def test_a_broken_op_elsewhere_does_no_harm() -> None:
    x = tf.placeholder(tf.float32, [None])
    tf.check_numerics(x / 0.0, "bad")
    assert sess().run(tf.constant(3)) == 3


# closing ----------------------------------------------------------------------------------------


def test_closed_session_refuses_everything() -> None:
    c = tf.constant(1)
    s = sess()
    f = s.make_callable(c)
    assert s.run(c) == 1
    s.close()
    s.close()
    for use in (
        lambda: s.run(c),
        lambda: s.run([c]),
        lambda: f(),
        lambda: s.make_callable(c),
        lambda: s.partial_run_setup([c], []),
        lambda: s.explain(c),
        lambda: s.list_devices(),
    ):
        with pytest.raises(RuntimeError, match="closed Session"):
            use()


def test_with_block_closes() -> None:
    with sess() as s:
        assert s.run(tf.constant(1)) == 1
    with pytest.raises(RuntimeError, match="closed"):
        s.run(tf.constant(1))


def test_with_block_closes_after_an_exception_and_lets_it_through() -> None:
    with pytest.raises(ZeroDivisionError), sess() as s:
        raise ZeroDivisionError
    assert tf.get_default_session() is None
    with pytest.raises(RuntimeError, match="closed"):
        s.run(tf.constant(1))


def test_as_default_does_not_close() -> None:
    s = sess()
    with s.as_default():
        assert tf.get_default_session() is s
    assert tf.get_default_session() is None
    assert s.run(tf.constant(1)) == 1


# defaults ---------------------------------------------------------------------------------------


def test_eval_and_run_use_the_default_session() -> None:
    v = tf.Variable(3.0)
    c = v * 2.0
    with sess():
        v.initializer.run()
        assert c.eval() == 6.0
        assert v.eval() == 3.0
        assert c.eval({v: 5.0}) == 10.0 or c.eval(feed_dict={v.value(): 5.0}) == 10.0


def test_eval_with_an_explicit_session() -> None:
    x = tf.placeholder(tf.float32, [])
    s = sess()
    assert (x + 1.0).eval({x: 1.0}, s) == 2.0
    assert (x + 1.0).eval(session=s, feed_dict={x: 2.0}) == 3.0


def test_eval_without_a_session() -> None:
    with pytest.raises(ValueError, match="No default session is registered"):
        tf.constant(1).eval()
    with pytest.raises(ValueError, match="No default session is registered"):
        tf.no_op().run()


def test_eval_with_a_session_of_another_graph() -> None:
    c = tf.constant(1)
    other = sess(graph=tf.Graph())
    with pytest.raises(ValueError, match=r"different graph|graph is different"):
        c.eval(session=other)
    with other.as_default(), pytest.raises(ValueError, match=r"different graph|graph is different"):
        c.eval()


def test_session_makes_its_graph_the_default() -> None:
    g = tf.Graph()
    with sess(graph=g):
        assert tf.get_default_graph() is g
        c = tf.constant(1)
    assert c.graph is g
    assert tf.get_default_graph() is not g


def test_session_takes_the_default_graph_of_the_moment() -> None:
    g = tf.Graph()
    with g.as_default():
        s = sess()
    assert s.graph is g


def test_nested_default_sessions() -> None:
    a, b = sess(), sess()
    with a.as_default():
        with b.as_default():
            assert tf.get_default_session() is b
        assert tf.get_default_session() is a


def test_interactive_session() -> None:
    c = tf.constant(4)
    s = tf.InteractiveSession()
    try:
        assert tf.get_default_session() is s
        assert c.eval() == 4
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            second = tf.InteractiveSession()
        assert any("interactive session is already active" in str(w.message) for w in seen)
        second.close()
        assert tf.get_default_session() is s
    finally:
        s.close()
    assert tf.get_default_session() is None


def test_interactive_session_with_a_graph() -> None:
    g = tf.Graph()
    s = tf.InteractiveSession(graph=g)
    try:
        assert tf.get_default_graph() is g
        assert tf.constant(2).eval() == 2
    finally:
        s.close()
    assert tf.get_default_graph() is not g


# arguments --------------------------------------------------------------------------------------


def test_config_is_accepted() -> None:
    config = tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=False,
        intra_op_parallelism_threads=1,
        gpu_options=tf.GPUOptions(allow_growth=True),
    )
    config.gpu_options.per_process_gpu_memory_fraction = 0.4
    assert sess(config=config).run(tf.constant(1)) == 1


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"graph must be a tf\.Graph"):
        sess(graph="not a graph")
    with pytest.raises(TypeError, match=r"config must be a tf\.ConfigProto"):
        sess(config={"a": 1})
    with pytest.raises(TypeError, match="dict"):
        sess().run(tf.constant(1), feed_dict=[1, 2, 3])


def test_options_and_metadata_are_accepted() -> None:
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    assert sess().run(tf.constant(1), options=options, run_metadata=metadata) == 1


def test_list_devices() -> None:
    devices = sess().list_devices()
    assert any(d.device_type == "CPU" and "CPU:0" in d.name for d in devices)


# make_callable ----------------------------------------------------------------------------------


def test_make_callable() -> None:
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [None])
    s = sess()
    f = s.make_callable([x * 2.0, y + x], [x, y])
    twice, moved = f(1.0, [1.0, 2.0])
    assert twice == 2.0
    np.testing.assert_array_equal(moved, np.float32([2, 3]))
    assert s.make_callable(x * 2.0, [x])(4) == 8.0
    assert s.make_callable(tf.no_op())() is None
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        f([1.0], [1.0])


def test_make_callable_with_a_structure_and_a_variable() -> None:
    v = tf.Variable(1.0)
    s = sess()
    s.run(v.initializer)
    step = s.make_callable({"v": v, "up": v.assign_add(1.0)})
    assert step() == {"v": 2.0, "up": 2.0}
    assert step() == {"v": 3.0, "up": 3.0}


def test_make_callable_outlives_the_name_of_its_session() -> None:
    x = tf.placeholder(tf.float32, [])
    f = sess().make_callable(x + 1.0, [x])
    assert f(1.0) == 2.0
    assert f(tf.constant(5.0)) == 6.0


# graphs that go on growing ------------------------------------------------------------------------


def test_graph_may_grow_between_runs() -> None:
    s = sess()
    total = tf.constant(0.0)
    for i in range(5):
        total = total + float(i)
        assert s.run(total) == sum(range(i + 1))


def test_set_shape_after_a_run_is_noticed() -> None:
    x = tf.placeholder(tf.float32, None)
    s = sess()
    n = tf.shape(x)
    np.testing.assert_array_equal(s.run(n, {x: [[1.0, 2.0]]}), [1, 2])
    x.set_shape([None, 3])
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        sess().run(n, {x: [[1.0, 2.0]]})
    np.testing.assert_array_equal(s.run([n], {x: [[1.0, 2.0, 3.0]]})[0], [1, 3])


def test_equal_graphs_with_other_constants_do_not_mix() -> None:
    """Structures that were planned before serve new graphs.

    Values, names and lines must be the new graph's.
    """
    for i in range(6):
        tf.reset_default_graph()
        x = tf.placeholder(tf.float32, [None, 2], name=f"x{i}")
        w = tf.constant(np.full((2, 3), i, np.float32))
        y = tf.tanh(tf.matmul(x, w) * float(i) + tf.constant([1.0, 2.0, float(i)]), name=f"y{i}")
        given = np.float32([[1, 2], [3, 4]])
        want = np.tanh(given @ np.full((2, 3), i, np.float32) * i + np.float32([1, 2, i]))
        s = sess()
        np.testing.assert_allclose(s.run(y, {x: given}), want, 1e-6)
        np.testing.assert_allclose(s.run([y], {x: given})[0], want, 1e-6)
        label = f"y{i}:0"
        assert label in str(s.explain(y, [x]))
        z = (
            tf.reshape(tf.constant(np.arange(6 + i)), [2, -1], name=f"bad{i}")
            if i % 2 == 0
            else None
        )
        if z is not None:
            assert s.run(z).shape == (2, 3 + i // 2)


def test_equal_graphs_name_their_own_operations_in_errors() -> None:
    for i in range(4):
        tf.reset_default_graph()
        x = tf.placeholder(tf.float32, [None])
        y = tf.add(x, tf.constant([1.0, 2.0, 3.0]), name=f"sum{i}")
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"\[\[node sum{i}\]\]"
        ) as failure:
            sess().run(y, {x: [1.0, 2.0]})
        assert failure.value.op is y.op
        assert "[2] vs. [3]" in str(failure.value)


def test_equal_graphs_with_strings() -> None:
    for i in range(4):
        tf.reset_default_graph()
        single = tf.identity(tf.constant(f"s{i}"))
        got = sess().run(
            [
                single,
                tf.reshape(single, [1]),
                tf.stack([single, tf.constant("b")]),
                tf.equal(single, "s1"),
            ]
        )
        text = f"s{i}".encode()
        assert got[0] == text and got[1].tolist() == [text] and got[2].tolist() == [text, b"b"]
        assert got[3] == (i == 1)


def test_failed_runs_are_counted() -> None:
    before = EVENTS.failed_runs
    x = tf.placeholder(tf.float32, [None])
    s = sess()
    with pytest.raises(tf.errors.InvalidArgumentError):
        s.run(x + tf.constant([1.0, 2.0, 3.0]), {x: [1.0, 2.0]})
    assert EVENTS.failed_runs == before + 1


def test_ordered_dict_fetch_keeps_its_type_and_order() -> None:
    fetch = collections.OrderedDict([("b", tf.constant(1)), ("a", tf.constant(2))])
    got = sess().run(fetch)
    assert type(got) is collections.OrderedDict
    assert list(got.items()) == [("b", 1), ("a", 2)]


def test_a_fetched_operation_is_computed() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x + tf.constant([1.0, 2.0, 3.0])
    s = sess()
    assert s.run(y.op, {x: [1.0, 2.0, 3.0]}) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        s.run(y.op, {x: [1.0, 2.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed"):
        s.run([y.op])


def test_results_in_another_shape_are_the_users_own() -> None:
    """Without a copy where nobody else has the memory; with one where somebody has."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 1])
        y = tf.exp(x)
        flat, again = tf.squeeze(y, 1), tf.squeeze(tf.identity(y), 1)
        fed, kept = tf.squeeze(x, 1), tf.squeeze(tf.constant([[1.0], [2.0]]), 1)
        value = np.zeros((3, 1), np.float32)
        first, second = session.run(flat, {x: value}), session.run(flat, {x: value})
        first[:] = 7
        assert second.tolist() == [1, 1, 1] and session.run(flat, {x: value}).tolist() == [1, 1, 1]
        results = session.run([y, flat, again, fed, fed, kept], {x: value})
        for i, a in enumerate(results):
            a[...] = 100 + i
        assert [float(a.reshape(-1)[0]) for a in results] == [100, 101, 102, 103, 104, 105]
        assert value.tolist() == [[0], [0], [0]] and session.run(kept).tolist() == [1, 2]


def test_a_large_plan_leaves_the_collector_as_it_was(monkeypatch: Any) -> None:
    import gc

    from headrace.session import session as module

    monkeypatch.setattr(module, "LARGE_GRAPH", 1)
    seen: list[bool] = []
    make = module.make_executable
    monkeypatch.setattr(
        module, "make_executable", lambda *args: (seen.append(gc.isenabled()), make(*args))[1]
    )
    for on in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            update = tf.assign(tf.Variable(0.0), 2.0)  # what writes is planned each time
            (gc.enable if on else gc.disable)()
            try:
                assert session.run(update) == 2
                assert gc.isenabled() is on
            finally:
                gc.enable()
    assert seen == [False, False]
