"""The gradients of the element-wise functions of two tensors (binary.py).

A gradient function gets the operation and the gradient of its output, ``(op, g)``, and gives one
gradient for each input, summed to that input's shape where the input was broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.tensor import Operation, Tensor
from headrace.ops.internal import gradient_helpers as gu

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "add_grad",
    "atan2_grad",
    "choice_grad",
    "floor_mod_grad",
    "mul_grad",
    "mul_no_nan_grad",
    "next_after_grad",
    "pow_grad",
    "quotient_grad",
    "squared_difference_grad",
    "sub_grad",
    "truncated_mod_grad",
    "xdivy_grad",
    "xlogy_grad",
]


def _inputs(op: Operation) -> tuple[Any, Any]:
    """The two (conjugate) inputs."""
    x, y = op._inputs
    return gu.conj(x), gu.conj(y)


def add_grad(op: Operation, g: Tensor) -> list[Any]:
    return gu.unbroadcast(op, g, g)


def sub_grad(op: Operation, g: Tensor) -> list[Any]:
    gx, gy = gu.unbroadcast(op, g, g)
    return [gx, gu.neg(gy)]


def mul_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = _inputs(op)
    name = gu.reshape_name(op._inputs[0], op._inputs[1])
    return gu.unbroadcast(op, apply_op("Mul", g, y, name=name), gu.mul(x, g))


def mul_no_nan_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = op._inputs
    return gu.unbroadcast(op, apply_op("MulNoNan", g, y), apply_op("MulNoNan", x, g))


def quotient_grad(divide: str) -> Callable[..., list[Any]]:
    """d(x/y) = dx/y - x/y^2 dy, written with the division op itself."""

    def grad(op: Operation, g: TensorLike) -> list[Any]:
        x, y = _inputs(op)
        name = gu.reshape_name(op._inputs[0], op._inputs[1], always=True)
        gx = apply_op(divide, g, y, name=name)
        slope = apply_op(divide, apply_op(divide, gu.neg(x), y), y)
        return gu.unbroadcast(op, gx, gu.mul(g, slope))

    return grad


def floor_mod_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = _inputs(op)
    return gu.unbroadcast(op, g, gu.mul(g, gu.neg(apply_op("FloorDiv", x, y))))


def truncated_mod_grad(op: Operation, g: Tensor) -> list[Any]:
    # x = q y + z with an integer q: dz/dy = -q = (z - x) / y
    x, y = op._inputs
    return gu.unbroadcast(op, g, gu.mul(g, apply_op("Div", gu.sub(op._outputs[0], x), y)))


def pow_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = _inputs(op)
    z = gu.conj(op._outputs[0])
    power = apply_op("Pow", x, gu.sub(y, 1))
    name = gu.reshape_name(op._inputs[0], op._inputs[1]) or "mul"
    gx = apply_op("Mul", apply_op("Mul", g, y, name="mul"), power, name=name)
    # log only where it exists: a NaN in the branch that is not taken would spoil second derivatives
    if x._dtype._kind == "c":
        good = apply_op("NotEqual", x, 0)
    else:
        good = apply_op("Greater", x, 0)
    safe = gu.select(good, x, apply_op("OnesLike", x))
    log_x = gu.select(good, apply_op("Log", safe), gu.zeros_like(x))
    return gu.unbroadcast(op, gx, gu.mul(gu.mul(g, z), log_x))


def choice_grad(compare: str) -> Callable[..., list[Any]]:
    """Maximum, Minimum: the gradient goes to the input that was taken, to x if both are equal."""

    def grad(op: Operation, g: TensorLike) -> list[Any]:
        x, y = op._inputs
        zero = gu.zeros_like(g)
        took_x = apply_op(compare, x, y)
        gx = apply_op("Select", took_x, g, zero, name=gu.reshape_name(x, y, always=True))
        return gu.unbroadcast(op, gx, gu.select(took_x, zero, g))

    return grad


def squared_difference_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = op._inputs
    slope = apply_op("Mul", gu.mul(g, 2), gu.sub(x, y), name="mul")
    gx, gy = gu.unbroadcast(op, slope, slope)
    return [gx, gu.neg(gy)]


def _not_zero(x: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("NotEqual", x, 0), DstT=x._dtype._base)


def xlogy_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = op._inputs
    by_x = apply_op("Xlogy", _not_zero(x), y)
    by_y = apply_op("Xdivy", x, y)
    return gu.unbroadcast(op, gu.mul(by_x, g), gu.mul(by_y, g))


def xdivy_grad(op: Operation, g: Tensor) -> list[Any]:
    x, y = op._inputs
    by_x = apply_op("Xdivy", _not_zero(x), y)
    by_y = apply_op("Xdivy", gu.neg(x), gu.square(y))
    return gu.unbroadcast(op, gu.mul(by_x, g), gu.mul(by_y, g))


def atan2_grad(op: Operation, g: Tensor) -> list[Any]:
    y, x = op._inputs
    scaled = gu.div(g, gu.add(gu.square(x), gu.square(y)))
    return gu.unbroadcast(op, gu.mul(x, scaled), gu.mul(gu.neg(y), scaled))


def next_after_grad(op: Operation, g: Tensor) -> list[Any]:
    return gu.unbroadcast(op, g, gu.zeros_like(g))
