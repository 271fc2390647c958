"""How libgomp's threads wait for the next parallel region: by spinning while cores are free, by
sleeping while they are contended.

The runtime has no function for it, but a documented rule (GOMP_SPINCOUNT): when there are more
OpenMP threads than CPUs, a wait spins 100 times only instead of GOMP_SPINCOUNT times. So while
cores are contended a thread of ours keeps a team of its own, whose members sleep; when it ends,
they do, and waits spin again. Where threads run then is decided in runtime/helper_cores.py.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from headrace.runtime import core_contention
from headrace.runtime.helper_cores import Placement
from headrace.runtime.thread_pool import worker_threads

__all__ = ["SPINS", "OpenMPWaiting"]

#: Turns of a wait on free cores: a few hundred microseconds, longer than what lies between two
#: primitives of a step.
SPINS = 10_000
#: Threads that may be started to have more than there are CPUs.
MAX_EXTRA = 4


class OpenMPWaiting:
    """Makes waits short while cores are contended. ``threads`` is what a team of the caller has."""

    def __init__(self, openmp: Any, threads: int) -> None:
        self.openmp = openmp
        self.extra = int(openmp.omp_get_num_procs()) - threads + 2
        self.threads = threads
        self.end: threading.Event | None = None
        self.placement = Placement(self._helpers)

    def watch(self) -> bool:
        """Follow the state of the machine.

        False where that takes too many threads, or there is nothing that waits.
        """
        if self.extra > MAX_EXTRA or not hasattr(self.openmp, "GOMP_parallel"):
            return False
        core_contention.on_change(self.change)
        core_contention.while_contended(self.placement.follow)
        return True

    def change(self, contended: bool) -> None:
        if contended and self.end is None:
            self.end = threading.Event()
            crowd = threading.Thread(
                target=self._crowd, args=(self.end,), name="openmp waiting", daemon=True
            )
            crowd.start()
        elif not contended and self.end is not None:
            self.end.set()
            self.end = None
            self.placement.release()

    def _crowd(self, end: threading.Event) -> None:
        """A team that does nothing, kept until the machine is calm."""
        nothing = ctypes.cast(self.openmp.omp_get_thread_num, ctypes.c_void_p)
        self.openmp.GOMP_parallel(nothing, None, self.extra, 0)
        end.wait()

    def _helpers(self) -> set[int]:
        """The threads that work beside the caller: its team, and our pool's."""
        found: set[int] = set()
        note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            lambda _: found.add(threading.get_native_id())
        )
        self.openmp.GOMP_parallel(note, None, self.threads, 0)
        return (found | worker_threads()) - {threading.get_native_id()}
