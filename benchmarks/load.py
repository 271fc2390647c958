"""Whether other programs keep the machine busy.

Then figures, and ratios too, are not to be trusted.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["BUSY", "busy_cores", "load"]

#: A load by others from which a library that wakes many threads loses more than one that works in a
#: single thread.
BUSY = 0.5


def load() -> float:
    """How many threads wanted a processor over the last minute; 0 where the system does not
    tell.
    """
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


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
