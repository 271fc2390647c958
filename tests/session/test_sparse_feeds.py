"""Sparse placeholders: their shape is known, and may be left out of what is fed."""

from __future__ import annotations

import numpy as np

import headrace as tf


def test_a_known_shape_may_be_left_out():
    with tf.Graph().as_default(), tf.Session() as sess:
        sparse = tf.sparse_placeholder(tf.float32, [2, 3])
        assert tf.get_static_value(sparse.dense_shape).tolist() == [2, 3]
        dense = tf.sparse_tensor_to_dense(sparse)
        indices, values = np.array([[0, 1]], np.int64), np.array([5.0], np.float32)
        want = [[0, 5, 0], [0, 0, 0]]
        assert sess.run(dense, {sparse: (indices, values)}).tolist() == want
        assert sess.run(dense, {sparse: (indices, values, [2, 3])}).tolist() == want
        given = tf.SparseTensorValue(indices, values, np.array([2, 3], np.int64))
        assert sess.run(dense, {sparse: given}).tolist() == want


def test_copies_of_eager_tensors():
    from headrace.eager.eager_context import eager_mode

    with eager_mode():
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x.cpu() * 3.0
        assert x.cpu() is not x
        assert tape.gradient(y, x).numpy().tolist() == [3.0, 3.0]
