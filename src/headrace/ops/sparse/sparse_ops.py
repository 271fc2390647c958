"""The ops behind ``tf.sparse``: coordinates (n, rank), n values and a dense shape as three tensors.

Kernels work on linear positions (coordinates ravelled in row-major order), whose order is
TensorFlow's canonical one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shape_fns, shapes
from headrace.core.build import apply, apply_list, apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.shapes import Dims, Shape
from headrace.core.tensor import Operation
from headrace.ops.array.array_shape import const, invalid
from headrace.ops.array.filling import _all_axes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor

__all__: list[str] = []

_ENTRIES = (None, None)


def linear(indices: Array, dims: Sequence[int]) -> np.ndarray[Any, Any]:
    """Row-major positions of coordinates, checked against the shape."""
    if not len(indices):
        return np.empty(0, np.int64)
    limits = np.array(dims, np.int64)
    wrong = ((indices < 0) | (indices >= limits)).any(1)
    if wrong.any():
        first = int(wrong.argmax())
        raise invalid(
            f"indices[{first}] = {shown(indices[first])} is out of bounds: need 0 <= index "
            f"< {shown(dims)}"
        )
    return (
        np.ravel_multi_index(tuple(indices.T), tuple(dims))
        if len(dims)
        else np.zeros(len(indices), np.int64)
    )


def coordinates(places: Array, dims: Sequence[int]) -> Array:
    """The inverse of ``linear``."""
    if not places.size:
        return np.empty((0, len(dims)), np.int64)
    return np.stack(np.unravel_index(places, tuple(dims)), 1).astype(np.int64)


def shown(values: Any) -> str:
    """Coordinates or a shape as errors show it: ``[2,3]``."""
    return "[" + ",".join(str(int(v)) for v in values) + "]"


def rank_of(c: Inference, i: int) -> int | None:
    """The rank that a shape vector describes."""
    s = c.shape(i)
    return None if s is None or len(s) != 1 else s[0]


def indices_dims(c: Inference, indices: int) -> Dims:
    """The number of entries and the rank, from the static shape of an indices input."""
    s = c.shape(indices)
    return (None, None) if s is None or len(s) != 2 else s


def matched(values: Array, given: Array, wanted: Array) -> Array:
    """For each row of ``wanted`` the value of the same row in ``given``, zero if it is not
    there.
    """
    where = {tuple(r): i for i, r in enumerate(given.tolist())}
    out = np.zeros(len(wanted), values.dtype)
    for i, place in enumerate(wanted.tolist()):
        at = where.get(tuple(place))
        if at is not None:
            out[i] = values[at]
    return out


# to dense ---------------------------------------------------------------------------------------


def _check_to_dense(indices: Array, dims: Array) -> None:
    if indices.ndim > 2:
        raise invalid(
            "sparse_indices should be a scalar, vector, or matrix, got shape "
            f"{shapes.show(indices.shape)}"
        )
    if dims.ndim != 1:
        raise invalid(f"output_shape should be a vector, got shape {shapes.show(dims.shape)}")
    depth = indices.shape[1] if indices.ndim == 2 else 1
    if dims.size != depth:
        raise invalid(
            f"output_shape has incorrect number of elements: {dims.size} should be: {depth}"
        )


def _to_dense_kernel(
    xp: ArrayNamespace,
    indices: Array,
    dims: Array,
    values: Array,
    default: Array,
    *,
    validate_indices: bool,
) -> Array:
    size = dims.tolist()
    if xp.name == "numpy":
        _check_to_dense(indices, dims)
    rows = indices.reshape(-1, len(size)) if indices.ndim < 2 else indices
    if xp.name != "numpy":
        return xp.index_set(xp.full(size, default, dtype=values.dtype), tuple(rows.T), values)
    if values.ndim and values.shape != (len(rows),):
        raise invalid(
            f"sparse_values has incorrect shape {shapes.show(values.shape)}, should be [] or "
            f"[{len(rows)}]"
        )
    if default.ndim:
        raise invalid("default_value should be a scalar.")
    places = linear(rows, size)
    if validate_indices and places.size > 1:
        steps = np.diff(places)
        if (steps <= 0).any():
            bad = int((steps <= 0).argmax())
            what = "repeated" if steps[bad] == 0 else "out of order"
            raise invalid(f"indices[{bad + 1}] = {shown(rows[bad + 1])} is {what}")
    out = np.empty(size, values.dtype)
    out[...] = default
    out.reshape(-1)[places] = values
    return out


def _to_dense_grad(op: Operation, grad: Tensor) -> list[Any]:
    indices = op.inputs[0]
    picked = apply_op("GatherNd", grad, indices)
    whole = apply_op("Sum", grad, _all_axes(grad), keep_dims=False)
    mine = apply_op("Sum", picked, _all_axes(picked), keep_dims=False)
    return [None, None, picked, apply_op("Sub", whole, mine)]


SPARSE_TO_DENSE = define(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T "
    "-> dense: T; validate_indices: bool=True, Tindices: type(index)",
    shape=lambda c: [c.shape_value(1)],
    kernel=_to_dense_kernel,
    grad=_to_dense_grad,
    known_inputs=(1,),
)


# products ---------------------------------------------------------------------------------------


def _matmul_shape(c: Inference) -> list[Shape]:
    a, b = c.shape_value(2), c.require_rank(3, 2)
    if a is not None and len(a) != 2:
        raise ValueError(f"Tensor 'a_shape' must have 2 elements, has {len(a)}")
    a = a or (None, None)
    rows, inner = (a[1], a[0]) if c.attr("adjoint_a") else (a[0], a[1])
    inner_b, columns = (b[1], b[0]) if c.attr("adjoint_b") else (b[0], b[1])
    if inner is not None and inner_b is not None and inner != inner_b:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_b}")
    return [(rows, columns)]


def _matmul_kernel(
    xp: ArrayNamespace,
    indices: Array,
    values: Array,
    dims: Array,
    b: Array,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Array:
    rows, cols = indices[:, 0], indices[:, 1]
    m, k = dims.tolist()
    if adjoint_a:
        rows, cols, m, k, values = cols, rows, k, m, xp.conjugate(values)
    if adjoint_b:
        b = xp.conjugate(b.T)
    if b.shape[0] != k:
        raise invalid(
            f"Cannot multiply A and B because inner dimension does not match: {k} vs. {b.shape[0]}."
        )
    if xp.name != "numpy":
        return xp.index_add(xp.zeros((m, b.shape[1]), b.dtype), rows, values[:, None] * b[cols])
    for label, index, limit in (("m", rows, m), ("k", cols, k)):
        if index.size and (index.min() < 0 or index.max() >= limit):
            bad = int(((index < 0) | (index >= limit)).argmax())
            raise invalid(
                f"{label} ({int(index[bad])}) from "
                f"index[{bad},{int((label == 'k') != adjoint_a)}] out of bounds "
                f"(>={limit})"
            )
    if values.size * b.shape[1] > 1 << 14 and values.dtype.char in "fdFDil":
        from scipy.sparse import csr_matrix

        return np.ascontiguousarray(csr_matrix((values, (rows, cols)), shape=(m, k)) @ b)
    out = np.zeros((m, b.shape[1]), b.dtype)
    np.add.at(out, rows, values[:, None] * b[cols])
    return out


def _matmul_grad(op: Operation, grad: Tensor) -> list[Any]:
    indices, values, dims, b = op.inputs
    adj_a, adj_b = op._attrs["adjoint_a"], op._attrs["adjoint_b"]
    b_grad = apply(SPARSE_MATMUL, indices, values, dims, grad, adjoint_a=not adj_a, adjoint_b=False)
    b_used = b
    if adj_b:
        b_grad = apply_op("ConjugateTranspose", b_grad, const([1, 0]))
        b_used = apply_op("ConjugateTranspose", b, const([1, 0]))
    rows, cols = apply_list(lookup("Unpack"), indices, num=2, axis=1)
    parts_a = apply_op("GatherV2", grad, cols if adj_a else rows, const(0))
    parts_b = apply_op("GatherV2", b_used, rows if adj_a else cols, const(0))
    if b._dtype.is_complex:
        parts_a, parts_b = (
            (apply_op("Conj", parts_a), parts_b) if adj_a else (parts_a, apply_op("Conj", parts_b))
        )
    return [
        None,
        apply_op("Sum", apply_op("Mul", parts_a, parts_b), const([1]), keep_dims=False),
        None,
        b_grad,
    ]


SPARSE_MATMUL = define(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T; Tindices: "
    "type(index)=int64, adjoint_a: bool=False, adjoint_b: bool=False",
    shape=shape_fns.ranked((2, 1, 1), _matmul_shape),
    kernel=_matmul_kernel,
    grad=_matmul_grad,
    known_inputs=(2,),
)


# order, shape, slices ---------------------------------------------------------------------------


# sums -------------------------------------------------------------------------------------------


def _add_kernel(
    xp: ArrayNamespace,
    ai: Array,
    av: Array,
    adims: Array,
    bi: Array,
    bv: Array,
    bdims: Array,
    thresh: Array,
) -> tuple[Array, Array, Array]:
    if thresh.ndim:
        raise invalid(
            f"The magnitude threshold must be a scalar: got shape {shapes.show(thresh.shape)}"
        )
    if adims.tolist() != bdims.tolist():
        raise invalid(f"operands' shapes do not match: {shown(adims)} vs. {shown(bdims)}")
    both = np.concatenate([ai, bi])  # not checked against the shape, as in TF
    dims = np.maximum(adims, both.max(0) + 1).tolist() if len(both) else adims.tolist()
    places = linear(both, dims)
    found, inverse = np.unique(places, return_inverse=True)
    sums = np.zeros(found.size, av.dtype)
    np.add.at(sums, inverse, np.concatenate([av, bv]))
    kept = (np.bincount(inverse, minlength=found.size) == 1) | (np.abs(sums) >= thresh)
    return coordinates(found[kept], dims), sums[kept], adims.copy()


def _add_grad(op: Operation, _: Tensor, grad: Tensor, __: Tensor) -> list[Any]:
    a, b = apply_many(SPARSE_ADD_GRAD, grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, a, None, None, b, None, None]


SPARSE_ADD = define(
    "SparseAdd",
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, "
    "b_shape: int64, thresh: Treal -> "
    "sum_indices: int64, sum_values: T, sum_shape: int64; T: type(number), Treal: type(real)",
    shape=shape_fns.ranked(
        (None, None, 1), lambda c: [(None, rank_of(c, 2)), (None,), (rank_of(c, 2),)]
    ),
    kernel=_add_kernel,
    grad=_add_grad,
    data_dependent_shape=True,
)
SPARSE_ADD_GRAD = define(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> "
    "a_val_grad: T, b_val_grad: T; T: type(number)",
    shape=shape_fns.ranked(
        (1, 2, 2, 2), lambda c: [(indices_dims(c, 1)[0],), (indices_dims(c, 2)[0],)]
    ),
    kernel=lambda xp, g, a, b, s: (matched(g, s, a), matched(g, s, b)),
    grad=NOT_DIFFERENTIABLE,
)


def _dense_add_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, b: Array
) -> Array:
    if tuple(dims.tolist()) != b.shape:
        raise invalid(
            f"Dimensions of the operands do not match: {shown(dims)} vs. {shapes.show(b.shape)}"
        )
    linear(indices, b.shape)
    return xp.index_add(b, tuple(indices.T), values)


SPARSE_DENSE_ADD = define(
    "SparseTensorDenseAdd",
    "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T; T: "
    "type(number), Tindices: type(index)",
    shape=lambda c: [c.shape(3)],
    kernel=_dense_add_kernel,
    grad=lambda op, g: [None, apply_op("GatherNd", g, op.inputs[0]), None, g],
)


# concatenating and splitting --------------------------------------------------------------------


# empty rows -------------------------------------------------------------------------------------
