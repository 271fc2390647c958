"""Element-wise functions of large arrays, and gradients that are computed from a function's output,
in one pass.

Only functions for which oneDNN keeps NumPy's results: its exp turns NaN into infinity, its relu and
clip turn it into 0, its log flushes denormal numbers; those stay with NumPy.

    >>> y = elementwise.unary("Tanh", x)
    >>> dx = elementwise.gradient("TanhGrad", y, dy)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.kernels.onednn.onednn_library import DIFF_DST, DIFF_SRC, DST, RELU, SRC, TRAINING, Api
from headrace.kernels.onednn.primitive import Cache, Call, contiguous_float32
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Elementwise"]

#: Arrays below this size are left to NumPy.
MIN_SIZE = 64 * 1024
MAX_KEPT = 256


class _Function(NamedTuple):
    """The library's number of a function (None: it is not computed here) and of its gradient.

    The gradient reads the function's output, or its input (relu's may be either).
    """

    kind: int | None
    alpha: float = 0.0
    gradient: int = 0
    by_input: bool = False


#: Functions by op.
FUNCTIONS: dict[str, _Function] = {
    "Relu": _Function(None, 0.0, RELU, True),
    "Tanh": _Function(0x21, 0.0, 0x101),
    "Elu": _Function(0x22, 1.0, 0x102),
    "Sqrt": _Function(0x25),
    "Sigmoid": _Function(0x29, 0.0, 0x104),
    "Gelu": _Function(0x2B, 0.0, 0x2B, True),
    "Swish": _Function(0x2C, 1.0),
    "GeluErf": _Function(0x31, 0.0, 0x31, True),
}
_NONE = _Function(None)

_Key = tuple[str, int]


class Elementwise:
    """Both functions answer None where the arrays are not large contiguous float32."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.calls: Cache[_Key, Call] = Cache(MAX_KEPT)

    def unary(self, op: str, x: Array, out: Array | None = None) -> Array | None:
        """``out`` may be ``x``."""
        if x.size < MIN_SIZE or FUNCTIONS.get(op, _NONE).kind is None or not contiguous_float32(x):
            return None
        if out is None:
            out = buffers.empty(x.shape, np.float32)
        elif out.shape != x.shape or not contiguous_float32(out):
            return None
        self.calls.get((op, x.size), self._make)(x, out)
        return out

    def gradient(self, op: str, y: Array, dy: Array) -> Array | None:
        """``dy`` times the derivative of the op's function where its output (or its input, see
        above) is ``y``.
        """
        if y.size < MIN_SIZE or y.shape != dy.shape or not contiguous_float32(y, dy):
            return None
        out = buffers.empty(y.shape, np.float32)
        self.calls.get((op, y.size), self._make_gradient)(y, dy, out)
        return out

    def relu_grad(self, gradients: Array, features: Array) -> Array | None:
        return self.gradient("ReluGrad", features, gradients)

    def _make(self, key: _Key) -> Call:
        api = self.api
        kind, alpha, beta = FUNCTIONS[key[0]].kind, FUNCTIONS[key[0]].alpha, 0.0
        desc = api.vector(key[1])
        description = api.description(
            "eltwise_forward", TRAINING, kind, desc, desc, alpha, beta, api.attributes()
        )
        return Call(api, description, [(SRC, desc), (DST, desc)])

    def _make_gradient(self, key: _Key) -> Call:
        api = self.api
        function = FUNCTIONS[key[0].removesuffix("Grad")]
        kind, alpha = function.gradient, function.alpha
        desc = api.vector(key[1])
        forward = api.description(
            "eltwise_forward", TRAINING, kind, desc, desc, alpha, 0.0, api.attributes()
        )
        description = api.description(
            "eltwise_backward", kind, desc, desc, desc, alpha, 0.0, forward, api.attributes()
        )
        source = SRC if function.by_input else DST
        places = [(source, desc), (DIFF_DST, desc), (DIFF_SRC, desc)]
        return Call(api, description, places, forward)
