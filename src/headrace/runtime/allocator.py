"""Memory that one step frees, the next one uses: told to the C library's allocator.

By default glibc gives the free end of its heap back to the system as soon as it is larger than a
few megabytes, and gets it again, page by page, for the next step: a language model's training step
had 24,000 page faults, a third of its time. ``keep_freed`` raises that limit for the process, once,
when the first plan is made; ``give_back`` returns what is free (a closed session does). Other C
libraries and allocators are left alone, and so are a user's own settings.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace.env import allocator_is_users

__all__ = ["give_back", "keep_freed"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Free bytes at the end of the heap that stay, and the size from which memory is the system's own
#: (glibc's largest).
KEPT, FROM_SYSTEM = 1 << 30, 32 << 20

_library: Any = None
_done = False


def keep_freed() -> bool:
    """Whether the allocator was told (now or before)."""
    global _done, _library
    if not _done:
        _done = True
        if sys.platform == "linux" and not allocator_is_users():
            _library = _glibc()
            if _library is not None:
                _library.mallopt(_TRIM_THRESHOLD, KEPT)
                _library.mallopt(_MMAP_THRESHOLD, FROM_SYSTEM)
    return _library is not None


def give_back() -> None:
    """Return free memory to the system."""
    if _library is not None:
        _library.malloc_trim(0)


def _glibc() -> Any:
    import ctypes

    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 (only glibc has it)
        library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
        library.malloc_trim.argtypes = [ctypes.c_size_t]
    except (OSError, AttributeError):
        return None
    return library
