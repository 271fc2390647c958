"""``sess.explain``: the time of every step, and the reasons for what was not done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel


def dense(x: Any, wide: int, out: int) -> Any:
    return tf.matmul(x, tf.Variable(np.full((wide, out), 0.01, np.float32)))


def names(explanation: Any) -> set[str]:
    return {s.name for s in explanation.times.steps}


def test_every_step_of_the_plan_has_its_time() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.reduce_sum(tf.cumsum(tf.matmul(x, tf.ones([4, 3]))))
    with tf.Session() as session:
        found = session.explain(y, {x: np.ones((2, 4))}, times=True)
    assert names(found) == {s.name for s in found.steps} and len(found.steps) >= 2
    assert all(0 < s.seconds < found.times.seconds for s in found.times.steps)
    assert sum(s.share for s in found.times.steps) <= 1.0
    text = str(found)
    assert "times      median of 20 runs" in text and "test_step_times.py" in text


def test_a_training_step_trains_and_its_bound_part_is_timed() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    loss = tf.reduce_mean(tf.square(dense(tf.nn.relu(dense(x, 256, 256)), 256, 16)))
    count = tf.Variable(0)
    step = tf.group(tf.train.AdamOptimizer(1e-3).minimize(loss), tf.assign_add(count, 1).op)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.explain([step, loss], {x: np.ones((64, 256))}, times=True, runs=3)
        assert session.run(count) == 3 + 5  # and those that come before
    kinds = {s.op_type.split(" x ")[0] for s in found.times.steps}
    assert any("MatMul" in k for k in kinds) and "ApplyAdam" in kinds
    if accel.library() is not None:
        assert found.bound and found.refused == []


def test_loops_add_up() -> None:
    n = tf.placeholder(tf.int32, [])
    total = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.cumsum(a)), [0, tf.ones([9])])
    with tf.Session() as session:
        found = session.explain(total[1], {n: 50}, times=True, runs=3)
    assert any("Cumsum" in s.op_type for s in found.times.steps)


def test_values_are_needed_for_times() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        with pytest.raises(TypeError, match="feed_dict must be a dict with the values"):
            session.explain(x + 1, [x], times=True)
        with pytest.raises(ValueError, match="at least 1"):
            session.explain(x + 1, {x: 1.0}, times=True, runs=0)


# reasons ------------------------------------------------------------------------------------------


def unbound(fetches: Any, feeds: Any) -> str:
    with tf.Session() as session:
        found = session.explain(fetches, feeds)
    assert not found.may_be_bound and f"bound      no: {found.unbound}" in str(found)
    return str(found.unbound)


def test_why_a_run_is_not_bound_to_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    y = dense(x, 256, 256)
    assert "large enough" in unbound(x + 1, [x])
    assert "random numbers" in unbound(tf.nn.dropout(y, 0.5), [x])
    assert "shape depends on values" in unbound(tf.unique(tf.reshape(y, [-1]))[0], [x])
    assert "branches" in unbound(tf.cond(x[0, 0] > 0, lambda: y, lambda: -y), [x])


def test_why_a_signature_was_not_bound() -> None:
    if accel.library() is None:
        pytest.skip(accel.status())
    x = tf.placeholder(tf.float32, [None, 256])
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(dense(x, 256, 32)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(step, {x: np.ones((1, 256))})
        found = session.explain(step, [x])
    assert found.bound == []
    assert found.refused == [([(1, 256)], "too little work")]
    assert "not for [1,256]: too little work" in str(found)
