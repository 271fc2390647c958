"""Kernels that read and write by index, with TensorFlow's checks.

Below zero or past the end is an error with the first offending index; the checks are cheap for a
handful of indices too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.ops.array.array_shape import invalid, one_number

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = [
    "bad_index",
    "batched_take",
    "gather_kernel",
    "gather_nd_kernel",
    "gather_v2_kernel",
    "has_negative",
    "invert_kernel",
    "nd_index",
    "one_hot_kernel",
    "partition_kernel",
    "scatter_into",
    "scatter_kernel",
    "scatter_nd_kernel",
    "stitch_kernel",
    "take",
    "unravel_kernel",
]


def has_negative(indices: Array) -> bool:
    if indices.size <= 32:  # a reduction costs more than a few Python comparisons
        return bool(indices.size) and min(indices.reshape(-1).tolist()) < 0
    return bool(indices.min() < 0)


def bad_index(indices: Array, limit: int) -> Exception:
    """The error for the first index outside [0, limit)."""
    flat = indices.reshape(-1)
    wrong = np.flatnonzero((flat < 0) | (flat >= limit))
    first = int(wrong[0])
    place = (
        ",".join(str(int(i)) for i in np.unravel_index(first, indices.shape))
        if indices.ndim
        else ""
    )
    where = f"indices[{place}]" if indices.ndim else "indices"
    return invalid(f"{where} = {int(flat[first])} is not in [0, {limit})")


def take(xp: Any, params: Any, indices: Any, axis: int) -> Any:
    """``params`` at ``indices`` along an axis, checked."""
    if xp.name != "numpy":
        return xp.take(params, indices, axis)
    if has_negative(indices):
        raise bad_index(indices, params.shape[axis])
    try:
        out = params.take(indices, axis)
    except IndexError:
        raise bad_index(indices, params.shape[axis]) from None
    return out if out.__class__ is not bytes else np.array(out, object)


def gather_kernel(xp: ArrayNamespace, params: Array, indices: Array) -> Any:
    if params.ndim < 1:
        raise invalid("params must be at least 1 dimensional")
    return take(xp, params, indices, 0)


def gather_v2_kernel(
    xp: ArrayNamespace, params: Array, indices: Array, axis: Array, *, batch_dims: int
) -> Any:
    at = one_number(axis, "axis must be scalar, but got: {shape}")
    rank = params.ndim
    if not -rank <= at < rank:
        raise invalid(f"Expected axis in the range [{-rank}, {rank}), but got {at}")
    if at < 0:
        at += rank
    if not batch_dims:
        return take(xp, params, indices, at)
    if not -indices.ndim <= batch_dims < max(indices.ndim, 1):
        raise invalid(
            f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}), but got "
            f"{batch_dims}"
        )
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if params.shape[:batch] != indices.shape[:batch] and set(params.shape[:batch]) == {1}:
        params = xp.broadcast_to(params, (*indices.shape[:batch], *params.shape[batch:]))
    return batched_take(xp, params, indices, at, batch)


def batched_take(xp: ArrayNamespace, params: Array, indices: Array, axis: int, batch: int) -> Any:
    """Rows of one big table.

    (batch…, outer…, n, inner…) with the batch number added to the indices.
    """
    if params.shape[:batch] != indices.shape[:batch]:
        raise invalid(
            f"params.shape[:{batch}] {shapes.show(params.shape[:batch])} must equal "
            f"indices.shape[:{batch}] "
            f"{shapes.show(indices.shape[:batch])}"
        )
    limit = params.shape[axis]
    if xp.name == "numpy" and indices.size and (has_negative(indices) or indices.max() >= limit):
        raise bad_index(indices, limit)
    index: list[Any] = []
    spread = params.shape[batch:axis]
    tail = indices.ndim - batch
    total = batch + len(spread) + tail
    for i, d in enumerate(params.shape[:axis]):
        index.append(xp.arange(d).reshape([-1 if j == i else 1 for j in range(total)]))
    index.append(
        indices.reshape(indices.shape[:batch] + (1,) * len(spread) + indices.shape[batch:])
    )
    return params[tuple(index)]


def _nd_error(indices: Any, dims: Sequence[int], what: str) -> Exception:
    rows = indices.reshape(-1, indices.shape[-1])
    wrong = ((rows < 0) | (rows >= np.array(dims[: rows.shape[1]]))).any(1)
    first = int(np.flatnonzero(wrong)[0])
    outer = indices.shape[:-1]
    place = (
        "[" + ",".join(str(int(i)) for i in np.unravel_index(first, outer)) + "]" if outer else ""
    )
    value = ", ".join(str(v) for v in rows[first].tolist())
    return invalid(
        f"indices{place} = [{value}] does not index into {what}{shapes.show(tuple(dims))}"
    )


def nd_index(xp: ArrayNamespace, indices: Array, dims: Sequence[int], what: str) -> tuple[Any, ...]:
    """The last dimension of ``indices`` taken apart, each part checked against its dimension."""
    depth = indices.shape[-1]
    if depth > len(dims):
        raise invalid(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(dims)}"
        )
    if xp.name == "numpy" and indices.size:
        limits = np.array(dims[:depth])
        if has_negative(indices) or (indices >= limits).any():
            raise _nd_error(indices, dims, what)
    return tuple(indices[..., i] for i in range(depth))


def gather_nd_kernel(xp: ArrayNamespace, params: Array, indices: Array) -> Array:
    index = nd_index(xp, indices, params.shape, "param shape ")
    if not index:
        return xp.broadcast_to(params, indices.shape[:-1] + params.shape)
    return params[(*index, ...)]


def scatter_into(xp: ArrayNamespace, out: Array, indices: Array, updates: Array, how: str) -> Array:
    """A changed copy (NumPy: ``out`` itself, which the caller owns)."""
    if not out.size and not indices.size:
        return out
    for what, given in (("Indices", indices), ("Updates", updates)):
        if not given.ndim:
            raise invalid(f"{what} shape must have rank at least one. Found: []")
    index = nd_index(xp, indices, out.shape, "shape ")
    want = indices.shape[:-1] + out.shape[len(index) :]
    if updates.shape != want:
        raise invalid(
            f"Must have updates.shape = indices.shape[:-1] + shape[{len(index)}:], got "
            "updates.shape: "
            f"{shapes.show(updates.shape)}, wanted {shapes.show(want)}"
        )
    if xp.name != "numpy":
        if how == "update":
            return xp.index_set(out, (*index, ...), updates)
        return xp.index_add(out, (*index, ...), updates if how == "add" else -updates)
    if how == "update":
        out[(*index, ...)] = updates
    else:
        _accumulate(out, index, updates, np.add if how == "add" else np.subtract)
    return out


def _accumulate(out: Array, index: tuple[Any, ...], updates: Array, ufunc: Any) -> None:
    """``ufunc.at`` over rows, by way of one flat index (which NumPy has a fast path for)."""
    if not index:
        for row in updates.reshape((-1, *out.shape)):
            ufunc(out, row, out=out)
        return
    depth = len(index)
    flat = (
        index[0].reshape(-1)
        if depth == 1
        else np.ravel_multi_index(tuple(i.reshape(-1) for i in index), out.shape[:depth])
        if index[0].size
        else index[0].reshape(-1)
    )
    inner = int(np.prod(out.shape[depth:], dtype=np.int64))
    if inner == 1:
        ufunc.at(out.reshape(-1), flat, updates.reshape(-1))
    elif flat.size and inner:
        ufunc.at(out.reshape(-1, inner), flat, updates.reshape(-1, inner))


def scatter_nd_kernel(xp: ArrayNamespace, indices: Array, updates: Array, shape: Array) -> Array:
    if shape.ndim != 1:
        raise invalid("Shape must be a vector")
    dims = shape.tolist()
    if updates.dtype.kind == "O":
        out = np.empty(dims, object)
        out[...] = b""
        return scatter_into(xp, out, indices, updates, "add")
    return scatter_into(xp, xp.zeros(dims, updates.dtype), indices, updates, "add")


def scatter_kernel(how: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, tensor: Array, indices: Array, updates: Array) -> Array:
        out = np.array(tensor, order="C") if xp.name == "numpy" else tensor
        return scatter_into(xp, out, indices, updates, how)

    return kernel


def partition_kernel(
    xp: ArrayNamespace, data: Array, partitions: Array, *, num_partitions: int
) -> Array | tuple[Array, ...]:
    if data.shape[: partitions.ndim] != partitions.shape:
        raise invalid(
            "data.shape must start with partitions.shape, got data.shape = "
            f"{shapes.show(data.shape)}, "
            f"partitions.shape = {shapes.show(partitions.shape)}"
        )
    flat = partitions.reshape(-1)
    wrong = (flat < 0) | (flat >= num_partitions)
    if wrong.any():
        first = int(wrong.argmax())
        raise invalid(f"partitions[{first}] = {int(flat[first])} is not in [0, {num_partitions})")
    rows = data.reshape(flat.shape + data.shape[partitions.ndim :])
    out = tuple(rows[flat == i] for i in range(num_partitions))
    return out if num_partitions > 1 else out[0]


def stitch_kernel(xp: ArrayNamespace, *inputs: Array) -> Array:
    n = len(inputs) // 2
    indices, data = inputs[:n], inputs[n:]
    inner = data[0].shape[indices[0].ndim :]
    for i, (ix, d) in enumerate(zip(indices, data)):
        if d.shape[: ix.ndim] != ix.shape or d.shape[ix.ndim :] != inner:
            raise invalid(
                f"data[{i}].shape = {shapes.show(d.shape)} does not start with "
                f"indices[{i}].shape = {shapes.show(ix.shape)}"
            )
    size = max((int(ix.max()) + 1 for ix in indices if ix.size), default=0)
    out = np.zeros((size, *inner), data[0].dtype)
    for ix, d in zip(indices, data):
        if ix.size and ix.min() < 0:
            raise bad_index(ix, size)
        out[ix] = d
    return out


def one_hot_kernel(
    xp: ArrayNamespace, indices: Array, depth: Array, on: Array, off: Array, *, axis: int
) -> Array:
    n = one_number(depth, "depth must be a scalar, but got: {shape}")
    if n < 0:
        raise invalid(f"depth must be non-negative, got: {n}")
    for what, value in (("on_value", on), ("off_value", off)):
        if getattr(value, "ndim", 0):  # (a string is bytes)
            raise invalid(f"{what} must be a scalar, but got: {shapes.show(value.shape)}")
    if axis > indices.ndim:
        raise invalid(
            f"Expected axis to be -1 or between [0, {indices.ndim + 1}).  But received: {axis}"
        )
    at = indices.ndim if axis == -1 else axis
    column = indices.reshape(indices.shape[:at] + (1,) + indices.shape[at:])
    line = xp.arange(n, dtype=indices.dtype)
    if at != indices.ndim:
        line = line.reshape((n,) + (1,) * (indices.ndim - at))
    if xp.name != "numpy" or indices.size * n < 1 << 16:
        return xp.where(column == line, on, off)
    out = np.empty(indices.shape[:at] + (n,) + indices.shape[at:], on.dtype)
    out[...] = off
    inside = (column >= 0) & (column < n)
    np.put_along_axis(
        out, np.where(inside, column, 0), np.where(inside, on, np.take(out, [0], at)), at
    )
    return out


def invert_kernel(xp: ArrayNamespace, x: Array) -> Array:
    if x.ndim != 1:
        raise invalid("invert_permutation expects a 1D vector.")
    n = x.size
    if n and (x.min() < 0 or x.max() >= n):
        bad = next(v for v in x.tolist() if not 0 <= v < n)
        raise invalid(f"{bad} is not between 0 and {n}")
    out = np.full(n, -1, x.dtype)
    out[x] = np.arange(n, dtype=x.dtype)
    if n and out.min() < 0:
        twice = next(v for v in x.tolist() if x.tolist().count(v) > 1)
        raise invalid(f"{twice} is duplicated in the input.")
    return out


def unravel_kernel(xp: ArrayNamespace, indices: Array, dims: Array) -> Array:
    if indices.ndim > 1:
        raise invalid(
            f'The indices can only be scalar or vector, got "{shapes.show(indices.shape)}"'
        )
    if not all(dims.tolist()):
        raise invalid("Input dims cannot contain a dim of zero, but dims contains zero")
    # TensorFlow checks no bounds, and divides as C does
    found = np.empty((dims.size, *indices.shape), indices.dtype)
    strides = np.append(np.cumprod(dims[::-1].astype(np.int64))[::-1], 1)
    rest = indices.astype(np.int64)
    for i in range(dims.size):
        found[i] = np.trunc(np.fmod(rest, strides[i]) / strides[i + 1])
    return found
