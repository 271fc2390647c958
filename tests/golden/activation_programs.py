"""Activations of NaN, infinities and zeros, alone and after products and convolutions, written for
TF 1.15.

Executed by itself it writes TensorFlow's answers to activations.json:

    python3.7 tests/golden/activation_programs.py

Python 3.7 syntax.
"""

import numpy as np

SPECIAL = [float("nan"), float("-inf"), float("inf"), -0.0, 0.0, -1.5, 2.5, 7.0, -1e30, 1e30]
RUNS = 6  # the shapes of a call settle after a few


def activations(tf):
    root = np.float32(np.sqrt(2 / np.pi))
    return {
        "relu": tf.nn.relu,
        "relu6": tf.nn.relu6,
        "maximum": lambda x: tf.maximum(x, 0.0),
        "elu": tf.nn.elu,
        "selu": tf.nn.selu,
        "leaky_relu": tf.nn.leaky_relu,
        "leaky_relu_flat": lambda x: tf.nn.leaky_relu(x, alpha=0.0),
        "leaky_relu_steep": lambda x: tf.nn.leaky_relu(x, alpha=2.0),
        "softplus": tf.nn.softplus,
        "softsign": tf.nn.softsign,
        "tanh": tf.tanh,
        "sigmoid": tf.sigmoid,
        "gelu": lambda x: 0.5 * x * (1.0 + tf.tanh(root * (x + 0.044715 * tf.pow(x, 3)))),
        "gelu_erf": lambda x: 0.5 * x * (1.0 + tf.erf(x / np.float32(np.sqrt(2.0)))),
        "none": tf.identity,
    }


def alone(tf, activation, special, n):
    x = tf.placeholder(tf.float32, [None])
    return activation(x), {x: np.full(n, special, np.float32)}


def _layer(tf, x, width, special):
    w = tf.Variable(np.zeros((x.shape[1], width), np.float32))
    b = tf.Variable(np.full(width, special, np.float32))
    return tf.matmul(x, w) + b


def dense(tf, activation, special, rows):
    x = tf.placeholder(tf.float32, [None, 64])
    return activation(_layer(tf, x, 96, special)), {x: np.ones((rows, 64), np.float32)}


def hidden(tf, activation, special, rows):
    """Two layers with activations before one without.

    What the first gives for the special value reaches the last.
    """
    x = tf.placeholder(tf.float32, [None, 64])
    h = activation(_layer(tf, x, 96, special))
    for width in (80, 70):
        w = tf.Variable(np.full((h.shape[1], width), 0.01, np.float32))
        h = tf.matmul(h, w) + tf.Variable(np.zeros(width, np.float32))
        h = activation(h) if width == 80 else h
    return h, {x: np.ones((rows, 64), np.float32)}


def conv(tf, activation, special, rows):
    x = tf.placeholder(tf.float32, [None, 8, 8, 16])
    w = tf.Variable(np.zeros((3, 3, 16, 32), np.float32))
    b = tf.Variable(np.full(32, special, np.float32))
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b)
    return activation(y), {x: np.ones((rows, 8, 8, 16), np.float32)}


def conv_of_special(tf, activation, special, rows):
    x = tf.placeholder(tf.float32, [None, 8, 8, 16])
    w = tf.Variable(np.full((1, 1, 16, 32), 0.5, np.float32))
    y = tf.nn.bias_add(
        tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), tf.Variable(np.zeros(32, np.float32))
    )
    return activation(y), {x: np.full((rows, 8, 8, 16), special, np.float32)}


def conv_and_shortcut(tf, activation, special, rows):
    x = tf.placeholder(tf.float32, [None, 8, 8, 16])
    shortcut = tf.placeholder(tf.float32, [None, 8, 8, 32])
    w = tf.Variable(np.zeros((3, 3, 16, 32), np.float32))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") + tf.Variable(np.zeros(32, np.float32)) + shortcut
    fed = {
        x: np.ones((rows, 8, 8, 16), np.float32),
        shortcut: np.full((rows, 8, 8, 32), special, np.float32),
    }
    return activation(y), fed


WAYS = {
    "alone, few": (alone, 5),
    "alone, many": (alone, 200000),
    "dense, 1 row": (dense, 1),
    "dense, 64 rows": (dense, 64),
    "hidden, 1 row": (hidden, 1),
    "hidden, 64 rows": (hidden, 64),
    "conv": (conv, 2),
    "conv of special": (conv_of_special, 2),
    "conv and shortcut": (conv_and_shortcut, 2),
}


#: How far apart sums of the same terms may be that were added in another order: a kernel that takes
#: 64 columns at a time adds the last 16 in its own order. Up to 256 terms here, each addition off
#: by 2**-24 of the sum at most.
SUM_ROUNDING = 256 * 2.0**-24


def run_one(tf, way, name, options=None):
    """The first element for each special value; all elements are the same in every run.

    Sums may differ by their rounding; what is not finite may not.
    """
    program, n = WAYS[way]
    found = []
    for special in SPECIAL:
        with tf.Graph().as_default(), tf.Session(**(options or {})) as session:
            y, fed = program(tf, activations(tf)[name], special, n)
            session.run(tf.global_variables_initializer())
            for _ in range(RUNS):
                out = session.run(y, fed)
                rounding = 0 if "alone" in way else SUM_ROUNDING
                np.testing.assert_allclose(out, np.full_like(out, out.flat[0]), rounding)
        found.append(float(out.flat[0]))
    return found


if __name__ == "__main__":
    import json
    import os

    import tensorflow as tf

    answers = {}
    for way in WAYS:
        for name in activations(tf):
            answers["%s, %s" % (name, way)] = [repr(v) for v in run_one(tf, way, name)]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "activations.json"), "w") as out:
        lines = ["%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(answers.items())]
        out.write("{\n%s\n}\n" % ",\n".join(lines))
