"""What ``tf.get_static_value`` knows, and with it assertions: no more and no less than TF 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_what_is_known() -> None:
    one, ones = tf.constant(1), tf.ones([2, 3])
    for tensor, value in [
        (tf.stack([1, 2]), [1, 2]),
        (tf.shape(ones), [2, 3]),
        (tf.rank(ones), 2),
        (tf.size(ones), 6),
        (tf.cast(one, tf.float32), 1.0),
        (tf.range(3), [0, 1, 2]),
        (tf.fill([2], 1), [1, 1]),
        (tf.concat([[1], [2]], 0), [1, 2]),
        (tf.equal(1, 2), False),
        (tf.not_equal(1, 2), True),
    ]:
        np.testing.assert_array_equal(tf.get_static_value(tensor), value)


def test_what_is_not_known() -> None:
    one = tf.constant([1, 2])
    for tensor in (
        tf.reshape(one, [2, 1]),
        tf.identity(one),
        tf.expand_dims(one, 0),
        tf.squeeze(tf.constant([1])),
        one[0],
        one + 1,
        tf.transpose(tf.constant([[1, 2]])),
        tf.stack([one, one + 1]),
    ):
        assert tf.get_static_value(tensor) is None
        assert tf.contrib.util.constant_value(tensor) is None


def test_an_assertion_on_a_reshaped_constant_fails_when_it_runs() -> None:
    wrong = tf.assert_equal(tf.reshape(tf.constant([1, 2]), [2, 1]), 5)
    assert isinstance(wrong, tf.Operation)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="assertion"):
        sess.run(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.assert_equal(tf.constant([1, 2]), 5)
