"""Kernels of segment ops: rows reduced by the ids of their segments (see ``segments``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.dtypes import FROM_NUMPY
from headrace.kernels.numpy.scatter_rows import join_rows_natively
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace


def _check_sorted(ids: Array, rows: int) -> None:
    if ids.ndim != 1 or ids.shape[0] != rows:
        raise invalid("segment_ids should be the same size as dimension 0 of input.")
    _check_order(ids)


def _check_order(ids: Array) -> None:
    """TensorFlow walks through the runs of equal ids up to the first that is wrong.

    The last id gives the size.
    """
    if not ids.size:
        return
    if ids[-1] < 0:
        raise invalid("segment ids must be >= 0")
    falls = ids[1:] < ids[:-1]
    if ids[0] >= 0 and not falls.any():
        return
    size = int(ids[-1]) + 1
    ends = np.append(np.flatnonzero(ids[1:] != ids[:-1]), ids.size - 1)
    for end in ends.tolist():
        if end < falls.size and falls[end]:
            raise invalid("segment ids are not increasing")
        if not 0 <= ids[end] < size:
            raise invalid(
                f"Segment id {ids[end]} out of range [0, {size}), possibly because "
                "'segment_ids' input is not sorted."
            )


def _runs(ids: Array) -> Array:
    """Where a new id starts, in sorted ids."""
    return np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))


def _reduce_runs(ufunc: Any, data: Array, ids: Array, count: int, fill: int) -> Array:
    out = np.full((count, *data.shape[1:]), fill, data.dtype)
    if data.shape[0]:
        starts = _runs(ids)
        out[ids[starts]] = ufunc.reduceat(data, starts, axis=0, dtype=data.dtype)
    return out


def sorted_kernel(ufunc: str, fill: int) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Array, segment_ids: Array) -> Array:
        _check_sorted(segment_ids, data.shape[0])
        count = int(segment_ids[-1]) + 1 if data.shape[0] else 0
        return _reduce_runs(getattr(np, ufunc), data, segment_ids, count, fill)

    return kernel


def segment_mean_kernel(xp: ArrayNamespace, data: Array, segment_ids: Array) -> Any:
    total = sorted_kernel("add", 0)(xp, data, segment_ids)
    counts = np.maximum(np.bincount(segment_ids, minlength=total.shape[0]), 1)
    counts = counts.reshape((-1,) + (1,) * (data.ndim - 1))
    if data.dtype.kind in "iu":
        wide = total.astype(np.int64)
        return (np.sign(wide) * (np.abs(wide) // counts)).astype(data.dtype)
    return total / counts.astype(data.dtype)


#: From this many elements on, summing rows through a sparse matrix pays (25 times faster than
#: ``np.add.at``).
_SPARSE_FROM = 1 << 14


def _row_sums(data: Array, ids: Array, count: int) -> Any:
    """Rows of a matrix added up by id."""
    if data.size >= _SPARSE_FROM:
        out = np.zeros((count, data.shape[1]), data.dtype)
        if join_rows_natively("add", out, ids, data):
            return out
    if (
        data.dtype.kind in "fc"
        and data.dtype.itemsize >= 4
        and data.size >= _SPARSE_FROM
        and data.shape[1] >= 4
    ):
        from scipy.sparse import csc_matrix

        ones = np.ones(ids.size, data.dtype)
        return csc_matrix((ones, ids, np.arange(ids.size + 1)), shape=(count, ids.size)) @ data
    return _rows_at(np.add, data, ids, count, 0)


def _rows_at(ufunc: Any, data: Array, ids: Array, count: int, fill: int | np.generic) -> Array:
    out = np.full((count, data.shape[1]), fill, data.dtype)
    ufunc.at(out, ids, data)
    return out


def _flat_rows(data: Array, ids: Array, count: int) -> tuple[Any, Any]:
    """``data`` as a matrix with one row per id; rows with a negative id are dropped."""
    if data.shape[: ids.ndim] != ids.shape:
        raise invalid(
            f"data.shape = {shapes.show(data.shape)} does not start with "
            f"segment_ids.shape = {shapes.show(ids.shape)}"
        )
    flat = ids.reshape(-1)
    rows = data.reshape(flat.size, math.prod(data.shape[ids.ndim :]))
    if flat.size and flat.min() < 0:
        keep = flat >= 0
        rows, kept = rows[keep], flat[keep]
    else:
        kept = flat
    if kept.size and kept.max() >= count:
        at = int(np.flatnonzero(flat >= count)[0])
        where = ",".join(str(i) for i in np.unravel_index(at, ids.shape))
        raise invalid(f"segment_ids[{where}] = {flat[at]} is out of range [0, {count})")
    return rows, kept


def _count(num_segments: Array | np.generic) -> int:
    count = int(num_segments)
    if count < 0:
        raise invalid(f"Input num_segments == {count} must not be negative.")
    return count


def unsorted_sum_kernel(
    xp: ArrayNamespace, data: Array, segment_ids: Array, num_segments: Array
) -> Any:
    count = _count(num_segments)
    if xp.name != "numpy":
        start = xp.zeros((count, *data.shape[segment_ids.ndim :]), data.dtype)
        return xp.index_add(start, _negative_to_end(xp, segment_ids, count), data)
    rows, ids = _flat_rows(data, segment_ids, count)
    return _row_sums(rows, ids, count).reshape(count, *data.shape[segment_ids.ndim :])


def _negative_to_end(xp: ArrayNamespace, ids: Array, count: int) -> Array:
    """Negative ids moved behind the end, where a traced scatter drops them."""
    return xp.where(ids < 0, count, ids)


def unsorted_kernel(ufunc: str, fill: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Any, segment_ids: Array, num_segments: Array) -> Any:
        count = _count(num_segments)
        rows, ids = _flat_rows(data, segment_ids, count)
        out = _rows_at(getattr(np, ufunc), rows, ids, count, _limit(data.dtype, fill))
        return out.reshape(count, *data.shape[segment_ids.ndim :])

    return kernel


def _limit(dtype: np.dtype[Any], which: str) -> Any:
    if which == "one":
        return 1
    return getattr(FROM_NUMPY[dtype], which)


def _sparse_rows(data: Array, indices: Array, ids: Array) -> Array:
    """``data[indices]``, with the checks of the sparse segment ops."""
    if indices.shape != ids.shape or ids.ndim != 1:
        raise invalid("segment_ids and indices should have same size.")
    _check_order(ids)
    bad = np.flatnonzero((indices < 0) | (indices >= data.shape[0]))
    if bad.size:
        raise invalid(
            f"Bad: indices[{bad[0]}] == {indices[bad[0]]} out of range [0, {data.shape[0]})"
        )
    return data[indices]


def _divisors(ids: Array, count: int, scale: str, dtype: Any) -> Array:
    """What the sum of each segment is divided by."""
    counts = np.maximum(np.bincount(ids, minlength=count), 1).astype(dtype)
    return np.sqrt(counts) if scale == "sqrt" else counts


def sparse_kernel(scale: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Array, indices: Array, segment_ids: Array) -> Array:
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        return _sparse_segments(data, indices, segment_ids, count, scale)

    return kernel


def sparse_kernel_n(scale: str) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace, data: Array, indices: Array, segment_ids: Array, num_segments: Array
    ) -> Array:
        count = _count(num_segments)
        if segment_ids.size and segment_ids[-1] >= count:
            raise invalid("segment ids must be < num_segments")
        return _sparse_segments(data, indices, segment_ids, count, scale)

    return kernel


def _sparse_segments(data: Array, indices: Array, ids: Array, count: int, scale: str) -> Array:
    rows = _sparse_rows(data, indices, ids)
    total = _reduce_runs(np.add, rows, ids, count, 0)
    if not scale:
        return total
    return total / _divisors(ids, count, scale, data.dtype).reshape((-1,) + (1,) * (data.ndim - 1))


def sparse_grad_kernel(scale: str) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace, grad: Array, indices: Array, segment_ids: Array, output_dim0: Array
    ) -> Any:
        rows = int(output_dim0)
        bad = np.flatnonzero((indices < 0) | (indices >= rows))
        if bad.size:
            raise invalid(f"Index {indices[bad[0]]} out of range [0, {rows}).")
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        if count > grad.shape[0]:
            raise invalid(
                f"Invalid number of segments: {count} by the ids, {grad.shape[0]} rows of "
                "the gradient"
            )
        bad = np.flatnonzero((segment_ids < 0) | (segment_ids >= grad.shape[0]))
        if bad.size:
            raise invalid(f"Segment id {segment_ids[bad[0]]} out of range [0, {grad.shape[0]}).")
        divisors = _divisors(segment_ids, grad.shape[0], scale, grad.dtype)
        scaled = grad / divisors.reshape((-1,) + (1,) * (grad.ndim - 1))
        flat = scaled[segment_ids].reshape(segment_ids.size, math.prod(grad.shape[1:]))
        return _row_sums(flat, indices, rows).reshape(rows, *grad.shape[1:])

    return kernel
