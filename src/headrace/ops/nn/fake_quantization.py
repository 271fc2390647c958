"""Simulated quantization: FakeQuantWithMinMax… and QuantizeAndDequantize, with their gradients.

Values are clamped to a range and rounded to the numbers that ``num_bits`` can tell apart; the range
is moved a little so that zero is one of them. The gradient passes where nothing was clamped.

    >>> tf.quantization.fake_quant_with_min_max_args(x, min=-1, max=1, num_bits=4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize_and_dequantize",
]

_F4 = np.float32


class _Range(NamedTuple):
    """The range after zero was moved onto a step, and the step; scalars or one for a channel."""

    low: Any
    high: Any
    step: Any


def _nudged(low: Any, high: Any, num_bits: int, narrow_range: bool) -> _Range:
    first, last = _F4(int(narrow_range)), _F4((1 << num_bits) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (_F4(high) - _F4(low)) / (last - first)
        at = first - _F4(low) / step
        zero = np.where(np.isnan(at), first, np.clip(at, first, last))
    zero = np.floor(zero + _F4(0.5)).astype(_F4)  # halves away from zero: none is negative
    return _Range((first - zero) * step, (last - zero) * step, step)


def _quantized(x: Array, span: _Range) -> Any:
    inverse = _F4(1) / span.step
    shifted = np.maximum(np.minimum(x, span.high), span.low) - span.low
    return np.floor(shifted * inverse + _F4(0.5)) * span.step + span.low


def _args_kernel(
    xp: ArrayNamespace, x: Array, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> Any:
    _check_args(min, max)
    return _quantized(x, _nudged(min, max, num_bits, narrow_range))


def _check_args(low: float, high: float) -> None:
    if not low < high:
        raise invalid(f"min has to be smaller than max, was: {low:g} >= {high:g}")


def _args_grad_kernel(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    *,
    min: float,
    max: float,
    num_bits: int,
    narrow_range: bool,
) -> Any:
    _check_args(min, max)
    span = _nudged(min, max, num_bits, narrow_range)
    return g * ((x >= span.low) & (x <= span.high)).astype(_F4)


def _vars_kernel(
    xp: ArrayNamespace, x: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> Array:
    empty = (low == 0) & (high == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = _quantized(x, _nudged(low, high, num_bits, narrow_range))
    return np.where(empty, _F4(0), out) if np.any(empty) else out


def _vars_grad_kernel(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    low: Array,
    high: Array,
    *,
    num_bits: int,
    narrow_range: bool,
) -> tuple[Any, ...]:
    if g.shape != x.shape:
        raise invalid("gradient and input must be the same size")
    if low.shape != high.shape or low.ndim > 1 or (low.ndim and low.shape != x.shape[-1:]):
        raise invalid(
            f"min and max have incorrect size: {shapes.show(low.shape)}, {shapes.show(high.shape)}"
        )
    axes = tuple(range(x.ndim - np.ndim(low)))
    span = _nudged(low, high, num_bits, narrow_range)
    below, above = (x < span.low), (x > span.high)
    empty = (low == 0) & (high == 0)  # everything is passed on
    below, above = below & ~empty, above & ~empty
    inside = g * ~(below | above)
    sums = [np.sum(g * part, axis=axes, dtype=_F4) for part in (below, above)]
    return inside.astype(_F4, copy=False), sums[0], sums[1]


def _qdq_kernel(
    xp: ArrayNamespace,
    x: Array,
    low: Array,
    high: Array,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
) -> Any:
    if not range_given:
        low, high = (x.min(), x.max()) if x.size else (x.dtype.type(0), x.dtype.type(0))
    elif low > high:
        raise invalid(f"Invalid range: input_min {low} > input_max {high}")
    kind = x.dtype.type
    first = kind(-(1 << (num_bits - 1)) + narrow_range if signed_input else 0)
    last = kind((1 << (num_bits - 1 if signed_input else num_bits)) - 1)
    most = np.finfo(x.dtype).max
    from_low = first / low if first * low > 0 else most
    from_high = last / high if last * high > 0 else most
    if from_low < from_high:
        scale, inverse = from_low, low / first
        high = last * inverse
    else:
        scale, inverse = from_high, high / last
        low = first * inverse
    if range_given:
        x = np.maximum(np.minimum(x, high), low)
    scaled = x * scale
    rounded = np.floor(scaled + kind(0.5)) if round_mode == "HALF_UP" else np.rint(scaled)
    return (rounded * inverse).astype(x.dtype, copy=False)


def _attrs_of(op: Operation, *names: str) -> dict[str, Any]:
    return {name: op._attrs[name] for name in names}


def _args_grad(op: Operation, g: Tensor) -> list[Any]:
    attrs = _attrs_of(op, "min", "max", "num_bits", "narrow_range")
    return [apply_op("FakeQuantWithMinMaxArgsGradient", g, op._inputs[0], **attrs)]


def _vars_grad(op: Operation, g: Tensor) -> list[Any]:
    attrs = _attrs_of(op, "num_bits", "narrow_range")
    return list(apply_op(f"{op.type}Gradient", g, *op._inputs, **attrs))


def _scalars(c: Inference) -> list[Any]:
    for k in (1, 2):
        c.require_rank(k, 0)
    return [c.shape(0)]


def _channels(c: Inference) -> list[Any]:
    sizes = [shape[-1] for shape in (c.require_rank_at_least(0, 1),) if shape is not None]
    sizes += [c.require_rank(k, 1)[0] for k in (1, 2)]
    known = [size for size in sizes if size is not None]
    if any(size != known[0] for size in known):
        raise ValueError(
            f"Dimensions must be equal, but are {known[0]} and "
            f"{next(size for size in known if size != known[0])}"
        )
    return [c.shape(0)]


def _grads_shape(c: Inference) -> list[Any]:
    for k in (2, 3):
        c.require_rank(k, 0)
    return [shapes.merge(c.shape(0), c.shape(1)), (), ()]


def _channel_grads_shape(c: Inference) -> list[Any]:
    size = shapes.merge(c.require_rank(2, 1), c.require_rank(3, 1))
    return [shapes.merge(c.shape(0), c.shape(1)), size, size]


_BITS = "num_bits: int=8, narrow_range: bool=False"


def _check_bits(attrs: dict[str, Any]) -> None:
    if not 2 <= attrs["num_bits"] <= 16:
        raise invalid("num_bits must be between 2 and 16, inclusive")


FAKE_ARGS = define(
    "FakeQuantWithMinMaxArgs",
    "inputs: float32 -> outputs: float32; min: float=-6.0, max: float=6.0, " + _BITS,
    shape=lambda c: [c.shape(0)],
    kernel=_args_kernel,
    check_attrs=_check_bits,
    grad=_args_grad,
)
FAKE_ARGS_GRADIENT = define(
    "FakeQuantWithMinMaxArgsGradient",
    "gradients: float32, inputs: float32 -> backprops: float32; "
    "min: float=-6.0, max: float=6.0, " + _BITS,
    shape=lambda c: [shapes.merge(c.shape(0), c.shape(1))],
    kernel=_args_grad_kernel,
    check_attrs=_check_bits,
    grad=NO_GRADIENT_YET,
)
_GRADS = (
    "gradients: float32, inputs: float32, min: float32, max: float32 -> "
    "backprops_wrt_input: float32, backprop_wrt_min: float32, backprop_wrt_max: float32; "
)
FAKE_VARS = define(
    "FakeQuantWithMinMaxVars",
    "inputs: float32, min: float32, max: float32 -> outputs: float32; " + _BITS,
    shape=_scalars,
    kernel=_vars_kernel,
    check_attrs=_check_bits,
    grad=_vars_grad,
)
FAKE_VARS_GRADIENT = define(
    "FakeQuantWithMinMaxVarsGradient",
    _GRADS + _BITS,
    shape=_grads_shape,
    kernel=_vars_grad_kernel,
    check_attrs=_check_bits,
    grad=NO_GRADIENT_YET,
)
FAKE_CHANNELS = define(
    "FakeQuantWithMinMaxVarsPerChannel",
    "inputs: float32, min: float32, max: float32 -> outputs: float32; " + _BITS,
    shape=_channels,
    kernel=_vars_kernel,
    check_attrs=_check_bits,
    grad=_vars_grad,
)
FAKE_CHANNELS_GRADIENT = define(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    _GRADS + _BITS,
    shape=_channel_grads_shape,
    kernel=_vars_grad_kernel,
    check_attrs=_check_bits,
    grad=NO_GRADIENT_YET,
)
QUANTIZE_AND_DEQUANTIZE = define(
    "QuantizeAndDequantizeV2",
    "input: T, input_min: T, input_max: T -> output: T; signed_input: bool=True, "
    "num_bits: int=8, range_given: bool=False, T: type(float), "
    "round_mode: str='HALF_TO_EVEN', narrow_range: bool=False",
    shape=_scalars,
    kernel=_qdq_kernel,
    grad=lambda op, g: [g, None, None],
)


def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """``inputs`` rounded to the ``2 ** num_bits`` numbers between min and max.

    With ``narrow_range`` the lowest number is left out.
    """
    attrs = {"min": min, "max": max, "num_bits": num_bits, "narrow_range": narrow_range}
    return apply(FAKE_ARGS, inputs, **attrs, name=name)


def fake_quant_with_min_max_args_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """``gradients`` where ``inputs`` were not clamped.

    The gradient of ``fake_quant_with_min_max_args`` with the same ``min``, ``max``, ``num_bits``
    and ``narrow_range``; ``gradients`` and ``inputs`` have one shape.
    """
    attrs = {"min": min, "max": max, "num_bits": num_bits, "narrow_range": narrow_range}
    return apply(FAKE_ARGS_GRADIENT, gradients, inputs, **attrs, name=name)


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like ``fake_quant_with_min_max_args`` with a range that is computed or learned.

    ``min`` and ``max`` are scalar tensors, which get gradients from inputs outside of the range.
    ``narrow_range`` leaves out the lowest of the ``2 ** num_bits`` levels.

        tf.fake_quant_with_min_max_vars([0.4, 9.0], 0.0, 3.0, num_bits=2)  # [0.0, 3.0]
    """
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return apply(FAKE_VARS, inputs, min, max, **attrs, name=name)


def fake_quant_with_min_max_vars_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Gradients of ``fake_quant_with_min_max_vars`` for its inputs, min and max.

    The gradient flows to the inputs inside of the range, and its sum below and above it to ``min``
    and ``max``, which are scalars. ``num_bits`` and ``narrow_range`` are those of the operation.
    """
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return apply_many(FAKE_VARS_GRADIENT, gradients, inputs, min, max, **attrs, name=name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like ``fake_quant_with_min_max_vars`` with a range for each place of the last axis.

    ``inputs`` is [..., channels], ``min`` and ``max`` are [channels].
    """
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return apply(FAKE_CHANNELS, inputs, min, max, **attrs, name=name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Gradients of ``fake_quant_with_min_max_vars_per_channel`` for its inputs, min and max.

    As ``fake_quant_with_min_max_vars_gradient``, with sums for each channel: the results have the
    shapes [..., channels], [channels] and [channels].
    """
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return apply_many(FAKE_CHANNELS_GRADIENT, gradients, inputs, min, max, **attrs, name=name)


def quantize_and_dequantize(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
) -> Tensor:
    """``input`` as numbers of so many bits would hold it; the gradient passes unchanged.

    Without ``range_given`` the range is that of the input. ``round_mode``: ``"HALF_TO_EVEN"`` or
    ``"HALF_UP"``.
    """
    return apply(
        QUANTIZE_AND_DEQUANTIZE,
        input,
        input_min,
        input_max,
        signed_input=signed_input,
        num_bits=num_bits,
        range_given=range_given,
        round_mode=round_mode,
        narrow_range=narrow_range,
        name=name,
    )
