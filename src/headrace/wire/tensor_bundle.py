"""Tensor bundles: the files of TF's V2 checkpoints. ``prefix.index`` lists tensors,
``prefix.data-00000-of-00001`` has their bytes.

    with BundleWriter("/tmp/model") as writer:
        writer.add("w", array)
    reader = BundleReader("/tmp/model")
    reader.names(), reader.shape("w"), reader.read("w")

Written byte for byte as TensorFlow writes it. A writer's files get their names when they are whole,
so that a process that dies leaves the bundle that was there before: the data first, the index last.
What replaces or follows a bundle is on the disk before the old one goes; otherwise, as in
TensorFlow, the system writes it there in its own time.
Where a bundle of that name is there already, both are renamed to ``.staged`` first; from the moment
in which the index is staged, whoever opens the bundle next finishes the renaming. A tensor that is
one part of a larger one (a partitioned variable) is added with its place; a reader puts the parts
together. Nothing here knows of graphs; types are numbers of TensorFlow's ``DataType`` and NumPy's.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
import struct
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from headrace import errors
from headrace.runtime.allocator import allow_huge_pages, empty_small_pages
from headrace.wire import crc
from headrace.wire.checked_arrays import Advance, read_array, write_array
from headrace.wire.sorted_table import put_varint, read_table, take_varint, write_table

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "BundleReader",
    "BundleWriter",
    "Entry",
    "Slice",
    "bundle_exists",
    "data_path",
    "finish_staged",
    "index_path",
    "merge_bundles",
    "sync_bundle",
]

_HEADER = b"\x08\x01\x1a\x02\x08\x01"  # one shard, little-endian, version 1
_STRING = 7
_STAGED = ".staged"
#: Bytes of small tensors that are written together; parts of large ones (checked_arrays.py) are
#: larger, so that they are not copied into the buffer.
_BUFFER = 1 << 17

#: TensorFlow's number of each type.
_NUMBERS: dict[Any, int] = {
    np.dtype(t): n
    for t, n in (
        (np.float32, 1),
        (np.float64, 2),
        (np.int32, 3),
        (np.uint8, 4),
        (np.int16, 5),
        (np.int8, 6),
        (object, _STRING),
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
_TYPES = {n: t for t, n in _NUMBERS.items()}
#: Types whose arrays NumPy has under another name: quantized numbers.
_TYPES.update(
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


def index_path(prefix: str) -> str:
    return f"{prefix}.index"


def data_path(prefix: str, shard: int = 0, shards: int = 1) -> str:
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def bundle_exists(prefix: str) -> bool:
    return os.path.exists(index_path(prefix)) or os.path.exists(index_path(prefix) + _STAGED)


# names for whole files --------------------------------------------------------------------------


def _install(prefix: str, data: Sequence[tuple[str, str]], index: str) -> None:
    """Give finished files their names.

    ``data`` are pairs (present path, final path), ``index`` the present path of the index. Files
    that replace others are on the disk before they do.
    """
    final = index_path(prefix)
    if not os.path.exists(final):
        for source, target in data:
            os.replace(source, target)
        os.replace(index, final)
        return
    finish_staged(prefix)
    for stale in _staged_data(prefix):
        os.unlink(stale)
    sync_files([*(source for source, _ in data), index])
    for source, target in data:
        os.replace(source, target + _STAGED)
    os.replace(index, final + _STAGED)
    finish_staged(prefix)


def sync_files(paths: Iterable[str]) -> None:
    """Return when the contents of files are on the disk, not only in the system's memory."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def sync_bundle(prefix: str) -> None:
    """:func:`sync_files` for a bundle: before an older one, which it follows, is deleted."""
    data = glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????")
    with contextlib.suppress(FileNotFoundError):  # somebody else deleted it
        sync_files([*data, index_path(prefix)])


def _staged_data(prefix: str) -> list[str]:
    return glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????{_STAGED}")


def finish_staged(prefix: str) -> None:
    """Finish the renaming that a process which died had begun; nothing if there is none."""
    index = index_path(prefix)
    if not os.path.exists(index + _STAGED):
        return
    for path in [*_staged_data(prefix), index + _STAGED]:
        with contextlib.suppress(FileNotFoundError):  # another process may do the same
            os.replace(path, path.removesuffix(_STAGED))


# entries as messages ------------------------------------------------------------------------------


def _field(number: int, value: int) -> bytes:
    return put_varint(number << 3) + put_varint(value & 0xFFFFFFFFFFFFFFFF) if value else b""


def _part(number: int, data: bytes) -> bytes:
    return put_varint(number << 3 | 2) + put_varint(len(data)) + data


def encode_entry(entry: Entry) -> bytes:
    """A BundleEntryProto."""
    dims = b"".join(_part(2, _field(1, d)) for d in entry.shape)
    out = _field(1, entry.dtype) + _part(2, dims) + _field(3, entry.shard) + _field(4, entry.offset)
    out += _field(5, entry.size)
    if entry.checksum:
        out += put_varint(6 << 3 | 5) + struct.pack("<I", entry.checksum)
    for part in entry.slices:
        extents = b""
        for start, length in part.extents:
            # an extent without a length is the whole dimension
            extents += _part(
                1, _field(1, start) + (b"" if length < 0 else b"\x10" + put_varint(length))
            )
        out += _part(7, extents)
    return out


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: numbers as int, the rest as bytes."""
    out: list[tuple[int, Any]] = []
    at = 0
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
            raise _damaged("an entry of the index is not a message")
        if at > len(data):
            raise _damaged("an entry of the index is cut off")
        out.append((tag >> 3, value))
    return out


def _damaged(why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"Unable to read the checkpoint: {why}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _number(value: int) -> int:
    if not isinstance(value, int):
        raise _damaged("an entry of the index has a field of the wrong kind")
    return value


def _bytes(value: bytes) -> bytes:
    if not isinstance(value, bytes):
        raise _damaged("an entry of the index has a field of the wrong kind")
    return value


def decode_entry(data: bytes) -> Entry:
    dtype = shard = offset = size = checksum = 0
    shape: tuple[int, ...] = ()
    slices: list[Slice] = []
    for number, value in _fields(data):
        if number == 1:
            dtype = _number(value)
        elif number == 2:
            dims = [v for n, v in _fields(_bytes(value)) if n == 2]
            shape = tuple(
                sum(_signed(_number(v)) for n, v in _fields(_bytes(d)) if n == 1) for d in dims
            )
        elif number == 3:
            shard = _number(value)
        elif number == 4:
            offset = _number(value)
        elif number == 5:
            size = _number(value)
        elif number == 6:
            (checksum,) = struct.unpack("<I", _bytes(value))
        elif number == 7:
            slices.append(_decode_slice(_bytes(value)))
    if any(d < 0 for d in shape):
        raise _damaged("a tensor has a negative dimension")
    return Entry(dtype, shape, shard, offset, size, checksum, tuple(slices))


def _decode_slice(data: bytes) -> Slice:
    extents = []
    for number, value in _fields(data):
        if number == 1:
            parts = dict(_fields(_bytes(value)))
            extents.append(
                (
                    _signed(_number(parts.get(1, 0))),
                    _signed(_number(parts.get(2, -1 & (1 << 64) - 1))),
                )
            )
    return Slice(tuple(extents))


# keys of slices: TensorFlow's ordered code ------------------------------------------------------


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


# writing ------------------------------------------------------------------------------------------


class BundleWriter:
    """Writes a bundle of one shard.

    ``finish`` (or leaving a ``with`` block without an error) gives the files their names.
    ``advance``: told how many bytes more were written.
    """

    def __init__(self, prefix: str, advance: Advance | None = None) -> None:
        self.prefix = prefix
        self._advance = advance
        folder = os.path.dirname(prefix)
        if folder:
            with contextlib.suppress(FileExistsError):  # a file: opening will say so
                os.makedirs(folder, exist_ok=True)
        self._suffix = f".tempstate{os.getpid()}_{id(self):x}"
        self._file = open(data_path(prefix) + self._suffix, "wb", _BUFFER)  # noqa: SIM115
        self._place = 0
        self._entries: dict[bytes, Entry] = {}

    def add(self, name: str, value: Array, dtype: int | None = None) -> None:
        """Add a tensor.

        ``dtype``: TensorFlow's number where NumPy's type does not tell it (quantized types).
        """
        self._add(name.encode(), value, dtype)

    def add_slice(self, name: str, full_shape: Sequence[int], part: Slice, value: Array) -> None:
        """Add one part of a tensor."""
        array = np.asarray(value)
        key = name.encode()
        known = self._entries.get(key)
        if known is None:
            known = Entry(_NUMBERS[array.dtype], tuple(full_shape))
        self._entries[key] = known._replace(slices=(*known.slices, part))
        self._add(slice_key(name, part), array, None)

    def _add(self, key: bytes, value: Array | np.generic, dtype: int | None) -> None:
        if key in self._entries:
            raise ValueError(f"Adding duplicate key: {key.decode(errors='replace')}")
        array = np.asarray(value)
        number = _NUMBERS.get(array.dtype) if dtype is None else dtype
        if number is None:
            raise TypeError(f"a tensor of type {array.dtype} cannot be saved")
        size, checksum = (self._strings if number == _STRING else self._numbers)(array)
        self._entries[key] = Entry(number, array.shape, 0, self._place, size, crc.mask(checksum))
        self._place += size

    def add_all(self, reader: BundleReader) -> None:
        """Every tensor of another bundle, byte for byte.

        Parts of one tensor may come from several.
        """
        for key, data in reader.items():
            entry = decode_entry(data)
            known = self._entries.get(key)
            if entry.slices:
                before = () if known is None else known.slices
                self._entries[key] = entry._replace(slices=(*before, *entry.slices))
                continue
            if known is not None:
                raise ValueError(f"Adding duplicate key: {key.decode(errors='replace')}")
            self._file.write(reader.bytes_of(entry))
            self._entries[key] = entry._replace(shard=0, offset=self._place)
            self._place += entry.size

    def _numbers(self, array: Array) -> tuple[int, int]:
        array = np.ascontiguousarray(array)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if not array.nbytes:
            return 0, 0
        return array.nbytes, write_array(self._file, array, self._advance)

    def _strings(self, array: Array) -> tuple[int, int]:
        items = [v if isinstance(v, bytes) else str(v).encode() for v in array.reshape(-1).tolist()]
        lengths = b"".join(put_varint(len(v)) for v in items)
        checksum = crc.value(b"".join(struct.pack("<I", len(v)) for v in items))
        stored = struct.pack("<I", crc.mask(checksum))
        checksum = crc.extend(checksum, stored)
        body = b"".join(items)
        checksum = crc.extend(checksum, body)
        self._file.write(lengths + stored + body)
        return len(lengths) + 4 + len(body), checksum

    def finish(self) -> None:
        self._file.close()
        index = index_path(self.prefix) + self._suffix
        _write_index(index, _HEADER, self._entries)
        data = data_path(self.prefix)
        _install(self.prefix, [(data + self._suffix, data)], index)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        for path in (data_path(self.prefix), index_path(self.prefix)):
            if os.path.exists(path + self._suffix):
                os.unlink(path + self._suffix)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


def _write_index(path: str, header: bytes, entries: dict[bytes, Entry]) -> None:
    with open(path, "wb") as file:
        write_table(
            file, [(b"", header), *((k, encode_entry(e)) for k, e in sorted(entries.items()))]
        )


def merge_bundles(prefixes: Sequence[str], prefix: str, delete_old_folders: bool = True) -> None:
    """Make one bundle of several, whose data files it takes over: each becomes a shard."""
    readers = [BundleReader(p) for p in prefixes]
    total = sum(r.shards for r in readers)
    data: list[tuple[str, str]] = []
    entries: dict[bytes, Entry] = {}
    for reader in readers:
        first = len(data)
        for key, raw in reader._raw.items():
            _merge_entry(entries, key, decode_entry(raw), first)
        for shard in range(reader.shards):
            data.append((reader._path(shard), data_path(prefix, first + shard, total)))
    folder = os.path.dirname(prefix)
    if folder:
        os.makedirs(folder, exist_ok=True)
    index = f"{index_path(prefix)}.tempstate{os.getpid()}"
    _write_index(index, _field(1, total) + _HEADER[2:], entries)
    _install(prefix, data, index)
    for old in prefixes:
        os.unlink(index_path(old))
    if delete_old_folders:
        for old_folder in {os.path.dirname(p) for p in prefixes} - {folder}:
            with contextlib.suppress(OSError):  # there is something else in it
                os.rmdir(old_folder)


def _merge_entry(entries: dict[bytes, Entry], key: bytes, entry: Entry, first: int) -> None:
    """Add an entry whose shards begin at ``first``.

    Parts of one tensor may come from several bundles.
    """
    known = entries.get(key)
    if known is None:
        entries[key] = entry._replace(shard=entry.shard + first) if not entry.slices else entry
    elif not entry.slices or not known.slices:
        name = key.decode(errors="replace")
        raise errors.InvalidArgumentError(
            None, None, f"Existing merged entries already have the key: {name}"
        )
    else:
        entries[key] = known._replace(slices=(*known.slices, *entry.slices))


# reading ------------------------------------------------------------------------------------------


class BundleReader:
    """Reads a bundle; every tensor is checked against its checksum.

    ``advance``: told how many bytes more were read.
    """

    def __init__(self, prefix: str, advance: Advance | None = None) -> None:
        self.prefix = prefix
        self.advance = advance
        finish_staged(prefix)
        try:
            with open(index_path(prefix), "rb") as file:
                items = dict(read_table(file.read()))
        except FileNotFoundError:
            raise errors.NotFoundError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                f"files for {prefix}",
            ) from None
        header = dict(_fields(items.pop(b"", b"")))
        self.shards: int = _number(header.get(1, 1))
        if not 0 < self.shards <= 100_000:
            raise _damaged(f"{self.shards} shards")
        if header.get(2, 0):
            raise errors.UnimplementedError(
                None, None, "the checkpoint was written on a big-endian machine"
            )
        self._raw = items
        self._known: dict[str, Entry] = {}

    def names(self) -> list[str]:
        """The tensors, parts of partitioned ones left out."""
        return sorted(k.decode("utf-8", "replace") for k in self._raw if not k.startswith(b"\0"))

    def items(self) -> list[tuple[bytes, bytes]]:
        """The entries as they are stored, parts of partitioned tensors included."""
        return sorted(self._raw.items())

    def entries(self) -> list[tuple[bytes, int, tuple[int, ...], int]]:
        """(key, type number, shape, 1) of all tensors; of partitioned ones their parts."""
        found = [(key, decode_entry(data)) for key, data in self.items()]
        return [(key, entry.dtype, entry.shape, 1) for key, entry in found if not entry.slices]

    def bytes_of(self, entry: Entry) -> bytes:
        """The stored bytes of an entry, unchecked."""
        with open(self._path(entry.shard), "rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size)
        if len(data) != entry.size:
            raise _damaged("the data file is cut off")
        return data

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._raw

    def entry(self, name: str) -> Entry:
        found = self._known.get(name)
        if found is None:
            data = self._raw.get(name.encode())
            if data is None:
                raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
            found = self._known[name] = decode_entry(data)
        return found

    def stored_bytes(self, name: str, part: Slice | None = None) -> int:
        """Bytes that :meth:`read` takes from the data files, or :meth:`read_part`."""
        entry = self.entry(name)
        parts = (part,) if part is not None and part in entry.slices else entry.slices
        keys = [slice_key(name, p) for p in parts]
        return entry.size + sum(decode_entry(self._raw[k]).size for k in keys if k in self._raw)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.entry(name).shape

    def dtype(self, name: str) -> int:
        """TensorFlow's number of the type."""
        return self.entry(name).dtype

    def read(self, name: str) -> Any:
        """A tensor, put together from its parts if it was saved in parts."""
        entry = self.entry(name)
        if not entry.slices:
            return self._read(entry, name)
        self._check_size(entry, name)
        self._check_cover(entry, name)
        out = np.empty(entry.shape, self._type(entry, name))
        for part in entry.slices:
            data = self._raw.get(slice_key(name, part))
            if data is None:
                raise _damaged(f"a part of '{name}' is missing")
            where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
            piece = self._read(decode_entry(data), name)
            if out[where].shape != piece.shape:
                raise _damaged(f"a part of '{name}' has the shape {list(piece.shape)}")
            out[where] = piece
        return out

    def read_part(self, name: str, part: Slice) -> Array:
        """A part of a tensor; only its bytes are read if the tensor was saved in the same parts."""
        entry = self.entry(name)
        if part in entry.slices:
            return self._read(decode_entry(self._raw[slice_key(name, part)]), name)
        where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
        return np.ascontiguousarray(self.read(name)[where])

    @staticmethod
    def _check_cover(entry: Entry, name: str) -> None:
        """Parts do not overlap: they are the whole tensor if they have as many elements."""
        sizes = [
            math.prod(d if n < 0 else n for d, (_, n) in zip(entry.shape, part.extents))
            for part in entry.slices
        ]
        if sum(sizes) < math.prod(entry.shape):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Does not have sufficient slices for partitioned tensor {name} to restore in "
                f"slice_spec: {':'.join('-' for _ in entry.shape)}",
            )

    def _check_size(self, entry: Entry, name: str) -> None:
        """A tensor in parts cannot be larger than all the data there is."""
        total = sum(
            os.path.getsize(self._path(i))
            for i in range(self.shards)
            if os.path.exists(self._path(i))
        )
        if math.prod(entry.shape) * self._type(entry, name).itemsize > total:
            raise _damaged(f"'{name}' is declared larger than the files are")

    def _path(self, shard: int) -> str:
        return data_path(self.prefix, shard, self.shards)

    @staticmethod
    def _type(entry: Entry, name: str) -> Any:
        found = _TYPES.get(entry.dtype)
        if found is None:
            raise errors.UnimplementedError(
                None, None, f"'{name}' has the type number {entry.dtype}, which cannot be read"
            )
        return found

    def _read(self, entry: Entry, name: str) -> Array:
        kind = self._type(entry, name)
        count = math.prod(entry.shape)
        if not 0 <= entry.shard < self.shards:
            raise _damaged(f"'{name}' is in shard {entry.shard} of {self.shards}")
        if entry.dtype != _STRING and entry.size != count * kind.itemsize:
            raise _damaged(f"'{name}' has {entry.size} bytes for the shape {list(entry.shape)}")
        try:
            with open(self._path(entry.shard), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if entry.offset + entry.size > size:
                    raise _damaged(f"'{name}' lies outside of the data file ({size} bytes)")
                if entry.dtype == _STRING:
                    file.seek(entry.offset)
                    return self._strings(file.read(entry.size), entry, name, count)
                # the array itself, not a view of one: whoever keeps it need not copy it
                out = empty_small_pages(entry.shape, kind)
                checksum = read_array(file, entry.offset, out, self.advance)
        except FileNotFoundError as error:
            raise errors.NotFoundError(
                None, None, f"{error.filename}; No such file or directory"
            ) from None
        if checksum is None:
            raise _damaged(f"'{name}' is cut off")
        if crc.mask(checksum) != entry.checksum:
            raise _wrong_sum(name)
        allow_huge_pages(out)
        return out

    @staticmethod
    def _strings(data: bytes, entry: Entry, name: str, count: int) -> Array:
        if count > len(data):
            raise _damaged(f"'{name}' declares {count} strings in {len(data)} bytes")
        at, lengths = 0, []
        for _ in range(count):
            n, at = take_varint(data, at)
            lengths.append(n)
        checksum = crc.value(
            b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths)
        )
        stored = data[at : at + 4]
        if len(stored) != 4 or struct.unpack("<I", stored)[0] != crc.mask(checksum):
            raise _wrong_sum(name)
        at += 4
        if at + sum(lengths) != len(data):
            raise _damaged(f"the strings of '{name}' have {len(data) - at} bytes")
        if crc.mask(crc.extend(crc.extend(checksum, stored), data[at:])) != entry.checksum:
            raise _wrong_sum(name)
        out = np.empty(count, object)
        for i, n in enumerate(lengths):
            out[i] = data[at : at + n]
            at += n
        return out.reshape(entry.shape)


def _wrong_sum(name: str) -> errors.DataLossError:
    return errors.DataLossError(
        None,
        None,
        f"TensorBundle: the checksum of '{name}' does not match: the data file is damaged",
    )
