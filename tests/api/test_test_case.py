"""``tf.test.TestCase`` compares ragged tensors as TF 1.15's does."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf


@pytest.fixture
def case() -> Any:
    class Case(tf.test.TestCase):
        def runTest(self) -> None: ...

    with tf.Graph().as_default():
        yield Case()


def test_equal_rows(case: Any) -> None:
    x = tf.ragged.constant([[1, 2], [3]])
    with tf.Session().as_default() as session:
        case.assertAllEqual(x, [[1, 2], [3]])
        case.assertAllEqual([[1, 2], [3]], session.run(x))
        case.assertAllEqual(x, x)
        case.assertAllClose(tf.cast(x, tf.float32), [[1.0, 2.0], [3.0000001]])


@pytest.mark.parametrize("other", [[[1, 2], [4]], [[1, 2, 3]], [[1, 2, 3], [3]], [[1, 2]], 5])
def test_other_rows(case: Any, other: Any) -> None:
    x = tf.ragged.constant([[1, 2], [3]])
    with tf.Session().as_default():
        for check in (case.assertAllEqual, case.assertAllClose):
            with pytest.raises(AssertionError):
                check(x, other)
            with pytest.raises(AssertionError):
                check(other, x)


def test_a_ragged_and_a_dense_tensor_differ(case: Any) -> None:
    x = tf.ragged.constant([[1, 2], [3, 4]])
    with tf.Session().as_default():
        case.assertAllEqual(x, [[1, 2], [3, 4]])
        for check in (case.assertAllEqual, case.assertAllClose):
            with pytest.raises(AssertionError):
                check(x, tf.constant([[1, 2], [3, 4]]))
