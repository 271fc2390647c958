"""Sorting and searching: ``tf.sort``, ``tf.argsort``, ``tf.searchsorted``, tests of order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import counted_with
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.array.filling import _all_axes
from headrace.ops.array.selecting import top_k

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "argsort",
    "is_non_decreasing",
    "is_strictly_increasing",
    "lower_bound",
    "searchsorted",
    "sort",
    "upper_bound",
]


# sorting and searching --------------------------------------------------------------------------


@counted_with(2)  # TF slices the shape with three constants
def sort(
    values: TensorLike, axis: AxisLike = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """The elements sorted along ``axis`` (the last by default), "ASCENDING" or "DESCENDING".

    Equal elements keep no order that a program could see. ``tf.argsort`` gives the indices.

        tf.sort([3, 1, 2], direction="DESCENDING")  # [3, 2, 1]
    """
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, 0)


@counted_with(2)
def argsort(
    values: Tensor,
    axis: TensorLike = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The indices that sort along ``axis`` (the last by default).

    ``direction`` is "ASCENDING" or "DESCENDING". Equal elements keep their order.
    """
    del stable  # always
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, 1)


def _sorted(values: TensorLike, axis: object, direction: str, which: int) -> Tensor:
    values = convert_to_tensor(values, name="values")
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Unknown direction: {direction}. Supported directions are: ASCENDING, DESCENDING"
        )
    rank = values._rank()
    known = axis if isinstance(axis, int) else static_value(convert_to_tensor(axis))
    if known is None or np.ndim(known):
        raise ValueError("axis must be a constant scalar")
    at = int(known)
    if rank is not None and at != -1 and not -rank <= at < rank:
        position = at + rank if at < 0 else at
        raise ValueError(
            f"slice index {position} of dimension 0 out of bounds: axis {at} of a tensor of rank "
            f"{rank}"
        )
    last = at == -1 or (rank is not None and at % rank == rank - 1)
    perm = None
    if not last:
        perm = _swap_with_last(values, at)
        values = apply_op("Transpose", values, perm)
    found: Tensor = _last_axis_sorted(values, direction, which)
    if perm is not None:
        found = apply_op("Transpose", found, perm)
    return found


def _swap_with_last(values: Tensor, axis: int) -> Tensor:
    """The permutation that exchanges an axis with the last one; the rank may be unknown."""
    rank = values._rank()
    if rank is not None:
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        return const(order)
    dims = apply_op("Rank", values)
    at = dims + axis if axis < 0 else const(axis)
    last = dims - 1
    every = apply_op("Range", const(0), dims, const(1))
    swapped = apply_op("SelectV2", apply_op("Equal", every, last), at, every)
    return apply_op("SelectV2", apply_op("Equal", every, at), last, swapped)


def _last_axis_sorted(values: Tensor, direction: str, which: int) -> Any:
    """By top-k of everything; ascending order is the descending one of the negated values."""
    count = shape(values)[-1]
    if direction == "DESCENDING":
        return top_k(values, count)[which]
    result = top_k(apply_op("Neg", values), count)
    return result.indices if which == 1 else apply_op("Neg", result.values)


def _bound_kernel(side: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, rows: Array, values: Array, *, out_type: DType) -> Array:
        if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
            raise invalid("Leading dim_size of both tensors must match.")
        found = [xp.searchsorted(r, v, side=side) for r, v in zip(rows, values)]
        return (
            xp.stack(found).astype(out_type.np_dtype)
            if found
            else np.empty(values.shape, out_type.np_dtype)
        )

    return kernel


def _bound_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 2)
    return [c.require_rank(1, 2)]


_BOUND = "sorted_inputs: T, values: T -> output: out_type; out_type: type(index)=int32"
LOWER_BOUND = define(
    "LowerBound", _BOUND, shape=_bound_shape, kernel=_bound_kernel("left"), grad=NOT_DIFFERENTIABLE
)
UPPER_BOUND = define(
    "UpperBound", _BOUND, shape=_bound_shape, kernel=_bound_kernel("right"), grad=NOT_DIFFERENTIABLE
)


def lower_bound(
    sorted_inputs: TensorLike,
    values: TensorLike,
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    return apply(LOWER_BOUND, sorted_inputs, values, out_type=out_type, name=name)


def upper_bound(
    sorted_inputs: TensorLike,
    values: TensorLike,
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    return apply(UPPER_BOUND, sorted_inputs, values, out_type=out_type, name=name)


def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    side: str = "left",
    out_type: DType = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where values would be inserted into sorted rows to keep them sorted.

    ``side="left"`` is before equal elements, "right" after them. The rows are those of the last
    dimension; leading dimensions must be equal.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    sequence = convert_to_tensor(sorted_sequence)
    values = convert_to_tensor(values)
    n, m = shape(sequence)[-1], shape(values)[-1]
    rows = apply_op("Reshape", sequence, apply_op("Pack", [const(-1), n]))
    wanted = apply_op("Reshape", values, apply_op("Pack", [const(-1), m]))
    found = apply(
        LOWER_BOUND if side == "left" else UPPER_BOUND, rows, wanted, out_type=out_type, name=name
    )
    return apply_op("Reshape", found, shape(values))


def _differences(x: TensorLike) -> Tensor:
    from headrace.ops.control.assertions import is_numeric_tensor

    x = convert_to_tensor(x, name="x")
    if not is_numeric_tensor(x):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    flat = apply_op("Reshape", x, const([-1]))
    return apply_op("Sub", flat[1:], flat[:-1])


def _all_of(x: Tensor, name: str) -> Tensor:
    return apply_op("All", x, _all_axes(x), keep_dims=False, name=name)


@counted_with(20)  # TF branches on the size
def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """A scalar: no element is less than the one before. Empty and one element: True."""
    with name_scope(name, "is_non_decreasing", [x]) as scope:
        steps = _differences(x)
        return _all_of(apply_op("LessEqual", const(0, steps._dtype), steps), scope + "All/")


@counted_with(20)
def is_strictly_increasing(x: Tensor, name: str | None = None) -> Tensor:
    """A scalar: every element is greater than the one before."""
    with name_scope(name, "is_strictly_increasing", [x]) as scope:
        steps = _differences(x)
        return _all_of(apply_op("Less", const(0, steps._dtype), steps), scope + "All/")
