"""Where a kernel library plugs in under the NumPy kernels.

The array modules ask here for a faster version of a heavy function; a library (see ``headrace.kernels``) registers how it is
loaded. It is loaded by the first call that is large enough to want it, and "not there" is an answer with a reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Library", "library", "register", "status"]


class Library(Protocol):
    """What a kernel library offers. Each function answers None or False where it does not want the case."""

    name: str

    def matmul(self, a: Any, b: Any, out: Any, accumulate: bool = False) -> Any: ...

    def relu_grad(self, gradients: Any, features: Any) -> Any: ...

    def adam(
        self,
        var: Any,
        m: Any,
        v: Any,
        rate: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        grad: Any,
    ) -> bool: ...


_loader: Callable[[], Library] | None = None
_library: Library | None = None
_reason = "no kernel library is registered"
_decided = False
_lock = threading.Lock()


def register(loader: Callable[[], Library]) -> None:
    """``loader()`` returns the library or raises ImportError with the reason why it cannot be used."""
    global _loader, _decided, _library
    _loader, _library, _decided = loader, None, False


def library() -> Library | None:
    """The kernel library, loaded at the first call; None if there is none."""
    if not _decided:
        _decide()
    return _library


def _decide() -> None:
    global _library, _reason, _decided
    with _lock:
        if _decided:
            return
        if _loader is not None:
            try:
                _library = _loader()
                _reason = _library.name
            except (ImportError, OSError, AttributeError) as error:
                _library, _reason = None, str(error)
        _decided = True


def status() -> str:
    """The library's name and version, or why there is none."""
    library()
    return _reason
