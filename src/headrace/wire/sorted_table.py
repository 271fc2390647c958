"""Sorted string tables: the key-value files (LevelDB's format) that checkpoints keep their index
in.

A file is blocks and a footer. A block is entries (bytes shared with the key before, own bytes of
the key, the value), the places where keys are stored whole (every 16th), a byte for the compression
and a masked CRC. The last block lists the others. TensorFlow writes tables of tensor bundles
without compression, in blocks of 256 KB.

    write_table(file, [(b"", header), (b"w", entry)])         # sorted by key
    for key, value in read_table(data): ...
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from headrace import errors
from headrace.wire import crc

__all__ = ["ends_as_table", "put_varint", "read_table", "take_varint", "write_table"]

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_BLOCK_SIZE = 262144
_RESTART_INTERVAL = 16


def put_varint(value: int) -> bytes:
    """A number, seven bits a byte."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def take_varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends); DataLossError if there is none."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _damaged("a number is cut off")


def _damaged(why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"Corrupted table: {why}")


# writing ------------------------------------------------------------------------------------------


class _Block:
    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.data = bytearray()
        self.restarts = [0]
        self.count = 0
        self.last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count < self.interval:
            limit = min(len(key), len(self.last))
            while shared < limit and key[shared] == self.last[shared]:
                shared += 1
        else:
            self.restarts.append(len(self.data))
            self.count = 0
        self.data += put_varint(shared) + put_varint(len(key) - shared) + put_varint(len(value))
        self.data += key[shared:] + value
        self.last = key
        self.count += 1

    def finish(self) -> bytes:
        return bytes(self.data) + struct.pack(
            f"<{len(self.restarts) + 1}I", *self.restarts, len(self.restarts)
        )

    def size(self) -> int:
        return len(self.data) + 4 * (len(self.restarts) + 1)


def write_table(file: BinaryIO, items: Iterable[tuple[bytes, bytes]]) -> int:
    """Write entries, which must be sorted by key; returns the size."""
    place = 0
    index = _Block(1)
    block = _Block(_RESTART_INTERVAL)
    pending: bytes | None = None  # the handle of a block that the index does not have yet

    def emit(data: bytes) -> bytes:
        nonlocal place
        handle = put_varint(place) + put_varint(len(data))
        whole = data + b"\0"
        file.write(whole + struct.pack("<I", crc.masked(whole)))
        place += len(data) + _TRAILER
        return handle

    for key, value in items:
        if pending is not None:
            index.add(_between(block.last, key), pending)
            pending, block = None, _Block(_RESTART_INTERVAL)
        block.add(key, value)
        if block.size() >= _BLOCK_SIZE:
            pending = emit(block.finish())
    if pending is None and block.data:
        pending = emit(block.finish())
    if pending is not None:
        index.add(_after(block.last), pending)
    metaindex = emit(_Block(_RESTART_INTERVAL).finish())
    footer = metaindex + emit(index.finish())
    file.write(footer.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC))
    return place + _FOOTER


def _between(low: bytes, high: bytes) -> bytes:
    """A short key with ``low <= key < high``."""
    limit = min(len(low), len(high))
    same = 0
    while same < limit and low[same] == high[same]:
        same += 1
    if same < limit and low[same] < 0xFF and low[same] + 1 < high[same]:
        return low[:same] + bytes([low[same] + 1])
    return low


def _after(key: bytes) -> bytes:
    """A short key that is not below ``key``."""
    for i, byte in enumerate(key):
        if byte != 0xFF:
            return key[:i] + bytes([byte + 1])
    return key


# reading ------------------------------------------------------------------------------------------


def ends_as_table(file: BinaryIO) -> bool:
    """Whether a file ends as tables do."""
    size = file.seek(0, 2)
    if size < _FOOTER:
        return False
    file.seek(size - 8)
    return bool(struct.unpack("<Q", file.read(8))[0] == _MAGIC)


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a table; DataLossError where the file is damaged."""
    if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise errors.DataLossError(None, None, "not an sstable (bad magic number)")
    footer = data[-_FOOTER:]
    _, at = take_varint(footer, 0)
    _, at = take_varint(footer, at)
    offset, at = take_varint(footer, at)
    size, _ = take_varint(footer, at)
    for _, handle in _entries(_block(data, offset, size)):
        offset, at = take_varint(handle, 0)
        size, _ = take_varint(handle, at)
        yield from _entries(_block(data, offset, size))


def _block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size + _TRAILER
    if end > len(data) - _FOOTER or size < 4:
        raise _damaged("a block lies outside of the file")
    whole = data[offset : offset + size + 1]
    if crc.masked(whole) != struct.unpack("<I", data[end - 4 : end])[0]:
        raise _damaged("block checksum mismatch")
    if whole[-1] == 1:
        return _unpack_snappy(whole[:-1])
    if whole[-1] != 0:
        raise _damaged(f"compression {whole[-1]} is not known")
    return whole[:-1]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    (restarts,) = struct.unpack("<I", block[-4:])
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise _damaged("a block is too short")
    at, key = 0, b""
    while at < end:
        shared, at = take_varint(block, at)
        own, at = take_varint(block, at)
        size, at = take_varint(block, at)
        if shared > len(key) or at + own + size > end:
            raise _damaged("an entry lies outside of its block")
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + size]
        at += size


def _unpack_snappy(data: bytes) -> bytes:
    """Snappy's format.

    A length, then runs of bytes that are given or copied from what is there already.
    """
    size, at = take_varint(data, 0)
    if size > 64 * len(data) + 64:
        raise _damaged("a compressed block declares more than it can hold")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                n = length - 59
                length = int.from_bytes(data[at : at + n], "little")
                at += n
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at] if at < len(data) else 0
            at += 1
        else:
            n = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + n], "little")
            at += n
        if not 0 < offset <= len(out) or len(out) + length > size:
            raise _damaged("a compressed block refers to bytes that are not there")
        for _ in range(length):
            out.append(out[-offset])
    if len(out) != size:
        raise _damaged("a compressed block has another length than it declares")
    return bytes(out)
