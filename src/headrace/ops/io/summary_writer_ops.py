"""Ops that write event files while a graph runs: TF 2's ``tf.summary`` and ``tf.contrib.summary``.

The value of a writer's handle is its :class:`WriterResource`. CreateSummaryFileWriter opens the
file, CloseSummaryWriter closes it; the other ops fail on a writer that is not open.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.ops.io import media_summary_ops, summary_ops
from headrace.runtime.file_paths import local_path
from headrace.wire.tfrecord import TFRecordWriter

__all__ = [
    "CLOSE_WRITER",
    "CREATE_FILE_WRITER",
    "FLUSH_WRITER",
    "IMPORT_EVENT",
    "SUMMARY_WRITER",
    "WRITE_AUDIO",
    "WRITE_GRAPH",
    "WRITE_HISTOGRAM",
    "WRITE_IMAGE",
    "WRITE_RAW",
    "WRITE_SCALAR",
    "WRITE_SUMMARY",
    "WriterResource",
    "event_path",
]

#: Event files of one process that are open; flushed when it ends.
_open_writers: weakref.WeakSet[WriterResource] = weakref.WeakSet()


def event_path(folder: str, suffix: str) -> str:
    """A path for a new event file. The folder is made; a name that is taken gets a number."""
    if folder:
        os.makedirs(folder, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
    path, number = os.path.join(folder, name + suffix), 0
    while os.path.exists(path):
        number += 1
        path = os.path.join(folder, f"{name}.{number}{suffix}")
    return path


class WriterResource:
    """An event file that ops write to; events wait until a flush."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._file: TFRecordWriter | None = None
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []

    def open(self, folder: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        """Open a file; does nothing where one is open."""
        with self._lock:
            if self._file is not None:
                return
            self._max_queue, self._flush_seconds = max_queue, flush_millis / 1000
            try:
                self._file = TFRecordWriter(event_path(folder, suffix))
            except OSError as error:
                raise errors.os_error(error.filename or folder, error) from None
            self._file.write(_event(0, file_version="brain.Event:2").SerializeToString())
            self._file.flush()
            self._flushed = time.monotonic()
            _open_writers.add(self)

    def _opened(self) -> TFRecordWriter:
        if self._file is None:
            raise errors.NotFoundError(
                None,
                None,
                f"The summary writer {self.name} is not open: run its init() "
                "(tf.contrib.summary.initialize, or init() of the writer) first, "
                "and write nothing after close().",
            )
        return self._file

    def write(self, event: Any) -> None:
        """Add an Event message."""
        with self._lock:
            self._opened()
            self._waiting.append(event.SerializeToString())
            late = time.monotonic() - self._flushed > self._flush_seconds
            if len(self._waiting) > self._max_queue or late:
                self.flush()

    def flush(self) -> None:
        """Everything that was added is in the file when this returns."""
        with self._lock:
            file = self._opened()
            for record in self._waiting:
                file.write(record)
            self._waiting.clear()
            file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Flush and close; does nothing on a closed writer."""
        with self._lock:
            if self._file is not None:
                self.flush()
                self._file.close()
                self._file = None

    def __del__(self) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    for writer in list(_open_writers):
        writer.close()


def _event(step: int, **fields: object) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=time.time(), step=step, **fields)


def _item(value: Array) -> Any:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _text(value: Array) -> str:
    return local_path(_item(value))


def _define(name: str, signature: str, kernel: Callable[..., Any]) -> OpDef:
    return define(
        name,
        signature,
        shape=lambda c: [()] if "-> w" in signature else [],
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
        writes_files=name == "CreateSummaryFileWriter",
    )


def _handle(xp: ArrayNamespace, *, node: KernelNode, rt: Runtime) -> WriterResource:
    shared = node.attrs["shared_name"]
    key = ("summary writer", f"{node.attrs['container']}/{shared or node.key}")
    return rt.session_resource(key, lambda: WriterResource(shared or node.name))


def _create(
    xp: ArrayNamespace,
    writer: Array,
    logdir: Array,
    max_queue: Array,
    flush_millis: Array,
    filename_suffix: Array,
) -> tuple[()]:
    _item(writer).open(_text(logdir), int(max_queue), int(flush_millis), _text(filename_suffix))
    return ()


def _flush(xp: ArrayNamespace, writer: Array) -> tuple[()]:
    _item(writer).flush()
    return ()


def _close(xp: ArrayNamespace, writer: Array) -> tuple[()]:
    _item(writer)._opened()
    _item(writer).close()
    return ()


def _write(
    xp: ArrayNamespace,
    writer: Array,
    step: Array,
    tensor: Array,
    tag: Array,
    summary_metadata: Array,
) -> tuple[()]:
    event = _event(int(step))
    summary_ops.add_tensor(event.summary, tag, tensor, summary_metadata)
    _item(writer).write(event)
    return ()


def _write_raw(xp: ArrayNamespace, writer: Array, step: Array, tensor: Array) -> tuple[()]:
    event = _event(int(step))
    event.summary.SetInParent()
    for i, text in enumerate(np.asarray(tensor, object).ravel()):
        try:
            event.summary.MergeFromString(text)
        except Exception as error:
            raise errors.DataLossError(
                None, None, f"Bad tf.compat.v1.Summary binary proto tensor string at index {i}"
            ) from error
    _item(writer).write(event)
    return ()


def _import_event(xp: ArrayNamespace, writer: Array, event: Array) -> tuple[()]:
    message = _event(0)
    try:
        message.ParseFromString(_item(event))
    except Exception as error:
        raise errors.DataLossError(None, None, "Bad tf.Event binary proto tensor string") from error
    _item(writer).write(message)
    return ()


def _write_scalar(
    xp: ArrayNamespace, writer: Array, step: Array, tag: Array, value: Array
) -> tuple[()]:
    event = _event(int(step))
    event.summary.value.add(tag=_text(tag), simple_value=float(_item(value)))
    _item(writer).write(event)
    return ()


def _write_histogram(
    xp: ArrayNamespace, writer: Array, step: Array, tag: Array, values: Array
) -> tuple[()]:
    event = _event(int(step))
    summary_ops.add_histogram(event.summary, tag, values)
    _item(writer).write(event)
    return ()


def _write_image(
    xp: ArrayNamespace,
    writer: Array,
    step: Array,
    tag: Array,
    tensor: Array,
    bad_color: Array,
    *,
    max_images: int,
) -> tuple[()]:
    event = _event(int(step))
    media_summary_ops.add_images(event.summary, tag, tensor, max_images, bad_color)
    _item(writer).write(event)
    return ()


def _write_audio(
    xp: ArrayNamespace,
    writer: Array,
    step: Array,
    tag: Array,
    tensor: Array,
    sample_rate: Array,
    *,
    max_outputs: int,
) -> tuple[()]:
    event = _event(int(step))
    media_summary_ops.add_audio(event.summary, tag, tensor, float(sample_rate), max_outputs)
    _item(writer).write(event)
    return ()


def _write_graph(xp: ArrayNamespace, writer: Array, step: Array, tensor: Array) -> tuple[()]:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    try:
        GraphDef.FromString(_item(tensor))
    except Exception as error:
        raise errors.DataLossError(
            None, None, "Bad tf.GraphDef binary proto scalar string"
        ) from error
    _item(writer).write(_event(int(step), graph_def=_item(tensor)))
    return ()


_STEP = "writer: resource, step: int64"
SUMMARY_WRITER = _define(
    "SummaryWriter", "-> writer: resource; shared_name: str='', container: str=''", _handle
)
CREATE_FILE_WRITER = _define(
    "CreateSummaryFileWriter",
    "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, "
    "filename_suffix: string ->",
    _create,
)
FLUSH_WRITER = _define("FlushSummaryWriter", "writer: resource ->", _flush)
CLOSE_WRITER = _define("CloseSummaryWriter", "writer: resource ->", _close)
WRITE_SUMMARY = _define(
    "WriteSummary",
    f"{_STEP}, tensor: T, tag: string, summary_metadata: string -> ; T: type",
    _write,
)
WRITE_RAW = _define("WriteRawProtoSummary", f"{_STEP}, tensor: string ->", _write_raw)
IMPORT_EVENT = _define("ImportEvent", "writer: resource, event: string ->", _import_event)
WRITE_SCALAR = _define(
    "WriteScalarSummary", f"{_STEP}, tag: string, value: T -> ; T: type(real)", _write_scalar
)
WRITE_HISTOGRAM = _define(
    "WriteHistogramSummary",
    f"{_STEP}, tag: string, values: T -> ; T: type(real)=float32",
    _write_histogram,
)
WRITE_IMAGE = _define(
    "WriteImageSummary",
    f"{_STEP}, tag: string, tensor: T, bad_color: uint8 -> ; max_images: int=3, T: type=float32",
    _write_image,
)
WRITE_AUDIO = _define(
    "WriteAudioSummary",
    f"{_STEP}, tag: string, tensor: float32, sample_rate: float32 -> ; max_outputs: int=3",
    _write_audio,
)
WRITE_GRAPH = _define("WriteGraphSummary", f"{_STEP}, tensor: string ->", _write_graph)
