"""partial_run: one run in several calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def test_the_example_of_the_documentation() -> None:
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    r1 = tf.add(a, b)
    r2 = tf.multiply(r1, c)
    s = tf.Session()
    h = s.partial_run_setup([r1, r2], [a, b, c])
    res = s.partial_run(h, r1, feed_dict={a: 1, b: 2})
    assert res == 3.0
    assert s.partial_run(h, r2, feed_dict={c: res}) == 9.0


def test_each_operation_is_computed_once() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x + 1

    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = tf.py_func(f, [a], tf.float32)
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        z = y * b
    s = tf.Session()
    s.run(v.initializer)
    h = s.partial_run_setup([y, z, v], [a, b])
    assert s.partial_run(h, y, {a: 1.0}) == 2.0
    assert s.partial_run(h, z, {b: 10.0}) == 20.0
    assert calls == [1]
    assert s.run(v) == 1.0


def test_random_numbers_are_drawn_once() -> None:
    x = tf.random_uniform([])
    b = tf.placeholder(tf.float32, [])
    s = tf.Session()
    h = s.partial_run_setup([x, x * b], [b])
    y = x * b
    h = s.partial_run_setup([x, y], [b])
    first = s.partial_run(h, x)
    np.testing.assert_allclose(s.partial_run(h, y, {b: 2.0}), first * 2.0, 1e-6)


def test_structures_and_operations() -> None:
    a = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    y, up = a * 2.0, v.assign_add(a)
    s = tf.Session()
    s.run(v.initializer)
    h = s.partial_run_setup([y, up.op], [a])
    assert s.partial_run(h, {"y": [y]}, {a: [1.0, 2.0]})["y"][0].tolist() == [2, 4]
    assert s.partial_run(h, up.op) is None
    assert s.run(v).tolist() == [1, 2]


def test_several_at_once() -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    x, y = a + 1.0, a * b
    s = tf.Session()
    one, two = (s.partial_run_setup([x, y], [a, b]) for _ in range(2))
    assert one != two
    assert s.partial_run(one, x, {a: 1.0}) == 2.0
    assert s.partial_run(two, x, {a: 10.0}) == 11.0
    assert s.partial_run(one, y, {b: 5.0}) == 5.0
    assert s.partial_run(two, y, {b: 5.0}) == 50.0


def test_errors() -> None:
    a, b = tf.placeholder(tf.float32, [], name="a"), tf.placeholder(tf.float32, [], name="b")
    x, y, z = a + 1.0, a * b, b - 1.0
    s = tf.Session()
    h = s.partial_run_setup([x, y], [a, b])
    with pytest.raises((ValueError, tf.errors.OpError)):
        s.partial_run(h, z, {b: 1.0})  # not announced
    with pytest.raises((ValueError, tf.errors.OpError), match="b"):
        s.partial_run(h, y, {a: 1.0})  # b has not been fed
    h = s.partial_run_setup([x, y], [a, b])
    s.partial_run(h, x, {a: 1.0})
    with pytest.raises((ValueError, tf.errors.OpError), match="already been fed"):
        s.partial_run(h, y, {a: 1.0, b: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="setup"):
        s.partial_run("no such handle", x)
    done = s.partial_run_setup([x], [a])
    assert s.partial_run(done, x, {a: 1.0}) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        s.partial_run(done, x, {a: 1.0})


def test_a_wrong_shape() -> None:
    a = tf.placeholder(tf.float32, [2])
    s = tf.Session()
    b = a + 1.0
    h = s.partial_run_setup([b], [a])
    with pytest.raises(ValueError):
        s.partial_run(h, b, {a: [1.0]})


def test_fetches_that_were_not_announced_or_are_done() -> None:
    a = tf.placeholder(tf.float32, [])
    b, c = a + 1.0, a + 2.0
    s = tf.Session()
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one target"):
        s.partial_run_setup([], [a])
    h = s.partial_run_setup([b, a * 2.0], [a])
    with pytest.raises(tf.errors.InvalidArgumentError, match="was not specified"):
        s.partial_run(h, c, {a: 1.0})
    assert s.partial_run(h, b, {a: 1.0}) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="already been fetched"):
        s.partial_run(h, b)


@pytest.mark.parametrize("resource", [False, True])
def test_a_write_that_several_calls_wait_for_happens_once(resource: bool) -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0, use_resource=resource)
    up = v.assign_add(1.0)
    with tf.control_dependencies([up]):
        y, z = a * 1.0, b * 2.0
    s = tf.Session()
    s.run(v.initializer)
    h = s.partial_run_setup([y, z, up.op], [a, b])
    assert s.partial_run(h, y, {a: 1.0}) == 1.0
    assert s.partial_run(h, [z, up.op], {b: 1.0}) == [2.0, None]
    assert s.run(v) == 1.0


def test_a_failing_operation_is_named() -> None:
    a = tf.placeholder(tf.float32, [None])
    y = tf.add(a, tf.constant([1.0, 2.0, 3.0]), name="culprit")
    s = tf.Session()
    h = s.partial_run_setup([y], [a])
    with pytest.raises(tf.errors.InvalidArgumentError, match="culprit"):
        s.partial_run(h, y, {a: [1.0, 2.0]})
