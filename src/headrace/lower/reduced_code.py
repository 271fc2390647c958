"""A chain of element-wise operations that ends in a reduction, as a function of its inputs.

The whole chain never exists for large arrays: each block of it is computed in a buffer of the
thread and reduced there. Blocks depend on the shape alone, and partial results are joined in a
fixed order, so the number of threads changes nothing. A sum over everything is cut where NumPy's
own pairwise summation halves its input, and so has the same bits as without blocks.

    reduce_sum(square(x - y))   # one pass over x and y, nothing of their size is written
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.numpy import blocks
from headrace.kernels.numpy.gemm import ones
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower import fused_code as fused
from headrace.lower.fusion import Fused
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Program
from headrace.runtime.thread_pool import parallel, thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["make_reduced"]

#: Rows up to this length are summed by BLAS.
SHORT_ROW = 1024

_buffers = threading.local()


def _buffer(size: int, dtype: np.dtype[Any]) -> Array:
    """This thread's own memory for a block, until it asks again."""
    kept = getattr(_buffers, "kept", None)
    if kept is None:
        kept = _buffers.kept = {}
    found = kept.get(dtype)
    if found is None or found.size < size:
        found = kept[dtype] = np.empty(size, dtype)
    return found[:size]


def make_reduced(step: Fused, program: Program) -> Callable[..., Any]:
    """The step as a function; its last node is a Sum, Mean, Max or Min of the others."""
    last = step.nodes[-1]
    inner = Fused(step.nodes[:-1], step.inputs)
    chain, into = fused.compiled(inner, program, None)
    info = program.values[inner.output]
    dtype, rank = info.dtype.np_dtype, len(info.shape or ())
    axes = program.constants[last.inputs[1]]
    kernel = bound_kernel(last)
    everything = len({int(a) % rank for a in axes.reshape(-1)}) == rank
    reduce = _everything if everything else _rows
    name, keep = last.opdef.traits.reduces, bool(last.attrs["keep_dims"])

    def run(*inputs: Array | np.generic) -> Any:
        shape = _full_shape(inputs, rank)
        is_large = shape is not None and math.prod(shape) >= fused.THREADS_FROM
        if shape is not None and is_large and (not everything or _is_flat(inputs, shape)):
            return reduce(into, inputs, shape, dtype, name, keep)
        return kernel(chain(*inputs), axes)

    return run


def _full_shape(inputs: tuple[Any, ...], rank: int) -> tuple[int, ...] | None:
    """The shape of the chain's result if one of the inputs has it, and the others do not stretch
    it.
    """
    found = None
    for x in inputs:
        if getattr(x, "ndim", 0) == rank and (found is None or x.size > found.size):
            found = x
    if found is None:
        return None
    shape: tuple[int, ...] = found.shape
    for x in inputs:
        given = getattr(x, "shape", ())
        if given == shape or (len(given) < rank and given == shape[rank - len(given) :]):
            continue
        if getattr(x, "size", 1) != 1:
            return None
    return shape


def _is_flat(inputs: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    for x in inputs:
        if getattr(x, "shape", ()) == shape:
            if not x.flags.c_contiguous:
                return False
        elif getattr(x, "size", 1) != 1:
            return False
    return True


# over everything ----------------------------------------------------------------------------------


def _everything(
    into: Callable[..., Any],
    inputs: tuple[Any, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str,
    keep: bool,
) -> Array | np.generic:
    flat = [x.reshape(-1) if getattr(x, "shape", ()) == shape else _single(x) for x in inputs]
    cut = [getattr(x, "ndim", 0) == 1 for x in flat]
    size = next(x.size for x, c in zip(flat, cut) if c)
    leaves: list[tuple[int, int]] = []
    tree = _halves(0, size, blocks.BLOCK, leaves)
    partials = np.empty(len(leaves), dtype)
    work = partial(_sums, into, flat, cut, dtype, leaves, partials)
    _over(work, len(leaves))
    total = _joined(tree, partials)
    if name == "mean":
        total = total / size
    return np.full((1,) * len(shape), total, dtype) if keep else total


def _single(x: Any) -> Any:
    return x.reshape(())[()] if getattr(x, "ndim", 0) else x


def _halves(
    start: int, size: int, block: int, leaves: list[tuple[int, int]]
) -> tuple[Any, Any] | int:
    """The pieces that NumPy's pairwise summation makes, down to blocks.

    A leaf's number, or a pair.
    """
    if size <= max(block, 128):
        leaves.append((start, start + size))
        return len(leaves) - 1
    half = size // 2
    half -= half % 8
    left = _halves(start, half, block, leaves)
    return left, _halves(start + half, size - half, block, leaves)


def _joined(tree: Any, partials: Any) -> Any:
    if not isinstance(tree, tuple):
        return partials[tree]
    return _joined(tree[0], partials) + _joined(tree[1], partials)


def _sums(
    into: Callable[..., Any],
    flat: list[Any],
    cut: list[bool],
    dtype: np.dtype[Any],
    leaves: list[tuple[int, int]],
    partials: Array,
    first: int,
    end: int,
) -> None:
    for n in range(first, end):
        lo, hi = leaves[n]
        out = _buffer(hi - lo, dtype)
        into(*[x[lo:hi] if c else x for x, c in zip(flat, cut)], out)
        partials[n] = np.add.reduce(out)


def _over(work: Callable[[int, int], None], count: int) -> None:
    """Contiguous shares of the pieces, one a thread."""
    share = -(-count // min(thread_count(), count))
    parallel([partial(work, lo, min(lo + share, count)) for lo in range(0, count, share)])


# over the last axis -------------------------------------------------------------------------------


def _rows(
    into: Callable[..., Any],
    inputs: tuple[Any, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str,
    keep: bool,
) -> Any:
    out = np.empty(shape[:-1], dtype)
    cut = [getattr(x, "shape", ()) == shape for x in inputs]
    step = max(1, blocks.BLOCK // max(1, math.prod(shape[1:])))
    if shape[-1] <= SHORT_ROW:
        hold_blas()
    work = partial(_row_pieces, into, inputs, cut, shape, dtype, name, out, step)
    _over(work, -(-shape[0] // step))
    return out[..., None] if keep else out


def _row_pieces(
    into: Callable[..., Any],
    inputs: tuple[Any, ...],
    cut: list[bool],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str,
    out: Array,
    step: int,
    first: int,
    end: int,
) -> None:
    length = shape[-1]
    for n in range(first, end):
        lo, hi = n * step, min((n + 1) * step, shape[0])
        piece = _buffer((hi - lo) * math.prod(shape[1:]), dtype).reshape(hi - lo, *shape[1:])
        into(*[x[lo:hi] if c else x for x, c in zip(inputs, cut)], piece)
        target = out[lo:hi]
        if name in ("max", "min"):
            (np.maximum if name == "max" else np.minimum).reduce(piece, -1, out=target)
            continue
        if length <= SHORT_ROW:
            np.matmul(piece.reshape(-1, length), ones(length, dtype), out=target.reshape(-1))
        else:
            np.add.reduce(piece, -1, out=target)
        if name == "mean":
            target /= length
