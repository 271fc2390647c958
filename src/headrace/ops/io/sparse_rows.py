"""Sparse tensors as strings: three serialized TensorProtos (indices, values, shape).

Queues keep them so, one element after another; ``deserialize_many_sparse`` makes a batch of them.

>>> rows = tf.serialize_many_sparse(sparse)                  # [n, 3]
>>> tf.io.deserialize_many_sparse(rows, tf.int32)            # sparse again
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply, apply_many
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape, TensorShape, show
from headrace.ops.array.array_shape import invalid
from headrace.ops.io.decoding import parse_bytes, tensor_bytes
from headrace.ops.sparse.sparse_tensor import SparseTensor, as_sparse_tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = [
    "deserialize_many_sparse",
    "serialize_many_sparse",
    "serialize_many_sparse_v2",
    "serialize_sparse",
    "serialize_sparse_v2",
]


def _checked(indices: Array, values: Array, dims: Array) -> None:
    for name, array, rank in (("indices", indices, 2), ("values", values, 1), ("shape", dims, 1)):
        if np.ndim(array) != rank:
            wanted = "matrix" if rank == 2 else "vector"
            raise invalid(
                f"Input {name} should be a {wanted} but received shape {show(np.shape(array))}"
            )
    if len(values) != len(indices):
        raise invalid(
            f"Number of values must match first dimension of indices. Got {len(values)} values, "
            f"indices shape: {show(indices.shape)}"
        )


def _vector(indices: Array, values: Array, dims: Array, dtype: DType, kind: DType) -> Array:
    """The three parts, as strings or (in datasets) as they are."""
    out = np.empty(3, object)
    if kind is dtypes.variant:
        out[0], out[1], out[2] = indices, values, dims
        return out
    parts = ((indices, dtypes.int64), (values, dtype), (dims, dtypes.int64))
    out[:] = [tensor_bytes(np.asarray(a), d, packed=True) for a, d in parts]
    return out


def _serialize(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, *, T: DType, out_type: DType
) -> Array:
    _checked(indices, values, dims)
    return _vector(indices, values, dims, T, out_type)


def _serialize_rows(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, *, T: DType, out_type: DType
) -> Array:
    _checked(indices, values, dims)
    if len(dims) < 2:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(dims)}")
    count, rows = int(dims[0]), np.asarray(indices)[:, 0]
    if ((rows < 0) | (rows >= count)).any():
        raise invalid(
            f"Received unexpected column 0 value in input SparseTensor: not below {count}"
        )
    if (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        indices, values, rows = indices[order], values[order], rows[order]
    bounds = np.searchsorted(rows, np.arange(count + 1))
    out = np.empty((count, 3), object)
    for i, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        out[i] = _vector(indices[lo:hi, 1:], values[lo:hi], dims[1:], T, out_type)
    return out


def _read(row: Array, number: int, dtype: DType) -> tuple[Array, Array, Array]:
    """The parts of one sparse tensor."""
    if not isinstance(row[0], bytes):
        return row[0], row[1], row[2]
    (places, _), (values, have), (dims, _) = (parse_bytes(s) for s in row)
    if have is not dtype:
        raise invalid(
            f"Requested SparseTensor of type {dtype.name} but SparseTensor[{number}].values.dtype()"
            f" == {have.name}"
        )
    if values.ndim != 1 or dims.ndim != 1 or places.shape != (len(values), len(dims)):
        raise invalid(f"SparseTensor[{number}] has parts that do not fit")
    return places, values, dims


def _deserialize(
    xp: ArrayNamespace, serialized: Array, *, dtype: DType
) -> tuple[Array, Array, Array]:
    """Any leading dimensions become leading dimensions of the sparse tensor."""
    if not serialized.ndim or serialized.shape[-1] != 3:
        raise invalid(
            f"Serialized sparse should have 3 columns but has shape {show(serialized.shape)}"
        )
    outer = serialized.shape[:-1]
    flat = [_read(row, i, dtype) for i, row in enumerate(serialized.reshape(-1, 3))]
    if not outer:
        return flat[0]
    rank = len(flat[0][2]) if flat else 0
    shape = np.zeros(rank, np.int64)
    for row in flat:
        if len(row[2]) != rank:
            raise invalid(f"Inconsistent rank across SparseTensors: {rank} and {len(row[2])}")
        shape = np.maximum(shape, row[2])
    places = np.indices(outer).reshape(len(outer), -1).T
    parts = [
        np.hstack([np.tile(p, (len(r[0]), 1)), r[0]]) for p, r in zip(places, flat, strict=True)
    ]
    indices = np.concatenate(parts) if parts else np.zeros((0, len(outer) + rank), np.int64)
    values = np.concatenate([r[1] for r in flat]) if flat else np.zeros(0, dtype.np_dtype)
    return indices.astype(np.int64, copy=False), values, np.array([*outer, *shape], np.int64)


def _parts_shape(c: Inference) -> list[Shape]:
    return [(None, None), (None,), (None,)]


def _many_shapes(c: Inference) -> list[Shape]:
    c.require_rank(0, 2)
    return _parts_shape(c)


_SPARSE = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
SERIALIZE_SPARSE = define(
    "SerializeSparse",
    f"{_SPARSE} -> serialized_sparse: out_type; out_type: type=string, T: type",
    shape=lambda c: [(3,)],
    kernel=_serialize,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=False,
)
SERIALIZE_MANY_SPARSE = define(
    "SerializeManySparse",
    f"{_SPARSE} -> serialized_sparse: out_type; out_type: type=string, T: type",
    shape=lambda c: [(None, 3)],
    kernel=_serialize_rows,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DESERIALIZE_SPARSE = define(
    "DeserializeSparse",
    "serialized_sparse: Tserialized -> sparse_indices: int64, sparse_values: dtype, "
    "sparse_shape: int64; dtype: type, Tserialized: type=string",
    shape=_parts_shape,
    kernel=_deserialize,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    view=True,
)
DESERIALIZE_MANY_SPARSE = define(
    "DeserializeManySparse",
    "serialized_sparse: string -> sparse_indices: int64, sparse_values: dtype, "
    "sparse_shape: int64; dtype: type",
    shape=_many_shapes,
    kernel=_deserialize,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def _only_strings(out_type: object) -> None:
    if dtypes.as_dtype(out_type) is not dtypes.string:
        raise NotImplementedError(f"a sparse tensor is serialized as strings, not as {out_type}")


def serialize_sparse(
    sp_input: object, name: str | None = None, out_type: DTypeLike = dtypes.string
) -> Tensor:
    """A sparse tensor as three strings."""
    _only_strings(out_type)
    sp = as_sparse_tensor(sp_input)
    return apply(SERIALIZE_SPARSE, sp.indices, sp.values, sp.dense_shape, name=name)


def serialize_many_sparse(
    sp_input: object, name: str | None = None, out_type: DTypeLike = dtypes.string
) -> Tensor:
    """Each row (first dimension) of a sparse tensor as three strings: ``[n, 3]``."""
    _only_strings(out_type)
    sp = as_sparse_tensor(sp_input)
    return apply(SERIALIZE_MANY_SPARSE, sp.indices, sp.values, sp.dense_shape, name=name)


def serialize_sparse_v2(
    sp_input: object, out_type: DTypeLike = dtypes.string, name: str | None = None
) -> Tensor:
    """A sparse tensor as three strings."""
    return serialize_sparse(sp_input, name, out_type)


def serialize_many_sparse_v2(
    sp_input: object, out_type: DTypeLike = dtypes.string, name: str | None = None
) -> Tensor:
    """Each row of a sparse tensor as three strings."""
    return serialize_many_sparse(sp_input, name, out_type)


def deserialize_many_sparse(
    serialized_sparse: TensorLike,
    dtype: DTypeLike,
    rank: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """One sparse tensor of many, ``[n, 3]``: a dimension more, the others as large as the largest.

    ``rank`` is that of the result, if it is known.
    """
    indices, values, dims = apply_many(
        DESERIALIZE_MANY_SPARSE, serialized_sparse, dtype=dtypes.as_dtype(dtype), name=name
    )
    indices.set_shape(TensorShape([None, rank]))
    dims.set_shape(TensorShape([rank]))
    return SparseTensor(indices, values, dims)
