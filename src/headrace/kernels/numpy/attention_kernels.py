"""Row-wise work of attention models on NumPy arrays: layer normalisation and attention, in pieces
that stay in the cache.

The pieces depend on shapes alone, and each row is computed as it would be by itself: the number of
threads changes nothing.

    >>> attention(q, k, v, [("Mul", scale), ("Add", mask)])   # softmax(q k^T * scale + mask) v
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import library
from headrace.kernels.numpy.blocks import over_rows
from headrace.kernels.numpy.gemm import matmul
from headrace.kernels.numpy.openblas import hold_blas
from headrace.kernels.numpy.row_gradients import layer_norm_training
from headrace.runtime.thread_pool import parallel, thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["STEPS", "attention", "for_library", "layer_norm", "empty_result", "softmax_rows"]

#: Elements of a piece of scores, and of rows to be normalised.
PIECE = 128 * 1024
ROWS = 32 * 1024
#: Scores below which whole arrays are as good as pieces.
MIN_SCORES_IN_PIECES = 64 * 1024
#: The kernel library is asked from so many scores on; heads with more in each are better done in
#: pieces.
LIBRARY_FROM, MAX_SCORES_OF_HEAD = 1 << 13, 1 << 21
#: Examples with so many scores are computed one after the other: the library takes what is done to
#: scores only then.
MAX_SCORES_AT_ONCE = 1 << 19

Steps = Sequence[tuple[str, Any]]

#: What may be done to scores before the softmax, over them.
STEPS: dict[str, Callable[..., Any]] = {
    "*": np.multiply,
    "+": np.add,
    "-": np.subtract,
    "/": np.divide,
}


def layer_norm(x: Array, scale: Array, offset: Array, epsilon: float) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, for each row (the last axis)."""
    return layer_norm_training(x, scale, offset, epsilon)[0]


def softmax_rows(x: Array) -> None:
    """Softmax over the last axis, written over ``x``."""
    x -= np.maximum.reduce(x, -1, keepdims=True)
    np.exp(x, out=x)
    x /= np.add.reduce(x, -1, keepdims=True)


def attention(q: Array, k: Array, v: Array, steps: Steps, turned: bool = True) -> Any:
    """``softmax(steps(q k^T)) v`` for arrays (…, rows, depth).

    ``turned`` False: k is (…, depth, rows) already.
    """
    keys = k.swapaxes(-1, -2) if turned else k
    rows, width = q.shape[-2], keys.shape[-1]
    lead = q.shape[:-2]
    scores = rows * width
    for n in lead:
        scores *= n
    alike = keys.shape[:-2] == lead == v.shape[:-2] and width > 0
    if alike and scores >= LIBRARY_FROM:
        hold_blas()
        done = _by_library(q, keys, v, steps)
        if done is not None:
            return done
    if scores < MIN_SCORES_IN_PIECES or not alike:
        return _whole(q, keys, v, steps)
    hold_blas()
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


def _result(lead: tuple[int, ...], rows: int, v: Array) -> Any:
    return empty_result(np.empty, (*lead, rows, v.shape[-1]), v.dtype)


def empty_result(empty: Callable[..., Any], shape: tuple[int, ...], dtype: object) -> Any:
    """Room for a result.

    With one axis of heads that lies behind the rows: they are put side by side next.
    """
    if len(shape) != 4:
        return empty(shape, dtype)
    examples, heads, rows, depth = shape
    return empty((examples, rows, heads, depth), dtype).transpose(0, 2, 1, 3)


def _spread(arg: Any, shape: tuple[int, ...]) -> Any:
    """A number, or a view of the full shape."""
    if getattr(arg, "ndim", 0) == 0:
        return arg
    return arg.reshape(())[()] if arg.size == 1 else np.broadcast_to(arg, shape)


def _pieces(
    q: Array,
    keys: Array,
    v: Array,
    steps: list[tuple[Any, Any]],
    out: Array,
    at_once: int,
    pieces: list[tuple[tuple[int, ...], int, int]],
) -> None:
    room = np.empty((at_once, keys.shape[-1]), q.dtype)
    for i, lo, hi in pieces:
        scores = room[: hi - lo]
        np.matmul(q[i][lo:hi], keys[i], out=scores)
        for function, arg in steps:
            function(scores, arg[i][lo:hi] if getattr(arg, "ndim", 0) else arg, out=scores)
        softmax_rows(scores)
        out[i][lo:hi] = scores @ v[i]


def _by_library(q: Any, keys: Any, v: Any, steps: Steps) -> Any:
    """By the kernel library; None where it does not want them."""
    found, parts = library(), for_library(q, keys, v, steps)
    if found is None or parts is None:
        return None
    out = _result(q.shape[:-2], q.shape[-2], v)
    for own, mine in parts:
        if not _into(found, q[own], keys[own], v[own], mine, out[own]):
            return None
    return out


def for_library(q: Array, keys: Array, v: Array, steps: Steps) -> list[tuple[Any, Steps]] | None:
    """What the kernel library computes at once.

    Examples, with what is done to their scores. None: nothing of it.
    """
    shape = (*q.shape[:-1], keys.shape[-1])
    rows, width = shape[-2:]
    alike = keys.shape[:-2] == q.shape[:-2] == v.shape[:-2] and width > 0
    if (
        not alike
        or q.dtype != np.float32
        or rows * width > MAX_SCORES_OF_HEAD
        or math.prod(shape) < LIBRARY_FROM
    ):
        return None
    if not _fit(steps, shape):
        return None
    small = len(shape) == 4 and shape[1] * shape[2] * shape[3] < MAX_SCORES_AT_ONCE
    if len(shape) != 4 or small or shape[0] == 1:
        return [(slice(None), steps)]
    parts = [slice(i, i + 1) for i in range(shape[0])]
    return [(own, [(n, _of_example(a, own)) for n, a in steps]) for own in parts]


def _fit(steps: Steps, shape: tuple[int, ...]) -> bool:
    """No step stretches the scores."""
    for _, arg in steps:
        given = getattr(arg, "shape", ())
        if len(given) > len(shape):
            return False
        for d, full in zip(given[::-1], shape[::-1]):
            if d not in (1, full):
                return False
    return True


def _of_example(arg: Array, own: slice) -> Array:
    return arg[own] if getattr(arg, "ndim", 0) == 4 and arg.shape[0] > 1 else arg


def _into(found: Any, q: object, keys: object, v: Any, steps: Steps, out: Array) -> bool:
    scores = found.scores(q, keys, steps)
    if scores is None:
        scores = found.batch_matmul(q, keys)
        if scores is None:
            return False
        _do_steps(scores, steps)
    weights = found.softmax(scores, scores)
    if weights is None:
        return False
    if found.batch_matmul(weights, v, out) is None:
        out[...] = matmul(weights, v)
    return True


def _do_steps(scores: Array, steps: Steps) -> None:
    """Over the scores, a few examples at a time and on all cores."""
    spread = [_spread(arg, scores.shape) for _, arg in steps]

    def block(scores: object, *args: object) -> None:
        for (name, _), arg in zip(steps, args):
            STEPS[name](scores, arg, out=scores)

    over_rows(block, [scores, *spread], scores.shape, ROWS)


def _whole(q: Array, keys: Array, v: Array, steps: Steps) -> Any:
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
