"""Composites of training whose input is what a loop leaves behind come after the loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import headrace as tf


def _gelu(x: tf.Tensor) -> tf.Tensor:
    return 0.5 * x * (1.0 + tf.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * tf.pow(x, 3.0))))


def _softmax(x: tf.Tensor) -> tf.Tensor:
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


def _layer_norm(x: tf.Tensor) -> tf.Tensor:
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def _left(kind: str, x: tf.Tensor) -> tf.Tensor:
    """What a loop of two rounds, or a branch, leaves behind."""
    start = x * 0.5
    if kind == "branch":
        return tf.cond(tf.reduce_sum(x) > -1e9, lambda: tf.tanh(start) + x, lambda: start)
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 5])]
    return tf.while_loop(
        lambda i, h: i < 2, lambda i, h: [i + 1, tf.tanh(h) + x], [0, start], shapes
    )[1]


@pytest.mark.parametrize("spelling", [_gelu, _softmax, _layer_norm])
@pytest.mark.parametrize("kind", ["loop", "branch"])
@pytest.mark.parametrize("with_value", [False, True])
def test_gradients_through_what_a_loop_leaves(
    spelling: Callable[[tf.Tensor], tf.Tensor], kind: str, with_value: bool
) -> None:
    fed = np.linspace(-1.0, 1.0, 15).reshape(3, 5)
    found = []
    for executor in ("reference", "numpy"):
        with tf.Graph().as_default(), tf.Session(executor=executor) as session:
            x = tf.placeholder(tf.float64, [None, 5])
            y = spelling(_left(kind, x))
            loss = tf.reduce_sum(y * y) + tf.reduce_sum(tf.tanh(x))
            fetches = [tf.gradients(loss, x)[0], y][: 1 + with_value]
            for _ in range(3):
                values = session.run(fetches, {x: fed})
            found.append(values)
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
