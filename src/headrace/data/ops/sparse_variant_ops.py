"""Sparse tensors on their way through datasets.

Three parts in a variant vector that stacks and slices like any array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.data.runtime.batching import SparseParts

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__: list[str] = []

_INPUTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"


def _variant_only(out_type: DType) -> None:
    if out_type is not dtypes.variant:
        raise errors.UnimplementedError(
            None, None, "Sparse tensors are serialized as variants only, not as strings."
        )


def _serialize(
    xp: ArrayNamespace, indices: Array, values: Array, shape: Array, *, out_type: DType
) -> np.ndarray[Any, Any]:
    _variant_only(out_type)
    return SparseParts.vector(indices, values, shape)


def _serialize_many(
    xp: ArrayNamespace, indices: Array, values: Array, shape: Array, *, out_type: DType
) -> Array:
    _variant_only(out_type)
    rows = int(shape[0])
    bounds = np.searchsorted(indices[:, 0], np.arange(rows + 1))
    out = np.empty((rows, 3), object)
    for i in range(rows):
        lo, hi = bounds[i], bounds[i + 1]
        out[i] = SparseParts.vector(indices[lo:hi, 1:], values[lo:hi], shape[1:])
    return out


def _deserialize(
    xp: ArrayNamespace, serialized: Array, *, dtype: DType
) -> tuple[Array, Array, Array]:
    """Any leading dimensions become leading dimensions of the sparse tensor."""
    outer = serialized.shape[:-1]
    flat = serialized.reshape(-1, 3)
    if not outer:
        return tuple(flat[0])
    rank = len(flat[0][2]) if len(flat) else 0
    shape = np.zeros(rank, np.int64)
    for row in flat:
        if len(row[2]) != rank:
            raise errors.InvalidArgumentError(
                None, None, f"Inconsistent rank across SparseTensors: {rank} and {len(row[2])}"
            )
        shape = np.maximum(shape, row[2])
    places = np.indices(outer).reshape(len(outer), -1).T
    parts = [np.hstack([np.tile(p, (len(r[0]), 1)), r[0]]) for p, r in zip(places, flat)]
    indices = np.concatenate(parts) if parts else np.zeros((0, len(outer) + rank), np.int64)
    values = np.concatenate([r[1] for r in flat]) if len(flat) else np.zeros(0, dtype.np_dtype)
    return indices.astype(np.int64, copy=False), values, np.array([*outer, *shape], np.int64)


def _parts_shape(c: Inference) -> list[Any]:
    return [(None, None), (None,), (None,)]


define(
    "SerializeSparse",
    f"{_INPUTS} -> serialized_sparse: out_type; out_type: type=string, T: type",
    shape=lambda c: [(3,)],
    kernel=_serialize,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=False,
)
define(
    "SerializeManySparse",
    f"{_INPUTS} -> serialized_sparse: out_type; out_type: type=string, T: type",
    shape=lambda c: [(None, 3)],
    kernel=_serialize_many,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "DeserializeSparse",
    "serialized_sparse: Tserialized -> sparse_indices: int64, sparse_values: dtype, "
    "sparse_shape: int64; "
    "dtype: type, Tserialized: type=string",
    shape=_parts_shape,
    kernel=_deserialize,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    view=True,
)
