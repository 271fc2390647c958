"""Indexing of ragged tensors: ``x[2]``, ``x[1:]``, ``x[:, :2]``, ``x[..., 0]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const
from headrace.ops.array.gathering import gather
from headrace.ops.ragged.ragged_conversions import _range
from headrace.ops.ragged.ragged_factories import range as ragged_range
from headrace.ops.ragged.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike

__all__ = ["gather_rows", "getitem"]


def getitem(ragged: RaggedTensor, key: str) -> Any:
    """A row, some rows, or parts of rows."""
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    with name_scope(None, "RaggedGetItem", [ragged]):
        return _item(ragged, _without_ellipsis(keys, ragged))


def _without_ellipsis(keys: list[Any], ragged: RaggedTensor) -> list[Any]:
    at = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not at:
        return keys
    rank = ragged.shape.ndims
    if len(at) > 1:
        raise ValueError("Only one ellipsis is allowed in an index.")
    if rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    given = sum(k is not None for k in keys) - 1
    return keys[: at[0]] + [slice(None)] * max(0, rank - given) + keys[at[0] + 1 :]


def _item(ragged: Any, keys: Sequence[Any]) -> Any:
    if not keys:
        return ragged
    if not isinstance(ragged, RaggedTensor):
        return ragged[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _item(ragged, rest)
        rows = _count_of(inner)
        return RaggedTensor.from_row_lengths(inner, apply_op("Pack", [rows]), validate=False)
    if isinstance(first, slice):
        return _inner(_rows(ragged, first), rest)
    return _item(_row(ragged, first), rest)


def _count_of(value: TensorLike) -> Tensor:
    if isinstance(value, RaggedTensor):
        return value.nrows()
    from headrace.core import dtypes
    from headrace.ops.array.array_shape import shape

    return shape(value, out_type=dtypes.int64)[0]


def _row(ragged: RaggedTensor, index: object) -> Any:
    if not isinstance(index, (int, Tensor)) and not hasattr(index, "dtype"):
        raise TypeError(f"Slice offsets must be integers or None, not {index!r}")
    starts, limits = ragged.row_starts(), ragged.row_limits()
    return ragged.values[starts[index] : limits[index]]


def _rows(ragged: RaggedTensor, part: slice) -> RaggedTensor:
    if part == slice(None):
        return ragged
    kind = ragged.row_splits.dtype.base_dtype
    return gather_rows(ragged, _range(ragged.nrows(), kind)[part])


def gather_rows(ragged: RaggedTensor, indices: Tensor) -> RaggedTensor:
    """The rows with these numbers (a vector), in this order."""
    indices = convert_to_tensor(indices)
    starts, limits = gather(ragged.row_starts(), indices), gather(ragged.row_limits(), indices)
    places = ragged_range(starts, limits, row_splits_dtype=ragged.row_splits.dtype.base_dtype)
    return places.with_values(_pick(ragged.values, places.values))


def _pick(values: Any, places: Tensor) -> Any:
    if isinstance(values, RaggedTensor):
        return gather_rows(values, places)
    return gather(values, places)


def _inner(ragged: RaggedTensor, keys: Sequence[Any]) -> RaggedTensor:
    """Keys of the dimensions inside of the rows."""
    if not keys:
        return ragged
    first, rest = keys[0], keys[1:]
    if first is None:
        raise ValueError("A new axis inside of the rows of a RaggedTensor: use tf.expand_dims")
    if not isinstance(first, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    cut = ragged if first == slice(None) else _cut(ragged, first)
    if not rest:
        return cut
    values = cut.values
    if isinstance(values, RaggedTensor):
        return cut.with_values(_inner(values, rest))
    return cut.with_values(values[(slice(None), *rest)])


def _cut(ragged: RaggedTensor, part: slice) -> RaggedTensor:
    """The same part of every row, by Python's rules for slices."""
    kind = ragged.row_splits.dtype.base_dtype
    step = 1 if part.step is None else part.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lengths, starts = ragged.row_lengths(), ragged.row_starts()
    low, high = (const(0, kind), lengths) if step > 0 else (const(-1, kind), lengths - 1)

    def place(at: Any, otherwise: Tensor) -> Tensor:
        if at is None:
            return starts + otherwise
        given = convert_to_tensor(at, kind)
        from_end = given + lengths if isinstance(at, int) and at < 0 else given + lengths * 0
        return starts + apply_op("Maximum", low, apply_op("Minimum", from_end, high))

    first, last = (low, high) if step > 0 else (high, low)
    begin, end = place(part.start, first), place(part.stop, last)
    places = ragged_range(begin, end, convert_to_tensor(step, kind), row_splits_dtype=kind)
    return places.with_values(_pick(ragged.values, places.values))
