"""Changed variables: a new value by a new op each time, or by one assignment that is fed.

``tf.assign(w, array)`` in a loop adds a constant and an op to the graph at every turn and needs a
new plan for them. One assignment from a placeholder is made once. What Headrace keeps between runs
because it depends only on variables is computed again after one of them was written, so a changed
value is never answered with an old result.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

CHANGES = scaled(200)
random = np.random.RandomState(0)
values = random.rand(CHANGES, 50, 50).astype(np.float32)

a = tf.Variable(np.zeros((50, 50), np.float32))
b = tf.Variable(random.rand(50, 50).astype(np.float32))
product = tf.matmul(a, b)
new_value = tf.placeholder(tf.float32, (50, 50))
assign_fed = tf.assign(a, new_value)


def new_op_each_time(sess: tf.Session) -> list[float]:
    results = []
    for value in values:
        sess.run(tf.assign(a, value))
        results.append(float(sess.run(product)[0, 0]))
    return results


def one_fed_op(sess: tf.Session) -> list[float]:
    results = []
    for value in values:
        sess.run(assign_fed, {new_value: value})
        results.append(float(sess.run(product)[0, 0]))
    return results


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    slow, slow_results = timed(new_op_each_time, sess)
    fast, fast_results = timed(one_fed_op, sess)
    assert slow_results == fast_results
    unchanged, _ = timed(lambda: [sess.run(product) for _ in range(CHANGES)])
print(f"{CHANGES} changes, the last result {fast_results[-1]:.4f}")
print(f"a run with unchanged variables: {unchanged / CHANGES * 1e6:.1f} µs")
finish(slow, fast)
