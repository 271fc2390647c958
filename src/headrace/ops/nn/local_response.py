"""Local response normalization: LRN, its gradient and ``tf.nn.local_response_normalization``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply, apply_op
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.tensor import Operation, Tensor
from headrace.ops.nn.normalization import _matrix

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["local_response_normalization", "lrn"]

# local response normalisation -------------------------------------------------------------------


def _band(xp: ArrayNamespace, channels: int, radius: int, dtype: np.dtype[Any]) -> Array:
    """A matrix that sums neighbouring channels."""
    at = np.arange(channels)
    return xp.asarray((abs(at[:, None] - at) <= radius).astype(dtype))


def _lrn_norms(
    xp: ArrayNamespace, flat: Array, depth_radius: int, bias: float, alpha: float
) -> Any:
    """bias + alpha * (sum of the squares of the neighbouring channels)."""
    return (flat * flat) @ _band(xp, flat.shape[1], depth_radius, flat.dtype) * flat.dtype.type(
        alpha
    ) + flat.dtype.type(bias)


def _lrn_kernel(
    xp: ArrayNamespace, x: Array, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    if x.ndim != 4:
        raise errors.InvalidArgumentError(
            None, None, f"in must be 4-dimensional: {shapes.show(x.shape)}"
        )
    flat = _matrix(xp, x, False)
    norms = _lrn_norms(xp, flat, depth_radius, bias, alpha)
    return (flat * norms ** flat.dtype.type(-beta)).reshape(x.shape).astype(x.dtype, copy=False)


def _lrn_grad_kernel(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    y: Array,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Any:
    """dx_j = g_j * N_j**-beta - 2 alpha beta x_j * sum over neighbours i of g_i y_i / N_i."""
    grad, flat, out = (_matrix(xp, a, False) for a in (g, x, y))
    norms = _lrn_norms(xp, flat, depth_radius, bias, alpha)
    spread = (grad * out / norms) @ _band(xp, flat.shape[1], depth_radius, flat.dtype)
    dx = grad * norms ** flat.dtype.type(-beta) - flat * spread * flat.dtype.type(2 * alpha * beta)
    return dx.reshape(x.shape).astype(x.dtype, copy=False)


def _lrn_attrs(op: Operation) -> dict[str, Any]:
    return {k: op._attrs[k] for k in ("depth_radius", "bias", "alpha", "beta")}


def _lrn_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    return [
        shapes.merge(c.require_rank(0, 4), shapes.merge(c.require_rank(1, 4), c.require_rank(2, 4)))
    ]


_LRN = (
    "depth_radius: int=5, bias: float=1.0, alpha: float=1.0, beta: float=0.5, T: "
    "type(float)=float32"
)


def _check_radius(attrs: dict[str, Any]) -> None:
    if attrs["depth_radius"] < 0:
        raise errors.InvalidArgumentError(
            None, None, f"depth_radius = {attrs['depth_radius']} larger than int max or negative"
        )


LRN = define(
    "LRN",
    "input: T -> output: T; " + _LRN,
    shape=lambda c: [c.require_rank(0, 4)],
    kernel=_lrn_kernel,
    check_attrs=_check_radius,
    grad=lambda op, g: [apply_op("LRNGrad", g, op._inputs[0], op._outputs[0], **_lrn_attrs(op))],
)
LRN_GRAD = define(
    "LRNGrad",
    "input_grads: T, input_image: T, output_image: T -> output: T; " + _LRN,
    shape=_lrn_grad_shape,
    kernel=_lrn_grad_kernel,
    grad=NO_GRADIENT_YET,
)

# what users call --------------------------------------------------------------------------------


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Each value divided by ``(bias + alpha * sum of squares) ** beta``, the sum over channels at
    most ``depth_radius`` away.

    ``input`` is [batch, height, width, channels].
    """
    return apply(
        LRN, input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name
    )


lrn = local_response_normalization
