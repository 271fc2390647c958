"""``tf.summary.FileWriter``.

Event files that TensorBoard shows, and ``tf.train.summary_iterator``.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.core.graph import Graph, get_default_graph
from headrace.ops.io.summary_writer_ops import event_path
from headrace.train.summaries.plugin_assets import write_plugin_assets
from headrace.wire.tfrecord import TFRecordWriter, tf_record_iterator

if TYPE_CHECKING:
    from tensorboard.compat.proto.config_pb2 import RunMetadata
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.session.session import Session
    from headrace.variables.variable import Variable

__all__ = ["FileWriter", "FileWriterCache", "event_message", "summary_iterator"]


def event_message(**fields: object) -> Event:
    """An Event of now."""
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=time.time(), **fields)


class _SessionEvents:
    """The writer of a folder in a session, as a file that records are written to."""

    def __init__(
        self, session: Any, logdir: str, max_queue: int, flush_secs: float, suffix: str
    ) -> None:
        from headrace.core.dtypes import string
        from headrace.core.scopes import name_scope
        from headrace.ops.array.basic import constant, placeholder_with_default
        from headrace.train.summaries.summary_writers import create_file_writer, import_event

        self._session = session
        os.makedirs(logdir, exist_ok=True)
        with session.graph.as_default(), name_scope("filewriter"):
            writer = create_file_writer(logdir, max_queue, int(flush_secs * 1000), suffix)
            with writer.as_default():
                self._event = placeholder_with_default(constant("unused", string), shape=[])
                self._add_op = import_event(self._event)
            self._init_op, self._flush_op = writer.init(), writer.flush()
            self._close_op = writer.close()

    def open(self) -> None:
        self._session.run(self._init_op)

    def write(self, record: bytes) -> None:
        self._session.run(self._add_op, feed_dict={self._event: record})

    def flush(self) -> None:
        self._session.run(self._flush_op)

    def close(self) -> None:
        self._session.run(self._close_op)


class FileWriter:
    """Writes summaries and graphs into an event file of ``logdir``.

    Args:
      logdir: the folder; made if it is not there.
      graph: a graph to write at once.
      max_queue: how many events may wait before they are flushed.
      flush_secs: after how many seconds waiting events are flushed with the next one.
      graph_def: the old form of ``graph``.
      filename_suffix: the end of the file's name.
      session: events go through this session's writer of the folder, which summary ops of
        ``tf.contrib.summary`` and TF 2's ``tf.summary`` share; the operations that do it are added
        to the session's graph.
    """

    _shared: _SessionEvents | None = None

    def __init__(
        self,
        logdir: str,
        graph: object = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: Session | None = None,
    ) -> None:
        self._logdir = os.fspath(logdir)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._suffix = filename_suffix or ""
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._file: TFRecordWriter | _SessionEvents | None = None
        self._session = session
        self._waiting, self._flushed = 0, time.time()
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            self._add_meta_graph_of(graph if graph_def is None else graph_def)

    def _add_meta_graph_of(self, graph: object) -> None:
        """As TensorFlow, a new file has its graph as a MetaGraph too."""
        from headrace.formats.meta_graph import create_meta_graph_def

        message = graph.as_graph_def(add_shapes=True) if hasattr(graph, "as_graph_def") else graph
        self.add_meta_graph(create_meta_graph_def(graph_def=message))

    def _open(self) -> None:
        if self._session is not None:
            if not isinstance(self._shared, _SessionEvents):
                self._shared = _SessionEvents(
                    self._session, self._logdir, self._max_queue, self._flush_secs, self._suffix
                )
            self._shared.open()
            self._file = self._shared
            return
        self._file = TFRecordWriter(event_path(self._logdir, self._suffix))
        self._file.write(event_message(file_version="brain.Event:2").SerializeToString())
        self._file.flush()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self._logdir

    def add_event(self, event: Event) -> None:
        """Write an Event message; a closed writer only warns, as in TensorFlow."""
        with self._lock:
            if self._file is None:
                warnings.warn(
                    "Attempting to use a closed FileWriter. The operation will be a noop unless "
                    "the FileWriter is explicitly reopened.",
                    stacklevel=2,
                )
                return
            self._file.write(event.SerializeToString())
            self._waiting += 1
            late = time.time() - self._flushed > self._flush_secs
            if self._waiting >= self._max_queue or late:
                self._flush()

    def _flush(self) -> None:
        if self._file is not None:
            self._file.flush()
        self._waiting, self._flushed = 0, time.time()

    def add_summary(self, summary: Any, global_step: TensorLike | None = None) -> None:
        """Write what a summary op gave (bytes) or a Summary message, for a step."""
        if isinstance(summary, bytes):
            from tensorboard.compat.proto.summary_pb2 import Summary

            parsed = Summary()
            parsed.ParseFromString(summary)
            summary = parsed
        for value in summary.value:
            if not value.metadata:
                continue
            if value.tag in self._seen:
                value.ClearField("metadata")
            self._seen.add(value.tag)
        self._add(event_message(summary=summary), global_step)

    def add_graph(
        self,
        graph: object = None,
        global_step: Variable | Tensor | None = None,
        graph_def: object = None,
    ) -> None:
        """Write a Graph (or a GraphDef) for TensorBoard's graph page."""
        if graph is None and graph_def is None:
            raise ValueError("The argument must be a graph or a graph_def.")
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if hasattr(graph, "as_graph_def"):
            graph_def = graph.as_graph_def(add_shapes=True)
        elif graph is not None:
            graph_def = graph
        if not hasattr(graph_def, "SerializeToString"):
            raise TypeError(f"The passed graph must be a Graph or a GraphDef, not {graph_def!r}")
        self._add(event_message(graph_def=graph_def.SerializeToString()), global_step)
        if isinstance(graph, Graph):
            write_plugin_assets(graph, self._logdir)

    def add_meta_graph(
        self, meta_graph_def: MetaGraphDef, global_step: Variable | Tensor | None = None
    ) -> None:
        """Write a MetaGraphDef."""
        self._add(event_message(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_session_log(self, session_log: object, global_step: int | None = None) -> None:
        """Write a SessionLog: start, checkpoint or stop of a session."""
        self._add(event_message(session_log=session_log), global_step)

    def add_run_metadata(
        self, run_metadata: RunMetadata, tag: str, global_step: object = None
    ) -> None:
        """Write a RunMetadata message under a tag, which may be used once."""
        if tag in self._seen:
            raise ValueError("The provided tag was already used for this event type")
        self._seen.add(tag)
        event = event_message()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._add(event, global_step)

    def _add(self, event: Event, global_step: Any) -> None:
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def flush(self) -> None:
        """Everything that was added is in the file when this returns."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Flush and close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def reopen(self) -> None:
        """Go on after ``close``, in a new file."""
        with self._lock:
            if self._file is None:
                self._open()


class FileWriterCache:
    """One FileWriter for each folder."""

    _writers: dict[str, FileWriter] = {}
    _lock = threading.Lock()

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder, made when it is first asked for."""
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._writers:
                graph = get_default_graph()
                FileWriterCache._writers[logdir] = FileWriter(logdir, graph=graph)
            return FileWriterCache._writers[logdir]

    @staticmethod
    def clear() -> None:
        """Close all writers and forget them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._writers.values():
                writer.close()
            FileWriterCache._writers = {}


def summary_iterator(path: str) -> Iterator[Any]:
    """The Event messages of an event file."""
    from tensorboard.compat.proto.event_pb2 import Event

    for record in tf_record_iterator(path):
        event = Event()
        event.ParseFromString(record)
        yield event
