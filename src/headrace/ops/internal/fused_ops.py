"""Operations that only rewriting makes: several of the user's operations as one step.

They have no gradient (a program is rewritten after its gradients were made) and no wrapper.
``_FusedMatMul`` has the name and attributes that it has inside TensorFlow; the others are
Headrace's own. ``fused_ops`` lists what is done to the result: first "BiasAdd", then perhaps an
activation of ``kernels/numpy/activation_kernels.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape, show
from headrace.kernels.numpy import activation_kernels as activations
from headrace.kernels.numpy import attention_kernels as attention
from headrace.kernels.numpy.gemm import matmul_bias
from headrace.ops.linalg import matmul as linalg

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["product_step"]

_BLAS_TYPES = frozenset([np.dtype(np.float32), np.dtype(np.float64)])


def _activated(name: str, xp: ArrayNamespace, x: Array) -> Any:
    """For namespaces other than NumPy."""
    if name.startswith("Gelu"):
        return _gelu(xp, x, name == "GeluApproximate")
    if name == "Sigmoid":
        return 1 / (1 + xp.exp(-x))
    return {
        "Relu": lambda: xp.maximum(x, 0),
        "Relu6": lambda: xp.minimum(xp.maximum(x, 0), 6),
        "Tanh": lambda: xp.tanh(x),
    }[name]()


def _gelu(xp: ArrayNamespace, x: Any, approximate: bool) -> Any:
    if approximate:
        inner = x.dtype.type(0.7978845608028654) * (x + x.dtype.type(0.044715) * x * x * x)
        return x.dtype.type(0.5) * x * (1 + xp.tanh(inner))
    return x.dtype.type(0.5) * x * (1 + xp.erf(x * x.dtype.type(0.7071067811865476)))


# products ---------------------------------------------------------------------------------------


def _make_product_step(activation: str) -> Callable[..., Any]:
    def step(a: Array, b: Array, bias: object) -> Any:
        out = matmul_bias(a, b, bias)
        activations.in_place(activation, out)
        return out

    step.__name__ = f"matmul_bias_{activation.lower()}"
    return step


_steps = {name: _make_product_step(name) for name in activations.ACTIVATIONS}


def product_step(fused_ops: tuple[str, ...]) -> Callable[..., Any]:
    """``f(a, b, bias)`` for float32 and float64 matrices."""
    return matmul_bias if len(fused_ops) == 1 else _steps[fused_ops[1]]


def _fused_matmul_kernel(
    xp: ArrayNamespace,
    a: Array,
    b: Array,
    bias: Array,
    *,
    transpose_a: bool,
    transpose_b: bool,
    fused_ops: Sequence[str],
) -> Any:
    x, y = a.T if transpose_a else a, b.T if transpose_b else b
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Matrix size-incompatible: In[0]: {show(a.shape)}, In[1]: {show(b.shape)}",
        )
    if xp.name == "numpy" and a.dtype in _BLAS_TYPES:
        return product_step(tuple(fused_ops))(x, y, bias)
    out = xp.matmul(x, y) + bias
    return out if len(fused_ops) == 1 else _activated(fused_ops[1], xp, out)


FUSED_MATMUL = define(
    "_FusedMatMul",
    "a: T, b: T, args: num_args*T -> product: T; transpose_a: bool=False, transpose_b: "
    "bool=False, T: type(matmul), "
    "fused_ops: list(str)=[], epsilon: float=0.0001",
    shape=linalg.MATMUL.shape,
    kernel=_fused_matmul_kernel,
    grad=NOT_DIFFERENTIABLE,
    dense=True,
    role="matmul",
    packed_as="_PackedMatMul",
    packed_from=16384,
)


# gradients of means -------------------------------------------------------------------------------


def _inverse_size_kernel(xp: ArrayNamespace, x: Array) -> Any:
    return x.dtype.type(1) / x.dtype.type(x.size)


INVERSE_SIZE = define(
    "_InverseSize",
    "input: T -> output: T; T: type(float)",
    shape=lambda c: [()],
    kernel=_inverse_size_kernel,
    grad=NOT_DIFFERENTIABLE,
    of_shape=True,
)


# attention models ---------------------------------------------------------------------------------


def _like_first(c: infer.Inference) -> list[Shape]:
    return [c.shape(0)]


def _gelu_kernel(xp: ArrayNamespace, x: Array, *, approximate: bool) -> Any:
    return activations.gelu(x, approximate) if xp.name == "numpy" else _gelu(xp, x, approximate)


GELU = define(
    "_Gelu",
    "features: T -> activations: T; approximate: bool=True, T: type(float)",
    shape=_like_first,
    kernel=_gelu_kernel,
    grad=NOT_DIFFERENTIABLE,
    elementwise=True,
)


def _layer_norm_kernel(
    xp: ArrayNamespace, x: Array, scale: Array, offset: Array, *, epsilon: float
) -> Any:
    if xp.name == "numpy":
        return attention.layer_norm(x, scale, offset, epsilon)
    mean = x.mean(-1, keepdims=True)
    away = x - mean
    variance = (away * away).mean(-1, keepdims=True)
    return away / xp.sqrt(variance + x.dtype.type(epsilon)) * scale + offset


LAYER_NORM = define(
    "_LayerNorm",
    "x: T, scale: T, offset: T -> y: T; epsilon: float=0.0001, T: type(float)",
    shape=_like_first,
    kernel=_layer_norm_kernel,
    grad=NOT_DIFFERENTIABLE,
    layer=True,
)


def _attention_kernel(
    xp: ArrayNamespace,
    q: Array,
    k: Array,
    v: Array,
    *args: Array,
    steps: Sequence[str],
    adj_y: bool,
) -> Any:
    for a, b, what in ((q, k, "query and key"), (q, v, "query and value")):
        if a.ndim < 2 or b.ndim < 2:
            raise errors.InvalidArgumentError(
                None, None, f"{what} must be matrices: {show(a.shape)} vs. {show(b.shape)}"
            )
    if q.shape[-1] != k.shape[-1 if adj_y else -2]:
        raise errors.InvalidArgumentError(
            None, None, f"Matrix size-incompatible: In[0]: {show(q.shape)}, In[1]: {show(k.shape)}"
        )
    if xp.name == "numpy":
        return attention.attention(q, k, v, list(zip(steps, args)), adj_y)
    scores = q @ (k.swapaxes(-1, -2) if adj_y else k)
    for name, arg in zip(steps, args):
        scores = _STEPS[name](scores, arg)
    e = xp.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


_STEPS: dict[str, Any] = {
    "*": lambda a, b: a * b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
}


def _attention_shape(c: infer.Inference) -> list[Shape]:
    q, v = c.shape(0), c.shape(2)
    return [None if q is None or v is None else (*q[:-1], v[-1])]


ATTENTION = define(
    "_Attention",
    "query: T, key: T, value: T, args: num_args*T -> output: T; steps: list(str)=[], "
    "adj_y: bool=True, T: type(float)",
    shape=_attention_shape,
    kernel=_attention_kernel,
    grad=NOT_DIFFERENTIABLE,
    layer=True,
)
