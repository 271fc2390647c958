"""What some functions of tensors do with ragged ones: squeeze, one_hot, segments, batch_gather.

ragged_dispatch.py calls them with the arguments by name.
"""

from __future__ import annotations

from typing import Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const
from headrace.ops.array.gathering import batch_gather, gather
from headrace.ops.array.one_hot import one_hot
from headrace.ops.control.assertions import assert_equal
from headrace.ops.ragged.ragged_dispatch import gather_ragged
from headrace.ops.ragged.ragged_reductions import (
    join_ragged,
    reduce_by_segments,
    reduce_ragged,
)
from headrace.ops.ragged.ragged_shaping import stack_dynamic_partitions
from headrace.ops.ragged.ragged_tensor import (
    _OWN,
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
)

__all__ = [
    "batch_gather_ragged",
    "dynamic_partition_ragged",
    "one_hot_ragged",
    "reduce_join_ragged",
    "segments_ragged",
    "softmax_ragged",
    "squeeze_ragged",
]

Arguments = dict[str, Any]


def squeeze_ragged(given: Arguments) -> Any:
    """Dimensions of size 1 left out; they have to be named."""
    ragged, axis = given["input"], given.get("axis")
    axis = given.get("squeeze_dims") if axis is None else axis
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    listed = [axis] if isinstance(axis, int) else axis
    if not isinstance(listed, (list, tuple)) or not all(isinstance(a, int) for a in listed):
        raise TypeError("Axis must be a list or tuple of integers.")
    with name_scope(given.get("name"), "RaggedSqueeze", [ragged]):
        return _squeezed(ragged, [_positive(a, ragged.shape.ndims) for a in listed])


def _positive(axis: int, rank: int | None) -> int:
    if rank is None and axis < 0:
        raise ValueError("axis may only be negative if the rank is statically known.")
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis if rank is None or axis >= 0 else axis + rank


def _squeezed(ragged: RaggedTensor, axes: list[int]) -> Any:
    levels = ragged.ragged_rank
    checks = []
    for i, lengths in enumerate(ragged.nested_row_lengths(), start=1):
        if i in axes:
            one = const(1, lengths.dtype.base_dtype)
            checks.append(assert_equal(lengths, one, message=_NOT_ONE.format(i)))
    if 0 in axes:
        count = ragged.nrows()
        one = const(1, count.dtype.base_dtype)
        checks.append(assert_equal(count, one, message=_NOT_ONE.format(0)))
    with control_dependencies([c for c in checks if c is not None]):
        made: Any = apply_op("Identity", ragged.flat_values)
    inner = [a - levels for a in axes if a > levels]
    if inner:
        made = apply_op("Squeeze", made, squeeze_dims=inner)
    splits = [s for i, s in enumerate(ragged.nested_row_splits, start=1) if i not in axes]
    if splits and 0 in axes:
        splits = splits[1:]
    for s in reversed(splits):
        made = RaggedTensor(made, s, _OWN)
    if set(range(levels + 1)) <= set(axes):
        return apply_op("Squeeze", made, squeeze_dims=[0])
    return made


_NOT_ONE = "the given axis (axis = {}) is not squeezable!"


def one_hot_ragged(given: Arguments) -> RaggedTensor:
    """``tf.one_hot`` of the flat values; the new axis lies inside of the ragged ones."""
    ragged, axis = given["indices"], given.get("axis")
    if isinstance(axis, int) and axis > ragged.ragged_rank:
        axis -= ragged.ragged_rank  # as in TF 2; TF 1.15 counts the axes of the flat values
    rest = {k: given[k] for k in ("depth", "on_value", "off_value", "dtype", "name")}
    return _with_flat(ragged, one_hot(ragged.flat_values, axis=axis, **rest))


def dynamic_partition_ragged(given: Arguments) -> list[Any]:
    """The rows of each partition."""
    count = given["num_partitions"]
    if not isinstance(count, int) or count < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    arguments = (given["data"], given["partitions"], count, given.get("name"))
    found = stack_dynamic_partitions(*arguments)
    return [found[i] for i in range(count)]


def reduce_join_ragged(given: Arguments) -> Any:
    """Strings joined along dimensions."""
    axis = given.get("axis")
    axis = given.get("reduction_indices") if axis is None else axis
    if given.get("keepdims") or given.get("keep_dims"):
        raise ValueError("keepdims=True is not supported for a ragged reduce_join")
    return join_ragged(given["inputs"], axis, given.get("separator") or "", given.get("name"))


def softmax_ragged(given: Arguments) -> RaggedTensor:
    """Softmax along the last dimension: the rows, or dense inner ones."""
    ragged = given["logits"]
    rank, axis = ragged.shape.ndims, given.get("axis")
    if axis not in (None, -1) and axis != (None if rank is None else rank - 1):
        raise ValueError("ragged softmax is computed along the last dimension (axis=-1)")
    if rank is None or rank > ragged.ragged_rank + 1:
        return _with_flat(ragged, apply_op("Softmax", ragged.flat_values))
    level = ragged._levels()[-1]
    top = gather(reduce_ragged("Max", level, 1, False, None), level.value_rowids())
    powers = apply_op("Exp", level.values - apply_op("StopGradient", top))
    sums = reduce_ragged("Sum", level.with_values(powers), 1, False, None)
    return _with_flat(ragged, powers / gather(sums, level.value_rowids()))


def _with_flat(ragged: RaggedTensor, values: Tensor) -> RaggedTensor:
    return ragged.with_flat_values(values)


# segments ---------------------------------------------------------------------------------------


def segments_ragged(what: str, given: Arguments) -> Any:
    """``tf.unsorted_segment_…``: rows with the same number, reduced column by column."""
    data, ids, count = given["data"], given["segment_ids"], given["num_segments"]
    with name_scope(given.get("name"), "RaggedSegment", [data, ids, count]):
        if isinstance(ids, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                raise ValueError("segment_ids.shape must be a prefix of data.shape")
            check = assert_equal(ids.row_splits, data.row_splits)
            with control_dependencies([] if check is None else [check]):
                inner = {"data": _same(data.values), "segment_ids": _same(ids.values)}
            return segments_ragged(what, {**inner, "num_segments": count})
        rows, total = convert_to_tensor(ids), convert_to_tensor(count)
        if what in ("mean", "sqrt_n"):
            return _divided(what, data, rows, total)
        return reduce_by_segments(what.capitalize(), data, rows, total)


def _same(value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(_same(value.flat_values))
    return apply_op("Identity", value)


def _divided(what: str, data: Any, ids: Tensor, count: Tensor) -> Any:
    """Sums by their numbers, or the roots of these."""
    total = reduce_by_segments("Sum", data, ids, count)
    flat = data.flat_values if isinstance(data, RaggedTensor) else data
    ones: Any = apply_op("OnesLike", flat)
    if isinstance(data, RaggedTensor):
        ones = _with_flat(data, ones)
    numbers = reduce_by_segments("Sum", ones, ids, count)
    if not isinstance(total, RaggedTensor):
        return total / (apply_op("Sqrt", numbers) if what == "sqrt_n" else numbers)
    divisor = numbers.flat_values
    divisor = apply_op("Sqrt", divisor) if what == "sqrt_n" else divisor
    return total.with_flat_values(total.flat_values / divisor)


# gathering within batches -----------------------------------------------------------------------


def batch_gather_ragged(given: Arguments) -> Any:
    """Within each row of ``params`` what the row of ``indices`` says."""
    params, indices, name = given["params"], given["indices"], given.get("name")
    with name_scope(name, "RaggedBatchGather", [params, indices]):
        return _batch_gather(
            convert_to_tensor_or_ragged_tensor(params),
            convert_to_tensor_or_ragged_tensor(indices),
        )


_BATCHES_DIFFER = "batch shape from indices does not match params shape"


def _batch_gather(params: Any, indices: Any) -> Any:
    rank = indices.shape.ndims
    if rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    if rank == 0:
        raise ValueError("indices.rank must be at least 1.")
    if not isinstance(indices, RaggedTensor):
        if not isinstance(params, RaggedTensor):
            return batch_gather(params, indices)
        if rank == 1:
            rows: Any = params
            return gather_ragged(rows, indices)
        if rank > 2:
            raise ValueError(_BATCHES_DIFFER)
        starts = apply_op("ExpandDims", params.row_starts(), const(1))
        return gather_ragged(params.values, _cast(indices, starts.dtype) + starts)
    if rank > 2:
        if not isinstance(params, RaggedTensor):
            raise ValueError(_BATCHES_DIFFER)
        check = assert_equal(
            _cast(params.row_splits, dtypes.int64), _cast(indices.row_splits, dtypes.int64)
        )
        with control_dependencies([] if check is None else [check]):
            found = _batch_gather(_same(params.values), indices.values)
        return RaggedTensor(found, indices.row_splits, _OWN)
    if not isinstance(params, RaggedTensor):
        if params.shape.ndims is not None and params.shape.ndims < 2:
            raise ValueError(_BATCHES_DIFFER)
        kind = indices.row_splits.dtype.base_dtype
        params = RaggedTensor.from_tensor(params, ragged_rank=1, row_splits_dtype=kind)
    starts = gather(params.row_starts(), indices.value_rowids())
    places = _cast(indices.values, starts.dtype) + starts
    return RaggedTensor(gather_ragged(params.values, places), indices.row_splits, _OWN)


def _cast(value: Tensor, kind: dtypes.DType) -> Tensor:
    kind = kind.base_dtype
    return value if value.dtype.base_dtype is kind else apply_op("Cast", value, DstT=kind)
