"""Whether cores are contended, and therefore how threads that wait for work should wait.

A thread that spins while it waits starts its next work at once; but where another process, or
another of our own threads, wants the core, it takes time away from whoever it waits for. What
counts is the time that our threads could have run and did not: the system keeps it for every thread
(Linux: the second number of /proc/self/task/*/schedstat). On an idle machine that is a few
thousandths of the time, also when daemons and timers come by; a neighbour on one of two cores makes
it a half. Counting context switches is not enough: a daemon that wakes up a few times a second
looks like load then, and threads that sleep for its sake made a GAN's step twice as slow.

``tick()`` is called at the end of runs that worked on large arrays. Every ``WINDOW`` it looks, and
tells those who registered with ``on_change`` when the answer changes. How threads wait does not
change what they compute.

    >>> on_change(lambda contended: print("sleep" if contended else "spin"))
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["contended", "on_change", "tick"]

#: Seconds between two looks, at least.
WINDOW = 0.1
#: Seconds over which delays are added up before they say something.
SPAN = 0.25
#: Seconds of delay of all threads together, in a second, from which cores are contended, and below
#: which they are not any more.
BUSY, FREE = 0.2, 0.1
#: Seconds without contention after which it is over.
CALM = 0.5
#: Involuntary switches a second below which nobody can have been delayed for long.
FEW_SWITCHES = 20.0


class _Watch:
    """The state of the process. One thread looks at a time; others go on."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], None]] = []
        self.lock = threading.Lock()
        self.contended = False
        self.next_look = 0.0
        self.looked_at = 0.0
        self.since = 0.0  # the beginning of the present span
        self.switches = 0
        self.delay: float | None = None  # seconds, at the beginning of the span
        self.busy_at = -CALM

    def look(self, now: float, switches: int, delay: Callable[[], float]) -> None:
        """Compare with the beginning of the span; a long pause between runs says nothing."""
        paused = now - self.looked_at > 5 * WINDOW
        self.looked_at, self.next_look = now, now + WINDOW
        elapsed = now - self.since
        if paused or self.delay is None:
            self._begin(now, switches, delay())
            return
        if elapsed < SPAN:
            return
        if switches - self.switches < FEW_SWITCHES * elapsed:
            share, total = 0.0, self.delay
        else:
            total = delay()
            share = (total - self.delay) / elapsed
        self._begin(now, switches, total)
        if share > (FREE if self.contended else BUSY):
            self.busy_at = now
        self._answer(now - self.busy_at < CALM)

    def _begin(self, now: float, switches: int, delay: float) -> None:
        self.since, self.switches, self.delay = now, switches, delay

    def _answer(self, contended: bool) -> None:
        if contended != self.contended:
            self.contended = contended
            for listener in self.listeners:
                listener(contended)


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


def _delay() -> float:
    """Seconds that threads of this process, which could run, had no core.

    0 where the system does not tell: then threads wait as on free cores.
    """
    total = 0
    try:
        for thread in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                    total += int(file.read().split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it has ended, or the system does not count
    except OSError:
        return 0.0
    return total * 1e-9


def tick() -> None:
    """A run has ended: look, if it is time to."""
    watch = _watch
    now = time.monotonic()
    if now < watch.next_look or not watch.listeners:
        return
    if watch.lock.acquire(blocking=False):
        try:
            watch.look(now, _switches(), _delay)
        finally:
            watch.lock.release()


def contended() -> bool:
    """Whether other work wanted our cores lately."""
    return _watch.contended


def on_change(listener: Callable[[bool], None]) -> None:
    """Call ``listener(contended)`` whenever that changes."""
    _watch.listeners.append(listener)
