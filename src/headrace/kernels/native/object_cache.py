"""Machine code on disk, so that a kernel is compiled once for a machine and not once for a process.

A file's name is the hash of everything that its code depends on. A file begins with a checksum of
the rest, is written under another name and then renamed: readers see whole files only, and one that
was damaged or cut is ignored and written again. Processes need no lock. When the folder has grown
over its limit, the files that were not used for longest go.

A folder that cannot be made, read or written is no error: there is no cache then, ``problem`` says
why, and an event ("native cache") tells it once.

    >>> cache = ObjectCache("/home/me/.cache/headrace/native", 64 << 20)
    >>> cache.put("3f2a…", code)
    >>> cache.get("3f2a…")
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from contextlib import suppress

from headrace.runtime.notices import notice

__all__ = ["ObjectCache"]

_MAGIC = b"headrace object 1\n"
_SUFFIX = ".hro"
#: A file that a killed process left half written goes after so many seconds.
STALE_SECONDS = 600
#: A file's time of use is written again after so many seconds.
TOUCH_SECONDS = 3600


class ObjectCache:
    """Byte strings in files of one folder, by key (a hexadecimal hash)."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.problem = "" if folder else "there is no folder for it"
        self.hits = self.misses = self.written = self.damaged = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """What was put under the key; None if nothing was, or the file is damaged."""
        if not self.folder:
            return None
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                found = file.read()
            payload = _checked(found)
        except OSError:
            self.misses += 1
            return None
        if payload is None:
            self.damaged += 1
            self.misses += 1
            return None
        self.hits += 1
        self._touch(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep it. Failures are noted in ``problem``."""
        if not self.folder:
            return
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._write(self._path(key), payload)
            self._evict(self._path(key))
        except OSError as error:
            self._note(f"{error.strerror or error} ({self.folder})")

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key + _SUFFIX)

    def _write(self, path: str, payload: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix="tmp-", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self.written += 1

    def _touch(self, path: str) -> None:
        """Say that a file is still used; a folder that may only be read is good enough."""
        with suppress(OSError):
            if time.time() - os.stat(path).st_mtime > TOUCH_SECONDS:
                os.utime(path)

    def _evict(self, newest: str) -> None:
        """Remove the files that were not used for longest until the rest fits the limit."""
        files = []
        now = time.time()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):  # another process removed it
                    status = entry.stat()
                    if entry.name.startswith("tmp-"):
                        if now - status.st_mtime > STALE_SECONDS:
                            os.unlink(entry.path)
                    elif entry.name.endswith(_SUFFIX):
                        files.append((entry.path != newest, status.st_mtime, status, entry.path))
        total = sum(f[2].st_size for f in files)
        for is_other, _, status, path in sorted(files, key=lambda f: (not f[0], f[1])):
            if total <= self.limit or not is_other:
                break
            with suppress(OSError):
                os.unlink(path)
            total -= status.st_size

    def _note(self, why: str) -> None:
        with self._lock:
            first, self.problem = not self.problem, why
        if first:
            notice("native cache", why=why, folder=self.folder)


def _checked(content: bytes) -> bytes | None:
    """The payload of a file; None if it is not whole."""
    start = len(_MAGIC) + 32
    if len(content) < start or not content.startswith(_MAGIC):
        return None
    payload = content[start:]
    return payload if hashlib.sha256(payload).digest() == content[len(_MAGIC) : start] else None
