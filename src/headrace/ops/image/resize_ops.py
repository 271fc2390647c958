"""ResizeBilinear, ResizeBicubic, ResizeArea, ResizeNearestNeighbor and their gradients.

>>> small = tf.image.resize_bilinear(images, [32, 32])
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, OpDef, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.numpy import resample
from headrace.ops.array.array_shape import const, invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_nearest_neighbor",
]

Resampler = Callable[..., Any]


def _library(xp: ArrayNamespace) -> ModuleType:
    """Another array namespace brings its own functions of
    :mod:`headrace.kernels.numpy.resample`.
    """
    return resample if xp.name == "numpy" else xp.resample


def _checked(x: Array, size: Array) -> tuple[int, int]:
    """The new height and width."""
    if x.ndim != 4:
        raise invalid(f"input must be 4-dimensional{shapes.show(x.shape)}")
    if np.ndim(size) != 1:
        raise invalid(f"shape_t must be 1-dimensional{shapes.show(np.shape(size))}")
    if len(size) != 2:
        raise invalid(f"shape_t must have two elements{shapes.show(np.shape(size))}")
    height, width = int(size[0]), int(size[1])
    if height <= 0 or width <= 0:
        raise invalid("output dimensions must be positive")
    if 0 in x.shape[1:3]:
        raise invalid("input image must be of non-zero size")
    if not x.shape[3]:
        raise invalid("image must have at least one channel")
    return height, width


def _kernel(name: str) -> Resampler:
    def kernel(
        xp: ArrayNamespace, x: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
    ) -> Any:
        return getattr(_library(xp), name)(
            x, _checked(x, size), align_corners, _centers(align_corners, half_pixel_centers)
        )

    return kernel


def _centers(align_corners: bool, half_pixel_centers: bool) -> bool:
    if align_corners and half_pixel_centers:
        raise invalid("If half_pixel_centers is True, align_corners must be False.")
    return half_pixel_centers


def _area_kernel(xp: ArrayNamespace, x: Array, size: Array, *, align_corners: bool) -> Any:
    return _library(xp).area(x, _checked(x, size), align_corners)


def _grad_kernel(name: str) -> Resampler:
    def kernel(
        xp: ArrayNamespace,
        g: Array,
        original: Array,
        *,
        align_corners: bool,
        half_pixel_centers: bool,
    ) -> Any:
        for what, array in (("input_grad", g), ("original_image", original)):
            if array.ndim != 4:
                raise invalid(f"{what} must be 4-dimensional{shapes.show(array.shape)}")
        size = (original.shape[1], original.shape[2])
        out = getattr(_library(xp), name)(g, size, align_corners, half_pixel_centers)
        return out.astype(original.dtype, copy=False)

    return kernel


def _nearest_grad_kernel(
    xp: ArrayNamespace, g: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    return _library(xp).nearest_grad(g, _checked(g, size), align_corners, half_pixel_centers)


# shapes -------------------------------------------------------------------------------------------


def _resized(c: Inference) -> list[Shape]:
    image = c.require_rank(0, 4)
    assert image is not None
    shapes.merge(c.shape(1), (2,))
    size = c.shape_value(1) or (None, None)
    return [(image[0], size[0], size[1], image[3])]


def _as_original(c: Inference) -> list[Shape]:
    """That of the image, whatever it is: ranks are looked at when it runs, as in TensorFlow."""
    g, image = c.shape(0), c.shape(1)
    if image is None or len(image) != 4 or g is None or len(g) != 4:
        return [image]
    return [(image[0] if image[0] is not None else g[0], *image[1:])]


# gradients ----------------------------------------------------------------------------------------


def _attrs(op: Operation) -> dict[str, Any]:
    return {k: op._attrs[k] for k in ("align_corners", "half_pixel_centers")}


def _through(grad_op: str) -> Callable[..., list[Any]]:
    def grad(op: Operation, g: TensorLike) -> list[Any]:
        image = op._inputs[0]
        if not image._dtype._base.is_floating:
            return [None, None]
        return [apply_op(grad_op, g, image, **_attrs(op)), None]

    return grad


def _resize_gradient(forward_op: str) -> Callable[..., list[Any]]:
    """The gradient of a resize's gradient is the resize."""

    def grad(op: Operation, g: TensorLike) -> list[Any]:
        return [apply_op(forward_op, g, _size_of(op._inputs[0]), **_attrs(op)), None]

    return grad


def _size_of(tensor: Tensor) -> Tensor:
    shape = tensor._shape
    if shape is not None and None not in shape[1:3]:
        return const(shape[1:3])
    whole = apply_op("Shape", tensor)
    return whole[1:3]


def _nearest_grad(op: Operation, g: Tensor) -> list[Any]:
    return [apply_op("ResizeNearestNeighborGrad", g, _size_of(op._inputs[0]), **_attrs(op)), None]


# definitions --------------------------------------------------------------------------------------

_FLAGS = "align_corners: bool=False, half_pixel_centers: bool=False"


def _define(name: str, function: str, without_half: bool = False) -> OpDef:
    """A resize and its gradient; ``without_half``: float16 images have no gradient."""
    through = _through(f"{name}Grad")

    def grad(op: Operation, g: TensorLike) -> list[Any]:
        if without_half and op._inputs[0]._dtype._base is dtypes.float16:
            return [None, None]
        return through(op, g)

    define(
        f"{name}Grad",
        f"grads: float32, original_image: T -> output: T; {_FLAGS}, T: type(float)",
        shape=_as_original,
        kernel=_grad_kernel(f"{function}_grad"),
        grad=_resize_gradient(name),
    )
    return define(
        name,
        f"images: T, size: int32 -> resized_images: float32; {_FLAGS}, T: type(real)",
        shape=_resized,
        kernel=_kernel(function),
        grad=grad,
        known_inputs=(1,),
    )


RESIZE_BILINEAR = _define("ResizeBilinear", "bilinear")
RESIZE_BICUBIC = _define("ResizeBicubic", "bicubic", without_half=True)
RESIZE_AREA = define(
    "ResizeArea",
    "images: T, size: int32 -> resized_images: float32; align_corners: bool=False, T: type(real)",
    shape=_resized,
    kernel=_area_kernel,
    grad=NO_GRADIENT_YET,
    known_inputs=(1,),
)
RESIZE_NEAREST_NEIGHBOR = define(
    "ResizeNearestNeighbor",
    f"images: T, size: int32 -> resized_images: T; {_FLAGS}, T: type(real)",
    shape=_resized,
    kernel=_kernel("nearest"),
    grad=_nearest_grad,
    known_inputs=(1,),
)
define(
    "ResizeNearestNeighborGrad",
    f"grads: T, size: int32 -> output: T; {_FLAGS}, T: type(real)",
    shape=_resized,
    kernel=_nearest_grad_kernel,
    grad=_resize_gradient("ResizeNearestNeighbor"),
    known_inputs=(1,),
)


def resize_bilinear(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images of a batch to one size, mixing the four nearest pixels; float32.

    ``size`` is [height, width]. ``align_corners`` lays the centres of the corner pixels onto each
    other; ``half_pixel_centers`` (as in TF 2) counts from the centres of pixels; without either,
    from their corners, as in TF 1.
    """
    return apply(
        RESIZE_BILINEAR,
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_bicubic(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Pictures [batch, height, width, channels] resized by bicubic interpolation, float32.

    ``size`` is [height, width]. ``align_corners`` lays the centres of the corner pixels onto each
    other; ``half_pixel_centers`` (as in TF 2) counts from the centres of pixels; without either,
    from their corners, as in TF 1.
    """
    return apply(
        RESIZE_BICUBIC,
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_nearest_neighbor(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Pictures [batch, height, width, c] resized by the nearest pixel; the type stays.

    ``size`` is [height, width]. ``align_corners`` lays the centres of the corner pixels onto each
    other; ``half_pixel_centers`` (as in TF 2) counts from the centres of pixels; without either,
    from their corners, as in TF 1.
    """
    return apply(
        RESIZE_NEAREST_NEIGHBOR,
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_area(
    images: TensorLike, size: TensorLike, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """The mean over the area that an output pixel covers; float32.

    ``images`` is [batch, height, width, channels] and ``size`` [height, width]. ``align_corners``
    aligns the centres of the corner pixels. For making pictures smaller; it has no gradient.
    """
    return apply(RESIZE_AREA, images, size, align_corners=align_corners, name=name)
