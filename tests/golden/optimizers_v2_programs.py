"""Programs for TF 2's optimizers: tables and steps, as functions of the module that stands for
``tf``.

``python tests/golden/optimizers_v2_programs.py`` with TensorFlow 1.15's Python writes
optimizers_v2.json: v and w after four steps on a dense loss, v after four steps on a loss of some
of its rows, and how many weights the optimizer has.
"""

import json
import os
import sys

import numpy as np


def optimizers(tf):
    K = tf.optimizers
    S = K.schedules
    return {
        "SGD": lambda: K.SGD(0.1),
        "momentum": lambda: K.SGD(0.1, 0.9),
        "nesterov": lambda: K.SGD(0.1, 0.9, nesterov=True),
        "Adam": lambda: K.Adam(0.1),
        "amsgrad": lambda: K.Adam(0.1, amsgrad=True),
        "RMSprop": lambda: K.RMSprop(0.01),
        "RMSprop momentum": lambda: K.RMSprop(0.01, momentum=0.5),
        "RMSprop centered": lambda: K.RMSprop(0.01, centered=True),
        "RMSprop both": lambda: K.RMSprop(0.01, momentum=0.5, centered=True),
        "Adagrad": lambda: K.Adagrad(0.1),
        "Adadelta": lambda: K.Adadelta(0.1),
        "Adamax": lambda: K.Adamax(0.1),
        "Nadam": lambda: K.Nadam(0.1),
        "Ftrl": lambda: K.Ftrl(0.1),
        "Ftrl shrinkage": lambda: K.Ftrl(
            0.1, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.1
        ),
        "ExponentialDecay": lambda: K.SGD(S.ExponentialDecay(0.1, 2, 0.5)),
        "PiecewiseConstantDecay": lambda: K.SGD(
            S.PiecewiseConstantDecay([1, 2], [0.1, 0.05, 0.01])
        ),
        "PolynomialDecay": lambda: K.SGD(S.PolynomialDecay(0.1, 3)),
        "InverseTimeDecay": lambda: K.SGD(S.InverseTimeDecay(0.1, 2, 0.5)),
        "decay": lambda: K.Adam(0.1, decay=0.1),
        "function": lambda: K.SGD(lambda: 0.1),
    }


def start(tf):
    v = tf.Variable(np.arange(6, dtype="f").reshape(3, 2) / 3 + 0.1, name="v")
    return v, tf.Variable([0.5, -0.3], name="w")


def dense_step(tf, opt, v, w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(v, w[:, None]))) + tf.reduce_sum(v * v)
    opt.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))


def sparse_step(tf, opt, v):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [0, 2, 0])))
    opt.apply_gradients([(tape.gradient(loss, v), v)])


def results(tf, name):
    """[v, w, v after sparse steps, number of weights] of an optimizer."""
    opt = optimizers(tf)[name]()
    v, w = start(tf)
    for _ in range(4):
        dense_step(tf, opt, v, w)
    weights = len(opt.weights)
    other = optimizers(tf)[name]()
    sparse, _ = start(tf)
    for _ in range(4):
        sparse_step(tf, other, sparse)
    numbers = [x.numpy().reshape(-1).tolist() for x in (v, w, sparse)]
    return [[round(n, 7) for n in row] for row in numbers] + [weights]


def main():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    tensorflow.compat.v2.enable_v2_behavior = tensorflow.compat.v1.enable_v2_behavior
    tensorflow.compat.v1.enable_v2_behavior()
    tf = tensorflow.compat.v2
    rows = ["%s: %s" % (json.dumps(n), json.dumps(results(tf, n))) for n in optimizers(tf)]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers_v2.json")
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(rows) + "\n}\n")
    sys.stdout.write("%d optimizers\n" % len(rows))


if __name__ == "__main__":
    main()
