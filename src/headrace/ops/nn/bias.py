"""Biases added to channels, and layers written as one call (``xw_plus_b``, ``relu_layer``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.nn.cross_entropy import Grads
from headrace.ops.nn.nn_common import (
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["bias_add", "bias_add_v1", "relu_layer", "xw_plus_b"]


def _bias_add_kernel(xp: ArrayNamespace, value: Array, bias: Array, *, data_format: str) -> Array:
    if data_format == "NCHW" and value.ndim > 2:
        if bias.shape[0] != value.shape[1]:
            raise _bias_error(value, bias, "channel")
        return value + bias.reshape((-1,) + (1,) * (value.ndim - 2))
    return _plain_bias_add(xp, value, bias)


def _plain_bias_add(xp: ArrayNamespace, value: Array, bias: Array) -> Array:
    if value.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"Input tensor must be at least 2D: {shapes.show(value.shape)}"
        )
    if bias.shape[0] != value.shape[-1]:
        raise _bias_error(value, bias, "last")
    return value + bias


def _bias_error(value: Array, bias: Array, which: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None,
        None,
        f"Must provide as many biases as the {which} dimension of the input tensor: "
        f"{shapes.show(bias.shape)} vs. "
        f"{shapes.show(value.shape)}",
    )


def _bias_add_grad_kernel(xp: ArrayNamespace, g: Array, *, data_format: str) -> Any:
    if g.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"Input tensor must be at least 2D: {shapes.show(g.shape)}"
        )
    if data_format == "NCHW" and g.ndim > 2:
        return g.sum((0, *range(2, g.ndim)), dtype=g.dtype)
    if (
        xp.name == "numpy"
        and g.dtype.kind == "f"
        and g.ndim > 1
        and 1 < g.shape[-1] <= 64
        and g.size > 1 << 16
    ):
        # a column sum as a matrix product: the reduction of NumPy walks narrow rows one by one
        flat = g.reshape(-1, g.shape[-1])
        return np.ones(flat.shape[0], g.dtype) @ flat
    return g.sum(tuple(range(g.ndim - 1)), dtype=g.dtype)


def _bias_add_shape(c: infer.Inference) -> list[shapes.Shape]:
    value, bias = c.require_rank_at_least(0, 2), c.require_rank(1, 1)
    if value is None or bias is None:
        return [value]
    at = 1 if c.attr("data_format") == "NCHW" else len(value) - 1
    have, want = value[at], bias[0]
    if have is not None and want is not None and have != want:
        raise ValueError(f"Dimensions must be equal, but are {have} and {want}")
    return [(*value[:at], want if have is None else have, *value[at + 1 :])]


def _bias_add_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    g = c.require_rank_at_least(0, 2)
    if g is None:
        return [(None,)]
    return [(g[1] if c.attr("data_format") == "NCHW" else g[-1],)]


def _bias_add_grad(op: Operation, g: Tensor) -> Grads:
    return [g, apply(BIAS_ADD_GRAD, g, data_format=op._attrs.get("data_format", "NHWC"))]


def _bias_add_grad_grad(op: Operation, g: Tensor) -> Grads:
    """The bias's gradient spread over the value again: zeros plus a bias."""
    return [apply(BIAS_ADD, zeros_like(op._inputs[0]), g, data_format=op._attrs["data_format"])]


BIAS_ADD = define(
    "BiasAdd",
    "value: T, bias: T -> output: T; T: type(number), data_format: str='NHWC'",
    shape=_bias_add_shape,
    kernel=_bias_add_kernel,
    grad=_bias_add_grad,
    dense=True,
    into="np.add({0}, {1}, out={out})",
    fails="shapes",
)


BIAS_ADD_V1 = define(
    "BiasAddV1",
    "value: T, bias: T -> output: T; T: type(number)",
    shape=_bias_add_shape,
    kernel=_plain_bias_add,
    grad=_bias_add_grad,
)


BIAS_ADD_GRAD = define(
    "BiasAddGrad",
    "out_backprop: T -> output: T; T: type(number), data_format: str='NHWC'",
    shape=_bias_add_grad_shape,
    kernel=_bias_add_grad_kernel,
    grad=_bias_add_grad_grad,
    dense=True,
)


def bias_add(
    value: TensorLike, bias: object, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``bias`` [channels] added to the channels of ``value``.

    Channels are the last dimension, or the second with ``data_format="NCHW"``.
    """
    if data_format is None or (data_format[0] == "N" and data_format[-1] == "C"):
        data_format = "NHWC"
    elif data_format.startswith("NC"):
        data_format = "NCHW"
    else:
        raise ValueError("data_format must be of the form `N...C` or `NC...`")
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return apply(BIAS_ADD, value, bias, data_format=data_format, name=scope)


def bias_add_v1(value: TensorLike, bias: TensorLike, name: str | None = None) -> Tensor:
    return apply(BIAS_ADD_V1, value, bias, name=name)


def _matmul(x: TensorLike, weights: TensorLike) -> Tensor:
    from headrace.ops.linalg.matmul import matmul

    return matmul(convert_to_tensor(x, name="x"), convert_to_tensor(weights, name="weights"))


def xw_plus_b(
    x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None
) -> Tensor:
    """``matmul(x, weights) + biases``: [n, k] and [k, m] and [m] give [n, m].

    A linear layer with weights of one's own; ``tf.layers.dense`` makes them.

        tf.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [-1.0]], [0.5])  # [[-0.5]]
    """
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        biases = convert_to_tensor(biases, name="biases")
        return bias_add(_matmul(x, weights), biases, name=scope)


def relu_layer(x: Tensor, weights: Tensor, biases: Tensor, name: str | None = None) -> Tensor:
    """``relu(matmul(x, weights) + biases)``: [n, k] and [k, m] and [m] give [n, m].

    One hidden layer with weights of one's own; ``tf.layers.dense`` makes them.

        tf.nn.relu_layer([[1.0, 2.0]], [[1.0], [-1.0]], [0.5])  # [[0.0]]
    """
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        biases = convert_to_tensor(biases, name="biases")
        return apply_op("Relu", bias_add(_matmul(x, weights), biases), name=scope)
