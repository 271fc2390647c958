"""``tf.train.QueueRunner``: threads that run enqueue ops until the queue's input ends."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import stacks
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection
from headrace.session.session import BaseSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.tensor import Operation, Tensor
    from headrace.session.session import Session
    from headrace.train.input_queues.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]

_log = logging.getLogger("tensorflow")


class QueueRunner:
    """Threads, one for each of ``enqueue_ops``, that fill ``queue``.

    A thread ends when its op raises one of ``queue_closed_exception_types`` (OutOfRangeError: the
    input is used up); after the last, ``close_op`` is run. With a coordinator, a stop runs
    ``cancel_op``, and any other error is reported to it.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Any = None,
        close_op: Operation | None = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if get_default_graph()._is_eager:
            raise RuntimeError(
                "QueueRunners are not supported when eager execution is enabled. Instead, "
                "please use tf.data to get "
                "data into your model."
            )
        if queue_runner_def:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._from_message(queue_runner_def, import_scope)
        else:
            self._from_arguments(
                queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types
            )
        self._lock = threading.Lock()
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[Exception] = []

    def _from_arguments(
        self,
        queue: Any,
        enqueue_ops: Sequence[Any] | None,
        close_op: Operation | None,
        cancel_op: Operation | None,
        types: Sequence[Any] | None,
    ) -> None:
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        if types is not None and (
            not isinstance(types, tuple)
            or not types
            or not all(issubclass(t, errors.OpError) for t in types)
        ):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error "
                "types, but saw: "
                f"{types}"
            )
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = (
            queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        )
        self._queue_closed_exception_types = types or (errors.OutOfRangeError,)

    def _from_message(self, message: Any, scope: str | None) -> None:
        graph = get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(f"{scope}/{name}" if scope else name)

        self._queue = find(message.queue_name)
        self._enqueue_ops = [find(name) for name in message.enqueue_op_name]
        self._close_op = find(message.close_op_name)
        self._cancel_op = find(message.cancel_op_name)
        codes = set(message.queue_closed_exception_types)
        known = [
            t
            for t in vars(errors).values()
            if isinstance(t, type) and issubclass(t, errors.OpError)
        ]
        types = tuple(t for t in known if getattr(t, "code", None) in codes)
        self._queue_closed_exception_types = types or (errors.OutOfRangeError,)

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def enqueue_ops(self) -> Any:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type, ...]:
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self) -> list[Exception]:
        """What ended threads that had no coordinator to report to."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        name: str = self._queue.name
        return name

    def _run(
        self, sess: BaseSession, enqueue_op: Operation | Tensor, coord: Coordinator | None = None
    ) -> None:
        ended = False
        try:
            enqueue = sess.make_callable(enqueue_op)
            while not (coord and coord.should_stop()):
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    ended = True
                    self._end_of_input(sess)
                    return
        except Exception as error:
            if coord:
                coord.request_stop(error)
            else:
                _log.error("Exception in QueueRunner: %s", error)
                with self._lock:
                    self._exceptions_raised.append(error)
                raise
        finally:
            if not ended:
                with self._lock:
                    self._runs_per_session[sess] -= 1

    def _end_of_input(self, sess: BaseSession) -> None:
        with self._lock:
            self._runs_per_session[sess] -= 1
            last = self._runs_per_session[sess] == 0
        if last:
            _run_quietly(sess, self._close_op)

    @staticmethod
    def _close_on_stop(sess: BaseSession, cancel_op: Operation, coord: Coordinator) -> None:
        coord.wait_for_stop()
        _run_quietly(sess, cancel_op)

    def create_threads(
        self,
        sess: Session,
        coord: Coordinator | None = None,
        daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:
        """The threads for a session; none if it has them already. They are started with
        ``start``.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        prefix = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"{prefix}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord:
            stop = (sess, self._cancel_op, coord)
            threads.append(
                threading.Thread(
                    target=self._close_on_stop, args=stop, name=f"{prefix}-close_on_stop"
                )
            )
        for thread in threads:
            if coord:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads


def _run_quietly(sess: BaseSession, op: object) -> None:
    """The session or the queue may be closed already, which is what was wanted."""
    try:
        sess.run(op)
    except Exception as error:
        _log.debug("Ignored exception: %s", error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Add a QueueRunner to a collection, from which ``start_queue_runners`` starts it."""
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: BaseSession | None = None,
    coord: object = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Start the threads of all queue runners in the graph's ``collection``; gives the list of
    threads.

    ``sess`` is the default session if None. ``coord`` (a ``tf.train.Coordinator``) stops them and
    gets their errors; ``start=False`` only makes them; ``daemon`` threads do not keep the process
    alive.
    """
    if get_default_graph()._is_eager:
        raise RuntimeError("Queues are not compatible with eager execution.")
    if sess is None:
        sess = stacks.default_sessions.items[-1] if stacks.default_sessions.items else None
        if not sess:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with "
                "sess.as_default()` or pass "
                "an explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if sess.__class__.__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {sess.__class__}")
    runners = get_collection(collection)
    if not runners:
        _log.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were "
            "defined. You can safely remove "
            "the call to this deprecated function."
        )
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]
