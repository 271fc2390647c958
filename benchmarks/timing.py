"""How long a call takes and how much memory the process has. Needs only Python: workers of every
library use it.

samples = per_call(lambda: sess.run(c, feed), seconds=0.3)
min(samples)
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

__all__ = [
    "allocated_bytes",
    "each_call",
    "import_seconds",
    "per_call",
    "resident_bytes",
    "seconds_after_collecting",
    "seconds_of",
]
__all__ += ["warm_up"]

#: A sample is as many calls as take about this long, so that reading the clock costs nothing beside
#: them.
SAMPLE_SECONDS = 0.005
MIN_SAMPLES = 3


def import_seconds(statement: str) -> float:
    """The time of an import in a new process, as after ``pip install``: modules are compiled once,
    by an import that does not count.
    """
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return float(subprocess.check_output(command, env=environment))


def seconds_of(function: Callable[..., Any], *arguments: Any) -> float:
    """The time of one call."""
    start = perf_counter()
    function(*arguments)
    return perf_counter() - start


def seconds_after_collecting(function: Callable[..., Any], *arguments: Any) -> float:
    """The time of one call that does not pay for the garbage of what was measured before."""
    gc.collect()
    return seconds_of(function, *arguments)


def per_call(function: Callable[[], Any], seconds: float) -> list[float]:
    """Samples of the time of a call, taken for about ``seconds``.

    The first calls, which may plan or compile, do not count.
    """
    function()
    function()
    number = max(1, int(SAMPLE_SECONDS / max(seconds_of(function), 1e-7)))
    samples: list[float] = []
    end = perf_counter() + seconds
    while len(samples) < MIN_SAMPLES or perf_counter() < end:
        samples.append(seconds_of(_call, function, number) / number)
    return samples


def warm_up(function: Callable[[], Any], count: int, seconds: float) -> None:
    """At least so many calls, for at least so long: what is hot has been compiled then."""
    end = perf_counter() + seconds
    while count > 0 or perf_counter() < end:
        function()
        count -= 1


def each_call(function: Callable[[], Any], count: int) -> list[float]:
    """The times of some calls that are long enough to be timed one by one.

    The caller has warmed up.
    """
    return [seconds_after_collecting(function) for _ in range(count)]


def _call(function: Callable[[], Any], number: int) -> None:
    for _ in repeat(None, number):
        function()


def resident_bytes() -> int:
    """The resident memory now; where the system does not tell, the most that it has been."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class _Mallinfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``: sums over the heaps of all threads."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated_bytes() -> int:
    """The bytes that glibc's allocator has given out and not got back; 0 with other libraries."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0
    ask.restype = _Mallinfo
    found = ask()
    return int(found.uordblks) + int(found.hblkhd)
