"""Sums of long rows on all cores.

Only those: oneDNN has no fast code for sums over the first axis, and shorter rows are BLAS's (a
product with ones).

    >>> totals = sums.row_sums(x)   # over the last axis
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.onednn.onednn_library import DST, SRC, Api
from headrace.kernels.onednn.primitive import Cache, Call, contiguous_float32

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Sums"]

SUM = 0x2FFF4
MAX_KEPT = 64
#: Shorter rows, and smaller arrays, are left to NumPy.
MIN_ROW, MIN_SIZE = 1024, 1 << 18


class Sums:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.calls: Cache[tuple[int, int], Call] = Cache(MAX_KEPT)

    def row_sums(self, x: Array) -> Array | None:
        """The sums over the last axis.

        None where the array is not large contiguous float32 with long rows.
        """
        if x.size < MIN_SIZE or x.shape[-1] < MIN_ROW or not contiguous_float32(x):
            return None
        out = np.empty(x.shape[:-1], np.float32)
        self.calls.get((out.size, x.shape[-1]), self._make)(x, out)
        return out

    def _make(self, key: tuple[int, int]) -> Call:
        rows, columns = key
        api = self.api
        source, target = api.tensor((rows, columns)), api.tensor((rows, 1))
        description = api.description("reduction", SUM, source, target, 0.0, 0.0, api.attributes())
        return Call(api, description, [(SRC, source), (DST, target)])
