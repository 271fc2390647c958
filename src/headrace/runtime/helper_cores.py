"""On which cores the threads that help the main thread may run while others want the cores.

Two threads on two cores that each have another process on them rarely run at the same time: at
the end of every parallel region one waits for the other, for as long as the neighbour keeps that
core. A step then takes two to three times its work. So while cores are contended the helpers stay
on as few cores as the process gets anyway, beginning with the one on which the main thread runs:
there they run one after the other, and the system moves the neighbours to the cores that we leave
alone. Measured with two neighbours on two cores, ms a step (median, 90th percentile; TensorFlow):
a GAN 3.7-3.9, 7-10 (6.5, 10), a VAE 8.0-9.2, 10-17 (13.7, 18), an MLP 3.5-4.7, 4.5-7 (7.0, 10).
Left to the system it was one or the other by chance: 3.8 or 9.9, 8.7 or 14, 4.6 or 8.2.

Only the helpers (threads of the kernel library and of our pool) are told where to run, never the
program's own threads: ``os.sched_getaffinity(0)`` and what child processes inherit stay as they
were. The number of threads stays the same as well, and so do results. When others are gone the
helpers may run anywhere again.

    placement = Placement(lambda: [4711])  # the helpers' thread numbers
    placement.follow(1.2)  # others used 1.2 cores lately
    placement.release()
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

__all__ = ["Placement", "helpers_wait", "nearest_cores"]

#: Whether helpers were put on the one core of the main thread, by placement.
_on_one_core: set[int] = set()


def helpers_wait() -> bool:
    """Whether a helper could only run while the main thread does not: work that may be done by any
    number of threads is done sooner without them.
    """
    return bool(_on_one_core)


def nearest_cores(allowed: Iterable[int], own: int, others: float) -> set[int]:
    """As many cores as others leave to us, at least one: ``own`` and those that follow it.

    >>> nearest_cores({0, 1}, 1, others=1.2)
    {1}
    >>> sorted(nearest_cores(range(8), 6, others=4.0))
    [0, 1, 6, 7]
    """
    cores = sorted(allowed)
    count = max(1, round(len(cores) - others))
    first = cores.index(own) if own in cores else 0
    return set((cores[first:] + cores[:first])[:count])


def _core_of_caller() -> int | None:
    """The core on which the calling thread runs; None where the system does not tell."""
    try:
        with open("/proc/thread-self/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[36])
    except (OSError, IndexError, ValueError):
        return None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_one_core.clear)


class Placement:
    """Keeps the helpers of the main thread close to it. ``helpers`` says which threads they are."""

    def __init__(self, helpers: Callable[[], Iterable[int]]) -> None:
        self.helpers = helpers
        self.placed: list[int] = []  # helpers that were put somewhere, and where
        self.cores: set[int] = set()

    def follow(self, others: float | None) -> None:
        """Cores are contended. Called at the end of a run, on the thread that ran it."""
        if others is None or threading.current_thread() is not threading.main_thread():
            return
        own = _core_of_caller()
        if own is None or not hasattr(os, "sched_setaffinity"):
            return
        allowed = os.sched_getaffinity(0)
        cores = nearest_cores(allowed, own, others)
        if cores == allowed:
            self.release()
        elif cores != self.cores:
            self.placed = self.placed or list(self.helpers())
            self._put(cores)

    def release(self) -> None:
        """Helpers may run wherever the main thread may."""
        if self.placed:
            self._put(os.sched_getaffinity(os.getpid()))
        self.placed, self.cores = [], set()
        _on_one_core.discard(id(self))

    def _put(self, cores: set[int]) -> None:
        self.cores = cores
        (_on_one_core.add if len(cores) == 1 else _on_one_core.discard)(id(self))
        for thread in self.placed:
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, cores)
