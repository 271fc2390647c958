"""The ops that rearrange sparse tensors: order, shape, slices, joining, splitting, filling rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shape_fns, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.ops.array.array_shape import const, invalid
from headrace.ops.sparse.sparse_ops import (
    indices_dims,
    linear,
    matched,
    rank_of,
    shown,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor


__all__ = [
    "SPARSE_CONCAT",
    "SPARSE_FILL_EMPTY_ROWS",
    "SPARSE_FILL_EMPTY_ROWS_GRAD",
    "SPARSE_REORDER",
    "SPARSE_RESHAPE",
    "SPARSE_SLICE",
    "SPARSE_SLICE_GRAD",
    "SPARSE_SPLIT",
]


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
    shape=lambda c: [indices_dims(c, 0), c.require_rank(1, 1)],
    kernel=_reorder_kernel,
    grad=_reorder_grad,
)


def _reshape_kernel(
    xp: ArrayNamespace, indices: Array, dims: Array, new_shape: Array
) -> tuple[Array, Array]:
    for what, given in (("Input", dims), ("Target", new_shape)):
        if given.ndim != 1:
            raise invalid(
                f"{what} shape should be a vector but received shape {shapes.show(given.shape)}"
            )
    old, new = dims.tolist(), new_shape.tolist()
    total = int(np.prod(old, dtype=np.int64))
    if new.count(-1) > 1:
        raise invalid("only one output dimension may be -1")
    if -1 in new:
        rest = int(np.prod([d for d in new if d != -1], dtype=np.int64))
        if not rest or total % rest:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the "
                f"requested shape requires a multiple of {rest}. input_shape={shown(old)} "
                f"output_shape={shown(new)}"
            )
        new[new.index(-1)] = total // rest
    if int(np.prod(new, dtype=np.int64)) != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested "
            f"shape has {int(np.prod(new))}. input_shape={shown(old)} "
            f"output_shape={shown(new)}"
        )
    # entries beyond the shape are moved like any other, as in TensorFlow
    steps = np.cumprod([1, *old[:0:-1]], dtype=np.int64)[::-1]
    places = indices @ steps if len(old) else np.zeros(len(indices), np.int64)
    widths = np.cumprod([1, *new[:0:-1]], dtype=np.int64)[::-1]
    columns = []
    for width in widths if len(new) else ():
        left = np.fmod(places, width) if width else np.zeros_like(places)  # towards zero, as C++
        columns.append((places - left) // width if width else places)
        places = left
    moved = np.stack(columns, 1) if columns else np.empty((len(indices), 0), np.int64)
    return moved.astype(np.int64), np.array(new, np.int64)


SPARSE_RESHAPE = define(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, "
    "output_shape: int64",
    shape=shape_fns.ranked(
        (2, 1, 1), lambda c: [(indices_dims(c, 0)[0], rank_of(c, 2)), c.shape(2)]
    ),
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
    shape=lambda c: [(None, rank_of(c, 2)), (None,), c.shape(2)],
    kernel=_slice_kernel,
    grad=_slice_grad,
    data_dependent_shape=True,
)


def _slice_grad_kernel(
    xp: ArrayNamespace, grad: Array, indices: Array, start: Array, out_indices: Array
) -> Array:
    return matched(grad, out_indices + start, indices)


SPARSE_SLICE_GRAD = define(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: "
    "int64 -> val_grad: T",
    shape=lambda c: [(indices_dims(c, 1)[0],)],
    kernel=_slice_grad_kernel,
    grad=NO_GRADIENT_YET,
)


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
            raise invalid(f"Input shapes must match: expected {shown(dims[0])}, got {shown(d)}")
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
    rank = _first_known(rank, *(rank_of(c, 2 * n + i) for i in range(n)))
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
    n, rank = c.attr("num_split"), rank_of(c, 3)
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


def _fill_rows_kernel(
    xp: ArrayNamespace, indices: Array, values: Array, dims: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    if default.ndim:
        raise invalid(f"default_value must be a scalar, saw: {shapes.show(default.shape)}")
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
    entries = indices_dims(c, 0)
    c.require_rank(3, 0)
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
    shape=shape_fns.ranked((1, 1), lambda c: [c.shape(0), ()]),
    kernel=_fill_rows_grad_kernel,
    grad=NO_GRADIENT_YET,
)
