"""The process's memory: now, at most, and how much there may be.

On Linux from /proc and the control group; elsewhere from ``resource`` where Python has it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["memory_limit", "peak_bytes", "resident_bytes"]

_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def resident_bytes() -> int:
    """Bytes of physical memory that the process has now (its peak, where the system tells no
    more).
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """The most physical memory that the process ever had; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_limit() -> int:
    """The control group's limit if there is one, else the machine's memory; 0 if unknown."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        machine = 0
    limits = [machine] if machine else []
    for name in _CGROUP_FILES:
        try:
            limits.append(int(Path(name).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits, default=0)
