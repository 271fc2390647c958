"""A classifier with dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.programs.drawing import Draw

__all__ = ["dropout_mlp"]


def dropout_mlp(tf: Any, session: Any) -> Callable[[], list[float]]:
    """784-625-625-10 with dropout, RMSProp, batch 128"""
    draw = Draw()
    x, y = (tf.placeholder("float", [None, n]) for n in (784, 10))
    keep_input, keep_hidden = tf.placeholder("float"), tf.placeholder("float")
    w1, w2, out = (
        draw.weights(tf, *shape, scale=0.01) for shape in ((784, 625), (625, 625), (625, 10))
    )
    h = tf.nn.dropout(x, keep_input, seed=3)
    h = tf.nn.dropout(tf.nn.relu(tf.matmul(h, w1)), keep_hidden, seed=4)
    h = tf.nn.dropout(tf.nn.relu(tf.matmul(h, w2)), keep_hidden, seed=5)
    logits = tf.matmul(h, out)
    cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=y))
    train = tf.train.RMSPropOptimizer(0.001, 0.9).minimize(cost)
    images, labels = draw.uniform(128, 784), draw.one_hot(128, 10)
    feed = {x: images, y: labels, keep_input: 0.8, keep_hidden: 0.5}
    return lambda: [session.run([train, cost], feed_dict=feed)[1]]
