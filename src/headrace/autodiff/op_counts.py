"""How many operations TensorFlow's gradient of an operation consists of.

A random op without a seed of its own is seeded with the number of operations in the graph
(core/seeds.py). A program that makes a network, its optimizer, and then a second network gets
TensorFlow's numbers for the second one only if the gradients of the first are counted as TensorFlow
makes them; Headrace makes fewer, as it knows more shapes and needs no gates. Types that are not
here count as what was made.

    >>> gradient_ops(matmul, [g]), gate_ops([ga, gb])
    (2, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.tensor import Operation, Tensor

__all__ = ["gate_ops", "gradient_ops"]


def gradient_ops(op: Operation, grads: Sequence[Any]) -> int | None:
    """Operations of TF's gradient function; None where it is not known."""
    rule = _RULES.get(op.type)
    if rule is None or isinstance(grads[0], IndexedSlices):
        return None
    return rule if isinstance(rule, int) else rule(op, grads[0])


def gate_ops(in_grads: Sequence[Any]) -> int:
    """Operations that keep gradients of several inputs together until all are there."""
    present = [g for g in in_grads if g is not None]
    if len(present) < 2:
        return 0
    slices = [g for g in present if isinstance(g, IndexedSlices)]
    return 1 + len(present) + sum(1 + (g.dense_shape is not None) for g in slices)


def _seen(op: Operation, what: str, key: object) -> bool:
    """TF keeps what it found out about shapes once per graph: whether this was looked at before."""
    found = op.graph._gradient_shapes_seen
    if (what, key) in found:
        return True
    found.add((what, key))
    return False


# broadcasting -----------------------------------------------------------------------------------


def _known(tensor: Tensor) -> Sequence[int] | None:
    return shapes.known(tensor._shape)


def _broadcast(op: Operation, grad: Tensor, by_input: tuple[int, int]) -> int:
    """For two inputs that were broadcast.

    What each gradient takes, and the sums back to the inputs' shapes.
    """
    x, y = _known(op._inputs[0]), _known(op._inputs[1])
    own = sum(by_input)
    if x is None or y is None:
        return 3 + own + 4
    found = 0 if _seen(op, "broadcast", (x, y)) else 3
    return found + own + 4 * sum(bool(dims != grad._shape) for dims in (x, y))


def _all_equal(op: Operation, grad: Tensor) -> bool:
    x, y = _known(op._inputs[0]), _known(op._inputs[1])
    return x is not None and x == y == grad._shape


def _add(op: Operation, grad: Tensor) -> int:
    return 0 if _all_equal(op, grad) else _broadcast(op, grad, (0, 0))


def _sub(op: Operation, grad: Tensor) -> int:
    return 1 if _all_equal(op, grad) else _broadcast(op, grad, (0, 1))


def _mul(op: Operation, grad: Tensor) -> int:
    plain = grad._dtype._base in (dtypes.float32, dtypes.int32)
    return 2 if plain and _all_equal(op, grad) else _broadcast(op, grad, (1, 1))


# reductions -------------------------------------------------------------------------------------


def _sum(op: Operation, grad: Tensor) -> int:
    dims, axes = op._inputs[0]._shape, static_value(op._inputs[1])
    if dims is None or axes is None:
        return 16
    if np.array_equal(axes, np.arange(len(dims))):
        return 4
    if None in dims:
        return 16
    return 4 if _seen(op, "reduce", (dims, tuple(np.ravel(axes).tolist()))) else 21


def _mean(op: Operation, grad: Tensor) -> int:
    known = None not in (_known(op._inputs[0]), _known(op._outputs[0]))
    return _sum(op, grad) + (2 if known else 11)


# others -----------------------------------------------------------------------------------------


def _concat(op: Operation, grad: Tensor) -> int:
    parts = op._inputs[:-1]
    if len(parts) == 1:
        return 0
    unknown = [i for i, p in enumerate(parts) if _known(p) is None]
    sizes = len(parts) if not unknown else unknown[0] + 2
    return 3 + sizes + len(parts)


def _gather(op: Operation, grad: object) -> int | None:
    axis = static_value(op._inputs[2]) if len(op._inputs) > 2 else 0
    return 13 if axis is not None and int(axis) == 0 else None


def _batch_matmul(op: Operation, grad: Tensor) -> int:
    """Where the shapes are known and equal nothing was broadcast; else the gradients are summed."""
    x, y = _known(op._inputs[0]), _known(op._inputs[1])
    return 2 if x is not None and x == y else 17


def _squared_difference(op: Operation, grad: Tensor) -> int:
    return 5 if _all_equal(op, grad) else _broadcast(op, grad, (4, 1))


Rule = int | Callable[[Operation, Any], int | None]

_RULES: dict[str, Rule] = {
    "Add": _add,
    "AddV2": _add,
    "Sub": _sub,
    "Mul": _mul,
    "RealDiv": 12,
    "Div": 12,
    "DivNoNan": 12,
    "Maximum": 13,
    "Minimum": 13,
    "SquaredDifference": _squared_difference,
    "Pow": 23,
    "AddN": 0,
    "BiasAdd": 1,
    "MatMul": 2,
    "BatchMatMulV2": _batch_matmul,
    "Sum": _sum,
    "Mean": _mean,
    "Max": 19,
    "Min": 19,
    "Prod": 49,
    "Log": 2,
    "Log1p": 4,
    "Softplus": 2,
    "Square": 3,
    "Softmax": 5,
    "LogSoftmax": 5,
    "L2Loss": 1,
    "SoftmaxCrossEntropyWithLogits": 8,
    "SparseSoftmaxCrossEntropyWithLogits": 4,
    "Reshape": 2,
    "ExpandDims": 2,
    "Squeeze": 2,
    "Transpose": 2,
    "StridedSlice": 2,
    "Slice": 12,
    "Pad": 9,
    "Tile": 12,
    "ConcatV2": _concat,
    "GatherV2": _gather,
    "GatherNd": 2,
    "Select": 3,
    "Pack": 1,
    "Unpack": 1,
    "Split": 1,
    "Conv2D": 3,
    "Conv2DBackpropInput": 3,
    "DepthwiseConv2dNative": 4,
    "MaxPool": 1,
    "AvgPool": 2,
    "LRN": 1,
}
