"""Bits of integers: ``tf.bitwise``.

>>> low = tf.bitwise.bitwise_and(x, 0xFF)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shape_fns
from headrace.core.build import apply
from headrace.core.dispatch import dispatched
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, define

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "population_count",
    "right_shift",
]


def _define(
    op_type: str, ufunc: str | None = None, kernel: Callable[..., Any] | None = None
) -> OpDef:
    return define(
        op_type,
        "x: T, y: T -> z: T; T: type(int)",
        shape=shape_fns.broadcast,
        ufunc=ufunc,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        elementwise=True,
    )


def _shift(ufunc: str) -> Callable[..., Any]:
    """Shifts by less than 0 or more than the width are by 0 and by width - 1."""

    def kernel(xp: ArrayNamespace, x: Array, y: Array) -> Any:
        return getattr(xp, ufunc)(x, xp.clip(y, 0, x.dtype.itemsize * 8 - 1))

    return kernel


def _population_count(xp: ArrayNamespace, x: Array) -> Array:
    # bitwise_count counts the bits of |x|; TensorFlow those of the two's complement
    return xp.bitwise_count(x.view(np.dtype(f"u{x.dtype.itemsize}")))


BITWISE_AND = _define("BitwiseAnd", "bitwise_and")
BITWISE_OR = _define("BitwiseOr", "bitwise_or")
BITWISE_XOR = _define("BitwiseXor", "bitwise_xor")
LEFT_SHIFT = _define("LeftShift", kernel=_shift("left_shift"))
RIGHT_SHIFT = _define("RightShift", kernel=_shift("right_shift"))
INVERT = define(
    "Invert",
    "x: T -> y: T; T: type(int)",
    shape=shape_fns.unchanged,
    ufunc="invert",
    grad=NOT_DIFFERENTIABLE,
    elementwise=True,
)
POPULATION_COUNT = define(
    "PopulationCount",
    "x: T -> y: uint8; T: type(int)",
    shape=shape_fns.unchanged,
    kernel=_population_count,
    grad=NOT_DIFFERENTIABLE,
    elementwise=True,
)


@dispatched("binary")
def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The bits set in both integers, element by element."""
    return apply(BITWISE_AND, x, y, name=name)


@dispatched("binary")
def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The bits set in either integer, element by element."""
    return apply(BITWISE_OR, x, y, name=name)


@dispatched("binary")
def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The bits set in exactly one of the integers, element by element."""
    return apply(BITWISE_XOR, x, y, name=name)


@dispatched("unary")
def invert(x: TensorLike, name: str | None = None) -> Tensor:
    """All bits of an integer inverted: ``-x - 1`` for signed types."""
    return apply(INVERT, x, name=name)


@dispatched("binary")
def left_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The bits of ``x`` moved ``y`` places towards the high end; zeros come in."""
    return apply(LEFT_SHIFT, x, y, name=name)


@dispatched("binary")
def right_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The bits of ``x`` moved ``y`` places towards the low end; signed integers keep their sign."""
    return apply(RIGHT_SHIFT, x, y, name=name)


def population_count(x: TensorLike, name: str | None = None) -> Tensor:
    """How many bits are set."""
    return apply(POPULATION_COUNT, x, name=name)
