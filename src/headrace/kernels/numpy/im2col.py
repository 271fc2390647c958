"""Convolutions as matrix products, for NumPy.

Everything here is channels-last, ``(batch, *spatial, channels)``, with any number of spatial
dimensions; filters are ``(*kernel, in, out)``. The windows of some images are laid out as rows
(im2col), a few images at a time so that they stay in cache, and one product per chunk does the
arithmetic. 16-bit floats are computed in float32.

    >>> g = geometry((28, 28), (5, 5), (1, 1), (1, 1), "SAME")
    >>> g.pads, g.out
    (((2, 2), (2, 2)), (28, 28))
    >>> conv(images, filters, g).shape
    (64, 28, 28, 32)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.numpy.gemm import matmul

__all__ = [
    "Geometry",
    "conv",
    "conv_filter_grad",
    "conv_input_grad",
    "depthwise",
    "depthwise_filter_grad",
    "depthwise_input_grad",
    "geometry",
]

Array = np.ndarray[Any, Any]
Pads = tuple[tuple[int, int], ...]

#: Elements of unfolded windows that are held at once.
CHUNK = 1 << 20


class Geometry(NamedTuple):
    """Where windows lie: one entry per spatial dimension."""

    size: tuple[int, ...]  # of the input
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    out: tuple[int, ...]  # number of windows

    @property
    def padded(self) -> bool:
        return any(b or a for b, a in self.pads)

    @property
    def pointwise(self) -> bool:
        """Windows are single pixels."""
        return not self.padded and all(k == 1 for k in self.kernel)

    def positions(self) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each place in the kernel, with the slices of the padded input that lie under it."""
        return _positions(self)


@lru_cache(512)
def _positions(g: Geometry) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    found = []
    for at in itertools.product(*map(range, g.kernel)):
        starts = [k * d for k, d in zip(at, g.dilations)]
        spans = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(starts, g.out, g.strides))
        found.append((at, spans))
    return found


def out_size(
    size: int, kernel: int, stride: int, dilation: int, padding: str, pads: tuple[int, int]
) -> int:
    """The number of windows along one dimension."""
    if padding == "SAME":
        return -(-size // stride)
    return max(0, (size + pads[0] + pads[1] - (kernel - 1) * dilation - 1) // stride + 1)


@lru_cache(512)
def geometry(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    padding: str,
    explicit: Pads = (),
) -> Geometry:
    """TensorFlow's rules for SAME, VALID and EXPLICIT padding."""
    pads = list(explicit) if padding == "EXPLICIT" else [(0, 0)] * len(size)
    out = []
    for i, (n, k, s, d) in enumerate(zip(size, kernel, strides, dilations)):
        count = out_size(n, k, s, d, padding, pads[i])
        if padding == "SAME":
            total = max((count - 1) * s + (k - 1) * d + 1 - n, 0)
            pads[i] = (total // 2, total - total // 2)
        out.append(count)
    return Geometry(size, kernel, strides, dilations, tuple(pads), tuple(out))


def _precise(*arrays: Array) -> list[Array]:
    return [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays]


# unfolding --------------------------------------------------------------------------------------


def _inner(g: Geometry) -> tuple[slice, ...]:
    """The input inside the padded input."""
    return (slice(None), *(slice(b, b + n) for (b, _), n in zip(g.pads, g.size)))


def _padded_shape(g: Geometry, n: int, channels: int) -> tuple[int, ...]:
    return (n, *(size + b + a for size, (b, a) in zip(g.size, g.pads)), channels)


def padded_chunks(x: Array, g: Geometry, step: int) -> Iterator[tuple[int, int, Array]]:
    """``(first, last, images)`` for a few images at a time, padded.

    The memory is used again for the next ones.
    """
    n = x.shape[0]
    if not g.padded:
        x = np.ascontiguousarray(x)
        for lo in range(0, n, step):
            yield lo, min(lo + step, n), x[lo : lo + step]
        return
    buffer = np.zeros(_padded_shape(g, min(step, n), x.shape[-1]), x.dtype)
    inner = buffer[_inner(g)]
    for lo in range(0, n, step):
        part = x[lo : lo + step]
        inner[: len(part)] = part
        yield lo, lo + len(part), buffer[: len(part)]


def _windows(x: Array, g: Geometry) -> Array:
    """A view of contiguous ``x``: (n, *out, *kernel, channels)."""
    steps = x.strides
    strides = (
        steps[0],
        *(a * s for a, s in zip(steps[1:-1], g.strides)),
        *(a * d for a, d in zip(steps[1:-1], g.dilations)),
        steps[-1],
    )
    return np.ndarray((x.shape[0], *g.out, *g.kernel, x.shape[-1]), x.dtype, x, 0, strides)


def _per_chunk(g: Geometry, n: int, depth: int) -> int:
    return max(1, min(n, CHUNK // max(1, math.prod(g.out) * depth)))


def _columns_first(g: Geometry, channels: int) -> bool:
    """Whether windows are copied along image rows.

    Longer runs than along the kernel when there are few channels.
    """
    run = channels * (g.kernel[-1] if g.dilations[-1] == 1 else 1)
    return run < g.out[-1]


def _columns(x: Array, g: Geometry) -> Iterator[tuple[int, int, Array]]:
    """``(first, last, rows)``.

    The windows of some images, one per row, perhaps as a transposed view.
    """
    channels = x.shape[-1]
    depth = math.prod(g.kernel) * channels
    nd = len(g.kernel)
    across = _columns_first(g, channels)
    order = (*range(1 + nd, 2 + 2 * nd), *range(1 + nd))
    for lo, hi, images in padded_chunks(x, g, _per_chunk(g, x.shape[0], depth)):
        windows = _windows(images, g)
        if across:
            yield lo, hi, np.ascontiguousarray(windows.transpose(order)).reshape(depth, -1).T
        else:
            yield lo, hi, np.ascontiguousarray(windows).reshape(-1, depth)


# convolution ------------------------------------------------------------------------------------


def conv(x: Array, w: Array, g: Geometry) -> Array:
    """(n, *size, in) with (*kernel, in, out) gives (n, *g.out, out)."""
    dtype = x.dtype
    x, w = _precise(x, w)
    width = w.shape[-1]
    out = np.empty((x.shape[0], *g.out, width), x.dtype)
    if out.size == 0:
        return out.astype(dtype, copy=False)
    matrix = w.reshape(-1, width)
    if g.pointwise:
        matmul(_strided(x, g).reshape(-1, x.shape[-1]), matrix, out=out.reshape(-1, width))
    else:
        for lo, hi, rows in _columns(x, g):
            matmul(rows, matrix, out=out[lo:hi].reshape(-1, width))
    return out.astype(dtype, copy=False)


def _strided(x: Array, g: Geometry) -> Array:
    """The pixels that pointwise windows fall on."""
    if all(s == 1 for s in g.strides):
        return x
    return x[(slice(None), *g.positions()[0][1])]


def conv_filter_grad(x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry) -> Array:
    """The gradient of the filter: windows transposed, times the gradient of the output."""
    dtype = x.dtype
    x, gradient = _precise(x, gradient)
    width = w_shape[-1]
    if gradient.size == 0:
        return np.zeros(w_shape, dtype)
    if g.pointwise:
        rows = _strided(x, g).reshape(-1, x.shape[-1])
        product: Array = matmul(rows.T, gradient.reshape(-1, width))
        return product.reshape(w_shape).astype(dtype, copy=False)
    total: Array | None = None
    for lo, hi, rows in _columns(x, g):
        part = matmul(rows.T, gradient[lo:hi].reshape(-1, width))
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total.reshape(w_shape).astype(dtype, copy=False)


def conv_input_grad(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Array:
    """The gradient of the input, which is also the transposed convolution."""
    dtype = gradient.dtype
    w, gradient = _precise(w, gradient)
    if gradient.size == 0:
        return np.zeros(x_shape, dtype)
    full = _full_geometry(g) if all(s == 1 for s in g.strides) else None
    if g.pointwise and full is not None:
        channels, width = w.shape[-2:]
        out = matmul(gradient.reshape(-1, width), w.reshape(channels, width).T).reshape(x_shape)
    elif full is not None and w.shape[-1] <= 2 * w.shape[-2]:
        flipped = w[(slice(None, None, -1),) * len(g.kernel)].swapaxes(-1, -2)
        out = conv(gradient, np.ascontiguousarray(flipped), full)
    else:
        out = _fold(x_shape, w, gradient, g)
    found: Array = out.astype(dtype, copy=False)
    return found


def _full_geometry(g: Geometry) -> Geometry | None:
    """With stride 1 the input's gradient is a convolution of the output's with the flipped
    filter.
    """
    pads = []
    for size, k, d, (before, _), n in zip(g.size, g.kernel, g.dilations, g.pads, g.out):
        reach = (k - 1) * d
        pads.append((reach - before, size - n + before))
    if any(b < 0 or a < 0 for b, a in pads):
        return None
    return Geometry(g.out, g.kernel, g.strides, g.dilations, tuple(pads), g.size)


def _fold(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Array:
    """One product gives what each window adds to its pixels; they are added up per place in the
    kernel (col2im).

    With few channels this is done channels-first, so that the inner loops run along image rows.
    """
    channels, width = w.shape[-2:]
    matrix = w.reshape(-1, width)
    n, nd = x_shape[0], len(g.kernel)
    out = np.empty(x_shape, gradient.dtype)
    step = _per_chunk(g, n, matrix.shape[0])
    across = _columns_first(g, channels)
    shape = _padded_shape(g, min(step, n), channels)
    padded = np.empty((channels, *shape[:-1]) if across else shape, gradient.dtype)
    last = (*range(1, 2 + nd), 0)
    for lo in range(0, n, step):
        rows = gradient[lo : lo + step].reshape(-1, width)
        count = min(step, n - lo)
        if across:
            images = padded[:, :count]
            parts = matmul(matrix, rows.T).reshape(*g.kernel, channels, count, *g.out)
        else:
            images = padded[:count]
            parts = matmul(rows, matrix.T).reshape(count, *g.out, *g.kernel, channels)
        images[...] = 0
        for at, spans in g.positions():
            if across:
                images[(slice(None), slice(None), *spans)] += parts[at]
            else:
                images[(slice(None), *spans)] += parts[(slice(None),) * (1 + nd) + at]
        out[lo : lo + step] = (images.transpose(last) if across else images)[_inner(g)]
    return out


# depthwise --------------------------------------------------------------------------------------


def _per_depthwise_chunk(g: Geometry, n: int, channels: int) -> int:
    return max(1, min(n, (1 << 16) // max(1, math.prod(g.out) * channels)))


def _rows_of_weights(w: Array, g: Geometry) -> Array:
    """(*kernel, out width, channels).

    Repeated along an image row, so that inner loops are a row long.
    """
    flat = w.reshape(*g.kernel, 1, -1)
    return np.ascontiguousarray(np.broadcast_to(flat, (*g.kernel, g.out[-1], flat.shape[-1])))


def depthwise(x: Array, w: Array, g: Geometry) -> Array:
    """Filters (*kernel, in, multiplier), each on its own channel.

    Gives (n, *g.out, in * multiplier).
    """
    dtype = x.dtype
    x, w = _precise(x, w)
    x = _repeated(x, w.shape[-1])
    weights = _rows_of_weights(w, g)
    out = np.empty((x.shape[0], *g.out, x.shape[-1]), x.dtype)
    if out.size == 0:
        return out.astype(dtype, copy=False)
    step = _per_depthwise_chunk(g, x.shape[0], x.shape[-1])
    product = np.empty((min(step, len(x)), *out.shape[1:]), x.dtype)
    for lo, hi, images in padded_chunks(x, g, step):
        total, term = out[lo:hi], product[: hi - lo]
        for i, (at, spans) in enumerate(g.positions()):
            np.multiply(images[(slice(None), *spans)], weights[at], out=term if i else total)
            if i:
                total += term
    return out.astype(dtype, copy=False)


def _repeated(x: Array, multiplier: int) -> Array:
    return x if multiplier == 1 else np.repeat(x, multiplier, axis=-1)


def depthwise_input_grad(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Array:
    dtype = gradient.dtype
    w, gradient = _precise(w, gradient)
    channels, multiplier = w.shape[-2:]
    out = np.zeros((*x_shape[:-1], channels * multiplier), gradient.dtype)
    if gradient.size:
        _spread(out, _rows_of_weights(w, g), gradient, g)
    if multiplier > 1:
        out = out.reshape(*x_shape, multiplier).sum(-1)
    return out.astype(dtype, copy=False)


def _spread(out: Array, weights: Array, gradient: Array, g: Geometry) -> None:
    n = out.shape[0]
    step = _per_depthwise_chunk(g, n, out.shape[-1])
    padded = np.empty(_padded_shape(g, min(step, n), out.shape[-1]), out.dtype)
    for lo in range(0, n, step):
        part = gradient[lo : lo + step]
        images = padded[: len(part)]
        images[...] = 0
        for at, spans in g.positions():
            images[(slice(None), *spans)] += part * weights[at]
        out[lo : lo + step] = images[_inner(g)]


def depthwise_filter_grad(x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry) -> Array:
    dtype = x.dtype
    x, gradient = _precise(x, gradient)
    x = _repeated(x, w_shape[-1])
    channels = x.shape[-1]
    out = np.zeros((*g.kernel, channels), x.dtype)
    if gradient.size == 0:
        return out.reshape(w_shape).astype(dtype, copy=False)
    step = _per_depthwise_chunk(g, x.shape[0], channels)
    for lo, hi, images in padded_chunks(x, g, step):
        part = gradient[lo:hi]
        ones = np.ones(part.size // channels, x.dtype)
        for at, spans in g.positions():
            out[at] += ones @ (images[(slice(None), *spans)] * part).reshape(-1, channels)
    return out.reshape(w_shape).astype(dtype, copy=False)
