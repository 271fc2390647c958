"""The ops behind ``tf.sparse``: coordinates (n, rank), n values and a dense shape as three tensors.

Kernels work on linear positions (coordinates ravelled in row-major order), whose order is
TensorFlow's canonical one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply, apply_list, apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, define, lookup
from headrace.core.shapes import Dims, Shape
from headrace.core.tensor import Operation
from headrace.ops.array.array_shape import const, invalid
from headrace.ops.array.filling import _all_axes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor

__all__: list[str] = []

_ENTRIES = (None, None)


def linear(indices: Array, dims: Sequence[int]) -> Any:
    """Row-major positions of coordinates, checked against the shape."""
    if not len(indices):
        return np.empty(0, np.int64)
    limits = np.array(dims, np.int64)
    wrong = ((indices < 0) | (indices >= limits)).any(1)
    if wrong.any():
        first = int(wrong.argmax())
        raise invalid(
            f"indices[{first}] = {_row(indices[first])} is out of bounds: need 0 <= index "
            f"< {_row(dims)}"
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


def _row(values: Any) -> str:
    return "[" + ",".join(str(int(v)) for v in values) + "]"


def _rank_of(c: Inference, i: int) -> int | None:
    """The rank that a shape vector describes."""
    s = c.shape(i)
    return None if s is None or len(s) != 1 else s[0]


def _entries(c: Inference, indices: int) -> Dims:
    s = c.shape(indices)
    return (None, None) if s is None or len(s) != 2 else s


# to dense ---------------------------------------------------------------------------------------


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
            raise invalid(f"indices[{bad + 1}] = {_row(rows[bad + 1])} is {what}")
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
    shape=_matmul_shape,
    kernel=_matmul_kernel,
    grad=_matmul_grad,
    known_inputs=(2,),
)


# order, shape, slices ---------------------------------------------------------------------------


def _reorder_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array
) -> tuple[Array, Array]:
    if indices.ndim != 2 or values.ndim != 1 or dims.ndim != 1:
        name, given, wanted = next(
            (n, x, w)
            for n, x, w, rank in (
                ("indices", indices, "matrix", 2),
                ("values", values, "vector", 1),
                ("shape", dims, "vector", 1),
            )
            if x.ndim != rank
        )
        raise invalid(
            f"Input {name} should be a {wanted} but received shape {shapes.show(given.shape)}"
        )
    if dims.size != indices.shape[1]:
        raise invalid("Order length must be SparseTensor rank.")
    order = np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))
    return indices[order], values[order]


def _reorder_grad(op: Operation, _: Tensor, grad: Tensor) -> list[Any]:
    """Sort the numbers of the entries along.

    The inverse of that permutation brings the gradient back.
    """
    indices, values, dims = op.inputs
    numbers = apply_op("Range", const(0), apply_op("Size", values), const(1))
    _, moved = apply_many(SPARSE_REORDER, indices, numbers, dims)
    return [None, apply_op("GatherV2", grad, apply_op("InvertPermutation", moved), const(0)), None]


SPARSE_REORDER = define(
    "SparseReorder",
    "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, "
    "output_values: T",
    shape=lambda c: [_entries(c, 0), c.require_rank(1, 1)],
    kernel=_reorder_kernel,
    grad=_reorder_grad,
)


def _reshape_kernel(
    xp: ArrayNamespace, indices: Array, dims: Array, new_shape: Array
) -> tuple[Array, Array]:
    old, new = dims.tolist(), new_shape.tolist()
    total = int(np.prod(old, dtype=np.int64))
    if new.count(-1) > 1:
        raise invalid("only one output dimension may be -1")
    if -1 in new:
        rest = int(np.prod([d for d in new if d != -1], dtype=np.int64))
        if not rest or total % rest:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the "
                f"requested shape requires a multiple of {rest}. input_shape={_row(old)} "
                f"output_shape={_row(new)}"
            )
        new[new.index(-1)] = total // rest
    if int(np.prod(new, dtype=np.int64)) != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested "
            f"shape has {int(np.prod(new))}. input_shape={_row(old)} "
            f"output_shape={_row(new)}"
        )
    return coordinates(linear(indices, old), new), np.array(new, np.int64)


SPARSE_RESHAPE = define(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, "
    "output_shape: int64",
    shape=lambda c: [(_entries(c, 0)[0], _rank_of(c, 2)), c.shape(2)],
    kernel=_reshape_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def _slice_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, start: Array, size: Array
) -> tuple[Array, Array, Array]:
    for what, given in (("start", start), ("size", size)):
        if given.ndim != 1:
            raise invalid(
                f"Input {what} should be a vector but received shape {shapes.show(given.shape)}"
            )
        if given.size != dims.size:
            raise invalid(
                f"Expected {what} to be a vector of length {dims.size} but got length {given.size}"
            )
    stop = start + size
    inside = ((indices >= start) & (indices < stop)).all(1)
    out = np.clip(np.minimum(stop, dims) - start, 0, None)
    return indices[inside] - start, values[inside], out


def _slice_grad(op: Operation, _: Tensor, grad: Tensor, __: Tensor) -> list[Any]:
    indices, _, _, start, _ = op.inputs
    back = apply(SPARSE_SLICE_GRAD, grad, indices, start, op.outputs[0])
    return [None, back, None, None, None]


SPARSE_SLICE = define(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64 -> "
    "output_indices: int64, output_values: T, output_shape: int64",
    shape=lambda c: [(None, _rank_of(c, 2)), (None,), c.shape(2)],
    kernel=_slice_kernel,
    grad=_slice_grad,
    data_dependent_shape=True,
)


def _matched(values: Array, given: Array, wanted: Array) -> Array:
    """For each row of ``wanted`` the value of the same row in ``given``, zero if it is not
    there.
    """
    where = {tuple(r): i for i, r in enumerate(given.tolist())}
    out = np.zeros(len(wanted), values.dtype)
    for i, row in enumerate(wanted.tolist()):
        at = where.get(tuple(row))
        if at is not None:
            out[i] = values[at]
    return out


def _slice_grad_kernel(
    xp: ArrayNamespace, grad: Array, indices: Array, start: Array, out_indices: Array
) -> Array:
    return _matched(grad, out_indices + start, indices)


SPARSE_SLICE_GRAD = define(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: "
    "int64 -> val_grad: T",
    shape=lambda c: [(_entries(c, 1)[0],)],
    kernel=_slice_grad_kernel,
    grad=NO_GRADIENT_YET,
)


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
    if adims.tolist() != bdims.tolist():
        raise invalid(f"operands' shapes do not match: {_row(adims)} vs. {_row(bdims)}")
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
    shape=lambda c: [(None, _rank_of(c, 2)), (None,), c.shape(2)],
    kernel=_add_kernel,
    grad=_add_grad,
    data_dependent_shape=True,
)
SPARSE_ADD_GRAD = define(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> "
    "a_val_grad: T, b_val_grad: T; T: type(number)",
    shape=lambda c: [(_entries(c, 1)[0],), (_entries(c, 2)[0],)],
    kernel=lambda xp, g, a, b, s: (_matched(g, s, a), _matched(g, s, b)),
    grad=NOT_DIFFERENTIABLE,
)


def _dense_add_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, b: Array
) -> Array:
    if tuple(dims.tolist()) != b.shape:
        raise invalid(
            f"Dimensions of the operands do not match: {_row(dims)} vs. {shapes.show(b.shape)}"
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


def _concat_kernel(
    xp: ArrayNamespace, *inputs: Array, concat_dim: int, N: int
) -> tuple[Array, Array, Array]:
    indices, values, dims = inputs[:N], inputs[N : 2 * N], [d.tolist() for d in inputs[2 * N :]]
    rank = len(dims[0])
    if not -rank <= concat_dim < rank:
        raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}")
    at = concat_dim % rank
    parts, start = [], 0
    for ix, d in zip(indices, dims):
        if len(d) != rank or any(a != b for i, (a, b) in enumerate(zip(d, dims[0])) if i != at):
            raise invalid(f"Input shapes must match: expected {_row(dims[0])}, got {_row(d)}")
        moved = ix.copy()
        moved[:, at] += start
        parts.append(moved)
        start += d[at]
    out = list(dims[0])
    out[at] = start
    every = np.concatenate(parts)
    order = np.argsort(linear(every, out), kind="stable")
    return every[order], np.concatenate(values)[order], np.array(out, np.int64)


def _concat_shape(c: Inference) -> list[Shape]:
    n = c.attr("N")
    every = c.shapes()
    ranks: list[int | None] = []
    for i in range(n):
        rows, size = c.require_rank(i, 2)
        shapes.merge((rows,), c.require_rank(n + i, 1))
        ranks += [size, *c.require_rank(2 * n + i, 1)]
    different = [r for i, r in enumerate(ranks) if r is not None and r not in ranks[:i]]
    if len(different) > 1:
        first, other = different[:2]
        raise ValueError(f"Dimensions must be equal, but are {first} and {other}")
    counts = [
        _first_known(
            *(s[0] if s is not None and len(s) == k else None for s, k in ((i, 2), (v, 1)))
        )
        for i, v in zip(every[:n], every[n : 2 * n])
    ]
    total = None if None in counts else sum(k for k in counts if k is not None)
    rank = _first_known(*(s[1] if s is not None and len(s) == 2 else None for s in every[:n]))
    rank = _first_known(rank, *(_rank_of(c, 2 * n + i) for i in range(n)))
    return [(total, rank), (total,), (rank,)]


def _first_known(*sizes: int | None) -> int | None:
    return next((s for s in sizes if s is not None), None)


SPARSE_CONCAT = define(
    "SparseConcat",
    "indices: N*int64, values: N*T, shapes: N*int64 -> output_indices: int64, "
    "output_values: T, output_shape: int64; concat_dim: int",
    shape=_concat_shape,
    kernel=_concat_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def _split_kernel(
    xp: ArrayNamespace, axis: Array, indices: Array, values: Array, dims: Array, *, num_split: int
) -> tuple[Array, ...]:
    """Parts as even as possible, the first ones one larger."""
    at, size = axis.item(), dims.tolist()
    if not 0 <= at < len(size):
        raise invalid(f"Input split_dim should be between 0 and rank ({len(size)}), got {at}")
    if not 1 <= num_split <= size[at]:
        raise invalid(
            "Input num_split should be between 1 and the splitting dimension size "
            f"({size[at]}), got {num_split}"
        )
    each, extra = divmod(size[at], num_split)
    found: list[list[Any]] = [[], [], []]
    start = 0
    for i in range(num_split):
        width = each + (i < extra)
        inside = (indices[:, at] >= start) & (indices[:, at] < start + width)
        moved = indices[inside]
        moved[:, at] -= start
        part = list(size)
        part[at] = width
        for store, value in zip(found, (moved, values[inside], np.array(part, np.int64))):
            store.append(value)
        start += width
    return tuple(v for store in found for v in store)


def _split_shape(c: Inference) -> list[Shape]:
    n, rank = c.attr("num_split"), _rank_of(c, 3)
    found: list[Shape] = [(None, rank)] * n
    return found + [(None,)] * n + [(rank,)] * n


SPARSE_SPLIT = define(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split*int64, "
    "output_values: num_split*T, output_shape: num_split*int64; num_split: int",
    shape=_split_shape,
    kernel=_split_kernel,
    grad=NO_GRADIENT_YET,
    data_dependent_shape=True,
)


# empty rows -------------------------------------------------------------------------------------


def _fill_rows_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    n = int(dims[0])
    rows = indices[:, 0]
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        bad = int(((rows < 0) | (rows >= n)).argmax())
        raise invalid(f"indices({bad}, 0) is invalid: {int(rows[bad])} >= {n}")
    empty = np.bincount(rows, minlength=n) == 0
    added = np.zeros((int(empty.sum()), indices.shape[1]), np.int64)
    added[:, 0] = np.flatnonzero(empty)
    every = np.concatenate([indices, added])
    filler = np.empty(len(added), values.dtype)
    filler[...] = default
    order = np.argsort(every[:, 0], kind="stable")
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    return every[order], np.concatenate([values, filler])[order], empty, back[: len(indices)]


def _fill_rows_grad(op: Operation, _: Tensor, grad: Tensor, __: Tensor, ___: Tensor) -> list[Any]:
    values, default = apply_many(SPARSE_FILL_EMPTY_ROWS_GRAD, op.outputs[3], grad)
    return [None, values, None, default]


def _fill_rows_shape(c: Inference) -> list[Shape]:
    dims = c.shape_value(2)
    entries = _entries(c, 0)
    shapes.merge(c.require_rank(1, 1), (c.require_rank(0, 2)[0],))
    assert entries is not None
    columns = entries[1] if dims is None else len(dims)
    return [(None, columns), (None,), (None if not dims else dims[0],), (entries[0],)]


SPARSE_FILL_EMPTY_ROWS = define(
    "SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: "
    "int64, output_values: T, "
    "empty_row_indicator: bool, reverse_index_map: int64",
    shape=_fill_rows_shape,
    kernel=_fill_rows_kernel,
    grad=_fill_rows_grad,
    data_dependent_shape=True,
)


def _fill_rows_grad_kernel(xp: ArrayNamespace, back: Array, grad: Array) -> tuple[Array, Array]:
    rest = np.ones(grad.size, bool)
    rest[back] = False
    return grad[back], grad[rest].sum(dtype=grad.dtype)


SPARSE_FILL_EMPTY_ROWS_GRAD = define(
    "SparseFillEmptyRowsGrad",
    "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T",
    shape=lambda c: [c.shape(0), ()],
    kernel=_fill_rows_grad_kernel,
    grad=NO_GRADIENT_YET,
)
