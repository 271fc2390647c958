"""Functions of C libraries through cffi's backend, without its parser.

``cffi.FFI`` imports a C parser written in Python and reads the prototypes with it: 60 ms at the
first use. The backend reads C types by itself, so a prototype only has to be cut into a name and a
type.

    >>> ffi = make_ffi()
    >>> c = Functions(ffi, "libm.so.6", "double cos(double x);")
    >>> c.cos(0.0)
    1.0

Prototypes end in a semicolon and have types that C knows: no structures. Calls release the
interpreter lock.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

__all__ = ["Functions", "make_ffi"]

_PROTOTYPE = re.compile(
    r"\s*(?P<result>[\w\s*]*?[\s*])(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*;"
)


def make_ffi() -> Any:
    """An object with ``new``, ``cast``, ``from_buffer``, ``gc`` …; ImportError without cffi."""
    try:
        from _cffi_backend import FFI
    except ImportError:
        raise ImportError("the package cffi is not installed: pip install headrace") from None
    return FFI("headrace")


class Functions:
    """The functions of a shared library, as attributes."""

    def __init__(self, ffi: Any, path: str, prototypes: str) -> None:
        self._ffi = ffi
        self._library = ctypes.CDLL(path)
        self._types = {
            found["name"]: f"{found['result'].strip()}(*)({found['parameters']})"
            for found in _PROTOTYPE.finditer(prototypes)
        }

    def __getattr__(self, name: str) -> Any:
        kind = self._types.get(name)
        if kind is None:
            raise AttributeError(f"no prototype of {name}")
        address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        found = self._ffi.cast(kind, address)
        setattr(self, name, found)
        return found
