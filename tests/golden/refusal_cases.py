"""Arguments that TF 1.15 refuses, and the class of its error (make_cases.py), on Headrace too."""

import numpy as np


def _outcome(tf, call):
    """The class of the error of building or running ``call()``; None if there is none."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            fetch, feeds = call()
            session.run(tf.global_variables_initializer())
            session.run(fetch, feeds)
        except Exception as error:
            return type(error).__name__
        return None


def sorting(tf):
    x = lambda: tf.constant([[1, 2, 1], [2, 0, 4]])
    return [
        _outcome(tf, lambda: (tf.argsort(x(), -3), {})),
        _outcome(tf, lambda: (tf.sort(x(), 2), {})),
        _outcome(tf, lambda: (tf.sort(x(), 0), {})),
    ]


def _loss(tf, name, weights):
    fed = tf.placeholder(tf.float32)
    labels, predictions = tf.constant([[0.0, 1.0]] * 2), tf.constant([[0.5, 0.25]] * 2)
    return getattr(tf.losses, name)(labels, predictions, fed), {fed: weights}


def weights_of_losses_that_are_fed(tf):
    losses = ["log_loss", "mean_squared_error", "absolute_difference", "sigmoid_cross_entropy"]
    weights = [1.0, [1.0], [1.0, 0.0], [[1.0]], [[1.0], [0.0]], np.ones((2, 2)), [[[1.0]]]]
    return [_outcome(tf, lambda n=n, w=w: _loss(tf, n, w)) for n in losses for w in weights]


def ranks_and_shapes(tf):
    def reversed_by_scalar():
        axis = tf.placeholder(tf.int32, [])
        return tf.reverse(tf.constant([[1, 2]]), axis), {axis: 0}

    def stacked():
        p = tf.placeholder(tf.int64)
        return tf.parallel_stack([tf.constant([1, 2], tf.int64), p]), {p: [1, 2]}

    def sliced():
        begin, strides = tf.placeholder(tf.int32), tf.placeholder(tf.int32, [4])
        y = tf.strided_slice([[[[3, 2, 0]]]], begin, [2, 2, 1, 3], strides, ellipsis_mask=3)
        return y, {begin: [0, 0, -1, -3], strides: [1, 2, -1, -1]}

    def sum_of_sparse():
        parts = [
            tf.SparseTensor(np.zeros((0, 2), np.int64), tf.zeros([0]), tf.constant(s, tf.int64))
            for s in ([2, 100], [2, 3])
        ]
        return tf.sparse.add(*parts).values, {}

    one = lambda: tf.constant([1])
    logits = lambda: tf.constant([[1.0, 2.0], [2.0, 1.0]])
    return [
        _outcome(tf, reversed_by_scalar),
        _outcome(tf, stacked),
        _outcome(tf, sliced),
        _outcome(tf, sum_of_sparse),
        _outcome(tf, lambda: (tf.nn.in_top_k(logits(), tf.constant([1, 0]), [3]), {})),
        _outcome(tf, lambda: (tf.signal.hann_window(1.5), {})),
        _outcome(tf, lambda: (tf.assert_rank_at_least(one(), 2**33), {})),
        _outcome(tf, lambda: (tf.assert_rank(one(), np.int64(1)), {})),
        _outcome(tf, lambda: (tf.assert_rank_in(one(), [np.int64(1), 2]), {})),
        _outcome(tf, lambda: (tf.eye([2]), {})),
        _outcome(tf, lambda: (tf.eye([2], num_columns=4), {})),
        _outcome(tf, lambda: (tf.ones([[2, 4, 2]]), {})),
        _outcome(tf, lambda: (tf.zeros([[2, 4, 2]]), {})),
        _outcome(tf, lambda: (tf.ones(["a"]), {})),
    ]


def sizes_and_updates(tf):
    def scattered(resource):
        v = tf.Variable(np.zeros((0, 3)), use_resource=resource)
        return tf.scatter_nd_add(v, [[0]], [[1.0, 2.0, 3.0]]), {}

    stride = [1, 2**33, 1, 1]
    x, w = lambda: tf.ones([2, 3, 3, 2]), lambda: tf.ones([2, 2, 2, 3])
    return [
        _outcome(tf, lambda: scattered(False)),
        _outcome(tf, lambda: scattered(True)),
        _outcome(tf, lambda: (tf.nn.conv2d(x(), w(), stride, "VALID"), {})),
        _outcome(tf, lambda: (tf.nn.max_pool1d(tf.ones([2, 4, 2]), -1, 1, "VALID"), {})),
        _outcome(tf, lambda: (tf.train.polynomial_decay(0.1, 3, "1", 0.5), {})),
        _outcome(tf, lambda: (tf.train.polynomial_decay(0.1, 3, tf.constant(10), 0.5), {})),
        _outcome(tf, lambda: (tf.train.polynomial_decay(0.1, 3, 10, 0.5), {})),
    ]
