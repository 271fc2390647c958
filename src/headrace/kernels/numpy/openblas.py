"""NumPy's own OpenBLAS, found and used directly: its thread setting, and the vector updates that
NumPy does not expose.

OpenBLAS brings a pool of its own, whose workers spin while they wait: beside other threads, or
other processes, each large product then takes many times as long. ``hold_blas`` keeps it to one
thread while a run works with Headrace's pool; ``release_blas`` puts the setting back when the run
ends.

``axpby`` and ``axpy`` update a vector in one pass over memory, where NumPy's functions take three.
Without OpenBLAS they are those functions.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.runtime import core_contention, denormals
from headrace.runtime.fork_locks import held_at_fork

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = ["axpby", "axpy", "blas_holders", "hold_blas", "release_blas"]

#: How many threads hold BLAS now; runs look here before they call ``release_blas``.
blas_holders = [0]


class _Blas:
    """The functions of the library, looked up once."""

    def __init__(self) -> None:
        self.lock = held_at_fork(threading.Lock())
        self.users = 0
        self.before = 1
        self.get: Callable[[], int] | None = None
        self.set: Callable[[int], Any] | None = None
        self.updates: dict[Any, tuple[Any, Any]] = {}  # dtype -> (axpby, axpy)
        import ctypes

        self.types = ctypes
        for path in _places():
            try:
                library = ctypes.CDLL(path)
            except OSError:
                continue
            if self._take(library):
                return

    def _take(self, library: object) -> bool:
        for prefix in ("scipy_", ""):
            for suffix in ("64_", ""):
                setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                if setter is not None and getter is not None:
                    self.set, self.get = setter, getter
                    self._take_updates(library, prefix, suffix)
                    return True
        return False

    def _take_updates(self, library: object, prefix: str, suffix: str) -> None:
        ctypes = self.types
        size = ctypes.c_int64 if suffix else ctypes.c_int
        for dtype, letter, number in (
            (np.float32, "s", ctypes.c_float),
            (np.float64, "d", ctypes.c_double),
        ):
            both = getattr(library, f"{prefix}cblas_{letter}axpby{suffix}", None)
            one = getattr(library, f"{prefix}cblas_{letter}axpy{suffix}", None)
            if both is None or one is None:
                continue
            pointer = ctypes.c_void_p
            both.argtypes, both.restype = [size, number, pointer, size, number, pointer, size], None
            one.argtypes, one.restype = [size, number, pointer, size, pointer, size], None
            self.updates[np.dtype(dtype)] = (both, one)


def _places() -> list[str]:
    package = os.path.dirname(np.__file__)
    return [
        *glob.glob(os.path.join(os.path.dirname(package), "numpy.libs", "*openblas*")),
        *glob.glob(os.path.join(package, ".dylibs", "*openblas*")),
    ]


_blas: _Blas | None = None
_holding = threading.local()


def _library() -> _Blas:
    global _blas
    if _blas is None:
        _blas = _Blas()
    return _blas


def _forget_others() -> None:
    """Only the thread that forked holds BLAS in the child."""
    blas_holders[0] = int(getattr(_holding, "on", False))
    if _blas is not None:
        _blas.users = blas_holders[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)


# threads ----------------------------------------------------------------------------------------


def hold_blas() -> bool:
    """Keep BLAS to one thread until ``release_blas`` on this thread. False if there is nothing to
    hold.

    That a run computes with large arrays is known from here on: numbers that are not normal count
    as zero until then, too.
    """
    if getattr(_holding, "on", False):
        return True
    blas = _library()
    if blas.set is None or blas.get is None:
        return False
    with blas.lock:
        if blas.users == 0:
            blas.before = blas.get()
            if blas.before != 1:
                blas.set(1)
        blas.users += 1
        blas_holders[0] += 1
    _holding.on = True
    _holding.floats = denormals.flush()
    return True


def release_blas() -> None:
    """The end of a run: put the setting back if this thread has changed it."""
    if not getattr(_holding, "on", False):
        return
    _holding.on = False
    denormals.restore(_holding.floats)
    blas = _library()
    with blas.lock:
        blas_holders[0] -= 1
        blas.users -= 1
        if blas.users == 0 and blas.before != 1 and blas.set is not None:
            blas.set(blas.before)
    core_contention.tick()


# vector updates ---------------------------------------------------------------------------------


def axpby(a: Array | int, x: Array, b: Array, y: Array, t: Array) -> None:
    """``y = a*x + b*y``; ``t`` is scratch and may be ``x``."""
    found = _library().updates.get(y.dtype)
    if found is not None and x.flags.c_contiguous and y.flags.c_contiguous:
        found[0](y.size, a, x.ctypes.data, 1, b, y.ctypes.data, 1)
        return
    np.multiply(x, a, out=t)
    np.multiply(y, b, out=y)
    np.add(y, t, out=y)


def axpy(a: Array, x: Array, y: Array, t: Array) -> None:
    """``y += a*x``; ``t`` is scratch and may be ``x``."""
    found = _library().updates.get(y.dtype)
    if found is not None and x.flags.c_contiguous and y.flags.c_contiguous:
        found[1](y.size, a, x.ctypes.data, 1, y.ctypes.data, 1)
        return
    np.multiply(x, a, out=t)
    np.add(y, t, out=y)
