"""Whether cores are contended, and therefore how threads that wait for work should wait.

A thread that spins while it waits starts its next work at once; but where another process, or
another of our own threads, wants the core, it delays the thread that waits for its result. What
counts is the time that our threads could have run and did not: the system keeps it for every thread
(Linux: the second number of /proc/self/task/*/schedstat). On an idle machine that is a few
thousandths of the time, also when daemons and timers come by; a neighbour on one of two cores makes
it a half. Counting context switches is not enough: a daemon that wakes up a few times a second
looks like load then, and threads that sleep for its sake made a GAN's step twice as slow.

Delays alone are not enough either: a thread of our pool that waits for a core on which a thread of
the kernel library spins is delayed by ourselves, and a program that slept for that reason used the
pool more, was delayed again, and never came back (a VAE's step: 6 or 16 ms, by chance). So cores
are contended only if somebody else used them, too: other processes (what /proc/stat counts for our
CPUs, without our own time), or a second thread of the program that runs steps.

``tick()`` is called at the end of runs that worked on large arrays. Every ``WINDOW`` it looks, and
tells those who registered with ``on_change`` when the answer changes, and those who registered
with ``while_contended`` how many cores others used, each time that it is still so. How threads
wait does not change what they compute.

    >>> on_change(lambda contended: print("sleep" if contended else "spin"))
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["contended", "on_change", "tick", "used_by_others", "while_contended"]

#: Seconds between two looks, at least.
WINDOW = 0.1
#: Seconds over which delays are added up before they say something.
SPAN = 0.25
#: Seconds of delay of all threads together, in a second, from which cores are contended, and below
#: which they are not any more.
CONTENDED_FROM, CONTENDED_BELOW = 0.2, 0.1
#: Seconds of our CPUs that others used, in a second, below which nobody else wants them.
OTHERS = 0.15
#: Seconds of our CPUs that others used, in a second, above which contention is not over.
STILL = 0.5
#: Seconds without contention after which it is over.
CALM_SECONDS = 0.5
#: Involuntary switches a second below which nobody can have been delayed for long.
FEW_SWITCHES = 20.0


class _Watch:
    """The state of the process. One thread looks at a time; others go on."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], None]] = []
        self.followers: list[Callable[[float | None], None]] = []
        self.lock = threading.Lock()
        self.contended = False
        self.next_look = 0.0
        self.looked_at = 0.0
        self.since = 0.0  # the beginning of the present span
        self.switches = 0
        self.delay: float | None = None  # seconds, at the beginning of the span
        self.used: float | None = None  # seconds that others used, at the beginning of the span
        self.others: float | None = None  # cores that they used in the last span
        self.caller = 0  # the thread that ended a run last
        self.callers_change = False  # whether it was another one than before, in this span
        self.busy_at = -CALM_SECONDS

    def look(
        self,
        now: float,
        switches: int,
        delay: Callable[[], float],
        used: Callable[[], float | None],
    ) -> None:
        """Compare with the beginning of the span; a long pause between runs says nothing."""
        paused = now - self.looked_at > 5 * WINDOW
        self.looked_at, self.next_look = now, now + WINDOW
        elapsed = now - self.since
        if paused or self.delay is None:
            self._begin(now, switches, delay(), used())
            return
        if elapsed < SPAN:
            self._tell_followers()
            return
        if switches - self.switches < FEW_SWITCHES * elapsed:
            share, total = 0.0, self.delay
        else:
            total = delay()
            share = (total - self.delay) / elapsed
        used_now = used()
        others = None
        if used_now is not None and self.used is not None:
            others = (used_now - self.used) / elapsed
        self.others = others
        if not self.callers_change and others is not None and others <= OTHERS:
            share = 0.0  # where nobody knows, others may have worked
        elif self.contended and others is not None and others > STILL:
            share = (
                CONTENDED_FROM  # threads that keep out of the way (helper_cores.py) are not delayed
            )
        self._begin(now, switches, total, used_now)
        if share > (CONTENDED_BELOW if self.contended else CONTENDED_FROM):
            self.busy_at = now
        self._answer(now - self.busy_at < CALM_SECONDS)
        self._tell_followers()

    def _tell_followers(self) -> None:
        if self.contended:
            for follower in self.followers:
                follower(self.others)

    def _begin(self, now: float, switches: int, delay: float, used: float | None) -> None:
        self.since, self.switches, self.delay, self.used = now, switches, delay, used
        self.callers_change = False

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


def used_by_others() -> float | None:
    """Seconds since the system's start in which our CPUs worked for other processes.

    None where the system does not tell. Only differences mean something.
    """
    try:
        ours = {f"cpu{n}".encode() for n in os.sched_getaffinity(0)}
        with open("/proc/stat", "rb") as file:
            lines = [line.split() for line in file if line.startswith(b"cpu")]
        counted = [line for line in lines if line[0] in ours]
        # user, nice, system, (idle, waiting for disks,) interrupts, soft interrupts
        ticks = sum(int(line[n]) for line in counted for n in (1, 2, 3, 6, 7))
        return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()
    except (OSError, AttributeError, ValueError, IndexError):
        return None


def tick() -> None:
    """A run has ended: look, if it is time to."""
    watch = _watch
    caller = threading.get_ident()
    if caller != watch.caller:
        watch.caller, watch.callers_change = caller, True
    now = time.monotonic()
    if now < watch.next_look or not watch.listeners:
        return
    if watch.lock.acquire(blocking=False):
        try:
            watch.look(now, _switches(), _delay, used_by_others)
        finally:
            watch.lock.release()


def contended() -> bool:
    """Whether other work wanted our cores lately."""
    return _watch.contended


def on_change(listener: Callable[[bool], None]) -> None:
    """Call ``listener(contended)`` whenever that changes."""
    _watch.listeners.append(listener)


def while_contended(follower: Callable[[float | None], None]) -> None:
    """Call ``follower(cores)`` at every look that finds cores contended, on the thread that ends a
    run: so many cores' worth of time did others use (None where the system does not tell).
    """
    _watch.followers.append(follower)
