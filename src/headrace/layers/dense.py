"""Fully connected layers: ``activation(inputs · kernel + bias)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.core.shapes import TensorShape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, call_layer, constructor_arguments
from headrace.layers.core_layer import FLOATX, CoreLayer
from headrace.layers.identifiers import (
    get_activation,
    get_constraint,
    get_initializer,
    get_regularizer,
    serialize_activation,
    serialize_object,
)
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.casting import cast
from headrace.ops.linalg.contraction import tensordot
from headrace.ops.nn.bias import bias_add
from headrace.ops.sparse.sparse_tensor import SparseTensor, sparse_tensor_dense_matmul
from headrace.variables.initializers import zeros_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = ["Dense", "DenseCore", "FullyConnected", "dense", "fully_connected"]


class DenseCore(CoreLayer):
    """A dense layer without variable scopes. Input (..., n) gives (..., units)."""

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: object = "zeros",
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        kernel_constraint: object = None,
        bias_constraint: object = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "input_dim" in kwargs:
            kwargs["input_shape"] = (kwargs.pop("input_dim"),)
        super().__init__(activity_regularizer=get_regularizer(activity_regularizer), **kwargs)
        self.units = int(units)
        self.activation = get_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = get_initializer(kernel_initializer)
        self.bias_initializer = get_initializer(bias_initializer)
        self.kernel_regularizer = get_regularizer(kernel_regularizer)
        self.bias_regularizer = get_regularizer(bias_regularizer)
        self.kernel_constraint = get_constraint(kernel_constraint)
        self.bias_constraint = get_constraint(bias_constraint)
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        dtype = dtypes.as_dtype(self.dtype or FLOATX)
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {dtype}")
        size = dimension_value(TensorShape(input_shape)[-1])
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to `Dense` should be defined. Found `None`."
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel",
            shape=[size, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            dtype=self.dtype,
            trainable=True,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                dtype=self.dtype,
                trainable=True,
            )
        self.built = True

    def call(self, inputs: Any) -> Tensor:
        rank = len(inputs.shape)
        if rank > 2:
            outputs = tensordot(inputs, self.kernel, [[rank - 1], [0]])
            if not get_default_graph()._is_eager:
                outputs.set_shape([*inputs.shape.as_list()[:-1], self.units])
        elif isinstance(inputs, SparseTensor):
            outputs = sparse_tensor_dense_matmul(inputs, self.kernel)
        else:
            dtype = self._compute_dtype or inputs.dtype
            outputs = apply_op("MatMul", cast(inputs, dtype), self.kernel)
        if self.use_bias:
            outputs = bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        shape = TensorShape(input_shape).with_rank_at_least(2)
        if dimension_value(shape[-1]) is None:
            raise ValueError(
                f"The innermost dimension of input_shape must be defined, but saw: {shape}"
            )
        return shape[:-1].concatenate(self.units)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "activation": serialize_activation(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": serialize_object(self.kernel_initializer),
            "bias_initializer": serialize_object(self.bias_initializer),
            "kernel_regularizer": serialize_object(self.kernel_regularizer),
            "bias_regularizer": serialize_object(self.bias_regularizer),
            "activity_regularizer": serialize_object(self.activity_regularizer),
            "kernel_constraint": serialize_object(self.kernel_constraint),
            "bias_constraint": serialize_object(self.bias_constraint),
        }


class Dense(DenseCore, Layer):
    """A fully connected layer: ``activation(inputs @ kernel + bias)`` over the last dimension.

    ``units`` is the size of the result's last dimension. The kernel is [inputs, units] under the
    name ``kernel``; without an initializer it is Glorot uniform, the bias is zeros. A rank above 2
    is allowed: leading dimensions stay.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.
    """

    def __init__(
        self,
        units: int,
        activation: object = None,
        use_bias: bool = True,
        kernel_initializer: object = None,
        bias_initializer: object = zeros_initializer(),
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        kernel_constraint: object = None,
        bias_constraint: object = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**constructor_arguments(locals()))


def dense(
    inputs: TensorLike,
    units: int,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: object = None,
    bias_initializer: object = zeros_initializer(),
    kernel_regularizer: Callable[..., Any] | None = None,
    bias_regularizer: Callable[..., Any] | None = None,
    activity_regularizer: Callable[..., Any] | None = None,
    kernel_constraint: object = None,
    bias_constraint: object = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:
    """A fully connected layer: ``activation(inputs · kernel + bias)`` over the last dimension.

    The new variables are ``<name>/kernel`` [inputs, units] and ``<name>/bias`` (unless
    ``use_bias=False``). Leading dimensions stay. A second call with the same ``name`` and
    ``reuse=True`` shares the variables.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

        logits = tf.layers.dense(x, 10)
        h = tf.layers.dense(x, 64, activation=tf.nn.relu)
    """
    return call_layer(Dense, locals())


FullyConnected = Dense
fully_connected = dense
