"""The graph belongs before the loop: a loop that adds ops and opens sessions, one that only runs,
and no loop at all.

In TensorFlow the first loop also becomes slower as it goes on, because every new session takes in
the whole graph. In Headrace an iteration costs the same however many there were; but making ops
still costs more than running them.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

COUNT = scaled(1000)


def everything_in_the_loop() -> list[int]:
    results = []
    for i in range(COUNT):
        c = tf.add(tf.constant([i]), tf.constant([i * 2]))
        with tf.Session() as sess:
            results.append(int(sess.run(c)[0]))
    return results


def only_runs_in_the_loop() -> list[int]:
    a = tf.placeholder(tf.int32)
    b = tf.placeholder(tf.int32)
    c = tf.add(a, b)
    with tf.Session() as sess:
        return [int(sess.run(c, {a: i, b: i * 2})) for i in range(COUNT)]


def one_batch() -> list[int]:
    a = tf.placeholder(tf.int32, (COUNT,))
    c = tf.add(a, tf.constant(np.arange(COUNT) * 2, tf.int32))
    with tf.Session() as sess:
        return [int(v) for v in sess.run(c, {a: np.arange(COUNT)})]


slow, first = timed(everything_in_the_loop)
fast, second = timed(only_runs_in_the_loop)
batch, third = timed(one_batch)
assert first == second == third
print(f"{COUNT} sums, the last is {first[-1]}; as one batch: {batch * 1e3:.2f} ms")
finish(slow, fast)
