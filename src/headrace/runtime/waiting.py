"""Whether cores are contended, and therefore how threads that wait for work should wait.

A thread that spins while it waits starts its next work at once; but where another process, or
another of our own threads, wants the core, it takes time away from whoever it waits for. The system
counts how often a process's threads were made to leave a core (involuntary context switches):
never, or a few times a second, on an idle machine; hundreds of times under load.

``tick()`` is called at the end of runs that worked on large arrays. Every ``WINDOW`` it looks at
that count and tells those who registered with ``on_change`` when the answer changes. How threads
wait does not change what they compute.

    >>> on_change(lambda contended: print("sleep" if contended else "spin"))
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["contended", "on_change", "tick"]

#: Seconds between two looks, at least.
WINDOW = 0.02
#: Involuntary switches a second from which cores are contended.
BUSY_RATE = 60.0
#: Seconds without contention after which it is over.
CALM = 0.5


class _Watch:
    """The state of the process. One thread looks at a time; others go on."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], None]] = []
        self.lock = threading.Lock()
        self.contended = False
        self.next_look = 0.0
        self.looked_at = 0.0
        self.switches = 0
        self.busy_at = -CALM

    def look(self, now: float, switches: int) -> None:
        """Compare with the last look; a long pause between runs says nothing about them."""
        elapsed, more = now - self.looked_at, switches - self.switches
        self.looked_at, self.switches, self.next_look = now, switches, now + WINDOW
        if elapsed > 10 * WINDOW:
            return
        if more > max(1.0, BUSY_RATE * elapsed):
            self.busy_at = now
        wanted = now - self.busy_at < CALM
        if wanted != self.contended:
            self.contended = wanted
            for listener in self.listeners:
                listener(wanted)


_watch = _Watch()


def _forget() -> None:
    """A forked child has none of the threads that listeners speak for."""
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _switches() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def tick() -> None:
    """A run has ended: look, if it is time to."""
    watch = _watch
    now = time.monotonic()
    if now < watch.next_look or not watch.listeners:
        return
    if watch.lock.acquire(blocking=False):
        try:
            watch.look(now, _switches())
        finally:
            watch.lock.release()


def contended() -> bool:
    """Whether other work wanted our cores lately."""
    return _watch.contended


def on_change(listener: Callable[[bool], None]) -> None:
    """Call ``listener(contended)`` whenever that changes."""
    _watch.listeners.append(listener)
