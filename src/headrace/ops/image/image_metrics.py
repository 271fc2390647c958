"""Comparing and measuring images: PSNR, SSIM, total variation, gradients, Sobel edges.

>>> quality = tf.image.ssim(images, restored, max_val=1.0)  # one number for each image
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor, require_tensor
from headrace.core.scopes import name_scope
from headrace.core.seeds import counted_with
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, reshape, shape
from headrace.ops.array.basic import identity
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import zeros
from headrace.ops.array.joining import concat, stack
from headrace.ops.array.padding import pad
from headrace.ops.image.color_convert import convert_image_dtype
from headrace.ops.math.reductions import reduce_mean, reduce_prod, reduce_sum
from headrace.ops.math.unary import abs as abs_op
from headrace.ops.math.unary import log

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["image_gradients", "psnr", "sobel_edges", "ssim", "ssim_multiscale", "total_variation"]


def _require_same_dtype(a: Tensor, b: Tensor) -> None:
    if a.dtype.base_dtype is not b.dtype.base_dtype:
        raise TypeError(
            "Tensors in list passed to 'input' of 'ShapeN' Op have types "
            f"[{a.dtype.name}, {b.dtype.name}] that don't all match. Cast one of the images."
        )


def _same_images(a: TensorLike, b: TensorLike, max_val: TensorLike) -> tuple[Tensor, Tensor, Any]:
    """Both as floats in [0, 1] scale, and the largest value in that scale."""
    a = convert_to_tensor(a, name="a")
    b = convert_to_tensor(b, name="b")
    if (
        a._shape is not None
        and b._shape is not None
        and not a.shape[-3:].is_compatible_with(b.shape[-3:])
    ):
        raise ValueError(f"Shapes {a.shape} and {b.shape} are incompatible")
    for image in (a, b):
        rank = image._rank()
        if rank is not None and rank < 3:
            raise ValueError(f"Shape {image.shape} must have rank at least 3")
    top = convert_image_dtype(cast(max_val, a.dtype.base_dtype), dtypes.float32)
    return convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32), top


@counted_with(18)  # TF compares the shapes
def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of each pair of images, in decibels.

    ``a`` and ``b`` are [..., height, width, channels] of one type, ``max_val`` is the range of
    values (255 for uint8, 1.0 for floats). The result is [...]; equal images give infinity.
    """
    with name_scope(name, "PSNR", [a, b]):
        a, b, top = _same_images(a, b, max_val)
        error = reduce_mean(apply_op("SquaredDifference", a, b), [-3, -2, -1])
        peak = 20 * log(top) / np.float32(np.log(10.0))
        out = apply_op("Sub", peak, np.float32(10 / np.log(10)) * log(error), name="psnr")
        return identity(out)


# structural similarity ----------------------------------------------------------------------------


def _gauss(size: int, sigma: float) -> Tensor:
    """A window of weights that sum to 1: size x size x 1 x 1."""
    x = np.arange(size, dtype=np.float32) - np.float32(size - 1) / 2
    bell = -np.square(x) / np.float32(2 * sigma * sigma)
    window = np.exp(bell[:, None] + bell[None, :])
    return convert_to_tensor((window / window.sum()).reshape(size, size, 1, 1).astype(np.float32))


def _filtered(x: Tensor, window: Tensor) -> Tensor:
    """Each channel of each image by itself."""
    channels = x._shape[-1] if x._shape is not None else None
    if channels is None:
        whole: Any = shape(x)
        channels = whole[-1]
    kernel = apply_op("Tile", window, stack([1, 1, channels, 1]))
    size = shape(x)
    flat = reshape(x, concat([[-1], size[-3:]], 0))
    out = apply_op("DepthwiseConv2dNative", flat, kernel, strides=[1, 1, 1, 1], padding="VALID")
    inner = shape(out)
    return reshape(out, concat([size[:-3], inner[1:]], 0))


def _ssim_parts(
    a: Tensor, b: Tensor, top: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:
    """Similarity, and its part that is contrast and structure: for each image and channel."""
    window = _gauss(size, sigma)
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    mean_a, mean_b = _filtered(a, window), _filtered(b, window)
    both, squares = mean_a * mean_b * 2.0, mean_a * mean_a + mean_b * mean_b
    luminance = (both + c1) / (squares + c1)
    cross = _filtered(a * b, window) * 2.0
    power = _filtered(a * a + b * b, window)
    contrast = (cross - both + c2) / (power - squares + c2)
    axes = [-3, -2]
    return reduce_mean(luminance * contrast, axes), reduce_mean(contrast, axes)


def ssim(
    img1: Tensor,
    img2: Tensor,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of each pair of images, -1 to 1.

    Images are [..., height, width, channels] with values up to ``max_val``. ``filter_size`` and
    ``filter_sigma`` are the Gaussian window's, ``k1`` and ``k2`` the constants of the paper.
    """
    for image in (img1, img2):
        require_tensor(image, "tf.image.ssim")
    with name_scope(None, "SSIM", [img1, img2]):
        _require_same_dtype(img1, img2)
        a, b, top = _same_images(img1, img2, max_val)
        found, _ = _ssim_parts(a, b, top, filter_size, filter_sigma, k1, k2)
        return reduce_mean(found, [-1])


_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_v2(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """TF 2's signature.

    The map of similarities before their mean (``return_index_map``) is not there yet.
    """
    if return_index_map:
        raise NotImplementedError("tf.image.ssim: return_index_map=True is not there yet")
    first, second = (convert_to_tensor(i) for i in (img1, img2))
    return ssim(first, second, max_val, filter_size, filter_sigma, k1, k2)


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: float,
    power_factors: Any = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of each pair of images at several scales, each half the one before.

    ``power_factors`` has the weight of each scale, the finest first; ``max_val`` is the range of
    values. ``filter_size``, ``filter_sigma``, ``k1`` and ``k2`` are those of ``tf.image.ssim``.
    """
    with name_scope(None, "MS-SSIM", [img1, img2]):
        img1 = convert_to_tensor(img1, name="img1")
        img2 = convert_to_tensor(img2, name="img2")
        _require_same_dtype(img1, img2)
        a, b, top = _same_images(img1, img2, max_val)
        parts: list[Any] = []
        found: Any = None
        for level in range(len(power_factors)):
            if level:
                a, b = _halved(a), _halved(b)
            found, contrast = _ssim_parts(a, b, top, filter_size, filter_sigma, k1, k2)
            parts.append(apply_op("Relu", contrast))
        parts[-1] = apply_op("Relu", found)
        powers = convert_to_tensor(np.array(power_factors, np.float32))
        whole = apply_op("Pow", stack(parts, axis=-1), powers)
        return reduce_mean(reduce_prod(whole, [-1]), [-1])


def _halved(x: Tensor) -> Tensor:
    """Means of 2 x 2 pixels; an odd last row or column is doubled first."""
    dims = shape(x)
    flat = reshape(x, concat([[-1], dims[-3:]], 0))
    odd = dims[-3:-1] % 2
    edges = stack([[0, 0], stack([0, odd[0]]), stack([0, odd[1]]), [0, 0]])
    padded = pad(flat, edges, mode="SYMMETRIC")
    small = apply_op("AvgPool", padded, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    inner = shape(small)
    out = reshape(small, concat([dims[:-3], inner[1:]], 0))
    if x._shape is not None:
        half = [None if d is None else -(-d // 2) for d in x._shape[-3:-1]]
        out.set_shape([*x._shape[:-3], *half, x._shape[-1]])
    return out


# differences --------------------------------------------------------------------------------------


def total_variation(images: Tensor, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels, of each image."""
    with name_scope(name, "total_variation"):
        require_tensor(images, "tf.image.total_variation")
        dims = images.shape.ndims
        if dims not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = None if dims == 3 else [1, 2, 3]
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        right = images[..., 1:, :] - images[..., :-1, :]
        return reduce_sum(abs_op(down), axis=axes) + reduce_sum(abs_op(right), axis=axes)


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Differences to the next row and to the next column; zero at the end."""
    require_tensor(image, "tf.image.image_gradients")
    image = convert_to_tensor(image)
    if image._rank() != 4:
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}."
        )
    whole = shape(image)
    batch, height, width, depth = (whole[i] for i in range(4))
    rows = image[:, 1:, :, :] - image[:, :-1, :, :]
    columns = image[:, :, 1:, :] - image[:, :, :-1, :]
    dtype = image.dtype.base_dtype
    rows = concat([rows, zeros(stack([batch, 1, width, depth]), dtype)], 1)
    columns = concat([columns, zeros(stack([batch, height, 1, depth]), dtype)], 2)
    return reshape(rows, whole), reshape(columns, whole)


@counted_with(2)
def sobel_edges(image: TensorLike) -> Tensor:
    """Smoothed derivatives in both directions: batch x height x width x channels x 2."""
    require_tensor(image, "tf.image.sobel_edges")
    image = convert_to_tensor(image)
    static = image._shape
    whole = shape(image)
    if image.dtype.base_dtype is dtypes.string:
        raise TypeError("Expected binary or unicode string, got -1")
    down = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    kernels = np.stack([np.array(down), np.array(down).T], axis=-1).reshape(3, 3, 1, 2)
    kernel = apply_op("Tile", const(kernels, image.dtype.base_dtype), stack([1, 1, whole[-1], 1]))
    padded = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    out = apply_op("DepthwiseConv2dNative", padded, kernel, strides=[1, 1, 1, 1], padding="VALID")
    found = reshape(out, concat([whole, [2]], 0))
    if static is not None:
        found.set_shape([*static, 2])
    return found
