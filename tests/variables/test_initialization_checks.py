"""Checks that variables have values, as session managers use them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("count", [1, 3])
def test_assert_variables_initialized_gives_ranks(count: int) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        shapes: list[list[int]] = [[2, 3], [], [0]][:count]
        for i, shape in enumerate(shapes):
            tf.get_variable(f"v{i}", shape)
        check = tf.assert_variables_initialized()
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(check)
        sess.run(tf.global_variables_initializer())
        ranks = sess.run(check)
        assert ranks.dtype == np.int32
        assert ranks.tolist() == ([2, 0, 1] if count == 3 else 2)


def test_session_managers_take_it_as_ready_op() -> None:
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        manager = tf.train.SessionManager(ready_op=tf.assert_variables_initialized())
        sess = manager.prepare_session("", init_op=tf.global_variables_initializer())
        sess.close()
