"""Variables in runs.

Which value a read means, what a failed run leaves behind, and that results are the user's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf

both = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
executors = pytest.mark.parametrize("executor", ["numpy", "reference"])


def started(*variables: Any, executor: str = "numpy") -> tf.Session:
    s = tf.Session(executor=executor)
    s.run(tf.variables_initializer(list(variables) or tf.global_variables()))
    return s


def var(value: Any, resource: bool = False, name: str = "v") -> Any:
    return tf.Variable(value, use_resource=resource, name=name)


# which value a read means -------------------------------------------------------------------------


@both
@executors
def test_a_read_without_dependency_sees_the_value_from_before_the_run(
    resource: bool, executor: str
) -> None:
    v = var(1.0, resource)
    before = v * 10.0
    up = v.assign_add(1.0)
    after = v * 100.0  # made later, but no dependency orders it
    s = started(executor=executor)
    for k in (1, 2, 3):
        got = s.run([before, up.op, after])
        assert got == [10.0 * k, None, 100.0 * k]
    assert s.run([after, up.op, before]) == [400.0, None, 40.0]


@both
@executors
def test_a_control_dependency_puts_the_read_after_the_write(resource: bool, executor: str) -> None:
    v = var([1.0, 2.0], resource)
    up = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([up]):
        product = v * 10.0
        read = v.read_value()
        alias = tf.identity(v.value() if resource else v)
    s = started(executor=executor)
    got = s.run([product, read, alias])
    assert [g.tolist() for g in got] == [[20, 30], [2, 3], [2, 3]]


@both
def test_a_data_dependency_puts_the_read_after_the_write(resource: bool) -> None:
    v = var(1.0, resource)
    up = v.assign_add(1.0)
    s = started()
    assert s.run(up * 10.0) == 20.0
    assert s.run([v * 10.0, up * 10.0]) == [20.0, 30.0]


@both
def test_reads_on_both_sides_of_a_write(resource: bool) -> None:
    v = var(1.0, resource)
    first = v.read_value()
    with tf.control_dependencies([first]):
        up = v.assign(first * 5.0)
    with tf.control_dependencies([up]):
        second = v.read_value()
        with tf.control_dependencies([second]):
            again = v.assign_add(1.0)
    with tf.control_dependencies([again]):
        third = v.read_value()
    assert started().run([first, second, third]) == [1.0, 5.0, 6.0]


@both
@executors
def test_a_fetched_variable_gives_its_value_at_the_end(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    s = started(executor=executor)
    up = v.assign_add(1.0)
    assert s.run([v, up.op]) == [2.0, None]
    assert s.run([up.op, v, v * 1.0]) == [None, 3.0, 2.0]
    assert s.run({"v": v, "up": up}) == {"v": 4.0, "up": 4.0}
    assert s.run(v) == 4.0


@both
def test_fetched_by_name_and_by_read_tensor(resource: bool) -> None:
    v = var(1.0, resource, "w")
    s = started()
    if not resource:
        assert s.run("w:0") == 1.0
        assert s.run("w/read:0") == 1.0
        assert s.run(["w:0", v.assign(3.0).op, "w/read:0"]) == [3.0, None, 1.0]
    else:
        assert s.run("w/Read/ReadVariableOp:0") == 1.0


@both
@executors
def test_chain_of_assignments(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    op: Any = tf.no_op()
    for k in range(5):
        with tf.control_dependencies([op]):
            op = v.assign(v.read_value() * 2.0 + float(k))
    want = 1.0
    for k in range(5):
        want = want * 2.0 + k
    s = started(executor=executor)
    assert s.run(op) == want
    assert s.run(v) == want


@both
def test_small_updates_in_a_row_share_the_lock(resource: bool) -> None:
    first, second = var([1.0, 2.0], resource, "a"), var([[3.0]], resource, "b")
    loss = tf.reduce_sum(first * first) + tf.reduce_sum(second)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    s = started()
    assert s.explain(step).source.count("with S.lock") == 1
    s.run(step)
    assert (s.run(first).tolist(), s.run(second).tolist()) == ([0.0, 0.0], [[2.5]])
    other = tf.Session()
    other.run(first.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value b"):
        other.run(step)
    acquired = []
    asking = threading.Thread(target=lambda: acquired.append(other._state.lock.acquire(False)))
    asking.start()
    asking.join()
    assert acquired == [True]  # the failed run left it


@both
@executors
def test_two_unordered_updates_both_count(resource: bool, executor: str) -> None:
    v = var([0.0, 0.0], resource)
    ops = [v.assign_add([1.0, 0.0]).op, v.assign_add([10.0, 1.0]).op, v.assign_sub([0.0, 5.0]).op]
    s = started(executor=executor)
    for k in (1, 2):
        s.run(ops)
        assert s.run(v).tolist() == [11.0 * k, -4.0 * k]
    s.run(tf.group(*ops))
    assert s.run(v).tolist() == [33.0, -12.0]


@both
def test_swap_by_control_dependencies(resource: bool) -> None:
    a, b = var(1.0, resource, "a"), var(2.0, resource, "b")
    old_a, old_b = a.read_value(), b.read_value()
    with tf.control_dependencies([old_a, old_b]):
        swap = tf.group(a.assign(old_b), b.assign(old_a))
    s = started()
    s.run(swap)
    assert s.run([a, b]) == [2.0, 1.0]
    s.run(tf.group(a.assign(b), b.assign(a)))  # unordered reads mean the values from before the run
    assert s.run([a, b]) == [1.0, 2.0]


@both
@executors
def test_the_update_of_one_variable_reads_the_other_from_before_the_run(
    resource: bool, executor: str
) -> None:
    a, b = var([1.0, 2.0], resource, "a"), var([10.0, 20.0], resource, "b")
    up = tf.group(a.assign_add(b), b.assign_add(a))
    s = started(executor=executor)
    s.run(up)
    assert [x.tolist() for x in s.run([a, b])] == [[11, 22], [11, 22]]


@both
def test_an_old_read_survives_an_update_in_place(resource: bool) -> None:
    """Large enough to be updated in place; the old value is used after the write."""
    v = var(np.arange(20000, dtype=np.float32), resource)
    old = v * 2.0
    view = tf.reshape(v, [2, 10000])
    up = v.assign_add(np.ones(20000, np.float32))
    with tf.control_dependencies([up]):
        late = tf.identity(view + 0.0)
    with tf.control_dependencies([up]):
        new = v + 0.0
    s = started()
    base = np.arange(20000, dtype=np.float32)
    for k in range(3):
        got_old, got_view, got_late, got_new = s.run([old, view, late, new])
        np.testing.assert_array_equal(got_old, (base + k) * 2)
        np.testing.assert_array_equal(got_view.ravel(), base + k)
        np.testing.assert_array_equal(got_new, base + k + 1)
        assert got_late.shape == (2, 10000)


@both
def test_assigning_a_variable_to_another_does_not_tie_them(resource: bool) -> None:
    a, b = (
        var(np.zeros(5000, np.float32), resource, "a"),
        var(np.ones(5000, np.float32), resource, "b"),
    )
    s = started()
    s.run(a.assign(b))
    s.run(b.assign_add(np.ones(5000, np.float32)))
    assert s.run(a)[0] == 1.0 and s.run(b)[0] == 2.0
    s.run(a.assign(tf.reshape(b, [5000])))
    s.run(b.assign_add(np.ones(5000, np.float32)))
    assert s.run(a)[0] == 2.0 and s.run(b)[0] == 3.0


@both
def test_assigning_a_constant_or_feed_does_not_tie_them(resource: bool) -> None:
    x = tf.placeholder(tf.float32, [5000])
    v = var(np.zeros(5000, np.float32), resource)
    set_x, set_c = v.assign(x), v.assign(tf.constant(np.full(5000, 7, np.float32)))
    up = v.assign_add(np.ones(5000, np.float32))
    s = started()
    given = np.full(5000, 3, np.float32)
    s.run(set_x.op, {x: given})
    given[:] = 55
    assert s.run(v)[0] == 3.0
    s.run(up.op)
    assert given[0] == 55 and s.run(v)[0] == 4.0
    for _ in range(2):
        s.run(set_c.op)
        s.run(up.op)
        assert s.run(v)[0] == 8.0


@both
def test_load(resource: bool) -> None:
    v = var(np.zeros(3, np.float32), resource)
    s = started()
    given = np.float32([1, 2, 3])
    v.load(given, s)
    given[:] = 0
    assert s.run(v).tolist() == [1, 2, 3]


# control flow -------------------------------------------------------------------------------------


@both
@executors
def test_writes_in_a_branch_happen_only_if_it_is_taken(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(
        p, lambda: tf.identity(v.assign_add(10.0)), lambda: tf.identity(v.assign_sub(1.0))
    )
    with tf.control_dependencies([out]):
        after = v.read_value()
    s = started(executor=executor)
    assert s.run([out, after, v], {p: True}) == [11.0, 11.0, 11.0]
    assert s.run([out, after, v], {p: False}) == [10.0, 10.0, 10.0]
    assert s.run(v * 1.0, {p: True}) == 10.0


@both
@executors
def test_a_write_in_one_branch_only(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: tf.group(v.assign_add(1.0)), lambda: tf.no_op())
    s = started(executor=executor)
    s.run(out, {p: False})
    assert s.run(v) == 1.0
    got = s.run([out, v, v + 0.0], {p: True})
    assert got[1:] == [2.0, 1.0]
    assert s.run([out, v], {p: False})[1] == 2.0


@both
@executors
def test_writes_in_a_loop(resource: bool, executor: str) -> None:
    v = var(1.0, resource)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(2.0)]):
            return i + 1

    n = tf.placeholder(tf.int32, [])
    loop = tf.while_loop(lambda i: i < n, body, [0])
    with tf.control_dependencies([loop]):
        after = v.read_value()
    s = started(executor=executor)
    assert s.run([loop, after, v], {n: 3}) == [3, 7.0, 7.0]
    assert s.run([loop, after, v, v + 0.0], {n: 0}) == [0, 7.0, 7.0, 7.0]
    assert s.run([v + 0.0, loop], {n: 2}) == [7.0, 2]
    assert s.run(v) == 11.0


@both
@executors
def test_each_iteration_reads_what_the_last_one_wrote(resource: bool, executor: str) -> None:
    v = var(1.0, resource)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([v.assign(v.read_value() * 2.0)]):
            return i + 1, total + v.read_value()

    loop = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])
    s = started(executor=executor)
    assert s.run(loop[1]) == 2 + 4 + 8 + 16
    assert s.run(v) == 16.0


@both
@executors
def test_a_loop_after_a_write_reads_the_new_value(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    zero, start = tf.constant(0), tf.constant(0.0)
    with tf.control_dependencies([v.assign(5.0)]):
        _, total = tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x + v), [zero, start])
    assert started(executor=executor).run(total) == 10.0


@both
@executors
def test_a_loop_variable_that_starts_with_a_variable(resource: bool, executor: str) -> None:
    v = var(1.0, resource)
    out = tf.while_loop(lambda x: x < 10.0, lambda x: x * 2.0, [v])
    s = started(executor=executor)
    assert s.run([out, v]) == [16.0, 1.0]
    with tf.control_dependencies([v.assign(3.0)]):
        later = tf.while_loop(lambda x: x < 10.0, lambda x: x * 2.0, [v.read_value()])
    assert s.run([later, out]) == [12.0, 16.0]


@both
def test_a_branch_returns_one_variable_or_another(resource: bool) -> None:
    a, b = var(1.0, resource, "a"), var(2.0, resource, "b")
    p = tf.placeholder(tf.bool, [])
    chosen = tf.cond(p, lambda: a.read_value(), lambda: b.read_value())
    direct = tf.cond(p, lambda: a, lambda: b)
    s = started()
    assert s.run([chosen, direct], {p: True}) == [1.0, 1.0]
    assert s.run([chosen, direct], {p: False}) == [2.0, 2.0]


@both
def test_the_branch_that_is_not_taken_may_use_an_uninitialized_variable(resource: bool) -> None:
    a, b = var(1.0, resource, "a"), var(2.0, resource, "b")
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: a * 2.0, lambda: b * 2.0)
    s = started(a)
    assert s.run(out, {p: True}) == 2.0
    with pytest.raises(tf.errors.FailedPreconditionError, match="b"):
        s.run(out, {p: False})


# initialisation -----------------------------------------------------------------------------------


@both
@executors
@pytest.mark.parametrize("use", ["read", "fetch", "add", "scatter", "operation", "scalar"])
def test_use_before_initialisation_names_the_variable(
    resource: bool, executor: str, use: str
) -> None:
    v = var(1.0 if use == "scalar" else [1.0, 2.0], resource, "my_weights")
    fetch: Callable[[], Any] = {
        "read": lambda: v * 2.0,
        "fetch": lambda: v,
        "add": lambda: v.assign_add([1.0, 1.0]),
        "scatter": lambda: tf.scatter_add(v, [0], [1.0]),
        "operation": lambda: (v * 2.0).op,
        "scalar": lambda: v + 1.0,
    }[use]
    s = tf.Session(executor=executor)
    updates_a_resource = resource and use in ("add", "scatter")
    error = tf.errors.NotFoundError if updates_a_resource else tf.errors.FailedPreconditionError
    with pytest.raises(error, match="my_weights"):
        s.run(fetch())
    s.run(v.initializer)
    s.run(fetch())


@both
def test_report_and_check(resource: bool) -> None:
    a, b = var(1.0, resource, "a"), var([2.0], resource, "b")
    s = tf.Session()
    assert s.run([tf.is_variable_initialized(a), tf.is_variable_initialized(b)]) == [False, False]
    assert sorted(s.run(tf.report_uninitialized_variables())) == [b"a", b"b"]
    s.run(a.initializer)
    assert s.run([tf.is_variable_initialized(a), tf.is_variable_initialized(b)]) == [True, False]
    assert list(s.run(tf.report_uninitialized_variables())) == [b"b"]


@both
def test_initialisation_and_use_in_one_run(resource: bool) -> None:
    v = var(3.0, resource)
    with tf.control_dependencies([v.initializer]):
        read = v.read_value()
    s = tf.Session()
    assert s.run(read) == 3.0
    w = var(4.0, resource, "w")
    assert s.run([w.initializer, w]) == [None, 4.0]


@both
def test_initialized_value(resource: bool) -> None:
    a = var(3.0, resource, "a")
    b = tf.Variable(a.initialized_value() * 2.0, use_resource=resource)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    assert s.run(b) == 6.0


# failures -----------------------------------------------------------------------------------------


@both
@executors
@pytest.mark.parametrize("size", [4, 50000])
def test_a_run_that_fails_in_the_middle(resource: bool, executor: str, size: int) -> None:
    """Steps before the failure keep their effect, steps after it have none, nothing is half
    written.
    """
    a = var(np.zeros(size, np.float32), resource, "a")
    b = var(np.zeros(size, np.float32), resource, "b")
    x = tf.placeholder(tf.float32, [None])
    ones = np.ones(size, np.float32)
    first = a.assign_add(ones)
    with tf.control_dependencies([first]):
        broken = x + tf.constant([1.0, 2.0, 3.0])
        second = b.assign_add(ones + 0.0 * tf.reduce_sum(broken))
    s = started(executor=executor)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        s.run(second.op, {x: [1.0, 2.0]})
    np.testing.assert_array_equal(s.run(a), ones)
    np.testing.assert_array_equal(s.run(b), 0 * ones)
    s.run(second.op, {x: [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(s.run(a), 2 * ones)
    np.testing.assert_array_equal(s.run(b), ones)


@both
@executors
def test_a_write_that_fails_changes_nothing(resource: bool, executor: str) -> None:
    v = var(np.zeros((10000, 2), np.float32), resource)
    i = tf.placeholder(tf.int32, [None])
    updates = [
        f(v, i, np.ones((3, 2), np.float32))
        for f in (tf.scatter_update, tf.scatter_add, tf.scatter_sub, tf.scatter_mul)
    ]
    s = started(executor=executor)
    for up in updates:
        with pytest.raises(tf.errors.InvalidArgumentError, match="10000"):
            s.run(up, {i: [0, 1, 10000]})  # the last index is out of range
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(up, {i: [0, 1]})  # too few indices
        assert not s.run(v).any()
    s.run(updates[1], {i: [0, 1, 9999]})
    assert s.run(v).sum() == 6


@both
def test_a_write_of_the_wrong_shape_changes_nothing(resource: bool) -> None:
    v = var(np.zeros(5, np.float32), resource)
    x = tf.placeholder(tf.float32, None)
    s = started()
    for op in (v.assign_add(x), v.assign(x), v.assign_sub(x)):
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            s.run(op, {x: np.ones(4)})
        assert s.run(v).tolist() == [0] * 5


def test_a_failing_python_function_leaves_the_session_usable() -> None:
    v = var(0.0)
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError("on purpose")
        return x

    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.py_func(f, [tf.constant(1.0)], tf.float32)
    s = started()
    s.run(y)
    with pytest.raises((tf.errors.UnknownError, RuntimeError), match="on purpose"):
        s.run(y)
    s.run(y)
    assert s.run(v) == 3.0


# independence -------------------------------------------------------------------------------------


@both
def test_sessions_have_their_own_values(resource: bool) -> None:
    v = var(1.0, resource)
    one, two = started(), started()
    one.run(v.assign(5.0))
    assert one.run(v) == 5.0 and two.run(v) == 1.0
    three = tf.Session()
    with pytest.raises(tf.errors.FailedPreconditionError):
        three.run(v)
    one.close()
    assert two.run(v) == 1.0


def _own(array: np.ndarray[Any, Any], others: list[np.ndarray[Any, Any]]) -> None:
    assert array.flags.writeable
    for other in others:
        assert not np.shares_memory(array, other)


@pytest.mark.parametrize("size", [3, 60000])
@executors
def test_results_are_the_users_own(size: int, executor: str) -> None:
    x = tf.placeholder(tf.float32, [size, 1])
    c = tf.constant(np.ones((size, 1), np.float32))
    v = tf.Variable(np.ones((size, 1), np.float32))
    w = tf.Variable(np.ones((size, 1), np.float32), use_resource=True)
    doubled = x * 2.0
    fetches = [
        x,
        tf.identity(x),
        tf.reshape(x, [-1]),
        tf.transpose(x),
        x[:2],
        tf.squeeze(x),
        tf.expand_dims(x, 0),
        tf.stop_gradient(x),
        tf.unstack(x[:3])[0],
        tf.broadcast_to(x, [2, size, 1]),
        c,
        tf.identity(c),
        tf.reshape(c, [-1]),
        v,
        v.value(),
        tf.reshape(v, [-1]),
        v.assign_add(c),
        w,
        w.value(),
        tf.reshape(w, [1, -1]),
        w.assign_add(c),
        doubled,
        tf.reshape(doubled, [-1]),
        doubled[1:],
        tf.transpose(doubled),
        doubled,
        tf.cond(tf.constant(True), lambda: doubled, lambda: x),
        tf.split(doubled, [1, size - 1])[1],
        tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a), [0, doubled])[1],
        tf.zeros([size]),
        tf.ones_like(x),
    ]
    s = started(executor=executor)
    given = np.ones((size, 1), np.float32)
    results = s.run(fetches, {x: given})
    arrays = [r for r in results if isinstance(r, np.ndarray)]
    assert len(arrays) == len(fetches)
    for n, a in enumerate(arrays):
        _own(a, [given, *arrays[:n]])
    wanted = [a.copy() for a in s.run(fetches, {x: given})]
    for a in arrays:
        a.fill(-5)
    assert given[0] == 1
    again = s.run(fetches, {x: given})
    for n, (a, b) in enumerate(zip(again, wanted)):
        if n not in (13, 14, 15, 16, 17, 18, 19, 20):  # the variables grow by one each time
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_array_equal(a, b + 1)


def test_a_fed_array_may_be_changed_after_the_run() -> None:
    x = tf.placeholder(tf.float32, [4])
    v = var(np.zeros(4, np.float32))
    keep = v.assign(x)
    given = np.float32([1, 2, 3, 4])
    s = started()
    result = s.run(keep, {x: given})
    given *= 10
    assert s.run(v).tolist() == [1, 2, 3, 4] and result.tolist() == [1, 2, 3, 4]


def test_a_constant_does_not_follow_the_array_it_was_made_from() -> None:
    source = np.float32([1, 2, 3])
    c = tf.constant(source)
    d = tf.convert_to_tensor(source) + 0.0
    v = tf.Variable(source)
    source[:] = 9
    s = started()
    assert s.run([c, d, v])[0].tolist() == [1, 2, 3]
    assert s.run(d).tolist() == [1, 2, 3] and s.run(v).tolist() == [1, 2, 3]


def test_a_python_function_may_not_change_what_others_see() -> None:
    x = tf.placeholder(tf.float32, [3])
    v = var(np.zeros(3, np.float32))

    def spoil(a: Any) -> Any:
        try:
            a += 100
        except ValueError:  # read-only is a fair answer
            return np.array(a)
        return a

    spoiled = tf.py_func(spoil, [x], tf.float32)
    spoiled_v = tf.py_func(spoil, [v], tf.float32)
    given = np.float32([1, 2, 3])
    s = started()
    s.run([spoiled, spoiled_v], {x: given})
    assert given.tolist() == [1, 2, 3]
    assert s.run(v).tolist() == [0, 0, 0]


@both
def test_variables_of_the_same_name_in_two_graphs(resource: bool) -> None:
    sessions = []
    for k in range(2):
        g = tf.Graph()
        with g.as_default():
            v = var(float(k), resource)
            s = tf.Session(graph=g)
            s.run(v.initializer)
            sessions.append((s, v))
    assert [s.run(v) for s, v in sessions] == [0.0, 1.0]


def test_shared_name_means_one_variable() -> None:
    a = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="common")
    b = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="common")
    s = tf.Session()
    s.run(tf.raw_ops.AssignVariableOp(resource=a, value=4.0))
    assert s.run(tf.raw_ops.ReadVariableOp(resource=b, dtype=tf.float32)) == 4.0
