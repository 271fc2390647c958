"""When a family of kernels changes from NumPy to compiled code (kernels/native).

A family counts the elements that it has computed, in the whole process, and loads its native
kernels when the count shows that compiling pays. The count is a function of the program: no clock
is read. A family may do this only if both kinds of code give the same bits, so that it does not
matter which run changes over.

    RANDOM = HotWork("random numbers", 1 << 19, "headrace.kernels.native.philox_kernels")

    kernels = RANDOM.kernels(count)
    if kernels is not None:
        kernels.fill(...)
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from headrace.env import native_setting

__all__ = ["HotWork", "families"]

#: All families of the process, for explanations.
families: list[HotWork] = []


class HotWork:
    """``limit``: elements computed with NumPy before ``module`` is imported and used."""

    __slots__ = ("_lock", "_module", "_path", "_started", "counted", "limit", "name", "reason")

    def __init__(self, name: str, limit: int, module: str) -> None:
        self.name, self.limit, self._path = name, limit, module
        self.counted = 0
        self.reason = f"NumPy until {limit:,} elements have been computed"
        self._module: Any = None
        self._started = False
        self._lock = threading.Lock()
        families.append(self)

    def kernels(self, elements: int) -> Any | None:
        """The native kernels, if they are in use for this call, which computes so many elements."""
        if self._started:
            return self._module
        self.counted += elements
        setting = native_setting()
        if setting == "off" or (setting == "hot" and self.counted < self.limit):
            return None
        return self._start()

    def _start(self) -> Any | None:
        with self._lock:
            if not self._started:
                from headrace.kernels.native.llvm_library import available, why_not

                if available() is None:
                    self.reason = f"NumPy: {why_not()}"
                else:
                    self._module = import_module(self._path)
                    self.reason = "native"
                self._started = True
        return self._module
