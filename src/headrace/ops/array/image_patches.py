"""Patches of images: ``tf.image.extract_image_patches`` and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, one_of, shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["extract_image_patches", "extract_image_patches_v2", "window_count"]


def window_count(extent: int, k: int, stride: int, rate: int, padding: str) -> tuple[int, int]:
    """(number of windows, padding in front) along one dimension."""
    reach = k + (k - 1) * (rate - 1)
    if padding == "VALID":
        return max(0, -(-(extent - reach + 1) // stride)), 0
    count = -(-extent // stride)
    return count, max((count - 1) * stride + reach - extent, 0) // 2


def _patches_shape(c: Inference) -> list[Shape]:
    s = c.require_rank(0, 4)
    assert s is not None
    k, st, r = c.attr("ksizes"), c.attr("strides"), c.attr("rates")
    for what, values in (("ksizes", k), ("stride", st), ("rates", r)):
        if len(values) != 4:
            raise ValueError(
                f"ExtractImagePatches requires the {what} attribute to contain 4 values, but got: "
                f"{len(values)}"
            )
    out = [
        None if d is None else window_count(d, k[i], st[i], r[i], c.attr("padding"))[0]
        for i, d in ((1, s[1]), (2, s[2]))
    ]
    return [(s[0], out[0], out[1], None if s[3] is None else s[3] * k[1] * k[2])]


def _check_patches(attrs: dict[str, Any]) -> None:
    for what in ("ksizes", "strides", "rates"):
        given = attrs[what]
        if given[0] != 1 or given[3] != 1:
            raise errors.UnimplementedError(None, None, f"Only support {what} across space.")


def _patches_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    ksizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Array:
    """Row and column numbers of every window element.

    Numbers outside the image read a border of zeros.
    """
    b, h, w, c = x.shape
    (kh, kw), (sh, sw), (rh, rw) = ksizes[1:3], strides[1:3], rates[1:3]
    (oh, top), (ow, left) = (
        window_count(h, kh, sh, rh, padding),
        window_count(w, kw, sw, rw, padding),
    )
    rows = np.arange(oh)[:, None] * sh + np.arange(kh) * rh  # (oh, kh), in the padded image
    cols = np.arange(ow)[:, None] * sw + np.arange(kw) * rw
    bottom = max(0, int(rows.max(initial=0)) + 1 - top - h)
    right = max(0, int(cols.max(initial=0)) + 1 - left - w)
    if top or left or bottom or right:
        x = xp.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])
    picked = x[:, rows[:, None, :, None], cols[None, :, None, :], :]  # (b, oh, ow, kh, kw, c)
    return picked.reshape(b, oh, ow, kh * kw * c)


def _patches_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Number the pixels from 1, take patches of the numbers, and sum the gradient by pixel (0 is
    the padding).
    """
    x = op.inputs[0]
    attrs = {k: op._attrs[k] for k in ("ksizes", "strides", "rates", "padding")}
    dims = shape(x)
    b, h, w, c = (dims[i] for i in range(4))
    pixels = h * w
    numbers = apply_op("Range", const(1), pixels + 1, const(1))
    image = apply_op("Reshape", numbers, apply_op("Pack", [const(1), h, w, const(1)]))
    ids = apply_op("Reshape", apply(EXTRACT_IMAGE_PATCHES, image, **attrs), const([-1]))
    flat = apply_op("Reshape", grad, apply_op("Pack", [b, const(-1), c]))  # (b, windows * k, c)
    first = apply_op("Transpose", flat, const([1, 0, 2]))
    summed = apply_op("UnsortedSegmentSum", first, ids, pixels + 1)
    back = apply_op("Transpose", summed[1:], const([1, 0, 2]))
    return [apply_op("Reshape", back, dims)]


EXTRACT_IMAGE_PATCHES = define(
    "ExtractImagePatches",
    "images: T -> patches: T; ksizes: list(int), strides: list(int), rates: list(int), T: "
    "type(real), padding: str",
    shape=_patches_shape,
    kernel=_patches_kernel,
    grad=_patches_grad,
    check_attrs=_check_patches,
)


def extract_image_patches(
    images: TensorLike,
    ksizes: TensorLike | None = None,
    strides: TensorLike | None = None,
    rates: TensorLike | None = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: object = None,
) -> Tensor:
    """Windows of images [n, height, width, channels], each as one vector of all its values.

    ``ksizes``, ``strides`` and ``rates`` are [1, rows, columns, 1]. The result is [n, rows of
    windows, columns of windows, window size * channels].
    """
    ksizes = one_of("sizes", sizes, "ksizes", ksizes)
    return apply(
        EXTRACT_IMAGE_PATCHES,
        images,
        ksizes=ksizes,
        strides=strides,
        rates=rates,
        padding=padding,
        name=name,
    )


def extract_image_patches_v2(
    images: TensorLike,
    sizes: TensorLike,
    strides: TensorLike,
    rates: TensorLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Patches of pictures, each flattened into the depth dimension.

    ``sizes``, ``strides`` and ``rates`` are [1, rows, columns, 1].
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)
