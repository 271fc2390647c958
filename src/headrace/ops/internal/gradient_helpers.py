"""What gradient functions share: small builders, and undoing a broadcast.

An input that was broadcast gets the sum of the output's gradient over the axes that it was repeated
along. Which axes these are is decided here from the static shapes wherever they tell; only where
they do not, ``BroadcastGradientArgs`` finds them when the graph runs.

    def add_grad(op, g):
        return unbroadcast(op, g, g)

The builders take a plain number on either side: it gets the type of the tensor beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.build import apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "add",
    "conj",
    "div",
    "mul",
    "neg",
    "real_dtype",
    "reduce_to",
    "select",
    "shape_of",
    "square",
    "sub",
    "sum_all",
    "unbroadcast",
    "zeros_like",
]


# BroadcastGradientArgs --------------------------------------------------------------------------


def _reduction_vectors(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 1)
    return [(None,), (None,)]


def _broadcast_gradient_args(xp: ArrayNamespace, s0: Array, s1: Array) -> tuple[Array, Array]:
    """Axes of the broadcast shape along which each input has one element (none at all for equal
    shapes).
    """
    for i, given in enumerate((s0, s1)):
        if np.ndim(given) != 1:
            raise errors.InvalidArgumentError(
                None, None, f"In[{i}] must be a vector.{shapes.show(np.shape(given))}"
            )
    a, b = np.asarray(s0).tolist(), np.asarray(s1).tolist()
    dtype = s0.dtype
    if a == b:
        return np.empty(0, dtype), np.empty(0, dtype)
    rank = max(len(a), len(b))
    padded_a, padded_b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    if any(x != y and x != 1 and y != 1 for x, y in zip(padded_a, padded_b)):
        raise errors.InvalidArgumentError(
            None, None, f"Incompatible shapes: {shapes.show(tuple(a))} vs. {shapes.show(tuple(b))}"
        )
    r0 = [i for i, d in enumerate(padded_a) if d == 1]
    r1 = [i for i, d in enumerate(padded_b) if d == 1]
    return np.array(r0, dtype), np.array(r1, dtype)


BROADCAST_GRADIENT_ARGS = define(
    "BroadcastGradientArgs",
    "s0: T, s1: T -> r0: T, r1: T; T: type(index)=int32",
    shape=_reduction_vectors,
    kernel=_broadcast_gradient_args,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
    computes_shapes=True,
    known_inputs=(0, 1),
    dense=True,
)


# builders ---------------------------------------------------------------------------------------


def _builder(op_type: str) -> Callable[[Any, Any], Any]:
    def build(x: Tensor, y: Tensor) -> Tensor:
        if isinstance(x, (int, float)):
            return apply_op(op_type, x, y, T=y.dtype)
        return apply_op(op_type, x, y)

    return build


add = _builder("AddV2")
sub = _builder("Sub")
mul = _builder("Mul")
div = _builder("RealDiv")


def neg(x: TensorLike) -> Tensor:
    return apply_op("Neg", x)


def square(x: TensorLike) -> Tensor:
    return apply_op("Square", x)


def conj(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is its own."""
    return apply_op("Conj", x) if x._dtype._kind == "c" else x


def zeros_like(x: TensorLike) -> Tensor:
    return apply_op("ZerosLike", x)


def select(condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor:
    return apply_op("Select", condition, x, y)


def real_dtype(x: Tensor) -> DType:
    return x._dtype._base.real_dtype


def shape_of(x: Tensor) -> Array | Tensor:
    """The shape as an array if it is known while building, else as a tensor."""
    known = shapes.known(x._shape)
    return apply_op("Shape", x) if known is None else np.array(known, np.int32)


def sum_all(x: Tensor, keep_dims: bool = False) -> Tensor:
    """The sum over all axes."""
    if x._shape is None:
        axes = apply_op("Range", 0, apply_op("Rank", x), 1)
    else:
        axes = convert_to_tensor(np.arange(len(x._shape), dtype=np.int32))
    total: Tensor = apply_op("Sum", x, axes, keep_dims=keep_dims)
    if not keep_dims:
        total.set_shape(())
    return total


# undoing a broadcast ----------------------------------------------------------------------------


def unbroadcast(op: Operation, gx: TensorLike | None, gy: TensorLike) -> list[Any]:
    """Gradients of the two inputs of ``op``, from their gradients at the shape of the output (None
    stays None).
    """
    x, y = op._inputs
    if x._shape == y._shape and shapes.known(x._shape) is not None:
        return [gx, gy]
    return reduce_to(x, y, gx, gy)


def reshape_name(own: Tensor, other: Tensor, always: bool = False) -> str | None:
    """The name of what computes the gradient of ``own``, where TensorFlow reshapes and nothing has
    to be summed here; None where it is summed, or where TensorFlow does not reshape either.

    ``always``: TensorFlow's rule of the operation reshapes whatever it knows of the shapes.
    """
    if _repeated_axes(own._shape, other._shape) != ():
        return None
    return "Reshape" if always or shapes.known(own._shape) is None else None


def reduce_to(x: Tensor, y: Tensor, gx: TensorLike | None, gy: TensorLike | None) -> list[Any]:
    axes: list[Any] = [_repeated_axes(x._shape, y._shape), _repeated_axes(y._shape, x._shape)]
    grads = [gx, gy]
    if any(a is None and g is not None for a, g in zip(axes, grads)):
        found = apply_many(BROADCAST_GRADIENT_ARGS, shape_of(x), shape_of(y))
        axes = [found[i] if a is None else a for i, a in enumerate(axes)]
    return [
        None if g is None else _summed(g, own, other, a)
        for g, a, own, other in zip(grads, axes, (x, y), (y, x))
    ]


def _repeated_axes(own: Shape, other: Shape) -> tuple[int, ...] | None:
    """Axes of the output that ``own`` was, or may have been, repeated along; None if the shapes do
    not tell.

    Summing over an axis where the output has one element changes nothing, so a dimension that is
    known to be 1 is summed whatever stands against it.
    """
    if other == ():
        return ()
    if own is None or other is None:
        return None
    rank = max(len(own), len(other))
    missing = rank - len(own)
    axes = list(range(missing))
    for i in range(max(missing, rank - len(other)), rank):
        mine, theirs = own[i - missing], other[i - (rank - len(other))]
        if theirs == 1:
            continue
        if mine is None:
            return None
        if mine == 1:
            axes.append(i)
    return tuple(axes)


def _summed(g: TensorLike, own: Tensor, other: Tensor, axes: Tensor | Sequence[int]) -> Any:
    if isinstance(axes, Tensor):
        return apply_op("Reshape", apply_op("Sum", g, axes, keep_dims=False), shape_of(own))
    if not axes:
        return g
    assert own._shape is not None and other._shape is not None  # else the axes were not known
    missing = max(0, len(other._shape) - len(own._shape))
    keep = missing == 0
    is_last = keep or len(axes) == missing  # TensorFlow reshapes in any case: its name is used
    name = "Reshape" if is_last else None
    out = apply_op("Sum", g, np.array(axes, np.int32), keep_dims=keep, name=name)
    return out if is_last else apply_op("Reshape", out, shape_of(own))
