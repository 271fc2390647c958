"""Edits of a graph and what was planned before them."""

import numpy as np

import headrace as tf


def test_plans_of_a_graph_see_an_edit():
    """The same fetch in the next session: the key is the same, the answer is not."""
    ge = tf.contrib.graph_editor
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        y = tf.add(tf.multiply(x, 2.0, name="twice"), 1.0)
        with tf.Session() as sess:
            assert sess.run(y, {x: [1, 2]}).tolist() == [3, 5]
            assert sess.run(y, {x: [1, 2]}).tolist() == [3, 5]
        younger = tf.negative(x)
        ge.reroute_ts(younger, y.op.inputs[0])
        with tf.Session() as sess:
            assert sess.run(y, {x: [1, 2]}).tolist() == [0, -1]
            np.testing.assert_allclose(sess.run(tf.gradients(y, x)[0], {x: [1, 2]}), [-1, -1])


def test_consumers_follow_an_edit():
    ge = tf.contrib.graph_editor
    with tf.Graph().as_default():
        x, z = tf.zeros([2]), tf.ones([2])
        y = tf.exp(x)
        assert x.consumers() == [y.op]
        ge.reroute_ts(z, x)
        assert x.consumers() == []
        assert z.consumers() == [y.op]
