"""``tensorflow.python.pywrap_tensorflow.EventsWriter``: event files of a given name.

Loggers of reinforcement learning write their events with it.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from headrace.train.summaries.event_files import event_message
from headrace.wire.tfrecord import TFRecordWriter

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

__all__ = ["EventsWriter"]


class EventsWriter:
    """Writes Event messages to ``<prefix>.out.tfevents.<time>.<host><suffix>``.

    The file is made by the first event; after :meth:`Close` the next event begins a new one.

    Args:
      file_prefix: the path up to ``.out.tfevents``, bytes or text.
    """

    def __init__(self, file_prefix: str | bytes) -> None:
        self._prefix = os.fsdecode(file_prefix)
        self._suffix, self._path = "", ""
        self._file: TFRecordWriter | None = None

    def InitWithSuffix(self, suffix: str | bytes) -> None:
        """Begin a new file, the name of which ends with ``suffix``."""
        self.Close()
        self._suffix = os.fsdecode(suffix)
        self._open()

    def _open(self) -> TFRecordWriter:
        if self._file is None:
            stem = f"{self._prefix}.out.tfevents.{int(time.time()):010d}"
            self._path = f"{stem}.{socket.gethostname()}{self._suffix}"
            self._file = TFRecordWriter(self._path)
            self._file.write(event_message(file_version="brain.Event:2").SerializeToString())
            self._file.flush()
        return self._file

    def FileName(self) -> bytes:
        """The path of the file."""
        self._open()
        return os.fsencode(self._path)

    def WriteEvent(self, event: Event) -> None:
        """Add an Event message."""
        if not hasattr(event, "SerializeToString"):
            raise TypeError(f"Expected an event_pb2.Event proto,  but got {type(event)}")
        self._open().write(event.SerializeToString())

    def Flush(self) -> None:
        """What was written is in the file when this returns."""
        if self._file is not None:
            self._file.flush()

    def Close(self) -> None:
        """Write the rest and close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
