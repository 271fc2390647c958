"""What a tensor bundle's index says of each tensor: entries, as TensorFlow's messages.

    encode_entry(Entry(dtype=1, shape=(2, 3), size=24, checksum=…)) -> a BundleEntryProto's bytes
    decode_entry(data) -> Entry

Parts of partitioned variables are stored under keys of their own (``slice_key``). The files
themselves are read and written in tensor_bundle.py.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from headrace import errors
from headrace.wire.sorted_table import put_varint, take_varint

__all__ = [
    "NUMBERS",
    "STRING",
    "TYPES",
    "Entry",
    "Slice",
    "as_message",
    "as_number",
    "bytes_field",
    "damaged",
    "decode_entry",
    "encode_entry",
    "number_field",
    "read_fields",
    "slice_key",
]

#: TensorFlow's number of ``tf.string``.
STRING = 7
#: TensorFlow's number of each type.
NUMBERS: dict[Any, int] = {
    np.dtype(t): n
    for t, n in (
        (np.float32, 1),
        (np.float64, 2),
        (np.int32, 3),
        (np.uint8, 4),
        (np.int16, 5),
        (np.int8, 6),
        (object, STRING),
        (np.complex64, 8),
        (np.int64, 9),
        (np.bool_, 10),
        (ml_dtypes.bfloat16, 14),
        (np.uint16, 17),
        (np.complex128, 18),
        (np.float16, 19),
        (np.uint32, 22),
        (np.uint64, 23),
    )
}
TYPES = {n: t for t, n in NUMBERS.items()}
#: Types whose arrays NumPy has under another name: quantized numbers.
TYPES.update(
    {
        11: np.dtype(np.int8),
        12: np.dtype(np.uint8),
        13: np.dtype(np.int32),
        15: np.dtype(np.int16),
        16: np.dtype(np.uint16),
    }
)


class Slice(NamedTuple):
    """A part of a tensor: (start, length) of each dimension; length -1 is all of it."""

    extents: tuple[tuple[int, int], ...]


class Entry(NamedTuple):
    """What the index says of a tensor."""

    dtype: int
    shape: tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: int = 0
    slices: tuple[Slice, ...] = ()


def number_field(number: int, value: int) -> bytes:
    """A field with a number; nothing for 0."""
    return put_varint(number << 3) + put_varint(value & 0xFFFFFFFFFFFFFFFF) if value else b""


def bytes_field(number: int, data: bytes) -> bytes:
    """A field with a message or a text."""
    return put_varint(number << 3 | 2) + put_varint(len(data)) + data


def encode_entry(entry: Entry) -> bytes:
    """A BundleEntryProto."""
    dims = b"".join(bytes_field(2, number_field(1, d)) for d in entry.shape)
    out = (
        number_field(1, entry.dtype)
        + bytes_field(2, dims)
        + number_field(3, entry.shard)
        + number_field(4, entry.offset)
    )
    out += number_field(5, entry.size)
    if entry.checksum:
        out += put_varint(6 << 3 | 5) + struct.pack("<I", entry.checksum)
    for part in entry.slices:
        extents = b""
        for start, length in part.extents:
            # an extent without a length is the whole dimension
            extents += bytes_field(
                1, number_field(1, start) + (b"" if length < 0 else b"\x10" + put_varint(length))
            )
        out += bytes_field(7, extents)
    return out


def read_fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: numbers as int, the rest as bytes."""
    out: list[tuple[int, Any]] = []
    at = 0
    if not isinstance(data, bytes):
        raise damaged("an entry of the index has a number in the place of a message")
    while at < len(data):
        tag, at = take_varint(data, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = take_varint(data, at)
        elif kind == 2:
            size, at = take_varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise damaged("an entry of the index is not a message")
        if at > len(data):
            raise damaged("an entry of the index is cut off")
        out.append((tag >> 3, value))
    return out


def damaged(why: str) -> errors.DataLossError:
    """The error for a checkpoint that cannot be read."""
    return errors.DataLossError(None, None, f"Unable to read the checkpoint: {why}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def as_number(value: int) -> int:
    """A field's value, if the message has a number there."""
    if not isinstance(value, int):
        raise damaged("an entry of the index has a field of the wrong kind")
    return value


def as_message(value: bytes) -> bytes:
    """A field's value, if the message has a message or a text there."""
    if not isinstance(value, bytes):
        raise damaged("an entry of the index has a field of the wrong kind")
    return value


def decode_entry(data: bytes) -> Entry:
    """The entry that a BundleEntryProto describes; damaged ones raise DataLossError."""
    dtype = shard = offset = size = checksum = 0
    shape: tuple[int, ...] = ()
    slices: list[Slice] = []
    for number, value in read_fields(data):
        if number == 1:
            dtype = as_number(value)
        elif number == 2:
            dims = [v for n, v in read_fields(as_message(value)) if n == 2]
            shape = tuple(
                sum(_signed(as_number(v)) for n, v in read_fields(as_message(d)) if n == 1)
                for d in dims
            )
        elif number == 3:
            shard = as_number(value)
        elif number == 4:
            offset = as_number(value)
        elif number == 5:
            size = as_number(value)
        elif number == 6:
            (checksum,) = struct.unpack("<I", as_message(value))
        elif number == 7:
            slices.append(_decode_slice(as_message(value)))
    if any(d < 0 for d in shape):
        raise damaged("a tensor has a negative dimension")
    return Entry(dtype, shape, shard, offset, size, checksum, tuple(slices))


def _decode_slice(data: bytes) -> Slice:
    extents = []
    for number, value in read_fields(data):
        if number == 1:
            parts = dict(read_fields(as_message(value)))
            extents.append(
                (
                    _signed(as_number(parts.get(1, 0))),
                    _signed(as_number(parts.get(2, -1 & (1 << 64) - 1))),
                )
            )
    return Slice(tuple(extents))


def _ordered_unsigned(value: int) -> bytes:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _ordered_signed(value: int) -> bytes:
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    raw = bytearray((value & (1 << 80) - 1).to_bytes(10, "big")[10 - length :])
    header = (0xFFFF << (16 - length)) & 0xFFFF
    raw[0] ^= header >> 8
    if length > 1:
        raw[1] ^= header & 0xFF
    return bytes(raw)


def slice_key(name: str, part: Slice) -> bytes:
    """The key under which a part of a tensor is stored."""
    escaped = name.encode().replace(b"\xff", b"\xff\x00").replace(b"\0", b"\0\xff")
    out = _ordered_unsigned(0) + escaped + b"\0\1" + _ordered_unsigned(len(part.extents))
    for start, length in part.extents:
        out += _ordered_signed(start) + _ordered_signed(length)
    return out
