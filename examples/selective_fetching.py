"""Selective fetching: a metric that is looked at every tenth step need not be computed at every
step.

Only what the fetches need is computed. The accuracy on rows that were held back is the dearest
thing here. Fetched beside the training step it is that from before the step; fetched after it, that
from after it: hence the different first figures.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

STEPS = scaled(500)
random = np.random.RandomState(0)
truth = random.normal(size=(10, 2))


def make_rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    rows = random.normal(size=(count, 10)).astype(np.float32)
    return rows, np.argmax(rows @ truth, axis=1).astype(np.int32)


train_rows, train_classes = make_rows(100)
held_rows, held_classes = make_rows(5000)

x = tf.placeholder(tf.float32, (None, 10))
labels = tf.placeholder(tf.int32, (None,))
weights = tf.Variable(tf.zeros((10, 2)))
biases = tf.Variable(tf.zeros((2,)))


def logits(rows: tf.Tensor) -> tf.Tensor:
    return tf.matmul(rows, weights) + biases


losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits(x))
loss = tf.reduce_mean(losses)
guesses = tf.argmax(logits(tf.constant(held_rows)), 1, output_type=tf.int32)
accuracy = tf.reduce_mean(tf.cast(tf.equal(guesses, held_classes), tf.float32))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
feed = {x: train_rows, labels: train_classes}


def fetch_all(sess: tf.Session) -> list[float]:
    seen = []
    for step in range(STEPS):
        _, _, current = sess.run([train, loss, accuracy], feed)
        if step % 10 == 0:
            seen.append(float(current))
    return seen


def fetch_when_needed(sess: tf.Session) -> list[float]:
    seen = []
    for step in range(STEPS):
        sess.run([train, loss], feed)
        if step % 10 == 0:
            seen.append(float(sess.run(accuracy)))
    return seen


with tf.Session() as sess:
    times = []
    for work in (fetch_all, fetch_when_needed):
        sess.run(tf.global_variables_initializer())
        seconds, seen = timed(work, sess)
        times.append(seconds)
        print(f"{work.__name__}: accuracy {seen[0]:.3f} at first, {seen[-1]:.3f} at last")
finish(*times)
