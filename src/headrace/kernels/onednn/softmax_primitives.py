"""Softmax and log-softmax over the last axis, and their gradients.

oneDNN computes a row that holds a NaN or +inf as zeros (minus infinities for the logarithm) with
NaN at the places of the bad values only; NumPy and TensorFlow give NaN for the whole row, and so
does this: the first column shows which rows to look at.

    >>> p = softmaxes.softmax(logits)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.onednn.onednn_library import DIFF_DST, DIFF_SRC, DST, SRC, TRAINING, Api
from headrace.kernels.onednn.primitive import Cache, Call, contiguous_float32
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Softmaxes", "mend"]

SOFTMAX, LOG_SOFTMAX = 0x30000, 0x30001
MAX_KEPT = 64

_Key = tuple[int, int, int]


class Softmaxes:
    """All functions answer None where the arrays are not contiguous float32."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.forward: Cache[_Key, Call] = Cache(MAX_KEPT)
        self.backward: Cache[_Key, Call] = Cache(MAX_KEPT)

    def softmax(self, x: Array, out: Array | None = None) -> Array | None:
        """``out`` may be ``x``."""
        out = self._forward(SOFTMAX, x, out)
        if out is not None:
            mend(out, 0.0)
        return out

    def log_softmax(self, x: Array) -> Array | None:
        out = self._forward(LOG_SOFTMAX, x)
        if out is not None:
            mend(out, -np.inf)
        return out

    def softmax_grad(self, y: Array, dy: Array) -> Array | None:
        """``(dy - sum(dy * y)) * y`` for ``y = softmax(x)``."""
        return self._backward(SOFTMAX, y, dy)

    def log_softmax_grad(self, y: Array, dy: Array) -> Array | None:
        """``dy - sum(dy) * exp(y)`` for ``y = log_softmax(x)``."""
        return self._backward(LOG_SOFTMAX, y, dy)

    def _forward(self, kind: int, x: Array, out: Array | None = None) -> Array | None:
        if not x.size or not contiguous_float32(x):
            return None
        columns = x.shape[-1]
        if out is None:
            out = buffers.empty(x.shape, np.float32)
        self.forward.get((kind, x.size // columns, columns), self._make)(x, out)
        return out

    def _backward(self, kind: int, y: Array, dy: Array) -> Array | None:
        if not y.size or y.shape != dy.shape or not contiguous_float32(y, dy):
            return None
        columns = y.shape[-1]
        out = buffers.empty(y.shape, np.float32)
        self.backward.get((kind, y.size // columns, columns), self._make_gradient)(y, dy, out)
        return out

    def _describe(self, key: _Key) -> tuple[Any, Any]:
        kind, rows, columns = key
        desc = self.api.tensor((rows, columns))
        attributes = self.api.attributes()
        return desc, self.api.description(
            "softmax_forward", TRAINING, kind, desc, desc, 1, attributes
        )

    def _make(self, key: _Key) -> Call:
        desc, description = self._describe(key)
        return Call(self.api, description, [(SRC, desc), (DST, desc)])

    def _make_gradient(self, key: _Key) -> Call:
        desc, forward = self._describe(key)
        description = self.api.description(
            "softmax_backward", key[0], desc, desc, desc, 1, forward, self.api.attributes()
        )
        places = [(DST, desc), (DIFF_DST, desc), (DIFF_SRC, desc)]
        return Call(self.api, description, places, forward)


def mend(out: Array, mark: float) -> None:
    """NaN in all of a row that has one: its other columns hold ``mark``."""
    rows = out.reshape(-1, out.shape[-1])
    first = rows[:, 0]
    if first.min() > mark:  # false for NaN
        return
    for i in np.flatnonzero(~(first > mark)):
        if np.isnan(rows[i]).any():
            rows[i] = np.nan
