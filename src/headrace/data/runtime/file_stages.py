"""Datasets of files: records, lines, records of one length, names of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.runtime.file_paths import local_path

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["FilesStage", "MatchingFilesStage", "text_scalar"]


def text_scalar(value: bytes) -> Array:
    """Bytes as a string tensor of rank 0."""
    out = np.empty((), object)
    out[()] = value
    return out


class FilesStage(Stage):
    """The strings that ``read`` finds in each of several files."""

    def __init__(
        self, paths: Sequence[bytes], read: Callable[[str], Iterator[bytes]], label: str
    ) -> None:
        self.paths = [local_path(p) for p in paths]
        self.read = read
        self._label = label

    @property
    def label(self) -> str:
        return self._label

    def start(self, ctx: Context) -> Pass:
        return FilesPass(self)


class FilesPass(Pass):
    fresh = True

    def __init__(self, stage: FilesStage) -> None:
        self.read = stage.read
        self.paths = iter(stage.paths)
        self.current: Any = iter(())
        self.error: Exception | None = None  # of what follows the texts that were given out

    def __next__(self) -> Element:
        self._raise_error()
        while True:
            for text in self.current:
                out = np.empty((), object)
                out[()] = text
                return (out,)
            self.current = iter(self.read(next(self.paths)))

    def block(self, n: int) -> Element:
        self._raise_error()
        texts: list[bytes] = []
        while not texts:
            try:
                texts.extend(islice(self.current, n))  # what came before an error is in it
            except Exception as error:
                self.error = error
                break
            if not texts:
                self.current = iter(self.read(next(self.paths)))
        if not texts:
            self._raise_error()
        out = np.empty(len(texts), object)
        out[:] = texts
        return (out,)

    def _raise_error(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def close(self) -> None:
        self.paths = iter(())
        finish = getattr(self.current, "close", None)
        if finish is not None:
            finish()
        self.current = iter(())


class MatchingFilesStage(Stage):
    """The files that fit patterns, in the order of their names."""

    def __init__(self, patterns: Sequence[bytes], find: Callable[[str], list[str]]) -> None:
        self.patterns = [local_path(p) for p in patterns]
        self.find = find

    def start(self, ctx: Context) -> Pass:
        names = sorted([name for p in self.patterns for name in self.find(p)])
        return ListPass([(text_scalar(os.fsencode(n)),) for n in names])
