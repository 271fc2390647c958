"""Matrix products over Headrace's own threads.

While a run computes large products, OpenBLAS is held to one thread (see blas.py) and the product is cut into as many
parts as there are cores, on the pool that element-wise work uses too. The cut depends on the shapes and the number of threads
alone, so the same program gives the same bits. Where NumPy has another BLAS, ``matmul`` is ``np.matmul``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from headrace.arrays.blas import hold_blas
from headrace.arrays.pool import parallel, thread_count

__all__ = ["HOLD_FROM", "matmul"]

#: Multiply-adds from which OpenBLAS would use threads, and from which parts on several cores pay.
HOLD_FROM = 1 << 17
SPLIT_FROM = 1 << 22


def matmul(a: Any, b: Any) -> Any:
    """``a @ b``; large products of two matrices are computed in parts."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        return np.matmul(a, b)
    m, k = a.shape
    n = b.shape[1]
    work = m * n * k
    if work < HOLD_FROM or not hold_blas():
        return np.matmul(a, b)
    threads = thread_count()
    if work < SPLIT_FROM or threads == 1:
        return np.matmul(a, b)
    out = np.empty((m, n), a.dtype)
    parallel(_parts(a, b, out, threads))
    return out


def _parts(a: Any, b: Any, out: Any, threads: int) -> list[Callable[[], Any]]:
    """The product in as many parts, cut along the longer side of the result in multiples of 16."""
    m, n = out.shape
    length = m if m >= n else n
    share = -(-length // threads)
    share += -share % 16
    bounds = [(lo, min(lo + share, length)) for lo in range(0, length, share)]
    if m >= n:
        return [partial(np.matmul, a[lo:hi], b, out=out[lo:hi]) for lo, hi in bounds]
    return [partial(np.matmul, a, b[:, lo:hi], out=out[:, lo:hi]) for lo, hi in bounds]
