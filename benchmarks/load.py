"""Whether other programs keep the machine busy.

Then figures, and ratios too, are not to be trusted.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["BUSY", "Others", "busy_cores"]

#: A load by others from which a library that wakes many threads loses more than one that works in a
#: single thread.
BUSY = 0.5
#: Ticks of all processors from which a share of them says something.
MIN_TICKS = 100


class Others:
    """How many processors were taken from this process and those that it started, while something
    was measured: by other programs and by the host of a virtual machine.

    The load average would not do: it remembers a minute, and counts our own processes.

    >>> others = Others()
    >>> cores = others.cores()  # since it was made
    """

    def __init__(self) -> None:
        self._before = self._now()

    def cores(self) -> float:
        """0 where the system does not tell, or too little time has gone by."""
        before, now = self._before, self._now()
        if before is None or now is None:
            return 0.0
        total, taken = now[0] - before[0], (now[1] - before[1]) - (now[2] - before[2])
        return max(0.0, (os.cpu_count() or 1) * taken / total) if total >= MIN_TICKS else 0.0

    @staticmethod
    def _now() -> tuple[int, int, int] | None:
        """Ticks of all processors, those that somebody took, and those that we took."""
        times = _processor_times()
        return None if times is None else (times[0], times[0] - times[1], _own_ticks(os.getpid()))


def _own_ticks(root: int) -> int:
    """Ticks of a process and of all that it started."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(int(x) for x in fields[11:15])  # with those of ended children
    found, stack = 0, [root]
    while stack:
        pid = stack.pop()
        found += ticks.get(pid, 0)
        stack += children.get(pid, [])
    return found


def busy_cores(seconds: float = 1.0) -> float:
    """How many processors others keep busy right now, before anything of ours runs.

    0 where the system does not tell.
    """
    before = _processor_times()
    time.sleep(seconds)
    after = _processor_times()
    if before is None or after is None:
        return 0.0
    total, idle = after[0] - before[0], after[1] - before[1]
    return (os.cpu_count() or 1) * (1 - idle / total) if total else 0.0


def _processor_times() -> tuple[int, int] | None:
    """Ticks of all processors together, and the idle ones among them."""
    try:
        fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return None
    return sum(fields[:8]), fields[3] + fields[4]
