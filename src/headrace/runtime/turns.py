"""Threads of a program that do large work take turns.

Every large step spreads its work over all cores. When many threads of a program run such steps at
once (asynchronous training: sixteen workers on two cores), their teams wait for each other at every
product, and all are slower than one after the other. So at most ``slots`` of them work at a time,
or twice as many that keep to one core each; the others wait in the order in which they came, and
none is passed over.

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
    """So many at a time, in the order in which they come. A context manager.

    ``with turns`` is a step on several cores. ``with turns.half`` is one that keeps to a single
    core: two of these may work in the place of one of the others.
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots
        self.half = _Half(self)
        self._reset()

    def _reset(self) -> None:
        self.local = threading.local()
        self.lock = threading.Lock()
        self.working = 0  # halves
        self.waiting: deque[tuple[threading.Lock, int]] = deque()

    def limit(self) -> int:
        """How many may work at a time."""
        if self.slots is None:
            self.slots = max(1, chosen_threads().count // 2)
        return self.slots

    def __enter__(self) -> None:
        self.enter(2)

    def enter(self, halves: int) -> None:
        """Wait for a turn, unless the calling thread has one."""
        depth = getattr(self.local, "depth", 0)
        if not depth:
            self._take(halves)
            self.local.halves = halves
        self.local.depth = depth + 1

    def _take(self, halves: int) -> None:
        with self.lock:
            if not self.waiting and self._fits(halves):
                self.working += halves
                return
            mine = threading.Lock()
            mine.acquire()
            self.waiting.append((mine, halves))
        try:
            mine.acquire()  # until the turn is handed over
        except BaseException:  # Ctrl-C
            self._leave((mine, halves))
            raise

    def _fits(self, halves: int) -> bool:
        return self.working + halves <= 2 * self.limit()

    def _leave(self, mine: tuple[threading.Lock, int]) -> None:
        with self.lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
                self._hand_over()  # those behind it may need less
                return
        self._end(mine[1])  # it was handed over in the meantime

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.local.depth -= 1
        if not self.local.depth:
            self._end(self.local.halves)

    def _end(self, halves: int) -> None:
        with self.lock:
            self.working -= halves
            self._hand_over()

    def _hand_over(self) -> None:
        """To the thread that waits longest, as long as there is room (under the lock)."""
        while self.waiting and self._fits(self.waiting[0][1]):
            mine, halves = self.waiting.popleft()
            self.working += halves
            mine.release()


class _Half:
    """A turn that keeps to a single core."""

    __slots__ = ("turns",)

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def __enter__(self) -> None:
        self.turns.enter(1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.turns.__exit__(kind, error, traceback)


#: Of this process.
TURNS = Turns()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS._reset)
