"""Elements in a directory: ``Dataset.save``, ``Dataset.load`` and ``Dataset.snapshot``.

``elements`` is a folder with a file for each shard (wire/element_files.py): ``shard-0`` holds those
elements for which the shard function gave 0. It is written under another name and renamed when it
is complete, so that what is there is whole. A reader is given a dataset of datasets, one for each
shard, and makes a dataset of elements of them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from headrace import errors
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.wire.element_files import ElementWriter, PartSpec, read_elements

__all__ = ["SavedStage", "SnapshotStage", "save_elements", "spec_path"]

#: Of one element: the number of the shard that it goes to.
ShardFunction = Callable[..., tuple[Any, ...]]
#: Of a stage of stages (the shards): the stage of the elements, in a tuple.
ReaderFunction = Callable[[Stage], tuple[Any, ...]]
_PREFIX = "shard-"
#: The structure of the elements, beside them.
SPEC_FILE = "spec.json"
#: A shard is an open file while it is written.
MAX_SHARDS = 512


def _compression(name: str) -> str:
    if name not in ("", "NONE", "AUTO", "GZIP"):
        raise errors.UnimplementedError(
            None, None, f"Compression {name!r} is not supported; use 'GZIP' or none."
        )
    return "GZIP" if name == "GZIP" else ""


def _folder(path: str) -> str:
    return os.path.join(path, "elements")


def spec_path(path: str) -> str:
    """Where ``save`` describes the elements."""
    return os.path.join(_folder(path), SPEC_FILE)


class _ShardsWriter:
    """Writes beside the final name.

    ``finish`` replaces what was there; ``abandon`` leaves nothing behind.
    """

    def __init__(self, path: str, compression: str, shard: ShardFunction | None) -> None:
        self.path = path
        self.compression = _compression(compression)
        self.shard = shard
        self.writers: dict[int, ElementWriter] = {}
        self.unfinished: str | None = None
        try:
            self.made = _make_folders(path)
            self.unfinished = tempfile.mkdtemp(prefix=".unfinished-", dir=path)
        except OSError as error:
            raise errors.os_error(path, error) from None

    def write(self, element: Element) -> None:
        number = 0 if self.shard is None else int(self.shard(*element)[0])
        writer = self.writers.get(number)
        if writer is None:
            writer = self.writers[number] = self._new_writer(number)
        writer.write(element)

    def _new_writer(self, number: int) -> ElementWriter:
        if number < 0 or len(self.writers) == MAX_SHARDS:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"shard_func gave {number}: shards are numbered from 0 on, and at most "
                f"{MAX_SHARDS} are written at once.",
            )
        assert self.unfinished is not None
        return ElementWriter(os.path.join(self.unfinished, f"{_PREFIX}{number}"), self.compression)

    def write_beside(self, name: str, contents: str) -> None:
        assert self.unfinished is not None
        path = os.path.join(self.unfinished, name)
        try:
            with open(path, "w") as file:
                file.write(contents)
        except OSError as error:
            raise errors.os_error(path, error) from None

    def finish(self, replace: bool) -> None:
        """``replace``: also if another writer finished meanwhile."""
        if self.unfinished is None:
            return
        if not self.writers:
            self.writers[0] = self._new_writer(0)
        for writer in self.writers.values():
            writer.finish()
        try:
            self._put_in_place(replace)
        except OSError as error:
            raise errors.os_error(self.path, error) from None

    def _put_in_place(self, replace: bool) -> None:
        assert self.unfinished is not None
        final = _folder(self.path)
        if os.path.exists(final):
            if not replace:
                self.abandon()
                return
            old = tempfile.mkdtemp(prefix=".unfinished-", dir=self.path)
            os.replace(final, old)
            os.replace(self.unfinished, final)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(self.unfinished, final)
        self.unfinished = None

    def abandon(self) -> None:
        """Nothing if it is finished. Never fails: a full disk is no reason to leave files
        behind.
        """
        unfinished, self.unfinished = self.unfinished, None
        if unfinished is None:
            return
        for writer in self.writers.values():
            writer.abandon()
        shutil.rmtree(unfinished, ignore_errors=True)
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):  # somebody else put something there
                os.rmdir(folder)


def _make_folders(path: str) -> list[str]:
    """Makes a folder and those that it is in; gives those that were not there."""
    made: list[str] = []
    missing = os.path.abspath(path)
    while not os.path.exists(missing):
        made.insert(0, missing)
        missing = os.path.dirname(missing)
    os.makedirs(path, exist_ok=True)
    return made


def save_elements(
    elements: Pass, path: str, compression: str, shard: ShardFunction | None, spec: str
) -> None:
    """All elements, and the file that describes them."""
    writer = _ShardsWriter(path, compression, shard)
    try:
        for element in elements:
            writer.write(element)
        writer.write_beside(SPEC_FILE, spec)
        writer.finish(replace=True)
    finally:
        writer.abandon()


# reading ------------------------------------------------------------------------------------------


class ShardStage(Stage):
    """The elements of one file."""

    def __init__(self, path: str, compression: str, parts: Sequence[PartSpec]) -> None:
        self.path = path
        self.compression = compression
        self.parts = parts

    def start(self, ctx: Context) -> Pass:
        return ListPass(read_elements(self.path, self.compression, self.parts))


class ShardsStage(Stage):
    """Datasets: one for each file, in the order of their numbers."""

    def __init__(self, path: str, compression: str, parts: Sequence[PartSpec]) -> None:
        folder = _folder(path)
        try:
            names = [n for n in os.listdir(folder) if n != SPEC_FILE]
            numbers = sorted([int(n.removeprefix(_PREFIX)) for n in names])
        except OSError as error:
            raise errors.os_error(folder, error) from None
        except ValueError:
            raise errors.DataLossError(
                None, None, f"{folder} has files that no dataset was saved in"
            ) from None
        kind = _compression(compression)
        self.shards = [
            ShardStage(os.path.join(folder, f"{_PREFIX}{n}"), kind, parts) for n in numbers
        ]

    def start(self, ctx: Context) -> Pass:
        return ListPass([(shard,) for shard in self.shards])

    def cardinality(self) -> int:
        return len(self.shards)


def _read(
    ctx: Context,
    path: str,
    compression: str,
    parts: Sequence[PartSpec],
    reader: ReaderFunction | None,
) -> Pass:
    shards = ShardsStage(path, compression, parts)
    if reader is None and len(shards.shards) == 1:
        return ctx.start(shards.shards[0])
    if reader is None:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{path} has {len(shards.shards)} shards: it takes a reader_func to read them.",
        )
    return ctx.start(reader(shards)[0])


class SavedStage(Stage):
    """What was saved in a directory."""

    def __init__(
        self, path: str, compression: str, parts: Sequence[PartSpec], reader: ReaderFunction | None
    ) -> None:
        if not os.path.exists(_folder(path)):
            raise errors.NotFoundError(
                None, None, f"Could not find metadata file. [{path}]: no saved dataset is there"
            )
        self.arguments = (path, compression, parts, reader)

    def start(self, ctx: Context) -> Pass:
        return _read(ctx, *self.arguments)


class SnapshotStage(Stage):
    """The first complete pass is saved; passes that begin after that read what was saved."""

    def __init__(
        self,
        source: Stage,
        path: str,
        compression: str,
        parts: Sequence[PartSpec],
        shard: ShardFunction | None,
        reader: ReaderFunction | None,
    ) -> None:
        self.inputs = (source,)
        self.path = path
        self.compression = compression
        self.parts = parts
        self.shard = shard
        self.reader = reader

    def start(self, ctx: Context) -> Pass:
        if os.path.exists(_folder(self.path)):
            return _read(ctx, self.path, self.compression, self.parts, self.reader)
        writer = _ShardsWriter(self.path, self.compression, self.shard)
        return SnapshotPass(ctx.start(self.inputs[0]), writer)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class SnapshotPass(OnePass):
    def __init__(self, source: Pass, writer: _ShardsWriter) -> None:
        super().__init__(source)
        self.writer = writer

    def __next__(self) -> Element:
        try:
            for element in self.source:
                if self.writer.unfinished is not None:
                    self.writer.write(element)
                return element
            self.writer.finish(replace=False)
        except errors.OpError:
            self.writer.abandon()
            raise
        raise StopIteration

    def close(self) -> None:
        super().close()
        self.writer.abandon()

    def __del__(self) -> None:
        writer = getattr(self, "writer", None)
        if writer is not None:
            writer.abandon()
