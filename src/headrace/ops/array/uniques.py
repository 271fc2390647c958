"""Distinct elements: ``tf.unique``, ``tf.unique_with_counts``, ``tf.setdiff1d``."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_many
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["listdiff", "setdiff1d", "unique", "unique_with_counts"]


# Unique -----------------------------------------------------------------------------------------

#: Integers are counted in a table of up to so many places for each.
_TABLE_OF = 8


def _uniques(x: Array) -> tuple[Any, Any, Any]:
    """(places of first occurrence in order, number of each element, counts) for a vector."""
    if x.size <= 64 or x.dtype.kind == "O":
        seen: dict[Any, int] = {}
        inverse = [seen.setdefault(v, len(seen)) for v in x.tolist()]
        numbers = np.array(inverse, np.int64)
        count = len(seen)
        first = np.empty(count, np.int64)
        first[numbers[::-1]] = np.arange(len(inverse) - 1, -1, -1)
        return first, numbers, np.bincount(numbers, minlength=count)
    if x.dtype.kind in "iu":
        low, high = int(x.min()), int(x.max())
        if high - low < _TABLE_OF * x.size:
            return _by_table(x, low, high)
    _, first, inverse_, counts = np.unique(x, True, True, True, equal_nan=False)
    return _by_occurrence(first, inverse_, counts)


def _by_table(x: Array, low: int, high: int) -> tuple[Any, Any, Any]:
    """The same for integers of a small range: no sorting of elements."""
    apart = x - x.dtype.type(low)  # (may wrap around: right as an unsigned number)
    places = apart.view(f"u{x.dtype.itemsize}").astype(np.int64)
    first_of = np.full(high - low + 1, x.size)
    first_of[places[::-1]] = np.arange(x.size - 1, -1, -1)
    first = first_of[first_of < x.size]
    first.sort()
    number_of = np.empty(high - low + 1, np.int64)
    number_of[places[first]] = np.arange(first.size)
    numbers = number_of[places]
    return first, numbers, np.bincount(numbers, minlength=first.size)


def _by_occurrence(first: Array, inverse: Array, counts: Array) -> tuple[Any, Any, Any]:
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse.reshape(-1)], counts[order]


def _unique_kernel(xp: ArrayNamespace, x: Array, *, out_idx: DType) -> tuple[Array, Array]:
    if x.ndim != 1:
        raise invalid("unique expects a 1D vector.")
    first, inverse, _ = _uniques(x)
    return x[first], inverse.astype(out_idx.np_dtype)


def _unique_counts_kernel(
    xp: ArrayNamespace, x: Array, *, out_idx: DType
) -> tuple[Array, Array, Array]:
    if x.ndim != 1:
        raise invalid("unique expects a 1D vector.")
    first, inverse, counts = _uniques(x)
    return x[first], inverse.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


def _unique_along(x: Array, axis: Array) -> tuple[Any, Any, Any]:
    if axis.ndim != 1:
        raise invalid("axis expects a 1D vector.")
    if not axis.size:
        if x.ndim != 1:
            raise invalid("unique expects a 1D vector.")
        first, inverse, counts = _uniques(x)
        return x[first], inverse, counts
    at = axis.item()
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"axis has to be between [0, {x.ndim})")
    if x.ndim == 1:
        first, inverse, counts = _uniques(x)
    else:
        _, first, inverse, counts = np.unique(x, True, True, True, axis=at)
        first, inverse, counts = _by_occurrence(first, inverse, counts)
    return x.take(first, at), inverse, counts


def _unique_v2_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, *, out_idx: DType
) -> tuple[Array, Array]:
    y, inverse, _ = _unique_along(x, axis)
    return y, inverse.astype(out_idx.np_dtype)


def _unique_counts_v2_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, *, out_idx: DType
) -> tuple[Array, Array, Array]:
    y, inverse, counts = _unique_along(x, axis)
    return y, inverse.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


def _unique_shape(n: int) -> Callable[[Inference], list[Shape]]:
    def infer(c: Inference) -> list[Shape]:
        s = c.shape(0)
        found: list[Shape] = [None, (None,), (None,)]
        if c.n_inputs == 1:
            if n == 2:  # TensorFlow's UniqueWithCounts finds out when it runs
                c.require_rank(0, 1)
            found[:2] = [(None,), s]
        elif s is not None and c.value(1) is not None:
            axis = c.value(1)
            assert axis is not None
            at = axis.item() % len(s) if axis.size else 0
            found[:2] = [s[:at] + (None,) + s[at + 1 :], (s[at],)]
        return found[:n]

    return infer


_IDX = "out_idx: type(index)=int32"
UNIQUE = define(
    "Unique",
    f"x: T -> y: T, idx: out_idx; {_IDX}",
    shape=_unique_shape(2),
    kernel=_unique_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_V2 = define(
    "UniqueV2",
    f"x: T, axis: Taxis -> y: T, idx: out_idx; Taxis: type(index)=int64, {_IDX}",
    shape=_unique_shape(2),
    kernel=_unique_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_WITH_COUNTS = define(
    "UniqueWithCounts",
    f"x: T -> y: T, idx: out_idx, count: out_idx; {_IDX}",
    shape=_unique_shape(3),
    kernel=_unique_counts_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_WITH_COUNTS_V2 = define(
    "UniqueWithCountsV2",
    f"x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx; Taxis: type(index)=int64, {_IDX}",
    shape=_unique_shape(3),
    kernel=_unique_counts_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)

Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])
ListDiff = namedtuple("ListDiff", ["out", "idx"])


def unique(x: TensorLike, out_idx: object = dtypes.int32, name: str | None = None) -> Any:
    """Distinct values in the order of their first occurrence, and for each element the number of
    its value.
    """
    return Unique(*apply_many(UNIQUE, x, out_idx=out_idx, name=name))


def unique_with_counts(
    x: TensorLike, out_idx: DType = dtypes.int32, name: str | None = None
) -> Any:
    """As ``tf.unique``, with how often each element occurs: (y, idx, count)."""
    return UniqueWithCounts(*apply_many(UNIQUE_WITH_COUNTS, x, out_idx=out_idx, name=name))


def _list_diff_kernel(
    xp: ArrayNamespace, x: Array, y: Array, *, out_idx: DType
) -> tuple[Array, Array]:
    if x.ndim != 1 or y.ndim != 1:
        raise invalid("x and y should be 1D vectors.")
    if x.size + y.size <= 64 or x.dtype.kind == "O":
        without = set(y.tolist())
        places = np.array([i for i, v in enumerate(x.tolist()) if v not in without], np.int64)
    else:
        places = np.flatnonzero(~np.isin(x, y))
    return x[places], places.astype(out_idx.np_dtype)


def _list_diff_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 1)
    return [(None,), (None,)]


LIST_DIFF = define(
    "ListDiff",
    f"x: T, y: T -> out: T, idx: out_idx; {_IDX}",
    shape=_list_diff_shape,
    kernel=_list_diff_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)


def listdiff(
    x: TensorLike, y: TensorLike, out_idx: TensorLike | None = None, name: str | None = None
) -> Any:
    """Elements of x that are not in y, and where they are."""
    return ListDiff(*apply_many(LIST_DIFF, x, y, out_idx=out_idx or dtypes.int32, name=name))


def setdiff1d(
    x: TensorLike, y: TensorLike, index_dtype: DType = dtypes.int32, name: str | None = None
) -> Any:
    """The elements of ``x`` that are not in ``y``, in order, and their positions: (out, idx).

    Repeated elements stay. ``index_dtype`` is the type of the positions, int32 or int64.

        tf.setdiff1d([1, 2, 3, 2], [3])  # ([1, 2, 2], [0, 1, 3])
    """
    return ListDiff(*apply_many(LIST_DIFF, x, y, out_idx=index_dtype, name=name))
