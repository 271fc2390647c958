"""Arrays to image files: EncodeJpeg, EncodePng; and the wrappers for reading and writing image
files.

>>> data = tf.image.encode_png(image)
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import counted_with
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, invalid
from headrace.ops.image.decode import (
    DECODE_AND_CROP_JPEG,
    DECODE_BMP,
    DECODE_GIF,
    DECODE_JPEG,
    DECODE_PNG,
    EXTRACT_JPEG_SHAPE,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
]


def _string(data: bytes) -> Array:
    out = np.empty((), object)
    out[()] = data
    return out


def _picture(image: Array) -> Any:
    """A Pillow image of height x width x channels uint8 values."""
    from PIL import Image

    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[image.shape[2]]
    return Image.fromarray(np.ascontiguousarray(image[:, :, 0] if mode == "L" else image), mode)


def jpeg_bytes(
    image: Array,
    quality: int,
    subsampling: int,
    progressive: bool = False,
    optimize: bool = False,
    **more: object,
) -> bytes:
    """``subsampling``: 2 halves the resolution of colours, 0 keeps it."""
    if image.ndim != 3:
        raise invalid(f"image must be 3-dimensional, got shape {shapes.show(image.shape)}")
    if not image.size:
        raise errors.InternalError(None, None, "JPEG encoding failed: the image is empty")
    if image.shape[2] not in (1, 3):
        raise invalid("image must have 1 or 3 channels, got shape " + shapes.show(image.shape))
    buffer = io.BytesIO()
    _picture(image).save(
        buffer,
        "JPEG",
        quality=quality,
        subsampling=subsampling if image.shape[2] == 3 else 0,
        progressive=progressive,
        optimize=optimize,
        **more,
    )
    return buffer.getvalue()


def _jpeg_kernel(
    xp: ArrayNamespace,
    image: Array,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str,
) -> Array:
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    if format not in ("", "grayscale", "rgb"):
        raise invalid(f"format must be '', grayscale or rgb, got {format}")
    want = {"grayscale": 1, "rgb": 3}.get(format)
    if want is not None and image.ndim == 3 and image.shape[2] != want:
        raise invalid(
            f"format '{format}' expects {want} channel{'s' if want > 1 else ''}, got "
            f"shape {shapes.show(image.shape)}"
        )
    scale = 1.0 if density_unit == "in" else 2.54
    more: dict[str, Any] = {"dpi": (round(x_density * scale), round(y_density * scale))}
    if xmp_metadata:
        more["xmp"] = xmp_metadata.encode()
    sampling = 2 if chroma_downsampling else 0
    return _string(jpeg_bytes(image, quality, sampling, progressive, optimize_size, **more))


def _variable_quality_kernel(xp: ArrayNamespace, image: Array, quality: Array) -> Array:
    if not 0 <= int(quality) <= 100:
        raise invalid(f"quality must be in [0,100], got {int(quality)}")
    return _string(jpeg_bytes(image, int(quality), 2, dpi=(300, 300)))


def _png_kernel(xp: ArrayNamespace, image: Array, *, compression: int) -> Array:
    if image.ndim != 3 or not 1 <= image.shape[2] <= 4:
        raise invalid(
            f"image must have 1, 2, 3, or 4 channels, got shape {shapes.show(image.shape)}"
        )
    if not image.size:
        raise errors.InternalError(None, None, "PNG encoding failed: the image is empty")
    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")
    from headrace.ops.image.png import write_png

    return _string(write_png(image, compression))


def _encode_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 3)
    return [()]


ENCODE_JPEG = define(
    "EncodeJpeg",
    "image: uint8 -> contents: string; format: str='', quality: int=95, progressive: bool=False, "
    "optimize_size: bool=False, chroma_downsampling: bool=True, density_unit: str='in', "
    "x_density: int=300, "
    "y_density: int=300, xmp_metadata: str=''",
    shape=_encode_shape,
    kernel=_jpeg_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
ENCODE_JPEG_VARIABLE_QUALITY = define(
    "EncodeJpegVariableQuality",
    "images: uint8, quality: int32 -> contents: string",
    shape=_encode_shape,
    kernel=_variable_quality_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
ENCODE_PNG = define(
    "EncodePng",
    "image: T -> contents: string; compression: int=-1, T: type=uint8",
    shape=_encode_shape,
    kernel=_png_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """uint8 values [height, width, 1 or 3] as the bytes of a JPEG file.

    ``quality`` is 0 to 100 (95). ``progressive``, ``optimize_size`` and ``chroma_downsampling``
    choose the coding; ``x_density``, ``y_density`` and ``xmp_metadata`` are written into the
    header.
    """
    return apply(
        ENCODE_JPEG,
        image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
        name=name,
    )


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """height x width x channels values (uint8 or uint16) as a PNG file."""
    tensor = image
    if not isinstance(image, Tensor):
        tensor = convert_to_tensor(image, None if hasattr(image, "dtype") else dtypes.uint8)
    return apply(ENCODE_PNG, tensor, compression=compression, name=name)


# reading ------------------------------------------------------------------------------------------


def decode_jpeg(
    contents: Tensor,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A JPEG file (a PNG or still GIF too) as uint8 values [height, width, channels].

    ``channels`` 0 takes those of the file, 1 gives grey, 3 gives RGB. ``ratio`` 2, 4 or 8 decodes a
    smaller picture. Pixels are TensorFlow's bit for bit.
    """
    return apply(
        DECODE_JPEG,
        contents,
        channels=channels or 0,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The window [y, x, height, width] of a JPEG file.

    Only what the window needs is decoded. ``channels`` is 0 (as in the file), 1 or 3; ``ratio`` is
    1, 2, 4 or 8 and makes the picture smaller before the crop. The result is uint8 [height, width,
    channels]; the other arguments are ``tf.image.decode_jpeg``'s.
    """
    return apply(
        DECODE_AND_CROP_JPEG,
        contents,
        crop_window,
        channels=channels or 0,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


def decode_png(
    contents: TensorLike,
    channels: int = 0,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
) -> Tensor:
    """The pixels of a PNG file, [height, width, channels], uint8 or uint16.

    ``channels`` is 1, 3 or 4; 0 means those of the file.
    """
    return apply(DECODE_PNG, contents, channels=channels or 0, dtype=dtype, name=name)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """All frames of a GIF file: frames x height x width x 3."""
    return apply(DECODE_GIF, contents, name=name)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP file, [height, width, channels], uint8.

    ``channels`` is 3 or 4; 0 means those of the file.
    """
    return apply(DECODE_BMP, contents, channels=channels or 0, name=name)


def extract_jpeg_shape(
    contents: TensorLike, output_type: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """[height, width, channels] of a JPEG file, from its head alone."""
    return apply(EXTRACT_JPEG_SHAPE, contents, output_type=output_type, name=name)


def _starts_with(contents: TensorLike, text: bytes, name: str | None = None) -> Tensor:
    start = apply_op("Substr", contents, const(0), const(len(text)))
    return apply_op("Equal", start, const(text, dtypes.string), name=name)


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether the file starts as JPEG files do."""
    with name_scope(name, "is_jpeg"):
        return _starts_with(contents, b"\xff\xd8\xff")


@counted_with(49)  # TF asks for each format in a branch of its own
def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DType = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """A file of any of the formats.

    A GIF gives frames x height x width x 3 unless ``expand_animations`` is False.
    """
    from headrace.ops.control.control_flow import cond
    from headrace.ops.image.color_convert import convert_image_dtype

    want = dtypes.as_dtype(dtype)
    if channels not in (None, 0, 1, 3, 4):
        raise ValueError("channels must be in (None, 0, 1, 3, 4)")
    n = channels or 0
    first = dtypes.uint16 if want is dtypes.uint16 else dtypes.uint8
    with name_scope(name, "decode_image"):
        contents = convert_to_tensor(contents, dtypes.string)

        def as_first(image: Tensor) -> Tensor:
            return image if first is dtypes.uint8 else convert_image_dtype(image, first)

        def still() -> Tensor:
            # uint16 is asked for in vain where the file is a JPEG: read eight bits, then widen
            if first is dtypes.uint8:
                return apply(DECODE_PNG, contents, channels=n)
            return cond(
                is_jpeg(contents),
                lambda: as_first(apply(DECODE_PNG, contents, channels=n)),
                lambda: apply(DECODE_PNG, contents, channels=n, dtype=first),
            )

        def gif() -> Tensor:
            if n not in (0, 3):
                return still()  # which says that a GIF has no such channels
            frames = as_first(apply(DECODE_GIF, contents))
            return frames if expand_animations else frames[0]

        def bmp() -> Tensor:
            return as_first(apply(DECODE_BMP, contents, channels=n))

        image = cond(
            _starts_with(contents, b"BM"),
            bmp,
            lambda: cond(_starts_with(contents, b"GIF"), gif, still),
        )
        return image if want is first else convert_image_dtype(image, want)
