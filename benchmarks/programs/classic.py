"""A physics-informed net, whose loss has second derivatives, and k-means."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs.drawing import Draw

__all__ = ["kmeans", "pinn"]

POINTS, CLUSTERS = 10_000, 16


def pinn(tf: Any, session: Any) -> Callable[[], list[float]]:
    """PINN of Burgers' equation, 2-20-20-20-20-1, second derivatives, Adam, 2,000 points"""
    draw = Draw()
    sizes = [2, 20, 20, 20, 20, 1]
    layers = [draw.layer(tf, *pair) for pair in itertools.pairwise(sizes)]
    x, t, x_u, t_u, u = (tf.placeholder(tf.float32, [None, 1]) for _ in range(5))

    def net(x: Any, t: Any) -> Any:
        h = 2.0 * (tf.concat([x, t], 1) + 1.0) / 2.0 - 1.0
        for weights, bias in layers[:-1]:
            h = tf.tanh(tf.add(tf.matmul(h, weights), bias))
        return tf.add(tf.matmul(h, layers[-1][0]), layers[-1][1])

    field = net(x, t)
    by_t, by_x = tf.gradients(field, t)[0], tf.gradients(field, x)[0]
    residual = by_t + field * by_x - (0.01 / np.pi) * tf.gradients(by_x, x)[0]
    at_border = tf.reduce_mean(tf.square(u - net(x_u, t_u)))
    loss = at_border + tf.reduce_mean(tf.square(residual))
    train = tf.train.AdamOptimizer().minimize(loss)
    feed = {x: 2 * draw.uniform(2000, 1) - 1, t: draw.uniform(2000, 1)}
    feed |= {x_u: 2 * draw.uniform(100, 1) - 1, t_u: draw.uniform(100, 1), u: draw.normal(100, 1)}
    return lambda: [session.run([train, loss], feed_dict=feed)[1]]


def kmeans(tf: Any, session: Any) -> Callable[[], list[float]]:
    """k-means, 10,000 points of 2 numbers, 16 clusters"""
    draw = Draw()
    points = draw.normal(POINTS, 2)
    vectors = tf.constant(points)
    centroids = tf.Variable(tf.constant(points[:CLUSTERS] * 3))
    apart = tf.subtract(tf.expand_dims(vectors, 0), tf.expand_dims(centroids, 1))
    distances = tf.reduce_sum(tf.square(apart), 2)
    nearest = tf.argmin(distances, 0)
    sums = tf.unsorted_segment_sum(vectors, nearest, CLUSTERS)
    counts = tf.unsorted_segment_sum(tf.ones([POINTS]), nearest, CLUSTERS)
    means = sums / tf.expand_dims(tf.maximum(counts, 1.0), 1)
    loss = tf.reduce_mean(tf.reduce_min(distances, 0))
    update = tf.assign(centroids, means)
    restart = tf.assign(centroids, tf.constant(points[:CLUSTERS] * 3))

    def step() -> list[float]:
        session.run(restart)
        return [session.run([update, loss])[1] for _ in range(2)]

    return step
