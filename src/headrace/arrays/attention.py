"""Row-wise work of attention models on NumPy arrays: layer normalisation and attention, in pieces that stay in the cache.

The pieces depend on shapes alone, and each row is computed as it would be by itself: the number of threads changes nothing.

    >>> attention(q, k, v, [("Mul", scale), ("Add", mask)])   # softmax(q k^T * scale + mask) v
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from headrace.arrays.accel import library
from headrace.arrays.blas import hold_blas
from headrace.arrays.blocks import over_rows
from headrace.arrays.gemm import matmul
from headrace.arrays.pool import parallel, thread_count

__all__ = ["STEPS", "attention", "layer_norm", "softmax_rows"]

#: Elements of a piece of scores, and of rows to be normalised.
PIECE = 128 * 1024
ROWS = 32 * 1024
#: Scores below which whole arrays are as good as pieces.
SMALL = 64 * 1024
#: The kernel library does better than pieces with many small heads: so many scores in all, so few in each.
MANY, IN_EACH = 1 << 20, 1 << 16
#: Elements from which a kernel library is asked.
ASK_FROM = 16 * 1024

#: What may be done to scores before the softmax, over them.
STEPS: dict[str, Callable[..., Any]] = {
    "Mul": np.multiply, "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "RealDiv": np.divide,
}  # fmt: skip


def layer_norm(x: Any, scale: Any, offset: Any, epsilon: float) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, for each row (the last axis)."""
    if x.size >= ASK_FROM and x.dtype == np.float32:
        found = getattr(library(), "layer_norm", None)
        result = None if found is None else found(x, scale, offset, epsilon)
        if result is not None:
            return result[0]
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.shape, x.dtype)

    def piece(x: Any, out: Any) -> None:
        n = x.shape[1]
        mean = np.add.reduce(x, 1, keepdims=True)
        mean /= n
        np.subtract(x, mean, out=out)
        variance = np.einsum("ij,ij->i", out, out)[:, None]
        variance /= n
        variance += x.dtype.type(epsilon)
        np.sqrt(variance, out=variance)
        out /= variance
        out *= scale
        out += offset

    over_rows(piece, [rows, out], rows.shape, ROWS)
    return out.reshape(x.shape)


def softmax_rows(x: Any) -> None:
    """Softmax over the last axis, written over ``x``."""
    x -= np.maximum.reduce(x, -1, keepdims=True)
    np.exp(x, out=x)
    x /= np.add.reduce(x, -1, keepdims=True)


def attention(q: Any, k: Any, v: Any, steps: Sequence[tuple[str, Any]], turned: bool = True) -> Any:
    """``softmax(steps(q k^T)) v`` for arrays (…, rows, depth); ``turned`` False: k is (…, depth, rows) already."""
    keys = k.swapaxes(-1, -2) if turned else k
    rows, width = q.shape[-2], keys.shape[-1]
    lead = q.shape[:-2]
    scores = rows * width
    for n in lead:
        scores *= n
    if scores < SMALL or keys.shape[:-2] != lead or v.shape[:-2] != lead or not width:
        return _whole(q, keys, v, steps)
    hold_blas()
    if scores >= MANY and rows * width <= IN_EACH and q.dtype == np.float32:
        done = _by_library(q, keys, v, steps)
        if done is not None:
            return done
    spread = [(STEPS[name], _spread(arg, (*lead, rows, width))) for name, arg in steps]
    out = _result(lead, rows, v)
    at_once = max(1, min(rows, PIECE // width))
    pieces = [
        (i, lo, min(lo + at_once, rows))
        for i in product(*map(range, lead))
        for lo in range(0, rows, at_once)
    ]
    threads = min(thread_count(), len(pieces))
    share = -(-len(pieces) // threads)
    work = partial(_pieces, q, keys, v, spread, out, at_once)
    parallel([partial(work, pieces[lo : lo + share]) for lo in range(0, len(pieces), share)])
    return out


def _result(lead: tuple[int, ...], rows: int, v: Any) -> Any:
    """Room for the result. With one axis of heads that lies behind the rows: they are put side by side next."""
    if len(lead) == 2:
        return np.empty((lead[0], rows, lead[1], v.shape[-1]), v.dtype).transpose(0, 2, 1, 3)
    return np.empty((*lead, rows, v.shape[-1]), v.dtype)


def _spread(arg: Any, shape: tuple[int, ...]) -> Any:
    """A number, or a view of the full shape."""
    if getattr(arg, "ndim", 0) == 0:
        return arg
    return arg.reshape(())[()] if arg.size == 1 else np.broadcast_to(arg, shape)


def _pieces(
    q: Any, keys: Any, v: Any, steps: list[tuple[Any, Any]], out: Any, at_once: int,
    pieces: list[tuple[tuple[int, ...], int, int]],
) -> None:  # fmt: skip
    room = np.empty((at_once, keys.shape[-1]), q.dtype)
    for i, lo, hi in pieces:
        scores = room[: hi - lo]
        np.matmul(q[i][lo:hi], keys[i], out=scores)
        for function, arg in steps:
            function(scores, arg[i][lo:hi] if getattr(arg, "ndim", 0) else arg, out=scores)
        softmax_rows(scores)
        out[i][lo:hi] = scores @ v[i]


def _by_library(q: Any, keys: Any, v: Any, steps: Sequence[tuple[str, Any]]) -> Any:
    """Whole arrays through the kernel library; None where it does not want them."""
    found = library()
    scores = None if found is None else found.batch_matmul(q, keys)
    if found is None or scores is None:
        return None
    for name, arg in steps:
        STEPS[name](scores, arg, out=scores)
    weights = found.softmax(scores)
    return None if weights is None else matmul(weights, v)


def _whole(q: Any, keys: Any, v: Any, steps: Sequence[tuple[str, Any]]) -> Any:
    scores = np.matmul(q, keys)
    for name, arg in steps:
        wide = (
            getattr(arg, "ndim", 0) > 0
            and np.broadcast_shapes(arg.shape, scores.shape) != scores.shape
        )
        scores = STEPS[name](scores, arg, out=None if wide else scores)
    if scores.size:
        softmax_rows(scores)
    return np.matmul(scores, v)
