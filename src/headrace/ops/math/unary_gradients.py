"""The gradients of the element-wise functions of one tensor (unary.py).

Most are made by one of three functions: ``times(f)`` multiplies with a derivative,
``from_output("SqrtGrad")`` and ``from_conjugate("TanhGrad")`` call a gradient op with the output.
The gradients of those gradient ops are here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.tensor import Operation, Tensor
from headrace.ops.internal import gradient_helpers as gu

if TYPE_CHECKING:
    pass

__all__ = [
    "Grad",
    "arc_slope",
    "call_op",
    "complex_abs_gradient",
    "conjugate_input",
    "conjugate_output",
    "from_conjugate",
    "from_output",
    "reciprocal_grad_gradient",
    "reciprocal_of",
    "rsqrt_grad_gradient",
    "sigmoid_grad_gradient",
    "sqrt_grad_gradient",
    "tanh_grad_gradient",
    "times",
]


Grad = Callable[..., list[Any]]


def conjugate_input(op: Operation) -> Tensor:
    """The (conjugate) input."""
    return gu.conj(op._inputs[0])


def conjugate_output(op: Operation) -> Tensor:
    """The (conjugate) output."""
    return gu.conj(op._outputs[0])


def times(derivative: Callable[[Operation], Any]) -> Grad:
    """The gradient ``g * derivative(op)``."""
    return lambda op, g: [apply_op("Mul", g, derivative(op), name="mul")]


def from_output(grad_op: str) -> Grad:
    """A gradient that has its own op, which takes the conjugate: ``SqrtGrad(y, dy)``."""
    return lambda op, g: [apply_op(grad_op, op._outputs[0], g)]


def from_conjugate(grad_op: str) -> Grad:
    """A gradient that has its own op, which is given the conjugate: ``TanhGrad(y, dy)``."""
    return lambda op, g: [apply_op(grad_op, conjugate_output(op), g)]


def call_op(op_type: str, x: Tensor) -> Tensor:
    return apply_op(op_type, x)


def reciprocal_of(x: Tensor) -> Tensor:
    return apply_op("Reciprocal", x)


def arc_slope(op: Operation) -> Tensor:
    """1 / sqrt(1 - x^2)."""
    return reciprocal_of(call_op("Sqrt", gu.sub(1, gu.square(conjugate_input(op)))))


def complex_abs_gradient(op: Operation, g: Tensor) -> list[Any]:
    # x / |x|, and 0 where x is 0
    dtype = op._inputs[0]._dtype._base
    zero = gu.zeros_like(g)
    wide = apply_op("Complex", g, zero, Tout=dtype)
    size = apply_op("Complex", op._outputs[0], zero, Tout=dtype)
    return [apply_op("DivNoNan", gu.mul(wide, op._inputs[0]), size)]


def tanh_grad_gradient(op: Operation, g: Tensor) -> list[Any]:
    # z = dy (1 - y^2)
    y, dy = (gu.conj(t) for t in op._inputs)
    return [gu.mul(gu.mul(gu.mul(g, -2), dy), y), apply_op("TanhGrad", y, g)]


def sigmoid_grad_gradient(op: Operation, g: Tensor) -> list[Any]:
    # z = dy y (1 - y)
    y, dy = (gu.conj(t) for t in op._inputs)
    both = gu.mul(g, dy)
    return [gu.sub(both, gu.mul(gu.mul(both, 2), y)), apply_op("SigmoidGrad", y, g)]


def sqrt_grad_gradient(op: Operation, g: Tensor) -> list[Any]:
    # z = dy / (2 conj(y))
    over = gu.div(g, op._inputs[0])
    return [gu.neg(gu.mul(gu.conj(over), op._outputs[0])), gu.mul(over, 0.5)]


def rsqrt_grad_gradient(op: Operation, g: Tensor) -> list[Any]:
    # z = -dy conj(y)^3 / 2
    y, dy = gu.conj(op._inputs[0]), op._inputs[1]
    return [gu.mul(gu.mul(gu.mul(gu.conj(g), -1.5), dy), gu.square(y)), apply_op("RsqrtGrad", y, g)]


def reciprocal_grad_gradient(op: Operation, g: Tensor) -> list[Any]:
    # z = -dy conj(y)^2
    y, dy = gu.conj(op._inputs[0]), op._inputs[1]
    return [gu.mul(gu.mul(gu.mul(gu.conj(g), -2), dy), y), apply_op(op.type, y, g)]
