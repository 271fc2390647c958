"""Queues that are asked for what they are not; eager queues."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.eager.eager_context import eager_mode


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"capacity": 15}, "has capacity 10 but requested capacity was 15"),
        ({"dtypes": tf.int32}, "component types"),
        ({"dtypes": [tf.float32, tf.int32], "shapes": [(2,), ()]}, "component types"),
        ({"shapes": None}, "component shapes"),
        ({"shapes": [(3,)]}, "component shapes"),
    ],
)
def test_shared_queues_must_agree(other, text):
    given = {"capacity": 10, "dtypes": tf.float32, "shapes": [(2,)], "shared_name": "q"}
    one, two = tf.FIFOQueue(**given), tf.FIFOQueue(**{**given, **other})
    with tf.Session() as sess:
        sess.run(one.queue_ref.op)
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            sess.run(two.queue_ref.op)


def test_wrong_shapes_are_said_as_tensorflow_does():
    q = tf.FIFOQueue(10, [tf.int32, tf.int32], [(2, 2), (3, 3)])
    good, bad = np.ones([2, 2], np.int32), tf.placeholder(tf.int32)
    one = q.enqueue([good, bad])
    many = q.enqueue_many([[good, good], bad])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected \[3,3\], got \[3,4\]"):
            sess.run(one, {bad: np.ones([3, 4])})
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"component 1. Expected \[2,3,3\], got \[2,3,4\]"
        ):
            sess.run(many, {bad: np.ones([2, 3, 4])})


def test_a_padding_queue_needs_shapes():
    with pytest.raises(ValueError, match="a list of shapes must be provided"):
        tf.PaddingFIFOQueue(10, tf.float32, None)


def test_eager_queues_do_not_share():
    with eager_mode():
        one, two = (tf.FIFOQueue(10, [tf.int32], shapes=[()]) for _ in range(2))
        one.enqueue(1)
        two.enqueue(2)
        assert int(two.dequeue()) == 2
        assert int(one.dequeue()) == 1
