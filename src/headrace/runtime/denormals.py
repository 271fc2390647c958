"""Numbers too small to be normal count as zero while a run computes with large arrays, as they do
in TensorFlow.

A processor takes a hundred times as long for them, and training makes them: what an optimizer
remembers of a weight whose gradient has become zero shrinks until it is one, and stays one for
ever. The setting belongs to a thread; threads inherit it from the one that starts them.

    >>> before = flush()
    >>> restore(before)
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

__all__ = ["flush", "restore"]

#: glibc's fenv_t on x86-64: where the control word of SSE and AVX lies, and its bits (results,
#: arguments).
_SIZE, _AT, _BITS = 32, 28, 0x8000 | 0x0040


class _Floats:
    """The C library's functions; None where they are others than is known here."""

    def __init__(self) -> None:
        self.get: Any = None
        self.set: Any = None
        if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
            return
        if platform.libc_ver()[0] != "glibc":
            return
        try:
            library = ctypes.CDLL("libm.so.6")
            self.get, self.set = library.fegetenv, library.fesetenv
        except (OSError, AttributeError):
            self.get = self.set = None


_floats: _Floats | None = None


def flush() -> Any:
    """From now on this thread takes them for zero.

    What ``restore`` wants, None if nothing was done.
    """
    global _floats
    if _floats is None:
        _floats = _Floats()
    if _floats.get is None:
        return None
    before = ctypes.create_string_buffer(_SIZE)
    _floats.get(before)
    raw = before.raw
    control = int.from_bytes(raw[_AT : _AT + 4], "little") | _BITS
    _floats.set(raw[:_AT] + control.to_bytes(4, "little") + raw[_AT + 4 :])
    return before


def restore(before: object) -> None:
    if before is not None and _floats is not None:
        _floats.set(before)
