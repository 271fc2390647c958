"""Memory that one step frees, the next one uses: told to the C library's allocator.

By default glibc gives the free end of its heap back to the system as soon as it is larger than a
few megabytes, and gets it again, page by page, for the next step: a language model's training step
had 24,000 page faults, a third of its time. ``keep_freed`` raises that limit for the process, once,
when the first plan is made; ``give_back`` returns what is free (a closed session does). Other C
libraries and allocators are left alone, and so are a user's own settings.

NumPy asks for huge pages, which Linux may have to make by moving other memory: filling 500 MB for
the first time took between 0.2 and 12 s, with small pages always 0.4 s. ``empty_small_pages`` is
for arrays that are filled once from a file; ``allow_huge_pages`` lets the kernel join their pages
later.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.env import allocator_is_users

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["allow_huge_pages", "empty_small_pages", "give_back", "keep_freed"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Free bytes at the end of the heap that stay, and the size from which memory is the system's own
#: (glibc's largest).
MAX_FREE_BYTES, MIN_SYSTEM_BYTES = 1 << 30, 32 << 20

#: Below this many bytes NumPy does not ask for huge pages.
_HUGE_FROM = 1 << 22
_PAGE, _MADV_HUGEPAGE = 4096, 14

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
                _library.mallopt(_TRIM_THRESHOLD, MAX_FREE_BYTES)
                _library.mallopt(_MMAP_THRESHOLD, MIN_SYSTEM_BYTES)
    return _library is not None


def give_back() -> None:
    """Return free memory to the system."""
    if _library is not None:
        _library.malloc_trim(0)


def empty_small_pages(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """``np.empty`` without NumPy's request for huge pages."""
    numpy_core = sys.modules.get("numpy._core.multiarray")
    request = getattr(numpy_core, "_set_madvise_hugepage", None)
    if request is None:  # another NumPy: its own choice
        return np.empty(shape, dtype)
    before = request(False)
    try:
        return np.empty(shape, dtype)
    finally:
        request(before)


def allow_huge_pages(array: Array) -> None:
    """Let the kernel join the pages of a filled array in the background (Linux)."""
    if sys.platform != "linux" or array.nbytes < _HUGE_FROM:
        return
    library = _glibc()
    if library is not None:
        start = -(-array.ctypes.data // _PAGE) * _PAGE
        size = (array.ctypes.data + array.nbytes - start) // _PAGE * _PAGE
        library.madvise(start, size, _MADV_HUGEPAGE)  # a request: a refusal changes nothing


def _glibc() -> Any:
    import ctypes

    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 (only glibc has it)
        library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return library
