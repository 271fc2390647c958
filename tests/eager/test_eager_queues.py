"""Queues in eager mode, outside of and inside a function."""

from __future__ import annotations

import numpy as np

import headrace as tf
from tests.eager_fixture import v2_behavior

__all__ = ["v2_behavior"]


def test_a_queue() -> None:
    queue = tf.FIFOQueue(3, tf.int32, shapes=[()])
    queue.enqueue(1)
    queue.enqueue_many([[2, 3]])
    assert int(queue.size()) == 3 and int(queue.dequeue()) == 1
    np.testing.assert_array_equal(queue.dequeue_many(2), [2, 3])


def test_a_queue_that_a_function_uses() -> None:
    queue = tf.FIFOQueue(3, tf.int32, shapes=[()])

    @tf.function
    def through(x: tf.Tensor) -> tf.Tensor:
        queue.enqueue(x)
        return queue.dequeue() + 1

    assert [int(through(tf.constant(i))) for i in (7, 8)] == [8, 9]


def test_reset_default_graph_forgets_eager_names() -> None:
    from headrace.eager.eager_context import eager_mode

    def names() -> list[str]:
        with eager_mode():
            layer = tf.layers.Dense(2)
            layer(tf.ones([1, 2]))
            return [layer.name, layer.kernel.name]

    tf.reset_default_graph()
    first = names()
    assert names() != first
    tf.reset_default_graph()
    assert names() == first
