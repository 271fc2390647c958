"""CropAndResize and its gradients: boxes cut out of images, each resized to one size.

Boxes are [y1, x1, y2, x2] in units of the image's height - 1 and width - 1; what lies outside is a
given value.

    >>> crops = tf.image.crop_and_resize(images, boxes, box_ind=[0, 0, 1], crop_size=[7, 7])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid, one_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["crop_and_resize", "crop_and_resize_v1"]


class _Axis(NamedTuple):
    """Where the sample points of every box lie along one axis: boxes x points."""

    low: Any  # the pixel at or before
    high: Any  # the pixel at or after
    weight: Any  # how far towards ``high``
    inside: Any  # whether the point is in the image
    share: Any  # points: how much the box's second edge moves each point, in pixels
    nearest: Any


def _axis(first: Array, second: Array, size: int, points: int) -> _Axis:
    f4 = np.float32
    last = f4(size - 1)
    if points > 1:
        share = np.arange(points, dtype=f4) / f4(points - 1)
        step = (second - first) * last / f4(points - 1)
        at = (first * last)[:, None] + np.arange(points, dtype=f4) * step[:, None]
    else:
        share = np.full(1, 0.5, f4)
        at = (f4(0.5) * (first + second) * last)[:, None]
    inside = (at >= 0) & (at <= last)
    safe = np.where(inside, at, f4(0))
    low = np.floor(safe)
    # halves away from zero, as C's roundf
    nearest = np.floor(safe + f4(0.5)).astype(np.int64)
    high = np.ceil(safe).astype(np.int64)
    return _Axis(
        low.astype(np.int64), high, safe - low, inside, share, np.minimum(nearest, size - 1)
    )


def _axes(
    image_shape: Sequence[int], boxes: Array, box_ind: Array, crop: tuple[int, int]
) -> tuple[_Axis, _Axis]:
    batch, height, width, _ = image_shape
    if len(box_ind) != len(boxes):
        raise invalid(
            f"box_index has incompatible shape: {len(box_ind)} of them for {len(boxes)} boxes"
        )
    wrong = (box_ind < 0) | (box_ind >= batch)
    if wrong.any():
        bad = int(box_ind[wrong.argmax()])
        reason = f"box_index has values outside [0, batch_size): {bad} is not in [0, {batch})"
        raise errors.OutOfRangeError(None, None, reason)
    y1, x1, y2, x2 = boxes.T
    return _axis(y1, y2, height, crop[0]), _axis(x1, x2, width, crop[1])


def _kernel(
    xp: ArrayNamespace,
    image: Array,
    boxes: Array,
    box_ind: Array,
    crop_size: Array,
    *,
    method: str,
    extrapolation_value: float,
) -> Any:
    if crop_size.shape != (2,):
        raise invalid(f"crop_size must have two elements{shapes.show(crop_size.shape)}")
    crop = (int(crop_size[0]), int(crop_size[1]))
    if min(crop) <= 0:
        raise invalid("crop dimensions must be positive")
    y, x = _axes(image.shape, boxes, box_ind, crop)
    which = box_ind[:, None, None]
    if method == "nearest":
        out = image[which, y.nearest[:, :, None], x.nearest[:, None, :]].astype(np.float32)
    else:
        out = _corners_mixed(image, which, y, x)
    inside = y.inside[:, :, None] & x.inside[:, None, :]
    if not inside.all():
        out[~inside] = extrapolation_value
    return out


def _corners(image: Array, which: Array, y: _Axis, x: _Axis) -> list[Any]:
    """Top left, top right, bottom left, bottom right: boxes x height x width x channels,
    float32.
    """
    return [
        image[which, rows[:, :, None], columns[:, None, :]].astype(np.float32)
        for rows in (y.low, y.high)
        for columns in (x.low, x.high)
    ]


def _corners_mixed(image: Array, which: Array, y: _Axis, x: _Axis) -> Any:
    top_left, top_right, low_left, low_right = _corners(image, which, y, x)
    wx, wy = x.weight[:, None, :, None], y.weight[:, :, None, None]
    top = top_left + (top_right - top_left) * wx
    bottom = low_left + (low_right - low_left) * wx
    return top + (bottom - top) * wy


def _image_grad_kernel(
    xp: ArrayNamespace,
    grads: Array,
    boxes: Array,
    box_ind: Array,
    image_size: Array,
    *,
    method: str,
    T: DType,
) -> Array:
    if image_size.shape != (4,):
        raise invalid(f"image_size must have four elements, got {shapes.show(image_size.shape)}")
    shape = tuple(int(d) for d in image_size)
    y, x = _axes(shape, boxes, box_ind, grads.shape[1:3])
    out = np.zeros(shape, np.float32)
    inside = (y.inside[:, :, None] & x.inside[:, None, :])[..., None]
    g = np.where(inside, grads, np.float32(0))
    which = box_ind[:, None, None]
    if method == "nearest":
        np.add.at(out, (which, y.nearest[:, :, None], x.nearest[:, None, :]), g)
        return out.astype(T.np_dtype, copy=False)
    wx, wy = x.weight[:, None, :, None], y.weight[:, :, None, None]
    for rows, by_row in ((y.low, 1 - wy), (y.high, wy)):
        for columns, by_column in ((x.low, 1 - wx), (x.high, wx)):
            np.add.at(out, (which, rows[:, :, None], columns[:, None, :]), g * by_row * by_column)
    return out.astype(T.np_dtype, copy=False)


def _boxes_grad_kernel(
    xp: ArrayNamespace, grads: Array, image: Array, boxes: Array, box_ind: Array, *, method: str
) -> Array:
    """An edge moves the points along its axis, each by its share.

    A point moves the value by the slope there.
    """
    y, x = _axes(image.shape, boxes, box_ind, grads.shape[1:3])
    top_left, top_right, low_left, low_right = _corners(image, box_ind[:, None, None], y, x)
    wx, wy = x.weight[:, None, :, None], y.weight[:, :, None, None]
    down = (1 - wx) * (low_left - top_left) + wx * (low_right - top_right)
    right = (1 - wy) * (top_right - top_left) + wy * (low_right - low_left)
    inside = (y.inside[:, :, None] & x.inside[:, None, :])[..., None]
    g = np.where(inside, grads, np.float32(0))
    by_row = (g * down).sum(axis=(2, 3), dtype=np.float32) * np.float32(image.shape[1] - 1)
    by_column = (g * right).sum(axis=(1, 3), dtype=np.float32) * np.float32(image.shape[2] - 1)
    parts = [
        by_row @ (1 - y.share),
        by_column @ (1 - x.share),
        by_row @ y.share,
        by_column @ x.share,
    ]
    return np.stack(parts, axis=1).astype(np.float32, copy=False)


# shapes, gradients, definitions -------------------------------------------------------------------


def _count(c: Inference, boxes: int, indices: int) -> int | None:
    shape = c.require_rank(boxes, 2)
    found = shapes.merge(c.shape(indices), (shape[0],)) if shape is not None else c.shape(indices)
    shapes.merge(shape, (None, 4))
    return found[0] if found else None


def _crops_shape(c: Inference) -> list[Shape]:
    image = c.require_rank(0, 4)
    assert image is not None
    size = c.shape_value(3)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    size = size or (None, None)
    return [(_count(c, 1, 2), size[0], size[1], image[3])]


def _image_grad_shape(c: Inference) -> list[Shape]:
    size = c.shape_value(3)
    if size is not None and len(size) != 4:
        raise ValueError(f"Shape must be rank 4 but is rank {len(size)}")
    return [size or (None,) * 4]


def _grad(op: Operation, g: Tensor) -> list[Any]:
    image, boxes, box_ind = op._inputs[:3]
    method = op._attrs["method"]
    d_image = None
    if image._dtype._base.is_floating:
        size = apply_op("Shape", image)
        d_image = apply_op(
            "CropAndResizeGradImage", g, boxes, box_ind, size, T=image._dtype._base, method=method
        )
    # TensorFlow has this derivative for bilinear sampling only, and takes it for both
    d_boxes = apply_op("CropAndResizeGradBoxes", g, image, boxes, box_ind)
    return [d_image, d_boxes, None, None]


CROP_AND_RESIZE = define(
    "CropAndResize",
    "image: T, boxes: float32, box_ind: int32, crop_size: int32 -> crops: float32; T: type(real), "
    "method: str='bilinear', extrapolation_value: float=0.0",
    shape=_crops_shape,
    kernel=_kernel,
    grad=_grad,
    known_inputs=(3,),
    host_only=True,
)
define(
    "CropAndResizeGradImage",
    "grads: float32, boxes: float32, box_ind: int32, image_size: int32 -> output: T; T: "
    "type(float), "
    "method: str='bilinear'",
    shape=_image_grad_shape,
    kernel=_image_grad_kernel,
    grad=NO_GRADIENT_YET,
    known_inputs=(3,),
    host_only=True,
)
define(
    "CropAndResizeGradBoxes",
    "grads: float32, image: T, boxes: float32, box_ind: int32 -> output: float32; T: type(real), "
    "method: str='bilinear'",
    shape=lambda c: [c.shape(2)],
    kernel=_boxes_grad_kernel,
    grad=NO_GRADIENT_YET,
    host_only=True,
)


def crop_and_resize_v1(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike | None = None,
    crop_size: TensorLike | None = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: object = None,
) -> Tensor:
    """A piece of an image for each box, all resized to ``crop_size``; float32.

    ``image`` is [batch, height, width, channels]; a box is [y1, x1, y2, x2] in parts of the image's
    size, and ``box_ind`` (newer: ``box_indices``) says from which image it is. ``method`` is
    "bilinear" or "nearest"; points outside of the image are ``extrapolation_value``. The result is
    [boxes, *crop_size, channels].
    """
    which = one_of("box_indices", box_indices, "box_ind", box_ind)
    return apply(
        CROP_AND_RESIZE,
        image,
        boxes,
        which,
        crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
        name=name,
    )


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_indices: TensorLike,
    crop_size: TensorLike,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """A piece of an image for each box, all resized to ``crop_size`` = [height, width]; float32.

    ``image`` is [batch, height, width, channels]; ``boxes`` [n, 4] as [y1, x1, y2, x2] with 0 to 1
    for the whole image; ``box_ind`` [n] says which image of the batch. ``method`` is "bilinear" or
    "nearest"; what lies outside is ``extrapolation_value``. A box with y1 > y2 or x1 > x2 is
    flipped. ``box_indices`` is TF 2's name of ``box_ind``.
    """
    return crop_and_resize_v1(
        image, boxes, box_indices, crop_size, method, extrapolation_value, name
    )
