"""Several graphs: two models side by side, each with its graph and session, or one graph that is
built again at each change.

Graphs know nothing of each other, and neither do their sessions: going from one to the other costs
nothing.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

TURNS = scaled(300)
matrix = np.array([[5.0, 6.0], [7.0, 8.0]], np.float32)


def build_sum() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf.placeholder(tf.float32, ())
    return x, x + tf.constant(10.0)


def build_product() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf.placeholder(tf.float32, (2, 2))
    return x, tf.matmul(x, tf.constant([[1.0, 2.0], [3.0, 4.0]]))


def built_again_each_time() -> float:
    total = 0.0
    for turn in range(TURNS):
        for build, value in ((build_sum, turn), (build_product, matrix)):
            tf.reset_default_graph()
            x, y = build()
            with tf.Session() as sess:
                total += float(np.sum(sess.run(y, {x: value})))
    return total


def side_by_side() -> float:
    models = []
    for build in (build_sum, build_product):
        with tf.Graph().as_default() as graph:
            models.append((tf.Session(graph=graph), *build()))
    (sum_session, a, total_of_a), (product_session, b, product) = models
    total = 0.0
    for turn in range(TURNS):
        total += float(sum_session.run(total_of_a, {a: turn}))
        total += float(np.sum(product_session.run(product, {b: matrix})))
    for sess, *_ in models:
        sess.close()
    return total


slow, slow_total = timed(built_again_each_time)
fast, fast_total = timed(side_by_side)
print(f"{TURNS} turns between two models, totals {slow_total:.0f} and {fast_total:.0f}")
finish(slow, fast)
