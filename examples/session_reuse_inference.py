"""Session reuse for inference: the model is put into a session once and answers many requests.

A session holds the values of the variables. A new one for every request has to be given them again
each time.
"""

import numpy as np
from _timing import finish, scaled, timed

import headrace as tf

random = np.random.RandomState(0)
requests = random.rand(scaled(300), 1, 784).astype(np.float32)
trained_weights = random.normal(size=(784, 10)).astype(np.float32)

x = tf.placeholder(tf.float32, (None, 784))
weights = tf.Variable(tf.zeros((784, 10)))
biases = tf.Variable(tf.zeros((10,)))
y = tf.nn.softmax(tf.matmul(x, weights) + biases)
initialize = tf.global_variables_initializer()


def session_with_model() -> tf.Session:
    sess = tf.Session()
    sess.run(initialize)
    weights.load(trained_weights, sess)
    return sess


def session_for_each() -> list[int]:
    answers = []
    for request in requests:
        with session_with_model() as sess:
            answers.append(int(np.argmax(sess.run(y, {x: request}))))
    return answers


def one_session() -> list[int]:
    with session_with_model() as sess:
        return [int(np.argmax(sess.run(y, {x: request}))) for request in requests]


one_session()  # plan once
slow, slow_answers = timed(session_for_each)
fast, fast_answers = timed(one_session)
assert slow_answers == fast_answers
print(f"{len(requests)} requests, the first answers: {fast_answers[:10]}")
finish(slow, fast)
