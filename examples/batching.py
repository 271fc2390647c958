"""Batching: a thousand rows through a layer, a call for each row or one call for all.

A call has a cost of its own beside its work. A placeholder whose first dimension is None takes one
row or all of them.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

data = np.random.rand(scaled(1000), 5)

x = tf.placeholder(tf.float32, (None, 5))
weights = tf.Variable(tf.random_normal((5, 3)))
biases = tf.Variable(tf.random_normal((1, 3)))
y = tf.matmul(x, weights) + biases

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(y, {x: data[:1]})  # plan once, so that both ways are timed without it

    slow, rows = timed(lambda: [sess.run(y, {x: data[i : i + 1]}) for i in range(len(data))])
    fast, whole = timed(sess.run, y, {x: data})

difference = np.abs(np.concatenate(rows) - whole).max()
print(f"{len(data)} rows, largest difference between the two ways: {difference:.1e}")
finish(slow, fast)
