"""JPEG files to arrays.

They are left to ``simplejpeg`` where it is installed (:mod:`headrace.ops.image.jpeg_turbo`): its
pixels are TensorFlow's exactly. Pillow's are too, except where a file has reduced colour resolution
and both a fast DCT and smooth upscaling are asked for (the default): Pillow cannot combine these,
and values differ by up to 4 of 255, 1 on average.

The size that a file declares is read and checked before any decoder sees the file. A crop decodes
the rows down to its last one: the file is handed on with a smaller height in its frame header.

    >>> decode_jpeg(data, JpegOptions(channels=3)).shape
    (192, 256, 3)
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.ops.array.array_shape import invalid
from headrace.ops.image import jpeg_turbo as image_turbo
from headrace.ops.image.jpeg_truncated import is_cut_off, rows_read

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["JpegFrame", "JpegOptions", "decode_jpeg", "jpeg_frame"]

#: TensorFlow refuses a picture of this many bytes or more.
MAX_BYTES = 1 << 29
#: Rows below a crop that its last rows depend on: a block of the largest subsampling, and its
#: neighbour for smooth upscaling.
_ROWS_BELOW = 64
_STANDALONE = frozenset([0x01, *range(0xD0, 0xD8)])
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN, _END = 0xDA, 0xD9


class JpegOptions(NamedTuple):
    """The attributes of DecodeJpeg. ``channels`` 0 means those of the file."""

    channels: int = 0
    ratio: int = 1
    fancy_upscaling: bool = True
    try_recover_truncated: bool = False
    dct_method: str = ""
    acceptable_fraction: float = 1.0

    def check(self) -> None:
        if self.ratio not in (1, 2, 4, 8):
            raise invalid(f"ratio must be 1, 2, 4, or 8, got {self.ratio}")
        if self.dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
            raise invalid("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")


class JpegFrame(NamedTuple):
    """What the frame header says. ``offset`` is where the height is stored."""

    offset: int
    height: int
    width: int
    components: int

    def size(self, ratio: int) -> tuple[int, int]:
        return -(-self.height // ratio), -(-self.width // ratio)


def jpeg_frame(data: bytes) -> JpegFrame | None:
    """The frame header; None if there is none before the first scan."""
    at = 2
    while True:
        at = data.find(b"\xff", at)
        while 0 <= at < len(data) and data[at] == 0xFF:
            at += 1
        if not 0 <= at < len(data) - 8 or data[at] in (_SCAN, _END):
            return None
        marker, at = data[at], at + 1
        if marker in _FRAMES:
            _, height, width, components = struct.unpack_from(">BHHB", data, at + 2)
            return JpegFrame(at + 3, height, width, components)
        if marker and marker not in _STANDALONE:
            at += max(2, int.from_bytes(data[at : at + 2], "big"))


def decode_jpeg(
    data: bytes, options: JpegOptions, window: tuple[int, int, int, int] | None = None
) -> Array:
    """Height x width x channels values; of the window (y, x, height, width) alone if there is
    one.
    """
    options.check()
    problem = f"Invalid JPEG data or crop window, data size {len(data)}"
    frame = jpeg_frame(data)
    if frame is None:
        raise invalid(problem)
    size = frame.size(options.ratio)
    channels = options.channels or (1 if frame.components == 1 else 3)
    if not 0 < size[0] * size[1] * channels < MAX_BYTES:
        raise invalid(problem)
    if window is None:
        return _checked(_whole(data, frame, options, problem), size, problem)
    y, x, height, width = window
    if min(y, x) < 0 or min(height, width) <= 0 or y + height > size[0] or x + width > size[1]:
        raise invalid(problem)
    rows = min(frame.height, (y + height) * options.ratio + _ROWS_BELOW)
    at = frame.offset
    top = data[:at] + struct.pack(">H", rows) + data[at + 2 :]
    image = _decoded(top, options, problem)
    image = _checked(image, frame._replace(height=rows).size(options.ratio), problem)
    return np.ascontiguousarray(image[y : y + height, x : x + width])


def _whole(data: bytes, frame: JpegFrame, options: JpegOptions, problem: str) -> Array:
    """The picture of a file; the first rows of one that was cut off, the others black."""
    if options.try_recover_truncated or not is_cut_off(data):
        return _decoded(data, options, problem)
    channels, ratio, fancy, _, _, fraction = options
    gray = frame.components == 1 or channels == 1
    suffices = image_turbo.suffices
    rows = rows_read(data, frame.offset, ratio, gray, fancy, suffices)
    height = frame.size(ratio)[0]
    if rows is None or np.float32(rows) / np.float32(height) < min(1.0, fraction):
        raise invalid(problem)
    image = _decoded(data, options._replace(try_recover_truncated=True), problem)
    if rows < height:
        image = np.array(image)
        image[rows:] = 0
    return image


def _checked(image: Array, size: tuple[int, int], problem: str) -> Array:
    if image.shape[:2] != size:  # a second frame header, which the decoder took
        raise invalid(problem)
    return image


def _decoded(data: bytes, options: JpegOptions, problem: str) -> Array:
    found = image_turbo.decode(data, *options[:5])
    return _by_pillow(data, options, problem) if found is None else found


def _by_pillow(data: bytes, options: JpegOptions, problem: str) -> Array:
    from PIL.JpegImagePlugin import JpegImageFile

    channels, ratio, fancy, recover, dct_method, _ = options
    try:
        # an end mark after what there is of the data makes the decoder fill in the rest
        image: Any = JpegImageFile(io.BytesIO(data + b"\xff\xd9" if recover else data))
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
            image = image.convert("RGB")
        array = np.array(image)
    except (errors.OpError, MemoryError):
        raise
    except Exception:  # Pillow's readers raise whatever a damaged file makes them stumble over
        raise invalid(problem) from None
    return array if array.ndim == 3 else array[:, :, None]


def _quick(image: Any, ratio: int, fancy: bool, dct_method: str) -> bool:
    """Whether Pillow's quick mode (fast DCT, simple upscaling) is nearer to what is asked for than
    its usual one.
    """
    factors = {(layer[1], layer[2]) for layer in image.layer}
    if image.mode == "L" or len(factors) == 1:  # nothing is upscaled
        return dct_method != "INTEGER_ACCURATE"
    if not fancy:
        return True
    wide = max(h for h, _ in factors) / min(h for h, _ in factors)
    high = max(v for _, v in factors) / min(v for _, v in factors)
    return ratio > 1 and wide == high  # decoding at a smaller scale makes up for reduced colours
