"""Grouping: updates that belong together in one call instead of a call for each.

Two running averages follow a stream of numbers. ``tf.group`` makes one operation of the two
updates. An operation has no value: fetching it gives None. To see an average as well, fetch
``[update, average]`` in the same call. Headrace gives a variable that is fetched beside its update
the value from after the update; where a program should also run on TensorFlow, which leaves that to
chance, fetch the result of ``tf.assign`` instead.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

RATE = 0.1
values = np.random.RandomState(0).normal(size=scaled(2000)).astype(np.float32)

value = tf.placeholder(tf.float32, ())
mean = tf.Variable(0.0)
square = tf.Variable(0.0)
update_mean = tf.assign(mean, mean * (1 - RATE) + value * RATE)
update_square = tf.assign(square, square * (1 - RATE) + value * value * RATE)
update_both = tf.group(update_mean, update_square)


def one_by_one(sess: tf.Session) -> float:
    for v in values:
        sess.run(update_mean, {value: v})
        sess.run(update_square, {value: v})
        current = sess.run(mean)
    return float(current)


def together(sess: tf.Session) -> float:
    for v in values:
        _, current = sess.run([update_both, mean], {value: v})
    return float(current)


with tf.Session() as sess:
    results = []
    for work in (one_by_one, together):
        sess.run(tf.global_variables_initializer())
        work(sess)  # plan once
        sess.run(tf.global_variables_initializer())
        results.append(timed(work, sess))
    (slow, slow_mean), (fast, fast_mean) = results
    print(f"running average after {len(values)} values: {slow_mean:.6f} and {fast_mean:.6f}")
    print(f"the group alone gives {sess.run(update_both, {value: 0.0})}")
finish(slow, fast)
