"""Orders of memory.

Descriptions of channels-last arrays, packing, and copies of strided arrays on all cores.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.onednn.onednn_library import DST, SRC, Api
from headrace.kernels.onednn.primitive import Cache, Call, aligned
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Layouts", "Reorder", "channels_last", "implementation"]

#: Elements below which NumPy copies.
MIN_SIZE = 1 << 15
#: A thread keeps working memory up to this size.
BLOCK_KEPT = 32 << 20
_IMPLEMENTATION = 8


def channels_last(shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Dimensions and strides, in oneDNN's order (batch, channels, …), of a contiguous (batch, …,
    channels) array.
    """
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    order = [0, len(shape) - 1, *range(1, len(shape) - 1)]
    return [shape[i] for i in order], [strides[i] for i in order]


def implementation(api: Api, description: Any) -> str:
    """What oneDNN calls the code that it chose."""
    slot = api.ffi.new("char**")
    api.check(api.c.dnnl_primitive_desc_query(description, _IMPLEMENTATION, 0, slot))
    return str(api.ffi.string(slot[0]).decode())


class Reorder(Call):
    """Copies an array from one order into another: ``reorder(source, target)``."""

    def __init__(self, api: Api, source: object, target: object, keep: object = None) -> None:
        description = api.make(
            "dnnl_reorder_primitive_desc_create",
            "dnnl_primitive_desc_destroy",
            source,
            api.engine,
            target,
            api.engine,
            api.attributes(),
        )
        super().__init__(api, description, [(SRC, source), (DST, target)], keep)


class Layouts:
    """Contiguous copies, and one block of working memory a thread."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.local = threading.local()
        self.reorders: Cache[Any, Reorder] = Cache(64)

    def block(self, size: int) -> Array:
        """Memory to work in until the same thread asks again."""
        if size > BLOCK_KEPT:
            return aligned(size)
        found: Array | None = getattr(self.local, "block", None)
        if found is None or found.size < size:
            found = self.local.block = aligned(size)
        return found

    def contiguous(self, x: Array) -> Array:
        """A float32 array as it is, or its copy in C order."""
        if x.flags.c_contiguous:
            return x
        if x.size < MIN_SIZE or any(s <= 0 or s % 4 for s in x.strides):
            return np.ascontiguousarray(x)
        out = buffers.empty(x.shape, np.float32)
        self.reorders.get((x.shape, x.strides), self._reorder)(x, out)
        return out

    def _reorder(self, key: tuple[tuple[int, ...], tuple[int, ...]]) -> Reorder:
        shape, strides = key
        api = self.api
        return Reorder(api, api.tensor(shape, [s // 4 for s in strides]), api.tensor(shape))
