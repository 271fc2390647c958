"""Tensor bundles: the files of TF's V2 checkpoints. ``prefix.index`` lists tensors,
``prefix.data-00000-of-00001`` has their bytes.

    with BundleWriter("/tmp/model") as writer:
        writer.add("w", array)
    reader = BundleReader("/tmp/model")
    reader.names(), reader.shape("w"), reader.read("w")

Written byte for byte as TensorFlow writes it. A writer's files get their names when they are whole,
so that a process that dies leaves the bundle that was there before: the data first, the index last.
What replaces or follows a bundle is on the disk before the old one goes; otherwise, as in
TensorFlow, the system writes it there in its own time. Where a bundle of that name is there
already, both are renamed to ``.staged`` first; from the moment in which the index is staged, the
next process that opens the bundle finishes the renaming. A tensor that is one part of a larger one
(a partitioned variable) is added with its place; a reader puts the parts together. Nothing here
knows of graphs; types are numbers of TensorFlow's ``DataType`` and NumPy's.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
import struct
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from headrace import errors
from headrace.wire import crc
from headrace.wire.bundle_entries import (
    NUMBERS,
    STRING,
    TYPES,
    Entry,
    Slice,
    as_number,
    damaged,
    decode_entry,
    encode_entry,
    number_field,
    read_fields,
    slice_key,
)
from headrace.wire.checked_arrays import Advance, write_array
from headrace.wire.sorted_table import put_varint, read_table, take_varint, write_table
from headrace.wire.stored_tensors import OpenFile, StoredTensor, check_place, wrong_sum

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "BundleReader",
    "BundleWriter",
    "bundle_exists",
    "data_path",
    "finish_staged",
    "index_path",
    "merge_bundles",
    "sync_bundle",
]

_HEADER = b"\x08\x01\x1a\x02\x08\x01"  # one shard, little-endian, version 1
_STAGED = ".staged"
#: Bytes of small tensors that are written together; parts of large ones (checked_arrays.py) are
#: larger, so that they are not copied into the buffer.
_BUFFER = 1 << 17


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
            known = Entry(NUMBERS[array.dtype], tuple(full_shape))
        self._entries[key] = known._replace(slices=(*known.slices, part))
        self._add(slice_key(name, part), array, None)

    def _add(self, key: bytes, value: Array | np.generic, dtype: int | None) -> None:
        if key in self._entries:
            raise ValueError(f"Adding duplicate key: {key.decode(errors='replace')}")
        array = np.asarray(value)
        number = NUMBERS.get(array.dtype) if dtype is None else dtype
        if number is None:
            raise TypeError(f"a tensor of type {array.dtype} cannot be saved")
        size, checksum = (self._strings if number == STRING else self._numbers)(array)
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
        """Give the files their names; leave nothing behind if the disk takes no more."""
        try:
            self._file.close()
            index = index_path(self.prefix) + self._suffix
            _write_index(index, _HEADER, self._entries)
        except OSError:
            self.abandon()
            raise
        data = data_path(self.prefix)
        _install(self.prefix, [(data + self._suffix, data)], index)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(OSError):  # what is in the buffer has no place on a full disk
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
    try:
        _write_index(index, number_field(1, total) + _HEADER[2:], entries)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(index)
        raise
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
        header = dict(read_fields(items.pop(b"", b"")))
        self.shards: int = as_number(header.get(1, 1))
        if not 0 < self.shards <= 100_000:
            raise damaged(f"{self.shards} shards")
        if header.get(2, 0):
            raise errors.UnimplementedError(
                None, None, "the checkpoint was written on a big-endian machine"
            )
        self._raw = items
        self._known: dict[str, Entry] = {}
        #: Data files by shard, while somebody wants to read more of them.
        self._files: WeakValueDictionary[int, OpenFile] = WeakValueDictionary()

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
            raise damaged("the data file is cut off")
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

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """A tensor, put together from its parts if it was saved in parts."""
        entry = self.entry(name)
        if not entry.slices:
            return self._read(entry, name)
        self._check_size(entry, name)
        self._check_cover(entry, name)
        out = np.empty(entry.shape, self._type(entry, name))
        for part in entry.slices:
            where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
            piece = self._read(self._part_entry(name, part), name)
            if out[where].shape != piece.shape:
                raise damaged(f"a part of '{name}' has the shape {list(piece.shape)}")
            out[where] = piece
        return out

    def read_part(self, name: str, part: Slice) -> Array:
        """A part of a tensor; only its bytes are read if the tensor was saved in the same parts."""
        entry = self.entry(name)
        if part in entry.slices:
            return self._read(self._part_entry(name, part), name)
        where = tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in part.extents)
        return np.ascontiguousarray(self.read(name)[where])

    def locate(self, name: str, part: Slice | None = None) -> StoredTensor | None:
        """Numbers that lie in one piece: they are found right but not kept, and can be read later.

        None for strings, tensors in parts and parts that were not saved as such.
        """
        entry = self.entry(name)
        if entry.dtype == STRING or (entry.slices if part is None else part not in entry.slices):
            return None
        if part is not None:
            entry = self._part_entry(name, part)
        kind = self._checked_type(entry, name)
        file = self._files.get(entry.shard)
        if file is None:
            file = self._files[entry.shard] = OpenFile(self._path(entry.shard))
        check_place(file.file, entry, name)
        stored = StoredTensor(file, entry, name, kind)
        stored.check(self.advance)
        return stored

    def _part_entry(self, name: str, part: Slice) -> Entry:
        data = self._raw.get(slice_key(name, part))
        if data is None:
            raise damaged(f"a part of '{name}' is missing")
        return decode_entry(data)

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
            raise damaged(f"'{name}' is declared larger than the files are")

    def _path(self, shard: int) -> str:
        return data_path(self.prefix, shard, self.shards)

    @staticmethod
    def _type(entry: Entry, name: str) -> Any:
        found = TYPES.get(entry.dtype)
        if found is None:
            raise errors.UnimplementedError(
                None, None, f"'{name}' has the type number {entry.dtype}, which cannot be read"
            )
        return found

    def _checked_type(self, entry: Entry, name: str) -> np.dtype[Any]:
        """NumPy's type of an entry whose shard and size are possible."""
        kind: np.dtype[Any] = self._type(entry, name)
        if not 0 <= entry.shard < self.shards:
            raise damaged(f"'{name}' is in shard {entry.shard} of {self.shards}")
        if entry.dtype != STRING and entry.size != math.prod(entry.shape) * kind.itemsize:
            raise damaged(f"'{name}' has {entry.size} bytes for the shape {list(entry.shape)}")
        return kind

    def _read(self, entry: Entry, name: str) -> Array:
        kind = self._checked_type(entry, name)
        opened = OpenFile(self._path(entry.shard))
        check_place(opened.file, entry, name)
        if entry.dtype == STRING:
            opened.file.seek(entry.offset)
            data = opened.file.read(entry.size)
            return self._strings(data, entry, name, math.prod(entry.shape))
        return StoredTensor(opened, entry, name, kind).read(self.advance)

    @staticmethod
    def _strings(data: bytes, entry: Entry, name: str, count: int) -> Array:
        if count > len(data):
            raise damaged(f"'{name}' declares {count} strings in {len(data)} bytes")
        at, lengths = 0, []
        for _ in range(count):
            n, at = take_varint(data, at)
            lengths.append(n)
        checksum = crc.value(
            b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths)
        )
        stored = data[at : at + 4]
        if len(stored) != 4 or struct.unpack("<I", stored)[0] != crc.mask(checksum):
            raise wrong_sum(name)
        at += 4
        if at + sum(lengths) != len(data):
            raise damaged(f"the strings of '{name}' have {len(data) - at} bytes")
        if crc.mask(crc.extend(crc.extend(checksum, stored), data[at:])) != entry.checksum:
            raise wrong_sum(name)
        out = np.empty(count, object)
        for i, n in enumerate(lengths):
            out[i] = data[at : at + n]
            at += n
        return out.reshape(entry.shape)
