"""Broadcasting to a shape, and the shape that two shapes broadcast to.

>>> tf.broadcast_to([1, 2], [3, 2]); tf.broadcast_static_shape(a.shape, b.shape)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.shapes import Shape, TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import RESHAPE, const, invalid, shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, ShapeLike, TensorLike

__all__ = ["broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to"]


# broadcasting -----------------------------------------------------------------------------------


def _broadcast_to_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 1)
    source, target = c.shape(0), c.shape_value(1)
    if source is None or target is None:
        return [target]
    if len(source) > len(target):
        raise ValueError(f"Shape must be at most rank {len(target)} but is rank {len(source)}")
    for have, want in zip(source[::-1], target[::-1]):
        if have is not None and have > 1 and want is not None and have != want:
            raise ValueError(f"Dimensions must be equal, but are {have} and {want}")
    lead = len(target) - len(source)
    known = [
        h if w is None and h is not None and h > 1 else w for h, w in zip(source, target[lead:])
    ]
    return [(*target[:lead], *known)]


def _broadcast_to_kernel(xp: ArrayNamespace, x: Array, shape: Array) -> Array:
    dims = tuple(shape.tolist())
    if x.shape == dims:
        return x
    try:
        if xp.name == "numpy":  # np.broadcast_to takes ten times as long for small arrays
            out = np.empty(dims, x.dtype)
            out[...] = x
            return out
        return xp.broadcast_to(x, dims)
    except ValueError:
        raise invalid(
            f"Unable to broadcast tensor of shape {shapes.show(x.shape)} to tensor of shape "
            f"{shapes.show(dims)}"
        ) from None


def _broadcast_to_grad(op: Operation, grad: Tensor) -> list[Any]:
    x, wanted = op.inputs
    have, out = shapes.known(x._shape), shapes.known(op.outputs[0]._shape)
    if have is not None and out is not None:
        lead = len(out) - len(have)
        axes: Any = [i for i, d in enumerate(out) if i < lead or (have[i - lead] == 1 and d != 1)]
        if not axes:
            return [grad, None]
        axes = const(axes)
    else:
        _, axes = apply_many(
            lookup("BroadcastGradientArgs"), wanted, shape(x, out_type=wanted._dtype)
        )
    summed = apply_op("Sum", grad, axes, keep_dims=True)
    return [apply(RESHAPE, summed, shape(x, out_type=wanted._dtype)), None]


BROADCAST_TO = define(
    "BroadcastTo",
    "input: T, shape: Tidx -> output: T; Tidx: type(index)=int32",
    shape=_broadcast_to_shape,
    kernel=_broadcast_to_kernel,
    grad=_broadcast_to_grad,
    view=True,
    known_inputs=(1,),
    shape_input=1,
    repeats=0,
    rearranges=True,
)


def broadcast_to(input: Tensor, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Repeat along dimensions of size 1, and new leading ones, until the tensor has ``shape``."""
    return apply(BROADCAST_TO, input, shape, name=name)


def _broadcast_args_shape(c: Inference) -> list[Shape]:
    lengths = [None if s is None else s[0] for s in (c.require_rank(0, 1), c.require_rank(1, 1))]
    return [(None if None in lengths else max(d for d in lengths if d is not None),)]


def _broadcast_args_kernel(xp: ArrayNamespace, s0: Array, s1: Array) -> Array:
    a, b = s0.tolist(), s1.tolist()
    try:
        return np.array(shapes.broadcast(tuple(a), tuple(b)), s0.dtype)
    except ValueError:
        raise invalid(
            f"Incompatible shapes: {shapes.show(tuple(a))} vs. {shapes.show(tuple(b))}"
        ) from None


BROADCAST_ARGS = define(
    "BroadcastArgs",
    "s0: T, s1: T -> r0: T; T: type(index)=int32",
    shape=_broadcast_args_shape,
    kernel=_broadcast_args_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0, 1),
)


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """The shape of ``a + b`` as a tensor, from the shapes of a and b as integer vectors.

    tf.broadcast_dynamic_shape([3, 1], [2])                 # [3, 2]
    """
    return apply(BROADCAST_ARGS, shape_x, shape_y)


def broadcast_static_shape(shape_x: TensorLike, shape_y: TensorLike) -> TensorShape:
    """The static shape of ``a + b``, from two TensorShapes; ValueError if they do not fit."""
    for given in (shape_x, shape_y):
        if not isinstance(given, TensorShape):
            raise AttributeError(
                f"tf.broadcast_static_shape takes a TensorShape, not {given!r}: it has no 'ndims'"
            )
    a, b = shapes.to_plain(shape_x), shapes.to_plain(shape_y)
    try:
        return shapes.from_plain(shapes.broadcast(a, b))
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {shapes.from_plain(a)} and "
            f"{shapes.from_plain(b)}"
        ) from None
