"""Products over one number, products with a factor in common, and equal folded constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.rewrite.rewriting import ops_of, same

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_a_column_times_a_row(turned: tuple[bool, bool]) -> None:
    x = tf.placeholder(tf.float32, [1, 200] if turned[0] else [200, 1])
    w = tf.Variable(RNG.normal(size=(100, 1) if turned[1] else (1, 100)).astype(np.float32))
    y = tf.tanh(tf.matmul(x, w, transpose_a=turned[0], transpose_b=turned[1]))
    assert "MatMul" not in ops_of(y, [x])
    same(y, {x: RNG.normal(size=x.shape.as_list())}, 1e-6)


def test_small_or_unknown_ones_stay_products() -> None:
    w = tf.Variable(np.ones((1, 100), np.float32))
    for rows in (None, 10):
        x = tf.placeholder(tf.float32, [rows, 1])
        assert "MatMul" in ops_of(tf.matmul(x, w), [x])


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("right", [False, True])
def test_a_common_factor(others: int, right: bool) -> None:
    a, b, shared = (tf.placeholder(tf.float32, [300, 40]) for _ in range(3))
    both = [tf.matmul(*((shared, v) if right else (v, shared)), transpose_a=True) for v in (a, b)]
    rest = [tf.ones([40, 40]) * (n + 1.0) * a[0, 0] for n in range(others)]
    y = tf.add_n([*both, *rest])
    assert ops_of(y, [a, b, shared]).count("MatMul") == 1
    same(y, {v: RNG.normal(size=(300, 40)) for v in (a, b, shared)}, 1e-4)


def test_a_product_that_others_use_is_not_joined() -> None:
    a, b, shared = (tf.placeholder(tf.float32, [30, 4]) for _ in range(3))
    first, second = (tf.matmul(v, shared, transpose_a=True) for v in (a, b))
    fetches = [first + second, first]
    assert ops_of(fetches, [a, b, shared]).count("MatMul") == 2


def test_gradients_of_the_same_ones_are_computed_once() -> None:
    x, t = (tf.placeholder(tf.float32, [500, 1]) for _ in range(2))
    w = tf.Variable(RNG.normal(size=(2, 50)).astype(np.float32))
    v = tf.Variable(RNG.normal(size=(50, 3)).astype(np.float32))
    y = tf.matmul(tf.tanh(tf.matmul(tf.concat([x, t], 1), w)), v)
    by_x, by_t = tf.gradients(y, x)[0], tf.gradients(y, t)[0]
    ops = ops_of([by_x, by_t], [x, t])
    assert ops.count("TanhGrad") == 1 and ops.count("ConcatOffset") == 0
    same([by_x, by_t], {x: RNG.normal(size=(500, 1)), t: RNG.normal(size=(500, 1))}, 1e-4)


def test_factors_that_cancel() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.exp(2.0 * x / 2.0)
    assert "Mul" not in ops_of(y, [x])
    same(y, {x: RNG.normal(size=(4, 3))})


@pytest.mark.parametrize("length", [2, 3, 4])
@pytest.mark.parametrize("size", [tf.square, tf.abs])
def test_distances_of_all_pairs(length: int, size: Any) -> None:
    points = tf.placeholder(tf.float32, [2000, length])
    centres = tf.Variable(RNG.normal(size=(12, length)).astype(np.float32))
    apart = points[None] - centres[:, None]
    y = tf.reduce_sum(size(apart), -1)
    assert "Sum" not in ops_of(y, [points])
    same(y, {points: RNG.normal(size=(2000, length))}, 1e-6)


def test_other_sums_stay() -> None:
    points = tf.placeholder(tf.float32, [2000, 2])
    for y in (
        tf.reduce_sum(tf.square(points - 1.0), 1),  # no pairs
        tf.reduce_sum(tf.square(points[None] - points[:10, None]), 1),  # another axis
    ):
        assert "Sum" in ops_of(y, [points])
