"""PNG files: the size that they declare, and those with sixteen bits a channel, which Pillow knows
for gray images only.

A PNG file is a signature and chunks ``length, name, data, crc``; IHDR has the size and kind, the
IDAT chunks together are the zlib-compressed rows. Pillow decodes rows of sixteen-bit values and
keeps one of the two bytes of each: a file is decoded twice.

    >>> read_png(write_png(pixels)) == pixels  # height x width x channels, uint16
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["load_png", "open_png", "png_header", "read_png", "write_png"]

#: libpng's limit for a row or column, TensorFlow's for all pixels, and zlib's for what one byte can
#: become.
MAX_LENGTH, MAX_PIXELS, MAX_INFLATION = 1_000_000, 1 << 29, 1032
_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
#: The bits that a value may have, by colour type (3 is a palette).
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: The bytes of an IDAT chunk; images up to ``_SMALL`` bytes get a smaller window; zlib's longest
#: match.
_IDAT_BYTES, _SMALL, _MAX_MATCH = 8192, 16384, 258
#: Colour type by channels, and back.
_COLOR = {1: 0, 2: 4, 3: 2, 4: 6}
_CHANNELS = {color: n for n, color in _COLOR.items()}


def write_png(pixels: Array, compression: int = -1) -> bytes:
    """The file of an array of height x width x channels (uint8 or uint16).

    The bytes are libpng's: for every row the filter with the smallest sum of absolute differences,
    zlib's strategy for filtered data, a window as small as the data allows.
    """
    height, width, channels = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">")))
    filtered = _filter_rows(rows.view(np.uint8).reshape(height, -1), channels * depth // 8, width)
    head = struct.pack(">IIBBBBB", width, height, depth, _COLOR[channels], 0, 0, 0)
    data = _deflate(filtered.tobytes(), compression)
    parts = [data[at : at + _IDAT_BYTES] for at in range(0, len(data), _IDAT_BYTES)]
    chunks = ((b"IHDR", head), *((b"IDAT", part) for part in parts), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _filter_rows(raw: Array, pixel_bytes: int, width: int) -> Array:
    """Every row with its filter's number in front.

    A filter predicts a byte from the one to the left, the one above and the one left of that.
    """
    left, up, corner = (np.zeros_like(raw) for _ in range(3))
    left[:, pixel_bytes:] = raw[:, :-pixel_bytes]
    up[1:] = raw[:-1]
    corner[1:, pixel_bytes:] = raw[:-1, :-pixel_bytes]
    a, b, c = (x.astype(np.int16) for x in (left, up, corner))
    to_left, to_up, to_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    paeth = np.where(
        (to_left <= to_up) & (to_left <= to_corner),
        left,
        np.where(to_up <= to_corner, up, corner),
    )
    mean = ((a + b) >> 1).astype(np.uint8)
    candidates = [raw, raw - left, raw - up, raw - mean, raw - paeth]
    costs = np.stack([np.minimum(x, 0 - x).sum(1, dtype=np.int64) for x in candidates])
    # libpng does not try filters that look up in a single row, or left in a single column
    if len(raw) == 1:
        costs[2:] = np.iinfo(np.int64).max
    if width == 1:
        costs[[1, 3, 4]] = np.iinfo(np.int64).max
    kinds = costs.argmin(0)
    filtered = np.empty((len(raw), raw.shape[1] + 1), np.uint8)
    filtered[:, 0] = kinds
    filtered[:, 1:] = np.choose(kinds[:, None], candidates)
    return filtered


def _deflate(data: bytes, level: int) -> bytes:
    """Zlib data, its header with the smallest window that holds all."""
    window = zlib.MAX_WBITS
    while len(data) <= _SMALL and len(data) + _MAX_MATCH + 4 <= 1 << (window - 1):
        window -= 1
    packer = zlib.compressobj(level, zlib.DEFLATED, window, 9, zlib.Z_FILTERED)
    packed = packer.compress(data) + packer.flush()
    declared = (packed[0] >> 4) + 8
    while len(data) <= _SMALL and declared > 8 and len(data) <= 1 << (declared - 1):
        declared -= 1
    method, flags = (declared - 8) << 4 | 8, packed[1] & 0xE0
    flags += 31 - (method * 256 + flags) % 31
    return bytes((method, flags)) + packed[2:]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


class PngHeader(NamedTuple):
    """What IHDR says; ``compressed`` is the number of bytes in the IDAT chunks."""

    width: int
    height: int
    depth: int
    color: int
    interlaced: bool
    compressed: int

    @property
    def channels(self) -> int:
        return _CHANNELS.get(self.color, 1)


def png_header(data: bytes) -> PngHeader:
    """The header of a file whose size is one that TensorFlow reads.

    Sizes are checked against the bytes that are there.
    """
    if len(data) < 33 or data[12:16] != b"IHDR" or data[8:12] != b"\0\0\0\r":
        raise invalid(f"Invalid PNG header, data size {len(data)}")
    width, height, depth, color, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if not (0 < width <= MAX_LENGTH and 0 < height <= MAX_LENGTH) or depth not in _DEPTHS.get(
        color, ()
    ):
        raise invalid(f"Invalid PNG header, data size {len(data)}")
    if width * height >= MAX_PIXELS:
        raise invalid(f"PNG size too large for int: {width} by {height}")
    found = PngHeader(width, height, depth, color, bool(interlaced), _compressed_bytes(data))
    bits = width * (_CHANNELS.get(color, 1)) * depth
    if height * (bits // 8) > found.compressed * MAX_INFLATION:
        raise invalid(f"Invalid PNG data, size {len(data)}")
    return found


def _compressed_bytes(data: bytes) -> int:
    """The bytes of all IDAT chunks.

    Damage of a chunk that a decoder must understand is an error, as libpng has it.
    """
    total, at = 0, len(_SIGNATURE)
    while at + 12 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        end = at + 8 + size
        critical = not name[0] & 0x20
        if critical and (
            name not in _CRITICAL
            or zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big")
        ):
            break
        if name == b"IDAT":
            total += size
        if name == b"IEND":
            return total
        at = end + 4
    raise invalid(f"Invalid PNG data, size {len(data)}")


def open_png(data: bytes) -> Any:
    """A Pillow image whose pixels are not decoded yet."""
    from PIL.PngImagePlugin import PngImageFile

    with _damage(data):
        return PngImageFile(io.BytesIO(data))


def load_png(image: Any, data: bytes) -> Any:
    """The image, decoded."""
    with _damage(data):
        image.load()
    return image


@contextlib.contextmanager
def _damage(data: bytes) -> Iterator[None]:
    try:
        yield
    except (errors.OpError, MemoryError):
        raise
    except Exception:  # Pillow's readers raise whatever a damaged file makes them stumble over
        raise invalid(f"Invalid PNG data, size {len(data)}") from None


#: Pillow's names for the two bytes of each value: the decoder drops the other one.
_HIGH_AND_LOW = {2: ("RGB;16B", "RGB;16L"), 6: ("RGBA;16B", "RGBA;16L")}


def read_png(data: bytes) -> Array:
    """The pixels of a file with sixteen bits a channel: height x width x channels, uint16."""
    header = png_header(data)
    if header.depth != 16 or header.color not in _CHANNELS:
        raise invalid("PNG data of this kind is not read with sixteen bits")
    shape = (header.height, header.width, header.channels)
    if (
        header.color == 4
    ):  # gray and alpha of two bytes each are four channels of one byte for the decoder
        return _decoded_as(data, "RGBA", "RGBA").view(">u2").astype(np.uint16).reshape(shape)
    if header.color == 0:
        return _decoded_as(data, "LA", "LA").view(">u2").astype(np.uint16).reshape(shape)
    mode = "RGB" if header.channels == 3 else "RGBA"
    high, low = (_decoded_as(data, mode, raw) for raw in _HIGH_AND_LOW[header.color])
    out = high.astype(np.uint16)
    out <<= 8
    out |= low
    return out.reshape(shape)


def _decoded_as(data: bytes, mode: str, raw: str) -> Array:
    """The bytes that a decoder of rows gives which takes ``raw`` pixels and makes ``mode`` of
    them.
    """
    image = open_png(data)
    image._mode = mode
    image.tile = [tile._replace(args=raw) for tile in image.tile]
    return np.array(load_png(image, data))
