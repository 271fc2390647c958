"""Image files to arrays: JPEG, PNG, GIF and BMP, by decoders in C that release the interpreter
while they work.

As in TensorFlow, DecodeJpeg, DecodePng and DecodeGif each read all three formats, by the first
bytes of the file. The size that a file declares is compared with TensorFlow's limits, and with the
bytes that are there, before anything is allocated.

    >>> image = tf.image.decode_jpeg(tf.read_file("photo.jpg"), channels=3)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid
from headrace.ops.image.gif import decode_gif, gif_frames
from headrace.ops.image.jpeg import JpegOptions, decode_jpeg, jpeg_frame
from headrace.ops.image.png import load_png, open_png, png_header, read_png

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__ = ["DECODE_BMP", "DECODE_GIF", "DECODE_JPEG", "DECODE_PNG"]

_JPEG, _PNG, _GIF = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8"
MAX_BMP_PIXELS = (2**31 - 1) // 8


def _pixels(image: object) -> Array:
    """Height x width x channels of a decoded picture."""
    array = np.array(image)
    return array if array.ndim == 3 else array[:, :, None]


# PNG ----------------------------------------------------------------------------------------------


def _png(contents: bytes, channels: int, wide: bool) -> Array:
    header = png_header(contents)
    if header.depth == 16 and (wide or header.color == 0):
        pixels = read_png(contents)
        return _with_channels(pixels if wide else (pixels >> 8).astype(np.uint8), channels)
    image = load_png(open_png(contents), contents)
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    elif "transparency" in image.info and image.mode in ("L", "RGB"):
        image = image.convert("LA" if image.mode == "L" else "RGBA")
    pixels = _with_channels(_pixels(image), channels)
    return pixels.astype(np.uint16) * 257 if wide else pixels


def _with_channels(pixels: Array, channels: int) -> Array:
    """Gray to colour and back, alpha added (opaque) or dropped."""
    have = pixels.shape[2]
    if channels in (0, have):
        return pixels
    color, alpha = pixels[:, :, : have - 1 + have % 2], pixels[:, :, have - 1 + have % 2 :]
    if channels == 1:
        return _gray(color) if have > 2 else np.ascontiguousarray(color)
    if have < 3:
        color = np.repeat(color, 3, axis=2)
    if channels == 3:
        return np.ascontiguousarray(color)
    if not alpha.size:
        alpha = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([color, alpha], axis=2)


def _gray(color: Array) -> Array:
    """libpng's way: integer weights, cut off; a pixel that is gray already stays as it is."""
    red, green, blue = (color[:, :, i].astype(np.int64) for i in range(3))
    mixed = (9797 * red + 19234 * green + 3737 * blue) >> 15
    out = np.where((red == green) & (red == blue), red, mixed)
    return out.astype(color.dtype)[:, :, None]


# BMP ----------------------------------------------------------------------------------------------


def _bmp_kernel(xp: ArrayNamespace, contents: Array, *, channels: int) -> Array:
    """Uncompressed, 8 bits (the palette is not looked at), 24 or 32."""
    data = _scalar(contents)
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3 or 4, got {channels}")
    if len(data) < 32:
        raise invalid(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, "
            "width, height, and bpp, "
            f"got {len(data)} bytes"
        )
    start, width, height, bits = (
        int.from_bytes(data[i : i + 4], "little", signed=True) for i in (10, 18, 22, 28)
    )
    depth = int(bits / 8)
    if channels and channels != depth:
        raise invalid(
            f"channels attribute {channels} does not match bits per pixel from file {depth}"
        )
    _check_bmp(start, width, height, depth)
    rows, row = abs(height), -(-width * depth // 4) * 4
    end = start + (rows - 1) * row + width * depth  # the last row may end without its padding
    if end > len(data):
        raise invalid(
            f"Incomplete bmp content, requires at least {end} bytes, got {len(data)} bytes"
        )
    strides = (row if height < 0 else -row, depth, 1)
    first = start if height < 0 else start + (rows - 1) * row
    pixels = np.ndarray((rows, width, depth), np.uint8, data, first, strides)
    return np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][:depth]] if depth > 1 else pixels)


def _check_bmp(start: int, width: int, height: int, depth: int) -> None:
    if depth not in (1, 3, 4):
        raise invalid(f"Number of channels must be 1, 3 or 4, was {depth}")
    if width <= 0:
        raise invalid("Width must be positive")
    if not height:
        raise invalid("Height must be nonzero")
    if start < 0:
        raise invalid("header size must be nonnegative")
    if width * abs(height) >= MAX_BMP_PIXELS:
        raise invalid("Total possible pixel bytes must be less than 2^30")


# kernels ------------------------------------------------------------------------------------------


def _scalar(contents: Array) -> bytes:
    if contents.ndim:
        raise invalid(f"contents must be scalar, got shape {shapes.show(contents.shape)}")
    data: bytes = contents.item()
    return data


def _decode(contents: bytes, options: JpegOptions, wide: bool = False) -> Any:
    """A still image of any format."""
    channels = options.channels
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3, or 4, got {channels}")
    if contents.startswith(_JPEG):
        if wide:
            raise invalid("JPEG does not support uint16 output")
        if channels == 4:
            raise invalid("channels must be 0, 1, or 3 for JPEG, got 4")
        return decode_jpeg(contents, options)
    if contents.startswith(_PNG):
        return _png(contents, channels, wide)
    if contents.startswith(_GIF):
        if wide:
            raise invalid("GIF does not support uint16 output")
        return _still_gif(contents, channels)
    if not contents:
        raise invalid("Expected image (JPEG, PNG, or GIF), got empty file")
    start = "".join(chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in contents[:16])
    raise invalid(f"Expected image (JPEG, PNG, or GIF), got unknown format starting with '{start}'")


def _still_gif(contents: bytes, channels: int) -> Any:
    if channels not in (0, 3):
        raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
    frames = gif_frames(contents)
    if len(frames) != 1:
        raise invalid(
            f"Got {len(frames)} frames, but animated gifs can only be decoded by "
            "tf.image.decode_gif or "
            "tf.image.decode_image"
        )
    return decode_gif(contents, frames)[0]


def _jpeg_kernel(
    xp: ArrayNamespace,
    contents: Array,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    dct_method: str,
    acceptable_fraction: float,
) -> Any:
    options = JpegOptions(
        channels, ratio, fancy_upscaling, try_recover_truncated, dct_method, acceptable_fraction
    )
    options.check()
    return _decode(_scalar(contents), options)


def _crop_kernel(
    xp: ArrayNamespace,
    contents: Array,
    crop_window: Array,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    dct_method: str,
    acceptable_fraction: float,
) -> Any:
    data = _scalar(contents)
    options = JpegOptions(
        channels, ratio, fancy_upscaling, try_recover_truncated, dct_method, acceptable_fraction
    )
    if not data.startswith(_JPEG):  # TensorFlow decodes other formats whole
        return _decode(data, options)
    if crop_window.shape != (4,):
        raise invalid(f"crop_size must have four elements {shapes.show(crop_window.shape)}")
    y, x, height, width = (int(v) for v in crop_window)
    return decode_jpeg(data, options, (y, x, height, width))


def _png_kernel(xp: ArrayNamespace, contents: Array, *, channels: int, dtype: DType) -> Any:
    return _decode(_scalar(contents), JpegOptions(channels), dtype is dtypes.uint16)


def _gif_kernel(xp: ArrayNamespace, contents: Array) -> Array:
    data = _scalar(contents)
    return decode_gif(data) if data.startswith(_GIF) else _decode(data, JpegOptions(3))[None]


def _jpeg_shape_kernel(xp: ArrayNamespace, contents: Array, *, output_type: DType) -> Array:
    data = _scalar(contents)
    frame = jpeg_frame(data) if data.startswith(_JPEG) else None
    if frame is None:
        raise invalid(f"Invalid JPEG data, size {len(data)}")
    return np.array([frame.height, frame.width, frame.components], output_type.np_dtype)


def _image_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    channels = c.attr("channels")
    if channels < 0:
        raise ValueError(f"channels must be non-negative, got {channels}")
    return [(None, None, channels or None)]


def _cropped_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    shape, window = _image_shape(c)[0], c.value(1)
    shapes.merge(c.shape(1), (4,))
    if window is None:
        return [shape]
    return [(int(window[2]), int(window[3]), shape[2])]  # type: ignore[index]


def _fixed_shape(*dims: int | None) -> Callable[..., Any]:
    def shape(c: Inference) -> list[Shape]:
        c.require_rank(0, 0)
        return [dims]

    return shape


_JPEG_ATTRS = (
    "channels: int=0, ratio: int=1, fancy_upscaling: bool=True, try_recover_truncated: bool=False, "
    "acceptable_fraction: float=1.0, dct_method: str=''"
)


def _check_channels(attrs: dict[str, Any]) -> None:
    if attrs["channels"] not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3, or 4, got {attrs['channels']}")


DECODE_JPEG = define(
    "DecodeJpeg",
    f"contents: string -> image: uint8; {_JPEG_ATTRS}",
    shape=_image_shape,
    kernel=_jpeg_kernel,
    check_attrs=_check_channels,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DECODE_AND_CROP_JPEG = define(
    "DecodeAndCropJpeg",
    f"contents: string, crop_window: int32 -> image: uint8; {_JPEG_ATTRS}",
    shape=_cropped_shape,
    kernel=_crop_kernel,
    check_attrs=_check_channels,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DECODE_PNG = define(
    "DecodePng",
    "contents: string -> image: dtype; channels: int=0, dtype: type=uint8",
    shape=_image_shape,
    kernel=_png_kernel,
    check_attrs=_check_channels,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DECODE_GIF = define(
    "DecodeGif",
    "contents: string -> image: uint8",
    shape=_fixed_shape(None, None, None, 3),
    kernel=_gif_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DECODE_BMP = define(
    "DecodeBmp",
    "contents: string -> image: uint8; channels: int=0",
    shape=_image_shape,
    kernel=_bmp_kernel,
    check_attrs=_check_channels,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
EXTRACT_JPEG_SHAPE = define(
    "ExtractJpegShape",
    "contents: string -> image_shape: output_type; output_type: type(index)=int32",
    shape=_fixed_shape(3),
    kernel=_jpeg_shape_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
