"""Session reuse for training: a line fitted in one session, or with a new session for every epoch.

Variables live in their session: what an epoch has learnt is there for the next one if the session
is. With a new session the values must be fetched from the old one and loaded into the new one, or
training starts over.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

EPOCHS = scaled(1000)
random = np.random.RandomState(0)
inputs = random.rand(100, 1)
outputs = 2 * inputs + 1 + random.randn(100, 1) * 0.1

x = tf.placeholder(tf.float32, (None, 1))
y = tf.placeholder(tf.float32, (None, 1))
weight = tf.Variable(tf.zeros((1, 1)))
bias = tf.Variable(tf.zeros((1,)))
loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) + bias - y))
train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
initialize = tf.global_variables_initializer()
feed = {x: inputs, y: outputs}


def session_for_each_epoch() -> tuple[float, float]:
    values = [np.zeros((1, 1), np.float32), np.zeros((1,), np.float32)]
    for _ in range(EPOCHS):
        with tf.Session() as sess:
            sess.run(initialize)
            weight.load(values[0], sess)
            bias.load(values[1], sess)
            sess.run([train, loss], feed)
            values = sess.run([weight, bias])
    return float(values[0][0, 0]), float(values[1][0])


def one_session() -> tuple[float, float]:
    with tf.Session() as sess:
        sess.run(initialize)
        for epoch in range(EPOCHS):
            _, cost = sess.run([train, loss], feed)
            if epoch % max(1, EPOCHS // 4) == 0:
                print(f"epoch {epoch}: loss {cost:.5f}")
        values = sess.run([weight, bias])
    return float(values[0][0, 0]), float(values[1][0])


slow, slow_line = timed(session_for_each_epoch)
fast, fast_line = timed(one_session)
for name, line in (("a session for each epoch", slow_line), ("one session", fast_line)):
    print(f"{name}: y = {line[0]:.4f} x + {line[1]:.4f}")
finish(slow, fast)
