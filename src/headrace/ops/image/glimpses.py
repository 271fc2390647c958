"""ExtractGlimpse: a window of each image around a point; what lies outside is noise.

>>> tf.image.extract_glimpse(images, [8, 8], offsets=[[0.0, 0.0]])  # the middle
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.build import apply
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["extract_glimpse", "extract_glimpse_v2"]


def _first_pixels(offsets: Array, size: Array, window: Array, attrs: tuple[bool, bool]) -> Array:
    """Row and column of each window's first pixel."""
    normalized, centered = attrs
    at: Array = offsets.astype(np.float32)
    if normalized:
        at = at * size
    if centered:
        at = at / np.float32(2) + size / np.float32(2)
    return np.trunc(at - window / np.float32(2)).astype(np.int64)


def _filled(image: Array, shape: tuple[int, ...], noise: str) -> Any:
    """A window of noise like the image: TensorFlow's is not seeded either."""
    if noise == "zero":
        return np.zeros(shape, np.float32)
    random = np.random.default_rng()
    if noise == "uniform":
        low, high = image.min(), image.max()
        return low + random.random(shape, np.float32) * (high - low)
    noisy = random.standard_normal(shape, np.float32) * image.std() + image.mean()
    return np.clip(noisy, image.min(), image.max()).astype(np.float32)


def _kernel(
    xp: ArrayNamespace,
    images: Array,
    size: Array,
    offsets: Array,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> Array:
    if size.shape != (2,):
        raise invalid(f"input must be a vector of size 2 (height, width)[{size.shape}]")
    if offsets.ndim != 2 or offsets.shape[0] != images.shape[0]:
        raise invalid("first dimension should be batch")
    if offsets.shape[1] != 2:
        raise invalid("second dimension should be of size 2 (y,x)")
    if not noise:
        noise = "uniform" if uniform_noise else "gaussian"
    window = (int(size[0]), int(size[1]))
    batch, height, width, channels = images.shape
    out = np.empty((batch, *window, channels), np.float32)
    if not out.size:
        return out
    spans = np.array([height, width], np.float32)
    firsts = _first_pixels(offsets, spans, np.array(window, np.float32), (normalized, centered))
    for image, first, glimpse in zip(images, firsts, out, strict=True):
        low = np.maximum(first, 0)
        high = np.minimum(first + window, (height, width))
        if (low > first).any() or (first + window >= (height, width)).any():
            glimpse[:] = _filled(image, glimpse.shape, noise)
        if (low < high).all():
            (top, left), (bottom, right) = low - first, high - first
            glimpse[top:bottom, left:right] = image[low[0] : high[0], low[1] : high[1]]
    return out


def _shape(c: Inference) -> list[Shape]:
    images = c.require_rank(0, 4)
    offsets = c.require_rank(2, 2)
    if None not in (images[0], offsets[0]) and images[0] != offsets[0]:
        raise ValueError(f"Dimensions must be equal, but are {images[0]} and {offsets[0]}")
    if offsets[1] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {offsets[1]}")
    sizes = c.require_rank(1, 1)[0]
    if sizes not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {sizes}")
    size = c.value(1)
    window = (None, None) if size is None else tuple(int(d) for d in size)
    low = next((d for d in window if d is not None and d < 0), None)
    if low is not None:
        raise ValueError(f"Dimension {low} must be >= 0")
    batch = offsets[0] if images[0] is None else images[0]
    return [(batch, *window, images[3])]


GLIMPSE = define(
    "ExtractGlimpse",
    "input: float32, size: int32, offsets: float32 -> glimpse: float32; centered: bool=True, "
    "normalized: bool=True, uniform_noise: bool=True, noise: str='uniform'",
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def extract_glimpse(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Windows of ``size`` (height, width), one an image, in the middle of which is its offset.

    ``offsets`` (batch, [y, x]): with ``normalized`` in units of the image's size, with
    ``centered`` from its middle (then -1 and 1 are the edges). There is no gradient.
    """
    attrs = {"centered": centered, "normalized": normalized, "uniform_noise": uniform_noise}
    return apply(GLIMPSE, input, size, offsets, **attrs, name=name)


def extract_glimpse_v2(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Windows of images as ``tf.compat.v1.image.extract_glimpse`` cuts them.

    ``noise`` ("uniform", "gaussian" or "zero") fills what lies outside of an image.
    """
    attrs = {"centered": centered, "normalized": normalized, "noise": noise}
    return apply(GLIMPSE, input, size, offsets, uniform_noise=False, **attrs, name=name)
