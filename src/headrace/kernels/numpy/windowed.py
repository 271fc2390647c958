"""Convolution and pooling as the ops call them: by the kernel library where it wants the case, else
by NumPy.

The functions are those of :mod:`headrace.kernels.numpy.im2col` and
:mod:`headrace.kernels.numpy.pooling_kernels`, which are the definition.

    >>> y = conv(images, filters, geometry)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import Library, library
from headrace.kernels.numpy import im2col
from headrace.kernels.numpy import pooling_kernels as pooling
from headrace.kernels.numpy.im2col import Geometry
from headrace.kernels.numpy.pooling_kernels import Axes, first_maxima, maximum_grad_grad

if TYPE_CHECKING:
    from headrace.kernels.packed_weights import PackedForms

__all__ = [
    "average",
    "average_grad",
    "conv",
    "conv_filter_grad",
    "conv_fused",
    "conv_input_grad",
    "depthwise",
    "depthwise_filter_grad",
    "depthwise_input_grad",
    "first_maxima",
    "maximum",
    "maximum_grad",
    "maximum_grad_grad",
]

Array = np.ndarray[Any, Any]

#: Elements of the larger array from which the library is asked.
LIBRARY_FROM = 512


def _asked(*arrays: Array) -> Library | None:
    """The library, for arrays that it may want."""
    size = 0
    for a in arrays:
        if a.dtype != np.float32:
            return None
        size = max(size, a.size)
    return library() if size >= LIBRARY_FROM else None


# convolution ------------------------------------------------------------------------------------


def conv(x: Array, w: Array, g: Geometry) -> Array:
    asked = _asked(x, w)
    found = None if asked is None else asked.conv(x, w, g)
    return im2col.conv(x, w, g) if found is None else found


def conv_fused(
    x: Array,
    w: Array,
    g: Geometry,
    bias: Array | None = None,
    add: Array | None = None,
    relu: bool = False,
    forms: PackedForms | None = None,
) -> Array:
    """``conv(x, w) + bias + add``, then ``max(0, …)`` if asked for; the library does it in one pass
    over memory.

    ``forms`` (packed.PackedForms) keeps the filter as the library wants it.
    """
    terms = [a for a in (bias, add) if a is not None]
    asked = _asked(x, w, *terms)
    found = None
    if asked is not None:
        packed = None
        if forms is not None:
            options = (1, bias is not None, add is not None, relu)
            packed = forms.get(
                asked.filter_order(x.shape, w, g, *options),
                lambda: asked.pack_filter(x.shape, w, g, *options),
            )
        found = asked.conv(x, w, g, bias=bias, add=add, relu=relu, packed=packed)
    if found is None:
        found = im2col.conv(x, w, g)
        for term in terms:
            found += term
        if relu:
            np.maximum(found, 0, out=found)
    return found


def conv_input_grad(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Array:
    asked = _asked(w, gradient)
    found = None if asked is None else asked.conv_input_grad(x_shape, w, gradient, g)
    return im2col.conv_input_grad(x_shape, w, gradient, g) if found is None else found


def conv_filter_grad(x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry) -> Array:
    x, g = _only_read_pixels(x, g)
    asked = _asked(x, gradient)
    found = None if asked is None else asked.conv_filter_grad(x, w_shape, gradient, g)
    return im2col.conv_filter_grad(x, w_shape, gradient, g) if found is None else found


def _only_read_pixels(x: Array, g: Geometry) -> tuple[Array, Geometry]:
    """For windows of one pixel that skip pixels: the pixels that are read, and strides of 1.

    oneDNN's AVX2 code for the filter gradient of such windows is wrong with few channels.
    """
    skips = all(k == 1 for k in g.kernel) and any(s > 1 for s in g.strides)
    if not skips or any(before or after for before, after in g.pads):
        return x, g
    at = tuple(slice(0, n * s, s) for n, s in zip(g.out, g.strides))
    pixels = np.ascontiguousarray(x[(slice(None), *at)])
    return pixels, g._replace(size=g.out, strides=(1,) * len(g.out))


def _grouped(w_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a depthwise filter (*kernel, in, multiplier) as that of a filter with a group
    per channel.
    """
    return (*w_shape[:-2], 1, w_shape[-2] * w_shape[-1])


def depthwise(x: Array, w: Array, g: Geometry) -> Array:
    asked, channels = _asked(x, w), x.shape[-1]
    found = None if asked is None else asked.conv(x, w.reshape(_grouped(w.shape)), g, channels)
    return im2col.depthwise(x, w, g) if found is None else found


def depthwise_input_grad(x_shape: Sequence[int], w: Array, gradient: Array, g: Geometry) -> Array:
    asked = _asked(w, gradient)
    if asked is not None:
        whole = w.reshape(_grouped(w.shape))
        found = asked.conv_input_grad(x_shape, whole, gradient, g, x_shape[-1])
        if found is not None:
            return found
    return im2col.depthwise_input_grad(x_shape, w, gradient, g)


def depthwise_filter_grad(x: Array, w_shape: Sequence[int], gradient: Array, g: Geometry) -> Array:
    asked = _asked(x, gradient)
    if asked is not None:
        found = asked.conv_filter_grad(x, _grouped(w_shape), gradient, g, x.shape[-1])
        if found is not None:
            return found.reshape(w_shape)
    return im2col.depthwise_filter_grad(x, w_shape, gradient, g)


# pooling ----------------------------------------------------------------------------------------


def maximum(x: Array, axes: Axes) -> Array:
    asked = _asked(x)
    found = None if asked is None else asked.max_pool(x, axes)
    if found is None:
        return pooling.maximum(x, axes)
    if x.ndim == 5:  # the library starts from the lowest finite number
        found[found == pooling.lowest(found.dtype)] = -np.inf
    return found


def maximum_grad(x: Array, y: Array, g: Array, axes: Axes) -> Array:
    asked = _asked(x, g)
    found = None if asked is None else asked.max_pool_grad(x, g, axes)
    return pooling.maximum_grad(x, y, g, axes) if found is None else found


def average(x: Array, axes: Axes) -> Array:
    asked = _asked(x)
    found = None if asked is None else asked.avg_pool(x, axes)
    return pooling.average(x, axes) if found is None else found


def average_grad(shape: tuple[int, ...], g: Array, axes: Axes) -> Array:
    asked = _asked(g)
    found = None if asked is None else asked.avg_pool_grad(shape, g, axes)
    return pooling.average_grad(shape, g, axes) if found is None else found
