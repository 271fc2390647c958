"""Large steps that threads of the program ask for run on a thread of ours.

OpenMP keeps a team of threads for every thread that computes with it, and as soon as these are more
than there are cores none of them waits ready any longer: sixteen threads that train one model
(asynchronous training) made every product of every step wait until the system woke its team up.
What a step is bound to (lower/bound_runs.py) belongs to a thread, too, and was there sixteen times.
So the steps of all threads but the main one are handed over to as many threads of ours as may work
at a time (runtime/turns.py: one on two cores); the caller sleeps until its step is done. On the
main thread, which gets Ctrl-C, steps run as always.

Only steps that take turns come here: they wait for no other thread, and call no Python function of
the user's.

    made = in_turn(function, *args)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from headrace.kernels.accel import limited_threads
from headrace.kernels.numpy.openblas import held, release_blas
from headrace.runtime.float_errors import silence
from headrace.runtime.thread_pool import thread_count
from headrace.runtime.turns import TURNS

__all__ = ["in_turn"]


class _Job:
    """A call that was handed over, and what became of it."""

    __slots__ = ("args", "done", "error", "function", "result", "threads")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        self.threads = thread_count()
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """On a thread of ours."""
        try:
            with TURNS, limited_threads(self.threads):
                self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        finally:
            if held[0]:
                release_blas()
            self.done.release()


class _StepThreads:
    """The threads, started as they are needed."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.lock = threading.Lock()
        self.started = 0
        self.ours = threading.local()

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        job = _Job(function, args)
        if self.started < TURNS.limit():
            self._start()
        self.jobs.put(job)
        job.done.acquire()
        if job.error is not None:
            error, job.error = job.error, None
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return job.result

    def _start(self) -> None:
        with self.lock:
            if self.started < TURNS.limit():
                self.started += 1
                threading.Thread(target=self._loop, name="headrace steps", daemon=True).start()

    def _loop(self) -> None:
        self.ours.here = True
        silence()
        while True:
            job = self.jobs.get()
            job.run()
            del job  # its arrays

    def is_here(self) -> bool:
        """Whether the caller is one of these threads."""
        return hasattr(self.ours, "here")


_steps = _StepThreads()


def _forget() -> None:
    """Threads do not survive a fork."""
    global _steps
    _steps = _StepThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def in_turn(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` when it is its turn, on the thread that is best for it."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main or _steps.is_here():
        with TURNS:
            return function(*args)
    return _steps(function, args)
