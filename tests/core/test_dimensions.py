"""What counts as a dimension: TF 1.15's answers for numbers that are no integers."""

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("size", [50.0, 100 / 2, np.float32(50), np.int64(50), "50", True * 50])
def test_whole_numbers_are_dimensions(size):
    assert tf.TensorShape([3, size]).as_list() == [3, 50]
    assert tf.Dimension(size).value == 50
    assert tf.placeholder(tf.float32, [None, size]).shape.as_list() == [None, 50]
    with tf.Graph().as_default():
        assert tf.get_variable("v", [3, size]).shape.as_list() == [3, 50]


@pytest.mark.parametrize("size", [50.5, -2.0, float("nan"), "many"])
def test_numbers_that_are_no_dimension(size):
    for make in (tf.Dimension, lambda d: tf.TensorShape([d])):
        with pytest.raises(ValueError):
            make(size)


@pytest.mark.parametrize("size", [object, tf.float32, [1]])
def test_objects_that_are_no_dimension(size):
    for make in (tf.Dimension, lambda d: tf.TensorShape([d])):
        with pytest.raises(TypeError):
            make(size)


def test_a_layer_takes_the_quotient_of_two_sizes():
    with tf.Graph().as_default():
        y = tf.layers.dense(tf.zeros([2, 3]), 8 / 2)
        assert y.shape.as_list() == [2, 4]
