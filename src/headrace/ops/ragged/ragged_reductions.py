"""Reductions of ragged tensors: over all values, down the columns, along the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.gathering import gather
from headrace.ops.ragged.ragged_conversions import _longest, _range
from headrace.ops.ragged.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike

__all__ = ["join_ragged", "reduce_by_segments", "reduce_ragged"]


class _Pair(NamedTuple):
    """The dense reduction, the one by segments, and what both are told."""

    dense: str
    segments: str
    separator: str | None = None

    def over(self, x: Tensor, axes: Any) -> Tensor:
        more = {} if self.separator is None else {"separator": self.separator}
        return apply_op(self.dense, x, const(axes), keep_dims=False, **more)

    def by(self, values: TensorLike, ids: Tensor, count: Tensor) -> Tensor:
        more = {} if self.separator is None else {"separator": self.separator}
        return apply_op(self.segments, values, ids, count, **more)


_PAIRS = {w: _Pair(w, f"UnsortedSegment{w}") for w in ("Sum", "Prod", "Min", "Max")}


def reduce_ragged(
    what: str, ragged: RaggedTensor, axis: AxisLike | None, keepdims: bool, name: str | None
) -> Any:
    """``what`` (Sum, Prod, Min, Max, Mean, All, Any) over `axis`."""
    if keepdims:
        raise ValueError(f"keepdims=True is not supported for ragged Reduce{what}")
    with name_scope(name, f"RaggedReduce{what}", [ragged, axis]):
        if what == "Mean":
            return _mean(ragged, axis)
        if what in ("All", "Any"):
            return _logical(what, ragged, axis)
        return _reduce(_PAIRS[what], ragged, axis)


def join_ragged(ragged: RaggedTensor, axis: Any, separator: str, name: str | None) -> Any:
    """Strings joined over `axis`."""
    with name_scope(name, "RaggedSegmentJoin", [ragged]):
        return _reduce(_Pair("ReduceJoin", "UnsortedSegmentJoin", separator), ragged, axis)


def _mean(ragged: RaggedTensor, axis: AxisLike | None) -> Any:
    flat = ragged.flat_values
    ones = apply_op("Fill", shape(flat), const(1, flat.dtype.base_dtype))
    total = _reduce(_PAIRS["Sum"], ragged, axis)
    count = _reduce(_PAIRS["Sum"], ragged.with_flat_values(ones), axis)
    if not isinstance(total, RaggedTensor):
        return _divide(total, count)
    return total.with_flat_values(_divide(total.flat_values, count.flat_values))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return apply_op("RealDiv", a, b) if a.dtype.is_floating else a / b


def _logical(what: str, ragged: RaggedTensor, axis: AxisLike | None) -> Any:
    if ragged.dtype.base_dtype is not dtypes.bool:
        raise ValueError("Invalid dtype: expected bool")
    numbers = ragged.with_flat_values(apply_op("Cast", ragged.flat_values, DstT=dtypes.int32))
    found = _reduce(_PAIRS["Prod" if what == "All" else "Sum"], numbers, axis)

    def truth(t: Tensor) -> Tensor:
        return apply_op("NotEqual", t, const(0))

    if isinstance(found, RaggedTensor):
        return found.with_flat_values(truth(found.flat_values))
    return truth(found)


def _axes(axis: Any, rank: int) -> list[int]:
    if isinstance(axis, Tensor):
        known = static_value(axis)
        if known is None:
            raise ValueError("axis must be known at graph construction time.")
        axis = known.tolist()
    listed = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    found = []
    for a in listed:
        if not isinstance(a, int):
            raise TypeError(f"axis must be an int; got {type(a).__name__}")
        if not -rank <= a < rank:
            raise ValueError(f"axis={a} out of bounds: expected {-rank}<=axis<{rank}")
        found.append(a % rank)
    if len(set(found)) != len(found):
        raise ValueError("Duplicate reduction axis")
    return sorted(found)


def _reduce(what: _Pair, given: Any, axis: Any) -> Any:
    if axis is None:
        flat = given.flat_values
        return what.over(flat, list(range(flat.shape.ndims or 0)))
    rank = given.shape.ndims
    if rank is None:
        raise ValueError("the rank of a reduced ragged tensor must be known")
    for a in reversed(_axes(axis, rank)):
        given = _reduce_one(what, given, a)
    return given


def _reduce_one(what: _Pair, given: Any, axis: int) -> Any:
    """Over one dimension; outer ones are kept as they are."""
    if not isinstance(given, RaggedTensor):
        return what.over(given, [axis])
    kind = given.row_splits.dtype.base_dtype
    if axis == 0:
        places = _range(_total(given), kind) - gather(given.row_starts(), given.value_rowids())
        return _by_segments(what, given.values, places, _longest(given.row_lengths()))
    if axis == 1:
        return _by_segments(what, given.values, given.value_rowids(), given.nrows())
    return given.with_values(_reduce_one(what, given.values, axis - 1))


def _total(ragged: RaggedTensor) -> Tensor:
    return ragged.row_splits[-1]


def _by_segments(what: _Pair, values: TensorLike, segments: Tensor, count: Tensor) -> Tensor:
    """Of dense values, or of ragged ones whose columns are reduced together."""
    if not isinstance(values, RaggedTensor):
        return what.by(values, segments, count)
    kind = values.row_splits.dtype.base_dtype
    lengths = values.row_lengths()
    longest = apply_op("UnsortedSegmentMax", lengths, segments, count)
    longest = apply_op("Maximum", longest, const(0, kind))
    starts = apply_op("Cumsum", longest, const(0), exclusive=True)
    rows = values.value_rowids()
    column = _range(_total(values), kind) - gather(values.row_starts(), rows)
    places = gather(gather(starts, segments), rows) + column
    total = apply_op("Sum", longest, const([0]), keep_dims=False)
    return RaggedTensor.from_row_lengths(
        _by_segments(what, values.values, places, total), longest, validate=False
    )


def reduce_by_segments(what: str, values: TensorLike, segments: Tensor, count: Tensor) -> Any:
    """``what`` (Sum, Prod, Min, Max) of the rows with each of ``count`` numbers."""
    return _by_segments(_PAIRS[what], values, segments, count)
