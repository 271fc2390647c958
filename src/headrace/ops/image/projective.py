"""Projective transforms of images: ``tf.contrib.image.transform``, ``rotate``, ``translate``.

A transform is a row [a0, a1, a2, b0, b1, b2, c0, c1]: the output's pixel (x, y) is the input's at
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1; outside it is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones, zeros
from headrace.ops.array.joining import concat
from headrace.ops.linalg.decompositions import matrix_inverse
from headrace.ops.linalg.matmul import matmul
from headrace.ops.math.unary import cos, sin

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]


def _shape(c: Inference) -> list[Shape]:
    images = c.require_rank(0, 4)
    size = c.shape_value(2) or (None, None)
    if images is None:
        return [(None, size[0], size[1], None)]
    return [(images[0], size[0], size[1], images[3])]


def _points(rows: Array, height: int, width: int) -> tuple[Any, Any, Any]:
    """Coordinates in the input, rows x height x width, and where they are finite."""
    r = rows.astype(np.float32)[:, :, None, None]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    k = r[:, 6] * x + r[:, 7] * y + np.float32(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found_x = (r[:, 0] * x + r[:, 1] * y + r[:, 2]) / k
        found_y = (r[:, 3] * x + r[:, 4] * y + r[:, 5]) / k
    finite = (k != 0) & np.isfinite(found_x) & np.isfinite(found_y)
    limit = np.float32(1 << 24)
    return (
        np.clip(np.where(finite, found_x, -limit), -limit, limit),
        np.clip(np.where(finite, found_y, -limit), -limit, limit),
        finite,
    )


def _pick(images: Array, y: Array, x: Array) -> Array:
    """Pixels at whole coordinates; 0 outside."""
    height, width = images.shape[1:3]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    which = np.arange(len(images)).reshape(-1, 1, 1)
    found = images[which, np.where(inside, y, 0), np.where(inside, x, 0)]
    return np.where(inside[..., None], found, np.zeros((), images.dtype))


def _round_away(v: Array) -> Array:
    return (np.sign(v) * np.floor(np.abs(v) + np.float32(0.5))).astype(np.int64)


def _kernel(
    xp: ArrayNamespace, images: Array, rows: Array, size: Array, *, interpolation: str
) -> np.ndarray[Any, Any]:
    if rows.ndim != 2 or rows.shape[1] != 8 or rows.shape[0] not in (1, images.shape[0]):
        raise errors.InvalidArgumentError(
            None,
            None,
            "Input transform should be num_images x 8 or 1 x 8, but is "
            f"{list(rows.shape)} for {images.shape[0]} images",
        )
    height, width = (int(n) for n in size)
    x, y, finite = _points(rows, height, width)
    shape = (images.shape[0], height, width)
    x, y, finite = (np.broadcast_to(v, shape) for v in (x, y, finite))
    if interpolation == "NEAREST":
        found = _pick(images, _round_away(y), _round_away(x))
    elif interpolation == "BILINEAR":
        found = _bilinear(images, y, x)
    else:
        raise errors.InvalidArgumentError(
            None, None, f"Interpolation must be NEAREST or BILINEAR, not {interpolation!r}"
        )
    found = np.where(finite[..., None], found, np.zeros((), images.dtype))
    return found.astype(images.dtype, copy=False)


def _bilinear(images: Any, y: Array, x: Array) -> Array:
    y0, x0 = np.floor(y), np.floor(x)
    y1, x1 = y0 + 1, x0 + 1
    rows = []
    for line in (y0, y1):
        left, right = (
            _pick(images, line.astype(np.int64), column.astype(np.int64)).astype(np.float32)
            for column in (x0, x1)
        )
        rows.append((x1 - x)[..., None] * left + (x - x0)[..., None] * right)
    return (y1 - y)[..., None] * rows[0] + (y - y0)[..., None] * rows[1]


def _grad(op: Operation, g: TensorLike) -> list[Any]:
    """TensorFlow's: the gradient, transformed by the inverse."""
    images, rows = op._inputs[:2]
    inverse = matrices_to_flat_transforms(matrix_inverse(flat_transforms_to_matrices(rows)))
    size = shape_of(images)[1:3]
    way = op._attrs["interpolation"]
    return [apply(TRANSFORM, g, inverse, size, interpolation=way), None, None]


TRANSFORM = define(
    "ImageProjectiveTransformV2",
    "images: dtype, transforms: float32, output_shape: int32 -> transformed_images: dtype; "
    "dtype: type(real), interpolation: str",
    shape=_shape,
    kernel=_kernel,
    grad=_grad,
    known_inputs=(2,),
    host_only=True,
)

_TYPES = (
    dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64,
)  # fmt: skip


def _batch(images: TensorLike, name: str | None = None) -> tuple[Any, int]:
    """Images with a batch and a channel axis, and the rank that they came with."""
    tensor = convert_to_tensor(images, name=name)
    if tensor.dtype.base_dtype not in _TYPES:
        raise TypeError(f"Invalid dtype {tensor.dtype}.")
    rank = tensor.shape.ndims
    if rank is None:
        raise TypeError("image_or_images rank must be statically known")
    if rank == 2:
        return tensor[None, :, :, None], rank
    if rank == 3:
        return tensor[None, :, :, :], rank
    if rank == 4:
        return tensor, rank
    raise TypeError("Images should have rank between 2 and 4.")


def _like_given(images: Tensor, rank: int) -> Tensor:
    if rank == 2:
        return images[0, :, :, 0]
    return images[0, :, :, :] if rank == 3 else images


def transform(
    images: TensorLike,
    transforms: TensorLike,
    interpolation: str = "NEAREST",
    output_shape: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Images (HW, HWC or NHWC) under a transform, or one for each of them.

    ``interpolation``: "NEAREST" or "BILINEAR"; ``output_shape``: [height, width], by default the
    input's.
    """
    with name_scope(name, "transform"):
        batch, rank = _batch(images, "images")
        rows = convert_to_tensor(transforms, dtypes.float32, "transforms")
        if output_shape is None:
            output_shape = shape_of(batch)[1:3]
            known = static_value(output_shape)
            output_shape = output_shape if known is None else known
        size = convert_to_tensor(output_shape, dtypes.int32, "output_shape")
        if not size.shape.is_compatible_with([2]):
            raise ValueError(
                "output_shape must be a 1-D Tensor of 2 elements: new_height, new_width"
            )
        if rows.shape.ndims is None:
            raise TypeError("transform_or_transforms rank must be statically known")
        if rows.shape.ndims not in (1, 2):
            raise TypeError("Transforms should have rank 1 or 2.")
        rows = rows[None] if rows.shape.ndims == 1 else rows
        way = interpolation.upper()
        return _like_given(apply(TRANSFORM, batch, rows, size, interpolation=way), rank)


def rotate(
    images: TensorLike, angles: TensorLike, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images turned counterclockwise about their centre by angles (radians, one or one each).

    ``images`` is [batch, height, width, channels], [height, width, channels] or [height, width].
    ``interpolation`` is "NEAREST" or "BILINEAR"; points from outside of the image are 0, and the
    size stays.
    """
    with name_scope(name, "rotate"):
        batch, rank = _batch(images)
        height = cast(shape_of(batch)[1], dtypes.float32)[None]
        width = cast(shape_of(batch)[2], dtypes.float32)[None]
        rows = angles_to_projective_transforms(angles, height, width)
        return _like_given(transform(batch, rows, interpolation), rank)


def translate(
    images: TensorLike,
    translations: TensorLike,
    interpolation: str = "NEAREST",
    name: str | None = None,
) -> Tensor:
    """Images moved by [dx, dy], one or one each.

    ``images`` is as in ``rotate``, ``translations`` float [2] or [batch, 2] in pixels to the right
    and down. ``interpolation`` is "NEAREST" or "BILINEAR"; what comes in is 0.
    """
    with name_scope(name, "translate"):
        rows = translations_to_projective_transforms(translations)
        return transform(images, rows, interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """Transforms that turn images of a size about their centre.

    ``angles`` are radians, one or [n], counterclockwise. The result is [n, 8], for
    ``tf.contrib.image.transform``.
    """
    with name_scope(name, "angles_to_projective_transforms"):
        given = convert_to_tensor(angles, dtypes.float32, "angles")
        if given.shape.ndims not in (0, 1):
            raise TypeError("Angles should have rank 0 or 1.")
        given = given[None] if given.shape.ndims == 0 else given
        c, s = cos(given), sin(given)
        width, height = image_width - 1, image_height - 1
        x = (width - (c * width - s * height)) / 2.0
        y = (height - (s * width + c * height)) / 2.0
        none = zeros((shape_of(given)[0], 2), dtypes.float32)
        columns = [v[:, None] for v in (c, -s, x, s, c, y)]
        return concat([*columns, none], axis=1)


def translations_to_projective_transforms(
    translations: TensorLike, name: str | None = None
) -> Tensor:
    """Transforms that move images by [dx, dy]."""
    with name_scope(name, "translations_to_projective_transforms"):
        given = convert_to_tensor(translations, dtypes.float32, "translations")
        if given.shape.ndims is None:
            raise TypeError("translation_or_translations rank must be statically known")
        if given.shape.ndims not in (1, 2):
            raise TypeError("Translations should have rank 1 or 2.")
        given = given[None] if given.shape.ndims == 1 else given
        number = shape_of(given)[0]
        one, none = ones((number, 1), dtypes.float32), zeros((number, 1), dtypes.float32)
        columns = [one, none, -given[:, 0, None], none, one, -given[:, 1, None]]
        return concat([*columns, zeros((number, 2), dtypes.float32)], axis=1)


def compose_transforms(*transforms: object) -> Tensor:
    """One transform that does all of them, the last one first."""
    assert transforms, "transforms cannot be empty"
    with name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for other in transforms[1:]:
            composed = matmul(composed, flat_transforms_to_matrices(other))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: object) -> Tensor:
    """3 x 3 matrices of rows of 8."""
    with name_scope("flat_transforms_to_matrices"):
        rows = convert_to_tensor(transforms, name="transforms")
        if rows.shape.ndims not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {rows}")
        rows = reshape(rows, constant([-1, 8]))
        whole = concat([rows, ones([shape_of(rows)[0], 1])], axis=1)
        return reshape(whole, constant([-1, 3, 3]))


def matrices_to_flat_transforms(transform_matrices: TensorLike) -> Tensor:
    """Rows of 8 of 3 x 3 matrices, which are divided by their last element."""
    with name_scope("matrices_to_flat_transforms"):
        matrices = convert_to_tensor(transform_matrices, name="transform_matrices")
        if matrices.shape.ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        rows = reshape(matrices, constant([-1, 9]))
        rows /= rows[:, 8:9]
        return rows[:, :8]
