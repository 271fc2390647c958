"""Large element-wise work in cache-sized blocks over threads.

``over_blocks(f, arrays)`` calls ``f(*views)`` for matching flat blocks of the arrays, on all cores
when they are large. Element-wise functions give the same bits however the blocks fall, so results
do not depend on the number of threads.

    >>> over_blocks(lambda x, out: np.tanh(x, out=out), [x, y])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.kernels.accel import here
from headrace.runtime.thread_pool import PIECES, parallel, set_threads, thread_count

__all__ = ["BLOCK", "over_blocks", "over_matching_rows", "over_rows", "set_threads", "thread_count"]

#: Elements in a block: several arrays of this many floats fit into a core's L2 cache.
BLOCK = 64 * 1024


def over_blocks(function: Callable[..., None], arrays: Sequence[Any], block: int = BLOCK) -> None:
    """Call ``function`` on matching blocks of C-contiguous arrays of one size (arrays of size 1
    are passed whole).
    """
    size = max(a.size for a in arrays)
    if size <= block:
        function(*arrays)
        return
    flat = [a.reshape(-1) if a.size == size else a.reshape(())[()] for a in arrays]
    cut = [a.size == size for a in flat]
    _spread(function, flat, cut, size, block)


def over_rows(
    function: Callable[..., None], arrays: Sequence[Any], shape: tuple[int, ...], block: int = BLOCK
) -> None:
    """Likewise along the first axis: arrays of the full shape are cut, all others passed whole."""
    per_row = 1
    for d in shape[1:]:
        per_row *= d
    cut = [getattr(a, "shape", ()) == shape for a in arrays]
    _spread(function, arrays, cut, shape[0], max(1, block // max(1, per_row)))


def over_matching_rows(
    function: Callable[..., None], arrays: Sequence[Any], columns: int, block: int = BLOCK
) -> None:
    """Likewise for arrays with as many rows as the first, whatever a row of them is: all are cut.
    ``columns`` says how much work a row is.
    """
    count = len(arrays[0])
    if count:
        _spread(function, arrays, [True] * len(arrays), count, max(1, block // max(1, columns)))


def _spread(
    function: Callable[..., None], arrays: Sequence[Any], cut: Sequence[bool], size: int, step: int
) -> None:
    """Contiguous shares of whole blocks, several a thread."""
    count = -(-size // step)
    threads = min(thread_count(), count)
    if threads == 1:
        _run(function, arrays, cut, 0, size, step)
        return
    share = -(-count // (threads * PIECES)) * step
    bounds = [(lo, min(lo + share, size)) for lo in range(0, size, share)]
    parallel([partial(_run, function, arrays, cut, lo, hi, step) for lo, hi in bounds])


def _run(
    function: Callable[..., None],
    arrays: Sequence[Any],
    cut: Sequence[bool],
    lo: int,
    hi: int,
    step: int,
) -> None:
    outside, here.in_block = here.in_block, True
    try:
        for start in range(lo, hi, step):
            stop = min(start + step, hi)
            function(*[a[start:stop] if c else a for a, c in zip(arrays, cut)])
    finally:
        here.in_block = outside
