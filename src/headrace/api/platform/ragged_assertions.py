"""How ``tf.test.TestCase`` compares ragged tensors: row by row, as lists in lists.

self.assertAllEqual(tf.ragged.constant([[1, 2], [3]]), [[1, 2], [3]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.tensor import Tensor
from headrace.ops.ragged.ragged_tensor import RaggedTensor
from headrace.ops.ragged.ragged_value import RaggedTensorValue

if TYPE_CHECKING:
    from headrace.api.platform.test import TestCase

__all__ = ["any_is_ragged", "assert_rows_close", "assert_rows_equal"]


def any_is_ragged(*values: object) -> bool:
    """Whether one of the compared values is a ragged tensor or the value of one."""
    return any(isinstance(v, (RaggedTensor, RaggedTensorValue)) for v in values)


def assert_rows_equal(case: TestCase, a: object, b: object, msg: str | None) -> None:
    """``a`` and ``b``, of which one is ragged at least, have the same rows."""
    case.assertEqual(_rows(case, a), _rows(case, b), msg)
    _assert_same_ragged_rank(case, a, b, msg)


def assert_rows_close(
    case: TestCase, a: object, b: object, rtol: float, atol: float, msg: str | None
) -> None:
    """``a`` and ``b`` have rows of the same lengths, whose elements are close."""
    _assert_lists_close(case, _rows(case, a), _rows(case, b), rtol, atol, msg, "value")
    _assert_same_ragged_rank(case, a, b, msg)


def _rows(case: TestCase, value: object) -> Any:
    if isinstance(value, (Tensor, RaggedTensor)):
        value = case.evaluate(value)
    if isinstance(value, RaggedTensorValue):
        return value.to_list()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _assert_same_ragged_rank(case: TestCase, a: object, b: object, msg: str | None) -> None:
    """Lists do not say in how many dimensions they are ragged."""
    if not isinstance(a, (list, tuple)) and not isinstance(b, (list, tuple)):
        case.assertEqual(getattr(a, "ragged_rank", 0), getattr(b, "ragged_rank", 0), msg)


def _assert_lists_close(
    case: TestCase, a: Any, b: Any, rtol: float, atol: float, msg: str | None, where: str
) -> None:
    is_list = isinstance(a, (list, tuple))
    same = is_list == isinstance(b, (list, tuple))
    case.assertTrue(same, f"Only one of both is a list at {where}. {msg or ''}")
    if not is_list:
        case.assertAllClose(a, b, rtol, atol, f"{where} {msg or ''}")
        return
    case.assertEqual(len(a), len(b), f"Length differs for {where}. {msg or ''}")
    for i, (x, y) in enumerate(zip(a, b)):
        _assert_lists_close(case, x, y, rtol, atol, msg, f"{where}[{i}]")
