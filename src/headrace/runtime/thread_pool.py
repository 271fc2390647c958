"""One pool of threads for everything that Headrace spreads over cores.

``parallel(tasks)`` runs tasks on the caller's thread and on workers: each takes the next one that
nobody has begun, so the caller never waits for a worker that the scheduler has not let run yet,
only for tasks that are under way. On a busy machine the caller does most of them itself; nested and
concurrent use can never deadlock. Which thread runs a task does not change what it computes. A
hand-over costs a few microseconds (two locks; no queue, no future).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from headrace.runtime import denormals
from headrace.runtime.cores import ThreadChoice, thread_choice
from headrace.runtime.float_errors import silence

__all__ = [
    "PIECES",
    "chosen_threads",
    "is_worker",
    "limited",
    "parallel",
    "set_threads",
    "spread",
    "thread_count",
    "worker_threads",
]

Task = Callable[[], Any]

#: Pieces that work is cut into for each thread: a thread that is late leaves the rest to the
#: others.
PIECES = 4

_choice = thread_choice()
_threads = _choice.count


class _Job:
    """Tasks of one call.

    Both counters are advanced by one thread at a time (the interpreter's lock).
    """

    __slots__ = ("done", "error", "finished", "following", "tasks", "total")

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.total = len(tasks)
        self.following = itertools.count()
        self.finished = itertools.count(1)
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def work(self) -> bool:
        """Run tasks as long as there are some that nobody has begun.

        Whether this thread ended the last one.
        """
        last = False
        for number in self.following:
            if number >= self.total:
                break
            try:
                self.tasks[number]()
            except BaseException as error:
                self.error = self.error or error
            last = next(self.finished) == self.total
        return last


class _Worker:
    """A thread that waits for jobs.

    One that has not woken up yet for a job is offered the next one instead.
    """

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.job: _Job | None = None
        self.running = False
        self.thread = threading.Thread(target=self._loop, name="headrace", daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        _limit.is_worker = True
        silence()
        denormals.flush()
        while True:
            self.go.acquire()
            job, self.job = self.job, None
            if job is None:
                continue
            self.running = True
            last = job.work()
            self.running = False
            if last:
                job.done.release()
            del job

    def offer(self, job: _Job) -> bool:
        """Give it to the thread unless that is at work."""
        if self.running:
            return False
        self.job = job
        if self.go.locked():
            with suppress(RuntimeError):  # another thread woke it up
                self.go.release()
        return True


_workers: list[_Worker] = []
_lock = threading.Lock()


def _forget_workers() -> None:
    """Threads do not survive a fork; the child makes its own."""
    global _lock
    _workers.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


class _Limit(threading.local):
    """A thread's own number while it runs something with fewer."""

    threads: int | None = None
    is_worker = False


_limit = _Limit()


def thread_count() -> int:
    """How many threads the caller's work is spread over, its own included."""
    limit = _limit.threads
    return _threads if limit is None else limit


def is_worker() -> bool:
    """Whether the caller is one of the pool's threads."""
    return _limit.is_worker


def worker_threads() -> set[int]:
    """The system's numbers of the pool's threads, as far as they run."""
    return {number for worker in _workers if (number := worker.thread.native_id) is not None}


def set_threads(n: int, source: str = "set_threads") -> None:
    """Set it for everything that has no limit of its own; 0 means what the machine allows."""
    global _threads, _choice
    _choice = ThreadChoice(n, source) if n > 0 else thread_choice()
    _threads = _choice.count


def chosen_threads() -> ThreadChoice:
    """The number of threads of everything that has no limit of its own, and where it comes from."""
    return _choice


@contextmanager
def limited(n: int) -> Iterator[None]:
    """What the calling thread runs inside is spread over ``n`` threads."""
    outer, _limit.threads = _limit.threads, max(1, n)
    try:
        yield
    finally:
        _limit.threads = outer


def _offer(job: _Job, n: int) -> None:
    """Up to n workers may help."""
    if len(_workers) < n:
        with _lock:
            while len(_workers) < n:
                _workers.append(_Worker())
    for worker in _workers:
        if n <= 0:
            return
        n -= worker.offer(job)


def spread(tasks: Sequence[Task]) -> None:
    """Run many small tasks: threads take several neighbouring ones at a time."""
    share = -(-len(tasks) // (thread_count() * PIECES))
    parallel([partial(_each, tasks[i : i + share]) for i in range(0, len(tasks), share)])


def _each(tasks: Sequence[Task]) -> None:
    for task in tasks:
        task()


def parallel(tasks: Sequence[Task]) -> None:
    """Run all tasks; the first error is raised when all have ended."""
    helpers = min(thread_count(), len(tasks)) - 1
    if helpers < 1:
        _each(tasks)
        return
    job = _Job(tasks)
    _offer(job, helpers)
    if not job.work():
        job.done.acquire()
    job.tasks = ()  # a worker that comes late keeps no arrays alive
    if job.error is not None:
        raise job.error
