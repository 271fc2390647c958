"""What the calls in op_counts.json are made with.

Placeholders and variables under short names. Python 3.7 syntax.
"""

import numpy as np


def inputs(tf, known):
    """The names that a call may use; shapes are known or have only their ranks."""

    def P(shape, dtype=tf.float32):
        return tf.placeholder(dtype, shape if known else [None] * len(shape), name="P")

    return {
        "tf": tf,
        "np": np,
        "P": P,
        "x": P([4, 3]),
        "y": P([4, 3]),
        "m": P([3, 5]),
        "v": P([4]),
        "u": P([3]),
        "i": P([4], tf.int32),
        "l": P([4], tf.int64),
        "b": P([4], tf.bool),
        "s": P([]),
        "n": P([], tf.int32),
        "im": P([2, 8, 8, 3]),
        "w": P([3, 3, 3, 4]),
        "t": P([2, 4, 3]),
        "X": tf.placeholder(tf.float32, [None, 3]),
        "V": tf.Variable(np.ones([4, 3], np.float32), name="V"),
        "step": tf.Variable(0, trainable=False, name="step"),
    }
