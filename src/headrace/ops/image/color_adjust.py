"""Brightness, contrast, hue, saturation and gamma of images, given or random;
``per_image_standardization``.

Adjustments are computed in floats; an integer image is converted and converted back.

    >>> image = tf.image.random_brightness(image, max_delta=0.2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import shape
from headrace.ops.array.casting import cast
from headrace.ops.image.color_convert import convert_image_dtype
from headrace.ops.image.color_ops import ADJUST_CONTRAST, ADJUST_HUE, ADJUST_SATURATION
from headrace.ops.image.encode import ENCODE_JPEG_VARIABLE_QUALITY, decode_jpeg
from headrace.ops.image.image_check import at_least_3d, require
from headrace.ops.math.reductions import reduce_mean, reduce_prod, reduce_std
from headrace.ops.math.unary import rsqrt
from headrace.ops.random.random_ops import random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_jpeg_quality_v2",
    "adjust_saturation",
    "per_image_standardization",
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
]


def _as_float(image: Tensor, original: DType) -> Tensor:
    """float16 and float32 stay, everything else becomes float32."""
    if original in (dtypes.float16, dtypes.float32):
        return image
    return convert_image_dtype(image, dtypes.float32)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """``delta`` added to all values, in the scale [0, 1]."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        image = convert_to_tensor(image, name="image")
        original = image.dtype.base_dtype
        floats = _as_float(image, original)
        step = cast(delta, floats.dtype.base_dtype)
        brighter = apply_op("Add", floats, step, name=scope)
        return convert_image_dtype(brighter, original, saturate=True)


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """Scale each channel's distance from its mean: ``(x - mean) * contrast_factor + mean``."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        images = convert_to_tensor(images, name="images")
        original = images.dtype.base_dtype
        out = apply(ADJUST_CONTRAST, _as_float(images, original), contrast_factor, name=scope)
        return convert_image_dtype(out, original, saturate=True)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """The hue of colours turned by ``delta`` of the circle."""
    with name_scope(name, "adjust_hue", [image]):
        image = convert_to_tensor(image, name="image")
        original = image.dtype.base_dtype
        out = apply(ADJUST_HUE, _as_float(image, original), delta)
        return convert_image_dtype(out, original)


def adjust_saturation(
    image: TensorLike, saturation_factor: TensorLike, name: str | None = None
) -> Tensor:
    """The picture with its saturation (in HSV) multiplied by a factor, clipped to [0, 1]."""
    with name_scope(name, "adjust_saturation", [image]):
        image = convert_to_tensor(image, name="image")
        original = image.dtype.base_dtype
        out = apply(ADJUST_SATURATION, _as_float(image, original), saturation_factor)
        return convert_image_dtype(out, original)


def adjust_gamma(image: TensorLike, gamma: float | Tensor = 1, gain: TensorLike = 1) -> Tensor:
    """gain * image ** gamma, in the scale [0, 1].

    ``image`` may be of an integer type: it is scaled to [0, 1], and the result back, saturated. A
    negative ``gamma`` is an error. ``gamma`` above 1 makes pictures darker.
    """
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        image = convert_to_tensor(image, name="image")
        original = image.dtype.base_dtype
        floats = _as_float(image, original)
        negative = "Gamma should be a non-negative real number."
        if not isinstance(gamma, Tensor) and gamma < 0:
            raise ValueError(negative)
        gain, power = (
            v if isinstance(v, Tensor) else convert_to_tensor(v, floats.dtype.base_dtype)
            for v in (gain, gamma)
        )
        if isinstance(gamma, Tensor):
            power = require(power, lambda: [(gamma >= 0, negative)])
        out = apply_op("Mul", gain, apply_op("Pow", floats, power, name="pow"), name="mul")
        return convert_image_dtype(out, original, saturate=True)


def per_image_standardization(image: TensorLike) -> Tensor:
    """Each image with mean 0 and variance 1; a flat image is not blown up."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = convert_to_tensor(image, name="image")
        image = at_least_3d(image)
        original = image.dtype.base_dtype
        image = _as_float(image, original)
        dims = shape(image)
        count = reduce_prod(dims[-3:])
        mean = reduce_mean(image, axis=[-1, -2, -3], keepdims=True)
        deviation = reduce_std(image, axis=[-1, -2, -3], keepdims=True)
        least = rsqrt(cast(count, image.dtype.base_dtype))
        adjusted = apply_op("Maximum", deviation, least)
        centered = apply_op("Sub", image, mean, name="sub")
        out = apply_op("RealDiv", centered, adjusted, name=scope)
        return convert_image_dtype(out, original, saturate=True)


# random -------------------------------------------------------------------------------------------


def _drawn(low: TensorLike, high: Any, seed: int | None) -> Tensor:
    return random_uniform([], low, high, seed=seed)


def random_brightness(image: Tensor, max_delta: float, seed: int | None = None) -> Tensor:
    """Add one random number in [-max_delta, max_delta) to all values of an image.

    The number is drawn anew in each run and is one for a whole batch; ``seed`` makes the sequence
    repeatable. Values are not clipped unless the type is an integer.
    """
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, _drawn(-max_delta, max_delta, seed))


def random_contrast(image: Tensor, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """``adjust_contrast`` with a factor drawn from [lower, upper).

    The factor is drawn anew in each run and is one for a whole batch; ``seed`` makes the sequence
    repeatable. ``lower`` must be non-negative and less than ``upper``.
    """
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_contrast(image, _drawn(lower, upper, seed))


def random_hue(image: Tensor, max_delta: float, seed: int | None = None) -> Tensor:
    """``adjust_hue`` with a shift drawn from [-max_delta, max_delta); at most 0.5.

    The shift, in turns of the colour circle, is drawn anew in each run and is one for a whole
    batch; ``seed`` makes the sequence repeatable.
    """
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, _drawn(-max_delta, max_delta, seed))


def random_saturation(image: Tensor, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """``adjust_saturation`` with a factor drawn from [lower, upper).

    The factor is drawn anew in each run and is one for a whole batch; ``seed`` makes the sequence
    repeatable. ``lower`` must be non-negative and less than ``upper``.
    """
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_saturation(image, _drawn(lower, upper, seed))


# JPEG noise ---------------------------------------------------------------------------------------


def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: TensorLike, name: str | None = None
) -> Tensor:
    """The image as it looks after saving it as JPEG."""
    return adjust_jpeg_quality_v2(image, jpeg_quality, "", name)


def adjust_jpeg_quality_v2(
    image: TensorLike, jpeg_quality: TensorLike, dct_method: str = "", name: str | None = None
) -> Tensor:
    """The image as it looks after saving it as JPEG and decoding it with ``dct_method``.

    ``image`` is [height, width, 1 or 3] of any type that ``convert_image_dtype`` takes,
    ``jpeg_quality`` 0 to 100 (a tensor may be given), ``dct_method`` "INTEGER_FAST",
    "INTEGER_ACCURATE" or "".
    """
    with name_scope(name, "adjust_jpeg_quality", [image]) as scope:
        image = convert_to_tensor(image, name="image")
        original = image.dtype.base_dtype
        small = convert_image_dtype(image, dtypes.uint8)
        quality = convert_to_tensor(jpeg_quality, dtypes.int32)
        data = apply(ENCODE_JPEG_VARIABLE_QUALITY, small, quality)
        last = image._shape[-1] if image._shape is not None else None
        decoded = decode_jpeg(data, channels=last or 0, dct_method=dct_method)
        return convert_image_dtype(decoded, original, name=scope)


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """The picture after JPEG compression of a quality drawn from [``min_jpeg_quality``,
    ``max_jpeg_quality``).

    Both lie between 0 and 100, the first below the second.
    """
    if min(min_jpeg_quality, max_jpeg_quality) < 0 or max(min_jpeg_quality, max_jpeg_quality) > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)
