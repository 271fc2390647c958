"""``cache``: the elements of the first complete pass, in memory or in a file.

In memory, elements of one shape are stacked when they are all there, so that shuffling and batching
them afterwards works on row numbers (indexed.py). In a file they are one after the other
(wire/element_files.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import errors
from headrace.data.runtime.indexed import ArrayRows, IndexPass, Rows, Span
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stacking import stack
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.wire.element_files import ElementWriter, PartSpec, read_elements

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
    """``parts`` is what is known of the elements.

    A file that has others is damaged or of another dataset.
    """

    def __init__(self, source: Stage, filename: str, parts: Sequence[PartSpec]) -> None:
        self.inputs = (source,)
        self.filename = filename
        self.path = filename + ".cache"
        self.parts = parts

    def start(self, ctx: Context) -> Pass:
        if os.path.exists(self.path):
            return ListPass(read_elements(self.path, "", self.parts))
        return FileCachePass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class FileCachePass(OnePass):
    """Writes beside the final name; the file is there once the last element was read."""

    writer: ElementWriter | None = None

    def __init__(self, source: Pass, stage: FileCacheStage) -> None:
        super().__init__(source)
        self.path = stage.path
        self.lock = stage.filename + ".lockfile"
        try:
            with open(self.lock, "xb"):
                pass
        except FileExistsError:
            raise errors.AlreadyExistsError(
                None,
                None,
                "There appears to be a concurrent caching iterator running - cache "
                "lockfile already exists "
                f"('{self.lock}'). If you are sure no other running TF computations are "
                "using this cache prefix, "
                f"delete the lockfile and re-initialize the iterator.",
            ) from None
        except OSError as error:
            raise errors.os_error(self.lock, error) from None
        self.writer = ElementWriter(self.lock)

    def __next__(self) -> Element:
        for element in self.source:
            if self.writer is None:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    f"{self.lock}: an element could not be written; the cache was given up.",
                )
            try:
                self.writer.write(element)
            except errors.OpError:
                self.writer = None  # what was written is gone
                raise
            return element
        self._finish()
        raise StopIteration

    def _finish(self) -> None:
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.finish()
            try:
                os.replace(self.lock, self.path)
            except OSError as error:
                raise errors.os_error(self.path, error) from None

    def close(self) -> None:
        super().close()
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.abandon()

    def __del__(self) -> None:
        if self.writer is not None:
            self.close()
