"""Operations that only rewriting makes: a composite of the user's in training, and its gradient, as one step each."""

from __future__ import annotations

from typing import Any

from headrace.arrays import row_gradients
from headrace.core import infer
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape

__all__: list[str] = []


def _layer_norm_shapes(c: infer.Inference) -> list[Shape]:
    x = c.shape(0)
    lead = None if x is None else x[:-1]
    return [x, lead, lead]


def _layer_norm_kernel(xp: Any, x: Any, scale: Any, offset: Any, *, epsilon: float) -> Any:
    if xp.name == "numpy":
        return row_gradients.layer_norm_training(x, scale, offset, epsilon)
    mean = x.mean(-1)
    away = x - mean[..., None]
    variance = (away * away).mean(-1)
    y = away / xp.sqrt(variance + x.dtype.type(epsilon))[..., None] * scale + offset
    return y, mean, variance


LAYER_NORM_TRAINING = define(
    "_LayerNormTraining",
    "x: T, scale: T, offset: T -> y: T, mean: T, variance: T; epsilon: float=0.0001, T: type(float)",
    shape=_layer_norm_shapes, kernel=_layer_norm_kernel, grad=NOT_DIFFERENTIABLE,
)  # fmt: skip


def _layer_norm_grad_shapes(c: infer.Inference) -> list[Shape]:
    return [c.shape(1), c.shape(2), c.shape(2)]


def _layer_norm_grad_kernel(
    xp: Any, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *, epsilon: float
) -> Any:
    if xp.name == "numpy":
        return row_gradients.layer_norm_grad(dy, x, scale, mean, variance, epsilon)
    inverse = 1 / xp.sqrt(variance + x.dtype.type(epsilon))[..., None]
    normal = (x - mean[..., None]) * inverse
    d = dy * scale
    along = (d * normal).mean(-1, keepdims=True)
    lead = tuple(range(x.ndim - 1))
    dx = (d - d.mean(-1, keepdims=True) - normal * along) * inverse
    return dx, (dy * normal).sum(lead), dy.sum(lead)


LAYER_NORM_GRAD = define(
    "_LayerNormGrad",
    "y_backprop: T, x: T, scale: T, mean: T, variance: T -> x_backprop: T, scale_backprop: T, offset_backprop: T; "
    "epsilon: float=0.0001, T: type(float)",
    shape=_layer_norm_grad_shapes, kernel=_layer_norm_grad_kernel, grad=NOT_DIFFERENTIABLE,
)  # fmt: skip


def _like_first(c: infer.Inference) -> list[Shape]:
    return [c.shape(0)]


def _softmax_grad_kernel(xp: Any, dy: Any, y: Any) -> Any:
    if xp.name == "numpy":
        return row_gradients.softmax_grad(y, dy)
    return (dy - (dy * y).sum(-1, keepdims=True)) * y


SOFTMAX_GRAD = define(
    "_SoftmaxGrad", "y_backprop: T, softmax: T -> logits_backprop: T; T: type(float)",
    shape=_like_first, kernel=_softmax_grad_kernel, grad=NOT_DIFFERENTIABLE,
)  # fmt: skip


def _gelu_grad_kernel(xp: Any, dy: Any, x: Any, *, approximate: bool) -> Any:
    if xp.name == "numpy":
        return row_gradients.gelu_grad(dy, x, approximate)
    kind = x.dtype.type
    if approximate:
        t = xp.tanh(kind(0.7978845608028654) * (x + kind(0.044715) * x * x * x))
        inner = kind(0.7978845608028654) * (1 + kind(3 * 0.044715) * x * x)
        return dy * kind(0.5) * (1 + t + x * (1 - t * t) * inner)
    sigma = kind(0.5) * (1 + xp.erf(x * kind(0.7071067811865476)))
    return dy * (sigma + x * xp.exp(x * x * kind(-0.5)) * kind(0.3989422804014327))


GELU_GRAD = define(
    "_GeluGrad", "gradients: T, features: T -> backprops: T; approximate: bool=True, T: type(float)",
    shape=_like_first, kernel=_gelu_grad_kernel, grad=NOT_DIFFERENTIABLE,
)  # fmt: skip
