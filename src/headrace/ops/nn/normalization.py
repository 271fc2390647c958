"""Normalisation: batch normalisation in its forms, l2_normalize. (moments.py, local_response.py)

FusedBatchNorm's kernels work on a matrix (pixels, channels). As on TensorFlow's CPU the reserve
outputs hold the batch's mean and its biased variance, while ``batch_variance`` is the unbiased one
that moving averages are fed with.

    >>> y, mean, variance = fused_batch_norm(x, scale, offset)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.opdef import NO_GRADIENT_YET, OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.accel import ask
from headrace.ops.nn.conv_ops import from_last, to_last
from headrace.ops.nn.nn_common import (
    add,
    cast,
    deprecated,
    mul,
    reduce_mean,
    reduce_sum,
    sub,
    transpose,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_norm_with_global_normalization_v2",
    "batch_normalization",
    "fused_batch_norm",
    "l2_normalize",
    "l2_normalize_v2",
]

Grads = list[Any]

# fused batch normalisation ----------------------------------------------------------------------


def _column_sums(xp: ArrayNamespace, x: Array) -> Array:
    """Sums over the rows of a matrix, as a product.

    BLAS adds in several accumulators and in parallel.
    """
    return xp.ones(x.shape[0], x.dtype) @ x


def _matrix(xp: Any, x: Array, first: bool) -> Array:
    """(pixels, channels) in float32 or wider."""
    x = to_last(x, first)
    flat = x.reshape(-1, x.shape[-1])
    return flat.astype(xp.float32) if flat.dtype.itemsize == 2 else flat


def _batch_norm(
    xp: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any, attrs: Any
) -> tuple[Any, ...]:
    """y, batch mean, unbiased batch variance, mean, variance."""
    epsilon, data_format, is_training = attrs
    first = data_format == "NCHW"
    if x.ndim != 4:
        raise errors.InvalidArgumentError(
            None, None, f"input must be 4-dimensional: {shapes.show(x.shape)}"
        )
    if x.size >= _LIBRARY_FROM and not first and xp.name == "numpy" and scale.ndim == 1:
        result = _library_batch_norm(x, scale, offset, mean, variance, epsilon, is_training)
        if result is not None:
            return result
    named = ("scale", scale), ("offset", offset), ("mean", mean), ("variance", variance)
    _check_vectors(*((n if n in ("scale", "offset") else f"estimated_{n}", a) for n, a in named))
    flat = _matrix(xp, x, first)
    count = flat.shape[0]
    unbiased = variance
    if is_training:
        mean = _column_sums(xp, flat) / flat.dtype.type(max(count, 1))
        centred = flat - mean
        variance = xp.einsum("ij,ij->j", centred, centred) / flat.dtype.type(max(count, 1))
        unbiased = variance * variance.dtype.type(count / max(count - 1, 1))
    else:
        _check_statistics(flat, mean, variance)
        centred = flat - mean
    gain = scale / xp.sqrt(variance + variance.dtype.type(epsilon))
    if xp.name == "numpy":
        centred *= gain
        centred += offset
        y = centred
    else:
        y = centred * gain + offset
    shape = to_last(x, first).shape
    y = from_last(y.reshape(shape), first).astype(x.dtype, copy=False)
    if is_training and not count:  # of nothing, as TensorFlow has it
        mean, unbiased, variance = (np.full_like(mean, np.nan) for _ in range(3))
    if is_training:
        return y, mean, unbiased, mean.copy(), variance
    return (
        y,
        mean.copy(),
        variance.copy(),
        mean.copy(),
        variance.copy(),
    )  # no output is another's or an input's memory


def _check_vectors(*named: tuple[str, Array]) -> None:
    for label, value in named:
        if value.ndim != 1:
            given = shapes.show(value.shape)
            raise errors.InvalidArgumentError(None, None, f"{label} must be 1-dimensional{given}")


#: Elements from which a normalisation is the kernel library's.
_LIBRARY_FROM = 1 << 15


def _library_batch_norm(
    x: Any,
    scale: TensorLike,
    offset: object,
    mean: Any,
    variance: Any,
    epsilon: float,
    is_training: bool,
) -> tuple[Any, ...] | None:
    if not is_training:
        y = ask("batch_norm_inference", x, scale, offset, mean, variance, epsilon)
        return None if y is None else (y, *(s.copy() for s in (mean, variance, mean, variance)))
    result = ask("batch_norm", x, scale, offset, epsilon)
    if result is None:
        return None
    y, mean, variance = result
    count = x.size // x.shape[-1]
    return y, mean, variance * np.float32(count / max(count - 1, 1)), mean.copy(), variance


def _check_statistics(flat: Array, mean: Array, variance: Array) -> None:
    for label, value in (("mean", mean), ("variance", variance)):
        if value.shape != flat.shape[1:]:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{label} must have as many elements as x has channels: {value.shape} vs "
                f"{flat.shape[1:]}",
            )


def _batch_norm_kernel(
    xp: ArrayNamespace,
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[Any, ...]:
    return _batch_norm(xp, x, scale, offset, mean, variance, (epsilon, data_format, is_training))


def _batch_norm_v3_kernel(
    xp: ArrayNamespace,
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[Any, ...]:
    found = _batch_norm(xp, x, scale, offset, mean, variance, (epsilon, data_format, is_training))
    return (*found, scale.dtype.type(0))


def _batch_norm_grad_kernel(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    *rest: Array,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[Any, ...]:
    """dx = scale / s * (g - mean(g) - (x - m) * mean(g * (x - m)) / s**2), s = sqrt(variance +
    epsilon).
    """
    first = data_format == "NCHW"
    _check_vectors(("scale", scale), ("saved mean", mean), ("saved variance", variance))
    if x.size >= _LIBRARY_FROM and not first and xp.name == "numpy":
        result = ask("batch_norm_grad", g, x, scale, mean, variance, epsilon, is_training)
        if result is not None:
            return (*result, scale.dtype.type(0), scale.dtype.type(0))
    grad, flat = _matrix(xp, g, first), _matrix(xp, x, first)
    inverse = 1 / xp.sqrt(variance + variance.dtype.type(epsilon))
    centred = flat - mean
    offset_grad = _column_sums(xp, grad)
    product = xp.einsum("ij,ij->j", grad, centred)
    if is_training:
        n = flat.dtype.type(max(flat.shape[0], 1))
        centred = centred * (product * inverse * inverse / -n)
        dx = (centred + grad - offset_grad / n) * (scale * inverse)
    else:
        dx = grad * (scale * inverse)
    shape = to_last(x, first).shape
    dx = from_last(dx.reshape(shape), first).astype(x.dtype, copy=False)
    zero = scale.dtype.type(0)
    return dx, product * inverse, offset_grad, zero, zero


def _channels(c: infer.Inference, x: shapes.Shape) -> int | None:
    if x is None:
        return None
    return x[1] if c.attr("data_format") == "NCHW" else x[-1]


def _batch_norm_shape(c: infer.Inference) -> list[shapes.Shape]:
    x = c.require_rank(0, 4)
    assert x is not None
    channels = _channels(c, x)
    for i in range(1, 3 if c.attr("is_training") else 5):
        other = c.require_rank(i, 1)
        assert other is not None
        if None not in (channels, other[0]) and channels != other[0]:
            raise ValueError(f"Dimensions must be equal, but are {channels} and {other[0]}")
        channels = other[0] if channels is None else channels
    at = 1 if c.attr("data_format") == "NCHW" else 3
    found: list[shapes.Shape] = [(*x[:at], channels, *x[at + 1 :]), *[(channels,)] * 4]
    return [*found, ()] if c.op.type == "FusedBatchNormV3" else found


def _batch_norm_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    x = shapes.merge(c.require_rank(0, 4), c.require_rank(1, 4))
    channels = _channels(c, x)
    for i in (2, 3, 4):
        other = c.require_rank(i, 1)
        if None not in (channels, other[0]) and channels != other[0]:
            raise ValueError(f"Dimensions must be equal, but are {channels} and {other[0]}")
        channels = other[0] if channels is None else channels
    return [x, (channels,), (channels,), (), ()]


def _batch_norm_grad(op: Operation, g: Tensor, *others: object) -> Grads:
    """Only the gradient of y is used, as in TensorFlow: the statistics are for moving averages."""
    x, scale = op._inputs[:2]
    a = op._attrs
    reserves = list(op._outputs[3:5] if a["is_training"] else op._inputs[3:5]) + list(
        op._outputs[5:]
    )
    attrs = {k: a[k] for k in ("epsilon", "data_format", "is_training")}
    if g is None:
        return [None] * 5
    dx, dscale, doffset, _, _ = apply_many(_GRAD_OPS[op.type], g, x, scale, *reserves, **attrs)
    return [dx, dscale, doffset, None, None]


def _batch_norm_grad_grad(op: Operation, *grads: Tensor | None) -> Grads:
    """Through the formula of the gradient, built from plain ops on copies of the inputs, and
    differentiated.
    """
    from headrace.autodiff.gradients import gradients

    graph = get_default_graph()
    if graph._is_eager:

        def build(inputs: list[Tensor]) -> list[Tensor]:
            return _symbolic_grad(inputs, op._inputs[3], op._inputs[4], op._attrs)

        return [*graph._derivative(build, op._inputs[:3], grads), *[None] * (len(op._inputs) - 3)]
    copies = [apply_op("Identity", t) for t in op._inputs[:3]]
    outputs = _symbolic_grad(copies, op._inputs[3], op._inputs[4], op._attrs)
    pairs = [(y, g) for y, g in zip(outputs, grads) if g is not None]
    found = gradients([y for y, _ in pairs], copies, grad_ys=[g for _, g in pairs])
    return [*found, *[None] * (len(op._inputs) - 3)]


def _symbolic_grad(
    inputs: list[Tensor], mean: Tensor, variance: Tensor, attrs: Mapping[str, Any]
) -> list[Tensor]:
    g, x, scale = inputs
    epsilon = attrs["epsilon"]
    first = attrs["data_format"] == "NCHW"
    if first:
        g, x = transpose(g, [0, 2, 3, 1]), transpose(x, [0, 2, 3, 1])
    kind = x._dtype
    g, x = cast(g, scale._dtype), cast(x, scale._dtype)
    axes = [0, 1, 2]
    if attrs["is_training"]:
        mean = reduce_mean(x, axes)
        centred = sub(x, mean)
        variance = reduce_mean(apply_op("Square", centred), axes)
    else:
        centred = sub(x, mean)
    inverse = apply_op("Rsqrt", add(variance, epsilon))
    product = mul(g, centred)
    dx = g
    if attrs["is_training"]:
        slope = mul(mul(inverse, inverse), reduce_mean(product, axes))
        dx = sub(sub(g, reduce_mean(g, axes)), mul(slope, centred))
    dx = cast(mul(mul(scale, inverse), dx), kind)
    if first:
        dx = transpose(dx, [0, 3, 1, 2])
    return [dx, mul(inverse, reduce_sum(product, axes)), reduce_sum(g, axes)]


_NORM = "epsilon: float=9.999999747378752e-05, data_format: str='NHWC', is_training: bool=True"
_V1 = "T: type(float), " + _NORM
_V2 = "T: type(float), U: type(float), " + _NORM
_STATS = (
    "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, "
)
_BACK = "x_backprop: T, scale_backprop: U, offset_backprop: U, "
_GRAD_OPS: dict[str, OpDef] = {}

FUSED_V1 = define(
    "FusedBatchNorm",
    _STATS.replace("U", "T") + "reserve_space_1: T, reserve_space_2: T; " + _V1,
    shape=_batch_norm_shape,
    kernel=_batch_norm_kernel,
    grad=_batch_norm_grad,
    role="batch norm",
)
FUSED_V2 = define(
    "FusedBatchNormV2",
    _STATS + "reserve_space_1: U, reserve_space_2: U; " + _V2,
    shape=_batch_norm_shape,
    kernel=_batch_norm_kernel,
    grad=_batch_norm_grad,
    role="batch norm",
)
FUSED_V3 = define(
    "FusedBatchNormV3",
    _STATS + "reserve_space_1: U, reserve_space_2: U, reserve_space_3: U; " + _V2,
    shape=_batch_norm_shape,
    kernel=_batch_norm_v3_kernel,
    grad=_batch_norm_grad,
    role="batch norm",
)
_GRAD_OPS["FusedBatchNorm"] = define(
    "FusedBatchNormGrad",
    "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> "
    + _BACK.replace("U", "T")
    + "reserve_space_3: T, reserve_space_4: T; "
    + _V1,
    shape=_batch_norm_grad_shape,
    kernel=_batch_norm_grad_kernel,
    grad=_batch_norm_grad_grad,
)
_GRAD_OPS["FusedBatchNormV2"] = define(
    "FusedBatchNormGradV2",
    "y_backprop: T, x: T, scale: float32, reserve_space_1: U, reserve_space_2: U -> "
    + _BACK
    + "reserve_space_3: U, reserve_space_4: U; "
    + _V2,
    shape=_batch_norm_grad_shape,
    kernel=_batch_norm_grad_kernel,
    grad=_batch_norm_grad_grad,
)
_GRAD_OPS["FusedBatchNormV3"] = define(
    "FusedBatchNormGradV3",
    "y_backprop: T, x: T, scale: float32, reserve_space_1: U, reserve_space_2: U, "
    "reserve_space_3: U -> " + _BACK + "reserve_space_4: U, reserve_space_5: U; " + _V2,
    shape=_batch_norm_grad_shape,
    kernel=_batch_norm_grad_kernel,
    grad=_batch_norm_grad_grad,
)

# the oldest form --------------------------------------------------------------------------------


def _global_norm_kernel(
    xp: ArrayNamespace,
    t: Array,
    m: Array,
    v: Array,
    beta: Array,
    gamma: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> Array:
    gain = 1 / xp.sqrt(v + v.dtype.type(variance_epsilon))
    if scale_after_normalization:
        gain = gain * gamma
    return (t - m) * gain + beta


def _global_norm_grad_kernel(
    xp: ArrayNamespace,
    t: Array,
    m: Array,
    v: Array,
    gamma: Array,
    g: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> tuple[Any, ...]:
    shifted = v + v.dtype.type(variance_epsilon)
    inverse = 1 / xp.sqrt(shifted)
    axes = tuple(range(t.ndim - 1))
    weight = gamma if scale_after_normalization else xp.ones_like(gamma)
    db = g.sum(axes, dtype=g.dtype)
    product = (g * (t - m)).sum(axes, dtype=g.dtype)
    dg = product * inverse if scale_after_normalization else xp.zeros_like(gamma)
    dv = product * weight * inverse / shifted * v.dtype.type(-0.5)
    return g * (weight * inverse), -db * weight * inverse, dv, db, dg


def _global_norm_grad(op: Operation, g: Tensor) -> Grads:
    t, m, v, _, gamma = op._inputs
    attrs = {k: op._attrs[k] for k in ("variance_epsilon", "scale_after_normalization")}
    return list(apply_many(GLOBAL_NORM_GRAD, t, m, v, gamma, g, **attrs))


_GLOBAL = "T: type(inexact), variance_epsilon: float, scale_after_normalization: bool"

GLOBAL_NORM = define(
    "BatchNormWithGlobalNormalization",
    "t: T, m: T, v: T, beta: T, gamma: T -> result: T; " + _GLOBAL,
    shape=lambda c: [c.require_rank(0, 4)],
    kernel=_global_norm_kernel,
    grad=_global_norm_grad,
    removed=(9, "Use tf.nn.batch_normalization()"),
)
GLOBAL_NORM_GRAD = define(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T; " + _GLOBAL,
    shape=lambda c: [c.shape(0), c.shape(1), c.shape(2), c.shape(1), c.shape(3)],
    kernel=_global_norm_grad_kernel,
    grad=NO_GRADIENT_YET,
    removed=(9, "Use tf.nn.batch_normalization()"),
)


def fused_batch_norm(
    x: object,
    scale: object,
    offset: object,
    mean: object = None,
    variance: object = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation over images in one step: (y, batch mean, batch variance).

    With ``is_training`` the statistics are those of the batch, otherwise ``mean`` and ``variance``
    are used. ``scale``, ``offset`` and the statistics have an element per channel. The variance
    that is returned has Bessel's correction.
    """
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    if is_training and (mean is not None or variance is not None):
        raise ValueError("Both 'mean' and 'variance' must be None if is_training is True.")
    mean = convert_to_tensor(np.zeros(0, np.float32)) if mean is None else mean
    variance = convert_to_tensor(np.zeros(0, np.float32)) if variance is None else variance
    found = apply_many(
        FUSED_V3,
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return found[0], found[1], found[2]


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: TensorLike | None,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``, with given statistics.

    ``mean``, ``variance``, ``offset`` and ``scale`` (both may be None) broadcast against ``x``;
    ``tf.nn.moments`` computes the statistics. ``tf.layers.batch_normalization`` has moving
    averages.
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inv = apply_op("Rsqrt", variance + variance_epsilon)  # (arrays add up without an op)
        if scale is not None:
            inv = inv * scale
        scaled: Tensor = x * cast(inv, x.dtype)
        shift = offset - mean * inv if offset is not None else -mean * inv
        return scaled + cast(shift, x.dtype)


def batch_norm_with_global_normalization(
    t: object = None,
    m: object = None,
    v: object = None,
    beta: TensorLike | None = None,
    gamma: TensorLike | None = None,
    variance_epsilon: TensorLike | None = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: object = None,
    mean: object = None,
    variance: object = None,
) -> Tensor:
    """Batch normalization as of TensorFlow's beginning; see ``batch_normalization``.

    ``gamma`` is used if ``scale_after_normalization``; ``input``, ``mean`` and ``variance`` are the
    newer names of ``t``, ``m`` and ``v``.
    """
    t = deprecated("input", input, "t", t)
    m = deprecated("mean", mean, "m", m)
    v = deprecated("variance", variance, "v", v)
    return batch_normalization(
        t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


def batch_norm_with_global_normalization_v2(
    input: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    beta: TensorLike,
    gamma: TensorLike,
    variance_epsilon: TensorLike,
    scale_after_normalization: TensorLike,
    name: str | None = None,
) -> Tensor:
    """``batch_normalization``, with ``gamma`` if ``scale_after_normalization``.

    ``input`` is [..., channels], the other tensors [channels]; ``variance_epsilon`` is added to the
    variance. TF 1 names them ``t``, ``m`` and ``v``.
    """
    return batch_normalization(
        input,
        mean,
        variance,
        beta,
        gamma if scale_after_normalization else None,
        variance_epsilon,
        name,
    )


def l2_normalize(
    x: TensorLike,
    axis: AxisLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: AxisLike | None = None,
) -> Tensor:
    """``x / sqrt(max(sum(x ** 2), epsilon))`` along ``axis``: vectors of length 1.

    ``axis`` may be a list; ``dim`` is its old name. Vectors of zeros stay zeros.
    """
    return l2_normalize_v2(x, deprecated("axis", axis, "dim", dim), epsilon, name)


def l2_normalize_v2(
    x: TensorLike, axis: AxisLike | None = None, epsilon: float = 1e-12, name: str | None = None
) -> Tensor:
    """``x`` divided by its length along ``axis``; ``epsilon`` is the least squared length.

    ``axis`` is a number, a list or None (the whole tensor). TF 1 has ``dim`` as an older name of
    ``axis``.

        tf.nn.l2_normalize([3.0, 4.0])  # [0.6, 0.8]
    """
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        total = reduce_sum(apply_op("Square", x), axis, keepdims=True)
        return mul(x, apply_op("Rsqrt", apply_op("Maximum", total, epsilon)), name=scope)
