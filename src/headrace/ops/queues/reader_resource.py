"""Readers of a session: records from files whose names come from a queue.

A reader takes a name, gives out that file's records with their keys, and takes the next name when
they are used up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from headrace import errors
from headrace.ops.queues.queue_resource import QueueResource
from headrace.runtime.file_paths import local_path
from headrace.wire.streams import chunks, text_lines
from headrace.wire.tfrecord import record_reader

__all__ = ["ReaderResource", "fixed_length", "identity", "records", "text", "whole_file"]

Record = tuple[bytes, bytes]
#: Bytes of a TFRecord beside its data: length, and two checksums.
_RECORD_OVERHEAD = 16


def text(path: bytes, skip_header_lines: int) -> Iterator[Record]:
    """Lines, with keys ``file:number``, counted from one with the header's lines."""
    for number, line in enumerate(text_lines(path, inner_returns=True), 1):
        if number > skip_header_lines:
            yield b"%s:%d" % (path, number), line


def records(path: bytes, compression: str) -> Iterator[Record]:
    """Records of a TFRecord file, with keys ``file:offset``."""
    offset = 0
    for data in record_reader(path, compression):
        yield b"%s:%d" % (path, offset), data
        offset += len(data) + _RECORD_OVERHEAD


def fixed_length(
    path: bytes, header: int, record: int, footer: int, hop: int, encoding: str
) -> Iterator[Record]:
    """Records of ``record`` bytes, each ``hop`` bytes after the one before.

    Keys ``file:number`` from zero.
    """
    data = b"".join(chunks(path, encoding))
    end, step = len(data) - footer, hop or record
    if not encoding and not hop and (end - header) % record:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file "
            f'"{local_path(path)}" has body length {end - header} bytes, which is not an '
            "exact multiple of the "
            f"record length ({record} bytes) and hop length ({hop} bytes).",
        )
    for number, at in enumerate(range(header, end - record + 1, step)):
        yield b"%s:%d" % (path, number), data[at : at + record]


def whole_file(path: bytes) -> Iterator[Record]:
    """The file, with its name as the key."""
    yield path, b"".join(chunks(path))


def identity(work: bytes) -> Iterator[Record]:
    """What was in the queue, as key and value."""
    yield work, work


class ReaderResource:
    """The state of one reader. ``open_work`` makes the records of one name."""

    def __init__(
        self, name: str, open_work: Callable[[bytes], Iterator[Record]], single: bool = False
    ) -> None:
        self.name = name
        self._single = single  # every name gives one record
        self._open_work = open_work
        self._lock = threading.Lock()
        self._work: Iterator[Record] | None = None
        self.records_produced = 0
        self.units_completed = 0

    def read(self, queue: QueueResource) -> Record:
        """The next record; OutOfRangeError if the queue is closed and empty."""
        with self._lock:
            while True:
                record = self._next(queue)
                if record is not None:
                    self.records_produced += 1
                    return record

    def read_up_to(self, queue: QueueResource, n: int) -> list[Record]:
        """Up to ``n`` records of one file."""
        if n < 1:
            raise errors.InvalidArgumentError(None, None, f"num_records must be positive, got {n}")
        with self._lock:
            found: list[Record] = []
            while len(found) < n:
                record = self._next(queue)
                if record is not None:
                    found.append(record)
                elif found:
                    break
            self.records_produced += len(found)
            return found

    def _next(self, queue: QueueResource) -> Record | None:
        """A record, or None at the end of a file."""
        if self._work is None:
            (name,) = queue.dequeue()
            self._work = self._open_work(name.item())
        try:
            record = next(self._work, None)
        except Exception:
            self._work = None
            raise
        if record is None or self._single:
            self._work = None
            self.units_completed += 1
        return record

    def reset(self) -> None:
        with self._lock:
            self._work = None
            self.records_produced = self.units_completed = 0

    def state(self) -> bytes:
        """What ``restore`` takes.

        Only a reader between two names has a state that fits into a string.
        """
        with self._lock:
            if self._work is not None:
                raise errors.UnimplementedError(
                    None, None, "Reader SerializeState: not between two work units"
                )
            return b"%d %d" % (self.records_produced, self.units_completed)

    def restore(self, state: bytes) -> None:
        try:
            produced, completed = (int(part) for part in state.split(b" "))
        except ValueError:
            raise errors.InvalidArgumentError(
                None, None, f"Could not parse state for IdentityReader '{self.name}': {state!r}"
            ) from None
        with self._lock:
            self._work = None
            self.records_produced, self.units_completed = produced, completed
