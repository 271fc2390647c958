"""Constants, conditions, shapes and loops that TF 1.15 takes or refuses, with what it says.

With TF 1.15, ``python constant_cases.py`` writes constant_cases.json next to this file.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np


def _lists() -> dict[str, Any]:
    f64, i64, i8, f16 = np.float64, np.int64, np.int8, np.float16
    return {
        "float64 scalar": [f64(1)],
        "float64 and int": [f64(1), 2],
        "int and float64": [2, f64(1)],
        "int64 and float": [i64(1), 2.5],
        "int16 and float": [np.int16(1), 2.5],
        "int64": [i64(1), i64(2)],
        "large int64": [i64(2**40), 1],
        "int8 and int": [i8(1), 2],
        "two int8": [i8(1), i8(2)],
        "uint8 and int8": [np.uint8(1), i8(1)],
        "float16 and int": [f16(1), 2],
        "two float16": [f16(1), f16(1)],
        "float32 and float64": [np.float32(1), f64(2)],
        "nested float64": [[f64(1)], [f64(3)]],
        "bytes of numpy": [np.bytes_(b"a")],
        "ragged ints": [[1], [2, 3]],
        "ragged floats": [[1.0], [2.0, 3]],
        "ragged strings": [["a"], ["b", "c"]],
        "number and list": [1, [2]],
        "list and number": [[1], 2],
        "ragged and mixed": [[1.5], [2, "a"]],
        "ragged with None": [[None], [1, 2]],
        "empty and one": [[], [1]],
        "tuple and list": (1, [2, 3.5]),
    }


def _calls(tf: Any) -> dict[str, Callable[[], Any]]:
    def loop(body: Callable[..., Any], start: Any, limit: int | None = 2) -> Any:
        return tf.while_loop(lambda i, *_: i < 3, body, start, maximum_iterations=limit)

    def cond(pred: Any) -> Any:
        return tf.cond(pred, lambda: tf.constant(1), lambda: tf.constant(2))

    ints = tf.zeros([0], tf.int32)
    square = tf.zeros([3, 3])
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 0.5]], np.float32)
    calls: dict[str, Callable[[], Any]] = {
        "limited loop, list and tuple": lambda: loop(lambda i, x: (i + 1, x * 2.0), [0, 1.0]),
        "limited loop, two lists": lambda: loop(lambda i, x: [i + 1, x * 2.0], [0, 1.0]),
        "limited loop, two tuples": lambda: loop(lambda i, x: (i + 1, x * 2.0), (0, 1.0)),
        "limited loop, one and a list": lambda: loop(lambda i: [i + 1], [0]),
        "limited loop, one": lambda: loop(lambda i: i + 1, [0]),
        "loop, list and tuple": lambda: loop(lambda i, x: (i + 1, x * 2.0), [0, 1.0], None),
        "no loop variable": lambda: loop(lambda i: i + 1, 0, None),
        "cond of a list": lambda: cond([True]),
        "cond of an array": lambda: cond(np.array(True)),
        "cond of a float array": lambda: cond(np.float32(1)),
        "cond of an int tensor": lambda: cond(tf.constant(1)),
        "cond of a string": lambda: cond("a"),
        "cond of a variable": lambda: cond(tf.Variable(1)),
        "broadcast of nothing": lambda: tf.broadcast_to(tf.zeros([0]), [3, 2]),
        "broadcast of three": lambda: tf.broadcast_to(tf.zeros([3]), [3, 2]),
        "repeat -2 times": lambda: tf.repeat([1, 2], -2, 0),
        "repeat twice": lambda: tf.repeat([1, 2], 2, 0),
        "tile by a list": lambda: tf.tile([1, 2], [-2]),
        "tile by a tensor": lambda: tf.tile([1, 2], [tf.constant(-2)]),
        "fill by a tensor": lambda: tf.fill([tf.constant(-2)], 1),
        "batches of gather": lambda: tf.gather(tf.zeros([1, 2]), tf.constant([0, 0]), batch_dims=1),
        "other batches of batch_gather": lambda: tf.batch_gather(
            tf.zeros([2, 5, 4]), tf.zeros([4, 4], tf.int32)
        ),
        "batch_gather": lambda: tf.batch_gather(square, tf.constant([[0], [1], [2]])),
        "-1 batches of a scalar": lambda: tf.gather(square, tf.constant(0), batch_dims=-1),
        "diagonals of other batches": lambda: tf.matrix_set_diag(
            tf.zeros([2, 1, 3]), tf.zeros([4, 1])
        ),
        "crop to one number": lambda: tf.image.crop_and_resize(
            tf.zeros([1, 4, 4, 1]), tf.zeros([1, 4]), [0], [2]
        ),
        "boxes on two channels": lambda: tf.image.draw_bounding_boxes(
            tf.zeros([1, 5, 5, 2]), tf.zeros([1, 1, 4])
        ),
        "glimpse of another batch": lambda: tf.image.extract_glimpse(
            tf.zeros([1, 5, 5, 3]), [2, 2], tf.zeros([2, 2])
        ),
        "glimpse of three numbers": lambda: tf.image.extract_glimpse(
            tf.zeros([1, 5, 5, 3]), [2, 2, 2], tf.zeros([1, 2])
        ),
        "tensordot over no axis of b": lambda: tf.tensordot(square, tf.zeros([3]), 2),
        "tensordot over no axis of a": lambda: tf.tensordot(tf.zeros([3]), square, 2),
        "tensordot of axes 0 and 2": lambda: tf.tensordot(square, square, [[0], [2]]),
        "tensordot of axes 2 and 0": lambda: tf.tensordot(square, square, [[2], [0]]),
        "tensordot of axes -1 and 0": lambda: tf.tensordot(square, square, [[-1], [0]]),
        "tensordot over 1.5": lambda: tf.tensordot(square, square, 1.5),
        "statistics over no axis": lambda: tf.nn.sufficient_statistics(tf.zeros([3]), [1])[0],
        "scan of numbers": lambda: tf.scan(lambda a, x: a, [1.0, 2.0]),
        "map of numbers": lambda: tf.map_fn(lambda x: x, [1.0, 2.0]),
        "nothing divided by 0": lambda: tf.truncatediv(ints, 0),
        "nothing modulo 0": lambda: tf.floormod(ints, 0),
        "image of complex numbers": lambda: tf.image.convert_image_dtype(
            tf.zeros([2, 2, 3]), tf.complex64
        ),
        "default that is no scalar": lambda: tf.sparse_to_dense([0], [5], ["a"], ["b"]),
        "integers resized and padded": lambda: tf.image.resize_image_with_pad([[[5, 9]]], 1, 3),
        "suppression without a limit": lambda: tf.image.non_max_suppression(
            boxes, np.float32([0.5, 0.6]), -1
        ),
        "exponential of uint8": lambda: tf.linalg.expm(tf.constant(np.zeros((2, 2), np.uint8))),
        "exponential of int32": lambda: tf.linalg.expm(tf.constant(np.zeros((2, 2), np.int32))),
    }
    for name, value in _lists().items():
        for kind in (None, tf.float32, tf.int32, tf.bool, tf.string):
            label = f"{name} as {kind.name if kind is not None else 'it is'}"
            calls[label] = functools.partial(tf.constant, value, kind)
    return calls


def outcome(tf: Any, call: Callable[[], Any]) -> list[Any]:
    """The type, shape and value of a call, or the class of its error and when it came."""
    when = "build"
    with tf.Session() as session:
        try:
            made = call()
            when = "run"
            tensors = list(made) if isinstance(made, (list, tuple)) else [made]
            values = [np.asarray(v) for v in session.run(tensors)]
        except Exception as error:
            return [when, type(error).__name__]
    out = []
    for t, v in zip(tensors, values):
        listed = [x.decode() if isinstance(x, bytes) else x for x in v.reshape(-1).tolist()]
        out.append([t.dtype.base_dtype.name, list(v.shape), listed])
    return out


@functools.lru_cache(maxsize=None)
def outcomes(tf: Any) -> dict[str, Any]:
    """What every case gives."""
    found = {}
    for name in list(_calls(tf)):
        with tf.Graph().as_default():
            found[name] = outcome(tf, _calls(tf)[name])
    return found


if __name__ == "__main__":
    import tensorflow

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "constant_cases.json")
    with open(path, "w") as file:
        json.dump(outcomes(tensorflow), file, indent=0, sort_keys=True)
        file.write("\n")
