"""How much of a JPEG file that was cut off can be read: ``acceptable_fraction`` of decode_jpeg.

TensorFlow's decoder stops where the data ends and gives the rows up to there, the rest black, if
the rows are enough. Rows come in bands of blocks (8 or 16 rows), and a band whose colours are
upscaled smoothly waits for the next one with its last rows. How many bands are whole is found with
a smaller height in the file's header: libjpeg-turbo says whether the data was enough for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

__all__ = ["is_cut_off", "rows_read"]

_SCAN, _END = b"\xff\xda", b"\xff\xd9"
#: Bytes behind a band's own that the decoder has to find before it takes the band for whole.
_AHEAD = 4
_SEQUENTIAL = frozenset([0xC0, 0xC1])


def is_cut_off(data: bytes) -> bool:
    """Whether a file has no end mark after its last scan began."""
    return data.rfind(_END) < data.rfind(_SCAN)


def rows_read(
    data: bytes,
    height_at: int,
    ratio: int,
    gray: bool,
    fancy: bool,
    suffices: Callable[[bytes], bool],
) -> int | None:
    """The rows at 1/``ratio`` that a decoder gives before the data ends; None if it cannot begin.

    ``height_at``: where the height is stored. ``suffices(file)`` says whether a file with an end
    mark has all the data that its height asks for. Files of several scans (progressive ones) have
    to be whole.
    """
    if data[height_at - 4] not in _SEQUENTIAL or data.count(_SCAN) != 1:
        return None
    height, components = int.from_bytes(data[height_at : height_at + 2], "big"), data[height_at + 4]
    factors = [divmod(data[height_at + 5 + 3 * i + 1], 16) for i in range(components)]
    tall = max(v for _, v in factors)
    band = 8 * tall
    most = -(-height // band)
    low, high = 0, most + 1  # bands that are whole, and a number that is too large
    data = data.rstrip(b"\xff")[:-_AHEAD]
    while high - low > 1:
        middle = (low + high) // 2
        rows = struct.pack(">H", min(height, middle * band))
        if suffices(data[:height_at] + rows + data[height_at + 2 :] + _END):
            low = middle
        else:
            high = middle
    if low == most:
        return -(-height // ratio)
    groups = low * (8 // ratio) - (not gray and fancy and _waits(factors, ratio))
    return max(0, min(groups * tall, -(-height // ratio)))


def _waits(factors: list[tuple[int, int]], ratio: int) -> bool:
    """Whether a component's rows are upscaled from their neighbours.

    One that has half the width, too, is decoded at twice the scale of a reduced picture instead.
    """
    wide, tall = max(h for h, _ in factors), max(v for _, v in factors)
    return any(
        v * 2 == tall and (h == wide if 1 < ratio < 8 else ratio == 1 and h in (wide, wide // 2))
        for h, v in factors
    )
