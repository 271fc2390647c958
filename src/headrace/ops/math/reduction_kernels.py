"""Kernels of reductions and scans, and how they are made fast on NumPy.

A sum of floats over neighbouring axes is a product with a vector of ones: BLAS is several times
faster there than ``np.add.reduce``. Half types are summed in float32.

    sum_kernel(xp, x, np.array([1, 2]), keep_dims=False)
"""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.dtypes import int64
from headrace.kernels.accel import ask
from headrace.kernels.numpy.gemm import HOLD_FROM
from headrace.kernels.numpy.gemm import ones as ones_vector
from headrace.kernels.numpy.openblas import hold_blas
from headrace.runtime.thread_pool import spread

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "all_kernel",
    "any_kernel",
    "argmax_kernel",
    "argmin_kernel",
    "cumprod_kernel",
    "cumsum_kernel",
    "cumulative_logsumexp_kernel",
    "euclidean_norm_kernel",
    "l2_loss_kernel",
    "max_kernel",
    "mean_kernel",
    "min_kernel",
    "prod_kernel",
    "sum_kernel",
]

_add_reduction: Any = np.add.reduce
_multiply_reduction: Any = np.multiply.reduce

# axes -------------------------------------------------------------------------------------------


def _axes(axes: Array | np.generic, rank: int) -> tuple[int, ...] | None:
    """The axes that an input names: in ascending order, None for all of them."""
    return _normal_axes(axes.tobytes(), axes.itemsize, rank)


@functools.lru_cache(maxsize=1024)
def _normal_axes(data: bytes, itemsize: int, rank: int) -> tuple[int, ...] | None:
    """Kept by value.

    The same few axes come with every run. Repeated axes count once, as in TensorFlow.
    """
    found = np.frombuffer(data, np.int32 if itemsize == 4 else np.int64).tolist()
    for a in found:
        if not -rank <= a < rank:
            raise errors.InvalidArgumentError(
                None, None, f"Invalid reduction dimension ({a} for input with {rank} dimension(s)"
            )
    distinct = {a % rank for a in found}
    return None if len(distinct) == rank else tuple(sorted(distinct))


def _axis(axis: Array | np.generic, rank: int, what: str) -> int:
    a = int(axis)
    if not -rank <= a < rank:
        raise errors.InvalidArgumentError(
            None, None, f"{what} in the range [{-rank}, {rank}), but got {a}"
        )
    return a % rank


# sums -------------------------------------------------------------------------------------------

#: The type characters of float16 and bfloat16.
_HALVES = "eE"
_BLAS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
#: A product with ones pays from this many elements on, if what NumPy would add at a time is no
#: longer than the second.
_BLAS_FROM, _BLAS_RUN = 1024, 1024
#: Elements from which the kernel library is asked for sums of long rows.
_LIBRARY_FROM = 1 << 18
#: Elements from which a sum is made in parts, on several cores, and how many.
_PARTS_FROM, _PARTS = 1 << 19, 4
#: Longer vectors of ones are not kept.
_ONES_MAX = 1 << 20


def _blas_sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array | None:
    """The sum over neighbouring axes of a contiguous array as a matrix product, or None where that
    does not pay.
    """
    first, last = axes[0], axes[-1]
    shape = x.shape
    outer, inner = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    n = math.prod(shape[first : last + 1])
    run = n if inner == 1 else inner
    if last - first + 1 != len(axes) or n > _ONES_MAX or run > _BLAS_RUN:
        return None
    if inner > 1 and outer > 1 and n * inner < 256:
        return None
    if x.size >= HOLD_FROM:
        hold_blas()
    if x.size >= _PARTS_FROM and inner == 1 and outer >= _PARTS:
        out = _row_sums(x.reshape(outer, n))
    elif x.size >= _PARTS_FROM and outer == 1 and n >= _PARTS:
        out = _column_sums(x.reshape(n, inner))
    elif inner == 1:
        out = x.reshape(outer, n) @ ones_vector(n, x.dtype)
    elif outer == 1:
        out = ones_vector(n, x.dtype) @ x.reshape(n, inner)
    else:
        out = np.matmul(ones_vector(n, x.dtype), x.reshape(outer, n, inner))
    middle = (1,) * len(axes) if keep else ()
    return out.reshape(shape[:first] + middle + shape[last + 1 :])


def _cuts(rows: int) -> list[tuple[int, int]]:
    """Parts of the rows, always as many.

    What is computed does not depend on the number of threads.
    """
    share = -(-rows // _PARTS)
    return [(lo, min(lo + share, rows)) for lo in range(0, rows, share)]


def _row_sums(x: Any) -> Array:
    out = np.empty(len(x), x.dtype)
    ones = ones_vector(x.shape[1], x.dtype)
    spread([partial(np.dot, x[lo:hi], ones, out[lo:hi]) for lo, hi in _cuts(len(x))])
    return out


def _column_sums(x: Any) -> Any:
    cuts = _cuts(len(x))
    out = np.empty((len(cuts), x.shape[1]), x.dtype)
    spread(
        [
            partial(np.dot, ones_vector(hi - lo, x.dtype), x[lo:hi], out[i])
            for i, (lo, hi) in enumerate(cuts)
        ]
    )
    return np.add.reduce(out)


def _add_reduce(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Any:
    """A sum with NumPy; half types come back as float32."""
    dtype = x.dtype
    if axes and x.size >= _BLAS_FROM and dtype in _BLAS and x.flags.c_contiguous:
        out = _blas_sum(x, axes, keep)
        if out is None and x.size >= _LIBRARY_FROM and axes == (x.ndim - 1,):
            out = ask("row_sums", x)
            if keep and out is not None:
                out = out[..., None]
        if out is not None:
            return out
    return _add_reduction(x, axes, np.float32 if dtype.char in _HALVES else dtype, None, keep)


def sum_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Any:
    where = _axes(axes, x.ndim)
    if xp.name != "numpy":
        return xp.sum(x, axis=where, keepdims=keep_dims, dtype=x.dtype)
    out = _add_reduce(x, where, keep_dims)
    return out.astype(x.dtype) if x.dtype.char in _HALVES else out


def mean_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Any:
    where = _axes(axes, x.ndim)
    if xp.name != "numpy":
        total = xp.sum(x, axis=where, keepdims=keep_dims, dtype=x.dtype)
    else:
        total = _add_reduce(x, where, keep_dims)
    if total.size == 0:
        return total.astype(x.dtype)
    n = x.size // total.size
    if x.dtype.kind in "iu":
        return _truncated_quotient(xp, total, n)
    if x.dtype.char in _HALVES:
        return (total / np.float32(n)).astype(x.dtype)
    if n == 0 and x.dtype.kind == "c":
        return xp.zeros_like(total)
    return total / n


def _truncated_quotient(xp: ArrayNamespace, total: Array, n: int) -> Any:
    """total / n rounded towards zero; 0 for no elements."""
    if n == 0:
        return xp.zeros_like(total)
    if total.dtype.kind == "u":
        return (total // np.uint64(n)).astype(total.dtype)
    wide = total.astype(np.int64)
    down = wide // n
    return (down + ((wide < 0) & (down * n != wide))).astype(total.dtype)


def prod_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Any:
    where = _axes(axes, x.ndim)
    wide = np.float32 if x.dtype.char in _HALVES else x.dtype
    if xp.name != "numpy":
        return xp.prod(x, axis=where, keepdims=keep_dims, dtype=wide).astype(x.dtype)
    out = _multiply_reduction(x, where, wide, None, keep_dims)
    return out.astype(x.dtype) if x.dtype.char in _HALVES else out


def euclidean_norm_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Array:
    where = _axes(axes, x.ndim)
    if where == () or not x.ndim:  # nothing to reduce: TensorFlow copies
        return x.copy()
    if x.dtype.char in _HALVES:
        wide = x.astype(np.float32)
    else:
        wide = x if x.dtype.kind in "fc" else x.astype(np.float64)
    squares = (wide * wide.conj()).real if wide.dtype.kind == "c" else wide * wide
    return xp.sqrt(xp.sum(squares, axis=where, keepdims=keep_dims)).astype(x.dtype)


# maxima -----------------------------------------------------------------------------------------


def _extreme(xp: ArrayNamespace, x: Array, axes: Array, keep: bool, ufunc: str) -> Any:
    where = _axes(axes, x.ndim)
    if x.size == 0:
        return _extreme_of_nothing(xp, x, where, keep, ufunc)
    if xp.name != "numpy":
        return (xp.max if ufunc == "maximum" else xp.min)(x, axis=where, keepdims=keep)
    function = getattr(np, ufunc)
    if where == (x.ndim - 1,) and x.shape[-1] <= 32 and x.size >= 512:
        return _extreme_of_short_rows(function, x).reshape(x.shape[:-1] + ((1,) if keep else ()))
    return function.reduce(x, where, None, None, keep)


def _extreme_of_short_rows(function: Any, x: Array) -> Array:
    """NumPy pays 70 ns a row along a short last axis.

    Blocks of rows, turned, are reduced in whole vectors.
    """
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.shape[0], x.dtype)
    for i in range(0, rows.shape[0], 4096):
        block = np.ascontiguousarray(rows[i : i + 4096].T)
        function.reduce(block, 0, out=out[i : i + 4096])
    return out


def _extreme_of_nothing(
    xp: ArrayNamespace, x: Array, where: tuple[int, ...] | None, keep: bool, ufunc: str
) -> Array:
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        start: Any = limits.min if ufunc == "maximum" else limits.max
    else:
        start = -np.inf if ufunc == "maximum" else np.inf
    gone = range(x.ndim) if where is None else where
    sizes = [(1 if keep else None) if i in gone else d for i, d in enumerate(x.shape)]
    return xp.full([d for d in sizes if d is not None], start, x.dtype)


def max_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Any:
    return _extreme(xp, x, axes, keep_dims, "maximum")


def min_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Any:
    return _extreme(xp, x, axes, keep_dims, "minimum")


def all_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Array:
    return xp.all(x, axis=_axes(axes, x.ndim), keepdims=keep_dims)


def any_kernel(xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool) -> Array:
    return xp.any(x, axis=_axes(axes, x.ndim), keepdims=keep_dims)


def _arg_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, output_type: DType, function: str
) -> Array:
    a = _axis(axis, x.ndim, "Expected dimension")
    if x.shape[a] == 0:
        raise errors.InvalidArgumentError(
            None, None, f"Reduction axis {a} is empty in shape {shapes.show(x.shape)}"
        )
    out = None
    if a == 0 and xp.name == "numpy" and _is_wide(x):
        out = _arg_of_rows(x, np.minimum if function == "argmin" else np.maximum)
    if out is None:
        out = getattr(xp, function)(x, a)
    return out if output_type is int64 else out.astype(output_type.np_dtype)


def _is_wide(x: Array) -> bool:
    """Few long rows, which NumPy goes through by columns."""
    return x.ndim > 1 and x.shape[0] <= 64 and x[0].size >= 512 and x.dtype.kind in "fiu"


def _arg_of_rows(x: Array, extreme: np.ufunc) -> Array | None:
    """For each column of a few rows, the first row that has its extreme; None if there are NaN.

    NumPy goes through such an array column by column. Here rows are compared with the extremes, and
    the first one has the largest number.
    """
    is_extreme = (x == extreme.reduce(x, 0)).view(np.uint8)
    numbers = np.arange(len(x), 0, -1, dtype=np.uint8).reshape(-1, *(1,) * (x.ndim - 1))
    first = np.maximum.reduce(np.multiply(is_extreme, numbers, out=is_extreme), 0)
    return len(x) - first.astype(np.int64) if first.all() else None


def argmax_kernel(xp: ArrayNamespace, x: Array, axis: Array, *, output_type: DType) -> Array:
    return _arg_kernel(xp, x, axis, output_type, "argmax")


def argmin_kernel(xp: ArrayNamespace, x: Array, axis: Array, *, output_type: DType) -> Array:
    return _arg_kernel(xp, x, axis, output_type, "argmin")


# scans ------------------------------------------------------------------------------------------


def _scan(
    xp: Any, x: Array, axis: Array, exclusive: bool, reverse: bool, ufunc: str, start: TensorLike
) -> Any:
    """Accumulate along an axis. ``exclusive`` leaves element i out of result i."""
    a = _axis(axis, x.ndim, "ScanOp: Expected scan axis")
    front = (slice(None),) * a
    step = front + (slice(None, None, -1 if reverse else 1),)
    first, rest, all_but_last = (
        front + (slice(0, 1),),
        front + (slice(1, None),),
        front + (slice(0, -1),),
    )
    x = x[step]
    if xp.name == "numpy":
        out = np.empty(x.shape, x.dtype)
        view = out[step]
        if exclusive:
            view[first] = start
            x, view = x[all_but_last], view[rest]
        getattr(np, ufunc).accumulate(x, a, x.dtype, view)
        return out
    if exclusive:
        x = xp.concatenate([xp.full_like(x[first], start), x[all_but_last]], axis=a)
    if ufunc == "logaddexp":
        out = xp.logaddexp.accumulate(x, a)
    else:
        out = (xp.cumsum if ufunc == "add" else xp.cumprod)(x, axis=a, dtype=x.dtype)
    return out[step]


def cumsum_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, *, exclusive: bool, reverse: bool
) -> Any:
    return _scan(xp, x, axis, exclusive, reverse, "add", 0)


def cumprod_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, *, exclusive: bool, reverse: bool
) -> Any:
    return _scan(xp, x, axis, exclusive, reverse, "multiply", 1)


def cumulative_logsumexp_kernel(
    xp: ArrayNamespace, x: Array, axis: Array, *, exclusive: bool, reverse: bool
) -> Any:
    lowest = np.finfo(x.dtype).min  # TensorFlow's "log of nothing", which sums begin with
    return _scan(xp, xp.maximum(x, lowest), axis, exclusive, reverse, "logaddexp", lowest)


def l2_loss_kernel(xp: ArrayNamespace, t: Array) -> Array:
    wide = t.astype(np.float32) if t.dtype.char in _HALVES else t
    flat = wide.reshape(-1)
    return (xp.dot(flat, flat) / 2).astype(t.dtype)
