"""Large steps that threads of the program ask for run on threads of ours.

OpenMP keeps a team of threads for every thread that computes with it, and as soon as these are more
than there are cores none of them waits ready any longer: sixteen threads that train one model
(asynchronous training) made every product of every step wait until the system woke its team up.
What a step is bound to (lower/bound_runs.py) belongs to a thread, too, and was there sixteen times.
So the steps of all threads but the main one are handed over to as many threads of ours as may work
at a time (runtime/turns.py); the caller sleeps until its step is done. On the main thread, which
gets Ctrl-C, steps run as always.

Steps of a session that several threads use at the same time keep to one core each, and as many run
as there are cores: no thread waits for another at the end of each product. (How many threads work
on a product may change the last bits of its result; here the order of the steps, which nobody
knows, changes all of them.) Steps of one thread alone are spread over all cores.

Only steps that take turns come here: they wait for no other thread, and call no Python function of
the user's.

    made = in_turn(function, state, *args)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from headrace.kernels.accel import limited_threads
from headrace.kernels.numpy.openblas import blas_holders, release_blas
from headrace.lower.session_state import State
from headrace.runtime.float_errors import silence
from headrace.runtime.thread_pool import thread_count
from headrace.runtime.turns import TURNS

__all__ = ["in_turn", "most_threads"]


class _Job:
    """A call that was handed over, and what became of it."""

    __slots__ = ("args", "done", "error", "function", "result", "threads")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], alone: bool) -> None:
        self.function, self.args = function, args
        self.threads = thread_count() if alone else 1
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """On a thread of ours."""
        try:
            with TURNS if self.threads > 1 else TURNS.half, limited_threads(self.threads):
                self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        finally:
            if blas_holders[0]:
                release_blas()
            self.done.release()


def _limit(spread: bool) -> int:
    """How many threads there may be for steps that are spread over cores, or keep to one."""
    return TURNS.limit() if spread else 2 * TURNS.limit()


def most_threads() -> int:
    """How many threads may run steps of the program's threads."""
    return _limit(True) + _limit(False)


class _StepThreads:
    """The threads, started as they are needed. Those for steps on one core have no teams."""

    def __init__(self) -> None:
        #: by whether their steps are spread over several cores
        self.jobs: dict[bool, SimpleQueue[_Job]] = {True: SimpleQueue(), False: SimpleQueue()}
        self.lock = threading.Lock()
        self.started = {True: 0, False: 0}
        self.ours = threading.local()

    def __call__(self, job: _Job) -> Any:
        spread = job.threads > 1
        limit = _limit(spread)
        if self.started[spread] < limit:
            self._start(spread, limit)
        self.jobs[spread].put(job)
        job.done.acquire()
        if job.error is not None:
            error, job.error = job.error, None
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return job.result

    def _start(self, spread: bool, limit: int) -> None:
        with self.lock:
            if self.started[spread] < limit:
                self.started[spread] += 1
                args = (self.jobs[spread],)
                threading.Thread(
                    target=self._loop, args=args, name="headrace steps", daemon=True
                ).start()

    def _loop(self, jobs: SimpleQueue[_Job]) -> None:
        self.ours.here = True
        silence()
        while True:
            job = jobs.get()
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


def in_turn(function: Callable[..., Any], state: State, *args: object) -> Any:
    """``function(state, *args)`` when it is its turn, on the thread that is best for it."""
    if _steps.is_here():
        return function(state, *args)
    with state.stepping as alone:
        if threading.current_thread() is not threading.main_thread():
            return _steps(_Job(function, (state, *args), alone))
        if alone:
            with TURNS:
                return function(state, *args)
        with TURNS.half, limited_threads(1):
            return function(state, *args)
