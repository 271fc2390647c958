"""Ops on the parts of ragged tensors, as graphs of Keras' text layers hold them.

A ragged tensor is a flat list of values and, from outside to inside, row partitions: the number of
rows (FIRST_DIM_SIZE), the row of each value (VALUE_ROWIDS) or where rows begin (ROW_SPLITS).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["RAGGED_TENSOR_TO_TENSOR"]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# RaggedTensorToTensor ---------------------------------------------------------------------------


def _splits(kind: str, tensor: Array, rows: int) -> Array:
    """Where each of the rows of one partition begins and ends."""
    if kind == "ROW_SPLITS":
        splits = np.asarray(tensor, np.int64)
        if splits.ndim != 1 or not splits.size or splits[0] != 0 or np.any(np.diff(splits) < 0):
            raise _invalid("row splits must start with zero and never get smaller")
        return splits
    if kind == "VALUE_ROWIDS":
        ids = np.asarray(tensor, np.int64)
        if ids.size and (ids[0] < 0 or np.any(np.diff(ids) < 0)):
            raise _invalid("value_rowids must be non-negative and never get smaller")
        if ids.size and ids[-1] >= rows:
            raise _invalid(f"value_rowids has the row {ids[-1]} of {rows} rows")
        return np.searchsorted(ids, np.arange(rows + 1))
    raise _invalid(f"Unsupported row partition type {kind}")


def _kinds(row_partition_types: Sequence[Any]) -> list[str]:
    return [k.decode() if isinstance(k, bytes) else str(k) for k in row_partition_types]


def _to_tensor_kernel(
    xp: ArrayNamespace,
    shape: Array,
    values: Array,
    default_value: Array,
    *partitions: Array,
    row_partition_types: Sequence[Any],
) -> Array:
    kinds, tensors = _kinds(row_partition_types), list(partitions)
    if len(kinds) != len(tensors):
        raise _invalid("there must be a row partition tensor for each row partition type")
    if kinds[:1] == ["FIRST_DIM_SIZE"]:
        rows = int(tensors[0])
        kinds, tensors = kinds[1:], tensors[1:]
    elif kinds[:1] == ["ROW_SPLITS"]:
        rows = len(tensors[0]) - 1
    else:
        raise _invalid(f"Cannot handle the first row partition type {kinds[:1]}")
    levels = []
    for kind, tensor in zip(kinds, tensors):
        splits = _splits(kind, tensor, rows)
        if len(splits) != rows + 1:
            raise _invalid(f"a row partition has {len(splits) - 1} rows, {rows} are expected")
        levels.append(splits)
        rows = int(splits[-1])
    if rows != len(values):
        raise _invalid(f"the row partitions tell of {rows} values, {len(values)} are given")
    return _filled(shape, values, default_value, levels)


def _filled(shape: Array, values: Array, default: Array, levels: list[Any]) -> Array:
    """Place every value; what no row reaches has the default."""
    count = len(levels[0]) - 1 if levels else len(values)
    longest = [int(np.diff(s).max(initial=0)) for s in levels]
    dims = [count, *longest, *values.shape[1:]]
    wanted = [-1] * len(dims) if np.ndim(shape) == 0 else [int(d) for d in shape]
    if len(wanted) != len(dims):
        raise _invalid(f"shape {wanted} is not compatible with a ragged tensor of {len(dims)} dims")
    dims = [d if w < 0 else w for w, d in zip(wanted, dims)]
    inner = values.shape[1:]
    if tuple(dims[len(levels) + 1 :]) != inner:
        raise _invalid(f"shape {wanted} does not fit values with the inner shape {list(inner)}")
    out = np.empty(dims, values.dtype)
    out[...] = default
    index: list[Any] = [np.arange(count)]
    for splits in levels:
        lengths = np.diff(splits)
        column = np.arange(int(splits[-1])) - np.repeat(splits[:-1], lengths)
        index = [np.repeat(i, lengths) for i in index] + [column]
    inside = np.ones(len(values), bool)
    for i, d in zip(index, dims):
        inside &= i < d
    out[tuple(i[inside] for i in index)] = values[inside]
    return out


def _to_tensor_shape(c: Inference) -> list[Shape]:
    shape = c.value(0)
    if shape is None or np.ndim(shape) == 0:
        return [None]
    return [tuple(None if d < 0 else int(d) for d in shape)]


RAGGED_TENSOR_TO_TENSOR = define(
    "RaggedTensorToTensor",
    "shape: Tshape, values: T, default_value: T, row_partition_tensors: "
    "num_row_partition_tensors*Tindex -> result: T; T: type, Tindex: type(index), "
    "Tshape: type(index), num_row_partition_tensors: int, row_partition_types: list(str)",
    shape=_to_tensor_shape,
    kernel=_to_tensor_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    host_only=True,
)
