"""``cache``: the elements of the first complete pass, in memory or in a file.

In memory, elements of one shape are stacked when they are all there, so that shuffling and batching them afterwards works
on row numbers (indexed.py). In a file they are NumPy arrays one after the other; strings have their lengths in front.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from headrace import errors
from headrace.data.runtime.base import Context, Element, Pass, Stage
from headrace.data.runtime.indexed import ArrayRows, IndexPass, Rows, Span
from headrace.data.runtime.simple import OnePass
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stacking import stack

__all__ = ["FileCacheStage", "MemoryCacheStage"]

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

    def __init__(self, source: Pass, stage: FileCacheStage) -> None:
        super().__init__(source)
        self.path = stage.path
        self.lock = stage.filename + ".lockfile"
        try:
            self.file: Any = open(self.lock, "xb")  # noqa: SIM115
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


def write_element(file: BinaryIO, element: Element) -> None:
    np.save(file, np.int64(len(element)), allow_pickle=False)
    for part in element:
        array = np.asarray(part)
        if array.dtype.kind != "O":
            np.save(file, np.zeros(0, np.int64), allow_pickle=False)
            np.save(file, array, allow_pickle=False)
            continue
        texts = array.reshape(-1).tolist()
        if not all(isinstance(t, bytes) for t in texts):
            raise errors.UnimplementedError(
                None, None, "Only dense tensors can be cached in a file; cache in memory instead."
            )
        head = np.array([array.ndim, *array.shape, *map(len, texts)], np.int64)
        np.save(file, head, allow_pickle=False)
        file.write(b"".join(texts))


def read_elements(path: str) -> Iterator[Element]:
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size
        while file.tell() < end:
            yield tuple(_read_part(file) for _ in range(int(np.load(file))))


def _read_part(file: BinaryIO) -> Any:
    head = np.load(file).tolist()
    if not head:
        array = np.load(file)
        return array if array.ndim else array[()]
    rank = head[0]
    out = np.empty(len(head) - 1 - rank, object)
    out[:] = [file.read(n) for n in head[1 + rank :]]
    return out.reshape(head[1 : 1 + rank])
