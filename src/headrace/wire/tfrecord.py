"""TFRecord files: a sequence of byte strings, each with its length and two checksums around it.

A record is stored as ``length: uint64, masked crc of length: uint32, data, masked crc of data:
uint32``, little-endian; the whole file may be compressed. Reading checks both sums and raises a
DataLossError with the place of the damage, after the good records before it were given out. Records
are cut from large chunks, a chunk's worth at a time.

    >>> with TFRecordWriter("numbers.tfrecord") as writer:
    ...     writer.write(b"one")
    >>> list(record_reader("numbers.tfrecord"))
    [b'one']
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from headrace import errors
from headrace.runtime.file_paths import local_path
from headrace.wire import crc
from headrace.wire.streams import (
    MAX_RECORD_BYTES,
    WINDOW_BITS,
    chunks,
    fixed_length_records,
    raise_os_error,
    text_lines,
)

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "fixed_length_records",
    "record_batches",
    "record_reader",
    "text_lines",
    "tf_record_iterator",
]

_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_WORD = struct.Struct("<I")
#: Headers whose checksum was found right, at most this many: records of one size share theirs.
_KNOWN_HEADERS = 4096


# reading ----------------------------------------------------------------------------------------


def record_reader(
    path: object, compression: str | None = None, buffer_size: int | None = None
) -> Iterator[bytes]:
    """The records of a file. ``compression`` is "GZIP", "ZLIB" or nothing."""
    return itertools.chain.from_iterable(record_batches(path, compression, buffer_size))


def record_batches(
    path: object, compression: str | None = None, buffer_size: int | None = None
) -> Iterator[list[bytes]]:
    """The records of a file, as lists of those that one chunk completes."""
    cutter = _Cutter()
    parts: list[bytes] = []
    have = 0
    for chunk in chunks(path, compression, buffer_size):
        parts.append(chunk)
        have += len(chunk)
        if have < cutter.need:  # a record larger than a chunk: its parts are joined once
            continue
        data = b"".join(parts) if len(parts) > 1 else chunk
        parts = []  # a large record is there twice, never three times
        records, rest = cutter.cut(data)
        if records:
            yield records
        if cutter.error is not None:
            raise cutter.error
        parts, have = [rest], len(rest)
        _check_declared(path, compression, cutter)
    if have >= _HEADER.size:
        raise errors.DataLossError(None, None, f"truncated record at {cutter.offset}")


def _check_declared(path: Any, compression: str | None, cutter: _Cutter) -> None:
    """Before a record larger than a chunk is gathered.

    Whether the file can hold what the record's head declares.
    """
    if cutter.need > MAX_RECORD_BYTES + 16:
        size = cutter.need - 16
        reason = (
            f"corrupted record at {cutter.offset}: {size} bytes are declared, at most "
            f"{MAX_RECORD_BYTES} are read"
        )
        raise errors.DataLossError(None, None, reason)
    plain = not compression and cutter.need > _HEADER.size and os.path.isfile(path)
    if plain and cutter.offset + cutter.need > os.path.getsize(path):
        raise errors.DataLossError(None, None, f"truncated record at {cutter.offset}")


class _Cutter:
    """Cuts chunks into records and remembers where in the file it is."""

    def __init__(self) -> None:
        self.offset = 0  # of the next record
        self.need = _HEADER.size  # bytes from there on that must be present to go on
        self.error: errors.DataLossError | None = None
        self._sizes: dict[bytes, int] = {}

    def cut(self, data: bytes) -> tuple[list[bytes], bytes]:
        """The complete records at the start of ``data``, and what follows them."""
        records: list[bytes] = []
        sizes, value, stored = self._sizes, crc.value, _WORD.unpack_from
        at, total = 0, len(data)
        self.need = _HEADER.size
        while at + 12 <= total:
            header = data[at : at + 12]
            size = sizes.get(header)
            if size is None:
                size = self._size_of(header)
                if size < 0:
                    self._corrupted(at)
                    break
            end = at + 12 + size
            if end + 4 > total:
                self.need = size + 16
                break
            record = data[at + 12 : end]
            c = value(record)
            # crc.mask, written out: a call would cost as much as the checksum
            if ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF != stored(data, end)[0]:
                self._corrupted(at + 12)
                break
            records.append(record)
            at = end + 4
        self.offset += at
        return records, data[at:]

    def _size_of(self, header: bytes) -> int:
        """The length that a header gives, -1 if its checksum is wrong."""
        size, stored = _HEADER.unpack(header)
        if crc.masked(header[:8]) != stored:
            return -1
        if len(self._sizes) < _KNOWN_HEADERS:
            self._sizes[header] = size
        return int(size)

    def _corrupted(self, at: int) -> None:
        reason = f"corrupted record at {self.offset + at}"
        self.error = errors.DataLossError(None, None, reason)


# options ----------------------------------------------------------------------------------------


class TFRecordCompressionType:
    """The old names of the compression types."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a file is compressed: "GZIP", "ZLIB" or "" (or an old :class:`TFRecordCompressionType`),
    and zlib's settings.

    As in TensorFlow, ``input_buffer_size`` bytes are compressed at a time, with ``flush_mode``;
    ``output_buffer_size`` does not change what is written.
    """

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: object = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: object) -> str:
        """The name of the compression that options (or a name, an old type, None) ask for."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, TFRecordCompressionType):
            options = int(options)  # type: ignore[call-overload]
        if options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return str(options)
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def compressor(self) -> Any:
        """A new zlib compressor, None if nothing is compressed."""
        kind = self.get_compression_type_string(self)
        if not kind:
            return None
        return zlib.compressobj(
            level=_or(self.compression_level, zlib.Z_DEFAULT_COMPRESSION),
            method=_or(self.compression_method, zlib.DEFLATED),
            wbits=_or(self.window_bits, WINDOW_BITS[kind]),
            memLevel=_or(self.mem_level, 9),  # TensorFlow's default
            strategy=_or(self.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
        )


#: Bytes that TensorFlow compresses at a time.
INPUT_BUFFER = 256 << 10


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def tf_record_iterator(path: str, options: TFRecordOptions | None = None) -> Iterator[bytes]:
    """The records of a TFRecord file, one ``bytes`` after the other; checksums are verified."""
    compression = TFRecordOptions.get_compression_type_string(options)
    return record_reader(path, compression)


# writing ----------------------------------------------------------------------------------------


class TFRecordWriter:
    """Writes records to a file, which is replaced if it exists."""

    def __init__(self, path: Any, options: object = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(compression_type=options)
        self._path = path
        self._compressor = options.compressor()
        self._flush_mode = _or(options.flush_mode, zlib.Z_NO_FLUSH)
        self._limit = _or(options.input_buffer_size, INPUT_BUFFER)
        self._waiting: list[bytes] = []  # not compressed yet
        self._size = 0
        try:
            self._file: Any = open(local_path(path), "wb")  # noqa: SIM115
        except OSError as error:
            raise_os_error(path, error)

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        """A writer that is dropped completes its file; nobody is there to take an error."""
        with contextlib.suppress(Exception):
            self.close()

    def write(self, record: bytes) -> None:
        """Add one record."""
        if not isinstance(record, bytes):
            if not isinstance(record, (bytearray, memoryview)):
                raise TypeError(f"expected bytes, {type(record).__name__} found")
            record = bytes(record)
        self._check_open()
        length = _LENGTH.pack(len(record))
        parts = (length + _WORD.pack(crc.masked(length)), record, _WORD.pack(crc.masked(record)))
        if self._compressor is None:
            self._write(b"".join(parts))
            return
        for part in parts:
            self._put(part)

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._check_open()
        if self._compressor is not None:
            self._write(self._compressed(zlib.Z_PARTIAL_FLUSH))
        try:
            self._file.flush()
        except OSError as error:
            raise_os_error(self._path, error)

    def close(self) -> None:
        """Complete the file. Closing twice is allowed."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            with file:
                if self._compressor is not None:
                    file.write(self._compressed(zlib.Z_FINISH))
        except OSError as error:
            raise_os_error(self._path, error)

    def _put(self, data: bytes) -> None:
        """Add to what is compressed next."""
        if self._size + len(data) > self._limit:
            self._write(self._compressed(self._flush_mode))
        self._waiting.append(data)
        self._size += len(data)
        if self._size > self._limit:  # a large record is not kept
            self._write(self._compressed(self._flush_mode))

    def _compressed(self, mode: int) -> bytes:
        data, self._waiting, self._size = b"".join(self._waiting), [], 0
        first: bytes = self._compressor.compress(data) if data else b""
        return first if mode == zlib.Z_NO_FLUSH else first + self._compressor.flush(mode)

    def _check_open(self) -> None:
        if self._file is None:
            raise errors.FailedPreconditionError(
                None, None, "Writer not initialized or previously closed"
            )

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise_os_error(self._path, error)
