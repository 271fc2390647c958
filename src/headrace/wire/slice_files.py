"""V1 checkpoints: the files of TF before 1.0 (``SaverDef.V1``), each one sorted table of slices of
tensors.

    write_slice_file("/tmp/model", [("w", array.shape, None, array)])
    reader = SliceFileReader("/tmp/model")         # or a pattern: /tmp/model-?????-of-00002
    reader.names(), reader.shape("w"), reader.read("w")

The first entry (an empty key) lists the tensors, every other one holds a slice as a TensorProto.
Types are TensorFlow's numbers.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from headrace import errors
from headrace.wire.bundle_entries import (
    NUMBERS,
    TYPES,
    Slice,
    _decode_slice,
    as_message,
    as_number,
    bytes_field,
    damaged,
    read_fields,
    slice_key,
)
from headrace.wire.sorted_table import (
    ends_as_table,
    put_varint,
    read_table,
    take_varint,
    write_table,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["SliceFileReader", "is_slice_file", "slice_files_exist", "write_slice_file"]

STRING = 7
#: Field of a TensorProto by number of the type, and how elements are stored there.
_VARINTS = {
    3: 7,
    4: 7,
    5: 7,
    6: 7,
    9: 10,
    10: 11,
    11: 7,
    12: 7,
    13: 7,
    15: 7,
    16: 7,
    17: 7,
    19: 13,
    14: 13,
    22: 16,
    23: 17,
}
_FIXED = {1: (5, "<f4"), 2: (6, "<f8"), 8: (9, "<f4"), 18: (12, "<f8")}
_HALVES = {19: np.dtype(np.float16), 14: np.dtype(ml_dtypes.bfloat16)}


class _Known(NamedTuple):
    dtype: int
    shape: tuple[int, ...]
    parts: dict[Slice, tuple[int, bytes]]  # the file, the key in it


def slice_files_exist(pattern: str) -> bool:
    return bool(_files(pattern))


def is_slice_file(pattern: str) -> bool:
    """Whether the first file that fits is a sorted table, by its last bytes."""
    found = _files(pattern)
    if not found:
        return False
    with open(found[0], "rb") as file:
        return ends_as_table(file)


def _files(pattern: str) -> list[str]:
    if os.path.isfile(pattern):
        return [pattern]
    return sorted(p for p in glob.glob(pattern) if os.path.isfile(p))


def _no_table(path: str, reason: str) -> errors.DataLossError:
    return errors.DataLossError(
        None,
        None,
        f"Unable to open table file {path}: {reason}: perhaps your file is in a different file "
        "format and you need to use a different restore operator?",
    )


class SliceFileReader:
    """Reads the files that fit a pattern as one checkpoint."""

    def __init__(self, pattern: str) -> None:
        self.prefix = pattern
        files = _files(pattern)
        if not files and os.path.isdir(pattern):
            raise _no_table(pattern, f"Failed precondition: {pattern}; Is a directory")
        if not files:
            raise errors.NotFoundError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                f"files for {pattern}",
            )
        self._tables: list[dict[bytes, bytes]] = []
        self._known: dict[str, _Known] = {}
        for number, path in enumerate(files):
            with open(path, "rb") as file:
                if not ends_as_table(file):
                    raise _no_table(path, "Data loss: not an sstable (bad magic number)")
                file.seek(0)
                self._tables.append(dict(read_table(file.read())))
            self._read_list(number)

    def _read_list(self, number: int) -> None:
        head = dict(read_fields(self._tables[number].get(b"", b"")))
        for field, data in read_fields(head.get(1, b"")):
            if field != 1:
                continue
            name, dtype, parts = "", 0, []
            shape: tuple[int, ...] = ()
            for key, value in read_fields(data):
                if key == 1:
                    name = as_message(value).decode("utf-8", "replace")
                elif key == 2:
                    shape = _shape(value)
                elif key == 3:
                    dtype = as_number(value)
                elif key == 4:
                    parts.append(_decode_slice(value))
            known = self._known.setdefault(name, _Known(dtype, shape, {}))
            known.parts.update((p, (number, slice_key(name, p))) for p in parts)

    def names(self) -> list[str]:
        return sorted(self._known)

    def entries(self) -> list[tuple[bytes, int, tuple[int, ...], int]]:
        """(name, type number, shape, number of parts) of all tensors."""
        known = sorted(self._known.items())
        return [(n.encode(), k.dtype, k.shape, len(k.parts)) for n, k in known]

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def _entry(self, name: str) -> _Known:
        found = self._known.get(name)
        if found is None:
            raise errors.NotFoundError(
                None, None, f'Tensor name "{name}" not found in checkpoint files {self.prefix}'
            )
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entry(name).shape

    def dtype(self, name: str) -> int:
        return self._entry(name).dtype

    def stored_bytes(self, name: str) -> int:
        """Bytes of a tensor as an array; of strings, as they are stored."""
        known = self._entry(name)
        kind = TYPES.get(known.dtype)
        if kind is None or kind.kind == "O":
            return sum(len(self._tables[n].get(key, b"")) for n, key in known.parts.values())
        return math.prod(known.shape) * int(kind.itemsize)

    def read(self, name: str) -> Any:
        """A tensor, put together from its parts."""
        known = self._entry(name)
        pieces = [(p, self._piece(name, known, p)) for p in known.parts]
        if sum(piece.size for _, piece in pieces) != math.prod(known.shape):
            raise errors.DataLossError(None, None, f"The checkpoint has not all of '{name}'")
        if len(pieces) == 1:
            return pieces[0][1].reshape(known.shape)
        out = np.empty(known.shape, pieces[0][1].dtype)
        for part, piece in pieces:
            where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
            out[where] = _shaped(piece, out[where].shape, name)
        return out

    def read_part(self, name: str, part: Slice) -> Any:
        known = self._entry(name)
        if part in known.parts:
            lengths = [d if n < 0 else n for (_, n), d in zip(part.extents, known.shape)]
            return _shaped(self._piece(name, known, part), lengths, name)
        where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
        return np.ascontiguousarray(self.read(name)[where])

    def _piece(self, name: str, known: _Known, part: Slice) -> Any:
        number, key = known.parts[part]
        for field, value in read_fields(self._tables[number].get(key, b"")):
            if field == 2:
                data = dict(read_fields(value)).get(3, b"")
                return _elements(data, known.dtype, name)
        raise errors.DataLossError(None, None, f"A slice of '{name}' is missing in the checkpoint")


def _shaped(values: Any, shape: Sequence[int], name: str) -> Any:
    if values.size != math.prod(shape):
        raise damaged(f"'{name}' has {values.size} elements, not {list(shape)}")
    return values.reshape(shape)


def _shape(data: bytes) -> tuple[int, ...]:
    dims = [dict(read_fields(v)).get(1, 0) for n, v in read_fields(data) if n == 2]
    return tuple(as_number(d) for d in dims)


def _elements(data: bytes, dtype: int, name: str) -> Any:
    """The elements of a TensorProto, flat."""
    kind = TYPES.get(dtype)
    if kind is None:
        raise errors.UnimplementedError(
            None, None, f"'{name}' has the type number {dtype}, which cannot be read"
        )
    if dtype == STRING:
        items = [as_message(v) for n, v in read_fields(data) if n == 8]
        out = np.empty(len(items), object)
        out[:] = items
        return out
    if dtype in _FIXED:
        field, code = _FIXED[dtype]
        raw = b"".join(as_message(v) for n, v in read_fields(data) if n == field)
        return np.frombuffer(raw, code).view(kind).copy()
    values: list[int] = []
    for number, value in read_fields(data):
        if number == _VARINTS[dtype]:
            values.extend(_varints(value) if isinstance(value, bytes) else [value])
    wide = np.array(values, np.uint64).view(np.int64)
    if dtype in _HALVES:
        return wide.astype(np.uint16).view(kind)
    return wide.astype(kind)


def _varints(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = take_varint(data, at)
        values.append(value)
    return values


# writing ------------------------------------------------------------------------------------------


def _slice_message(part: Slice) -> bytes:
    out = b""
    for start, length in part.extents:
        fields = (b"\x08" + put_varint(start) if start else b"") + (
            b"\x10" + put_varint(length) if length >= 0 else b""
        )
        out += bytes_field(1, fields)
    return out


def _tensor_message(array: Array, dtype: int) -> bytes:
    out = b"\x08" + put_varint(dtype) + bytes_field(2, b"")
    flat = np.ascontiguousarray(array).reshape(-1)
    if dtype == STRING:
        items = [v if isinstance(v, bytes) else str(v).encode() for v in flat.tolist()]
        return out + b"".join(bytes_field(8, v) for v in items)
    if dtype in _FIXED:
        field, code = _FIXED[dtype]
        return out + bytes_field(field, flat.view(code).tobytes())
    if dtype in _HALVES:
        flat = flat.view(np.uint16)
    values = flat.astype(np.int64).view(np.uint64).tolist()
    return out + bytes_field(_VARINTS[dtype], b"".join(put_varint(v) for v in values))


def write_slice_file(
    path: str, tensors: Iterable[tuple[str, tuple[int, ...], Slice | None, Any]]
) -> None:
    """Write one file of (name, shape of the whole tensor, which slice of it, values)."""
    listed: dict[str, tuple[tuple[int, ...], int, list[Slice]]] = {}
    items: dict[bytes, bytes] = {}
    for name, shape, part, value in tensors:
        array = np.asarray(value)
        dtype = NUMBERS[array.dtype]
        part = part or Slice(tuple((0, -1) for _ in shape))
        known = listed.setdefault(name, (shape, dtype, []))
        known[2].append(part)
        body = bytes_field(1, name.encode()) + bytes_field(2, _slice_message(part))
        items[slice_key(name, part)] = bytes_field(
            2, body + bytes_field(3, _tensor_message(array, dtype))
        )
    metas = b""
    for name, (shape, dtype, parts) in listed.items():
        dims = b"".join(bytes_field(2, b"\x08" + put_varint(d)) for d in shape)
        meta = bytes_field(1, name.encode()) + bytes_field(2, dims) + b"\x18" + put_varint(dtype)
        metas += bytes_field(1, meta + b"".join(bytes_field(4, _slice_message(p)) for p in parts))
    items[b""] = bytes_field(1, metas + bytes_field(2, b"\x08\x01"))
    temporary = f"{path}.tempstate{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            write_table(file, sorted(items.items()))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    os.replace(temporary, path)
