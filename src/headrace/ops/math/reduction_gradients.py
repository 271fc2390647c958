"""Gradients of Sum, Mean, Max, Min, Prod and EuclideanNorm.

What a gradient says of an output is broadcast against the input that was reduced, never tiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import convert, shapes
from headrace.core.build import apply_many, apply_op
from headrace.core.dtypes import int32
from headrace.core.infer import static_value
from headrace.core.opdef import lookup
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.indexed_slices import IndexedSlices


def shape_tensor(x: Tensor) -> Tensor | list[Any]:
    """The shape of a tensor as something an op takes for a shape.

    A list if it is known, else a tensor.
    """
    known = x._shape
    return apply_op("Shape", x) if known is None or None in known else list(known)


def _for_broadcast(op: Operation, value: Tensor) -> Tensor:
    """A tensor of the output's shape, shaped so that it broadcasts against the reduced input."""
    x, axes = op._inputs
    if op._attrs["keep_dims"]:
        return value
    at, shape = static_value(axes), x._shape
    if at is None or shape is None:
        return apply_op("Reshape", value, _kept_shape(x, axes))
    gone = sorted({int(a) % len(shape) for a in at.reshape(-1)})
    if gone == list(range(len(gone))):  # leading axes: broadcasting adds them by itself
        return value
    kept = [1 if i in gone else d for i, d in enumerate(shape)]
    if None not in kept:
        return apply_op("Reshape", value, kept)
    for a in gone:
        value = apply_op("ExpandDims", value, a)
    return value


def _kept_shape(x: Tensor, axes: Tensor) -> Tensor:
    """The shape of the output with reduced axes kept, when rank or axes are known only at run
    time.
    """
    rank = apply_op("Rank", x)
    where = _counted_from_front(axes, rank)
    ones = apply_op("OnesLike", where)
    return apply_op(
        "DynamicStitch", [apply_op("Range", 0, rank, 1), where], [apply_op("Shape", x), ones]
    )


def _counted_from_front(axes: Tensor, rank: Tensor) -> Tensor:
    flat = apply_op("Cast", apply_op("Reshape", axes, [-1]), DstT=int32)
    return apply_op(
        "FloorMod", flat, apply_op("Maximum", rank, 1)
    )  # a scalar has no axes, but no modulus either


def _spread(op: Operation, g: object, name: str) -> Any:
    x = op._inputs[0]
    g = _for_broadcast(op, convert.convert(g))
    if x._shape is not None and None not in x._shape and g._shape == x._shape:
        return g
    return apply_op("BroadcastTo", g, shape_tensor(x), name=name)


def sum_grad(op: Operation, g: IndexedSlices | Tensor) -> list[Any]:
    return [_spread(op, g, "Tile"), None]


def mean_grad(op: Operation, g: IndexedSlices | Tensor) -> list[Any]:
    x, y = op._inputs[0], op._outputs[0]
    n, m = shapes.num_elements(x._shape), shapes.num_elements(y._shape)
    factor: Any
    if n is not None and m is not None:
        factor = n // max(m, 1)
    elif m == 1:
        factor = apply_op("Cast", apply_op("Size", x), DstT=g.dtype)
    else:
        outputs = apply_op("Maximum", apply_op("Size", y), 1)
        factor = apply_op("Cast", apply_op("FloorDiv", apply_op("Size", x), outputs), DstT=g.dtype)
    return [_spread(op, apply_op("RealDiv", g, factor), "truediv"), None]


def extreme_grad(op: Operation, g: Tensor) -> list[Any]:
    """Equal elements share the gradient equally."""
    x, axes = op._inputs
    y = _for_broadcast(op, op._outputs[0])
    chosen = apply_op("Cast", apply_op("Equal", y, x), DstT=g.dtype)
    count = apply_op("Sum", chosen, axes, keep_dims=True)
    return [apply_op("RealDiv", chosen, count) * _for_broadcast(op, g), None]


def prod_grad(op: Operation, g: Tensor) -> list[Any]:
    """g times the product of the other elements, from both sides: exact where elements are zero."""
    x, axes = op._inputs
    at, rank = static_value(axes), None if x._shape is None else len(x._shape)
    if at is not None and rank is not None and (at.size <= 1 or rank == 1):
        others = _product_of_others(x, int(at.reshape(-1)[0]) if at.size else None)
    else:
        others = _product_of_others_nd(x, axes)
    # TensorFlow's rule ends in its fifth Reshape
    return [apply_op("Mul", _for_broadcast(op, g), others, name="Reshape_4"), None]


def _product_of_others(x: Tensor, axis: int | None) -> Tensor:
    if axis is None:
        return apply_op("OnesLike", x)
    if x.dtype.base_dtype.is_complex:
        x = apply_op("Conj", x)
    left = apply_op("Cumprod", x, axis, exclusive=True)
    return left * apply_op("Cumprod", x, axis, exclusive=True, reverse=True)


def _product_of_others_nd(x: Tensor, axes: Tensor) -> Tensor:
    """Several axes: brought to the front and joined to one."""
    rank = apply_op("Rank", x)
    gone = _counted_from_front(axes, rank)
    stay = apply_many(lookup("ListDiff"), apply_op("Range", 0, rank, 1), gone)[0]
    order = apply_op("ConcatV2", [gone, stay], 0)
    moved = apply_op("Transpose", x, order)
    sizes = [
        apply_op("Prod", apply_op("GatherV2", apply_op("Shape", x), part, 0), 0)
        for part in (gone, stay)
    ]
    joined = apply_op("Reshape", moved, apply_op("Pack", sizes))
    others = apply_op("Reshape", _product_of_others(joined, 0), apply_op("Shape", moved))
    back = apply_op("Transpose", others, apply_op("InvertPermutation", order))
    back.set_shape(x.shape)
    return back


def euclidean_norm_grad(op: Operation, g: Tensor) -> list[Any]:
    y = _for_broadcast(op, op._outputs[0])
    return [op._inputs[0] * apply_op("RealDiv", _for_broadcast(op, g), y), None]
