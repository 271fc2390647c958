"""``cache``: the elements of the first complete pass, in memory or in a file.

In memory, elements of one shape are stacked when they are all there, so that shuffling and batching them afterwards works
on row numbers (indexed.py). In a file they are one after the other, in a form that is Headrace's own.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from headrace import errors
from headrace.data.runtime.indexed import ArrayRows, IndexPass, Rows, Span
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stacking import stack
from headrace.data.runtime.stages import Context, Element, Pass, Stage

__all__ = ["FileCacheStage", "MemoryCacheStage", "read_from", "write_element"]

#: Stacking needs the memory of all elements once more for a moment.
MAX_STACKED = 1 << 30


class ElementRows(Rows):
    """Elements of different shapes, by number."""

    def __init__(self, elements: list[Element]) -> None:
        self.elements = elements

    def __len__(self) -> int:
        return len(self.elements)

    def row(self, i: int) -> Element:
        return self.elements[i]

    def take(self, numbers: Any) -> Element:
        return stack([self.elements[i] for i in numbers])


class MemoryCacheStage(Stage):
    def __init__(self, source: Stage) -> None:
        self.inputs = (source,)
        self.cached: Rows | None = None

    def start(self, ctx: Context) -> Pass:
        if self.cached is not None:
            return IndexPass(self.cached, Span(range(len(self.cached))))
        return MemoryCachePass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()

    def rows(self) -> Any:
        return self.cached


def _as_rows(elements: list[Element]) -> Rows:
    if elements and elements[0]:
        size = sum(getattr(c, "nbytes", 0) for c in elements[0]) * len(elements)
        kinds = [(type(c), getattr(c, "shape", None)) for c in elements[0]]
        alike = all(isinstance(c, (np.ndarray, np.generic)) for c in elements[0]) and all(
            len(e) == len(kinds) and all(c.shape == shape for c, (_, shape) in zip(e, kinds))
            for e in elements
        )
        if alike and size <= MAX_STACKED:
            return ArrayRows(stack(elements))
    return ElementRows(elements)


class MemoryCachePass(OnePass):
    def __init__(self, source: Pass, stage: MemoryCacheStage) -> None:
        super().__init__(source)
        self.fresh = False
        self.stage = stage
        self.elements: list[Element] = []

    def __next__(self) -> Element:
        for element in self.source:
            self.elements.append(element)
            return element
        if self.stage.cached is None:
            self.stage.cached = _as_rows(self.elements)
        raise StopIteration


# files --------------------------------------------------------------------------------------------


class FileCacheStage(Stage):
    def __init__(self, source: Stage, filename: str) -> None:
        self.inputs = (source,)
        self.filename = filename
        self.path = filename + ".cache"

    def start(self, ctx: Context) -> Pass:
        if os.path.exists(self.path):
            return ListPass(read_elements(self.path))
        return FileCachePass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class FileCachePass(OnePass):
    """Writes beside the final name; the file is there once the last element was read."""

    file: Any = None

    def __init__(self, source: Pass, stage: FileCacheStage) -> None:
        super().__init__(source)
        self.path = stage.path
        self.lock = stage.filename + ".lockfile"
        try:
            self.file = open(self.lock, "xb")  # noqa: SIM115
        except FileExistsError:
            raise errors.AlreadyExistsError(
                None, None,
                f"There appears to be a concurrent caching iterator running - cache lockfile already exists "
                f"('{self.lock}'). If you are sure no other running TF computations are using this cache prefix, "
                f"delete the lockfile and re-initialize the iterator.",
            ) from None  # fmt: skip
        except OSError as error:
            raise errors.NotFoundError(None, None, f"{self.lock}; {error.strerror}") from None

    def __next__(self) -> Element:
        for element in self.source:
            write_element(self.file, element)
            return element
        if self.file is not None:
            self.file.close()
            self.file = None
            os.replace(self.lock, self.path)
        raise StopIteration

    def close(self) -> None:
        super().close()
        if self.file is not None:
            self.file.close()
            self.file = None
            os.unlink(self.lock)

    def __del__(self) -> None:
        self.close()


# An element is the number of its parts and the parts; a part is a head (rank, length of the type's name), the name, the
# dimensions, and the bytes of the array. Strings have the name "" and the lengths of all of them in front of the bytes.
_COUNT, _HEAD = struct.Struct("<I"), struct.Struct("<BB")


def write_element(file: BinaryIO, element: Element) -> None:
    """Add one element to a file."""
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
                None, None, "Only dense tensors can be cached in a file; cache in memory instead."
            )
        pieces += [_numbers(list(map(len, texts))), *texts]
    file.write(b"".join(pieces))


def _numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def read_elements(path: str) -> Iterator[Element]:
    """The elements of a file."""
    with open(path, "rb") as file:
        yield from read_from(file)


def read_from(file: Any) -> Iterator[Element]:
    """The elements from a file's current place on."""
    while head := file.read(_COUNT.size):
        try:
            yield tuple([_read_part(file) for _ in range(_COUNT.unpack(head)[0])])
        except (struct.error, TypeError, ValueError):
            raise errors.DataLossError(None, None, "The cached elements are damaged.") from None


def _read_part(file: BinaryIO) -> Any:
    rank, length = _HEAD.unpack(file.read(_HEAD.size))
    name = file.read(length).decode()
    shape = _read_numbers(file, rank)
    size = math.prod(shape)
    if name:
        dtype = np.dtype(name)
        array = np.frombuffer(bytearray(file.read(size * dtype.itemsize)), dtype).reshape(shape)
        return array if rank else array[()]
    out = np.empty(size, object)
    out[:] = [file.read(n) for n in _read_numbers(file, size)]
    return out.reshape(shape)


def _read_numbers(file: BinaryIO, n: int) -> tuple[int, ...]:
    return struct.unpack(f"<{n}q", file.read(8 * n))
