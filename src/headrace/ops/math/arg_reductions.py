"""ArgMax and ArgMin: where along an axis the largest or smallest element is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.build import apply
from headrace.core.dtypes import int64
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.tensor import Tensor
from headrace.ops.math import reduction_kernels as kernels
from headrace.ops.math.reductions import _without_axis, one_of

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, DTypeLike, TensorLike

__all__ = ["arg_max", "arg_min", "argmax", "argmax_v2", "argmin", "argmin_v2"]


_ARG = (
    "input: T, dimension: Tidx -> output: output_type; T: type(number), Tidx: type(index)=int32, "
    "output_type: type(index)=int64"
)

ARG_MAX = define(
    "ArgMax",
    _ARG,
    shape=_without_axis,
    kernel=kernels.argmax_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
    dense=True,
)

ARG_MIN = define(
    "ArgMin",
    _ARG,
    shape=_without_axis,
    kernel=kernels.argmin_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
)


def argmax(
    input: TensorLike,
    axis: AxisLike | None = None,
    name: str | None = None,
    dimension: AxisLike | None = None,
    output_type: DTypeLike = int64,
) -> Tensor:
    """The index of the largest value along an axis (0 if none is given); of equal ones the
    first.
    """
    axis = one_of("axis", axis, "dimension", dimension)
    return apply(ARG_MAX, input, 0 if axis is None else axis, output_type=output_type, name=name)


def argmin(
    input: TensorLike,
    axis: AxisLike | None = None,
    name: str | None = None,
    dimension: AxisLike | None = None,
    output_type: DTypeLike = int64,
) -> Tensor:
    """The position of the smallest element along ``axis`` (default 0), the first of equal ones.

    ``dimension`` is the older name of ``axis``; ``output_type`` is int64 or int32.

        tf.argmin([[3, 1], [2, 4]], axis=1)  # [1, 0]
    """
    axis = one_of("axis", axis, "dimension", dimension)
    return apply(ARG_MIN, input, 0 if axis is None else axis, output_type=output_type, name=name)


def argmax_v2(
    input: TensorLike,
    axis: AxisLike | None = None,
    output_type: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """The position of the largest element along ``axis`` (default 0), the first of equal ones.

    ``output_type`` is int64 or int32. TF 1 has ``name`` and ``dimension`` before ``output_type``.
    """
    return apply(ARG_MAX, input, 0 if axis is None else axis, output_type=output_type, name=name)


def argmin_v2(
    input: TensorLike,
    axis: AxisLike | None = None,
    output_type: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """The position of the smallest element along ``axis`` (default 0), the first of equal ones.

    ``output_type`` is int64 or int32. TF 1 has ``name`` and ``dimension`` before ``output_type``.
    """
    return apply(ARG_MIN, input, 0 if axis is None else axis, output_type=output_type, name=name)


def arg_max(
    input: TensorLike, dimension: AxisLike, output_type: DTypeLike = int64, name: str | None = None
) -> Tensor:
    """The position of the largest element along ``dimension``; new code writes ``tf.argmax``.

    There is no default ``dimension`` here. ``output_type`` is int64 or int32.
    """
    return apply(ARG_MAX, input, dimension, output_type=output_type, name=name)


def arg_min(
    input: TensorLike, dimension: AxisLike, output_type: DTypeLike = int64, name: str | None = None
) -> Tensor:
    """The position of the smallest element along ``dimension``; new code writes ``tf.argmin``.

    There is no default ``dimension`` here. ``output_type`` is int64 or int32.
    """
    return apply(ARG_MIN, input, dimension, output_type=output_type, name=name)
