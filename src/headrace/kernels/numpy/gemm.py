"""Matrix products over Headrace's own threads.

Large float32 products go to the kernel library where there is one (accel.py). Otherwise, while a
run computes large products, OpenBLAS is held to one thread (openblas.py) and the product is cut
into as many parts as there are cores, on the pool that element-wise work uses too. The cut depends
on the shapes and the number of threads alone, so the same program gives the same bits. Where NumPy
has another BLAS, ``matmul`` is ``np.matmul``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import library
from headrace.kernels.numpy.openblas import hold_blas
from headrace.runtime import buffers
from headrace.runtime.thread_pool import parallel, thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "FEW_ROWS",
    "FEW_ROWS_FROM",
    "HOLD_FROM",
    "LIBRARY_FROM",
    "add_product",
    "column_sums",
    "matmul",
    "matmul_bias",
    "ones",
    "vector_sum",
]

#: Multiply-adds from which OpenBLAS would use threads, and from which parts on several cores pay.
HOLD_FROM = 1 << 17
SPLIT_FROM = 1 << 22
#: From here on the kernel library is faster (float32). Alone it would be from a third of that on,
#: but its second thread has often gone to sleep between such small products, and takes longer to
#: wake up than one thread needs for the product.
LIBRARY_FROM = 1_500_000
#: Few rows are a matter of reading the right side: from this many elements there parts pay as well.
FEW_ROWS, FEW_ROWS_FROM = 8, 200_000
#: Multiply-adds from which a batch of products is worth a primitive of the kernel library.
BATCH_FROM = 1 << 20


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """``a @ b``; large products are computed in parts."""
    if out is None and a.ndim == 2 == b.ndim and a.size * b.shape[1] < HOLD_FROM:
        return a.dot(b)  # (a microsecond less than np.matmul)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        return np.matmul(a, b, out)
    work = a.size * b.shape[-1] if a.ndim >= b.ndim else b.size * a.shape[-2]
    if a.shape[-1] == 1 and a.ndim == 2 == b.ndim:
        return np.multiply(a, b, out)  # NumPy's loop over columns takes eight times as long
    if work < HOLD_FROM or not hold_blas():
        return np.matmul(a, b, out)
    if work >= BATCH_FROM and (a.ndim > 2 or b.ndim > 2) and a.dtype == b.dtype == np.float32:
        result = _many(a, b, out)
        if result is not None:
            return result
    few = a.shape[-2] <= FEW_ROWS and b.size >= FEW_ROWS_FROM
    if (work >= LIBRARY_FROM or few) and a.ndim == 2 == b.ndim and a.dtype == b.dtype == np.float32:
        found = library()
        result = None if found is None else found.matmul(a, b, out)
        if result is not None:
            return result
    threads = thread_count()
    if (
        (work < SPLIT_FROM and not few)
        or threads == 1
        or a.dtype != b.dtype
        or a.dtype not in _FLOATS
    ):
        return np.matmul(a, b, out)
    if a.ndim == 2 and b.ndim == 2:
        if out is None:
            out = buffers.empty((a.shape[0], b.shape[1]), a.dtype)
        parallel(_parts(a, b, out, threads))
        return out
    if a.shape[:-2] == b.shape[:-2] and a.shape[0] > 1:
        if out is None:
            out = buffers.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        parallel(_batches(a, b, out, threads))
        return out
    return np.matmul(a, b, out)


def _many(a: Any, b: Any, out: Any) -> Any:
    """A batch of products by the kernel library.

    One product if all share a right side. None where there is none.
    """
    shared = b.size == b.shape[-1] * b.shape[-2] and a.ndim >= b.ndim
    if shared and a.flags.c_contiguous and (out is None or out.flags.c_contiguous):
        flat = None if out is None else out.reshape(-1, out.shape[-1])
        product = matmul(a.reshape(-1, a.shape[-1]), b.reshape(b.shape[-2:]), flat)
        return product.reshape(*a.shape[:-1], b.shape[-1]) if out is None else out
    found = library()
    return None if found is None else found.batch_matmul(a, b, out)


def matmul_bias(a: Any, b: Any, bias: Any) -> Any:
    """``a @ b + bias`` for a vector ``bias``.

    A library that can adds the product to rows that hold the bias already.
    """
    if a.size < _TINY and b.size < _TINY:
        out = a.dot(b)
        out += bias
        return out
    large = a.size * b.shape[-1] >= LIBRARY_FROM or (
        a.shape[0] <= FEW_ROWS and b.size >= FEW_ROWS_FROM
    )
    if large and a.dtype == np.float32 and hold_blas():
        found = library()
        if found is not None:
            out = found.matmul_bias(a, b, bias)
            if out is not None:
                return out
            out = buffers.empty((a.shape[0], b.shape[1]), np.float32)
            out[...] = bias
            if found.matmul(a, b, out, accumulate=True) is not None:
                return out
    out = matmul(a, b)
    out += bias
    return out


def add_product(a: Array, b: Any, out: Array) -> None:
    """``out += a @ b`` for matrices."""
    work = a.size * b.shape[1]
    if work >= HOLD_FROM and hold_blas() and a.dtype == np.float32:
        found = library()
        if found is not None and found.matmul(a, b, out, accumulate=True) is not None:
            return
    out += matmul(a, b)


def column_sums(x: Any) -> Any:
    """The sum of a matrix over its first axis, as a product: NumPy adds short rows one at a
    time.
    """
    if x.size >= HOLD_FROM:
        hold_blas()
    n = len(x)
    return (_few_ones if n < MAX_WITHOUT_THREADS else ones)(n, x.dtype).dot(x)


def vector_sum(x: Array) -> Any:
    """The sum of a vector.

    Short ones as a product, too, for which NumPy does less around the work.
    """
    n = len(x)
    return _few_ones(n, x.dtype).dot(x) if n < MAX_WITHOUT_THREADS else np.add.reduce(x)


def ones(n: int, dtype: object) -> Any:
    """A vector of ones to multiply with, kept and not to be written to."""
    kept = _ones.get(dtype)
    if kept is None or kept.size < n:
        kept = np.ones(max(1024, n), dtype)
        kept.flags.writeable = False
        if n <= _MAX_KEPT:
            _ones[dtype] = kept
    return kept[:n]


_few_ones = lru_cache(64)(ones)
#: Up to so many numbers BLAS adds them without threads, and as precisely as NumPy.
MAX_WITHOUT_THREADS = 4096
_TINY = 2048
_MAX_KEPT = 1 << 20
_ones: dict[Any, Any] = {}
_FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])


def _bounds(length: int, threads: int, multiple: int) -> list[tuple[int, int]]:
    share = -(-length // threads)
    share += -share % multiple
    return [(lo, min(lo + share, length)) for lo in range(0, length, share)]


def _parts(a: Array, b: Array, out: Array, threads: int) -> list[Callable[[], Any]]:
    """The product of two matrices, cut along the longer side of the result in multiples of 16."""
    m, n = out.shape
    if m >= n:
        return [
            partial(np.matmul, a[lo:hi], b, out=out[lo:hi]) for lo, hi in _bounds(m, threads, 16)
        ]
    return [
        partial(np.matmul, a, b[:, lo:hi], out=out[:, lo:hi]) for lo, hi in _bounds(n, threads, 16)
    ]


def _batches(a: Any, b: Any, out: Any, threads: int) -> list[Callable[[], Any]]:
    """Many products, cut along the first axis."""
    bounds = _bounds(a.shape[0], threads, 1)
    return [partial(np.matmul, a[lo:hi], b[lo:hi], out=out[lo:hi]) for lo, hi in bounds]
