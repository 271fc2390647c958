"""Functions of tensors with ragged arguments: squeeze, one_hot, segments, batch_gather, strings.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""


def _shown(tf, session, value):
    """What a result is, as lists; the class of the error of running it."""
    if isinstance(value, (list, tuple)):
        return [_shown(tf, session, v) for v in value]
    try:
        found = session.run(value)
    except tf.errors.OpError as error:
        return type(error).__name__
    return found.to_list() if hasattr(found, "to_list") else found


def _all(tf, *calls):
    found = []
    with tf.Session() as session:
        for call in calls:
            try:
                found.append(_shown(tf, session, call()))
            except (TypeError, ValueError, tf.errors.OpError) as error:
                found.append(type(error).__name__)
    return found


def _rows(tf):
    return tf.ragged.constant([[1, 2], [], [3, 4, 5]])


def _deep(tf):
    return tf.ragged.constant([[[1.0], [2.0, 3.0]], [], [[4.0]]])


def broadcast(tf):
    r = tf.ragged.constant
    return _all(
        tf,
        lambda: r([[[1, 2], [3, 4]], [[5]]]) + r([[[10], [20]], [[30]]], ragged_rank=1),
        lambda: r([[[1]]]) + r([[1]]),
        lambda: r([[1, 2], [3]]) + [[10]],
        lambda: r([[1, 2], [3]]) * r([[1, 2], [3]]),
        lambda: tf.equal(r([[1, 2], [3]]), 2),
    )


def constants(tf):
    import numpy as np

    lists = [
        [[[1, 2], np.array([3, 4])], np.array([]), [[5, 6], [7, 8], [9, 0]]],
        [np.array([1, 2]), np.array([3.0]), [4, 5, 6]],
        [[], [], np.array([])],
        np.zeros((2, 0, 3)),
    ]
    values = [tf.ragged.constant_value(x) for x in lists]
    return [[v.to_list(), str(v.dtype), list(v.shape)] for v in values]


def squeezed(tf):
    columns = lambda: tf.ragged.constant([[[1], [2]], [[3]]])
    inner_one = lambda: tf.ragged.constant([[[1], [2]], [[3]]], ragged_rank=1)
    return _all(
        tf,
        lambda: tf.squeeze(columns(), [2]),
        lambda: tf.squeeze(columns(), -1),
        lambda: tf.squeeze(inner_one(), 2),
        lambda: tf.squeeze(tf.ragged.constant([[[1, 2], [3]]]), 0),
        lambda: tf.squeeze(tf.ragged.constant([[[1]]]), [0, 1, 2]),
        lambda: tf.squeeze(_rows(tf), 1),
        lambda: tf.squeeze(_rows(tf), 0),
        lambda: tf.squeeze(_rows(tf)),
        lambda: tf.squeeze(_rows(tf), 5),
        lambda: tf.squeeze(_rows(tf), [1.0]),
    )


def hot(tf):
    return _all(
        tf,
        lambda: tf.one_hot(_rows(tf), 3),
        lambda: tf.one_hot(_rows(tf), 3, on_value=5, off_value=1),
        lambda: tf.one_hot(_rows(tf), 3, axis=1),
        lambda: tf.one_hot(_rows(tf), 3, axis=-1, dtype=tf.bool),
    )


def segments(tf):
    floats = lambda: tf.cast(_rows(tf), tf.float32)
    found = []
    for name in ("sum", "prod", "min", "max", "mean", "sqrt_n"):
        f = getattr(tf.math, "unsorted_segment_" + name)
        found += _all(
            tf,
            lambda f=f: f(floats(), [1, 0, 1], 2),
            lambda f=f: f(floats(), [0, 0, 0], 1),
            lambda f=f: f(floats(), [2, 0, 2], 4),
            lambda f=f: f(_deep(tf), [1, 0, 1], 2),
        )
    same = lambda: tf.ragged.constant([[0, 1], [], [0, 0, 2]])
    return found + _all(
        tf,
        lambda: tf.unsorted_segment_sum(_rows(tf), same(), 3),
        lambda: tf.unsorted_segment_sum(tf.constant([1, 2]), same(), 3),
        lambda: tf.unsorted_segment_sum(_rows(tf), tf.ragged.constant([[0], [1], [2]]), 3),
    )


def partitions(tf):
    return _all(
        tf,
        lambda: tf.dynamic_partition(_rows(tf), [1, 0, 1], 2),
        lambda: tf.dynamic_partition(_rows(tf), [1, 0, 1], 3),
        lambda: tf.dynamic_partition(_rows(tf), [1, 0, 1], tf.constant(2)),
    )


def gathered_in_batches(tf):
    letters = lambda: tf.ragged.constant([["a", "b", "c"], ["d"], [], ["e"]])
    numbers = lambda: tf.ragged.constant([[1, 2, 0], [], [], [0, 0]], dtype=tf.int32)
    deep = lambda: tf.ragged.constant([[["a", "b"], ["c"]], [["d", "e", "f"]]])
    return _all(
        tf,
        lambda: tf.batch_gather(letters(), numbers()),
        lambda: tf.batch_gather(letters()[:2], [[2, 0], [0, 0]]),
        lambda: tf.batch_gather(letters(), [3, 0]),
        lambda: tf.batch_gather(tf.constant([[1, 2], [3, 4]]), tf.ragged.constant([[1], [0, 0]])),
        lambda: tf.batch_gather(deep(), tf.ragged.constant([[1, 0, 0], [0]])),
        lambda: tf.batch_gather(deep(), tf.ragged.constant([[[1, 0], [0]], [[2]]])),
        lambda: tf.batch_gather(tf.constant([1, 2]), tf.ragged.constant([[1], [0]])),
        lambda: tf.batch_gather(letters(), tf.constant(0)),
        lambda: tf.batch_gather(letters(), tf.placeholder(tf.int32)),
    )


def strings(tf):
    texts = lambda: tf.ragged.constant([["ab", "c"], [], ["def"]])
    return _all(
        tf,
        lambda: tf.reduce_join(texts(), axis=1, separator="-"),
        lambda: tf.reduce_join(texts(), axis=0),
        lambda: tf.reduce_join(texts(), axis=-1),
        lambda: tf.string_join([texts(), texts()], "+"),
        lambda: tf.strings.length(texts()),
        lambda: tf.strings.substr(texts(), 0, 1),
        lambda: tf.strings.upper(texts()),
        lambda: tf.decode_base64(tf.encode_base64(texts())),
    )


def numbers(tf):
    floats = lambda: tf.cast(_rows(tf), tf.float32) / 3.0
    return _all(
        tf,
        lambda: [f(floats()) for f in (tf.erf, tf.erfc, tf.lgamma, tf.digamma)],
        lambda: tf.check_numerics(floats(), "bad"),
        lambda: [tf.bitwise.invert(_rows(tf)), tf.bitwise.bitwise_and(_rows(tf), 6)],
        lambda: [f(_rows(tf), _rows(tf)) for f in (tf.bitwise.bitwise_or, tf.bitwise.bitwise_xor)],
        lambda: [f(_rows(tf), 1) for f in (tf.bitwise.left_shift, tf.bitwise.right_shift)],
        lambda: tf.real(tf.complex(floats(), floats())),
    )
