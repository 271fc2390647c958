"""Large element-wise work in cache-sized blocks over threads.

``over_blocks(f, arrays)`` calls ``f(*views)`` for matching flat blocks of the arrays, on all cores when they are large.
Element-wise functions give the same bits however the blocks fall, so results do not depend on the number of threads.

    >>> over_blocks(lambda x, out: np.tanh(x, out=out), [x, y])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np

__all__ = ["BLOCK", "over_blocks", "pool", "set_threads", "thread_count"]

#: Elements in a block: several arrays of this many floats fit into a core's L2 cache.
BLOCK = 64 * 1024

_threads = max(1, min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1), 16))
_pool: ThreadPoolExecutor | None = None
_pool_pid = 0
_lock = Lock()


def thread_count() -> int:
    return _threads


def set_threads(n: int) -> None:
    """How many threads blocks are spread over (1: only the caller's)."""
    global _threads, _pool
    with _lock:
        if n != _threads:
            _threads = max(1, n)
            _pool = None


def pool() -> ThreadPoolExecutor:
    """The one worker pool, made on first use and made anew after a fork."""
    global _pool, _pool_pid
    if _pool is None or _pool_pid != os.getpid():
        with _lock:
            if _pool is None or _pool_pid != os.getpid():
                _pool = ThreadPoolExecutor(max(1, _threads - 1), thread_name_prefix="headrace")
                _pool_pid = os.getpid()
    return _pool


def over_blocks(function: Callable[..., None], arrays: Sequence[Any], block: int = BLOCK) -> None:
    """Call ``function`` on matching blocks of C-contiguous arrays of one size (arrays of size 1 are passed whole)."""
    size = max(a.size for a in arrays)
    if size <= block:
        function(*arrays)
        return
    flat = [a.reshape(-1) if a.size == size else a.reshape(())[()] for a in arrays]
    threads = min(_threads, (size + block - 1) // block)
    if threads == 1:
        _run_range(function, flat, size, 0, size, block)
        return
    step = -(-size // threads)
    step += -step % 64
    bounds = [(i, min(i + step, size)) for i in range(0, size, step)]
    futures: list[Future[None]] = [
        pool().submit(_worker, function, flat, size, lo, hi, block) for lo, hi in bounds[1:]
    ]
    try:
        _run_range(function, flat, size, *bounds[0], block)
    finally:
        for future in futures:
            future.result()


def _worker(function: Callable[..., None], flat: list[Any], size: int, lo: int, hi: int, block: int) -> None:
    with np.errstate(all="ignore"):
        _run_range(function, flat, size, lo, hi, block)


def _run_range(function: Callable[..., None], flat: list[Any], size: int, lo: int, hi: int, block: int) -> None:
    for start in range(lo, hi, block):
        stop = min(start + block, hi)
        function(*[a[start:stop] if a.size == size else a for a in flat])


def over_rows(
    function: Callable[..., None], arrays: Sequence[Any], shape: tuple[int, ...], block: int = BLOCK
) -> None:
    """Like ``over_blocks`` along the first axis: arrays of the full shape are cut, all others passed whole."""
    rows = shape[0]
    per_row = 1
    for d in shape[1:]:
        per_row *= d
    step = max(1, block // max(1, per_row))
    cut = [getattr(a, "shape", ()) == shape for a in arrays]

    def run(lo: int, hi: int) -> None:
        for start in range(lo, hi, step):
            stop = min(start + step, hi)
            function(*[a[start:stop] if c else a for a, c in zip(arrays, cut)])

    threads = min(_threads, max(1, rows // step))
    if threads == 1:
        run(0, rows)
        return
    share = -(-rows // threads)
    bounds = [(i, min(i + share, rows)) for i in range(0, rows, share)]
    futures = [pool().submit(_quietly, run, lo, hi) for lo, hi in bounds[1:]]
    try:
        run(*bounds[0])
    finally:
        for future in futures:
            future.result()


def _quietly(run: Callable[[int, int], None], lo: int, hi: int) -> None:
    with np.errstate(all="ignore"):
        run(lo, hi)
