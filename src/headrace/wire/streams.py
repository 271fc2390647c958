"""Reading files in chunks, plain or compressed, and cutting them into lines and records of one
length.

Failures are ``tf.errors``: a missing file is a NotFoundError, damaged compressed data a
DataLossError. A compressed file that ends early gives what there is, as in TensorFlow. Time is
linear in the size of the file, however long a line is, and memory is bounded by the longest record,
which may have ``MAX_RECORD_BYTES``.

    >>> list(text_lines("notes.txt.gz", "GZIP"))
    [b'first line', b'second line']
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NoReturn

from headrace import errors
from headrace.runtime.file_paths import local_path

__all__ = [
    "MAX_RECORD_BYTES",
    "Pending",
    "chunks",
    "fixed_length_records",
    "open_file",
    "raise_os_error",
    "text_lines",
]

#: Bytes read at once where the caller does not say.
BUFFER = 256 * 1024

#: A line or record that is longer is a ResourceExhaustedError: a small compressed file can hold a
#: line of any length.
MAX_RECORD_BYTES = (1 << 31) - 1
#: zlib's wbits for each compression type.
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


def raise_os_error(path: object, error: OSError) -> NoReturn:
    """The error of ``tf.errors`` that stands for an operating system's error."""
    raise errors.os_error(path, error) from None


@contextlib.contextmanager
def os_errors(path: object) -> Iterator[None]:
    """What the operating system refuses within the block is an error of ``tf.errors``."""
    try:
        yield
    except OSError as error:
        raise_os_error(error.filename or path, error)


def open_file(path: Any, mode: str = "rb") -> BinaryIO:
    """A file without a buffer of its own."""
    try:
        return open(local_path(path), mode, buffering=0)  # type: ignore[return-value]
    except OSError as error:
        raise_os_error(path, error)


def chunks(
    path: object, compression: str | None = None, buffer_size: int | None = None
) -> Iterator[bytes]:
    """The contents of a file, decompressed, in pieces of about ``buffer_size`` bytes."""
    size = buffer_size or BUFFER
    if not compression:
        return _plain(path, size)
    if compression not in WINDOW_BITS:
        raise errors.InvalidArgumentError(
            None, None, f"Unsupported compression_type {compression}."
        )
    return _inflated(path, compression, size)


def _plain(path: object, size: int) -> Iterator[bytes]:
    with open_file(path) as file:
        while True:
            try:
                data = file.read(size)
            except OSError as error:
                raise_os_error(path, error)
            if not data:
                return
            yield data


def _inflated(path: object, compression: str, size: int) -> Iterator[bytes]:
    """A GZIP file may be several compressed ones, end to end."""
    bits = WINDOW_BITS[compression]
    inflater = zlib.decompressobj(bits)
    for data in _plain(path, size):
        while data:
            try:
                out = inflater.decompress(data, size)
            except zlib.error as error:
                raise _damaged(error) from None
            if out:
                yield out
            data = inflater.unconsumed_tail
            if inflater.eof:
                data = inflater.unused_data
                if compression != "GZIP":
                    return
                inflater = zlib.decompressobj(bits)


def _damaged(error: zlib.error) -> errors.DataLossError:
    """Python says "Error -3 while decompressing data: incorrect header check"."""
    text = re.sub(r"Error (-\d+) while \w+ data: ", r"inflate() failed with error \1: ", str(error))
    return errors.DataLossError(None, None, text)


def text_lines(
    path: object,
    compression: str | None = None,
    buffer_size: int | None = None,
    inner_returns: bool = False,
) -> Iterator[bytes]:
    """The lines of a file without their ends.

    Every carriage return is dropped, wherever it stands, as in TensorFlow's datasets; with
    ``inner_returns`` only the last one of a line, as in its readers.
    """
    if inner_returns:
        kept = _lines(path, chunks(path, compression, buffer_size))
        yield from (line.removesuffix(b"\r") for line in kept)
    else:
        pieces = chunks(path, compression, buffer_size)
        yield from _lines(path, (piece.replace(b"\r", b"") for piece in pieces))


def _lines(path: object, pieces: Iterable[bytes]) -> Iterator[bytes]:
    pending = Pending(path)
    for chunk in pieces:
        if b"\n" not in chunk:
            pending.add(chunk)
            continue
        lines = pending.joined(chunk).split(b"\n")
        pending.add(lines.pop())
        yield from lines
    rest = pending.joined(b"")
    if rest:
        yield rest


class Pending:
    """Pieces of a record that is not complete yet.

    They are joined once, so that long records take linear time.
    """

    def __init__(self, path: Any) -> None:
        self.path = path
        self.size = 0
        self._parts: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > MAX_RECORD_BYTES:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"{local_path(self.path)}: a record has more than {MAX_RECORD_BYTES} bytes.",
            )
        if piece:
            self._parts.append(piece)

    def joined(self, piece: bytes) -> bytes:
        """What was added, with ``piece`` after it; nothing is pending afterwards."""
        if not self._parts:
            return piece
        data = b"".join([*self._parts, piece])
        self._parts, self.size = [], 0
        return data


def fixed_length_records(
    path: object,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    compression: str | None = None,
    buffer_size: int | None = None,
) -> Iterator[bytes]:
    """Records of ``record_bytes`` between a header and a footer, which are skipped."""
    if not compression:
        _check_length(path, record_bytes, header_bytes, footer_bytes)
    pending, total, skip = Pending(path), 0, header_bytes
    need = record_bytes + footer_bytes
    for chunk in chunks(path, compression, buffer_size):
        total += len(chunk)
        piece, skip = chunk[skip:], max(0, skip - len(chunk))
        if pending.size + len(piece) < need:
            pending.add(piece)
            continue
        data, at = pending.joined(piece), 0
        while at + need <= len(data):
            yield data[at : at + record_bytes]
            at += record_bytes
        pending.add(data[at:])
    if total < header_bytes + footer_bytes or (total - header_bytes - footer_bytes) % record_bytes:
        reason = _uneven(path, record_bytes, header_bytes, footer_bytes, total)
        raise errors.DataLossError(None, None, reason)


def _check_length(path: object, record: int, header: int, footer: int) -> None:
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
    if (size - header - footer) % record:
        raise errors.InvalidArgumentError(None, None, _uneven(path, record, header, footer, size))


def _uneven(path: Any, record: int, header: int, footer: int, size: int) -> str:
    return (
        f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file "
        f'"{local_path(path)}" has body length {size - header - footer} bytes, which is '
        "not an exact multiple of the "
        f"record length ({record} bytes)."
    )
