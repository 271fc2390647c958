"""Runs with a time limit: ``RunOptions.timeout_in_ms`` and ``ConfigProto.operation_timeout_in_ms``.

Such a run goes on a thread of its own while the caller waits. When the time is over the caller gets
DeadlineExceededError, and the thread is stopped at the next line that is not between writes which
belong together (runtime/interrupts.py). A thread that waits for something outside of Python is
stopped when that returns; the session can be used in the meantime.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from headrace import errors
from headrace.runtime.interrupts import MAX_WAIT_SECONDS, RETRY_SECONDS, is_writing

__all__ = ["check_metadata", "run_within", "timeout_of"]


def timeout_of(options: object) -> int:
    """Milliseconds; 0 is no limit."""
    if not options and not hasattr(options, "timeout_in_ms"):
        return 0
    if not hasattr(options, "timeout_in_ms"):
        raise AttributeError(
            f"options must be a tf.RunOptions: {type(options).__name__!r} object has no "
            "attribute 'SerializeToString'"
        )
    return int(options.timeout_in_ms)


def check_metadata(run_metadata: object) -> None:
    if run_metadata is not None and not hasattr(run_metadata, "ParseFromString"):
        raise AttributeError(
            f"run_metadata must be a tf.RunMetadata: {type(run_metadata).__name__!r} "
            "object has no attribute "
            "'ParseFromString'"
        )


class _Cancelled(BaseException):
    """Raised in a thread whose time is over."""


class _Job:
    """One run on a thread."""

    __slots__ = ("argument", "call", "cancelled", "done", "error", "result")

    def __init__(self, call: Callable[[Any], Any], argument: object) -> None:
        self.call, self.argument = call, argument
        self.done = threading.Event()
        self.cancelled = False
        self.result: Any = None
        self.error: BaseException | None = None

    def work(self) -> None:
        try:
            self.result = self.call(self.argument)
        except BaseException as error:
            self.error = error


class _Runner(threading.Thread):
    """A thread that does one job after the other, until one of them is cancelled."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="headrace deadline")
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.start()

    def run(self) -> None:
        try:
            while True:
                job = self.jobs.get()
                try:
                    job.work()
                finally:
                    job.done.set()
                if job.cancelled:
                    return
                del job
                _idle.append(self)
        except _Cancelled:  # it came when the job was done already
            return

    def cancel(self, job: _Job) -> None:
        """Raise in the thread as soon as it is not writing."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        while not job.done.is_set():
            frame = sys._current_frames().get(self.ident or 0)
            if frame is None:
                return
            if not is_writing(frame) or time.monotonic() > end:
                ident = ctypes.c_ulong(self.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Cancelled))
                return
            del frame
            time.sleep(RETRY_SECONDS)


_idle: list[_Runner] = []


def run_within(milliseconds: int, call: Callable[[Any], Any], argument: object) -> Any:
    """``call(argument)``, or DeadlineExceededError when it takes longer."""
    try:
        runner = _idle.pop()
    except IndexError:
        runner = _Runner()
    job = _Job(call, argument)
    runner.jobs.put(job)
    finished = False
    try:
        finished = job.done.wait(milliseconds / 1000)
    finally:
        if not finished:  # late, or interrupted while waiting
            job.cancelled = True
            threading.Thread(target=runner.cancel, args=(job,), daemon=True).start()
    if not finished:
        raise errors.DeadlineExceededError(
            None,
            None,
            f"Timed out waiting for notification: the run took longer than {milliseconds} "
            "ms (timeout_in_ms of tf.RunOptions "
            "or operation_timeout_in_ms of tf.ConfigProto)",
        )
    if job.error is not None:
        raise job.error
    return job.result
