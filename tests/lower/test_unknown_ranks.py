"""Products and activations of tensors whose rank is known only at the run, and of scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tools.differential.program_ops import SAME

import headrace as tf


def test_products_of_unknown_rank_with_and_without_what_follows() -> None:
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    w, bias = tf.constant(np.eye(3, dtype=np.float32) * 2), tf.constant([1.0, -20.0, 3.0])
    results = [
        tf.matmul(a, w),
        tf.matmul(b, w) + bias,
        tf.nn.relu(tf.matmul(a, w) + bias),
        tf.tanh(tf.matmul(b, w) + bias),
        tf.matmul(w, a, transpose_a=True),
    ]
    x, y = np.ones((3, 3), np.float32), np.full((3, 3), 0.25, np.float32)
    beyond = np.float32([1, -20, 3])
    wanted = [x * 2, y * 2 + beyond, np.maximum(x * 2 + beyond, 0), np.tanh(y * 2 + beyond), x * 2]
    with tf.Session() as session:
        for _ in range(3):
            for found, want in zip(session.run(results, {a: x, b: y}), wanted):
                np.testing.assert_allclose(found, want, 1e-6)


@pytest.mark.parametrize("name", sorted(SAME))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions_of_scalars_and_of_nothing(name: str, dtype: str) -> None:
    """A function of a scalar, however it is fused, is that of a vector of one."""
    values: list[Any] = []
    for shape in ([1], [], [0], [1, 1]):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(dtype, shape)
            v = tf.Variable(tf.zeros(shape, dtype))
            y = [SAME[name](tf, x), SAME[name](tf, v + x)]
            both = [*y, *(g for g in tf.gradients(y[0], x) if g is not None)]
            session.run(tf.global_variables_initializer())
            fed = np.full(shape, 0.3, dtype)
            for _ in range(3):
                found = session.run(both, {x: fed})
                assert all(f.shape == tuple(shape) and f.dtype == dtype for f in found), name
            values.append(np.array([f.reshape(-1)[0] for f in found]) if fed.size else None)
    tolerance = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for other in values[1:]:
        if other is not None:
            np.testing.assert_allclose(other, values[0], tolerance)
