"""Reading files in chunks, plain or compressed, and cutting them into lines and records of one length.

Failures are ``tf.errors``: a missing file is a NotFoundError, damaged compressed data a DataLossError. A compressed file
that ends early gives what there is, as in TensorFlow.

    >>> list(text_lines("notes.txt.gz", "GZIP"))
    [b'first line', b'second line']
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from headrace import errors

__all__ = ["chunks", "fixed_length_records", "open_file", "raise_os_error", "text_lines"]

#: Bytes read at once where the caller does not say.
BUFFER = 256 * 1024

_KINDS: list[tuple[type[OSError], type[errors.OpError]]] = [
    (FileNotFoundError, errors.NotFoundError),
    (PermissionError, errors.PermissionDeniedError),
    (IsADirectoryError, errors.FailedPreconditionError),
    (NotADirectoryError, errors.FailedPreconditionError),
]
#: zlib's wbits for each compression type.
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


def raise_os_error(path: Any, error: OSError) -> NoReturn:
    """The error of ``tf.errors`` that stands for an operating system's error."""
    kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), errors.UnknownError)
    raise kind(None, None, f"{os.fsdecode(path)}; {error.strerror or error}") from None


def open_file(path: Any, mode: str = "rb") -> BinaryIO:
    """A file without a buffer of its own."""
    try:
        return open(os.fsdecode(path), mode, buffering=0)  # type: ignore[return-value]
    except OSError as error:
        raise_os_error(path, error)


def chunks(
    path: Any, compression: str | None = None, buffer_size: int | None = None
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


def _plain(path: Any, size: int) -> Iterator[bytes]:
    with open_file(path) as file:
        while True:
            try:
                data = file.read(size)
            except OSError as error:
                raise_os_error(path, error)
            if not data:
                return
            yield data


def _inflated(path: Any, compression: str, size: int) -> Iterator[bytes]:
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
    path: Any, compression: str | None = None, buffer_size: int | None = None
) -> Iterator[bytes]:
    """The lines of a file without their ends. Every carriage return is dropped, wherever it stands, as in TensorFlow."""
    rest = b""
    for chunk in chunks(path, compression, buffer_size):
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r", b"")
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest


def fixed_length_records(
    path: Any,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    compression: str | None = None,
    buffer_size: int | None = None,
) -> Iterator[bytes]:
    """Records of ``record_bytes`` between a header and a footer, which are skipped."""
    if not compression:
        _check_length(path, record_bytes, header_bytes, footer_bytes)
    data, at, total, skip = b"", 0, 0, header_bytes
    for chunk in chunks(path, compression, buffer_size):
        total += len(chunk)
        data = data[at:] + chunk[skip:]
        at, skip = 0, max(0, skip - len(chunk))
        while at + record_bytes + footer_bytes <= len(data):
            yield data[at : at + record_bytes]
            at += record_bytes
    if total < header_bytes + footer_bytes or (total - header_bytes - footer_bytes) % record_bytes:
        reason = _uneven(path, record_bytes, header_bytes, footer_bytes, total)
        raise errors.DataLossError(None, None, reason)


def _check_length(path: Any, record: int, header: int, footer: int) -> None:
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
    if (size - header - footer) % record:
        raise errors.InvalidArgumentError(None, None, _uneven(path, record, header, footer, size))


def _uneven(path: Any, record: int, header: int, footer: int, size: int) -> str:
    return (
        f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file "
        f'"{os.fsdecode(path)}" has body length {size - header - footer} bytes, which is not an exact multiple of the '
        f"record length ({record} bytes)."
    )
