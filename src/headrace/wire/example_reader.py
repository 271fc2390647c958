"""Reading serialized ``tf.train.Example`` messages straight from their bytes.

A protocol message is read field by field; of an Example only the asked-for features are decoded,
and lists of numbers are read as whole arrays. Most files hold records of very few *layouts* (same
keys, same sizes): where a length was seen before, the bytes between the values are compared with
those of the earlier record, and if they are equal the values are where they were then. Many records
of one layout are read together, as the columns of one matrix.

    >>> reader = ExampleReader((b"label",))
    >>> reader.read(b"\\n\\x0e\\n\\x0c\\n\\x05label\\x12\\x03\\x1a\\x01\\x03")  # kind, values
    [(3, array([3]))]

Wire format: a message is a sequence of ``tag, value``; a tag is ``number << 3 | wire type``; wire
type 2 is a length and so many bytes. Example {1: Features}; Features {1: entry}*; entry {1: key, 2:
Feature}; Feature {1: BytesList, 2: FloatList or 3: Int64List}; a list {1: value}*, numbers usually
*packed* into one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.wire.example_messages import example_class

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "BYTES",
    "FLOAT",
    "INT64",
    "ExampleReader",
    "WireError",
    "fields",
    "packed_integers",
    "read_list",
    "varints",
]

#: The kinds of a feature, by field number.
BYTES, FLOAT, INT64 = 1, 2, 3

#: A feature as it was found: (kind, values), values a list of bytes or an array.
Found = tuple[int, Any]
_F4 = np.dtype("<f4")
_U1 = np.dtype(np.uint8)
_LIST_TAGS = (0x0A, 0x12, 0x1A)
#: Lists of up to so many bytes are decoded by a loop, longer ones by protobuf.
_SHORT = 12
#: Layouts kept by a reader.
_MAX_LAYOUTS = 256


class WireError(ValueError):
    """The bytes are not such a message."""


# numbers and fields ------------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and the place after it."""
    value = shift = 0
    while True:
        try:
            byte = data[at]
        except IndexError:
            raise WireError("truncated number") from None
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise WireError("number too long")


def fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int]]:
    """The fields of the message in ``data[at:end]`` that have a length.

    (number, start, end). Others are skipped.
    """
    found = []
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        if kind == 2:
            if at >= end:
                raise WireError("truncated message")
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            found.append((tag >> 3, at, at + size))
            at += size
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise WireError(f"wire type {kind}")
    if at != end:
        raise WireError("truncated message")
    return found


def varints(data: bytes, at: int, end: int) -> Array:
    """The packed int64 numbers in ``data[at:end]``."""
    size = end - at
    if size == 1 and data[at] < 0x80:
        return np.array((data[at],), np.int64)
    raw = data[at:end]
    if raw.isascii():  # every number is one byte
        return np.frombuffer(raw, _U1).astype(np.int64)
    if size <= _SHORT:
        return np.array(_loop(raw), np.int64)
    return packed_integers(raw)


def _loop(raw: bytes) -> list[int]:
    values, at, end = [], 0, len(raw)
    while at < end:
        value, at = _varint(raw, at)
        values.append(value if value < 1 << 63 else value - (1 << 64))
    return values


def packed_integers(raw: bytes) -> Array:
    """Decoded by protobuf: such a list, with a tag and its length before it, is an Int64List."""
    size, head = len(raw), [0x0A]
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    try:
        return np.array(example_class("Int64List").FromString(bytes(head) + raw).value, np.int64)
    except Exception:  # protobuf's DecodeError, without importing it for the common case
        raise WireError("truncated number") from None


# lists --------------------------------------------------------------------------------------------


def read_list(data: bytes, kind: int, at: int, end: int) -> Array | list[bytes]:
    """The values of a BytesList, FloatList or Int64List."""
    if at < end and data[at] == 0x0A:  # the usual form: one value, or numbers packed into one
        size, start = _varint(data, at + 1)
        if start + size == end:
            return [data[start:end]] if kind == BYTES else _packed(data, kind, start, end)
    if kind == BYTES:
        return [data[lo:hi] for number, lo, hi in fields(data, at, end) if number == 1]
    return _mixed(data, kind, at, end)


def _packed(data: bytes, kind: int, at: int, end: int) -> np.ndarray[Any, Any]:
    if kind == INT64:
        return varints(data, at, end)
    if (end - at) & 3:
        raise WireError("truncated float")
    return np.frombuffer(data, _F4, (end - at) >> 2, at)


def _mixed(data: bytes, kind: int, at: int, end: int) -> Array:
    """Numbers that are not packed, or packed in several parts."""
    parts: list[Any] = []
    single = 0x08 if kind == INT64 else 0x0D
    while at < end:
        tag = data[at]
        if tag == 0x0A:
            size, at = _varint(data, at + 1)
            if at + size > end:
                raise WireError("truncated list")
            parts.append(_packed(data, kind, at, at + size))
            at += size
        elif tag == single and kind == INT64:
            start = at + 1
            _, at = _varint(data, start)
            parts.append(varints(data, start, at))
        elif tag == single:
            parts.append(_packed(data, kind, at + 1, at + 5))
            at += 5
        else:
            raise WireError(f"tag {tag} in a list")
    if at != end:
        raise WireError("truncated list")
    empty = np.empty(0, np.int64 if kind == INT64 else np.float32)
    return np.concatenate(parts) if parts else empty


def feature_span(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Kind, start and end of the list in a Feature; kind 0 if it has none. The last one counts."""
    if at == end:
        return 0, at, at
    tag = data[at]
    if tag in _LIST_TAGS:  # the usual form: just the list
        size, start = _varint(data, at + 1)
        if start + size == end:
            return tag >> 3, start, end
    found = [f for f in fields(data, at, end) if f[0] <= INT64]
    return found[-1] if found else (0, at, at)


def _scan(
    data: bytes, at: int, end: int, wanted: frozenset[bytes], found: dict[bytes, tuple[int, int]]
) -> None:
    """Puts where the wanted entries of a map have their values into ``found``.

    Of equal keys the last counts.
    """
    try:
        while at < end:
            if data[at] != 0x0A:
                raise WireError(f"tag {data[at]} in a map")
            size = data[at + 1]
            at += 2
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            stop = at + size
            # the usual form, written out for speed: a short key, then the value
            value = at + 2 + data[at + 1] if size > 1 else stop
            if value < stop and data[at] == 0x0A and data[at + 1] < 0x80 and data[value] == 0x12:
                key = data[at + 2 : value]
                if key in wanted:
                    size, value = _varint(data, value + 1)
                    found[key] = (value, stop)
                    if value + size != stop:
                        _entry(data, at, stop, found)
            else:
                _entry(data, at, stop, found)
            at = stop
    except IndexError:
        raise WireError("truncated map") from None
    if at != end:
        raise WireError("truncated map")


def _entry(data: bytes, at: int, end: int, found: dict[bytes, tuple[int, int]]) -> None:
    """An entry with its parts in any order."""
    key, value = b"", (end, end)
    for part, start, stop in fields(data, at, end):
        if part == 1:
            key = data[start:stop]
        elif part == 2:
            value = (start, stop)
    found[key] = value


def entries(data: bytes, at: int, end: int) -> dict[bytes, tuple[int, int]]:
    """A map's keys and where their values are."""
    found: dict[bytes, tuple[int, int]] = {}
    for number, lo, hi in fields(data, at, end):
        if number == 1:
            _entry(data, lo, hi, found)
    return found


# examples -----------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where the values of a feature are: one byte string, or packed numbers."""

    kind: int
    start: int
    end: int


class _Layout(NamedTuple):
    """The bytes around the values, and the places of the values; None for a key that is not
    there.
    """

    fixed: tuple[tuple[bytes, int], ...]
    places: tuple[_Place | None, ...]

    def matches(self, data: bytes) -> bool:
        for text, at in self.fixed:  # noqa: SIM110 (a generator costs more than the comparisons)
            if not data.startswith(text, at):
                return False
        return True


#: Stands for the layout of records of a length that never came before.
_UNSEEN: Any = ()


class ExampleReader:
    """Reads the features with the given keys.

    It may be used from several threads: layouts are replaced whole.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = tuple(keys)
        self._wanted = frozenset(keys)
        self._layouts: dict[int, _Layout | None] = {}

    def read(self, data: bytes) -> list[Found | None]:
        """What there is for each key.

        (kind, values) or None. A feature without a list counts as absent.
        """
        layout = self._layouts.get(len(data), _UNSEEN)
        if layout and layout.matches(data):
            return [None if p is None else (p[0], _value(data, p)) for p in layout.places]
        found = self._find(data)
        values = [None if f is None else (f[0], read_list(data, *f)) for f in found]
        self._learn(data, found, seen=layout is not _UNSEEN)
        return values

    def read_together(self, records: Sequence[bytes]) -> list[Any] | None:
        """Values of records that all have one layout: for each key (kind, matrix or list of bytes)
        or None.

        None if they have not, or if a number of theirs does not have the usual size.
        """
        size = len(records[0])
        for record in records:
            if len(record) != size:
                return None
        layout = self._layouts.get(size) or self._learned(records[0])
        if layout is None:
            return None
        matrix = np.frombuffer(b"".join(records), _U1).reshape(len(records), size)
        for text, at in layout.fixed:
            part = matrix[:, at : at + len(text)]
            if not (part == np.frombuffer(text, _U1)).all():
                return None
        return _columns(records, matrix, layout.places)

    def _find(self, data: bytes) -> list[tuple[int, int, int] | None]:
        """Kind, start and end of the list of each key."""
        features: dict[bytes, tuple[int, int]] = {}
        for number, lo, hi in fields(data, 0, len(data)):
            if number == 1:
                _scan(data, lo, hi, self._wanted, features)
        found: list[tuple[int, int, int] | None] = []
        for key in self.keys:
            place = features.get(key)
            span = (0, 0, 0) if place is None else feature_span(data, *place)
            found.append(span if span[0] else None)
        return found

    def _learned(self, data: bytes) -> _Layout | None:
        """The layout of a record of which others seem to have the same."""
        try:
            self._learn(data, self._find(data), seen=True)
        except WireError:
            return None
        return self._layouts.get(len(data))

    def _learn(self, data: bytes, found: list[tuple[int, int, int] | None], seen: bool) -> None:
        """A length that comes again is worth a layout."""
        if len(self._layouts) >= _MAX_LAYOUTS:
            self._layouts = {}
        self._layouts[len(data)] = _layout(data, found) if seen else None


def _layout(data: bytes, found: list[tuple[int, int, int] | None]) -> _Layout | None:
    """The layout of a record, None where its values are not simple ones.

    What lies between values must be equal.
    """
    places: list[_Place | None] = []
    for span in found:
        if span is None:
            places.append(None)
            continue
        kind, at, end = span
        inner = fields(data, at, end)
        if len(inner) != 1 or inner[0][2] != end or data[at] != 0x0A:
            return None
        places.append(_Place(kind, inner[0][1], end))
    fixed = []
    at = 0
    for start, end in sorted({(p.start, p.end) for p in places if p is not None}):
        fixed.append((data[at:start], at))
        at = end
    fixed.append((data[at:], at))
    return _Layout(tuple(f for f in fixed if f[0]), tuple(places))


def _value(data: bytes, place: _Place) -> Array | list[bytes]:
    kind, at, end = place
    if kind == BYTES:
        return [data[at:end]]
    if kind == FLOAT:
        return np.frombuffer(data, _F4, (end - at) >> 2, at)
    return varints(data, at, end)


def _columns(
    records: Sequence[bytes], matrix: Array, places: Sequence[_Place | None]
) -> list[Any] | None:
    out: list[Any] = []
    for place in places:
        if place is None:
            out.append(None)
            continue
        kind, at, end = place
        if kind == BYTES:
            out.append((kind, [record[at:end] for record in records]))
            continue
        columns = np.ascontiguousarray(matrix[:, at:end])
        if kind == FLOAT:
            out.append((kind, columns.view(_F4)))
            continue
        numbers = _numbers(columns)
        if numbers is None:
            return None
        out.append((kind, numbers.reshape(len(records), -1)))
    return out


def _numbers(columns: Array) -> Any:
    """The numbers in rows of packed bytes; None if the rows have different numbers of them."""
    if columns.max(initial=0) < 0x80:
        return columns.astype(np.int64)
    last = columns < 0x80
    if not (last == last[0]).all() or not last[0, -1]:
        return None
    return packed_integers(columns.tobytes())
