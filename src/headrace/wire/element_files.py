"""Elements of datasets in a file: what ``cache(filename)``, ``save`` and ``snapshot`` write. The
form is Headrace's own.

The file is a TFRecord file, so every record has a length and checksums: a head, a record for each
element, and a tail with their number. An element is the number of its parts and the parts; a part
is a head (rank, length of the type's name), the name, the dimensions, and the bytes of the array.
Strings have the name "" and the lengths of all of them in front of the bytes.

A file is not trusted: every size is compared with the bytes that are there before anything is
allocated, and types and shapes with what the dataset is known to give. What does not agree is a
DataLossError.

    >>> with ElementWriter("numbers") as writer:
    ...     writer.write((np.int64(1),))
    >>> list(read_elements("numbers", "", [PartSpec("int64", ())]))
    [(1,)]
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.wire.tfrecord import TFRecordWriter, record_reader

__all__ = ["ElementWriter", "PartSpec", "read_elements"]

_MAGIC, _END = b"headrace elements 1", b"headrace elements end "
_COUNT, _HEAD = struct.Struct("<I"), struct.Struct("<BB")
_NUMBER = struct.Struct("<q")


class PartSpec(NamedTuple):
    """What is known of a part of each element.

    Its type ("" for strings) and its shape, with None where it may be anything.
    """

    dtype: Any
    shape: tuple[int | None, ...] | None

    @property
    def name(self) -> str:
        return "" if np.dtype(self.dtype).kind == "O" else np.dtype(self.dtype).name


# writing ----------------------------------------------------------------------------------------


class ElementWriter:
    """Writes elements to ``path``. A file is whole only after ``finish``; ``abandon`` removes
    it.
    """

    def __init__(self, path: str, compression: str = "") -> None:
        self.path = path
        self._count = 0
        self._writer: TFRecordWriter | None = TFRecordWriter(path, compression or None)
        self._write_or_abandon(_MAGIC)

    def write(self, element: Sequence[Any]) -> None:
        self._write_or_abandon(encode_element(element))
        self._count += 1

    def _write_or_abandon(self, record: bytes) -> None:
        assert self._writer is not None, "the file was closed"
        try:
            self._writer.write(record)
        except BaseException:
            self.abandon()
            raise

    def finish(self) -> None:
        self._write_or_abandon(_END + str(self._count).encode())
        try:
            assert self._writer is not None
            self._writer.close()
        except BaseException:
            self.abandon()
            raise
        self._writer = None

    def abandon(self) -> None:
        """Close and remove the file.

        Nothing if it is finished. Never fails: a full disk is no reason to leave it behind.
        """
        writer, self._writer = self._writer, None
        if writer is None:
            return
        with contextlib.suppress(errors.OpError, OSError):
            writer.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def __enter__(self) -> ElementWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


def encode_element(element: Sequence[Any]) -> bytes:
    """The bytes of one element."""
    pieces = [_COUNT.pack(len(element))]
    for part in element:
        array = np.asarray(part)
        name = b"" if array.dtype.kind == "O" else array.dtype.name.encode()
        pieces += [_HEAD.pack(array.ndim, len(name)), name, _numbers(array.shape)]
        if name:
            pieces.append(array.tobytes())
            continue
        texts = array.reshape(-1).tolist()
        if not all(isinstance(t, bytes) for t in texts):
            raise errors.UnimplementedError(
                None, None, "Only dense tensors can be kept in a file; cache in memory instead."
            )
        pieces += [_numbers(list(map(len, texts))), *texts]
    return b"".join(pieces)


def _numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


# reading ----------------------------------------------------------------------------------------


def read_elements(
    path: str, compression: str, specs: Sequence[PartSpec]
) -> Iterator[tuple[Any, ...]]:
    """The elements of a file, each compared with what it should be."""
    records = record_reader(path, compression)
    if next(records, None) != _MAGIC:
        raise _damaged(path, "it does not begin as such a file does")
    count = 0
    for record in records:
        if record.startswith(_END):
            if record != _END + str(count).encode() or next(records, None) is not None:
                raise _damaged(path, f"it has {count} elements, but does not end with their number")
            return
        try:
            element = _Parts(record).element(specs)
        except (ValueError, struct.error) as error:
            raise _damaged(path, f"element {count}: {error}") from None
        yield element
        count += 1
    raise _damaged(path, f"it ends after {count} elements without its last record")


def _damaged(path: str, reason: str) -> errors.DataLossError:
    return errors.DataLossError(
        None,
        None,
        f"{path} is not a whole file of the elements of this dataset: {reason}. Remove it "
        "to write it anew.",
    )


class _Parts:
    """The bytes of an element and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, size: int) -> memoryview:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes are declared and {len(self.data) - self.at} are there")
        self.at += size
        return self.data[self.at - size : self.at]

    def element(self, specs: Sequence[PartSpec]) -> tuple[Any, ...]:
        (count,) = _COUNT.unpack(self.take(_COUNT.size))
        if count != len(specs):
            raise ValueError(f"it has {count} components instead of {len(specs)}")
        parts = tuple([self.part(spec) for spec in specs])
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes are left over")
        return parts

    def part(self, spec: PartSpec) -> np.ndarray[Any, Any]:
        rank, length = _HEAD.unpack(self.take(_HEAD.size))
        name = bytes(self.take(length)).decode("ascii", "replace")
        shape = self.numbers(rank)
        if name != spec.name or not _fits(shape, spec.shape):
            raise ValueError(
                f"a component is {name or 'string'} {list(shape)} instead of "
                f"{spec.name or 'string'} {spec.shape}"
            )
        size = math.prod(shape)
        if name:
            dtype = np.dtype(spec.dtype)
            array = np.frombuffer(bytearray(self.take(size * dtype.itemsize)), dtype).reshape(shape)
            return array if rank else array[()]
        return self.strings(size, shape)

    def strings(self, count: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        lengths = self.numbers(count)
        if any(n < 0 for n in lengths) or sum(lengths) > len(self.data) - self.at:
            raise ValueError(
                "the lengths of its strings do not agree with the bytes that are there"
            )
        out = np.empty(count, object)
        out[:] = [bytes(self.take(n)) for n in lengths]
        return out.reshape(shape)

    def numbers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", self.take(_NUMBER.size * count))


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...] | None) -> bool:
    if any(d < 0 for d in shape):
        return False
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(w in (None, d) for d, w in zip(shape, wanted))
