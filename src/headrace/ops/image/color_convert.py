"""Image types and colour spaces made of simple ops: ``convert_image_dtype``, gray, YIQ and YUV.

Integer images use the whole range of their type, float images [0, 1].

    >>> tf.image.convert_image_dtype(bytes_image, tf.float32)  # 255 -> 1.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import expand_dims, rank, reshape, shape
from headrace.ops.array.basic import identity
from headrace.ops.array.casting import cast, saturate_cast
from headrace.ops.array.filling import ones
from headrace.ops.array.joining import concat
from headrace.ops.array.padding import tile
from headrace.ops.image.image_check import at_least_3d, require
from headrace.ops.linalg.contraction import tensordot

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "convert_image_dtype",
    "grayscale_to_rgb",
    "rgb_to_grayscale",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


def convert_image_dtype(
    image: Tensor, dtype: DType, saturate: bool = False, name: str | None = None
) -> Tensor:
    """An image of another type, its values scaled to that type's range.

    Floats are in [0, 1], integers from 0 to the largest of their type. ``saturate`` clips floats
    outside of [0, 1] when the target is an integer type; otherwise they wrap around.

        tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32)  # [0.0, 1.0]
    """
    image = convert_to_tensor(image, name="image")
    want, have = dtypes.as_dtype(dtype), image.dtype.base_dtype
    if not want.is_floating and not want.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if want is have:
        return identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as scope:
        if have.is_integer and want.is_integer:
            return _between_integers(image, have, want, saturate, scope)
        if have.is_floating and want.is_floating:
            return cast(image, want, name=scope)
        if have.is_integer:
            scale = 1.0 / have.max
            return apply_op("Mul", cast(image, want), scale, name=scope)
        # 0.5 above the largest value spreads the range evenly over all integers
        scaled = apply_op("Mul", image, want.max + 0.5, name="Mul")
        convert = saturate_cast if saturate else cast
        return convert(scaled, want, name=scope)


def _between_integers(
    image: Tensor, have: DType, want: DType, saturate: bool, scope: str
) -> Tensor:
    scale = (
        (have.max + 1) // (want.max + 1)
        if have.max > want.max
        else (want.max + 1) // (have.max + 1)
    )
    if have.max > want.max:
        smaller = apply_op("FloorDiv", image, scale)
        convert = saturate_cast if saturate else cast
        return convert(smaller, want, name=scope)
    wide = saturate_cast(image, want) if saturate else cast(image, want)
    return apply_op("Mul", wide, scale, name=scope)


_GRAY = [0.2989, 0.5870, 0.1140]


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """The brightness of colours; the last dimension becomes 1."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        original = images.dtype.base_dtype
        floats = convert_image_dtype(images, dtypes.float32)
        if floats._rank() is None:
            dims = shape(floats)
            rows = reshape(floats, apply_op("Pack", [-1, dims[-1]]))
            gray = reshape(
                apply_op("MatMul", rows, np.array(_GRAY, np.float32)[:, None]), dims[:-1]
            )
        else:
            gray = tensordot(floats, _GRAY, [-1, -1])
        return convert_image_dtype(expand_dims(gray, -1), original, name=scope)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Repeat the gray value in three channels: ``[..., 1]`` becomes ``[..., 3]``."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        if images._shape is not None and len(images._shape) < 2:
            raise ValueError("A grayscale image must be at least two-dimensional.")
        if images._shape is None or (len(images._shape) > 2 and 0 not in images._shape):
            images = at_least_3d(images, "images")
        last = images._shape[-1] if images._shape is not None else None
        if last not in (None, 1):
            raise ValueError(f"Last dimension of a grayscale image should be size 1, got {last}.")
        if last is None:
            message = "Last dimension of a grayscale image should be size 1."
            given = shape(images)
            images = require(images, lambda: [(apply_op("Equal", given[-1], 1), message)])
        count_more(images._op.graph, 2 if last else 11)  # TF fills a shape
        dims = rank(images)
        before = expand_dims(dims - 1, 0)
        times = concat([ones(before, dtypes.int32), [3]], 0)
        out = tile(images, times, name=scope)
        if images._shape is not None:
            out.set_shape([*images._shape[:-1], 3])
        return out


def _mixer(matrix: Sequence[Sequence[float]], what: str) -> Callable[..., Any]:
    kernel = np.array(matrix, np.float32)

    def convert(images: Array | Tensor) -> Tensor:
        tensor = convert_to_tensor(images, name="images")
        if not tensor.dtype.is_floating and not tensor.dtype.is_complex:
            raise TypeError(
                f"Expected {tensor.dtype.base_dtype.name}, got {float(kernel[0, 0]):.6g} of type "
                "'float' instead: convert the images with tf.image.convert_image_dtype"
            )
        weights = convert_to_tensor(kernel, tensor.dtype, name="kernel")
        dims = tensor._rank()
        if dims is None:
            raise ValueError(f"{what}: the rank of images must be known")
        return tensordot(tensor, weights, [[dims - 1], [0]])

    convert.__name__ = convert.__qualname__ = what
    convert.__doc__ = f"Colours of the last dimension, {what.replace('_', ' ')}."
    return convert


rgb_to_yiq = _mixer(
    [
        [0.299, 0.59590059, 0.2115],
        [0.587, -0.27455667, -0.52273617],
        [0.114, -0.32134392, 0.31119955],
    ],
    "rgb_to_yiq",
)
yiq_to_rgb = _mixer(
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]],
    "yiq_to_rgb",
)
rgb_to_yuv = _mixer(
    [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ],
    "rgb_to_yuv",
)
yuv_to_rgb = _mixer(
    [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]], "yuv_to_rgb"
)
