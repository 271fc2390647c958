"""PNG files with sixteen bits a channel, which Pillow knows for gray images only.

A PNG file is a signature and chunks ``length, name, data, crc``; IHDR has the size and kind, the IDAT chunks together are
the zlib-compressed rows, each with a filter before it that says from which neighbours its bytes were subtracted.

    >>> read_png(write_png(pixels)) == pixels  # height x width x channels, uint16
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.ops.array.array_shape import invalid

__all__ = ["read_png", "write_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Colour type by channels, and back.
_COLOR = {1: 0, 2: 4, 3: 2, 4: 6}
_CHANNELS = {color: n for n, color in _COLOR.items()}


def write_png(pixels: Any, compression: int = -1) -> bytes:
    """The file of an array of height x width x channels (uint8 or uint16)."""
    height, width, channels = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">")))
    raw = rows.view(np.uint8).reshape(height, -1)
    filtered = np.zeros((height, raw.shape[1] + 1), np.uint8)
    filtered[:, 0] = 2  # every row minus the one above
    filtered[:, 1:] = raw
    filtered[1:, 1:] -= raw[:-1]
    head = struct.pack(">IIBBBBB", width, height, depth, _COLOR[channels], 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(filtered.tobytes(), compression)), (b"IEND", b""))  # fmt: skip
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        yield name, data[at + 8 : at + 8 + size]
        at += size + 12


def read_png(data: bytes) -> Any:
    """The pixels of a file with sixteen bits a channel, not interlaced."""
    chunks = list(_chunks(data))
    head = next((d for name, d in chunks if name == b"IHDR"), b"")
    if len(head) < 13:
        raise invalid("Invalid PNG data")
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if depth != 16 or interlaced or color not in _CHANNELS:
        raise invalid("PNG data of this kind is not read with sixteen bits")
    channels = _CHANNELS[color]
    step = 2 * channels
    try:
        raw = zlib.decompress(b"".join(d for name, d in chunks if name == b"IDAT"))
    except zlib.error:
        raise invalid("Invalid PNG data") from None
    if len(raw) < height * (width * step + 1):
        raise invalid("Invalid PNG data")
    rows = np.frombuffer(raw, np.uint8, height * (width * step + 1)).reshape(height, -1)
    pixels = np.empty((height, width * step), np.uint8)
    above = np.zeros(width * step, np.uint8)
    for i in range(height):
        above = pixels[i] = _unfiltered(int(rows[i, 0]), rows[i, 1:], above, step)
    return pixels.view(">u2").astype(np.uint16).reshape(height, width, channels)


def _unfiltered(kind: int, row: Any, above: Any, step: int) -> Any:
    if kind == 0:
        return row
    if kind == 1:
        return np.add.accumulate(row.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
    if kind == 2:
        return row + above
    if kind not in (3, 4):
        raise invalid("Invalid PNG data")
    predict = _average if kind == 3 else _paeth
    out = [0] * step + row.tolist()
    up = [0] * step + above.tolist()
    for i in range(step, len(out)):
        out[i] = (out[i] + predict(out[i - step], up[i], up[i - step])) & 0xFF
    return np.array(out[step:], np.uint8)


def _average(left: int, up: int, corner: int) -> int:
    return (left + up) >> 1


def _paeth(left: int, up: int, corner: int) -> int:
    """That neighbour which is nearest to left + up - corner."""
    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if a <= b and a <= c:
        return left
    return up if b <= c else corner
