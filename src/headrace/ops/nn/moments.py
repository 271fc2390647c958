"""Mean and variance: ``tf.nn.moments``, weighted moments, sufficient statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, infer
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.nn.nn_common import (
    add,
    cast,
    deprecated,
    mul,
    reduce_mean,
    reduce_sum,
    scalar_const,
    shape_of,
    squeeze,
    sub,
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike

__all__ = [
    "moments",
    "moments_v2",
    "normalize_moments",
    "sufficient_statistics",
    "sufficient_statistics_v2",
    "weighted_moments",
    "weighted_moments_v2",
]


# moments ----------------------------------------------------------------------------------------


def moments(
    x: TensorLike,
    axes: AxisLike,
    shift: object = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: object = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes``: ``moments(x, [0])`` per column, ``[0, 1, 2]`` per channel.

    The variance is divided by n. ``shift`` is not used, as in TensorFlow.

    ``keep_dims`` (``keepdims``) keeps the reduced axes with length 1.
    """
    keep = bool(deprecated("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments", [x]):
        x = convert_to_tensor(x)
        half = x._dtype._base is dtypes.float16
        y = cast(x, dtypes.float32) if half else x
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        apart = apply_op("SquaredDifference", y, apply_op("StopGradient", mean))
        variance = reduce_mean(apart, axes, keepdims=True, name="variance")
        if not keep:
            mean, variance = squeeze(mean, _dims(axes)), squeeze(variance, _dims(axes))
        if half:
            mean, variance = cast(mean, dtypes.float16), cast(variance, dtypes.float16)
        return mean, variance


def _dims(axes: object) -> list[int]:
    if isinstance(axes, Tensor):
        known = infer.static_value(axes)
        if known is None:
            raise ValueError(
                "The axes of moments must be known while the graph is built, or keep_dims be True."
            )
        axes = known
    return [int(a) for a in np.reshape(np.asarray(axes if axes is not None else [], np.int64), -1)]


def moments_v2(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes``; ``shift`` is not used, as in TensorFlow.

    ``keepdims`` keeps reduced dimensions with size 1. The variance is divided by n. Half precision
    is computed in float32. TF 1 has ``name`` before ``keep_dims``.
    """
    return moments(x, axes, shift, name, keepdims=keepdims)


def weighted_moments(
    x: TensorLike,
    axes: TensorLike,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes`` with a weight per element.

    ``frequency_weights`` is broadcast against ``x``.

    ``keep_dims`` (``keepdims``) keeps the reduced axes with length 1.
    """
    keep = bool(deprecated("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "weighted_moments", [x, frequency_weights]):
        x = convert_to_tensor(x, name="x")
        kind = x._dtype._base
        x = cast(x, dtypes.float32) if kind is dtypes.float16 else x
        weights = cast(convert_to_tensor(frequency_weights, name="frequency_weights"), x._dtype)
        total = reduce_sum(mul(weights, x), axes, keepdims=True, name="weighted_input_sum")
        whole = reduce_sum(add(weights, zeros_like(x)), axes, keepdims=True, name="sum_of_weights")
        divisor = apply_op("Reciprocal", whole, name="inv_weight_sum")
        mean = mul(total, divisor)
        apart = mul(weights, apply_op("SquaredDifference", x, mean))
        variance = mul(reduce_sum(apart, axes, keepdims=True, name="weighted_distsq"), divisor)
        if not keep:
            mean, variance = squeeze(mean, _dims(axes)), squeeze(variance, _dims(axes))
        return cast(mean, kind), cast(variance, kind)


def weighted_moments_v2(
    x: TensorLike,
    axes: AxisLike,
    frequency_weights: TensorLike,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes`` with a weight per element; see ``tf.nn.weighted_moments``.

    ``frequency_weights`` broadcasts with ``x``; the variance is divided by the sum of the weights.
    ``keepdims`` keeps reduced dimensions with size 1.
    """
    return weighted_moments(x, axes, frequency_weights, name, keepdims=keepdims)


def sufficient_statistics(
    x: TensorLike,
    axes: Any,
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """(count, sum of ``x - shift``, sum of its squares, shift) over ``axes``; ``shift`` is None if
    not given.

    ``tf.nn.normalize_moments`` makes mean and variance of them. ``keep_dims`` (``keepdims``) keeps
    the reduced axes with length 1.
    """
    axes = sorted(set(axes))
    keep = deprecated("keepdims", keepdims, "keep_dims", keep_dims) or False
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        if x._shape is not None and any(not -len(x._shape) <= d < len(x._shape) for d in axes):
            raise IndexError(f"axes {axes} are not axes of a tensor of shape {x.shape}")
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift")
            deviation, squares = sub(x, shift), apply_op("SquaredDifference", x, shift)
        else:
            deviation, squares = x, apply_op("Square", x)
        mean_ss = reduce_sum(deviation, axes, keepdims=keep, name="mean_ss")
        var_ss = reduce_sum(squares, axes, keepdims=keep, name="var_ss")
        return _count(x, axes), mean_ss, var_ss, shift


def _count(x: Tensor, axes: list[int]) -> Tensor:
    if x._shape is not None and all(x._shape[d] is not None for d in axes):
        return scalar_const(math.prod(x._shape[d] or 0 for d in axes), x)
    dims = apply_op("GatherV2", cast(shape_of(x), x._dtype), np.array(axes, np.int32), 0)
    return apply_op("Prod", dims, [0], keep_dims=False, name="count")


def sufficient_statistics_v2(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """What ``normalize_moments`` needs: count, sum, sum of squares, shift.

    Sums run over ``axes`` of ``x - shift``, where ``shift`` is near the mean (better conditioned)
    or None. The fourth result is ``shift`` as a tensor, or None.
    """
    return sufficient_statistics(x, axes, shift, name=name, keepdims=keepdims)


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the results of ``tf.nn.sufficient_statistics``.

    ``counts`` is the number of elements, ``mean_ss`` and ``variance_ss`` are the sums of values and
    of squares, both less ``shift`` (None: 0).
    """
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = apply_op("Reciprocal", counts, name="divisor")
        shifted_mean = mul(mean_ss, divisor, name="mean" if shift is None else "shifted_mean")
        mean = shifted_mean if shift is None else add(shifted_mean, shift, name="mean")
        variance = sub(mul(variance_ss, divisor), apply_op("Square", shifted_mean), name="variance")
        return mean, variance
