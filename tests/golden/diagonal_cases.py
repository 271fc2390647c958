"""Diagonals other than the main one, several at once, and their gradients.

Run on TF 1.15 (make_cases.py) and on Headrace. TF 1.15 itself takes ``k`` only once its
compatibility horizon has passed.
"""

import numpy as np


def _matrices(*shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _later(tf, build):
    """Values and gradients (for weights 1, 2, …) of ``build(x)`` of a matrix or several."""
    with tf.compat.forward_compatibility_horizon(2019, 10, 1):
        with tf.Session() as sess:
            return build(sess)


def _with_gradient(tf, sess, make, *arrays):
    tensors = [tf.constant(a) for a in arrays]
    y = make(*tensors)
    found = [y.op.type, y.shape.as_list(), sess.run(y)]
    weights = tf.constant(_matrices(*found[2].shape))
    return found + sess.run(tf.gradients(y * weights, tensors))


def _outcome(tf, build):
    try:
        with tf.Session() as sess:
            return sess.run(build())
    except Exception as error:
        return type(error).__name__


BANDS = [1, -1, 2, (0, 0), (0, 1), (-1, 0), (-1, 1), (-2, 1), (-1, 2), (1, 2), (-2, -1)]


def parts(tf):
    def build(sess):
        found = []
        for shape in ((3, 4), (4, 3), (2, 3, 3)):
            for k in BANDS:
                part = lambda x, k=k: tf.matrix_diag_part(x, k=k, padding_value=9.0)
                found.append(_with_gradient(tf, sess, part, _matrices(*shape)))
        return found

    return _later(tf, build)


def matrices_of_diagonals(tf):
    def build(sess):
        found = []
        for k in BANDS:
            number = 1 if isinstance(k, int) else k[1] - k[0] + 1
            shape = (2, 3) if number == 1 else (2, number, 3)
            for rows, cols in ((-1, -1), (6, -1), (-1, 7)):
                diag = lambda x, k=k, r=rows, c=cols: tf.matrix_diag(
                    x, k=k, num_rows=r, num_cols=c, padding_value=7.0
                )
                try:
                    found.append(_with_gradient(tf, sess, diag, _matrices(*shape)))
                except ValueError:
                    found.append("ValueError")
        return found

    return _later(tf, build)


def replaced_diagonals(tf):
    def build(sess):
        found = []
        for rows, cols in ((3, 4), (4, 3)):
            for k in BANDS:
                low, high = (k, k) if isinstance(k, int) else k
                width = min(rows + min(high, 0), cols - max(low, 0))
                shape = (width,) if low == high else (high - low + 1, width)
                new = lambda x, d, k=k: tf.matrix_set_diag(x, d, k=k)
                arrays = _matrices(2, rows, cols), -_matrices(2, *shape)
                found.append(_with_gradient(tf, sess, new, *arrays))
        return found

    return _later(tf, build)


def fed_diagonals(tf):
    """Bands, sizes and shapes that are known only when the run begins."""

    def build(sess):
        x, k, n = (tf.placeholder(t) for t in (tf.float32, tf.int32, tf.int32))
        d = tf.placeholder(tf.float32)
        made = [
            tf.linalg.diag_part(x, k=k),
            tf.linalg.set_diag(x, d, k=k),
            tf.linalg.diag(d, k=k, num_rows=n, num_cols=-1),
        ]
        loss = tf.add_n([tf.reduce_sum(m * m) for m in made])
        found = [m.shape.ndims for m in made]
        for band, diagonal, rows in (
            (1, _matrices(3), 4),
            ([-1, 1], _matrices(3, 3), 4),
            ([0, 1], _matrices(2, 3), 3),
        ):
            feeds = {x: _matrices(3, 4), k: band, d: diagonal, n: rows}
            found.append(sess.run(made + tf.gradients(loss, [x, d]), feeds))
        return found

    return _later(tf, build)


def refusals(tf):
    def build(sess):
        x, fed = (
            tf.zeros([3, 4]),
            lambda v: tf.placeholder_with_default(np.array(v, np.int32), None),
        )
        calls = [
            lambda: tf.matrix_diag_part(x, k=4),
            lambda: tf.matrix_diag_part(x, k=fed(4)),
            lambda: tf.matrix_diag_part(x, k=-3),
            lambda: tf.matrix_diag_part(x, k=fed([2, 1])),
            lambda: tf.matrix_diag_part(x, k=(1, 0)),
            lambda: tf.matrix_diag_part(x, k=[0, 1, 2]),
            lambda: tf.matrix_diag_part(x, k=fed([0, 1, 2])),
            lambda: tf.matrix_diag_part(x[0], k=1),
            lambda: tf.matrix_set_diag(x, [1.0, 2.0], k=1),
            lambda: tf.matrix_set_diag(x, [1.0] * 3, k=1),
            lambda: tf.matrix_set_diag(x, [1.0] * 3, k=(0, 1)),
            lambda: tf.matrix_set_diag(x, [1.0, 2.0], k=fed(1)),
            lambda: tf.matrix_diag([1.0, 2.0], k=(0, 1)),
            lambda: tf.matrix_diag([1.0, 2.0], k=1, num_rows=2),
            lambda: tf.matrix_diag([1.0, 2.0], k=1, num_rows=fed(2)),
            lambda: tf.matrix_diag([1.0, 2.0], num_cols=1),
            lambda: tf.matrix_diag([1.0, 2.0], num_rows=4, num_cols=4),
            lambda: tf.matrix_diag([1.0], k=fed(5)),
            lambda: tf.matrix_diag([1, 2], k=1, padding_value=3),
            lambda: tf.matrix_diag(np.array([True, False]), k=-1),
            lambda: tf.matrix_diag([1.0, 2.0], k=1, padding_value=[1.0]),
        ]
        return [_outcome(tf, call) for call in calls]

    return _later(tf, build)
