"""Summaries that are written while the program runs: writers, steps and conditions.

Each thread has a default writer, a condition (``record_if``) and a step; ops that write use them.
In a graph these are operations, collected under ``GraphKeys._SUMMARY_COLLECTION``; eagerly they
write at once.

    >>> writer = tf.summary.create_file_writer("/tmp/run")
    >>> with writer.as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

from headrace.core.annotations import TensorLike
from headrace.core.build import apply, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import int32, int64, string
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import (
    add_to_collection,
    control_dependencies,
    device,
    get_collection,
    get_default_session,
    init_scope,
    name_scope,
)
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_context import executing_eagerly, inside_function, is_symbolic_tensor
from headrace.ops.array.basic import constant, identity, no_op, placeholder
from headrace.ops.control.control_flow import smart_cond
from headrace.ops.io import summary_writer_ops as ops
from headrace.ops.io.summary_ops import message_bytes
from headrace.ops.math.comparison import logical_and

if TYPE_CHECKING:
    from headrace.core.graph import Graph


__all__ = [
    "NoopSummaryWriter",
    "ResourceSummaryWriter",
    "SummaryWriter",
    "all_v2_summary_ops",
    "create_file_writer",
    "create_file_writer_v2",
    "create_noop_writer",
    "current_writer",
    "flush",
    "get_step",
    "graph",
    "graph_v2",
    "import_event",
    "initialize",
    "record",
    "record_if",
    "set_step",
    "should_record_summaries",
    "should_record_summaries_v2",
    "summary_scope",
    "summary_writer_initializer_op",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
    "write_raw_pb",
    "written",
]

Condition = Union[bool, Tensor, Callable[[], Any], None]
_INIT_COLLECTION = "_SUMMARY_WRITER_V2"
_INVALID = re.compile(r"[^-_/.A-Za-z0-9]")
_numbers = itertools.count()


class _State(threading.local):
    """What a thread writes to, when, and with which step."""

    writer: SummaryWriter | None = None
    condition: Condition = None
    step: Any = None


_state = _State()


def current_writer() -> SummaryWriter | None:
    """The default writer of this thread."""
    return _state.writer


def _condition(default: bool) -> bool | Tensor:
    found = _state.condition
    return default if found is None else found() if callable(found) else found


def should_record_summaries() -> Tensor:
    """Whether ``tf.contrib.summary`` records here; not unless it was turned on."""
    return logical_and(True, _condition(False))


def should_record_summaries_v2() -> bool | Tensor:
    """Whether ``tf.summary`` of TF 2 records here; it does unless it was turned off."""
    return _condition(True) if current_writer() is not None else False


@contextlib.contextmanager
def record_if(condition: Condition) -> Iterator[None]:
    """Summaries are written inside only where ``condition`` (also a tensor or function) is true."""
    before, _state.condition = _state.condition, condition
    try:
        yield
    finally:
        _state.condition = before


def get_step() -> Any:
    """The step that was set with ``set_step`` in this thread, or None."""
    return _state.step


def set_step(step: TensorLike) -> None:
    """The step (a number or a variable) for summaries that are given none; None takes it away."""
    _state.step = step


class SummaryWriter:
    """What summaries are written to."""

    def set_as_default(self, step: TensorLike | None = None) -> None:
        """Make this the thread's default writer."""
        raise NotImplementedError

    def as_default(self, step: object = None) -> Any:
        """A context in which this is the thread's default writer; flushed at its end."""
        raise NotImplementedError

    def init(self) -> Any:
        """The op that opens the writer."""
        raise NotImplementedError

    def flush(self) -> Any:
        """Write what waits; in a graph, the op that does."""
        raise NotImplementedError

    def close(self) -> Any:
        """Flush and close; in a graph, the op that does."""
        raise NotImplementedError


class NoopSummaryWriter(SummaryWriter):
    """A writer that does nothing."""

    def set_as_default(self, step: TensorLike | None = None) -> None:
        """Do nothing."""

    @contextlib.contextmanager
    def as_default(self, step: object = None) -> Iterator[None]:
        """Change nothing."""
        yield

    def init(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ResourceSummaryWriter(SummaryWriter):
    """A writer of an event file.

    Args:
      shared_name: writers of one name in a session are the same.
      open_file: makes the op that opens the file of a handle.
      name: of the handle's operation.
      v2: TF 2's way: opened once, and closed for good.
    """

    def __init__(
        self,
        shared_name: str,
        open_file: Callable[[Tensor], Any],
        name: str | None = None,
        v2: bool = False,
    ) -> None:
        self._resource: Tensor = apply(ops.SUMMARY_WRITER, shared_name=shared_name, name=name)
        self._open_file, self._v2, self._closed = open_file, v2, False
        self._init_op = open_file(self._resource)
        if not executing_eagerly():
            add_to_collection(_INIT_COLLECTION, self._init_op)

    @property
    def _gone(self) -> bool:
        return self._v2 and executing_eagerly() and self._closed

    def _check(self) -> None:
        if self._gone:
            raise RuntimeError("SummaryWriter is already closed")

    def set_as_default(self, step: object = None) -> None:
        """Make this the thread's default writer, with a step if one is given."""
        self._check()
        _state.writer = self
        if step is not None:
            _state.step = step

    def as_default(
        self, step: object = None
    ) -> contextlib.AbstractContextManager[ResourceSummaryWriter]:
        """A context in which this is the default writer (with a step, if one is given).

        At its end what waits is written, but not in a graph, where ``flush`` gives the op.
        """
        self._check()
        context: contextlib.AbstractContextManager[ResourceSummaryWriter] = self._as_default(step)
        return context

    @contextlib.contextmanager
    def _as_default(self, step: object) -> Iterator[ResourceSummaryWriter]:
        before = _state.writer, _state.step
        _state.writer = self
        if step is not None:
            _state.step = step
        try:
            yield self
            self.flush()
        finally:
            _state.writer = before[0]
            if step is not None:
                _state.step = before[1]

    def init(self) -> Any:
        """The op that opens the file."""
        if self._v2:
            self._check()
            return self._init_op
        return self._open_file(self._resource)

    def flush(self) -> Any:
        """Write what waits; in a graph, the op that does."""
        return None if self._gone else flush(self)

    def close(self) -> Any:
        """Flush and close; in a graph, the op that does."""
        if self._gone:
            return None
        try:
            flushed = self.flush()
            with control_dependencies([] if flushed is None else [flushed]), device("cpu:0"):
                return apply_operation(ops.CLOSE_WRITER, self._resource)
        finally:
            self._closed = self._v2 and executing_eagerly()


def _opener(
    logdir: TensorLike, max_queue: object, flush_millis: object, filename_suffix: object
) -> Callable[[Tensor], Any]:
    values = [
        constant(10, int32) if max_queue is None else max_queue,
        constant(2 * 60 * 1000, int32) if flush_millis is None else flush_millis,
        constant(".v2", string) if filename_suffix is None else filename_suffix,
    ]

    def open_file(handle: Tensor) -> Operation:
        return apply_operation(ops.CREATE_FILE_WRITER, handle, logdir, *values)

    return open_file


def create_file_writer(
    logdir: str,
    max_queue: TensorLike | None = None,
    flush_millis: TensorLike | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """``tf.contrib.summary.create_file_writer``: one writer for all that name the same folder.

    Args:
      logdir: the folder; None gives a writer that does nothing.
      max_queue: how many events may wait (10).
      flush_millis: the longest time between flushes (two minutes).
      filename_suffix: the end of the file's name (".v2").
      name: under which it is shared; "logdir:" and the folder without this.
    """
    if logdir is None:
        return NoopSummaryWriter()
    folder = os.fspath(logdir)
    with device("cpu:0"):
        opener = _opener(folder, max_queue, flush_millis, filename_suffix)
        return ResourceSummaryWriter(f"logdir:{folder}" if name is None else name, opener)


def create_file_writer_v2(
    logdir: str,
    max_queue: object = None,
    flush_millis: object = None,
    filename_suffix: object = None,
    name: str | None = None,
    experimental_trackable: bool = False,
) -> SummaryWriter:
    """``tf.summary.create_file_writer`` of TF 2: a writer with a file of its own.

    Args:
      logdir: the folder.
      max_queue: how many events may wait (10).
      flush_millis: the longest time between flushes (two minutes).
      filename_suffix: the end of the file's name (".v2"), after the process' number.
      name: of the operation.
      experimental_trackable: refused: writers are no parts of SavedModels here.
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    if experimental_trackable:
        raise NotImplementedError(
            "create_file_writer(experimental_trackable=True): Headrace does not save writers "
            "in SavedModels; leave it out"
        )
    inside = inside_function()
    with name_scope(name, "create_file_writer") as scope, device("cpu:0"), init_scope():
        if executing_eagerly():
            _refuse_symbolic(inside, logdir, max_queue, flush_millis, filename_suffix)
        suffix = ".v2" if filename_suffix is None else filename_suffix
        if isinstance(suffix, str):
            suffix = f".{os.getpid()}.{next(_numbers)}{suffix}"
        folder = os.fspath(logdir) if isinstance(logdir, os.PathLike) else logdir
        opener = _opener(convert_to_tensor(folder, string), max_queue, flush_millis, suffix)
        shared = f"writer{next(_numbers)}" if executing_eagerly() else scope.rstrip("/")
        return ResourceSummaryWriter(shared, opener, name=name, v2=True)


def _refuse_symbolic(inside: bool, *given: object) -> None:
    for value in given:
        if is_symbolic_tensor(value):
            where = (
                "inside an @tf.function. The create call will be lifted into the outer eager "
                "execution context, so it cannot consume graph tensors defined inside the "
                "function body."
                if inside
                else "to eagerly executed create_file_writer()."
            )
            raise ValueError(f'Invalid graph Tensor argument "{value}" {where}')


def create_noop_writer() -> NoopSummaryWriter:
    """A writer that does nothing, where code expects one."""
    return NoopSummaryWriter()


def flush(writer: Any = None, name: str | None = None) -> Any:
    """Write what waits in a writer (the thread's default one without this)."""
    writer = current_writer() if writer is None else writer
    if writer is None:
        return no_op()
    if not isinstance(writer, (Tensor, ResourceSummaryWriter)):
        return writer.flush()
    handle = writer._resource if isinstance(writer, ResourceSummaryWriter) else writer
    with device("cpu:0"):
        return apply_operation(ops.FLUSH_WRITER, handle, name=name)


def all_v2_summary_ops() -> list[Any] | None:
    """The ops of a graph that write summaries; None when executing eagerly."""
    return None if executing_eagerly() else get_collection(GraphKeys._SUMMARY_COLLECTION)


def summary_writer_initializer_op() -> list[Any]:
    """The ops of a graph that open its writers."""
    if executing_eagerly():
        raise RuntimeError(
            "tf.contrib.summary.summary_writer_initializer_op is only supported in graph mode."
        )
    return get_collection(_INIT_COLLECTION)


def initialize(graph: Graph | None = None, session: Any = None) -> None:
    """Open the writers of a graph, and write ``graph`` (a Graph or GraphDef) if it is given.

    Does nothing eagerly. ``session`` is the default session without this.
    """
    if executing_eagerly():
        return
    writer = current_writer()
    if writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = get_default_session() if session is None else session
    if session is None:
        raise ValueError("session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        text = placeholder(string)
        session.run(_write_graph(text, 0), feed_dict={text: _serialized(graph)})


def _serialized(graph: Graph) -> bytes:
    if hasattr(graph, "as_graph_def"):
        graph = graph.as_graph_def(add_shapes=True)
    return message_bytes(graph)


def _write_graph(param: Tensor, step: TensorLike, name: str | None = None) -> Any:
    writer = current_writer()
    if not isinstance(writer, ResourceSummaryWriter):
        return no_op()
    with device("cpu:0"):
        text = identity(param) if isinstance(param, Tensor) else _serialized(param)
        return apply_operation(
            ops.WRITE_GRAPH, writer._resource, chosen_step(step), text, name=name
        )


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Write a graph: a string tensor, or eagerly a Graph or GraphDef too."""
    if not executing_eagerly() and not isinstance(param, Tensor):
        raise TypeError(
            f"graph() needs a tf.Tensor (e.g. tf.placeholder) in graph mode, but was: {type(param)}"
        )
    return _write_graph(param, step, name)


def graph_v2(graph_data: Any) -> Tensor:
    """``tf.summary.graph`` of TF 2: write a Graph, FuncGraph or GraphDef at step 0, eagerly."""
    if not executing_eagerly():
        raise NotImplementedError(
            "tf.summary.graph: writing graphs inside of functions or graphs is not supported; "
            "call it eagerly"
        )
    if not isinstance(current_writer(), ResourceSummaryWriter):
        return constant(False)
    _write_graph(graph_data, 0)
    return constant(True)


def import_event(tensor: TensorLike, name: str | None = None) -> Operation:
    """Write a serialized Event as it is, whatever the conditions."""
    writer = current_writer()
    if not isinstance(writer, ResourceSummaryWriter):
        raise RuntimeError("import_event needs a default summary writer")
    return apply_operation(ops.IMPORT_EVENT, writer._resource, tensor, name=name)


def chosen_step(step: TensorLike) -> Tensor:
    """A step as int64; the global step without one."""
    if step is None:
        from headrace.train.global_step import get_or_create_global_step

        step = get_or_create_global_step()
        return step._as_tensor() if hasattr(step, "_as_tensor") else convert_to_tensor(step, int64)
    return step if isinstance(step, Tensor) else convert_to_tensor(step, int64)


@contextlib.contextmanager
def summary_scope(
    name: str | None, default_name: str = "summary", values: Sequence[Any] | None = None
) -> Iterator[tuple[str, str]]:
    """(tag, scope): the tag is the name below the open name scopes, not made unique."""
    name = name or default_name
    here = get_default_graph().get_name_scope()
    tag = f"{here}/{name}" if here else name
    with name_scope(_INVALID.sub("", name) or None, default_name, values) as scope:
        yield tag, scope


def written(made: object) -> Tensor:
    """True, after the op that wrote."""
    with control_dependencies([] if executing_eagerly() else [made]):
        return constant(True)


def record(condition: TensorLike, write_it: Callable[[], Any], name: str) -> Any:
    """Whether something was written: ``write_it()`` where ``condition`` holds, in graphs too."""
    with device("cpu:0"):
        op = smart_cond(condition, write_it, lambda: constant(False), name=name)
    if not executing_eagerly():
        add_to_collection(GraphKeys._SUMMARY_COLLECTION, op)
    return op


def _needed_step(step: TensorLike | None) -> Tensor:
    step = get_step() if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    return convert_to_tensor(step, int64)


def write(
    tag: Any,
    tensor: Any,
    step: TensorLike | None = None,
    metadata: object = None,
    name: str | None = None,
) -> Any:
    """Write a tensor to the default writer; the result says whether it was written.

    Args:
      tag: what TensorBoard shows it as, mostly from ``summary_scope``.
      tensor: the data, or a function that gives it where it is needed.
      step: the step; ``set_step``'s without this.
      metadata: a SummaryMetadata, or its bytes, that says which plugin shows it.
      name: of the operation.
    """
    with name_scope(name, "write_summary") as scope:
        writer = current_writer()
        if not isinstance(writer, ResourceSummaryWriter):
            return constant(False)
        number = functools.partial(_needed_step, step)
        if not inside_function():
            number()
        text = b"" if metadata is None else metadata
        text = text.SerializeToString() if hasattr(text, "SerializeToString") else text

        def write_it() -> Tensor:
            data = tensor() if callable(tensor) else tensor
            return written(
                apply_operation(
                    ops.WRITE_SUMMARY,
                    writer._resource,
                    number(),
                    identity(data),
                    tag,
                    text,
                    name=scope,
                )
            )

        return record(_condition(True), write_it, "summary_cond")


def write_raw_pb(tensor: TensorLike, step: Any = None, name: str | None = None) -> Any:
    """Write serialized Summary messages (a string tensor of any shape) to the default writer."""
    with name_scope(name, "write_raw_pb") as scope:
        writer = current_writer()
        if not isinstance(writer, ResourceSummaryWriter):
            return constant(False)
        number = _needed_step(step)

        def write_it() -> Tensor:
            data = identity(tensor)
            return written(
                apply_operation(ops.WRITE_RAW, writer._resource, number, data, name=scope)
            )

        return record(_condition(True), write_it, "summary_cond")


_NO_TRACE = (
    "Headrace does not record traces for TensorBoard. A program's graphs are written with "
    "tf.summary.graph(function.get_concrete_function(...).graph), and `headrace profile` or "
    "sess.explain() show where the time goes."
)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: object = None) -> None:
    """Not there: an error says what to use instead.

    ``graph`` and ``profiler`` say in TensorFlow what is traced, ``profiler_outdir`` where to. In
    Headrace ``tf.profiler`` and ``explain`` of a session show what runs.
    """
    raise NotImplementedError(f"tf.summary.trace_on: {_NO_TRACE}")


def trace_export(name: str, step: TensorLike | None = None, profiler_outdir: object = None) -> None:
    """Not there, since nothing can be traced."""
    raise ValueError(f"Must enable trace before export. {_NO_TRACE}")


def trace_off() -> None:
    """Does nothing: no trace can be on."""
