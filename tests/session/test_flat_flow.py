"""Switch, Merge and Enter operations that a program makes itself, outside of tf.cond and loops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.ops.control import control_flow as control_flow_ops


@pytest.mark.parametrize("taken", [False, True])
def test_switch_and_merge(taken: bool) -> None:
    x, pred = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    if_false, if_true = control_flow_ops.switch(x, pred)
    merged, index = control_flow_ops.merge([if_false + 1.0, if_true * 10.0])
    feeds = {x: [1.0, 2.0], pred: taken}
    with tf.Session() as session:
        value, which = session.run([merged, index], feeds)
        np.testing.assert_array_equal(value, [10.0, 20.0] if taken else [2.0, 3.0])
        assert which == taken
        swapped = control_flow_ops.merge([if_true, if_false])  # made after a run
        assert session.run(swapped.value_index, feeds) == (not taken)
        np.testing.assert_array_equal(session.run(swapped.output * 2.0, feeds), [2.0, 4.0])


@pytest.mark.parametrize("taken", [False, True])
def test_what_was_not_switched_to_has_no_value(taken: bool) -> None:
    x, pred = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    sides = control_flow_ops.switch(x, pred)
    with tf.Session() as session:
        for side, is_alive in zip(sides, (not taken, taken)):
            for fetch in (side, tf.identity(side), tf.tanh(side)):
                if is_alive:
                    assert session.run(fetch, {x: [1.0, 2.0], pred: taken}).shape == (2,)
                    continue
                with pytest.raises(tf.errors.InvalidArgumentError, match=r"(no|not have) value"):
                    session.run(fetch, {x: [1.0, 2.0], pred: taken})


def test_indexed_slices() -> None:
    slices = tf.IndexedSlices(tf.constant([1, 2]), tf.constant([0, 3]))
    merged, _ = control_flow_ops.merge(control_flow_ops.switch(slices, tf.constant(True)))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(merged.values), [1, 2])
        np.testing.assert_array_equal(session.run(merged.indices), [0, 3])


@pytest.mark.parametrize(("side", "value", "slope"), [(True, 10.0, 10.0), (False, 2.0, 1.0)])
def test_the_gradient_takes_the_side_that_was_taken(side: bool, value: float, slope: float) -> None:
    x, is_true = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    if_false, if_true = control_flow_ops.switch(x, is_true)
    merged, _ = control_flow_ops.merge([if_false + 1.0, if_true * 10.0])
    (gradient,) = tf.gradients(merged, x)
    with tf.Session() as session:
        assert session.run([merged, gradient], {x: 1.0, is_true: side}) == [value, slope]


def test_inputs_from_different_frames() -> None:
    x = tf.placeholder(tf.float32, [])
    total = tf.raw_ops.Enter(data=x, frame_name="a") + tf.raw_ops.Enter(data=x, frame_name="b")
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="inputs from different frames"):
            session.run(total, {x: 1.0})
