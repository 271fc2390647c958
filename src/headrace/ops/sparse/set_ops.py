"""``tf.sets``: set operations on the last dimension of dense or sparse tensors.

>>> tf.sets.intersection([[1, 2], [3, 4]], [[2, 5], [4, 3]])  # sparse: [[2], [3, 4]]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, SparseLike, TensorLike

__all__ = ["set_difference", "set_intersection", "set_size", "set_union"]

_VALID = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.string,
)
#: Groups by the index of all dimensions but the last; each holds the set of that row.
_Groups = dict[tuple[int, ...], set[Any]]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _dense_groups(array: Array) -> _Groups:
    if array.ndim < 2:
        raise _invalid(
            f"Input rank {array.ndim} < 2: sets lie along the last of at least 2 dimensions."
        )
    lead = array.shape[:-1]
    return {index: set(array[index].tolist()) for index in np.ndindex(*lead)}


def _sparse_groups(indices: Array, values: Array, dims: Array, validate: bool) -> _Groups:
    if len(dims) < 2:
        raise _invalid(
            f"Input rank {len(dims)} < 2: sets lie along the last of at least 2 dimensions."
        )
    rows = [tuple(row) for row in indices.tolist()]
    if validate and any(a >= b for a, b in itertools.pairwise(rows)):
        raise _invalid("indices are repeated or out of order: call tf.sparse.reorder first.")
    groups: _Groups = {}
    for row, value in zip(rows, values.tolist(), strict=True):
        if validate and not all(0 <= i < n for i, n in zip(row, dims.tolist(), strict=True)):
            raise _invalid(f"index {list(row)} is out of bounds of the dense shape {dims.tolist()}")
        groups.setdefault(row[:-1], set()).add(value)
    return groups


_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _lead(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if len(first) != len(second) or first[:-1] != second[:-1]:
        raise _invalid(f"Mismatched group dimensions: shapes {list(first)} and {list(second)}.")
    return first[:-1]


def _combine(
    a: _Groups, b: _Groups, lead: tuple[int, ...], operation: str, kind: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    combine = _OPERATIONS[operation]
    none: set[Any] = set()
    places: list[tuple[int, ...]] = []
    values: list[Any] = []
    widest = 0
    for index in sorted(a.keys() | b.keys()):
        found = sorted(combine(a.get(index, none), b.get(index, none)))
        widest = max(widest, len(found))
        places += [(*index, i) for i in range(len(found))]
        values += found
    indices = np.array(places, np.int64).reshape(len(values), len(lead) + 1)
    result = np.empty(len(values), kind)
    result[:] = values
    return indices, result, np.array((*lead, widest), np.int64)


def _dense_dense(
    xp: ArrayNamespace, a: Array, b: Array, *, set_operation: str, validate_indices: bool
) -> tuple[Array, Array, Array]:
    lead = _lead(a.shape, b.shape)
    return _combine(_dense_groups(a), _dense_groups(b), lead, set_operation, a.dtype)


def _dense_sparse(
    xp: ArrayNamespace,
    a: Array,
    indices: Array,
    values: Array,
    dims: Array,
    *,
    set_operation: str,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    lead = _lead(a.shape, tuple(dims.tolist()))
    groups = _sparse_groups(indices, values, dims, validate_indices)
    return _combine(_dense_groups(a), groups, lead, set_operation, a.dtype)


def _sparse_sparse(
    xp: ArrayNamespace,
    i1: Array,
    v1: Array,
    d1: Array,
    i2: Array,
    v2: Array,
    d2: Array,
    *,
    set_operation: str,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    lead = _lead(tuple(d1.tolist()), tuple(d2.tolist()))
    first = _sparse_groups(i1, v1, d1, validate_indices)
    second = _sparse_groups(i2, v2, d2, validate_indices)
    return _combine(first, second, lead, set_operation, v1.dtype)


def _size(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, *, validate_indices: bool
) -> Array:
    groups = _sparse_groups(indices, values, dims, validate_indices)
    sizes = np.zeros(dims.tolist()[:-1], np.int32)
    for index, members in groups.items():
        sizes[index] = len(members)
    return sizes


def _rank_of(c: Inference, dense: int | None, dims: int) -> int | None:
    shape = c.shape(dense) if dense is not None else None
    if shape is not None:
        return len(shape)
    known = c.shape(dims)
    return None if known is None else known[0]


def _dense_shape(c: Inference) -> list[Shape]:
    """The sets have the same rank, and as many groups."""
    first, second = (c.require_rank_at_least(i, 2) for i in (0, 1))
    if first is not None and second is not None:
        if len(first) != len(second):
            raise ValueError(f"Shape must be rank {len(first)} but is rank {len(second)}")
        shapes.merge(first[:-1], second[:-1])
    known = second if first is None else first
    return _result(None if known is None else len(known))


def _result(rank: int | None) -> list[Shape]:
    return [(None, rank), (None,), (rank,)]


_ATTRS = "set_operation: str, validate_indices: bool=True"
_OUTPUTS = "result_indices: int64, result_values: T, result_shape: int64"
define(
    "DenseToDenseSetOperation",
    f"set1: T, set2: T -> {_OUTPUTS}; {_ATTRS}",
    shape=_dense_shape,
    kernel=_dense_dense,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "DenseToSparseSetOperation",
    f"set1: T, set2_indices: int64, set2_values: T, set2_shape: int64 -> {_OUTPUTS}; {_ATTRS}",
    shape=lambda c: _result(_rank_of(c, 0, 3)),
    kernel=_dense_sparse,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "SparseToSparseSetOperation",
    "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, "
    "set2_values: T, set2_shape: int64 -> "
    f"{_OUTPUTS}; {_ATTRS}",
    shape=lambda c: _result(_rank_of(c, None, 2)),
    kernel=_sparse_sparse,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "SetSize",
    "set_indices: int64, set_values: T, set_shape: int64 -> size: int32; "
    "validate_indices: bool=True",
    shape=lambda c: [None],
    kernel=_size,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def _convert(value: TensorLike) -> SparseTensor | Tensor:
    made = convert_to_tensor_or_sparse_tensor(value)
    kind = made.dtype.base_dtype
    if kind not in _VALID:
        raise TypeError(f"Invalid dtype {kind} not in {_VALID}.")
    return made


def set_size(a: TensorLike | SparseLike, validate_indices: bool = True) -> Tensor:
    """The number of different elements in each row of a sparse tensor."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    if a.values.dtype.base_dtype not in _VALID:
        raise TypeError(f"Invalid dtype {a.values.dtype}.")
    return apply_op(
        "SetSize", a.indices, a.values, a.dense_shape, validate_indices=validate_indices
    )


def _set_operation(a: Any, b: Any, operation: str, validate: bool) -> SparseTensor:
    a, b = _convert(a), _convert(b)
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype} vs {b.dtype}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b = b, a
        operation = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    attrs: dict[str, Any] = {"set_operation": operation, "validate_indices": validate}
    if isinstance(a, SparseTensor):
        parts = apply_many(
            lookup("SparseToSparseSetOperation"),
            a.indices,
            a.values,
            a.dense_shape,
            b.indices,
            b.values,
            b.dense_shape,
            **attrs,
        )
    elif isinstance(b, SparseTensor):
        parts = apply_many(
            lookup("DenseToSparseSetOperation"), a, b.indices, b.values, b.dense_shape, **attrs
        )
    else:
        parts = apply_many(lookup("DenseToDenseSetOperation"), a, b, **attrs)
    return SparseTensor(*parts)


def set_intersection(
    a: Tensor | SparseTensor, b: Tensor | SparseTensor, validate_indices: bool = True
) -> SparseTensor:
    """Elements in both, row by row, as a sparse tensor; all dimensions but the last must match.

    A set is a row of the last dimension, in which repeated elements count once. ``a`` and ``b`` are
    dense or sparse tensors of integers or strings. ``validate_indices`` checks that sparse indices
    are in order and within the shape.
    """
    return _set_operation(a, b, "intersection", validate_indices)


def set_difference(
    a: Tensor | SparseTensor, b: Tensor, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """Elements of ``a`` that are not in ``b`` (the other way round with ``aminusb=False``), row by
    row.
    """
    return _set_operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Tensor, b: Tensor, validate_indices: bool = True) -> SparseTensor:
    """Elements of either, row by row.

    As a sparse tensor, in ascending order; the arguments are those of ``tf.sets.intersection``.
    """
    return _set_operation(a, b, "union", validate_indices)
