"""A loop variable that grows by concat is appended to in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def grown(start: Any, axis: int, steps: int, executor: str, use: str = "last") -> Any:
    with tf.Graph().as_default(), tf.Session(executor=executor) as session:
        past = tf.placeholder(tf.float32, [None] * np.ndim(start))
        shape = [None] * np.ndim(start)

        def body(i: Any, past: Any, total: Any) -> Any:
            piece = tf.reduce_sum(past, axis, keepdims=True) + tf.cast(i, tf.float32)
            longer = tf.concat([past, piece], axis)
            seen = tf.reduce_sum(longer) if use == "new" else tf.reduce_sum(past)
            return i + 1, longer, total + seen

        loop = tf.while_loop(
            lambda i, *_: i < steps,
            body,
            [0, past, 0.0],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(shape), tf.TensorShape([])],
        )
        source = ""
        if executor == "numpy":
            source = session.explain(loop[1:], [past]).source
        return session.run(loop[1:], {past: start}), source


@pytest.mark.parametrize("use", ["last", "new"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_same_as_copying(axis: int, use: str) -> None:
    start = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32) * 1e-3
    (got, total), source = grown(start, axis, 9, "numpy", use)
    (want, want_total), _ = grown(start, axis, 9, "reference", use)
    assert ".append(" in source
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(total, want_total, rtol=1e-4)
    assert got.flags.c_contiguous and got.flags.owndata
    np.testing.assert_array_equal(
        start, np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32) * 1e-3
    )


def test_an_empty_start_and_many_steps() -> None:
    (got, _), _ = grown(np.zeros((0, 2), np.float32), 0, 200, "numpy")
    (want, _), _ = grown(np.zeros((0, 2), np.float32), 0, 200, "reference")
    np.testing.assert_array_equal(got, want)
    assert got.shape == (200, 2)


def test_gradient_through_it() -> None:
    results = []
    for executor in ("numpy", "reference"):
        with tf.Graph().as_default(), tf.Session(executor=executor) as session:
            x = tf.placeholder(tf.float32, [2, 3])
            loop = tf.while_loop(
                lambda i, p: i < 4,
                lambda i, p: (i + 1, tf.concat([p, tf.reduce_sum(p * p, 0, keepdims=True)], 0)),
                [0, x],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
            )
            grad = tf.gradients(tf.reduce_sum(loop[1]), x)[0]
            results.append(session.run([loop[1], grad], {x: np.full((2, 3), 0.3, np.float32)}))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_the_old_value_used_twice() -> None:
    """Two appended versions of one past do not overwrite each other."""
    results = []
    for executor in ("numpy", "reference"):
        with tf.Graph().as_default(), tf.Session(executor=executor) as session:

            def body(i: Any, a: Any, b: Any) -> Any:
                row = tf.fill([1], tf.cast(i, tf.float32))
                return i + 1, tf.concat([a, row], 0), tf.concat([a, -row], 0)

            free = tf.TensorShape([None])
            loop = tf.while_loop(
                lambda i, *_: i < 5,
                body,
                [0, tf.zeros([1]), tf.zeros([1])],
                shape_invariants=[tf.TensorShape([]), free, free],
            )
            results.append(session.run(loop))
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)
