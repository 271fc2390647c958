"""Ragged tensors from dense and sparse ones, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.gathering import gather
from headrace.ops.array.masking import boolean_mask, sequence_mask
from headrace.ops.array.selecting import where
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.ragged.ragged_tensor import _OWN, RaggedTensor
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["bounding_shape", "from_sparse", "from_tensor", "to_tensor"]


def _range(count: Tensor, kind: DType) -> Tensor:
    return apply_op("Range", const(0, kind), count, const(1, kind))


def _longest(lengths: Tensor) -> Tensor:
    """The greatest of `lengths`; 0 if there is none."""
    top = apply_op("Max", lengths, const([0]), keep_dims=False)
    return apply_op("Maximum", top, const(0, lengths.dtype.base_dtype))


def bounding_shape(
    ragged: RaggedTensor, axis: object, name: str | None, out_type: DTypeLike | None
) -> Tensor:
    """The smallest shape that holds every row, or its sizes at `axis`."""
    splits = ragged.row_splits
    kind = splits.dtype.base_dtype if out_type is None else dtypes.as_dtype(out_type)
    with name_scope(name, "RaggedBoundingBox", [ragged, axis]):
        sizes = [ragged.nrows()]
        sizes += [_longest(lengths) for lengths in ragged.nested_row_lengths()]
        inner = shape(ragged.flat_values, out_type=splits.dtype.base_dtype)[1:]
        found = apply_op("ConcatV2", [apply_op("Pack", sizes), inner], const(0))
        if kind is not splits.dtype.base_dtype:
            found = apply_op("Cast", found, DstT=kind)
        return found if axis is None else gather(found, axis)


def to_tensor(ragged: RaggedTensor, default_value: object, name: str | None) -> Tensor:
    """All rows as long as the longest; what no row reaches has the default."""
    with name_scope(name, "RaggedToTensor", [ragged, default_value]):
        dtype = ragged.dtype.base_dtype
        if default_value is None:
            default_value = {"s": "", "b": False}.get(dtype._kind, 0)
        default = convert_to_tensor(default_value, dtype, "default_value")
        values = ragged.values
        if isinstance(values, RaggedTensor):
            values = to_tensor(values, default, None)
        kind = ragged.row_splits.dtype.base_dtype
        inner = shape(values, out_type=kind)[1:]
        row = apply_op("BroadcastTo", default, inner)
        last = apply_op("ExpandDims", row, const(0))
        padded = apply_op("ConcatV2", [values, last], const(0))
        lengths, starts = ragged.row_lengths(), ragged.row_starts()
        column = apply_op("ExpandDims", _range(_longest(lengths), kind), const(0))
        inside = column < apply_op("ExpandDims", lengths, const(1))
        places = apply_op("ExpandDims", starts, const(1)) + column
        none = apply_op("Fill", shape(places), shape(values, out_type=kind)[0])
        return gather(padded, where(inside, places, none))


def from_tensor(
    tensor: TensorLike,
    lengths: TensorLike | None,
    padding: TensorLike | None,
    ragged_rank: int,
    name: str | None,
    row_splits_dtype: DTypeLike,
) -> Any:
    """The rows of a tensor: whole, cut to `lengths`, or without the `padding` at their ends."""
    kind = dtypes.as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both")
    if not isinstance(ragged_rank, int):
        raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
    if ragged_rank <= 0:
        raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
    with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
        dense = convert_to_tensor(tensor, name="tensor")
        dense.shape.with_rank_at_least(ragged_rank + 1)
        dims = shape(dense, out_type=kind)
        if ragged_rank > 1:
            flat_dims = apply_op("ConcatV2", [dims[:1] * dims[1:2], dims[2:]], const(0))
            inner = from_tensor(
                apply_op("Reshape", dense, flat_dims), lengths, padding, ragged_rank - 1, None, kind
            )
            return _even_rows(inner, dims[0], dims[1], kind)
        if padding is not None:
            lengths = _lengths_without(dense, padding, ragged_rank, kind)
        if lengths is not None:
            given = convert_to_tensor(lengths, name="lengths")
            given = given if given.dtype.base_dtype is kind else apply_op("Cast", given, DstT=kind)
            zero = const(0, kind)
            kept = apply_op("Maximum", zero, apply_op("Minimum", given, dims[1]))
            mask = sequence_mask(kept, dims[1])
            return RaggedTensor.from_row_lengths(boolean_mask(dense, mask), kept, validate=False)
        joined = apply_op("ConcatV2", [dims[:1] * dims[1:2], dims[2:]], const(0))
        return _even_rows(apply_op("Reshape", dense, joined), dims[0], dims[1], kind)


def _even_rows(values: TensorLike, rows: Tensor, length: Tensor, kind: DType) -> RaggedTensor:
    splits = _range(rows + 1, kind) * length
    return RaggedTensor(values, splits, _OWN)


def _lengths_without(dense: Tensor, padding: object, ragged_rank: int, kind: DType) -> Tensor:
    """The length of each row up to its last value that is no padding."""
    pad = convert_to_tensor(padding, dense.dtype.base_dtype, "padding")
    differs = apply_op("NotEqual", dense, pad)
    rank = dense.shape.ndims
    if rank is None:
        raise ValueError("the rank of a tensor with padding must be known")
    inner = list(range(2, rank))
    if inner:
        differs = apply_op("Any", differs, const(inner), keep_dims=False)
    numbers = _range(shape(dense, out_type=kind)[1], kind) + 1
    ends = apply_op("Cast", differs, DstT=kind) * numbers
    top = apply_op("Max", ends, const([1]), keep_dims=False)
    return apply_op("Maximum", top, const(0, kind))


def from_sparse(st_input: object, name: str | None, row_splits_dtype: DTypeLike) -> RaggedTensor:
    """The entries of each row of a sparse matrix, whose rows have no gaps."""
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
    rank = st_input.dense_shape.shape[0].value
    if rank is None:
        rank = st_input.indices.shape[1].value
    if rank is None:
        raise ValueError("rank(st_input) must be known statically")
    if rank != 2:
        raise ValueError("rank(st_input) must be 2")
    kind = dtypes.as_dtype(row_splits_dtype)
    with name_scope(name, "RaggedFromSparse", [st_input]):
        rows = st_input.indices[:, 0]
        columns = st_input.indices[:, 1]
        made = RaggedTensor.from_value_rowids(
            st_input.values, rows, st_input.dense_shape[0], validate=False
        )
        count = shape(st_input.values, out_type=dtypes.int64)[0]
        wanted = _range(count, dtypes.int64) - gather(made.row_starts(), rows)
        check = assert_equal(columns, wanted, message="SparseTensor is not right-ragged")
        splits = with_dependencies([check], made.row_splits)
        if kind is not dtypes.int64:
            splits = apply_op("Cast", splits, DstT=kind)
        return RaggedTensor(made.values, splits, _OWN)
