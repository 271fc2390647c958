"""Matrix products over Headrace's own threads.

NumPy's OpenBLAS brings a pool of its own, whose workers spin while they wait: beside other threads, or other processes,
each product then takes many times as long. So while a run computes large products, OpenBLAS is held to one thread and the
product is cut into as many parts as there are cores, on the pool that element-wise work uses too. The setting is put
back when the run ends. The cut depends on the shapes and the number of threads alone, so the same program gives the same
bits.

Where NumPy has another BLAS, ``matmul`` is ``np.matmul``.
"""

from __future__ import annotations

import ctypes
import glob
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from headrace.arrays.pool import parallel, thread_count

__all__ = ["hold_blas", "matmul", "release_blas"]

#: Multiply-adds from which OpenBLAS would use threads, and from which parts on several cores pay.
HOLD_FROM = 1 << 17
SPLIT_FROM = 1 << 22


class _Blas:
    """The thread setting of NumPy's BLAS."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = 1
        self.known = False
        self.get: Callable[[], int] | None = None
        self.set: Callable[[int], Any] | None = None

    def find(self) -> None:
        """Look for the OpenBLAS that NumPy's wheel carries."""
        self.known = True
        folder = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs")
        places = glob.glob(os.path.join(folder, "*openblas*")) + glob.glob(
            os.path.join(os.path.dirname(np.__file__), ".dylibs", "*openblas*")
        )
        for path in places:
            try:
                library = ctypes.CDLL(path)
            except OSError:
                continue
            for prefix in ("scipy_", ""):
                for suffix in ("64_", ""):
                    setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                    getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                    if setter is not None and getter is not None:
                        self.set, self.get = setter, getter
                        return


_blas = _Blas()
_holding = threading.local()


def hold_blas() -> bool:
    """Keep BLAS to one thread until ``release_blas`` on this thread. False if there is nothing to hold."""
    if getattr(_holding, "on", False):
        return True
    if not _blas.known:
        _blas.find()
    if _blas.set is None or _blas.get is None:
        return False
    with _blas.lock:
        if _blas.users == 0:
            _blas.before = _blas.get()
            if _blas.before != 1:
                _blas.set(1)
        _blas.users += 1
    _holding.on = True
    held[0] += 1
    return True


#: How many threads hold BLAS now; runs look here before they call ``release_blas``.
held = [0]


def release_blas() -> None:
    """The end of a run: put the setting back if this thread held it."""
    if not getattr(_holding, "on", False):
        return
    _holding.on = False
    held[0] -= 1
    with _blas.lock:
        _blas.users -= 1
        if _blas.users == 0 and _blas.before != 1 and _blas.set is not None:
            _blas.set(_blas.before)


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
