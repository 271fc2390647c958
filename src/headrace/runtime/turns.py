"""Threads of a program that do large work take turns.

Every large step spreads its work over all cores. When many threads of a program run such steps at
once (asynchronous training: sixteen workers on two cores), their teams wait for each other at every
product, and all are slower than one after the other. So at most ``slots`` of them work at a time;
the others wait in the order in which they came, and none is passed over.

Only what cannot wait for another thread may take a turn: no queues, no Python functions of the
user's. A thread that has a turn may ask again (a step that calls another).

    with TURNS:
        ...
"""

from __future__ import annotations

import os
import threading
from collections import deque
from types import TracebackType

from headrace.runtime.thread_pool import chosen_threads

__all__ = ["TURNS", "Turns"]


class Turns:
    """So many at a time, in the order in which they come. A context manager."""

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots
        self._reset()

    def _reset(self) -> None:
        self.local = threading.local()
        self.lock = threading.Lock()
        self.working = 0
        self.waiting: deque[threading.Lock] = deque()

    def limit(self) -> int:
        """How many may work at a time."""
        if self.slots is None:
            self.slots = max(1, chosen_threads().count // 2)
        return self.slots

    def __enter__(self) -> None:
        depth = getattr(self.local, "depth", 0)
        if not depth:
            self._take()
        self.local.depth = depth + 1

    def _take(self) -> None:
        with self.lock:
            if self.working < self.limit() and not self.waiting:
                self.working += 1
                return
            mine = threading.Lock()
            mine.acquire()
            self.waiting.append(mine)
        try:
            mine.acquire()  # until the turn is handed over
        except BaseException:  # Ctrl-C
            self._leave(mine)
            raise

    def _leave(self, mine: threading.Lock) -> None:
        with self.lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
                return
        self._next()  # it was handed over in the meantime

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.local.depth -= 1
        if not self.local.depth:
            self._next()

    def _next(self) -> None:
        with self.lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self.working -= 1


#: Of this process.
TURNS = Turns()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS._reset)
