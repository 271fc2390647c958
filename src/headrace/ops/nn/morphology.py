"""Morphology of grey images: ``tf.nn.dilation2d`` and ``tf.nn.erosion2d``.

A dilation is a convolution in which products are sums and the sum is the greatest:
``out[b, y, x, c] = max over (dy, dx) of in[b, sy y + ry dy, sx x + rx dx, c] + filter[dy, dx, c]``.
Its gradient goes to the place of the maximum, the first one if there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import one_of
from headrace.ops.array.image_patches import window_count
from headrace.ops.array.reversing import reverse
from headrace.ops.math.unary import negative

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["dilation2d", "dilation2d_v2", "erosion2d", "erosion2d_v2"]

_ATTRS = "strides: list(int), rates: list(int), padding: str, T: type(real)"


def _check(attrs: dict[str, Any]) -> None:
    for what in ("strides", "rates"):
        given = attrs[what]
        if len(given) != 4:
            raise errors.InvalidArgumentError(
                None, None, f"{what.capitalize()} field must specify 4 dimensions"
            )
        if given[0] != 1 or given[3] != 1:
            raise errors.UnimplementedError(
                None,
                None,
                f"Current implementation does not yet support {what} in the batch and depth "
                "dimensions.",
            )


def _shape(c: Inference) -> list[Shape]:
    image, taps = c.require_rank(0, 4), c.require_rank(1, 3)
    for what in ("strides", "rates"):
        if len(c.attr(what)) != 4:
            raise ValueError(
                f"Dilation2D requires the {what} attribute to contain 4 values, but got: "
                f"{len(c.attr(what))}"
            )
    if image is None:
        return [(None, None, None, None)]
    strides, rates, padding = c.attr("strides"), c.attr("rates"), c.attr("padding")
    depth = image[3]
    out: list[int | None] = []
    for i in (1, 2):
        k = None if taps is None else taps[i - 1]
        extent = image[i]
        if extent is None or k is None:
            out.append(None)
        else:
            out.append(window_count(extent, k, strides[i], rates[i], padding)[0])
    if taps is not None and taps[2] is not None:
        if depth is not None and depth != taps[2]:
            raise ValueError(f"Dimensions must be equal, but are {depth} and {taps[2]}")
        depth = taps[2]
    return [(image[0], out[0], out[1], depth)]


def _places(
    x: Array, taps: Array, strides: Sequence[int], rates: Sequence[int], padding: str
) -> tuple[Array, Array, Array, Array]:
    """The greatest sum of every window, the tap that gave it, and row and column of windows."""
    kh, kw, _ = taps.shape
    _, h, w, _ = x.shape
    oh, top = window_count(h, kh, strides[1], rates[1], padding)
    ow, left = window_count(w, kw, strides[2], rates[2], padding)
    rows, cols = np.arange(oh) * strides[1] - top, np.arange(ow) * strides[2] - left
    shape = (x.shape[0], oh, ow, x.shape[3])
    best = np.full(shape, dtypes.as_dtype(x.dtype).min, x.dtype)
    which = np.zeros(shape, np.int64)
    for dy in range(kh):
        r = rows + dy * rates[1]
        in_rows = (r >= 0) & (r < h)
        for dx in range(kw):
            c = cols + dx * rates[2]
            inside = in_rows[:, None] & ((c >= 0) & (c < w))[None, :]
            found = x[:, r.clip(0, h - 1)[:, None], c.clip(0, w - 1)[None, :]] + taps[dy, dx]
            better = inside[None, :, :, None] & (found > best)
            best = np.where(better, found, best)
            which = np.where(better, dy * kw + dx, which)
    return best, which, rows, cols


def _kernel(
    xp: ArrayNamespace,
    x: Array,
    taps: Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Array:
    return _places(x, taps, strides, rates, padding)[0]


def _image_grad_kernel(
    xp: ArrayNamespace,
    x: Array,
    taps: Array,
    grad: Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Array:
    _, which, rows, cols = _places(x, taps, strides, rates, padding)
    kw = taps.shape[1]
    b, _oh, _ow, depth = which.shape
    # a window that no tap reaches keeps its first place, which TensorFlow puts at the edge
    r = np.maximum(rows[:, None, None] + which // kw * rates[1], 0)
    c = np.maximum(cols[None, :, None] + which % kw * rates[2], 0)
    out = np.zeros_like(x)
    batch, channel = np.arange(b).reshape(-1, 1, 1, 1), np.arange(depth)
    np.add.at(out, (batch, r, c, channel), grad)
    return out


def _filter_grad_kernel(
    xp: ArrayNamespace,
    x: Array,
    taps: Array,
    grad: Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Array:
    _, which, _, _ = _places(x, taps, strides, rates, padding)
    out = np.zeros((taps.shape[0] * taps.shape[1], taps.shape[2]), taps.dtype)
    np.add.at(out, (which, np.arange(taps.shape[2])), grad)
    return out.reshape(taps.shape)


def _grad(op: Operation, g: Tensor) -> list[Any]:
    x, taps = op._inputs
    attrs = {k: op._attrs[k] for k in ("strides", "rates", "padding")}
    return [
        apply_op("Dilation2DBackpropInput", x, taps, g, **attrs),
        apply_op("Dilation2DBackpropFilter", x, taps, g, **attrs),
    ]


DILATION = define(
    "Dilation2D",
    f"input: T, filter: T -> output: T; {_ATTRS}",
    shape=_shape,
    kernel=_kernel,
    grad=_grad,
    check_attrs=_check,
    host_only=True,
)

define(
    "Dilation2DBackpropInput",
    f"input: T, filter: T, out_backprop: T -> in_backprop: T; {_ATTRS}",
    shape=lambda c: [c.shape(0)],
    kernel=_image_grad_kernel,
    grad=NO_GRADIENT_YET,
    host_only=True,
)

define(
    "Dilation2DBackpropFilter",
    f"input: T, filter: T, out_backprop: T -> filter_backprop: T; {_ATTRS}",
    shape=lambda c: [c.shape(1)],
    kernel=_filter_grad_kernel,
    grad=NO_GRADIENT_YET,
    host_only=True,
)


def dilation2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: str | None = None,
    name: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """The grey-scale dilation of images [batch, height, width, channels] by ``filter`` [height,
    width, channels].

    The result is the largest ``image + filter`` over each window. ``strides`` and ``rates`` are [1,
    s, s, 1]; ``padding`` is "SAME" or "VALID". ``filters`` and ``dilations`` are newer names of
    ``filter`` and ``rates``.
    """
    taps = one_of("filters", filters, "filter", filter)
    rates = one_of("dilations", dilations, "rates", rates)
    return apply(DILATION, input, taps, strides=strides, rates=rates, padding=padding, name=name)


def dilation2d_v2(
    input: TensorLike,
    filters: TensorLike,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:
    """``dilation2d`` with TF 2's order of arguments.

    The largest ``input + filters`` of each window: ``filters`` is [height, width, channels],
    ``strides`` and ``dilations`` are four numbers of which the outer ones are 1. ``data_format``
    must be "NHWC".
    """
    _only_nhwc(data_format)
    return dilation2d(input, filters, strides, dilations, padding, name)


def erosion2d(
    value: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The grey-scale erosion of images [batch, height, width, channels] by ``kernel`` [height,
    width, channels].

    The result is the smallest ``image - kernel`` over each window: the dilation of the negated
    image by the mirrored kernel, negated. ``strides`` and ``rates`` are [1, s, s, 1]; ``padding``
    is "SAME" or "VALID".
    """
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        turned = reverse(kernel, [0, 1])
        dark = dilation2d(negative(value), turned, strides, rates, padding, name=scope)
        found: Tensor = negative(dark)
        return found


def erosion2d_v2(
    value: TensorLike,
    filters: TensorLike,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:
    """``erosion2d`` with TF 2's order of arguments.

    The least ``value - filters`` of each window, with the filter turned around; the arguments are
    ``dilation2d``'s. ``data_format`` must be "NHWC".
    """
    _only_nhwc(data_format)
    return erosion2d(value, filters, strides, dilations, padding, name)


def _only_nhwc(data_format: str) -> None:
    if data_format != "NHWC":
        raise ValueError("Data formats other than NHWC are not yet supported")
