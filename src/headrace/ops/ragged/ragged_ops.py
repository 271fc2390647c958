"""TensorFlow's registered ops on row partitions: ``RaggedRange``, ``RaggedTensorToSparse``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.build import apply_op
from headrace.core.dtypes import DType
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["RAGGED_RANGE", "RAGGED_TENSOR_TO_SPARSE"]


def _range_kernel(
    xp: ArrayNamespace, starts: Array, limits: Array, deltas: Array, *, Tsplits: DType
) -> tuple[Array, Array]:
    lengths = {np.shape(a)[0] for a in (starts, limits, deltas) if np.ndim(a)}
    if len(lengths) > 1:
        raise invalid("starts, limits, and deltas must have the same shape")
    rows = lengths.pop() if lengths else 1
    given = [np.broadcast_to(a, (rows,)) for a in (starts, limits, deltas)]
    if np.any(given[2] == 0):
        raise invalid("Requires delta != 0")
    parts = [np.arange(a, b, d, dtype=starts.dtype) for a, b, d in zip(*given)]
    splits = np.cumsum([0, *map(len, parts)])
    values = np.concatenate(parts) if parts else np.empty(0, starts.dtype)
    return splits.astype(Tsplits.as_numpy_dtype), values


def _range_shape(c: Inference) -> list[Shape]:
    for s in c.shapes():
        if s is not None and len(s) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(s)}")
    sizes = {s[0] for s in c.shapes() if s is not None and len(s) == 1} - {None}
    if len(sizes) > 1:
        raise ValueError("Dimensions must be equal, but are " + " and ".join(map(str, sizes)))
    rows = [s[0] for s in c.shapes() if s is not None and len(s) == 1 and s[0] is not None]
    every_scalar = all(s == () for s in c.shapes())
    return [(2,) if every_scalar else (rows[0] + 1 if rows else None,), (None,)]


RAGGED_RANGE = define(
    "RaggedRange",
    "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T; "
    "T: type(real)=int32, Tsplits: type(index)=int64",
    shape=_range_shape,
    kernel=_range_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def _to_sparse_kernel(
    xp: ArrayNamespace, *inputs: Array, RAGGED_RANK: int
) -> tuple[Array, Array, Array]:
    splits, values = inputs[:RAGGED_RANK], inputs[RAGGED_RANK]
    for ends in splits:
        if not ends.size:
            raise invalid("ragged splits may not be empty.")
        if ends[0] != 0:
            raise invalid("First value of ragged splits must be 0.")
    index: list[Any] = [np.arange(len(splits[0]) - 1)]
    for i, ends in enumerate(splits):
        size = len(values) if i == RAGGED_RANK - 1 else len(splits[i + 1]) - 1
        if ends[-1] != size:
            raise invalid("Final value of ragged splits must match the length of ragged values.")
        lengths = np.diff(ends)
        column = np.arange(size) - np.repeat(ends[:-1], lengths)
        index = [np.repeat(k, lengths) for k in index] + [column]
    inner = values.shape[1:]
    each = int(np.prod(inner, dtype=np.int64))
    outer = np.repeat(np.stack(index, 1), each, axis=0)
    rest = np.tile(np.indices(inner).reshape(len(inner), each).T, (len(values), 1))
    dims = [len(splits[0]) - 1, *(int(np.diff(s).max(initial=0)) for s in splits), *inner]
    indices = np.concatenate([outer, rest.reshape(len(outer), len(inner))], 1)
    return indices.astype(np.int64), values.reshape(-1), np.array(dims, np.int64)


def _to_sparse_shape(c: Inference) -> list[Shape]:
    rank, values = c.attr("RAGGED_RANK"), c.shape(c.attr("RAGGED_RANK"))
    for i in range(rank):
        c.require_rank(i, 1)
    if values is None:
        return [(None, None), (None,), (None,)]
    known = None not in values
    count = int(np.prod(values)) if known else None  # type: ignore[arg-type]
    return [(count, rank + len(values)), (count,), (rank + len(values),)]


def _to_sparse_grad(op: Operation, *grads: Tensor | None) -> list[Any]:
    rank, values = op.get_attr("RAGGED_RANK"), op.inputs[-1]
    return [None] * rank + [apply_op("Reshape", grads[1], apply_op("Shape", values))]


RAGGED_TENSOR_TO_SPARSE = define(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK*Tsplits, rt_dense_values: T -> sparse_indices: int64, "
    "sparse_values: T, sparse_dense_shape: int64; RAGGED_RANK: int, T: type, "
    "Tsplits: type(index)=int64",
    shape=_to_sparse_shape,
    kernel=_to_sparse_kernel,
    grad=_to_sparse_grad,
    host_only=True,
)
