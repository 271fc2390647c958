"""Colours: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrastv2.

The last axis holds the channels. Hue, saturation and value are all in [0, 1].

    >>> hsv = tf.image.rgb_to_hsv(images)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define, lookup
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["hsv_to_rgb", "rgb_to_hsv"]


def _to_hsv(xp: ArrayNamespace, x: Array) -> tuple[Any, Any, Any]:
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value = xp.maximum(xp.maximum(red, green), blue)
    spread = value - xp.minimum(xp.minimum(red, green), blue)
    one = x.dtype.type
    saturation = xp.where(value > 0, spread / value, one(0))
    norm = one(1 / 6) / spread
    hue = xp.where(
        red == value,
        norm * (green - blue),
        xp.where(
            green == value, norm * (blue - red) + one(2 / 6), norm * (red - green) + one(4 / 6)
        ),
    )
    hue = xp.where(spread > 0, hue, one(0))
    return xp.where(hue < 0, hue + one(1), hue), saturation, value


def _to_rgb(xp: ArrayNamespace, hue: Array, saturation: Array, value: Array) -> Array:
    six = hue * hue.dtype.type(6)
    parts = (abs(six - 3) - 1, 2 - abs(six - 2), 2 - abs(six - 4))
    rest = 1 - saturation
    return xp.stack([(rest + saturation * xp.clip(p, 0, 1)) * value for p in parts], axis=-1)


def _three(x: Array) -> Array:
    if x.ndim < 1 or x.shape[-1] != 3:
        raise errors.FailedPreconditionError(
            None, None, f"input must have 3 channels but instead has shape {shapes.show(x.shape)}"
        )
    return x


def _wide_colours(x: Array) -> Array:
    if x.ndim < 3:
        raise invalid(f"input must be at least 3-D, got shape{shapes.show(x.shape)}")
    if x.shape[-1] != 3:
        raise invalid(f"input must have 3 channels but instead has {x.shape[-1]} channels.")
    return x.astype(np.float32)


def _rgb_to_hsv_kernel(xp: ArrayNamespace, x: Array) -> Array:
    return xp.stack(_to_hsv(xp, _three(x)), axis=-1)


def _hsv_to_rgb_kernel(xp: ArrayNamespace, x: Array) -> Array:
    _three(x)
    return _to_rgb(xp, x[..., 0], x[..., 1], x[..., 2])


def _hue_kernel(xp: ArrayNamespace, x: Array, delta: Array) -> Array:
    """The hue is a circle of six sectors. The largest and the smallest channel keep their values
    exactly: they change places, and the third one lies between them.
    """
    wide, six = _wide_colours(x), np.float32(6)
    turn = _require_scalar("delta", delta) * six
    with np.errstate(all="ignore"):
        hue, low, high = _sector(xp, wide[..., 0], wide[..., 1], wide[..., 2])
        hue = hue + turn
        hue = xp.where((hue < 0) | (hue >= six), hue - six * xp.floor(hue / six), hue)
        at = xp.floor(hue)
        part = hue - at
        middle = low + xp.where(at % 2 == 1, 1 - part, part) * (high - low)
    #: Where the highest, the middle and the lowest channel are; the last sector holds for NaN, too.
    places = ((0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0), (2, 0, 1))
    out = [high, low, middle]
    for sector, order in enumerate(places):
        values: list[Any] = [None, None, None]
        for value, place in zip((high, middle, low), order):
            values[place] = value
        out = [xp.where(at == sector, v, o) for v, o in zip(values, out)]
    return xp.stack(out, axis=-1).astype(x.dtype)


def _sector(xp: ArrayNamespace, r: Array, g: Array, b: Array) -> tuple[Array, Array, Array]:
    """The hue between 0 and 6, the smallest and the largest channel.

    Comparisons decide which channel is which, so that one that is NaN counts as TensorFlow counts
    it.
    """
    above = r < g
    x, y = xp.where(above, r, g), xp.where(above, g, r)  # the smaller and the larger of red, green
    below, beyond = b < x, b > y
    low = xp.where(below, b, x)
    high = xp.where(beyond, b, y)
    middle = xp.where(below, x, xp.where(beyond, y, b))
    first = xp.where(below, 1, xp.where(beyond, 3, 2))
    second = xp.where(below, 0, xp.where(beyond, 4, 5))
    category = xp.where(above, first, second).astype(np.float32)
    ratio = (middle - low) / (high - low)
    hue = category + xp.where(category % 2 == 1, 1 - ratio, ratio)
    return xp.where(high == low, np.float32(0), hue), low, high


def _saturation_kernel(xp: ArrayNamespace, x: Array, scale: Array) -> Array:
    """The colours' own sector of the circle of hues, with another chroma.

    Numbers are rounded, and NaN is compared, where TensorFlow's kernel does it.
    """
    wide, one = _wide_colours(x), np.float32(1)
    by = _require_scalar("scale", scale)
    with np.errstate(all="ignore"):
        dh, s, v = _hue_of_six(xp, wide[..., 0], wide[..., 1], wide[..., 2])
        s = s * by
        s = xp.where(s > 0, s, np.float32(0))
        chroma = xp.where(s < one, s, one) * v
        rest = v - chroma
        part = dh - 2 * xp.floor(dh / 2)
        middle = chroma * (one - abs(xp.where(dh <= 0, np.float32(2), part) - one))
        at = xp.floor(dh)
    out = []
    for full, mixed in (((0, 5), (1, 4)), ((1, 2), (0, 3)), ((3, 4), (2, 5))):
        value = xp.where((at == mixed[0]) | (at == mixed[1]), middle, np.float32(0))
        out.append(xp.where((at == full[0]) | (at == full[1]), chroma, value) + rest)
    return xp.stack(out, axis=-1).astype(x.dtype)


def _hue_of_six(xp: ArrayNamespace, r: Array, g: Array, b: Array) -> tuple[Array, Array, Array]:
    """The hue between 0 and 6, saturation and value; a channel that is NaN may be overlooked."""
    one, zero = np.float32(1), np.float32(0)
    upper, lower = xp.where(g < b, b, g), xp.where(b < g, b, g)
    value, least = xp.where(r < upper, upper, r), xp.where(lower < r, lower, r)
    spread = value - least
    norm = one / (np.float32(6) * spread)
    wide = np.float64
    green = ((norm * (b - r)).astype(wide) + 2.0 / 6.0).astype(np.float32)
    blue = ((norm * (r - g)).astype(wide) + 4.0 / 6.0).astype(np.float32)
    hue = xp.where(r == value, norm * (g - b), xp.where(g == value, green, blue))
    hue = xp.where(spread <= 0, zero, hue)
    hue = xp.where(hue < 0, hue + one, hue)
    return hue * np.float32(6), xp.where(value > 0, spread / value, zero), value


def _contrast_kernel(xp: ArrayNamespace, x: Array, factor: Array) -> Any:
    """Away from (or towards) the mean of each channel of each image."""
    if x.ndim < 3:
        raise invalid(f"input must be at least 3-D, got shape{shapes.show(x.shape)}")
    mean = x.mean(axis=(-3, -2), keepdims=True, dtype=np.float32)
    by = _require_scalar("contrast_factor", factor)
    return ((x - mean) * by + mean).astype(x.dtype, copy=False)


# gradients ----------------------------------------------------------------------------------------


def _mul(a: Tensor, b: Tensor) -> Tensor:
    return apply_op("Mul", a, b)


def _rgb_to_hsv_grad(op: Operation, g: Tensor) -> list[Any]:
    """With v the largest and m the smallest channel: s = (v - m) / v, h = (next - last) / (6 (v -
    m)) + a third of i.

    ``next`` and ``last`` are the channels after the largest one, number i. Where v = 0 or v = m
    nothing changes.
    """
    dtype = op._inputs[0]._dtype._base
    rgb = apply_list(lookup("Unpack"), op._inputs[0], num=3, axis=-1)
    d_hue, d_sat, d_value = apply_list(lookup("Unpack"), g, num=3, axis=-1)
    axis = const(-1)
    top = _one_hot(apply_op("ArgMax", op._inputs[0], axis), dtype)
    bottom = _one_hot(apply_op("ArgMin", op._inputs[0], axis), dtype)
    value = apply_op("Maximum", apply_op("Maximum", rgb[0], rgb[1]), rgb[2])
    least = apply_op("Minimum", apply_op("Minimum", rgb[0], rgb[1]), rgb[2])
    spread = apply_op("Sub", value, least)
    # hue: for the largest channel i, (c[i+1] - c[i+2]) / (6 spread)
    unit = apply_op("DivNoNan", _mul(d_hue, const(1 / 6, dtype)), spread)
    turns = [apply_op("Sub", rgb[(i + 1) % 3], rgb[(i + 2) % 3]) for i in range(3)]
    turn = apply_op("AddN", [_mul(t, m) for t, m in zip(turns, top)])
    d_spread = apply_op("Neg", apply_op("DivNoNan", _mul(unit, turn), spread))
    d_spread = apply_op("AddV2", d_spread, apply_op("DivNoNan", d_sat, value))
    shrink = apply_op("DivNoNan", _mul(d_sat, spread), apply_op("Square", value))
    d_top = apply_op("Sub", apply_op("AddV2", d_value, d_spread), shrink)
    out = []
    for i in range(3):
        around = _mul(unit, apply_op("Sub", top[(i + 2) % 3], top[(i + 1) % 3]))
        own = apply_op("Sub", _mul(d_top, top[i]), _mul(d_spread, bottom[i]))
        out.append(apply_op("AddV2", own, around))
    return [apply_op("Pack", out, axis=-1)]


def _one_hot(index: Tensor, dtype: DType) -> list[Tensor]:
    """Three masks."""
    full = apply_op("OneHot", index, const(3), const(1, dtype), const(0, dtype), axis=-1)
    return apply_list(lookup("Unpack"), full, num=3, axis=-1)


def _contrast_grad(op: Operation, g: Tensor) -> list[Any]:
    """y = f (x - mean x) + mean x."""
    x, factor = op._inputs
    axes, dtype = const([-3, -2]), x._dtype._base
    f = factor if dtype is dtypes.float32 else apply_op("Cast", factor, DstT=dtype)
    mean_g = apply_op("Mean", g, axes, keep_dims=True)
    d_x = apply_op("AddV2", _mul(apply_op("Sub", g, mean_g), f), mean_g)
    centered = apply_op("Sub", x, apply_op("Mean", x, axes, keep_dims=True))
    product = _mul(g, centered)
    every = apply_op("Range", const(0), apply_op("Rank", product), const(1))
    d_factor = apply_op("Sum", product, every, keep_dims=False)
    if dtype is not dtypes.float32:
        d_factor = apply_op("Cast", d_factor, DstT=dtypes.float32)
    return [d_x, d_factor]


# definitions --------------------------------------------------------------------------------------


def _colors(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 1)
    if shape is not None and shape[-1] not in (3, None):
        raise ValueError(f"Dimension must be 3 but is {shape[-1]}")
    return [None if shape is None else (*shape[:-1], 3)]


def _contrast_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 0)
    return _adjusted(c)


def _adjusted(c: Inference) -> list[Shape]:
    return [c.require_rank_at_least(0, 3)]


def _require_scalar(what: str, value: Array) -> np.float32:
    if np.ndim(value):
        raise invalid(f"{what} must be scalar: {shapes.show(np.shape(value))}")
    return np.float32(value)


RGB_TO_HSV = define(
    "RGBToHSV",
    "images: T -> output: T; T: type(float)=float32",
    shape=_colors,
    kernel=_rgb_to_hsv_kernel,
    grad=_rgb_to_hsv_grad,
)
HSV_TO_RGB = define(
    "HSVToRGB",
    "images: T -> output: T; T: type(float)=float32",
    shape=_colors,
    kernel=_hsv_to_rgb_kernel,
    grad=NO_GRADIENT_YET,
)
ADJUST_HUE = define(
    "AdjustHue",
    "images: T, delta: float32 -> output: T; T: type(float)=float32",
    shape=_adjusted,
    kernel=_hue_kernel,
    grad=NO_GRADIENT_YET,
)
ADJUST_SATURATION = define(
    "AdjustSaturation",
    "images: T, scale: float32 -> output: T; T: type(float)=float32",
    shape=_adjusted,
    kernel=_saturation_kernel,
    grad=NO_GRADIENT_YET,
)
ADJUST_CONTRAST = define(
    "AdjustContrastv2",
    "images: T, contrast_factor: float32 -> output: T; T: type(float)=float32",
    shape=_contrast_shape,
    kernel=_contrast_kernel,
    grad=_contrast_grad,
)


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green, blue in [0, 1] to hue, saturation, value in [0, 1]."""
    return apply(RGB_TO_HSV, images, name=name)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Pictures of hue, saturation and value, all in [0, 1], as RGB in [0, 1]."""
    return apply(HSV_TO_RGB, images, name=name)
