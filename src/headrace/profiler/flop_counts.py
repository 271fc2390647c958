"""How many floating-point operations TensorFlow's profiler counts for an operation.

The rules are TF 1.15's, so that figures agree with it: they count a multiplication and an addition
as two, know some op types only (``AddV2`` is not among them) and need known shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.core import shapes

if TYPE_CHECKING:
    from headrace.core.tensor import Operation, Tensor

__all__ = ["float_ops"]


class _Unknown(Exception):
    """A shape is not known: nothing is counted."""


def _dims(tensor: Tensor) -> tuple[int, ...]:
    known = shapes.known(tensor._shape)
    if known is None:
        raise _Unknown
    return tuple(known)


def _size(tensor: Tensor) -> int:
    return math.prod(_dims(tensor))


def _per_input(count: int) -> Callable[[Operation], float]:
    return lambda op: count * _size(op._inputs[0])


def _per_output(count: int) -> Callable[[Operation], float]:
    return lambda op: count * _size(op._outputs[0])


def _reduction(finish: int) -> Callable[[Operation], float]:
    def count(op: Operation) -> int:
        return _size(op._inputs[0]) + (finish - 1) * _size(op._outputs[0])

    return count


def _window(op: Operation) -> int:
    _check_format(op)
    return math.prod(op._attrs["ksize"])


def _check_format(op: Operation) -> None:
    if op._attrs.get("data_format", "NHWC") not in ("NHWC", b"NHWC"):
        raise _Unknown


def _matmul(op: Operation) -> int:
    a = _dims(op._inputs[0])
    inner = a[0] if op._attrs["transpose_a"] else a[1]
    return 2 * inner * _size(op._outputs[0])


def _conv(op: Operation) -> float:
    _check_format(op)
    height, width, depth, _ = _dims(op._inputs[1])
    return 2 * height * width * depth * _size(op._outputs[0])


def _depthwise(op: Operation) -> float:
    _check_format(op)
    height, width, *_ = _dims(op._inputs[1])
    return 2 * height * width * _size(op._outputs[0])


def _conv_gradient(image: Tensor, kernel: Tensor, op: Operation) -> float:
    _check_format(op)
    _, down, right, _ = op._attrs["strides"]
    return float(2 * _size(image) * _size(kernel) / (_dims(image)[-1] * down * right))


def _dilation(op: Operation) -> float:
    height, width, *_ = _dims(op._inputs[1])
    return 2 * height * width * _size(op._outputs[0])


_ONE_PER_OUTPUT = (
    "Add Sub Mul RealDiv Maximum Minimum Pow GreaterEqual Greater LessEqual Less Equal NotEqual"
)
_RULES: dict[str, Callable[[Operation], float]] = {
    **dict.fromkeys(
        ["Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"], _per_input(1)
    ),
    **dict.fromkeys(_ONE_PER_OUTPUT.split(), _per_output(1)),
    **dict.fromkeys(["Sum", "ArgMax", "ArgMin", "BiasAddGrad"], _reduction(0)),
    "AddN": lambda op: (len(op._inputs) - 1) * _size(op._inputs[0]),
    "AvgPool": lambda op: _window(op) * _size(op._outputs[0]),
    "AvgPoolGrad": lambda op: 2 * _window(op) * _size(op._inputs[1]),
    "BiasAdd": lambda op: _size(op._inputs[0]),
    "Conv2D": _conv,
    "Conv2DBackpropFilter": lambda op: _conv_gradient(op._inputs[0], op._outputs[0], op),
    "Conv2DBackpropInput": lambda op: _conv_gradient(op._outputs[0], op._inputs[1], op),
    "DepthwiseConv2dNative": _depthwise,
    "Dilation2D": _dilation,
    "L2Loss": lambda op: 3 * _size(op._inputs[0]) - 1,
    "MatMul": _matmul,
    "MaxPool": lambda op: _window(op) * _size(op._outputs[0]),
    "MaxPoolGrad": lambda op: (_window(op) + 1) * _size(op._inputs[1]),
    "Mean": _reduction(1),
    "Rsqrt": _per_input(2),
    "RsqrtGrad": _per_output(4),
    "Softmax": _per_input(5),
    "SquaredDifference": _per_output(2),
}


def float_ops(op: Operation) -> int:
    """The count for one operation; 0 where there is no rule or a shape is not known."""
    rule = _RULES.get(op.type)
    if rule is None:
        return 0
    try:
        return int(rule(op))
    except _Unknown:
        return 0
