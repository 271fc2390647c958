"""Changing input sizes: a graph for each size, or one graph with a dimension left open.

A placeholder of shape (None, 100) takes every number of rows, and a size that was not seen before
needs no new plan. The values fed first are themselves tensors: Headrace evaluates them in the same
session (TensorFlow refuses them).
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

SIZES = [10 + 3 * i for i in range(scaled(200))]
rows = np.random.rand(max(SIZES), 100).astype(np.float32)
square = np.random.rand(100, 100).astype(np.float32)


def graph_for_each_size() -> float:
    total = 0.0
    for size in SIZES:
        with tf.Graph().as_default():
            a = tf.placeholder(tf.float32, (size, 100))
            b = tf.placeholder(tf.float32, (100, 100))
            c = tf.reduce_mean(tf.matmul(a, b))
            with tf.Session() as sess:
                total += float(sess.run(c, {a: rows[:size], b: square}))
    return total


def one_graph() -> float:
    with tf.Graph().as_default():
        a = tf.placeholder(tf.float32, (None, 100))
        b = tf.placeholder(tf.float32, (100, 100))
        c = tf.reduce_mean(tf.matmul(a, b))
        with tf.Session() as sess:
            sess.run(c, {a: tf.random_normal((4, 100)), b: tf.random_normal((100, 100))})
            times, values = zip(*(timed(sess.run, c, {a: rows[:n], b: square}) for n in SIZES))
    print(f"first size {times[0] * 1e6:.0f} µs, a second size {times[1] * 1e6:.0f} µs")
    return float(sum(values))


slow, slow_total = timed(graph_for_each_size)
fast, fast_total = timed(one_graph)
print(f"{len(SIZES)} sizes, totals {slow_total:.2f} and {fast_total:.2f}")
finish(slow, fast)
