"""TensorFlow's random words, one after the other: what its datasets shuffle and sample with.

>>> Words(7, 0).one()
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from headrace.kernels.numpy.philox import Philox, groups

__all__ = ["SeedGenerator", "Words", "seeds_or_any"]

_U64 = (1 << 64) - 1


def seeds_or_any(seed: int, seed2: int) -> tuple[int, int]:
    """(0, 0) stands for seeds that were not chosen."""
    if seed == 0 and seed2 == 0:
        return (int.from_bytes(os.urandom(8), "little"), int.from_bytes(os.urandom(8), "little"))
    return seed, seed2


class Words:
    """The 32-bit words of a Philox stream in order."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._at = Philox(seed & _U64, seed2 & _U64, 0)
        self._ahead = np.empty(0, np.uint32)
        self._used = 0
        self._chunk = 4

    def take(self, n: int) -> np.ndarray[Any, Any]:
        """The next n words."""
        have = self._ahead.size - self._used
        if have < n:
            rest = self._ahead[self._used :]
            needed = max(-(-(n - have) // 4), self._chunk)
            self._chunk = min(4 * self._chunk, 4096)
            new = groups(self._at, needed).reshape(-1)
            self._at = self._at.skip(needed)
            self._ahead, self._used = np.concatenate([rest, new]), 0
        got = self._ahead[self._used : self._used + n]
        self._used += n
        return got

    def one(self) -> int:
        return int(self.take(1)[0])


class SeedGenerator:
    """Gives every pass over a shuffled dataset seeds of its own."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._words = Words(seed, seed2)
        self._lock = threading.Lock()

    def pair(self) -> tuple[int, int]:
        with self._lock:
            first, second = self._words.take(2).tolist()
        return first, second
