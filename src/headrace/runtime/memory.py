"""How much memory the machine has."""

from __future__ import annotations

import functools
import os

__all__ = ["physical_memory"]


@functools.cache
def physical_memory() -> int:
    """Bytes of memory that the machine has; 2**40 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 40
