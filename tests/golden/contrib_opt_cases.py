"""Optimizers of contrib.opt.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _train(tf, make, resource, steps=3):
    with tf.Graph().as_default():
        w = tf.get_variable(
            "w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2),
            use_resource=resource,
        )  # fmt: skip
        halves = np.array([0.5, -0.5], np.float32)
        b = tf.get_variable("b", initializer=halves, use_resource=resource)
        rows = tf.nn.embedding_lookup(w, [0, 2, 0])
        # gradients do not read the variables: when TensorFlow's decay comes is a race
        scale = tf.placeholder(tf.float32, [])
        loss = scale * (tf.reduce_sum(rows * [[1.0, -2.0], [0.5, 1.0], [3.0, 0.1]]) + b[0] - b[1])
        step = tf.train.get_or_create_global_step()
        op = make(tf, [w, b]).minimize(loss, global_step=step)
        names = sorted(v.name for v in tf.global_variables())
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            values = []
            for i in range(steps):
                sess.run(op, {scale: [1.0, 3.0, -2.0][i]})
                values.append(sess.run([w, b, step]))
            slots = {v.name: sess.run(v) for v in tf.global_variables()}
    return [names, values, slots]


def _both(tf, make):
    return [_train(tf, make, False), _train(tf, make, True)]


def lazy_adam(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.LazyAdamOptimizer(0.1))


def nadam(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.NadamOptimizer(0.1))


def adamax(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.AdaMaxOptimizer(0.1))


def adam_w(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.AdamWOptimizer(0.01, 0.1))


def momentum_w(tf):
    make = tf.contrib.opt.MomentumWOptimizer
    return _both(tf, lambda tf, v: make(0.01, 0.1, 0.9, use_nesterov=True))


def extended(tf):
    make = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)
    return _both(tf, lambda tf, v: make(0.01, learning_rate=0.1))


def decay_list(tf):
    w = tf.get_variable("w", initializer=np.ones(2, np.float32))
    b = tf.get_variable("b", initializer=np.ones(2, np.float32))
    loss = tf.reduce_sum(w * 0.5 + b * 0.25)
    op = tf.contrib.opt.MomentumWOptimizer(0.5, 0.1, 0.9).minimize(loss, decay_var_list=[w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        return sess.run([w, b])
