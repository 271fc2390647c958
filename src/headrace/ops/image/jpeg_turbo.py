"""JPEG files to arrays by libjpeg-turbo, through the package ``simplejpeg`` where it has a wheel.

TensorFlow decodes with the same library, with a fast DCT and smooth upscaling of colours unless it
is told otherwise: the pixels are the same, bit for bit. What this cannot do, and files that it does
not understand, are left to Pillow.

    >>> decode(data, channels=3, ratio=1, fancy=True, recover=False, dct_method="").shape
    (192, 256, 3)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["decode", "suffices"]

#: The mark that a program of Adobe's, or one that follows its habits, leaves in a file: inks are
#: stored inverted.
_ADOBE = b"\xff\xee\x00\x0eAdobe"
_SCAN, _END = b"\xff\xda", b"\xff\xd9"
#: How the messages begin of what the library calls warnings; all others are errors.
_WARNINGS = ("Corrupt JPEG data", "Premature end", "Warning", "Inconsistent progression")


@functools.cache
def _library() -> Any:
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def decode(
    contents: bytes, channels: int, ratio: int, fancy: bool, recover: bool, dct_method: str
) -> Any:
    """Height x width x channels values; None if it has to be done otherwise."""
    library = _library()
    if library is None:
        return None
    try:
        height, width, stored, _ = library.decode_jpeg_header(contents, strict=False)
    except (ValueError, KeyError, RuntimeError):  # damaged, or of a kind that it does not know
        return None
    inks = stored in ("CMYK", "YCCK")
    size = _scaled(height, width, ratio)
    if size is None or (inks and channels == 1):
        return None
    gray = channels == 1 or (not channels and stored == "Gray")
    options = {
        "colorspace": "CMYK" if inks else "GRAY" if gray else "RGB",
        "fastdct": dct_method != "INTEGER_ACCURATE",
        "fastupsample": not fancy,
        "min_height": size[0],
        "min_width": size[1],
        "min_factor": ratio,
    }
    pixels = _pixels(library, contents, recover, options)
    return _mixed(pixels, _ADOBE in contents) if inks and pixels is not None else pixels


def _pixels(library: Any, contents: bytes, recover: bool, options: dict[str, Any]) -> Any:
    """As TensorFlow.

    Damage is passed over, a file that ends too early is not (unless that is asked for).
    """
    try:
        return library.decode_jpeg(contents, **options)
    except (ValueError, RuntimeError) as error:
        if not recover and not str(error).startswith(
            _WARNINGS
        ):  # a lenient decoder would pass over an error, too
            raise invalid(f"Invalid JPEG data or crop window, data size {len(contents)}") from None
        if not recover and contents.rfind(_END) < contents.rfind(_SCAN):
            return None
    try:
        return library.decode_jpeg(contents, strict=False, **options)
    except (ValueError, RuntimeError):
        return None


def suffices(contents: bytes) -> bool:
    """Whether a file has all the data that the height in its header asks for.

    False without the package: then a file that was cut off gives no rows.
    """
    library = _library()
    if library is None:
        return False
    try:
        library.decode_jpeg(contents, fastdct=True, fastupsample=True)
    except (ValueError, RuntimeError) as error:
        return "extraneous bytes" in str(error)
    return True


def _scaled(height: int, width: int, ratio: int) -> tuple[int, int] | None:
    """The size at 1/ratio.

    The decoder takes some scale (in eighths) that gives it: None if there are several.
    """
    if ratio == 1:
        return 0, 0  # whatever it is
    size = _eighths(height, width, 8 // ratio)
    neighbours = [_eighths(height, width, 8 // ratio + i) for i in (-1, 1)]
    return None if size in neighbours else size


def _eighths(height: int, width: int, scale: int) -> tuple[int, int]:
    return -(-height * scale // 8), -(-width * scale // 8)


def _mixed(inks: Array, inverted: bool) -> Array:
    """Red, green and blue from four inks."""
    wide = inks.astype(np.uint16) if inverted else 255 - inks.astype(np.uint16)
    return (wide[:, :, :3] * wide[:, :, 3:] // 255).astype(np.uint8)
