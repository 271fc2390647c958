"""Gradients of operations under ``gradient_override_map`` that names another type of op.

Made with TensorFlow 1.15: ``python tests/golden/gradient_overrides.py`` writes
gradient_overrides.json. The test runs :func:`answers` on Headrace.
"""

import json
import os

import numpy as np

X = [-1.6, -0.3, 0.4, 2.7]
W = [1.0, 2.0, 3.0, 4.0]


def gradients(tf, overrides, function, *values):
    """Of the square of a function, in its inputs; None where there is none."""
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.float32, [4]) for _ in values]
        with graph.gradient_override_map(overrides):
            y = function(*inputs)
        found = tf.gradients(y * y, inputs)
        feeds = {i: np.float32(v) for i, v in zip(inputs, values)}
        with tf.Session() as sess:
            return [None if g is None else sess.run(g, feeds).tolist() for g in found]


def answers(tf):
    return {
        "sign": gradients(tf, {"Sign": "Identity"}, tf.sign, X),
        "round": gradients(tf, {"Round": "Identity"}, tf.round, X),
        "floor": gradients(tf, {"Floor": "Identity"}, tf.floor, X),
        "ceil": gradients(tf, {"Ceil": "Identity"}, tf.ceil, X),
        "relu as tanh": gradients(tf, {"Relu": "Tanh"}, tf.nn.relu, X),
        "relu as round": gradients(tf, {"Relu": "Round"}, tf.nn.relu, X),
        "sigmoid as relu": gradients(tf, {"Sigmoid": "Relu"}, tf.sigmoid, X),
        "identity as neg": gradients(tf, {"Identity": "Neg"}, tf.identity, X),
        "mul as add": gradients(tf, {"Mul": "Add"}, lambda a, b: a * b, X, W),
        "two": gradients(
            tf, {"Sign": "Identity", "Tanh": "Sign"}, lambda a, b: tf.sign(a) + tf.tanh(b), X, W
        ),
    }


if __name__ == "__main__":
    import tensorflow

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "gradient_overrides.json"), "w") as f:
        json.dump(answers(tensorflow), f, sort_keys=True)
        f.write("\n")
