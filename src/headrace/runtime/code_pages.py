"""Give back the memory of a library's code that will hardly run again.

A compiler's code is tens of megabytes of pages that were read from its file, and they count as the
process's memory for as long as it lives. They are as they are in the file, so the kernel may forget
them: what runs again is mapped again, from the file cache.

    release_code_when_idle("libllvmlite")      # after compiling: 65 MB less resident

Only segments that are never written are released: what the loader has relocated stays. To map them
again takes several milliseconds, so a thread waits until nothing was compiled for a while.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
import threading
import time
from contextlib import suppress

from headrace.runtime.fork_locks import held_at_fork

__all__ = ["release_code", "release_code_when_idle"]

_DONTNEED = 4  # madvise: the pages of a private mapping are read from its file again
_PT_LOAD, _WRITABLE = 1, 2
#: Code that did not run for so long is let go.
IDLE_SECONDS = 0.5


class _Idle:
    """Releases the code of one library once nobody used it for a while."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.uses = 0
        self._lock = held_at_fork(threading.Lock())
        self._waiting = 0  # the process whose thread waits; a forked one has not got the thread

    def used(self) -> None:
        with self._lock:
            self.uses += 1
            if self._waiting == os.getpid():
                return
            self._waiting = os.getpid()
        try:
            threading.Thread(target=self._wait, name="headrace idle compiler", daemon=True).start()
        except RuntimeError:  # no further thread, or the interpreter is ending
            self._waiting = 0

    def _wait(self) -> None:
        while True:
            seen = self.uses
            time.sleep(IDLE_SECONDS)
            with self._lock:
                if self.uses == seen:
                    self._waiting = 0
                    break
        release_code(self.name)


@functools.cache
def _idle(name: str) -> _Idle:
    return _Idle(name)


def release_code_when_idle(name: str) -> None:
    """Say that a library was used: its code is released when it was not used for a while."""
    _idle(name).used()


def release_code(name: str) -> int:
    """Let go of the code of loaded libraries with ``name`` in their file's name; how many bytes of
    address space that was. Elsewhere than on 64-bit Linux nothing happens.
    """
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8:
        return 0
    released = 0
    with suppress(OSError, ValueError, struct.error, AttributeError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for path, base in _libraries(name):
            for start, end in _constant_segments(path):
                if advise(base + start, end - start, _DONTNEED) == 0:
                    released += end - start
    return released


def _libraries(name: str) -> list[tuple[str, int]]:
    """The files and where they are mapped to."""
    found: dict[str, int] = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) == 6 and name in os.path.basename(fields[5]) and fields[2] == "00000000":
                found.setdefault(fields[5], int(fields[0].split("-")[0], 16))
    return list(found.items())


def _constant_segments(path: str) -> list[tuple[int, int]]:
    """The whole pages of a shared library's segments that may not be written, from its base."""
    found = []
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            return []
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
    for at in range(0, size * count, size):
        kind, flags, _, address = struct.unpack_from("<IIQQ", table, at)
        (length,) = struct.unpack_from("<Q", table, at + 32)
        if kind == _PT_LOAD and not flags & _WRITABLE:
            page = mmap.PAGESIZE
            start, end = -(-address // page) * page, (address + length) // page * page
            if start < end:
                found.append((start, end))
    return found
