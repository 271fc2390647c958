"""Operations that only rewriting makes.

A composite of the user's in training, and its gradient, as one step each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import infer
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.kernels.numpy import lstm_kernels as lstm
from headrace.kernels.numpy import row_gradients

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__: list[str] = []


def _layer_norm_shapes(c: infer.Inference) -> list[Shape]:
    x = c.shape(0)
    lead = None if x is None else x[:-1]
    return [x, lead, lead]


def _layer_norm_kernel(
    xp: ArrayNamespace, x: Array, scale: Array, offset: Array, *, epsilon: float
) -> Any:
    if xp.name == "numpy":
        return row_gradients.layer_norm_training(x, scale, offset, epsilon)
    mean = x.mean(-1)
    away = x - mean[..., None]
    variance = (away * away).mean(-1)
    y = away / xp.sqrt(variance + x.dtype.type(epsilon))[..., None] * scale + offset
    return y, mean, variance


LAYER_NORM_TRAINING = define(
    "_LayerNormTraining",
    "x: T, scale: T, offset: T -> y: T, mean: T, variance: T; epsilon: float=0.0001, T: "
    "type(float)",
    shape=_layer_norm_shapes,
    kernel=_layer_norm_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def _layer_norm_grad_shapes(c: infer.Inference) -> list[Shape]:
    return [c.shape(1), c.shape(2), c.shape(2)]


def _layer_norm_grad_kernel(
    xp: ArrayNamespace,
    dy: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
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
    "y_backprop: T, x: T, scale: T, mean: T, variance: T -> x_backprop: T, "
    "scale_backprop: T, offset_backprop: T; "
    "epsilon: float=0.0001, T: type(float)",
    shape=_layer_norm_grad_shapes,
    kernel=_layer_norm_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def _like_first(c: infer.Inference) -> list[Shape]:
    return [c.shape(0)]


def _softmax_grad_kernel(xp: ArrayNamespace, dy: Array, y: Array) -> Any:
    if xp.name == "numpy":
        return row_gradients.softmax_grad(y, dy)
    return (dy - (dy * y).sum(-1, keepdims=True)) * y


SOFTMAX_GRAD = define(
    "_SoftmaxGrad",
    "y_backprop: T, softmax: T -> logits_backprop: T; T: type(float)",
    shape=_like_first,
    kernel=_softmax_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def _gelu_grad_kernel(xp: ArrayNamespace, dy: Any, x: Any, *, approximate: bool) -> Any:
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
    "_GeluGrad",
    "gradients: T, features: T -> backprops: T; approximate: bool=True, T: type(float)",
    shape=_like_first,
    kernel=_gelu_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
)


# the cell of an LSTM ----------------------------------------------------------------------------


def _cell_shapes(c: infer.Inference) -> list[Shape]:
    gates = c.shape(0)
    if gates is None:
        return [None, None, None, None]
    part = (gates[0], None if gates[1] is None else gates[1] // 4)
    return [part, part, gates, part]


def _cell_kernel(
    xp: Any, product: Any, c: Any, *, order: Any, forget_bias: float
) -> tuple[Array, ...]:
    if xp.name == "numpy":
        return lstm.cell(product, c, tuple(order), forget_bias)
    parts = [xp.split(product, 4, axis=1)[k] for k in order]
    i, f, o = (1 / (1 + xp.exp(-x)) for x in (parts[0], parts[1] + forget_bias, parts[3]))
    g = xp.tanh(parts[2])
    new = f * c + i * g
    by_place = dict(zip(order, (i, f, g, o)))
    return o * xp.tanh(new), new, xp.concatenate([by_place[k] for k in range(4)], 1), xp.tanh(new)


LSTM_CELL = define(
    "_LSTMCell",
    "product: T, c: T -> h: T, c_new: T, gates: T, tanh_c: T; order: list(int)=[0, 1, 2, "
    "3], forget_bias: float=0.0, "
    "T: type(float)",
    shape=_cell_shapes,
    kernel=_cell_kernel,
    grad=NOT_DIFFERENTIABLE,
    compiled="cell_kernels:cell",
)


def _cell_grad_shapes(c: infer.Inference) -> list[Shape]:
    return [c.shape(3), c.shape(2)]


def _cell_grad_kernel(
    xp: Any, dh: Any, dc: Any, c: Any, gates: Any, tanh_c: Any, *, order: Any
) -> tuple[Array, Array]:
    if xp.name == "numpy":
        return lstm.cell_grad(dh, dc, c, gates, tanh_c, tuple(order))
    i, f, g, o = (xp.split(gates, 4, axis=1)[k] for k in order)
    d = dh * o * (1 - tanh_c * tanh_c) + dc
    parts = (
        d * g * i * (1 - i),
        d * c * f * (1 - f),
        d * i * (1 - g * g),
        dh * tanh_c * o * (1 - o),
    )
    by_place = dict(zip(order, parts))
    back = d * f
    back = back if back.shape == c.shape else back.sum(0, keepdims=True)
    return xp.concatenate([by_place[k] for k in range(4)], 1), back


LSTM_CELL_GRAD = define(
    "_LSTMCellGrad",
    "h_backprop: T, c_backprop: T, c: T, gates: T, tanh_c: T -> product_backprop: T, "
    "c_prev_backprop: T; "
    "order: list(int)=[0, 1, 2, 3], T: type(float)",
    shape=_cell_grad_shapes,
    kernel=_cell_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
    compiled="cell_kernels:cell_grad",
)


# all steps of an LSTM layer ---------------------------------------------------------------------


def _layer_kernel(
    xp: ArrayNamespace, *arrays: Array, N: int, order: Any, forget_bias: float, training: bool
) -> tuple[Array, ...]:
    """Not in ``training`` the last three results are nobody's, and not made."""
    inputs, (h, c, kernel, bias) = arrays[:N], arrays[N:]
    if xp.name == "numpy":
        outputs, states, gates, tanhs = lstm.layer(
            inputs, h, c, kernel, bias, tuple(order), forget_bias, training
        )
        return (*outputs, states[-1], states, gates, tanhs)
    made = []
    for x in inputs:
        product = xp.concatenate([x, h], 1) @ kernel + bias
        h, c, gates, tanh_c = _cell_kernel(xp, product, c, order=order, forget_bias=forget_bias)
        made.append((h, c, gates, tanh_c))
    hs, *others = zip(*made)
    states, gates, tanhs = (xp.stack(o) for o in others)
    return (*hs, c, states, gates, tanhs)


def _unknown(c: infer.Inference) -> list[Shape]:
    return [None] * (c.attr("N") + 4)


LSTM_LAYER = define(
    "_LSTMLayer",
    "inputs: N*T, h: T, c: T, kernel: T, bias: T -> outputs: N*T, last: T, states: T, "
    "gates: T, tanhs: T; "
    "N: int, order: list(int)=[0, 1, 2, 3], forget_bias: float=0.0, training: bool=True, "
    "T: type(float)",
    shape=_unknown,
    kernel=_layer_kernel,
    grad=NOT_DIFFERENTIABLE,
    compiled="recurrent_kernels:layer",
    packed_as="_PackedLSTMLayer",
    packed_input=-2,
    packed_unless="training",
)


def _layer_grad_kernel(xp: Any, *arrays: Any, N: int, order: Any) -> tuple[Array, ...]:
    dh, dc, inputs = arrays[:N], arrays[N], arrays[N + 1 : 2 * N + 1]
    h, c, kernel = arrays[2 * N + 1 : 2 * N + 4]
    outputs, (states, gates, tanhs) = arrays[2 * N + 4 : 3 * N + 4], arrays[3 * N + 4 :]
    if xp.name == "numpy":
        dx, *others = lstm.layer_grad(
            dh, dc, inputs, h, c, kernel, outputs, states, gates, tanhs, tuple(order)
        )
        return (*dx, *others)
    wide = inputs[0].shape[1]
    dx = []
    dkernel: Any = 0
    dbias: Any = 0
    later: Any = 0
    for k in range(N - 1, -1, -1):
        before, earlier = (states[k - 1], outputs[k - 1]) if k else (c, h)
        dproduct, dc = _cell_grad_kernel(
            xp, dh[k] + later, dc, before, gates[k], tanhs[k], order=order
        )
        dkernel = dkernel + xp.concatenate([inputs[k], earlier], 1).T @ dproduct
        dbias = dbias + dproduct.sum(0)
        both = dproduct @ kernel.T
        dx.append(both[:, :wide])
        later = both[:, wide:]
    return (*dx[::-1], later, dc, dkernel, dbias)


LSTM_LAYER_GRAD = define(
    "_LSTMLayerGrad",
    "output_backprops: N*T, last_backprop: T, inputs: N*T, h: T, c: T, kernel: T, "
    "outputs: N*T, states: T, gates: T, "
    "tanhs: T -> input_backprops: N*T, h_backprop: T, c_backprop: T, kernel_backprop: T, "
    "bias_backprop: T; "
    "N: int, order: list(int)=[0, 1, 2, 3], T: type(float)",
    shape=_unknown,
    kernel=_layer_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
    compiled="recurrent_kernels:layer_grad",
)
