"""Image files to arrays: JPEG, PNG, GIF and BMP, by Pillow (which releases the interpreter while it decodes).

As in TensorFlow, DecodeJpeg, DecodePng and DecodeGif each read all three formats, by the first bytes of the file. JPEG files
are left to ``simplejpeg`` where it is installed (:mod:`headrace.ops.image.jpeg_turbo`): its pixels are TensorFlow's exactly. Pillow's
are too, except where a file has reduced colour resolution and both a fast DCT and smooth upscaling are asked for (the default):
Pillow cannot combine these, and values differ by up to 4 of 255, 1 on average.

    >>> image = tf.image.decode_jpeg(tf.read_file("photo.jpg"), channels=3)
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid
from headrace.ops.image import jpeg_turbo as image_turbo

__all__ = ["DECODE_BMP", "DECODE_GIF", "DECODE_JPEG", "DECODE_PNG"]

_JPEG, _PNG, _GIF = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a")


def _open(contents: bytes, problem: str) -> Any:
    """A Pillow image whose pixels are not decoded yet."""
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(contents))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise invalid(problem) from None


def _loaded(image: Any, problem: str) -> Any:
    try:
        image.load()
    except (OSError, SyntaxError, ValueError, IndexError):
        raise invalid(problem) from None
    return image


def _pixels(image: Any, problem: str) -> Any:
    """Decoded: height x width x channels."""
    array = np.array(_loaded(image, problem))
    return array if array.ndim == 3 else array[:, :, None]


# JPEG ---------------------------------------------------------------------------------------------


def _jpeg(
    contents: bytes, channels: int, ratio: int, fancy: bool, recover: bool, dct_method: str
) -> Any:
    found = image_turbo.decode(contents, channels, ratio, fancy, recover, dct_method)
    if found is not None:
        return found
    problem = f"Invalid JPEG data or crop window, data size {len(contents)}"
    # an end mark after what there is of the data makes the decoder fill in the rest
    image = _open(contents + b"\xff\xd9" if recover else contents, problem)
    if image.format not in ("JPEG", "MPO"):
        raise invalid(problem)
    if channels == 1 and image.mode == "RGB":
        image.draft("L", None)
    if ratio > 1:
        size = tuple(-(-d // ratio) for d in image.size)
        image._size = size
        image.tile = [image.tile[0]._replace(extents=(0, 0, *size))]
    image.decoderconfig = (ratio, int(_quick(image, ratio, fancy, dct_method)))
    if image.mode == "CMYK" and channels == 1:
        raise invalid(problem)
    if image.mode == "CMYK" or (channels == 3 and image.mode != "RGB"):
        image = _loaded(image, problem).convert("RGB")
    return _pixels(image, problem)


def _quick(image: Any, ratio: int, fancy: bool, dct_method: str) -> bool:
    """Whether Pillow's quick mode (fast DCT, simple upscaling) is nearer to what is asked for than its usual one."""
    factors = {(layer[1], layer[2]) for layer in image.layer}
    if image.mode == "L" or len(factors) == 1:  # nothing is upscaled
        return dct_method != "INTEGER_ACCURATE"
    if not fancy:
        return True
    wide = max(h for h, _ in factors) / min(h for h, _ in factors)
    high = max(v for _, v in factors) / min(v for _, v in factors)
    return (
        ratio > 1 and wide == high
    )  # decoding at a smaller scale makes up for the reduced colours


# PNG ----------------------------------------------------------------------------------------------


def _png(contents: bytes, channels: int, wide: bool) -> Any:
    problem = "Invalid PNG. Failed to initialize decoder."
    image = _open(contents, problem)
    if image.format != "PNG":
        raise invalid(problem)
    if image.mode.startswith("I"):  # sixteen bits of gray
        gray = _pixels(image, problem).astype(np.uint16)
        return _with_channels(gray if wide else (gray >> 8).astype(np.uint8), channels)
    if wide and contents[24] == 16:
        from headrace.ops.image.png16 import read_png

        return _with_channels(read_png(contents), channels)
    _loaded(image, "Invalid PNG data")
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    elif "transparency" in image.info and image.mode in ("L", "RGB"):
        image = image.convert("LA" if image.mode == "L" else "RGBA")
    pixels = _with_channels(_pixels(image, "Invalid PNG data"), channels)
    return pixels.astype(np.uint16) * 257 if wide else pixels


def _with_channels(pixels: Any, channels: int) -> Any:
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


def _gray(color: Any) -> Any:
    """libpng's way: integer weights, cut off; a pixel that is gray already stays as it is."""
    red, green, blue = (color[:, :, i].astype(np.int64) for i in range(3))
    mixed = (9797 * red + 19234 * green + 3737 * blue) >> 15
    out = np.where((red == green) & (red == blue), red, mixed)
    return out.astype(color.dtype)[:, :, None]


# GIF, BMP -----------------------------------------------------------------------------------------


def _gif(contents: bytes) -> Any:
    """frames x height x width x 3."""
    from PIL import ImageSequence

    problem = "Invalid GIF data"
    image = _open(contents, problem)
    if image.format != "GIF":
        raise invalid(problem)
    frames = [_pixels(f.convert("RGB"), problem) for f in ImageSequence.Iterator(image)]
    return np.stack(frames)


def _bmp_kernel(xp: Any, contents: Any, *, channels: int) -> Any:
    """Uncompressed, 8 bits (the palette is not looked at), 24 or 32."""
    data = contents.item()
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3 or 4, got {channels}")
    if len(data) < 32:
        raise invalid(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, "
            f"got {len(data)} bytes"
        )
    start, width, height = (int.from_bytes(data[i : i + 4], "little", signed=True) for i in (10, 18, 22))  # fmt: skip
    depth = int.from_bytes(data[28:30], "little") // 8
    if channels and channels != depth:
        raise invalid(f"channels attribute {channels} does not match bits per pixel from file {depth}")  # fmt: skip
    if depth not in (1, 3, 4) or width < 0 or data[:2] != b"BM":
        raise invalid(f"Number of channels must be 1, 3 or 4, was {depth}")
    row = -(-width * depth // 4) * 4
    if start + row * abs(height) > len(data):
        raise invalid(f"Incomplete bmp content, requires at least {start + row * abs(height)} bytes, got {len(data)} bytes")  # fmt: skip
    rows = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    pixels = rows[:, : width * depth].reshape(abs(height), width, depth)
    if height > 0:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][:depth]] if depth > 1 else pixels)


# kernels ------------------------------------------------------------------------------------------


def _decode(
    contents: bytes, channels: int, wide: bool = False, ratio: int = 1, fancy: bool = True,
    recover: bool = False, dct_method: str = "",
) -> Any:  # fmt: skip
    """A still image of any format."""
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3, or 4, got {channels}")
    if contents.startswith(_JPEG):
        if channels == 4:
            raise invalid("channels must be 0, 1, or 3 for JPEG, got 4")
        if wide:
            raise invalid("JPEG does not support uint16 output")
        return _jpeg(contents, channels, ratio, fancy, recover, dct_method)
    if contents.startswith(_PNG):
        return _png(contents, channels, wide)
    if contents.startswith(_GIF):
        if wide:
            raise invalid("GIF does not support uint16 output")
        if channels not in (0, 3):
            raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
        frames = _gif(contents)
        if len(frames) != 1:
            raise invalid(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by tf.image.decode_gif or "
                "tf.image.decode_image"
            )
        return frames[0]
    if not contents:
        raise invalid("Expected image (JPEG, PNG, or GIF), got empty file")
    start = "".join(chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in contents[:16])
    raise invalid(f"Expected image (JPEG, PNG, or GIF), got unknown format starting with '{start}'")


def _jpeg_kernel(
    xp: Any, contents: Any, *, channels: int, ratio: int, fancy_upscaling: bool,
    try_recover_truncated: bool, dct_method: str,
) -> Any:  # fmt: skip
    return _decode(
        contents.item(), channels, False, ratio, fancy_upscaling, try_recover_truncated, dct_method
    )


def _crop_kernel(
    xp: Any, contents: Any, crop_window: Any, *, channels: int, ratio: int, fancy_upscaling: bool,
    try_recover_truncated: bool, dct_method: str,
) -> Any:  # fmt: skip
    data = contents.item()
    if not data.startswith(_JPEG):
        raise invalid("DecodeAndCropJpeg operation can run on JPEG only")
    image = _jpeg(data, channels, ratio, fancy_upscaling, try_recover_truncated, dct_method)
    y, x, height, width = (int(v) for v in crop_window)
    if min(y, x) < 0 or min(height, width) <= 0 or y + height > image.shape[0] or x + width > image.shape[1]:  # fmt: skip
        raise invalid(f"Invalid JPEG data or crop window, data size {len(data)}")
    return np.ascontiguousarray(image[y : y + height, x : x + width])


def _png_kernel(xp: Any, contents: Any, *, channels: int, dtype: Any) -> Any:
    return _decode(contents.item(), channels, dtype is dtypes.uint16)


def _gif_kernel(xp: Any, contents: Any) -> Any:
    data = contents.item()
    return _gif(data) if data.startswith(_GIF) else _decode(data, 3)[None]


def _jpeg_shape_kernel(xp: Any, contents: Any, *, output_type: Any) -> Any:
    data = contents.item()
    problem = f"Invalid JPEG data, size {len(data)}"
    if not data.startswith(_JPEG):
        raise invalid(problem)
    image = _open(data, problem)
    width, height = image.size
    return np.array([height, width, len(image.getbands())], output_type.np_dtype)


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


def _fixed_shape(*dims: int | None) -> Any:
    def shape(c: Inference) -> list[Shape]:
        c.require_rank(0, 0)
        return [dims]

    return shape


_JPEG_ATTRS = (
    "channels: int=0, ratio: int=1, fancy_upscaling: bool=True, try_recover_truncated: bool=False, "
    "acceptable_fraction: float=1.0, dct_method: str=''"
)

DECODE_JPEG = define(
    "DecodeJpeg", f"contents: string -> image: uint8; {_JPEG_ATTRS}", shape=_image_shape, kernel=_jpeg_kernel,
    grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
DECODE_AND_CROP_JPEG = define(
    "DecodeAndCropJpeg", f"contents: string, crop_window: int32 -> image: uint8; {_JPEG_ATTRS}",
    shape=_cropped_shape, kernel=_crop_kernel, grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
DECODE_PNG = define(
    "DecodePng", "contents: string -> image: dtype; channels: int=0, dtype: type=uint8", shape=_image_shape,
    kernel=_png_kernel, grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
DECODE_GIF = define(
    "DecodeGif", "contents: string -> image: uint8", shape=_fixed_shape(None, None, None, 3), kernel=_gif_kernel,
    grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
DECODE_BMP = define(
    "DecodeBmp", "contents: string -> image: uint8; channels: int=0", shape=_image_shape, kernel=_bmp_kernel,
    grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
EXTRACT_JPEG_SHAPE = define(
    "ExtractJpegShape", "contents: string -> image_shape: output_type; output_type: type(index)=int32",
    shape=_fixed_shape(3), kernel=_jpeg_shape_kernel, grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
