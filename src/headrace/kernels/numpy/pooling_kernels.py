"""Maximum and average over windows, for NumPy.

Windows are products of intervals, so maxima and sums are taken one axis at a time, over strided
views of the input: ``k`` passes per axis instead of a window per output. Any axes may be pooled;
nothing is padded, windows that reach over the border are shortened instead. The gradient of a
maximum goes to the first largest element of a window, in row-major order, as in TensorFlow.

    >>> axes = windows((1, 4, 4, 1), (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    >>> maximum(x, axes).shape
    (1, 2, 2, 1)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.numpy.im2col import geometry

__all__ = [
    "Axis",
    "average",
    "average_grad",
    "first_maxima",
    "maximum",
    "maximum_grad",
    "maximum_grad_grad",
    "out_shape",
    "windows",
]

Array = np.ndarray[Any, Any]

#: Elements that the gradient of a maximum works on at once.
_CHUNK = 1 << 16


class Axis(NamedTuple):
    """The windows along one axis."""

    axis: int
    size: int
    kernel: int
    stride: int
    before: int  # how far the first window starts before the array
    out: int

    def under(self, k: int) -> tuple[slice, slice] | None:
        """For place k of the window.

        Which windows have it inside the array, and which elements those are.
        """
        lo = max(0, -((k - self.before) // self.stride))
        hi = min(self.out, (self.size - 1 + self.before - k) // self.stride + 1)
        if hi <= lo:
            return None
        start = lo * self.stride + k - self.before
        return slice(lo, hi), slice(start, start + (hi - lo - 1) * self.stride + 1, self.stride)

    def counts(self) -> Array:
        """The number of elements in each window."""
        start = np.arange(self.out) * self.stride - self.before
        return np.minimum(start + self.kernel, self.size) - np.maximum(start, 0)

    @property
    def disjoint(self) -> bool:
        return self.stride >= self.kernel


Axes = tuple[Axis, ...]


@lru_cache(512)
def windows(
    shape: tuple[int, ...], ksize: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> Axes:
    """The axes that are pooled."""
    g = geometry(shape, ksize, strides, (1,) * len(shape), padding)
    return tuple(
        Axis(i, n, k, s, before, out)
        for i, (n, k, s, (before, _), out) in enumerate(zip(shape, ksize, strides, g.pads, g.out))
        if k != 1 or s != 1
    )


def out_shape(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    whole = list(shape)
    for a in axes:
        whole[a.axis] = a.out
    return tuple(whole)


def _at(ndim: int, axis: int, part: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (part,) + (slice(None),) * (ndim - axis - 1)


# forward ----------------------------------------------------------------------------------------


def _along(x: Array, a: Axis, combine: Callable[..., Array], neutral: int | np.generic) -> Array:
    """Windows along one axis, combined."""
    parts = [p for p in map(a.under, range(a.kernel)) if p is not None]
    whole = slice(0, a.out)
    full = [i for windows_, i in parts if windows_ == whole]
    rest = [(w, i) for w, i in parts if w != whole]
    views = [x[_at(x.ndim, a.axis, i)] for i in full]
    if len(views) > 1:
        out = combine(views[0], views[1])
    elif views:
        out = views[0].copy()
    else:
        out = np.full((*x.shape[: a.axis], a.out, *x.shape[a.axis + 1 :]), neutral, x.dtype)
    for view in views[2:]:
        combine(out, view, out=out)
    for w, i in rest:
        target = out[_at(x.ndim, a.axis, w)]
        combine(target, x[_at(x.ndim, a.axis, i)], out=target)
    return out


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest finite number."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return np.finfo(dtype).min if dtype.kind == "f" else dtype.type(_LOWEST_BFLOAT16)


_LOWEST_BFLOAT16 = -3.3895313892515355e38


def maximum(x: Array, axes: Axes) -> Array:
    """A NaN is passed over. Where there is no number the lowest finite one stands in two
    dimensions, minus infinity in three, as in TensorFlow.
    """
    least = lowest(x.dtype) if x.ndim < 5 or x.dtype.kind in "iu" else x.dtype.type(-np.inf)
    out = x
    for a in axes:
        out = _along(out, a, np.fmax, least)
    if out is x:
        return out.copy()
    return out if x.dtype.kind in "iu" else np.fmax(out, least, out=out)


def average(x: Array, axes: Axes) -> Array:
    """Sums, divided by the number of elements that are there."""
    dtype = x.dtype
    out = x.astype(np.float32) if dtype.itemsize == 2 else x
    for a in axes:
        out = _along(out, a, np.add, 0)
    mean: Array = out / _divisor(axes, x.ndim, out.dtype)
    return mean.astype(dtype, copy=False)


def _divisor(axes: Axes, ndim: int, dtype: np.dtype[Any]) -> Any:
    """Window sizes: one number if they are all alike, else an array that broadcasts."""
    total = dtype.type(1)
    for a in axes:
        counts = a.counts()
        if counts.size and (counts == counts[0]).all():
            total = total * dtype.type(counts[0])
        else:
            total = total * counts.reshape((-1,) + (1,) * (ndim - a.axis - 1)).astype(dtype)
    return total


# gradients --------------------------------------------------------------------------------------


def average_grad(shape: tuple[int, ...], g: Array, axes: Axes) -> Array:
    """Every element of a window gets an equal share, one axis after the other."""
    dtype = g.dtype
    wide = g.astype(np.float32) if dtype.itemsize == 2 else g
    out: Array = wide / _divisor(axes, g.ndim, wide.dtype)
    for a in reversed(axes):
        spread = np.zeros((*out.shape[: a.axis], a.size, *out.shape[a.axis + 1 :]), out.dtype)
        for k in range(a.kernel):
            found = a.under(k)
            if found is None:
                continue
            target = spread[_at(out.ndim, a.axis, found[1])]
            part = out[_at(out.ndim, a.axis, found[0])]
            if a.disjoint:
                target[...] = part
            else:
                target += part
        out = spread
    return out.astype(dtype, copy=False)


@lru_cache(512)
def _places(
    axes: Axes, ndim: int
) -> list[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """For each place of the window in row-major order: (place, windows, elements under it)."""
    found = []
    for at in itertools.product(*(range(a.kernel) for a in axes)):
        pairs = [a.under(k) for a, k in zip(axes, at)]
        if any(p is None for p in pairs):
            continue
        out_part, in_part = [slice(None)] * ndim, [slice(None)] * ndim
        for a, pair in zip(axes, pairs):
            assert pair is not None
            out_part[a.axis], in_part[a.axis] = pair
        found.append((at, tuple(out_part), tuple(in_part)))
    return found


def maximum_grad(x: Array, y: Array, g: Array, axes: Axes) -> Array:
    """What is left of a window's gradient goes to the first element that equals the maximum.

    In two dimensions TensorFlow looks for that element by going through the window: see
    :func:`_scanned`.
    """
    out = np.zeros(x.shape, g.dtype)
    if x.ndim < 5 and x.dtype.kind not in "iu" and not np.isfinite(x).all():
        np.add.at(out.reshape(-1), _scanned(x, axes, True)[1].reshape(-1), g.reshape(-1))
        return out
    if (
        x.ndim == 5 and y.dtype.kind == "f"
    ):  # where no element is a finite number none gets the gradient
        y = np.where(y == -np.inf, y.dtype.type(np.nan), y)
    step = max(1, _CHUNK * len(x) // max(1, x.size))  # a few images at a time, which stay in cache
    for lo in range(0, len(x), step):
        part = slice(lo, lo + step)
        _hand_out(x[part], y[part], g[part].copy(), out[part], axes)
    return out


def _hand_out(x: Array, y: Array, left: Array, out: Array, axes: Axes) -> None:
    disjoint = all(a.disjoint for a in axes)
    for _, w, i in _places(axes, x.ndim):
        rest = left[w]
        share = rest * (x[i] == y[w])
        rest -= share
        target = out[i]
        if disjoint:
            target[...] = share
        else:
            target += share


def maximum_grad_grad(x: Array, y: Array, g: Array, axes: Axes) -> Array:
    """The elements of ``g`` at the places of the maxima."""
    out = np.zeros(y.shape, g.dtype)
    for _, w, i, hit in _hits(x, y, axes):
        out[w] += g[i] * hit
    return out


def _hits(x: Array, y: Array, axes: Axes) -> Any:
    """The places, with where the first maximum is there."""
    open_ = np.ones(y.shape, np.bool_)
    for at, w, i in _places(axes, x.ndim):
        hit = x[i] == y[w]
        hit &= open_[w]
        open_[w] ^= hit
        yield at, w, i, hit


def first_maxima(x: Array, axes: Axes, with_batch: bool) -> tuple[Array, Array]:
    """Maxima, and where they are: indices into the flattened image, or the flattened batch."""
    if x.dtype.kind not in "iu" and not np.isfinite(x).all():
        return _scanned(x, axes, with_batch)
    y = maximum(x, axes)
    index = _indices(x, with_batch)
    where = np.zeros(y.shape, np.int64)
    for _, w, i, hit in _hits(x, y, axes):
        where[w] += index[i] * hit
    return y, where


def _indices(x: Array, with_batch: bool) -> Array:
    own = x.shape if with_batch else x.shape[1:]
    index = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
    return np.broadcast_to(index, x.shape)


def _scanned(x: Array, axes: Axes, with_batch: bool) -> tuple[Array, Array]:
    """Maxima and their places as a walk through the window finds them: the first element, then any
    that is larger.

    So a NaN is kept where it comes first and passed over where it does not.
    """
    shape = out_shape(x.shape, axes)
    y, where, empty = np.zeros(shape, x.dtype), np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    index = _indices(x, with_batch)
    for _, w, i in _places(axes, x.ndim):
        better = (x[i] > y[w]) | empty[w]
        np.copyto(y[w], x[i], where=better)
        np.copyto(where[w], index[i], where=better)
        empty[w] = False
    return y, where
