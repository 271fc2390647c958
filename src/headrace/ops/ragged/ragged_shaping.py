"""Ragged tensors masked, stacked, tiled, with a further dimension, and picked by coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array import gathering, joining, masking, selecting
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.padding import repeat
from headrace.ops.array.partitioning import DYNAMIC_PARTITION
from headrace.ops.ragged.ragged_conversions import _range
from headrace.ops.ragged.ragged_dispatch import concat_ragged, gather_ragged
from headrace.ops.ragged.ragged_factories import map_flat_values
from headrace.ops.ragged.ragged_getitem import gather_rows
from headrace.ops.ragged.ragged_tensor import (
    _OWN,
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
)

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike

__all__ = [
    "boolean_mask",
    "expand_ragged",
    "gather_nd_ragged",
    "stack",
    "stack_dynamic_partitions",
    "tile_ragged",
    "where_ragged",
]


# masks ------------------------------------------------------------------------------------------


def boolean_mask(data: TensorLike, mask: TensorLike, name: str | None = None) -> Any:
    """What the mask keeps; rows of a mask of several dimensions stay rows.

    >>> sess.run(tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])).to_list()
    [[1], [3, 4]]
    """
    with name_scope(name, "RaggedMask", [data, mask]):
        kept = convert_to_tensor_or_ragged_tensor(mask, dtypes.bool, "mask")
        given = convert_to_tensor_or_ragged_tensor(data, name="data")
        if kept.shape.ndims is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if kept.shape.ndims == 0:
            raise ValueError("mask cannot be scalar.")
        return _masked(given, kept)


def _masked(data: TensorLike, mask: Any) -> Any:
    rank = mask.shape.ndims
    if rank == 1:
        if not isinstance(data, RaggedTensor):
            return masking.boolean_mask(data, mask)
        kept = apply_op("Squeeze", apply_op("Where", mask), squeeze_dims=(1,))
        kind = data.row_splits.dtype.base_dtype
        return gather_rows(data, kept if kind is dtypes.int64 else _cast(kept, kind))
    rows, parts = _with_rows(data, rank - 1), _with_rows(mask, rank - 1)
    values = _masked(rows.values, parts.values)
    if parts.values.shape.ndims != 1:
        return rows.with_values(values) if values is rows.values else _same_rows(rows, values)
    kind = rows.row_splits.dtype.base_dtype
    count = apply_op(
        "UnsortedSegmentSum", _cast(parts.values, kind), parts.value_rowids(), parts.nrows()
    )
    return RaggedTensor.from_row_lengths(values, count, validate=False)


def _same_rows(model: RaggedTensor, values: TensorLike) -> RaggedTensor:
    return RaggedTensor(values, model.row_splits, _OWN)


def _with_rows(value: TensorLike, ragged_rank: int) -> RaggedTensor:
    """A ragged tensor with so many ragged dimensions at least."""
    if isinstance(value, RaggedTensor):
        if value.ragged_rank >= ragged_rank:
            return value
        return value.with_values(_with_rows(value.values, ragged_rank - 1))
    made: RaggedTensor = RaggedTensor.from_tensor(value, ragged_rank=ragged_rank)
    return made


def _cast(value: Tensor, kind: dtypes.DType) -> Tensor:
    return apply_op("Cast", value, DstT=kind)


# new dimensions ---------------------------------------------------------------------------------


def _place(axis: AxisLike, rank: int | None) -> int:
    """An axis counted from the front, of a result of `rank` dimensions."""
    if not isinstance(axis, int):
        raise TypeError("axis must be an int")
    if axis < 0 and rank is None:
        raise ValueError("axis may only be negative if the rank is statically known.")
    found = axis + rank if axis < 0 and rank is not None else axis
    if found < 0 or (rank is not None and found >= rank):
        raise ValueError(f"axis={axis} out of bounds: expected {-(rank or 0)}<=axis<{rank}")
    return found


def expand_ragged(ragged: RaggedTensor, axis: AxisLike, name: str | None = None) -> RaggedTensor:
    """A dimension of size 1 at `axis`."""
    with name_scope(name, "RaggedExpandDims", [ragged]):
        rank = ragged.shape.ndims
        return _expanded(ragged, _place(axis, None if rank is None else rank + 1))


def _expanded(ragged: RaggedTensor, axis: int) -> RaggedTensor:
    kind = ragged.row_splits.dtype.base_dtype
    if axis == 0:
        ends = apply_op("Pack", [const(0, kind), ragged.nrows()])
        return RaggedTensor(ragged, ends, _OWN)
    if axis == 1:
        return RaggedTensor(ragged, _range(ragged.nrows() + 1, kind), _OWN)
    values = ragged.values
    if isinstance(values, RaggedTensor):
        return ragged.with_values(_expanded(values, axis - 1))
    return ragged.with_values(apply_op("ExpandDims", values, const(axis - 1)))


def stack(values: object, axis: int = 0, name: str | None = None) -> Any:
    """Tensors along a new dimension; they may differ in the lengths of their rows."""
    given = values if isinstance(values, (list, tuple)) else [values]
    with name_scope(name, "RaggedConcat", [*given]):
        found = [convert_to_tensor_or_ragged_tensor(v) for v in given]
        model = next((v for v in found if isinstance(v, RaggedTensor)), None)
        if model is None:
            return joining.stack(found, axis)
        rank = model.shape.ndims
        place = _place(axis, None if rank is None else rank + 1)
        rows = [_with_rows(v, model.ragged_rank) for v in found]
        return concat_ragged([_expanded(r, place) for r in rows], place)


def stack_dynamic_partitions(
    data: object, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> RaggedTensor:
    """Row i holds the data whose partition is i, in their order.

    ``partitions`` are numbers below ``num_partitions``, of the shape of the first dimensions of
    ``data``; there are ``num_partitions`` rows, some of which may be empty.

        tf.ragged.stack_dynamic_partitions([5, 6, 7], [1, 0, 1], 2)  # [[6], [5, 7]]
    """
    with name_scope(name, "SegmentStack", [data, partitions]):
        given = convert_to_tensor_or_ragged_tensor(data, name="data")
        where_to = convert_to_tensor(partitions, name="partitions")
        rank = where_to.shape.ndims
        if rank is None:
            raise ValueError("partitions must have known rank.")
        if rank == 0:
            rows = expand_ragged(given, 0) if isinstance(given, RaggedTensor) else given[None]
            return stack_dynamic_partitions(rows, where_to[None], num_partitions)
        for _ in range(rank - 1):
            given, where_to = _joined(given), _joined(where_to)
        kind = dtypes.int64
        numbers = _range(_size(where_to), kind)
        groups = apply_list(DYNAMIC_PARTITION, numbers, where_to, num_partitions=num_partitions)
        lengths = apply_op("Pack", [_size(g) for g in groups])
        picked = gather_ragged(given, apply_op("ConcatV2", groups, const(0)))
        return RaggedTensor.from_row_lengths(picked, lengths, validate=False)


def _size(vector: Tensor) -> Tensor:
    return shape(vector, out_type=dtypes.int64)[0]


def _joined(value: TensorLike) -> Tensor:
    """The two outermost dimensions as one."""
    if isinstance(value, RaggedTensor):
        return value.values
    dims = shape(value)
    return apply_op("Reshape", value, apply_op("ConcatV2", [const([-1]), dims[2:]], const(0)))


# repeating, choosing, picking -------------------------------------------------------------------


def tile_ragged(ragged: RaggedTensor, multiples: object, name: str | None = None) -> RaggedTensor:
    """The whole tensor so many times along each dimension."""
    kind = ragged.row_splits.dtype.base_dtype
    with name_scope(name, "RaggedTile", [ragged, multiples]):
        times = convert_to_tensor(multiples, name="multiples")
        if times.dtype.base_dtype is not kind:
            times = _cast(times, kind)
        rank = ragged.shape.ndims
        if rank is None:
            raise ValueError("RaggedTile requires the rank of its input to be known")
        return _tiled(ragged, [times[i] for i in range(rank)], outer=True)


def _tiled(ragged: RaggedTensor, times: Sequence[Tensor], outer: bool) -> RaggedTensor:
    values, kind = ragged.values, ragged.row_splits.dtype.base_dtype
    if isinstance(values, RaggedTensor):
        values = _tiled(values, times[1:], outer=False)
    elif len(times) > 2:
        values = apply_op("Tile", values, apply_op("Pack", [const(1, kind), *times[2:]]))
    rows = RaggedTensor(values, ragged.row_splits, _OWN)
    numbers = _range(rows.nrows(), kind)
    repeated = gather_rows(rows, repeat(numbers, times[1], axis=0))
    made = RaggedTensor.from_row_lengths(
        repeated.values, rows.row_lengths() * times[1], validate=False
    )
    if not outer:
        return made
    return gather_rows(made, apply_op("Tile", numbers, apply_op("Pack", [times[0]])))


def where_ragged(condition: object, x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """The coordinates of what is true, or elements of `x` and `y`."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    with name_scope(name, "RaggedWhere", [condition, x, y]):
        chosen = convert_to_tensor_or_ragged_tensor(condition, dtypes.bool, "condition")
        if x is None:
            sparse = chosen.to_sparse()
            return masking.boolean_mask(sparse.indices, sparse.values)
        given = [convert_to_tensor_or_ragged_tensor(v) for v in (x, y)]
        if isinstance(chosen, RaggedTensor):
            return map_flat_values(selecting.where, chosen, *given)
        return _where_rows(chosen, *given)


def _where_rows(chosen: Tensor, x: TensorLike, y: TensorLike) -> Any:
    """Whole rows of `x` or of `y`."""
    both = concat_ragged([x, y], 0)
    kind = both.row_splits.dtype.base_dtype
    numbers = _range(shape(chosen, out_type=kind)[0], kind)
    count = x.nrows(kind) if isinstance(x, RaggedTensor) else shape(x, out_type=kind)[0]
    return gather_rows(both, apply_op("Select", chosen, numbers, numbers + count))


def gather_nd_ragged(params: TensorLike, indices: TensorLike, name: str | None = None) -> Any:
    """``params[indices[i]]``: each index is a vector into the leading dimensions."""
    with name_scope(name, "RaggedGatherNd", [params, indices]):
        places = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        if isinstance(places, RaggedTensor):
            return places.with_values(gather_nd_ragged(params, places.values))
        depth = places.shape[-1].value if places.shape.ndims else None
        if depth is None:
            raise ValueError("indices.shape[-1] must be statically known.")
        while isinstance(params, RaggedTensor) and depth > 1:
            kind = params.row_splits.dtype.base_dtype
            places = places if places.dtype.base_dtype is kind else _cast(places, kind)
            first = gathering.gather(params.row_starts(), places[..., :1]) + places[..., 1:2]
            places = apply_op("ConcatV2", [first, places[..., 2:]], const(-1))
            params, depth = params.values, depth - 1
        if isinstance(params, RaggedTensor):
            return gather_ragged(params, places[..., 0])
        return gathering.gather_nd(params, places)
