"""Memory of a run that is bound to shapes: set aside once, used again when nothing reads it.

arena = Arena(library.aligned)
x = arena.reserve((64, 128), np.float32, until=7)      # free after step 7
arena.end_of_step(7)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["MAX_BYTES", "Arena", "NotBound"]

#: Memory that one binding may take.
MAX_BYTES = 256 << 20


class NotBound(Exception):
    """This plan, with these shapes, is left to the generic run."""


class Arena:
    """Blocks of memory, and by the step after which they are free."""

    def __init__(self, allocate: Callable[[int], Array]) -> None:
        self.allocate = allocate
        self.nbytes = 0
        self.free: list[Array] = []
        self.dying: dict[int, list[Array]] = {}

    def reserve(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any], until: int) -> Any:
        """An array of zeros that nobody else writes until a step is done."""
        dtype = np.dtype(dtype)
        elements = int(np.prod(shape, dtype=np.int64))
        size = max(64, dtype.itemsize * elements)
        block = self._block(size)
        self.dying.setdefault(until, []).append(block)
        whole = size // dtype.itemsize * dtype.itemsize
        out = block[:whole].view(dtype)[:elements].reshape(shape)
        out[...] = 0
        return out

    def end_of_step(self, step: int) -> None:
        """What was set aside until this step may be used again."""
        self.free += self.dying.pop(step, [])

    def _block(self, size: int) -> Array:
        """Free memory of about this size, or new."""
        fitting = [b for b in self.free if size <= b.size <= 4 * size]
        if fitting:
            best = min(fitting, key=lambda b: int(b.size))
            self.free = [b for b in self.free if b is not best]
            return best
        self.nbytes += size
        if self.nbytes > MAX_BYTES:
            raise NotBound("too large")
        return self.allocate(size)
