"""Programs with seeds, for TensorFlow 1.15 and for Headrace: each is a function of the ``tf``
module.

``PROGRAMS`` maps a name to (function, tolerance). The graph is fresh, the function returns what is
fetched, twice.
"""

import numpy as np

PROGRAMS = {}


def program(tolerance=0.0):
    """``tolerance`` is in units of the last place of the largest value; 0: equal to the bit."""

    def add(function):
        PROGRAMS[function.__name__] = (function, tolerance)
        return function

    return add


@program(4)
def graph_seed(tf):
    tf.set_random_seed(1234)
    a = tf.random_uniform([3, 5])
    b = tf.random_normal([4], mean=1.0, stddev=2.0)
    c = tf.truncated_normal((2, 3), stddev=0.1)
    d = tf.random_uniform([6], -3, 9, dtype=tf.int32)
    return [a, b, c, d, tf.random_normal([2])]


@program(4)
def op_seeds(tf):
    a = tf.random_uniform([3, 5], seed=7)
    b = tf.random_normal([4], seed=7, dtype=tf.float64)
    c = tf.truncated_normal([2, 3], seed=0)
    return [a, b, c, tf.random_uniform([6], maxval=9, dtype=tf.int64, seed=-2)]


@program(4)
def both_seeds(tf):
    tf.set_random_seed(0)
    return [
        tf.random_uniform([3], seed=0),
        tf.random_normal([1000], seed=5),
        tf.truncated_normal([1000], seed=5),
    ]


@program()
def drawing(tf):
    tf.set_random_seed(3)
    logits = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)
    shuffled = tf.random_shuffle(np.arange(10))
    drawn = tf.multinomial(logits, 5)
    crop = tf.random_crop(np.arange(48.0).reshape(6, 8).astype(np.float32), [2, 3])
    return [
        shuffled,
        drawn,
        crop,
        tf.random.categorical(logits, 2, dtype=tf.int32),
        tf.random_uniform([2]),
    ]


@program(4)
def distributions(tf):
    tf.set_random_seed(5)
    a = tf.random_gamma([3], [0.5, 1.0, 4.0], beta=2.0)
    b = tf.random_poisson([0.5, 30.0], [4])
    return [a, b, tf.random_normal([3])]


@program(4)
def stateless(tf):
    seed = [1, 2]
    return [
        tf.random.stateless_uniform([5], seed, -1.0, 1.0),
        tf.random.stateless_uniform([5], seed, 0, 50, dtype=tf.int32),
        tf.random.stateless_normal([5], seed, 1.0, 2.0),
        tf.random.stateless_truncated_normal([5], seed),
        tf.random.stateless_categorical([[0.1, 0.4]], 6, seed),
    ]


@program(4)
def initializers(tf):
    tf.set_random_seed(11)
    init = tf.initializers
    return [
        tf.zeros_initializer()([2, 3]),
        tf.ones_initializer()([2], tf.int32),
        tf.constant_initializer([1.0, 2.0])([2, 2]),
        tf.random_uniform_initializer(-1, 1)([3, 2]),
        tf.random_normal_initializer(stddev=0.02)([3, 2]),
        tf.truncated_normal_initializer(stddev=0.02, seed=4)([3, 2]),
        tf.glorot_uniform_initializer()([4, 3]),
        tf.glorot_normal_initializer()([3, 3, 2, 4]),
        tf.uniform_unit_scaling_initializer(1.4)([4, 3]),
        tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")([4, 3]),
        tf.variance_scaling_initializer(2.0, "fan_avg", "uniform")([4]),
        init.he_normal()([4, 3]),
        init.he_uniform()([4, 3]),
        init.lecun_normal()([4, 3]),
        init.lecun_uniform(seed=1)([4, 3]),
        init.identity(2.0)([3, 3]),
        init.identity()([2, 3]),
    ]


@program(20)
def orthogonal(tf):
    tf.set_random_seed(11)
    return [
        tf.orthogonal_initializer()([4, 3]),
        tf.orthogonal_initializer(2.0)([2, 2, 8]),
        tf.random_normal([2]),
    ]


@program(4)
def contrib(tf):
    tf.set_random_seed(11)
    layers = tf.contrib.layers
    return [
        layers.xavier_initializer()([4, 3]),
        layers.xavier_initializer(uniform=False)([4, 3]),
        layers.xavier_initializer_conv2d(seed=3)([3, 3, 2, 4]),
        layers.variance_scaling_initializer()([4, 3]),
        layers.variance_scaling_initializer(1.0, "FAN_AVG", True)([5]),
    ]
