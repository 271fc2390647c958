"""TensorArrays as parts of elements."""

from __future__ import annotations

import numpy as np

import headrace as tf


def _dataset() -> tf.data.Dataset:
    def with_array(i: tf.Tensor) -> tuple[tf.TensorArray, tf.Tensor]:
        return tf.TensorArray(tf.int64, 4, element_shape=()).unstack(tf.fill([4], i)), i

    return tf.data.Dataset.range(3).map(with_array)


def test_one_map_after_the_other() -> None:
    sums = _dataset().map(lambda array, i: array.read(2) + array.stack()[0] + i)
    element = tf.data.make_one_shot_iterator(sums).get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(3)] == [0, 3, 6]


def test_an_array_out_of_an_iterator() -> None:
    array, _ = tf.data.make_one_shot_iterator(_dataset()).get_next()
    stacked = array.stack()
    with tf.Session() as session:
        for i in range(3):
            np.testing.assert_array_equal(session.run(stacked), [i] * 4)


def test_an_array_is_the_state_of_a_scan() -> None:
    def following(array: tf.TensorArray, i: tf.Tensor) -> tuple[tf.TensorArray, tf.Tensor]:
        longer = array.write(array.size(), i)
        return longer, longer.stack()

    start = tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=()).write(0, -1)
    arrays = tf.data.Dataset.range(3).apply(tf.data.experimental.scan(start, following))
    iterator = tf.data.make_initializable_iterator(arrays)
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        found = [session.run(element).tolist() for _ in range(3)]
    assert found == [[-1, 0], [-1, 0, 1], [-1, 0, 1, 2]]
