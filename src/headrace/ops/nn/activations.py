"""Activations: Relu and its relatives, Softplus, Softmax.

Kernels are element-wise unless they normalise over the last axis. Gradients of the piecewise ones
use the op's output where TensorFlow does (``ReluGrad(grad, activations)``), so that the input need
not be kept alive.

    >>> y = relu(x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shape_fns, shapes
from headrace.core.build import apply, apply_op, named_result
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.graph import get_default_graph
from headrace.core.opdef import OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.accel import ask
from headrace.kernels.numpy.activation_kernels import FLOAT32, ZERO
from headrace.ops.nn.nn_common import (
    add,
    cast,
    cond_where,
    deprecated,
    div,
    mul,
    neg,
    of_equal_shapes,
    reduce_sum,
    sub,
    transpose,
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = [
    "crelu",
    "crelu_v2",
    "elu",
    "leaky_relu",
    "log_softmax",
    "log_softmax_v2",
    "relu",
    "relu6",
    "selu",
    "softmax",
    "softmax_v2",
    "softplus",
    "softsign",
    "swish",
]

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123

Grads = list[Any]

# piecewise --------------------------------------------------------------------------------------


# Masks are multiplied with, not selected by: NumPy's ``where`` is ten times slower on a mask
# without a pattern.


def _relu_grad_kernel(xp: ArrayNamespace, gradients: Array, features: Array) -> Array:
    if xp.name == "numpy" and gradients.size >= 1 << 15:
        result = ask("relu_grad", gradients, features)
        if result is not None:
            return result
    return gradients * (features > (ZERO if features.dtype is FLOAT32 else 0))


def _relu6_grad_kernel(xp: ArrayNamespace, gradients: Array, features: Array) -> Array:
    return gradients * ((features > 0) & (features < 6))


def _leaky_relu_kernel(xp: ArrayNamespace, features: Array, *, alpha: float) -> Array:
    slope = features.dtype.type(alpha)
    if slope != 0 and slope <= 1:  # zero times an infinity is NaN, which a maximum would keep
        return xp.maximum(features, features * slope)
    return xp.where(features > 0, features, features * slope)


def _leaky_relu_grad_kernel(
    xp: ArrayNamespace, gradients: Array, features: Array, *, alpha: float
) -> Array:
    slope = gradients.dtype.type(alpha)
    if not 0 <= alpha < 1:
        return xp.where(features > 0, gradients, gradients * slope)
    return gradients * xp.maximum(features > 0, slope)


def _elu_kernel(xp: ArrayNamespace, features: Array) -> Any:
    """One of the two terms is zero."""
    return xp.maximum(features, 0) + (xp.exp(xp.minimum(features, 0)) - 1)


def _elu_grad_kernel(xp: ArrayNamespace, gradients: object, outputs: Array) -> Any:
    if xp.name == "numpy" and outputs.size >= 1 << 15:
        result = ask("gradient", "EluGrad", outputs, gradients)
        if result is not None:
            return result
    return gradients * (xp.minimum(outputs, 0) + 1)


def _selu_kernel(xp: ArrayNamespace, features: Array) -> Any:
    scalar = features.dtype.type
    below = (xp.exp(xp.minimum(features, 0)) - 1) * scalar(SELU_SCALE_ALPHA)
    return xp.maximum(features, 0) * scalar(SELU_SCALE) + below


def _selu_grad_kernel(xp: ArrayNamespace, gradients: Array, outputs: Array) -> Any:
    scalar = gradients.dtype.type
    jump = (outputs < 0) * scalar(SELU_SCALE_ALPHA - SELU_SCALE)
    return gradients * (xp.minimum(outputs, 0) + jump + scalar(SELU_SCALE))


def _zero_second(op_type: str) -> Callable[..., Any]:
    """The gradient of ``XGrad(gradients, features)``: linear in the first, flat in the second."""

    def grad(op: Operation, g: TensorLike) -> Grads:
        x = op._inputs[1]
        return [apply_op(op_type, g, x), zeros_like(x)]

    return grad


def _leaky_relu_grad_grad(op: Operation, g: Tensor) -> Grads:
    x = op._inputs[1]
    return [apply(LEAKY_RELU_GRAD, g, x, alpha=op._attrs["alpha"]), zeros_like(x)]


def _exponential_grad_grad(op_type: str) -> Callable[..., Any]:
    """EluGrad and SeluGrad: below zero they are ``gradients * (outputs + c)``."""

    def grad(op: Operation, g: TensorLike) -> Grads:
        y = op._inputs[1]
        zeros = zeros_like(y)
        below = apply_op("Less", y, zeros)
        return [apply_op(op_type, g, y), cond_where(below, mul(g, op._inputs[0]), zeros)]

    return grad


def _by_output(op_type: str) -> Callable[..., Any]:
    return lambda op, g: [apply_op(op_type, g, op._outputs[0])]


def _by_input(op_type: str) -> Callable[..., Any]:
    return lambda op, g: [apply_op(op_type, g, op._inputs[0])]


_GRAD = "gradients: T, {}: T -> backprops: T; T: type({})"

RELU = define(
    "Relu",
    "features: T -> activations: T; T: type(real)",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: xp.maximum(x.dtype.type(0), x),
    grad=_by_output("ReluGrad"),
    elementwise=True,
    into="np.maximum(0, {0}, out={out})",
    role="activation",
    fails="never",
)
RELU_GRAD = define(
    "ReluGrad",
    _GRAD.format("features", "real"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("ReluGrad", _relu_grad_kernel),
    trusting=_relu_grad_kernel,
    grad=_zero_second("ReluGrad"),
    elementwise=True,
    same_shapes=True,
)
RELU6 = define(
    "Relu6",
    "features: T -> activations: T; T: type(real)",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: xp.minimum(xp.maximum(0, x), 6),
    grad=_by_output("Relu6Grad"),
    elementwise=True,
    role="activation",
    fails="never",
)
RELU6_GRAD = define(
    "Relu6Grad",
    _GRAD.format("features", "real"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("Relu6Grad", _relu6_grad_kernel),
    trusting=_relu6_grad_kernel,
    grad=_zero_second("Relu6Grad"),
    elementwise=True,
    same_shapes=True,
)
LEAKY_RELU = define(
    "LeakyRelu",
    "features: T -> activations: T; alpha: float=0.20000000298023224, T: type(float)=float32",
    shape=shape_fns.unchanged,
    kernel=_leaky_relu_kernel,
    elementwise=True,
    grad=lambda op, g: [apply_op("LeakyReluGrad", g, op._inputs[0], alpha=op._attrs["alpha"])],
    native_attrs=("alpha",),
)
LEAKY_RELU_GRAD = define(
    "LeakyReluGrad",
    "gradients: T, features: T -> backprops: T; alpha: float=0.20000000298023224, T: "
    "type(float)=float32",
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("LeakyReluGrad", _leaky_relu_grad_kernel, has_attrs=True),
    trusting=_leaky_relu_grad_kernel,
    grad=_leaky_relu_grad_grad,
    elementwise=True,
    same_shapes=True,
    native_attrs=("alpha",),
)
ELU = define(
    "Elu",
    "features: T -> activations: T; T: type(float)",
    shape=shape_fns.unchanged,
    kernel=_elu_kernel,
    grad=_by_output("EluGrad"),
    elementwise=True,
    fails="never",
    heavy=True,
)
ELU_GRAD = define(
    "EluGrad",
    _GRAD.format("outputs", "float"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("EluGrad", _elu_grad_kernel),
    trusting=_elu_grad_kernel,
    grad=_exponential_grad_grad("EluGrad"),
    elementwise=True,
    same_shapes=True,
)
SELU = define(
    "Selu",
    "features: T -> activations: T; T: type(float)",
    shape=shape_fns.unchanged,
    kernel=_selu_kernel,
    grad=_by_output("SeluGrad"),
    elementwise=True,
    fails="never",
    heavy=True,
)
SELU_GRAD = define(
    "SeluGrad",
    _GRAD.format("outputs", "float"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("SeluGrad", _selu_grad_kernel),
    trusting=_selu_grad_kernel,
    grad=_exponential_grad_grad("SeluGrad"),
    elementwise=True,
    same_shapes=True,
)

# smooth -----------------------------------------------------------------------------------------


def _softplus_kernel(xp: ArrayNamespace, x: Array) -> Array:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which neither overflows nor loses the small
    end.
    """
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def _softplus_grad_grad(op: Operation, g: Tensor) -> Grads:
    dy, x = op._inputs
    curvature = add(add(apply_op("Exp", neg(x)), 2.0), apply_op("Exp", x))
    return [apply(SOFTPLUS_GRAD, g, x), div(mul(g, dy), curvature)]


def _softsign_grad_kernel(xp: ArrayNamespace, gradients: Array, features: Array) -> Array:
    return gradients / xp.square(xp.abs(features) + 1)


def _softsign_grad_grad(op: Operation, g: Tensor) -> Grads:
    dy, x = op._inputs
    size = add(apply_op("Abs", x), 1.0)
    cube = mul(mul(size, size), size)
    slope = div(mul(apply_op("Sign", x), -2.0), cube)
    return [apply(SOFTSIGN_GRAD, g, x), mul(mul(g, dy), slope)]


SOFTPLUS = define(
    "Softplus",
    "features: T -> activations: T; T: type(float)",
    shape=shape_fns.unchanged,
    kernel=_softplus_kernel,
    grad=_by_input("SoftplusGrad"),
    elementwise=True,
    fails="never",
    heavy=True,
)
SOFTPLUS_GRAD = define(
    "SoftplusGrad",
    _GRAD.format("features", "float"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("SoftplusGrad", lambda xp, g, x: g / (xp.exp(-x) + 1)),
    trusting=lambda xp, g, x: g / (xp.exp(-x) + 1),
    grad=_softplus_grad_grad,
    elementwise=True,
    same_shapes=True,
    heavy=True,
)
SOFTSIGN = define(
    "Softsign",
    "features: T -> activations: T; T: type(float)",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x / (xp.abs(x) + 1),
    grad=_by_input("SoftsignGrad"),
    elementwise=True,
)
SOFTSIGN_GRAD = define(
    "SoftsignGrad",
    _GRAD.format("features", "float"),
    shape=shape_fns.same_shape_inputs,
    kernel=of_equal_shapes("SoftsignGrad", _softsign_grad_kernel),
    trusting=_softsign_grad_kernel,
    grad=_softsign_grad_grad,
    elementwise=True,
    same_shapes=True,
)

# softmax ----------------------------------------------------------------------------------------


def _row_max(x: Array) -> Array:
    """The maximum over the last axis, kept.

    NumPy walks short rows one by one; a few columns are faster.
    """
    columns = x.shape[-1]
    if columns > 6:
        return np.maximum.reduce(x, -1, keepdims=True)
    best = x[..., 0]
    for i in range(1, columns):
        best = np.maximum(best, x[..., i])
    return best[..., None]


def shifted(xp: ArrayNamespace, x: Any) -> Any:
    """``x - max(x)`` over the last axis, in a new array; 16-bit types are widened to float32."""
    if x.dtype.itemsize == 2:
        x = x.astype(xp.float32)
    if not x.size:
        return x - 0
    if xp.name == "numpy":
        return x - _row_max(x)
    return x - x.max(-1, keepdims=True)


#: Elements from which a softmax is the kernel library's.
_LIBRARY_FROM = 1 << 14


def _softmax_kernel(xp: ArrayNamespace, logits: Array) -> Any:
    if logits.size >= _LIBRARY_FROM and xp.name == "numpy":
        result = ask("softmax", logits)
        if result is not None:
            return result
    e = shifted(xp, logits)
    if xp.name != "numpy":
        e = xp.exp(e)
        return (e / e.sum(-1, keepdims=True)).astype(logits.dtype)
    np.exp(e, out=e)
    e /= np.add.reduce(e, -1, keepdims=True)
    return e if e.dtype == logits.dtype else e.astype(logits.dtype)


def _log_softmax_kernel(xp: ArrayNamespace, logits: Array) -> Any:
    if logits.size >= _LIBRARY_FROM and xp.name == "numpy":
        result = ask("log_softmax", logits)
        if result is not None:
            return result
    d = shifted(xp, logits)
    return (d - xp.log(xp.exp(d).sum(-1, keepdims=True))).astype(logits.dtype, copy=False)


def _softmax_grad(op: Operation, g: Tensor) -> Grads:
    y = op._outputs[0]
    return [mul(sub(g, reduce_sum(mul(g, y), [-1], keepdims=True)), y)]


def _log_softmax_grad(op: Operation, g: Tensor) -> Grads:
    probability = apply_op("Exp", op._outputs[0])
    return [sub(g, mul(reduce_sum(g, [-1], keepdims=True), probability))]


def _at_least_vector(c: infer.Inference) -> list[shapes.Shape]:
    return [c.require_rank_at_least(0, 1)]


SOFTMAX = define(
    "Softmax",
    "logits: T -> softmax: T; T: type(float)",
    shape=_at_least_vector,
    kernel=_softmax_kernel,
    grad=_softmax_grad,
    dense=True,
    in_composites=True,
    fails="never",
)
LOG_SOFTMAX = define(
    "LogSoftmax",
    "logits: T -> logsoftmax: T; T: type(float)",
    shape=_at_least_vector,
    kernel=_log_softmax_kernel,
    grad=_log_softmax_grad,
    dense=True,
    fails="never",
)

# what users call --------------------------------------------------------------------------------


@dispatched("unary")
def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """``max(features, 0)`` element by element; the gradient at 0 is 0."""
    return apply(RELU, features, name=name)


@dispatched("unary")
def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """``min(max(features, 0), 6)`` element by element."""
    return apply(RELU6, features, name=name)


@dispatched("unary")
def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """``x`` where positive, otherwise ``exp(x) - 1``."""
    return apply(ELU, features, name=name)


@dispatched("unary")
def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """A scaled ``elu`` that keeps mean 0 and variance 1; use it with ``lecun_normal`` weights."""
    return apply(SELU, features, name=name)


@dispatched("unary")
def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """``log(1 + exp(x))``: a smooth ``relu``."""
    return apply(SOFTPLUS, features, name=name)


@dispatched("unary")
def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """``x / (1 + |x|)``, between -1 and 1."""
    return apply(SOFTSIGN, features, name=name)


@dispatched("unary")
def leaky_relu(features: TensorLike, alpha: TensorLike = 0.2, name: str | None = None) -> Tensor:
    """``features`` where positive, else ``alpha * features``; integers become float32."""
    with name_scope(name, "LeakyRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        if features._dtype.is_integer:
            features = cast(features, "float32")
        if isinstance(alpha, np.ndarray):
            alpha = alpha.item()
        if isinstance(alpha, (int, float, np.number)):
            alpha = float(np.float32(alpha))
        return apply(LEAKY_RELU, features, alpha=alpha, name=scope)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """Relu of the features and of their negatives, side by side."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        both = apply_op("ConcatV2", [features, neg(features)], axis, name=scope)
        return apply(RELU, both)


def crelu_v2(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """``relu(x)`` and ``relu(-x)`` put together along ``axis``, which doubles."""
    return crelu(features, name=name, axis=axis)


@dispatched("unary")
def swish(features: TensorLike) -> Tensor:
    """``features * sigmoid(features)`` element by element."""
    x = convert_to_tensor(features, name="features")
    count_more(x._op.graph, 2)  # TF has a gradient of its own for it, with identities around
    name = get_default_graph().unique_name("IdentityN")
    return named_result(mul(x, apply_op("Sigmoid", x)), f"{name}/")


def softmax(
    logits: TensorLike,
    axis: AxisLike | None = None,
    name: str | None = None,
    dim: AxisLike | None = None,
) -> Tensor:
    """exp(logits) / sum(exp(logits)) over one axis, the last by default.

    Large logits do not overflow. ``dim`` is the older name of ``axis``. For a loss use the
    functions that take logits, such as ``tf.nn.softmax_cross_entropy_with_logits_v2``.

        tf.nn.softmax([0.0, 0.0])  # [0.5, 0.5]
    """
    return _along(SOFTMAX, logits, deprecated("axis", axis, "dim", dim), name)


@dispatched("softmax")
def softmax_v2(logits: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """``exp(logits)`` divided by its sum along ``axis`` (the last one by default)."""
    return _along(SOFTMAX, logits, axis, name)


def log_softmax(
    logits: TensorLike,
    axis: AxisLike | None = None,
    name: str | None = None,
    dim: AxisLike | None = None,
) -> Tensor:
    """logits - log(sum(exp(logits))) over one axis, the last by default.

    Exact where the softmax itself would be 0. ``dim`` is the older name of ``axis``.

        tf.nn.log_softmax([0.0, 0.0])  # [-0.69315, -0.69315]
    """
    return _along(LOG_SOFTMAX, logits, deprecated("axis", axis, "dim", dim), name)


def log_softmax_v2(
    logits: object, axis: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The logarithm of ``softmax`` along ``axis`` (the last one by default), without overflow."""
    return _along(LOG_SOFTMAX, logits, axis, name)


def _along(opdef: OpDef, logits: object, axis: Any, name: str | None) -> Tensor:
    """The op over any axis: it is moved to the end and back."""
    logits = convert_to_tensor(logits)
    if isinstance(axis, Tensor):
        dynamic = axis
        axis = infer.static_value(axis)
        if axis is None:
            return _along_any(opdef, logits, dynamic, name)
    if isinstance(axis, (str, bytes)):
        raise TypeError(f"The axis of a softmax must be an integer, not {axis!r}.")
    given, axis = axis, -1 if axis is None else int(axis)
    if axis == -1 or (logits._shape is not None and axis == len(logits._shape) - 1):
        return apply(opdef, logits, name=name)
    if isinstance(given, float):
        raise TypeError(f"The axis of a softmax must be an integer, not {given!r}.")
    if logits._shape is None:
        raise TypeError(
            f"The rank of {logits} must be known for a softmax over axis {axis}: use set_shape."
        )
    count_more(logits._op.graph, 26)  # TF computes the two permutations in the graph
    rank = len(logits._shape)
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Dimension ({axis}) must be in the range [{-rank}, {rank}) where {rank} is "
            "the number of dimensions in "
            "the input.",
        )
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    return transpose(apply(opdef, transpose(logits, swap)), swap, name=name)


def _along_any(opdef: OpDef, logits: Tensor, axis: Tensor, name: str | None) -> Tensor:
    """Over an axis that is known when it runs."""
    rank = apply_op("Rank", logits)
    axis = cond_where(apply_op("Less", axis, 0), apply_op("AddV2", axis, rank), axis)
    last = sub(rank, 1)
    behind = cond_where(apply_op("Equal", axis, last), last, apply_op("AddV2", axis, 1))
    before, between = (
        apply_op("Range", 0, axis, 1),
        apply_op("Range", behind, last, 1),
    )  # refuse a wrong axis
    inner = apply_op(
        "ConcatV2",
        [before, apply_op("ExpandDims", last, 0), between, apply_op("ExpandDims", axis, 0)],
        0,
    )
    # where the axis is the last one it is named twice: the order is cut to the rank
    swap = apply_op("Slice", inner, [0], apply_op("ExpandDims", rank, 0))
    result = transpose(apply(opdef, transpose(logits, swap)), swap, name=name)
    result.set_shape(logits.shape)
    return result
