"""``tf.image.resize_images`` and ``tf.image.resize``: any method, one image or a batch, aspect
ratio kept or not.

>>> tf.image.resize_images(image, [224, 224], method=tf.image.ResizeMethod.BICUBIC)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import ranked
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import expand_dims, shape, squeeze
from headrace.ops.array.casting import cast
from headrace.ops.array.joining import stack
from headrace.ops.image.geometry import pad_to_bounding_box
from headrace.ops.image.image_check import check_3d
from headrace.ops.image.resize_ops import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
)
from headrace.ops.image.scaling import scale_to_size
from headrace.ops.math.binary import maximum, minimum
from headrace.ops.math.unary import floor, round

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike

__all__ = [
    "ResizeMethod",
    "ResizeMethodV2",
    "resize_image_with_pad",
    "resize_image_with_pad_v2",
    "resize_images",
    "resize_images_v2",
]


class ResizeMethod:
    """The methods of ``resize_images``: BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


class ResizeMethodV2:
    """The methods of TF 2's ``tf.image.resize``, as strings."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_RESIZERS = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
    "bilinear": resize_bilinear,
    "nearest": resize_nearest_neighbor,
    "bicubic": resize_bicubic,
    "area": resize_area,
}

#: Methods of TF 2 that sample with a kernel; the first two only if ``antialias`` is asked for.
_SAMPLING = {
    "bilinear": "triangle",
    "bicubic": "keyscubic",
    **{name: name for name in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")},
}


def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: TensorLike = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of another size.

    Float32 unless the method takes the nearest pixel or nothing changes.
    """
    resizer = _RESIZERS.get(method)
    if resizer is None:
        raise ValueError("Resize method is not implemented.")
    return _resized(
        images,
        size,
        lambda x, s: resizer(x, s, align_corners=align_corners),
        preserve_aspect_ratio,
        name,
        True,
    )


def resize_images_v2(
    images: Array | Tensor,
    size: Tensor,
    method: Any = ResizeMethodV2.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """As TF 2 resizes: pixels have their centres in their middle.

    ``antialias`` widens the kernels of ``"bilinear"`` and ``"bicubic"``, and of the methods that
    have a kernel of their own, when pictures become smaller.
    """
    sampling = _SAMPLING.get(method)
    if sampling is not None and (antialias or method not in _RESIZERS):
        return _resized(
            images,
            size,
            lambda x, s: scale_to_size(x, s, sampling, bool(antialias)),
            preserve_aspect_ratio,
            name,
            False,
        )
    resizer = _RESIZERS.get(method)
    if resizer is None:
        raise ValueError(f"Resize method is not implemented: {method}")
    centers: dict[str, Any] = {} if resizer is resize_area else {"half_pixel_centers": True}
    return _resized(
        images, size, lambda x, s: resizer(x, s, **centers), preserve_aspect_ratio, name, False
    )


def _resized(
    images: TensorLike,
    size: Any,
    resizer: Callable[[Any, Any], Any],
    keep_aspect: bool,
    name: str | None,
    skip: bool,
) -> Tensor:
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        dims = images._rank()
        if dims is None:
            raise ValueError("'images' contains no shape.")
        if dims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        batch = expand_dims(images, 0) if dims == 3 else images
        size = _size(size)
        if keep_aspect:
            size = _fitting(batch, size)
        known = static_value(size)
        if (
            skip
            and known is not None
            and batch._shape is not None
            and batch._shape[1:3] == tuple(int(d) for d in known)
        ):
            out = batch
        else:
            out = resizer(batch, size)
        return squeeze(out, axis=[0]) if dims == 3 else out


def _size(size: Tensor) -> Tensor:
    try:
        tensor = convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if tensor._shape is not None and tensor._shape != (2,):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return tensor


def _fitting(batch: Tensor, size: Tensor) -> Tensor:
    """The largest size with the images' aspect ratio that is within ``size``."""
    known, dims = static_value(size), ranked(batch._shape)[1:3]
    if known is not None and None not in dims:
        height, width = (
            np.float32(known[0]) / np.float32(dims[0]),
            np.float32(known[1]) / np.float32(dims[1]),
        )
        scale = min(height, width)
        return convert_to_tensor(np.array([np.rint(scale * np.float32(d)) for d in dims], np.int32))
    whole = shape(batch)
    have = cast(whole[1:3], dtypes.float32)
    scales: Any = cast(size, dtypes.float32) / have
    least = minimum(scales[0], scales[1])
    return cast(round(have * least), dtypes.int32)


def resize_image_with_pad(
    image: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
    method: TensorLike = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """An image as large as fits into ``target_height`` x ``target_width`` with its aspect ratio
    kept, in the middle of zeros.

    ``image`` is [height, width, channels] or a batch; ``method`` and ``align_corners`` are those of
    ``tf.image.resize_images``.
    """
    return _padded(
        image,
        target_height,
        target_width,
        lambda x, s: _as_resized(resize_images(x, s, method, align_corners), method),
    )


def _as_resized(image: Tensor, method: object) -> Tensor:
    """An image of the size that is wanted already, in the type that others of its kind get."""
    if method == ResizeMethod.NEAREST_NEIGHBOR or image._dtype._base.is_floating:
        return image
    return cast(image, dtypes.float32)


def resize_image_with_pad_v2(
    image: object,
    target_height: int,
    target_width: int,
    method: object = ResizeMethodV2.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Pictures resized to fit into the target size, with zeros around, undistorted.

    ``image`` is [height, width, channels] or a batch of them; the result is in the middle.
    ``method`` is one of ``tf.image.ResizeMethod``; ``antialias`` filters before making smaller.
    """
    return _padded(
        image,
        target_height,
        target_width,
        lambda x, s: resize_images_v2(x, s, method, antialias=antialias),
    )


def _padded(
    image: Any, target_height: Any, target_width: Any, resized: Callable[[Any, Any], Tensor]
) -> Tensor:
    with name_scope(None, "resize_image_with_pad", [image]):
        image = convert_to_tensor(image, name="image")
        dims = image._rank()
        if dims is None:  # TensorFlow takes it for one image
            image.set_shape([None, None, None])
            dims = 3
        if dims not in (3, 4):
            raise ValueError("'image' must have either 3 or 4 dimensions.")
        check_3d(image._shape if dims == 4 else (1, *image._shape))
        for what, value in (("target_width", target_width), ("target_height", target_height)):
            if not isinstance(value, Tensor) and value <= 0:
                raise ValueError(f"{what} must be > 0.")
        at = dims - 3
        whole: Any = shape(image)
        height, width = (cast(whole[at + i], dtypes.float64) for i in (0, 1))
        high, wide = (cast(t, dtypes.float64) for t in (target_height, target_width))
        ratio = maximum(width / wide, height / high)
        new_high, new_wide = height / ratio, width / ratio
        top = maximum(0, cast(floor((high - new_high) / 2), dtypes.int32))
        left = maximum(0, cast(floor((wide - new_wide) / 2), dtypes.int32))
        size = stack([cast(floor(new_high), dtypes.int32), cast(floor(new_wide), dtypes.int32)])
        smaller = resized(image, size)
        return pad_to_bounding_box(smaller, top, left, target_height, target_width)
