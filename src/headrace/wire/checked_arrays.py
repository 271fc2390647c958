"""The numbers of an array to a file and back, with their checksum.

Large arrays use the threads of the process: one writes from the array's own memory while the
others compute the checksum; reading is cut into pieces, each read into its place and summed while
it is in the cache. Nothing is copied in between.

    >>> checksum = write_array(file, array)
    >>> checksum == read_array(file, 0, np.empty_like(array))
    True
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from headrace.runtime.thread_pool import parallel, thread_count
from headrace.wire import crc

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Advance", "read_array", "sum_file", "write_array"]

#: Told how many bytes more were read or written, by any thread.
Advance = Callable[[int], None]

#: Bytes that are read, or summed, at a time: the checksum finds them in the cache.
_PIECE = 1 << 20
#: Bytes that are written at a time. For larger writes Linux takes larger pages for its cache, which
#: it may have to make by moving other memory: 500 MB took up to 4 s, in these pieces 0.2 s.
_WRITTEN = 1 << 18


def write_array(file: BinaryIO, array: Array, advance: Advance | None = None) -> int:
    """Append a contiguous array to a buffered file; returns the checksum of its bytes."""
    data = array.reshape(-1).view(np.uint8)
    if thread_count() == 1 or data.size <= _PIECE:
        checksum = 0
        for part in _parts(data, _WRITTEN):
            checksum = crc.extend_array(checksum, part)
            _write((part,), file, advance)
        return checksum
    parts = _parts(data, _PIECE)
    sums = [0] * len(parts)

    def add_up(i: int) -> None:
        sums[i] = crc.extend_array(0, parts[i])

    parallel(
        [
            partial(_write, _parts(data, _WRITTEN), file, advance),
            *(partial(add_up, i) for i in range(len(parts))),
        ]
    )
    return _joined(sums, [part.size for part in parts])


def read_array(
    file: BinaryIO, offset: int, out: Array, advance: Advance | None = None
) -> int | None:
    """Fill a contiguous array from a file; the checksum of its bytes, None if the file ends."""
    parts = _parts(out.reshape(-1).view(np.uint8), _PIECE)
    sums: list[int | None] = [None] * len(parts)

    def read(i: int) -> None:
        part = parts[i]
        if not _fill(file, offset + i * _PIECE, part):
            return
        sums[i] = crc.extend_array(0, part)
        if advance is not None:
            advance(part.size)

    parallel([partial(read, i) for i in range(len(parts))])
    found = [s for s in sums if s is not None]
    return _joined(found, [p.size for p in parts]) if len(found) == len(parts) else None


def sum_file(file: BinaryIO, offset: int, size: int, advance: Advance | None = None) -> int | None:
    """The checksum of a part of a file, None if it ends before; nothing of it is kept."""
    starts = range(0, size, _PIECE)
    sums: list[int | None] = [None] * len(starts)

    def read(i: int) -> None:
        part = np.empty(min(_PIECE, size - starts[i]), np.uint8)
        if _fill(file, offset + starts[i], part):
            sums[i] = crc.extend_array(0, part)
            if advance is not None:
                advance(part.size)

    parallel([partial(read, i) for i in range(len(starts))])
    found = [s for s in sums if s is not None]
    sizes = [min(_PIECE, size - start) for start in starts]
    return _joined(found, sizes) if len(found) == len(sizes) else None


def _fill(file: BinaryIO, offset: int, out: Array) -> bool:
    """Fill an array of bytes from a place of a file; False if that ends before."""
    done = 0
    while done < out.size:
        count = _read_at(file, offset + done, out[done:].data)
        if not count:
            return False
        done += count
    return True


def _read_at(file: BinaryIO, offset: int, out: memoryview) -> int:
    """Bytes from a place of a file, whatever its position is; how many there were."""
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [out], offset)
    with open(file.name, "rb", 0) as own:  # Windows: a position of its own
        own.seek(offset)
        return own.readinto(out) or 0


def _parts(data: Array, size: int) -> list[Array]:
    return [data[at : at + size] for at in range(0, data.size, size)]


def _write(parts: tuple[Array, ...] | list[Array], file: BinaryIO, advance: Advance | None) -> None:
    for part in parts:
        file.write(part.data)
        if advance is not None:
            advance(part.size)


def _joined(sums: list[int], sizes: list[int]) -> int:
    """The checksum of all parts; all but the last have one size."""
    return reduce(lambda a, b: crc.combine(a, b[0], b[1]), zip(sums, sizes), 0)
