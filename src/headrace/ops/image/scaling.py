"""ScaleAndTranslate: pictures sampled with a kernel (Lanczos, Gauss, Mitchell …), and its gradient.

Every output pixel is a weighted mean of the pixels around its place in the picture; height and
width are independent, so that two matrices of weights say everything.

>>> weights(4, 2, np.float32(0.5), np.float32(0), "triangle", antialias=True)  # 2 x 4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.array.casting import cast

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["scale_to_size", "weights"]


# kernels of sampling ------------------------------------------------------------------------------


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        with np.errstate(all="ignore"):
            waves = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius) / (np.pi * x) ** 2
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, waves))

    return kernel


def _gaussian(x: Array) -> Array:
    return np.where(x >= 1.5, 0, np.exp(-x * x / (2 * 0.5**2)))


def _cubic(x: Array) -> Array:
    """Keys' cubic with a = -0.5."""
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, outer, (1.5 * x - 2.5) * x * x + 1))


def _mitchell(x: Array) -> Array:
    outer = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, outer, (7 / 6 * x - 2) * x * x + 8 / 9))


#: name -> (radius, function of the distance).
KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1.0, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2.0, _cubic),
    "mitchellcubic": (2.0, _mitchell),
}


def weights(
    size: int, wanted: int, scale: np.float32, translation: np.float32, kernel: str, antialias: bool
) -> Array:
    """The weight of each of ``size`` pixels in each of the ``wanted`` ones."""
    if kernel not in KERNELS:
        raise invalid(f"Unrecognized kernel type: {kernel}")
    radius, function = KERNELS[kernel]
    step = np.float32(1) / scale
    wide = max(step, np.float32(1)) if antialias else np.float32(1)
    places = (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * step - step * translation
    reach = np.float32(radius) * wide
    first = np.clip(np.ceil(places - reach - np.float32(0.5)), 0, size - 1)
    last = np.clip(np.floor(places + reach - np.float32(0.5)), 0, size - 1)
    pixels = np.arange(size, dtype=np.float32)
    distance = np.abs((pixels + np.float32(0.5) - places[:, None]) / wide)
    found = function(distance.astype(np.float64)).astype(np.float32)
    found[(pixels < first[:, None]) | (pixels > last[:, None])] = 0
    found[(places < 0) | (places > size)] = 0  # outside of the picture
    total = found.sum(1, keepdims=True)
    small = np.abs(total) < 1000 * np.finfo(np.float32).tiny
    return np.where(small, 0, found / np.where(small, 1, total)).astype(np.float32)


def _both(
    have: Array,
    size: tuple[int, int],
    scale: Array,
    translation: Array,
    kernel_type: str,
    antialias: bool,
) -> list[Array]:
    """Weights of rows and of columns."""
    if have[0] <= 0 or have[1] <= 0 or min(size) <= 0:
        raise invalid("sizes must be positive")
    for given in (scale, translation):
        if given.ndim != 1:
            raise invalid(f"t must be 1-dimensional{shapes.show(given.shape)}")
        if given.shape != (2,):
            raise invalid(f"t must have two elements{shapes.show(given.shape)}")
    if not (scale > 0).all():
        raise invalid("scale must be greater than zero.")
    return [
        weights(int(n), m, s, t, kernel_type, antialias)
        for n, m, s, t in zip(have, size, scale, translation)
    ]


def _kernel(
    xp: ArrayNamespace,
    images: Array,
    size: Array,
    scale: Array,
    translation: Array,
    *,
    kernel_type: str,
    antialias: bool,
) -> Array:
    if images.ndim != 4:
        raise invalid(f"input must be 4-dimensional{shapes.show(images.shape)}")
    if size.shape != (2,):
        raise invalid(f"output_shape_t must have two elements{shapes.show(size.shape)}")
    wanted = (int(size[0]), int(size[1]))
    rows, columns = _both(images.shape[1:3], wanted, scale, translation, kernel_type, antialias)
    tall = np.einsum("yh,bhwc->bywc", rows, images.astype(np.float32), optimize=True)
    out: Array = np.einsum("xw,bywc->byxc", columns, tall, optimize=True)
    return out.astype(np.float32)


def _grad_kernel(
    xp: ArrayNamespace,
    grads: Array,
    original: Array,
    scale: Array,
    translation: Array,
    *,
    kernel_type: str,
    antialias: bool,
) -> Array:
    wanted = (grads.shape[1], grads.shape[2])
    rows, columns = _both(original.shape[1:3], wanted, scale, translation, kernel_type, antialias)
    wide = np.einsum("xw,byxc->bywc", columns, grads.astype(np.float32), optimize=True)
    out: Array = np.einsum("yh,bywc->bhwc", rows, wide, optimize=True)
    return out.astype(original.dtype)


# definitions --------------------------------------------------------------------------------------


def _shape(c: Inference) -> list[Shape]:
    image = c.require_rank(0, 4)
    shapes.merge(c.require_rank(1, 1), (2,))
    size = c.shape_value(1) or (None, None)
    return [(image[0], size[0], size[1], image[3])]


def _grad(op: Operation, g: Tensor) -> list[Any]:
    image, _, scale, translation = op._inputs
    if not image._dtype._base.is_floating:
        return [None] * 4
    attrs = {k: op._attrs[k] for k in ("kernel_type", "antialias")}
    return [apply_op("ScaleAndTranslateGrad", g, image, scale, translation, **attrs), *[None] * 3]


_FLAGS = "kernel_type: str='lanczos3', antialias: bool=True"

SCALE_AND_TRANSLATE = define(
    "ScaleAndTranslate",
    "images: T, size: int32, scale: float32, translation: float32 -> resized_images: float32; "
    f"T: type(real), {_FLAGS}",
    shape=_shape,
    kernel=_kernel,
    grad=_grad,
    known_inputs=(1,),
    host_only=True,
)
define(
    "ScaleAndTranslateGrad",
    "grads: T, original_image: T, scale: float32, translation: float32 -> output: T; "
    f"T: type(float), {_FLAGS}",
    shape=lambda c: [c.shape(1)],
    kernel=_grad_kernel,
    grad=NO_GRADIENT_YET,
    host_only=True,
)


def scale_to_size(images: Tensor, size: Tensor, kernel: str, antialias: bool) -> Tensor:
    """Pictures of another size, sampled with the kernel of that name."""
    have = cast(shape(images)[1:3], dtypes.float32)
    scale = apply_op("RealDiv", cast(size, dtypes.float32), have)
    return apply(
        SCALE_AND_TRANSLATE,
        images,
        size,
        scale,
        const([0, 0], dtypes.float32),
        kernel_type=kernel,
        antialias=antialias,
    )
