"""Sparse softmax cross entropy.

The forms that its kernel takes by the number of classes and rows agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

RNG = np.random.RandomState(0)


def run(logits: Any, labels: Any) -> tuple[Any, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(logits.dtype, logits.shape)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
        return tuple(session.run([loss, tf.gradients(loss, x)[0]], {x: logits}))


def expected(logits: Any, labels: Any) -> tuple[Any, Any]:
    wide = logits.astype(np.float64)
    shifted = wide - wide.max(-1, keepdims=True)
    p = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    rows = np.arange(len(labels))
    loss = np.log(np.exp(shifted).sum(-1)) - shifted[rows, labels]
    p[rows, labels] -= 1
    return loss, p


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 16, 40])
@pytest.mark.parametrize("rows", [0, 1, 7, 300, 5000])
@pytest.mark.parametrize("scale", [1, 200])
def test_every_size(rows: int, classes: int, scale: float, dtype: Any) -> None:
    logits = (RNG.randn(rows, classes) * scale).astype(dtype)
    labels = RNG.randint(0, classes, rows).astype(np.int32)
    for got, want in zip(run(logits, labels), expected(logits, labels)):
        assert got.dtype == dtype
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_row_that_is_not_finite(classes: int, odd: float) -> None:
    logits = RNG.randn(4, classes).astype(np.float32)
    logits[2, 1] = odd
    loss, gradient = run(logits, np.array([0, 1, 1, 0], np.int32))
    assert np.isnan(loss[2]) and np.isnan(gradient[2]).all()
    assert np.isfinite(loss[[0, 1, 3]]).all() and np.isfinite(gradient[[0, 1, 3]]).all()


@pytest.mark.parametrize("label", [-1, 2])
def test_wrong_label_of_two(label: int) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"label value of {label} which is outside"
    ):
        run(np.zeros((3, 2), np.float32), np.array([0, label, 1], np.int32))


#: Logits of two classes, label 0: the loss and the derivatives by both, as TensorFlow 2.21 gives
#: them.
ODD = [
    ((0.0, -np.inf), (0.0, 0.0, 0.0)),
    ((-np.inf, 0.0), (np.inf, -1.0, 1.0)),
    ((np.inf, 0.0), (np.nan, np.nan, np.nan)),
    ((0.0, np.inf), (np.nan, np.nan, np.nan)),
    ((-np.inf, -np.inf), (np.nan, np.nan, np.nan)),
    ((np.nan, -np.inf), (np.nan, np.nan, np.nan)),
    ((3e38, -3e38), (0.0, 0.0, 0.0)),
    ((-3e38, 3e38), (np.inf, -1.0, 1.0)),
    ((0.0, 100.0), (100.0, -1.0, 1.0)),
    ((100.0, 0.0), (0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("alone", [True, False])
def test_odd_logits_of_two(label: int, alone: bool) -> None:
    """Each row by itself, and all together: a row must not depend on the others."""
    logits = np.array([row for row, _ in ODD], np.float32)
    want = np.array([result for _, result in ODD], np.float32)
    if label:
        logits, want = logits[:, ::-1].copy(), want[:, [0, 2, 1]]
    labels = np.full(len(ODD), label, np.int32)
    parts = [[i] for i in range(len(ODD))] if alone else [list(range(len(ODD)))]
    for rows in parts:
        loss, gradient = run(logits[rows], labels[rows])
        np.testing.assert_allclose(loss, want[rows, 0], atol=1e-6)
        np.testing.assert_allclose(gradient, want[rows, 1:], atol=1e-6)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_two_classes_however_the_logits_lie(order: str) -> None:
    logits = RNG.randn(9, 2).astype(np.float32)
    labels = RNG.randint(0, 2, 9).astype(np.int32)
    given = np.repeat(logits, 2, 1)[:, ::2] if order == "strided" else logits.copy(order)  # type: ignore[arg-type]
    for got, want in zip(run(given, labels), expected(logits, labels)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(given, logits)
