"""Projections that an optimizer applies to a variable after each update
(``kernel_constraint=``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.ops.array.casting import cast
from headrace.ops.math.binary import add, div, mul
from headrace.ops.math.clip import clip_by_value
from headrace.ops.math.comparison import greater_equal
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.unary import sqrt, square

__all__ = ["BY_NAME", "Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"]

_EPSILON = 1e-7


class Constraint:
    """Base class: called with a variable, gives its projected value."""

    def __call__(self, w: Any) -> Any:
        return w

    def get_config(self) -> dict[str, Any]:
        return {}


def _norms(w: object, axis: object) -> Any:
    return sqrt(reduce_sum(square(w), axis, keepdims=True))


class MaxNorm(Constraint):
    """Norms over ``axis`` at most ``max_value``."""

    def __init__(self, max_value: float = 2, axis: object = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        desired = clip_by_value(norms, 0.0, float(self.max_value))
        return mul(w, div(desired, add(norms, _EPSILON)))

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


class NonNeg(Constraint):
    """Negative weights become zero."""

    def __call__(self, w: Any) -> Any:
        return mul(w, cast(greater_equal(w, 0.0), w.dtype.base_dtype))


class UnitNorm(Constraint):
    """Norms over ``axis`` are one."""

    def __init__(self, axis: object = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return div(w, add(_norms(w, self.axis), _EPSILON))

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


class MinMaxNorm(Constraint):
    """Norms over ``axis`` between two values, approached at ``rate``."""

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: object = 0
    ) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        clipped = clip_by_value(norms, float(self.min_value), float(self.max_value))
        desired = add(mul(self.rate, clipped), mul(1 - self.rate, norms))
        return mul(w, div(desired, add(norms, _EPSILON)))

    def get_config(self) -> dict[str, Any]:
        return {
            "min_value": self.min_value,
            "max_value": self.max_value,
            "rate": self.rate,
            "axis": self.axis,
        }


BY_NAME: dict[str, Callable[..., Any]] = {
    "MaxNorm": MaxNorm,
    "MinMaxNorm": MinMaxNorm,
    "NonNeg": NonNeg,
    "UnitNorm": UnitNorm,
    "max_norm": MaxNorm,
    "min_max_norm": MinMaxNorm,
    "non_neg": NonNeg,
    "nonneg": NonNeg,
    "unit_norm": UnitNorm,
}
