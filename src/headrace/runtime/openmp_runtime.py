"""The OpenMP runtime of this process, if a kernel library has loaded one.

Its threads spin between two parallel regions: another pool's threads have to share a core with
them, and steps that take turns between both wait for each other. So compiled kernels run on
OpenMP's threads as soon as there are some (kernels/native/openmp_team.py).
"""

from __future__ import annotations

import os

__all__ = ["parallel_address", "set_runtime"]

_address = 0


def set_runtime(library: object) -> None:
    """``library`` (ctypes) is libgomp, or anything that has its ``GOMP_parallel``."""
    import ctypes

    global _address
    function = getattr(library, "GOMP_parallel", None)
    _address = 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def parallel_address() -> int:
    """Where ``GOMP_parallel(function, data, threads, flags)`` lies; 0 if there is none."""
    return _address


def _forget() -> None:
    """Threads do not survive a fork, and the runtime would wait for them forever."""
    global _address
    _address = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
