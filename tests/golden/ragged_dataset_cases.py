"""Datasets whose elements are ragged tensors.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _shown(value):
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_shown(v) for v in value]
    return value.to_list() if hasattr(value, "to_list") else np.asarray(value).tolist()


def _elements(tf, dataset):
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    shapes = [t.shape.ndims for t in tf.nest.flatten(following)]
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while True:
            try:
                found.append(_shown(session.run(following)))
            except tf.errors.OutOfRangeError:
                return [shapes, found]


def _rows(tf):
    return tf.ragged.constant([[1, 2], [], [3], [4, 5, 6]])


def _deep(tf):
    return tf.ragged.constant([[["a"], ["b", "c"]], [], [[], ["d"]], [["e"]]])


def whole(tf):
    data = tf.data.Dataset
    return [
        _elements(tf, data.from_tensors(_rows(tf))),
        _elements(tf, data.from_tensors({"a": _deep(tf), "b": (1, _rows(tf))})),
        _elements(tf, data.from_tensors(_rows(tf)).repeat(2).batch(2)),
        _elements(tf, data.from_tensors(_deep(tf)).map(lambda r: r[1:])),
        _elements(tf, data.from_tensors(tf.ragged.constant_value([[1], [2, 3]]))),
    ]


def slices(tf):
    data = tf.data.Dataset
    return [
        _elements(tf, data.from_tensor_slices(_deep(tf))),
        _elements(tf, data.from_tensor_slices(_rows(tf)).batch(3)),
        _elements(tf, data.from_tensor_slices((_deep(tf), [1, 2, 3, 4])).batch(2)),
        _elements(tf, data.from_tensor_slices((_deep(tf), _rows(tf))).batch(3, True)),
        _elements(tf, data.from_tensor_slices(_deep(tf)).batch(2).batch(2)),
        _elements(tf, data.from_tensor_slices(_deep(tf)).skip(1).take(2)),
    ]


def taken_apart(tf):
    data = tf.data.Dataset
    return [
        _elements(tf, data.from_tensor_slices(_deep(tf)).batch(3).unbatch()),
    ]


def changed(tf):
    data = tf.data.Dataset
    number = lambda r: tf.size(r.flat_values)
    return [
        _elements(tf, data.from_tensor_slices(_deep(tf)).filter(lambda r: number(r) > 0)),
        _elements(tf, data.from_tensor_slices(_deep(tf)).map(lambda r: (r, r.nrows())).batch(4)),
        _elements(
            tf,
            data.zip((data.from_tensor_slices(_deep(tf)), data.range(4)))
            .shuffle(4, seed=3)
            .take(0),
        ),
    ]


def refusals(tf):
    def kind(call):
        try:
            call()
        except Exception as error:
            return type(error).__name__
        return "nothing"

    data = tf.data.Dataset.from_tensor_slices(_deep(tf))
    return [
        kind(lambda: data.padded_batch(2, [None])),
        kind(lambda: tf.data.Dataset.from_tensor_slices((_rows(tf), [1, 2]))),
    ]
