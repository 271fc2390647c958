"""Closing sessions: what sessions that stay open hold on to.

Every session has its own copy of the variables. ``close()``, or the end of a ``with`` block, gives
it back. (A session that nobody refers to any more is given back too; these here are still referred
to, as they are in a server that forgets them.)
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
from _timing import finish_memory, scaled

import headrace as tf

COUNT = scaled(250)

table = tf.Variable(np.ones((100, 1000), np.float32))  # 0.4 MB
total = tf.reduce_sum(table)
initialize = tf.global_variables_initializer()


def use(sess: tf.Session) -> float:
    sess.run(initialize)
    return float(sess.run(total))


def left_open() -> list[tf.Session]:
    sessions = [tf.Session() for _ in range(COUNT)]
    print(f"{COUNT} sessions left open, sum {sum(use(s) for s in sessions):.0f}")
    return sessions


def closed() -> list[tf.Session]:
    sessions = [tf.Session() for _ in range(COUNT)]
    sums = []
    for sess in sessions:
        with sess:
            sums.append(use(sess))
    print(f"{COUNT} sessions closed, sum {sum(sums):.0f}")
    return sessions


def memory_held(work: Callable[[], list[tf.Session]]) -> int:
    before = tracemalloc.get_traced_memory()[0]
    sessions = work()
    held = tracemalloc.get_traced_memory()[0] - before
    for sess in sessions:
        sess.close()
    return max(held, 1)


tracemalloc.start()
with tf.Session() as sess:
    use(sess)  # plan once
finish_memory(memory_held(left_open), memory_held(closed))
