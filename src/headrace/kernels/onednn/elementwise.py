"""The gradient of relu in one pass on all cores.

A primitive belongs to a size; making one takes a fraction of a millisecond, so only large arrays come here. Each thread has
its own.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from headrace.arrays import buffers
from headrace.kernels.onednn.library import DIFF_DST, DIFF_SRC, RELU, SRC, Api

__all__ = ["ReluGrad"]

#: Arrays below this size are left to NumPy.
MIN_SIZE = 32 * 1024
MAX_KEPT = 256


class _Gradient:
    """The primitive for one size, with the memory objects that it works on."""

    def __init__(self, api: Api, size: int) -> None:
        self.api = api
        self.primitive, self.keep = api.eltwise_gradient(RELU, size)
        desc = self.keep[0]
        self.memory = [api.memory(desc) for _ in range(3)]
        features, gradients, out = self.memory
        self.arguments = api.arguments((SRC, features), (DIFF_DST, gradients), (DIFF_SRC, out))

    def __call__(self, features: Any, gradients: Any, out: Any) -> None:
        api = self.api
        for memory, array in zip(self.memory, (features, gradients, out)):
            api.check(api.c.dnnl_memory_set_data_handle(memory, api.pointer(array)))
        api.execute(self.primitive, self.arguments)


class ReluGrad:
    """``gradients * (features > 0)``; None where the arrays are not large contiguous float32."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.local = threading.local()

    def __call__(self, gradients: Any, features: Any) -> Any:
        if gradients.size < MIN_SIZE or gradients.shape != features.shape:
            return None
        for x in (gradients, features):
            if x.dtype != np.float32 or not x.flags.c_contiguous:
                return None
        kept: dict[int, _Gradient] = self.local.__dict__.setdefault("kept", {})
        made = kept.get(gradients.size)
        if made is None:
            if len(kept) >= MAX_KEPT:
                kept.clear()
            made = kept[gradients.size] = _Gradient(self.api, gradients.size)
        out = buffers.empty(gradients.shape, np.float32)
        made(features, gradients, out)
        return out
