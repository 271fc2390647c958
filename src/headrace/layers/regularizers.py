"""Keras's L1 and L2 penalties: ``L1L2(l1=0.01)(weights)`` gives a scalar loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.math.binary import add, mul
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.unary import abs, square

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["BY_NAME", "L1L2", "Regularizer", "l1", "l1_l2", "l2"]


class Regularizer:
    """Base class: called with a variable, gives its penalty."""

    def __call__(self, x: TensorLike) -> Any:
        return 0.0

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        return cls(**config)


class L1L2(Regularizer):
    """``l1 * sum(|x|) + l2 * sum(x²)``."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = np.float32(l1)
        self.l2 = np.float32(l2)

    def __call__(self, x: TensorLike) -> Tensor:
        if not self.l1 and not self.l2:
            return constant(0.0)
        penalty: TensorLike = 0.0
        if self.l1:
            penalty = add(penalty, reduce_sum(mul(self.l1, abs(x))))
        if self.l2:
            penalty = add(penalty, reduce_sum(mul(self.l2, square(x))))
        return convert_to_tensor(penalty)

    def get_config(self) -> dict[str, Any]:
        return {"l1": float(self.l1), "l2": float(self.l2)}


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 (TF's name)
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741 (TF's name)
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    return L1L2(l1=l1, l2=l2)


BY_NAME: dict[str, Callable[..., Any]] = {"L1L2": L1L2, "l1": l1, "l1_l2": l1_l2, "l2": l2}
