"""What assignments and scatters do to a variable's value: shared by reference and resource
variables.

A kernel is a pure function of the current value and returns the new one; its in-place twin
overwrites the array it is given. Everything that can be wrong (an index out of range, shapes that
do not fit) is found before the first element is written, so a failed update leaves the variable as
it was.

    >>> scatter_kernel("add")(numpy_xp, np.zeros(3), np.array([1, 1]), np.array([1.0, 2.0]))
    array([0., 3., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.kernels.numpy.scatter_rows import join_rows

if TYPE_CHECKING:
    from headrace.core.annotations import ArrayNamespace

__all__ = [
    "check_indices",
    "check_nd_indices",
    "flat_nd_index",
    "scatter_inplace",
    "scatter_kernel",
    "scatter_nd_inplace",
    "scatter_nd_kernel",
    "strided_inplace",
    "strided_kernel",
]

Array = Any
_UNSIGNED = {np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64}


def invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# indices ----------------------------------------------------------------------------------------


def check_indices(indices: Array, size: int) -> None:
    """Refuse an index outside [0, size).

    Seen as unsigned a negative index is a large one: one pass is enough.
    """
    if indices.size and indices.view(_UNSIGNED[indices.dtype]).max() >= size:
        flat = indices.reshape(-1)
        bad = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
        at = ",".join(str(i) for i in np.unravel_index(bad, indices.shape))
        raise invalid(f"indices{f'[{at}]' if at else ''} = {flat[bad]} is not in [0, {size})")


def check_nd_indices(indices: Array, shape: tuple[int, ...], what: str = "shape") -> None:
    """Refuse a row of ``indices`` that does not point into ``shape``."""
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth)
    bad = ((rows < 0) | (rows >= np.array(shape[:depth], rows.dtype))).any(axis=1)
    if bad.any():
        first = int(bad.argmax())
        at = ",".join(str(i) for i in np.unravel_index(first, indices.shape[:-1]))
        values = ", ".join(str(v) for v in rows[first])
        raise invalid(
            f"indices{f'[{at}]' if at else ''} = [{values}] does not index into {what} "
            f"{shapes.show(shape)}"
        )


# rows: ref[indices[i]] op= updates[i] -----------------------------------------------------------


def _check_scatter(ref: Array, indices: Array, updates: Array, by_count: bool) -> None:
    if ref.ndim == 0:
        raise invalid("params must be at least 1-D, got shape []")
    wanted = indices.shape + ref.shape[1:]
    fits = updates.size == math.prod(wanted) if by_count else updates.shape == wanted
    if updates.ndim and not fits:
        raise invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape "
            "= [], got updates.shape "
            f"{shapes.show(updates.shape)}, indices.shape {shapes.show(indices.shape)}, "
            "params.shape "
            f"{shapes.show(ref.shape)}"
        )
    check_indices(indices, ref.shape[0])


def _apply_at(how: str, ref: Array, rows: Array, updates: Array) -> None:
    """``ref[rows[i]] op= updates[i]`` in the order of i, on a C-contiguous ``ref`` with 1-D
    ``rows``.
    """
    if how == "div" and ref.dtype.kind in "iu":
        _integer_divide_at(ref, rows, updates)
        return
    join_rows(how, ref, rows, updates)


def _integer_divide_at(ref: Array, rows: Array, updates: Array) -> None:
    """Integers divide towards zero, row after row (a row may come twice)."""
    if (updates == 0).any():
        raise invalid("Integer division by zero")
    for i, row in enumerate(rows.tolist()):
        by = updates[i] if updates.ndim else updates
        quotient, rest = np.divmod(ref[row], by)
        ref[row] = quotient + ((rest != 0) & (quotient < 0))


def _scatter(how: str, ref: Array, indices: Array, updates: Array, by_count: bool) -> None:
    indices, updates = np.asarray(indices), np.asarray(updates)
    _check_scatter(ref, indices, updates, by_count)
    if updates.ndim:
        updates = updates.reshape((indices.size, *ref.shape[1:]))
    _apply_at(how, ref, indices.reshape(-1), updates)


def scatter_kernel(how: str, by_count: bool = False) -> Callable[..., Array]:
    """``kernel(xp, ref, indices, updates)`` for update, add, sub, mul, div, min or max.

    ``by_count`` takes updates of any shape that has the right number of elements: so TensorFlow's
    resource variables do, where the shapes are not known while the graph is built.
    """

    def kernel(xp: ArrayNamespace, ref: Array, indices: Array, updates: Array) -> Array:
        if xp.name != "numpy":
            return getattr(xp, f"index_{'set' if how == 'update' else how}")(ref, indices, updates)
        out = np.array(ref, order="C")
        _scatter(how, out, indices, updates, by_count)
        return out

    return kernel


def scatter_inplace(how: str, by_count: bool = False) -> Callable[..., None]:
    def inplace(ref: Array, indices: Array, updates: Array) -> None:
        _scatter(how, ref, indices, updates, by_count)

    return inplace


# points: ref[tuple(indices[i])] op= updates[i] --------------------------------------------------


def _check_scatter_nd(ref: Array, indices: Array, updates: Array) -> None:
    depth = indices.shape[-1] if indices.ndim else 1
    outer = indices.shape[:-1] if indices.ndim else ()
    if indices.ndim and updates.ndim and updates.shape[: len(outer)] != outer:
        raise invalid(
            "The outermost dimension of updates and indices must match. Got indices.shape "
            f"{shapes.show(indices.shape)}, updates.shape {shapes.show(updates.shape)}"
        )
    if depth > ref.ndim or updates.shape != outer + ref.shape[depth:]:
        raise invalid(
            "Must have updates.shape = indices.shape[:batch_dim] + "
            "params_shape[slice_dim:], got updates.shape: "
            f"{shapes.show(updates.shape)}, indices.shape: {shapes.show(indices.shape)}, "
            "params_shape: "
            f"{shapes.show(ref.shape)}, slice_dim: {depth}, and batch_dim: {len(outer)}"
        )
    check_nd_indices(indices.reshape(outer + (depth,)), ref.shape)


def flat_nd_index(indices: Array, shape: tuple[int, ...]) -> Array:
    """Rows of ``indices`` as positions in the flattened leading dimensions of ``shape``."""
    depth = indices.shape[-1]
    strides = np.cumprod((1, *reversed(shape[1:depth])), dtype=np.int64)[::-1][:depth]
    return indices.reshape(-1, depth).astype(np.int64) @ strides


def _scatter_nd(how: str, ref: Array, indices: Array, updates: Array) -> None:
    indices, updates = np.asarray(indices), np.asarray(updates)
    _check_scatter_nd(ref, indices, updates)
    if indices.ndim == 0:
        indices = indices.reshape(1)
    depth = indices.shape[-1]
    if depth == 0:  # every update is to the whole array
        rows = np.zeros(int(np.prod(indices.shape[:-1], dtype=np.int64)), np.int64)
        flat_ref = ref.reshape((1, *ref.shape))
    else:
        rows = flat_nd_index(indices, ref.shape)
        flat_ref = ref.reshape(
            (int(np.prod(ref.shape[:depth], dtype=np.int64)), *ref.shape[depth:])
        )
    _apply_at(how, flat_ref, rows, updates.reshape((rows.size, *flat_ref.shape[1:])))


def scatter_nd_kernel(how: str) -> Callable[..., Array]:
    """``kernel(xp, ref, indices, updates)`` for update, add or sub at points or slices."""

    def kernel(xp: ArrayNamespace, ref: Array, indices: Array, updates: Array) -> Array:
        if xp.name != "numpy":
            at = tuple(indices[..., i] for i in range(indices.shape[-1]))
            return getattr(xp, f"index_{'set' if how == 'update' else how}")(ref, at, updates)
        out = np.array(ref, order="C")
        _scatter_nd(how, out, indices, updates)
        return out

    return kernel


def scatter_nd_inplace(how: str) -> Callable[..., None]:
    def inplace(ref: Array, indices: Array, updates: Array) -> None:
        _scatter_nd(how, ref, indices, updates)

    return inplace


# slices: ref[begin:end:strides] = value ---------------------------------------------------------


def strided_index(
    begin: Array,
    end: Array,
    strides: Array,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> tuple[Any, ...]:
    """StridedSlice's arguments as a NumPy index: the two agree on clipping and negative bounds."""
    index: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist())):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(b)
        else:
            if s == 0:
                raise invalid(f"strides[{i}] must be non-zero")
            index.append(slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
    return tuple(index)


def _checked_index(
    ref: Array, value: Array, begin: Array, end: Array, strides: Array, masks: dict[str, int]
) -> tuple[Any, ...]:
    index = strided_index(np.asarray(begin), np.asarray(end), np.asarray(strides), **masks)
    try:
        target = ref[index]
    except IndexError as error:
        raise invalid(f"slice index out of bounds: {error}") from None
    if not np.size(target):
        return index  # nothing is written, whatever the shape of the value (as in TF)
    if np.shape(target) != np.shape(value):
        raise errors.UnimplementedError(
            None,
            None,
            f"sliced l-value shape {shapes.show(np.shape(target))} does not match r-value shape "
            f"{shapes.show(np.shape(value))}. Automatic broadcasting not yet implemented.",
        )
    return index


def strided_kernel(
    xp: ArrayNamespace,
    ref: Array,
    begin: Array,
    end: Array,
    strides: Array,
    value: Array,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Array:
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    index = _checked_index(ref, value, begin, end, strides, masks)
    return xp.index_set(ref, index, value) if np.size(value) else ref


def strided_inplace(
    ref: Array,
    begin: Array,
    end: Array,
    strides: Array,
    value: Array,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> None:
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    index = _checked_index(ref, value, begin, end, strides, masks)
    if np.size(value):
        ref[index] = value
