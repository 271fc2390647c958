"""Reading many serialized ``tf.train.Example`` messages at once, feature by feature.

The records of a file usually have the same keys in the same order, while the sizes of their values
differ. Then all of them are read together: the records lie end to end in one array, and every step
of reading (a tag, a length, the comparison of a key) is done at the current place of all records by
one NumPy operation. Lists of integers are decoded together as well.

    >>> reader = ColumnReader((b"ids",))
    >>> reader.read(records)  # kind, all values, how many of them belong to each record
    [Column(kind=3, values=array([7, 8, 9]), counts=array([2, 0, 1]))]

Whatever is unusual (another order, numbers that are not packed, a damaged record) makes ``read``
return None: the records are then read one by one by :mod:`headrace.wire.example_reader`, which
finds the same, or what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.wire.example_reader import (
    BYTES,
    FLOAT,
    WireError,
    entries,
    fields,
    packed_integers,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Column", "ColumnReader"]

_F4 = np.dtype("<f4")
_U1 = np.dtype(np.uint8)
#: Fewer records than this are read one by one.
MIN_RECORDS = 8
#: After so many batches in a row that were unusual it is not tried again.
MAX_UNUSUAL_BATCHES = 8
#: Bytes of a length: 28 bits.
_LENGTH_BYTES = 4


class Column(NamedTuple):
    """One feature of all records.

    Its values, flat (bytes: a list), and their number in each record.
    """

    kind: int
    values: Any
    counts: Any


class _Unusual(Exception):
    """The records cannot be read together."""


class ColumnReader:
    """Reads the features with the given keys. It may be used from several threads."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = tuple(keys)
        self._order: tuple[bytes, ...] = ()
        self._misses = 0

    def read(self, records: Sequence[bytes]) -> list[Column | None] | None:
        """What there is for each key.

        None for a key that no record has. None for all if the records are unusual.
        """
        if len(records) < MIN_RECORDS or self._misses > MAX_UNUSUAL_BATCHES:
            return None
        try:
            found = self._attempt(records)
        except (_Unusual, WireError):
            self._misses += 1
            return None
        self._misses = 0
        return found

    def _attempt(self, records: Sequence[bytes]) -> list[Column | None]:
        if self._order:
            try:
                return self._read(records)
            except _Unusual:
                pass
        self._order = _keys_of(records[0])
        return self._read(records)

    def _read(self, records: Sequence[bytes]) -> list[Column | None]:
        order = self._order
        padding = bytes(16 + max(map(len, order), default=0))
        joined = b"".join([*records, padding])
        walk = _Walk(np.frombuffer(joined, _U1), np.array([len(r) for r in records]))
        walk.enter()
        wanted = frozenset(self.keys)
        found: dict[bytes, tuple[int, Any, Any]] = {}
        for key in order:
            if key in wanted:
                found[key] = walk.feature(key)
            else:
                walk.entry(key)
        walk.finish()
        return [_column(joined, *found[k]) if k in found else None for k in self.keys]


def _keys_of(record: bytes) -> tuple[bytes, ...]:
    top = fields(record, 0, len(record))
    if len(top) != 1 or top[0][0] != 1:
        raise _Unusual
    return tuple(entries(record, top[0][1], top[0][2]))


class _Walk:
    """The current place in each record. What is unusual is noted, and looked at in the end."""

    def __init__(self, data: Any, sizes: Any) -> None:
        self.data = data
        self.ends = sizes.cumsum()
        self.at = self.ends - sizes
        self.bad = np.zeros(len(sizes), np.bool_)

    def byte(self, at: Array) -> Any:
        return self.data.take(at, mode="clip")

    def length(self, at: Array) -> tuple[Any, Any]:
        """The lengths that are stored at ``at``, and the places after them."""
        byte = self.byte(at).astype(np.int64)
        at = at + 1
        if byte.max() < 0x80:
            return byte, at
        value, more = byte & 0x7F, byte >= 0x80
        for i in range(1, _LENGTH_BYTES):
            byte = self.byte(at) * more.astype(np.int64)
            value |= (byte & 0x7F) << (7 * i)
            at += more
            more = byte >= 0x80
            if not more.any():
                return value, at
        raise _Unusual

    def tagged(self, at: Array, tag: int) -> tuple[Any, Any]:
        """Start and end of what follows a tag."""
        self.bad |= self.byte(at) != tag
        size, at = self.length(at + 1)
        return at, at + size

    def enter(self) -> None:
        """Into the one field that each record consists of."""
        self.at, end = self.tagged(self.at, 0x0A)
        self.bad |= end != self.ends

    def entry(self, key: bytes) -> tuple[Any, Any]:
        """Start and end of the value of the next entry, which must have this key."""
        if len(key) >= 0x80:
            raise _Unusual
        at, stop = self.tagged(self.at, 0x0A)
        head = np.frombuffer(bytes([0x0A, len(key)]) + key, _U1)
        places = at + np.arange(len(head))[:, None]
        self.bad |= (self.byte(places) != head[:, None]).any(axis=0)
        start, end = self.tagged(at + len(head), 0x12)
        self.bad |= end != stop
        self.at = stop
        return start, stop

    def feature(self, key: bytes) -> tuple[int, Any, Any]:
        """Kind, starts and ends of the values: one byte string, or packed numbers, or nothing."""
        at, stop = self.entry(key)
        tag = int(self.byte(at[:1])[0])
        if tag not in (0x0A, 0x12, 0x1A):
            raise _Unusual
        start, end = self.tagged(at, tag)
        self.bad |= end != stop
        empty = start == stop
        if empty.all():
            return tag >> 3, start, end
        bad = self.bad.copy()
        at, end = self.tagged(start, 0x0A)
        if empty.any():  # an empty list has nothing inside
            at, end = np.where(empty, stop, at), np.where(empty, stop, end)
            self.bad = np.where(empty, bad, self.bad)
        self.bad |= end != stop
        return tag >> 3, at, end

    def finish(self) -> None:
        if (self.bad | (self.at != self.ends)).any():
            raise _Unusual


def _column(joined: bytes, kind: int, starts: Array, ends: Array) -> Column:
    spans = zip(starts.tolist(), ends.tolist())
    if kind == BYTES:
        # an empty list is not told from a list of one empty string by its span: what comes before
        # it tells
        if (starts == ends).any():
            raise _Unusual
        return Column(kind, [joined[lo:hi] for lo, hi in spans], np.ones(len(starts), np.int64))
    sizes = ends - starts
    raw = b"".join([joined[lo:hi] for lo, hi in spans])
    if kind == FLOAT:
        if (sizes & 3).any():
            raise _Unusual
        return Column(kind, np.frombuffer(raw, _F4), sizes >> 2)
    return Column(kind, *_integers(raw, sizes))


def _integers(raw: bytes, sizes: Array) -> tuple[Any, Any]:
    """The numbers in lists of so many bytes, and their counts."""
    if not raw:
        return np.empty(0, np.int64), sizes
    if raw.isascii():  # every number is one byte
        return np.frombuffer(raw, _U1).astype(np.int64), sizes
    last = np.frombuffer(raw, _U1) < 0x80
    some = sizes > 0
    stops = sizes.cumsum()[some]
    if not last.take(stops - 1).all():
        raise _Unusual
    counts = np.zeros(len(sizes), np.int64)
    counts[some] = np.add.reduceat(last, stops - sizes[some], dtype=np.int64)
    return packed_integers(raw), counts
