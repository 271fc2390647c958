"""One pool of threads for everything that Headrace spreads over cores.

``parallel(tasks)`` runs the first task on the caller's thread and the others on workers, and returns when all are done. A
hand-over costs a few microseconds (two locks; no queue, no future). A worker that is busy for another run is not waited
for: its task runs on the caller's thread, so that nested and concurrent use can never deadlock and results never depend
on how many workers were free.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from headrace.runtime import denormals
from headrace.runtime.cores import ThreadChoice, thread_choice
from headrace.runtime.float_errors import silence

__all__ = ["chosen_threads", "limited", "parallel", "set_threads", "spread", "thread_count"]

Task = Callable[[], Any]


_choice = thread_choice()
_threads = _choice.count


class _Worker:
    """A thread that waits for one task at a time."""

    def __init__(self) -> None:
        self.free = threading.Lock()
        self.go = threading.Lock()
        self.done = threading.Lock()
        self.go.acquire()
        self.done.acquire()
        self.task: Task | None = None
        self.error: BaseException | None = None
        threading.Thread(target=self._loop, name="headrace", daemon=True).start()

    def _loop(self) -> None:
        silence()
        denormals.flush()
        while True:
            self.go.acquire()
            try:
                self.task()  # type: ignore[misc]
            except BaseException as error:
                self.error = error
            self.task = None
            self.done.release()

    def start(self, task: Task) -> None:
        self.task = task
        self.go.release()

    def finish(self) -> None:
        self.done.acquire()
        error, self.error = self.error, None
        self.free.release()
        if error is not None:
            raise error


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


_limit = _Limit()


def thread_count() -> int:
    """How many threads the caller's work is spread over, its own included."""
    limit = _limit.threads
    return _threads if limit is None else limit


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


def _claim(n: int) -> list[_Worker]:
    """Up to n workers that are free now."""
    if len(_workers) < n:
        with _lock:
            while len(_workers) < n:
                _workers.append(_Worker())
    return [w for w in _workers[:n] if w.free.acquire(blocking=False)]


def spread(tasks: Sequence[Task]) -> None:
    """Run tasks, more of them perhaps than there are threads: each thread gets neighbouring ones."""
    threads = min(thread_count(), len(tasks))
    share = -(-len(tasks) // threads)
    parallel([partial(_each, tasks[i : i + share]) for i in range(0, len(tasks), share)])


def _each(tasks: Sequence[Task]) -> None:
    for task in tasks:
        task()


def parallel(tasks: Sequence[Task]) -> None:
    """Run all tasks; the first error is raised when all have ended."""
    helpers = _claim(len(tasks) - 1)
    split = 1 + len(helpers)
    for worker, task in zip(helpers, tasks[1:]):
        worker.start(task)
    failed: BaseException | None = None
    try:
        tasks[0]()
        for task in tasks[split:]:
            task()
    except BaseException as error:
        failed = error
    for worker in helpers:
        try:
            worker.finish()
        except BaseException as error:
            failed = failed or error
    if failed is not None:
        raise failed
