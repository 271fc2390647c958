"""Elements in a directory: ``Dataset.save``, ``Dataset.load`` and ``Dataset.snapshot``.

The form is Headrace's own. ``elements`` (or ``elements.gz``) holds the elements one after the other as the file cache does
(cache.py); it is written under another name and renamed when it is complete, so that what is there is whole.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from headrace import errors
from headrace.data.runtime.cache_stage import read_from, write_element
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stages import Context, Element, Pass, Stage

__all__ = ["SavedStage", "SnapshotStage", "elements_path", "save_elements"]


def elements_path(path: str, compression: str) -> str:
    if compression not in ("", "NONE", "AUTO", "GZIP"):
        raise errors.UnimplementedError(
            None, None, f"Compression {compression!r} is not supported; use 'GZIP' or none."
        )
    return os.path.join(path, "elements.gz" if compression == "GZIP" else "elements")


def _opened(path: str, mode: str) -> Any:
    return gzip.open(path, mode) if path.endswith(".gz") else open(path, mode)


def saved_elements(path: str) -> Iterator[Element]:
    with _opened(path, "rb") as file:
        yield from read_from(file)


class _Writer:
    """Writes beside the final name."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            number, self.unfinished = tempfile.mkstemp(
                suffix=os.path.splitext(path)[1], prefix=".unfinished-", dir=os.path.dirname(path)
            )
        except OSError as error:
            raise errors.PermissionDeniedError(None, None, f"{path}; {error.strerror}") from None
        os.close(number)
        self.file: Any = _opened(self.unfinished, "wb")

    def write(self, element: Element) -> None:
        write_element(self.file, element)

    def finish(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None
            os.replace(self.unfinished, self.path)

    def abandon(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None
            with contextlib.suppress(OSError):
                os.unlink(self.unfinished)


def save_elements(elements: Pass, path: str, compression: str) -> None:
    writer = _Writer(elements_path(path, compression))
    try:
        for element in elements:
            writer.write(element)
        writer.finish()
    finally:
        writer.abandon()


class SavedStage(Stage):
    """What was saved in a directory."""

    def __init__(self, path: str, compression: str) -> None:
        self.path = elements_path(path, compression)
        if not os.path.exists(self.path):
            raise errors.NotFoundError(
                None, None, f"Could not find metadata file. [{path}]: no saved dataset is there"
            )

    def start(self, ctx: Context) -> Pass:
        return ListPass(saved_elements(self.path))


class SnapshotStage(Stage):
    """The first complete pass is saved; passes that begin after that read what was saved."""

    def __init__(self, source: Stage, path: str, compression: str) -> None:
        self.inputs = (source,)
        self.path = elements_path(path, compression)

    def start(self, ctx: Context) -> Pass:
        if os.path.exists(self.path):
            return ListPass(saved_elements(self.path))
        return SnapshotPass(ctx.start(self.inputs[0]), self.path)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class SnapshotPass(OnePass):
    def __init__(self, source: Pass, path: str) -> None:
        super().__init__(source)
        self.writer = _Writer(path)

    def __next__(self) -> Element:
        for element in self.source:
            self.writer.write(element)
            return element
        self.writer.finish()
        raise StopIteration

    def close(self) -> None:
        super().close()
        self.writer.abandon()

    def __del__(self) -> None:
        writer = getattr(self, "writer", None)
        if writer is not None:
            writer.abandon()
