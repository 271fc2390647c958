"""Chains of element-wise operations that end in a reduction.

One step, the same numbers, whatever the threads.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.tensor import Tensor
from headrace.executors import options_for
from headrace.kernels.numpy import blocks
from headrace.lower import reduced_code as reduced

RNG = np.random.RandomState(0)


def run(fetch: Any, feed: dict[Any, Any], **options: Any) -> Any:
    session = tf.Session()
    session._options = options_for(**options)
    return session.run(fetch, feed)


def kinds(fetch: Tensor, feeds: list[Tensor]) -> list[str]:
    return [s.op_type for s in tf.Session().explain(fetch, feeds).steps]


REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("columns", [1, 3, 700, 3000])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_over_the_last_axis(reduce: Any, columns: int, keep: bool, dtype: str) -> None:
    x = tf.placeholder(tf.as_dtype(dtype), [None, columns])
    b = tf.placeholder(tf.as_dtype(dtype), [columns])
    y = reduce(tf.square(x + b) * 0.5, -1, keepdims=keep)
    steps = kinds(y, [x, b])
    if columns > 1:
        assert len(steps) == 1 and steps[0].split(" + ")[-1] in ("Sum", "Mean", "Max", "Min")
    rows = 300000 // columns + 1
    feed = {x: RNG.randn(rows, columns), b: RNG.randn(columns)}
    got, want = run(y, feed), run(y, feed, executor="reference")
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, 1e-5 if dtype == "float32" else 1e-12)
    small = {x: feed[x][:2], b: feed[b]}
    np.testing.assert_allclose(run(y, small), run(y, small, executor="reference"), 1e-5)


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean])
def test_over_few_elements(reduce: Any) -> None:
    """(A separate step sums a short vector by BLAS, whose order is another one.)"""
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    loss = reduce(tf.square(x - y) * 0.5)
    feed = {x: RNG.randn(10), y: RNG.randn(10)}
    np.testing.assert_allclose(run(loss, feed), run(loss, feed, fusion=False), 1e-6)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean])
@pytest.mark.parametrize("n", [131072, 131073, 1000003])
def test_over_everything_has_the_bits_of_separate_steps(n: int, reduce: Any, keep: bool) -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    loss = reduce(tf.square(x - y) * 0.5, keepdims=keep)
    assert len(kinds(loss, [x, y])) == 1
    feed = {x: RNG.randn(n), y: RNG.randn(n)}
    got, apart = run(loss, feed), run(loss, feed, fusion=False)
    assert got.shape == apart.shape and got.dtype == apart.dtype
    assert np.asarray(got).tobytes() == np.asarray(apart).tobytes()
    np.testing.assert_allclose(got, run(loss, feed, executor="reference"), 1e-5)


def test_nan_and_infinity() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    given = RNG.randn(100000, 4).astype(np.float32)
    given[5, 1], given[7, 2], given[9, 3] = np.nan, np.inf, -np.inf
    for reduce in REDUCTIONS:
        y = reduce(x * 2.0 + 1.0, 1)
        got, want = run(y, {x: given}), run(y, {x: given}, executor="reference")
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    assert np.isnan(run(tf.reduce_sum(x * 2.0 + 1.0), {x: given}))


@pytest.mark.parametrize("axis", [None, -1])
def test_threads_change_nothing(axis: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 50])
    y = tf.reduce_sum(tf.tanh(x) * 2.0, axis)
    feed = {x: RNG.randn(20011, 50)}
    before = blocks.thread_count()
    results = []
    try:
        for n in (1, 2, 5):
            blocks.set_threads(n)
            results.append(np.asarray(run(y, feed)).tobytes())
    finally:
        blocks.set_threads(before)
    assert len(set(results)) == 1


def test_what_broadcasts_or_is_used_elsewhere() -> None:
    x, column = tf.placeholder(tf.float32, [None, 400]), tf.placeholder(tf.float32, [None, 1])
    for y in (tf.reduce_sum(tf.square(x - column), 1), tf.reduce_sum(tf.square(x - column))):
        feed = {x: RNG.randn(1000, 400), column: RNG.randn(1000, 1)}
        np.testing.assert_allclose(run(y, feed), run(y, feed, executor="reference"), 1e-4)
    square = tf.square(x) * 2.0
    both = [tf.reduce_sum(square, 1), square]
    feed = {x: RNG.randn(1000, 400)}
    for got, want in zip(run(both, feed), run(both, feed, executor="reference")):
        np.testing.assert_allclose(got, want, 1e-4)
    assert "Sum" in kinds(both, [x])[-1:]  # type: ignore[arg-type]


def test_transposed_inputs_and_other_axes() -> None:
    x = tf.placeholder(tf.float32, [None, 500])
    feed = {x: np.asarray(RNG.randn(500, 600).T, order="F")}
    for axis in (0, 1, None, [0, 1], [1]):
        y = tf.reduce_sum(tf.square(x) + 1.0, axis)
        np.testing.assert_allclose(run(y, feed), run(y, feed, executor="reference"), 1e-4)


def test_an_error_in_the_chain_names_its_operation() -> None:
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(tf.exp(tf.add(a, b, name="sum_of_both")))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as e:
        session.run(y, {a: np.ones(200000), b: np.ones(3)})
    assert "sum_of_both" in str(e.value)


def test_halves_cover_everything() -> None:
    for n in (1, 127, 128, 129, 1000, 4096, 99999):
        leaves: list[tuple[int, int]] = []
        reduced._halves(0, n, 128, leaves)
        assert leaves[0][0] == 0 and leaves[-1][1] == n
        assert all(a[1] == b[0] for a, b in itertools.pairwise(leaves))
