"""oneDNN through cffi: matrix products, optimizer updates, the gradient of relu.

Arrays are used where they lie; results are the same as NumPy's within rounding. Nothing is packed or reordered here, and
matrix products need no preparation, so a new shape costs nothing.
"""

from __future__ import annotations

from typing import Any

from headrace.arrays.pool import thread_count
from headrace.kernels.onednn import elementwise, updates
from headrace.kernels.onednn import matmul as products
from headrace.kernels.onednn.library import Api, load

__all__ = ["OneDnn"]


class OneDnn:
    """The functions that ``headrace.arrays.accel`` asks for."""

    def __init__(self) -> None:
        self.api: Api = load()
        self.api.set_threads(thread_count())
        self.name = f"oneDNN {self.api.version}"
        self._adam = updates.Adam(self.api)
        self._relu_grad = elementwise.ReluGrad(self.api)

    def matmul(self, a: Any, b: Any, out: Any, accumulate: bool = False) -> Any:
        return products.matmul(self.api, a, b, out, accumulate)

    def relu_grad(self, gradients: Any, features: Any) -> Any:
        return self._relu_grad(gradients, features)

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
    ) -> bool:
        return self._adam(var, m, v, rate, beta1, beta2, epsilon, grad)
