"""Resizing images (batch x height x width x channels) along both axes, one axis at a time.

For every output position an axis has the input positions that it is mixed from, and their weights:
two for bilinear, four for bicubic, a run of them for area. The arithmetic is TensorFlow's, in
float32. A gradient is the transposed mixing, done as a product with the matrix of weights.

    >>> bilinear(images, (224, 224), align_corners=False, half_pixel=False).shape
    (8, 224, 224, 3)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.annotations import DTypeLike
from headrace.kernels.hot_work import HotWork
from headrace.runtime.thread_pool import parallel, thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "area",
    "bicubic",
    "bicubic_grad",
    "bilinear",
    "bilinear_grad",
    "nearest",
    "nearest_grad",
]

_F4 = np.float32
#: Elements of an output block: the arrays of a block fit into a core's L2 cache.
_BLOCK = 32 * 1024
#: Resized in one pass once so many values were made (kernels/native/resize_kernels.py).
NATIVE = HotWork("resizing of images", 1 << 21, "headrace.kernels.native.resize_kernels")
#: Offsets and weights of an axis; its arguments are those of ``_bilinear_axes``.
Axes = Callable[..., "tuple[Any, Any]"]
#: Steps of the table of bicubic weights.
_STEPS = 1024


def _scale(size_in: int, size_out: int, align_corners: bool) -> Any:
    if align_corners and size_out > 1:
        return _F4(size_in - 1) / _F4(size_out - 1)
    return _F4(size_in) / _F4(size_out)


def _positions(size_in: int, size_out: int, align_corners: bool, half_pixel: bool) -> Any:
    """Where each output pixel lies in the input."""
    scale = _scale(size_in, size_out, align_corners)
    places = np.arange(size_out, dtype=_F4)
    return (places + _F4(0.5)) * scale - _F4(0.5) if half_pixel else places * scale


# native ------------------------------------------------------------------------------------------


def _native(
    x: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool, axes: Axes
) -> Array | None:
    """The images by compiled code, once many have been resized: the same bits. None before that."""
    batch, height, width, channels = x.shape
    kernels = NATIVE.kernels(batch * size[0] * size[1] * channels)
    if kernels is None or not x.size or not kernels.takes(x.dtype):
        return None
    out = np.empty((batch, *size, channels), _F4)
    if out.size:
        row, image = width * channels, height * width * channels
        rows = axes(height, size[0], row, batch, image, align_corners, half_pixel)
        columns = axes(width, size[1], channels, 1, 0, align_corners, half_pixel)
        x = np.ascontiguousarray(x)
        kernels.resize(x, kernels.Axis(*rows), kernels.Axis(*columns), channels, out)
    return out


def _spread(
    indices: Array, weights: Array, stride: int, count: int, between: int
) -> tuple[Any, Any]:
    """Indices as offsets ``stride`` apart, ``count`` times over, ``between`` apart."""
    starts = np.arange(count, dtype=np.int64)[:, None, None] * between
    offsets = (starts + indices.astype(np.int64) * stride).reshape(-1, indices.shape[1])
    repeated = np.tile(weights, (count,) + (1,) * (weights.ndim - 1))
    return np.ascontiguousarray(offsets), np.ascontiguousarray(repeated, _F4)


@lru_cache(maxsize=128)
def _bilinear_axes(
    size_in: int,
    size_out: int,
    stride: int,
    count: int,
    between: int,
    align_corners: bool,
    half_pixel: bool,
) -> tuple[Any, Any]:
    lower, upper, weight = _pairs(size_in, size_out, align_corners, half_pixel)
    return _spread(np.stack([lower, upper], 1), weight, stride, count, between)


@lru_cache(maxsize=128)
def _bicubic_axes(
    size_in: int,
    size_out: int,
    stride: int,
    count: int,
    between: int,
    align_corners: bool,
    half_pixel: bool,
) -> tuple[Any, Any]:
    indices, weights = _quadruples(size_in, size_out, align_corners, half_pixel)
    return _spread(indices, weights, stride, count, between)


# bilinear -----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _pairs(
    size_in: int, size_out: int, align_corners: bool, half_pixel: bool
) -> tuple[Any, Any, Any]:
    """Lower neighbour, upper neighbour, and how far towards the upper."""
    at = _positions(size_in, size_out, align_corners, half_pixel)
    floor = np.floor(at)
    lower = np.maximum(floor.astype(np.int64), 0)
    upper = np.minimum(np.ceil(at).astype(np.int64), size_in - 1)
    return lower, upper, at - floor


@lru_cache(maxsize=256)
def _flat_pairs(
    size_in: int, size_out: int, channels: int, align_corners: bool, half_pixel: bool
) -> tuple[Any, Any, Any]:
    """The same for rows whose pixels' channels lie side by side.

    Short inner loops would cost ten times as much.
    """
    lower, upper, weight = _pairs(size_in, size_out, align_corners, half_pixel)
    each = np.arange(channels)
    spread = [(i[:, None] * channels + each).reshape(-1) for i in (lower, upper)]
    return spread[0], spread[1], np.repeat(weight, channels)


class _RowBlock(NamedTuple):
    """Some rows of the output, and what they are made of."""

    lo: int
    hi: int
    used: Any  # rows of the input: a slice, or numbers where far fewer are used than lie between
    number: int  # of the used rows
    lower: Any  # among the used ones
    upper: Any
    weight: Any


@lru_cache(maxsize=64)
def _row_blocks(
    size_in: int, size_out: int, width: int, align_corners: bool, half_pixel: bool
) -> tuple[_RowBlock, ...]:
    """``width``: the values of an output row."""
    step = max(8, _BLOCK // max(1, width))
    low, high, weight = _pairs(size_in, size_out, align_corners, half_pixel)
    weight = weight[:, None]
    if size_out <= step:  # few enough to have them for each value, which is quicker
        weight = np.repeat(weight, width, axis=1)
    return tuple(
        [
            _row_block(lo, low[lo : lo + step], high[lo : lo + step], weight[lo : lo + step])
            for lo in range(0, size_out, step)
        ]
    )


def _row_block(lo: int, low: Array, high: Array, weight: Array) -> _RowBlock:
    first, last, hi = int(low[0]), int(high[-1]) + 1, lo + len(low)
    if last - first <= 2 * len(low):
        return _RowBlock(
            lo, hi, slice(first, last), last - first, low - first, high - first, weight
        )
    used, places = np.unique(np.concatenate([low, high]), return_inverse=True)
    return _RowBlock(lo, hi, used, len(used), places[: len(low)], places[len(low) :], weight)


def bilinear(x: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Array:
    """Columns first, then rows, as TensorFlow's kernel does it for each pixel.

    A block of output rows at a time.
    """
    batch, height, width, channels = x.shape
    found = _native(x, size, align_corners, half_pixel, _bilinear_axes)
    if found is not None:
        return found
    rows = _row_blocks(height, size[0], size[1] * channels, align_corners, half_pixel)
    columns = _flat_pairs(width, size[1], channels, align_corners, half_pixel)
    out = np.empty((batch, size[0], size[1] * channels), _F4)
    x = x.reshape(batch, height, width * channels)

    def work(some: list[tuple[int, _RowBlock]]) -> None:
        for i, block in some:
            _bilinear_rows(x[i], block, columns, out[i, block.lo : block.hi])

    blocks = [(i, block) for i in range(batch) for block in rows]
    if len(blocks) < 4:
        work(blocks)
    else:
        share = -(-len(blocks) // thread_count())
        parallel([partial(work, blocks[at : at + share]) for at in range(0, len(blocks), share)])
    return out.reshape(batch, *size, channels)


def _bilinear_rows(x: Array, rows: _RowBlock, columns: tuple[Any, ...], out: Array) -> None:
    """Some rows of one image: low + (high - low) * weight, in float32, along both axes.

    (No index is out of range; take's mode "raise" would copy the output.)
    """
    x = x[rows.used] if type(rows.used) is slice else x.take(rows.used, axis=0)
    picked, low, high, lower = _kept.parts(rows, out, x.dtype)
    x.take(columns[0], axis=1, out=picked, mode="clip")
    np.copyto(low, picked, casting="unsafe")
    x.take(columns[1], axis=1, out=picked, mode="clip")
    np.copyto(high, picked, casting="unsafe")
    np.subtract(high, low, out=high)
    np.multiply(high, columns[2], out=high)
    np.add(high, low, out=high)
    high.take(rows.lower, axis=0, out=lower, mode="clip")
    high.take(rows.upper, axis=0, out=out, mode="clip")
    np.subtract(out, lower, out=out)
    np.multiply(out, rows.weight, out=out)
    np.add(out, lower, out=out)


class _Scratch(threading.local):
    """Arrays that a thread's next call may use again: images of a pipeline have few sizes, and the
    workers take turns at the interpreter, so that every step between two calls of NumPy counts.
    """

    rows: _RowBlock | None = None
    dtype: DTypeLike | None = None
    kept: Any = None

    def parts(self, rows: _RowBlock, out: Array, dtype: np.dtype[Any]) -> Any:
        if self.rows is rows and self.dtype == dtype:
            return self.kept
        wide = rows.number, out.shape[1]
        made = np.empty(wide, dtype), np.empty(wide, _F4), np.empty(wide, _F4), np.empty_like(out)
        if out.size <= 2 * _BLOCK:
            self.rows, self.dtype, self.kept = rows, dtype, made
        return made


_kept = _Scratch()


@lru_cache(maxsize=64)
def _bilinear_matrix(size_in: int, size_out: int, align_corners: bool, half_pixel: bool) -> Array:
    """Weights: output x input."""
    lower, upper, weight = _pairs(size_in, size_out, align_corners, half_pixel)
    matrix = np.zeros((size_out, size_in), _F4)
    rows = np.arange(size_out)
    matrix[rows, lower] = 1 - weight
    np.add.at(matrix, (rows, upper), weight)
    return matrix


def bilinear_grad(g: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Array:
    """``size`` is that of the input."""
    rows = _bilinear_matrix(size[0], g.shape[1], align_corners, half_pixel)
    columns = _bilinear_matrix(size[1], g.shape[2], align_corners, half_pixel)
    return _product(g, rows.T, columns.T)


def _product(x: Array, rows: Array, columns: Array) -> Array:
    """rows · x · columnsᵀ for every image and channel."""
    batch, height, width, channels = x.shape
    x = np.matmul(rows, np.ascontiguousarray(x).reshape(batch, height, width * channels))
    x = np.matmul(columns, x.reshape(-1, width, channels))
    return x.reshape(batch, rows.shape[0], columns.shape[0], channels)


# bicubic ------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _cubic_table(a: float) -> tuple[Any, Any]:
    """Weights of a neighbour at distance i/steps, and 1 + i/steps."""
    x = np.arange(_STEPS + 1, dtype=np.float64) / _STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return near.astype(_F4), far.astype(_F4)


@lru_cache(maxsize=128)
def _quadruples(
    size_in: int, size_out: int, align_corners: bool, half_pixel: bool
) -> tuple[Any, Any]:
    """Indices and weights of the four neighbours: output x 4.

    With half-pixel centres the curve is Keys' (a = -0.5), and neighbours outside the image do not
    count.
    """
    at = _positions(size_in, size_out, align_corners, half_pixel)
    floor = np.floor(at)
    offset = np.rint((at - floor) * _F4(_STEPS)).astype(np.int64)
    near, far = _cubic_table(-0.5 if half_pixel else -0.75)
    back = _STEPS - offset
    weights = np.stack([far[offset], near[offset], near[back], far[back]], axis=1)
    wanted = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    indices = np.clip(wanted, 0, size_in - 1)
    if half_pixel:
        weights = np.where(indices == wanted, weights, _F4(0))
        weights = weights / weights.sum(axis=1, keepdims=True, dtype=_F4)
    return indices, weights


def bicubic(x: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Array:
    batch, height, width, channels = x.shape
    found = _native(x, size, align_corners, half_pixel, _bicubic_axes)
    if found is not None:
        return found
    indices, weights = _quadruples(height, size[0], align_corners, half_pixel)
    x = x.reshape(batch, height, width * channels).astype(_F4, copy=False)
    x = _weighted(x, 1, indices, weights[:, :, None])
    indices, weights = _flat_quadruples(width, size[1], channels, align_corners, half_pixel)
    return _weighted(x, 2, indices, weights).reshape(batch, *size, channels)


@lru_cache(maxsize=128)
def _flat_quadruples(
    size_in: int, size_out: int, channels: int, align_corners: bool, half_pixel: bool
) -> tuple[Any, Any]:
    indices, weights = _quadruples(size_in, size_out, align_corners, half_pixel)
    spread = indices[:, None, :] * channels + np.arange(channels)[:, None]
    return spread.reshape(-1, 4), np.repeat(weights, channels, axis=0)


def _weighted(x: Array, axis: int, indices: Array, weights: Array) -> Array:
    """The sum of four pieces."""
    out = x.take(indices[:, 0], axis=axis)
    out *= weights[:, 0]
    for i in range(1, 4):
        part = x.take(indices[:, i], axis=axis)
        part *= weights[:, i]
        out += part
    return out


@lru_cache(maxsize=64)
def _bicubic_matrix(size_in: int, size_out: int, align_corners: bool, half_pixel: bool) -> Array:
    indices, weights = _quadruples(size_in, size_out, align_corners, half_pixel)
    matrix = np.zeros((size_out, size_in), _F4)
    np.add.at(matrix, (np.arange(size_out)[:, None], indices), weights)
    return matrix


def bicubic_grad(g: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Array:
    rows = _bicubic_matrix(size[0], g.shape[1], align_corners, half_pixel)
    columns = _bicubic_matrix(size[1], g.shape[2], align_corners, half_pixel)
    return _product(g, rows.T, columns.T)


# area ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _area_matrix(size_in: int, size_out: int, align_corners: bool) -> Any:
    """The part of each input pixel that an output pixel covers, of its whole extent."""
    scale = _scale(size_in, size_out, align_corners)
    edges = np.arange(size_out + 1, dtype=_F4) * scale
    low, high = edges[:-1, None], edges[1:, None]
    cells = np.arange(max(size_in, int(np.ceil(edges[-1]))), dtype=_F4)
    cover = np.clip(np.minimum(cells + 1, high) - np.maximum(cells, low), 0, 1) / scale
    matrix = cover[:, :size_in].astype(_F4)
    matrix[:, -1] += cover[:, size_in:].sum(axis=1)  # beyond the edge the last pixel goes on
    return matrix


def area(x: Array, size: tuple[int, int], align_corners: bool) -> Array:
    rows = _area_matrix(x.shape[1], size[0], align_corners)
    columns = _area_matrix(x.shape[2], size[1], align_corners)
    return _product(x.astype(_F4, copy=False), rows, columns)


# nearest ------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _nearest_indices(size_in: int, size_out: int, align_corners: bool, half_pixel: bool) -> Any:
    scale = _scale(size_in, size_out, align_corners)
    at = np.arange(size_out, dtype=_F4)
    at = (at + _F4(0.5)) * scale if half_pixel else at * scale
    # halves away from zero, as C's roundf
    at = np.floor(at + _F4(0.5)) if align_corners else np.floor(at)
    return np.minimum(at.astype(np.int64), size_in - 1)


def nearest(x: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Any:
    rows = _nearest_indices(x.shape[1], size[0], align_corners, half_pixel)
    columns = _nearest_indices(x.shape[2], size[1], align_corners, half_pixel)
    if size[0] < x.shape[1]:
        return x.take(rows, axis=1).take(columns, axis=2)
    return x.take(columns, axis=2).take(rows, axis=1)


def nearest_grad(g: Array, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Array:
    """Sums over the output pixels that came from one input pixel: these are neighbours."""
    for axis in (1, 2):
        indices = _nearest_indices(size[axis - 1], g.shape[axis], align_corners, half_pixel)
        used, starts = np.unique(indices, return_index=True)
        sums = np.add.reduceat(g, starts, axis=axis, dtype=g.dtype)
        shape = list(g.shape)
        shape[axis] = size[axis - 1]
        g = np.zeros(shape, g.dtype)
        g[(slice(None),) * axis + (used,)] = sums
    return g
