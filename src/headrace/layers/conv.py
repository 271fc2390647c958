"""Convolutional layers over sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.seeds import count_more
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, call_layer, constructor_arguments
from headrace.layers.conv_arguments import (
    conv_output_length,
    convert_data_format,
    normalize_data_format,
    normalize_padding,
    normalize_tuple,
)
from headrace.layers.core_layer import CoreLayer
from headrace.layers.identifiers import (
    get_activation,
    get_constraint,
    get_initializer,
    get_regularizer,
    serialize_activation,
    serialize_object,
)
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.padding import pad
from headrace.ops.nn.bias import bias_add
from headrace.ops.nn.convolution import conv1d as nn_conv1d
from headrace.ops.nn.convolution import conv2d as nn_conv2d
from headrace.ops.nn.convolution import conv3d as nn_conv3d
from headrace.variables.initializers import zeros_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import InitializerLike, ShapeLike, TensorLike

__all__ = [
    "Conv1D",
    "Conv1DCore",
    "Conv2D",
    "Conv2DCore",
    "Conv3D",
    "Conv3DCore",
    "ConvCore",
    "conv1d",
    "conv2d",
    "conv3d",
]

#: Operations that TF adds for a dilated convolution (space to batch and back) and Headrace does not
#: need.
_DILATION_OPS = {"VALID": 10, "SAME": 11}


class ConvCore(CoreLayer):
    """A convolution over ``rank`` dimensions; the base of all convolutional layers."""

    _causal = False  # whether padding="causal" is possible

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: object,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: object = 1,
        activation: Callable[..., Any] | None = None,
        use_bias: bool = True,
        kernel_initializer: object = "glorot_uniform",
        bias_initializer: object = "zeros",
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        kernel_constraint: object = None,
        bias_constraint: object = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable,
            name=name,
            activity_regularizer=get_regularizer(activity_regularizer),
            **kwargs,
        )
        self.activation = get_activation(activation)
        self.rank = rank
        self.filters = filters
        self.kernel_size = normalize_tuple(kernel_size, rank, "kernel_size")
        self.strides = normalize_tuple(strides, rank, "strides")
        self.padding = normalize_padding(padding)
        if self.padding == "causal" and not self._causal:
            raise ValueError("Causal padding is only supported for `Conv1D`and ``SeparableConv1D`.")
        self.data_format = normalize_data_format(data_format)
        self.dilation_rate = normalize_tuple(dilation_rate, rank, "dilation_rate")
        self.use_bias = use_bias
        self.kernel_initializer = get_initializer(kernel_initializer)
        self.bias_initializer = get_initializer(bias_initializer)
        self.kernel_regularizer = get_regularizer(kernel_regularizer)
        self.bias_regularizer = get_regularizer(bias_regularizer)
        self.kernel_constraint = get_constraint(kernel_constraint)
        self.bias_constraint = get_constraint(bias_constraint)
        self.input_spec = InputSpec(ndim=rank + 2)

    @property
    def _channel_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def _input_channels(self, input_shape: object) -> int:
        channels = TensorShape(input_shape).as_list()[self._channel_axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        return int(channels)

    def _add_kernel(self, shape: tuple[int, ...]) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=shape,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            trainable=True,
            dtype=self.dtype,
        )

    def _add_bias(self) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.filters,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                trainable=True,
                dtype=self.dtype,
            )

    def build(self, input_shape: Any) -> None:
        channels = self._input_channels(input_shape)
        self._add_kernel((*self.kernel_size, channels, self.filters))
        self._add_bias()
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self._channel_axis: channels})
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        # TF's graph has it, and random seeds follow from the number of operations
        convert_to_tensor(list(self.dilation_rate), dtypes.int32, name="dilation_rate")
        self.built = True

    @property
    def _op_padding(self) -> str:
        if isinstance(self.padding, str):
            return "VALID" if self.padding == "causal" else self.padding.upper()
        return self.padding

    def _convolve(self, inputs: Tensor) -> Tensor:
        data_format = convert_data_format(self.data_format, self.rank + 2)
        if max(self.dilation_rate) > 1:
            count_more(inputs.graph, _DILATION_OPS.get(self._op_padding, 0))
        if self.rank == 1:
            return nn_conv1d(
                inputs,
                self.kernel,
                self.strides[0],
                self._op_padding,
                data_format=data_format,
                dilations=self.dilation_rate[0],
            )
        convolution: Callable[..., Tensor] = nn_conv2d if self.rank == 2 else nn_conv3d
        at = 1 if self.data_format == "channels_first" else self.rank + 1
        strides, rates = [1, *self.strides], [1, *self.dilation_rate]
        strides.insert(at, 1)
        rates.insert(at, 1)
        return convolution(
            inputs, self.kernel, strides, self._op_padding, data_format=data_format, dilations=rates
        )

    def call(self, inputs: Any) -> Tensor:
        return self._activated(self._biased(self._convolve(inputs)))

    def _biased(self, outputs: Tensor) -> Tensor:
        if not self.use_bias:
            return outputs
        assert self.bias is not None
        if self.data_format == "channels_last":
            return bias_add(outputs, self.bias, data_format="NHWC")
        if self.rank == 1:
            bias = reshape(self.bias, (1, self.filters, 1))
            return outputs + bias
        return bias_add(outputs, self.bias, data_format="NCHW")

    def _activated(self, outputs: Tensor) -> Tensor:
        activated: Tensor = outputs if self.activation is None else self.activation(outputs)
        return activated

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        last = self.data_format == "channels_last"
        space = sizes[1:-1] if last else sizes[2:]
        after = [
            conv_output_length(n, k, self.padding, s, d)
            for n, k, s, d in zip(space, self.kernel_size, self.strides, self.dilation_rate)
        ]
        return TensorShape(
            [sizes[0], *after, self.filters] if last else [sizes[0], self.filters, *after]
        )

    def get_config(self) -> dict[str, Any]:
        plain = (
            "filters",
            "kernel_size",
            "strides",
            "padding",
            "data_format",
            "dilation_rate",
            "use_bias",
        )
        objects = (
            "kernel_initializer",
            "bias_initializer",
            "kernel_regularizer",
            "bias_regularizer",
            "activity_regularizer",
            "kernel_constraint",
            "bias_constraint",
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain},
            "activation": serialize_activation(self.activation),
            **{name: serialize_object(getattr(self, name)) for name in objects},
        }

    def _compute_causal_padding(self) -> list[list[int]]:
        left = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        if self.data_format == "channels_last":
            return [[0, 0], [left, 0], [0, 0]]
        return [[0, 0], [0, 0], [left, 0]]


class Conv1DCore(ConvCore):
    """A convolution over sequences, without variable scopes."""

    _causal = True

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: Any
    ) -> None:
        super().__init__(1, filters, kernel_size, strides, **kwargs)

    def call(self, inputs: TensorLike) -> Tensor:
        if self.padding == "causal":
            inputs = pad(inputs, self._compute_causal_padding())
        return super().call(inputs)


class Conv2DCore(ConvCore):
    """A convolution over images, without variable scopes."""

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: Any
    ) -> None:
        super().__init__(2, filters, kernel_size, strides, **kwargs)


class Conv3DCore(ConvCore):
    """A convolution over volumes, without variable scopes."""

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: Any
    ) -> None:
        super().__init__(3, filters, kernel_size, strides, **kwargs)


class Conv1D(Conv1DCore, Layer):
    """The layer behind ``tf.layers.conv1d``: a convolution over sequences (batch, length,
    channels).

    It makes its variables at the first call and shares them among all calls. ``filters`` is the
    number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate`` are one number;
    ``padding`` is "valid" or "same".

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: object = 1,
        padding: object = "valid",
        data_format: str = "channels_last",
        dilation_rate: object = 1,
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


def conv1d(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: TensorLike = 1,
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
    reuse: object = None,
) -> Tensor:
    """A convolution over sequences (batch, length, channels), with new variables ``kernel`` and
    ``bias``.

    ``filters`` is the number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate``
    are one number (strides and dilation cannot both be above 1); ``padding`` is "valid" or "same";
    ``data_format`` "channels_first" has channels second. A second call with the same ``name`` and
    ``reuse=True`` shares the variables.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

        h = tf.layers.conv1d(x, 32, 8, padding="same", activation=tf.nn.relu)
    """
    return call_layer(Conv1D, locals())


class Conv2D(Conv2DCore, Layer):
    """The layer behind ``tf.layers.conv2d``: a convolution over images (batch, height, width,
    channels).

    It makes its variables at the first call and shares them among all calls. ``filters`` is the
    number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate`` are one number or
    a pair; ``padding`` is "valid" or "same".

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: object = (1, 1),
        padding: object = "valid",
        data_format: str = "channels_last",
        dilation_rate: object = (1, 1),
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


def conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: TensorLike = (1, 1),
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: InitializerLike | None = None,
    bias_initializer: InitializerLike | None = zeros_initializer(),
    kernel_regularizer: object = None,
    bias_regularizer: object = None,
    activity_regularizer: object = None,
    kernel_constraint: object = None,
    bias_constraint: object = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: object = None,
) -> Tensor:
    """A convolution over images (batch, height, width, channels), with new variables ``kernel`` and
    ``bias``.

    ``filters`` is the number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate``
    are one number or a pair (strides and dilation cannot both be above 1); ``padding`` is "valid"
    or "same"; ``data_format`` "channels_first" has channels second. A second call with the same
    ``name`` and ``reuse=True`` shares the variables.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

        h = tf.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)
    """
    return call_layer(Conv2D, locals())


class Conv3D(Conv3DCore, Layer):
    """The layer behind ``tf.layers.conv3d``: a convolution over volumes (batch, depth, height,
    width, channels).

    It makes its variables at the first call and shares them among all calls. ``filters`` is the
    number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate`` are one number or
    three; ``padding`` is "valid" or "same".

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: object = (1, 1, 1),
        padding: object = "valid",
        data_format: str = "channels_last",
        dilation_rate: object = (1, 1, 1),
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


def conv3d(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: TensorLike = (1, 1, 1),
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
    reuse: object = None,
) -> Tensor:
    """A convolution over volumes (batch, depth, height, width, channels), with new variables
    ``kernel`` and ``bias``.

    ``filters`` is the number of output channels; ``kernel_size``, ``strides`` and ``dilation_rate``
    are one number or three (strides and dilation cannot both be above 1); ``padding`` is "valid" or
    "same"; ``data_format`` "channels_first" has channels second. A second call with the same
    ``name`` and ``reuse=True`` shares the variables.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

        h = tf.layers.conv3d(x, 32, 3, padding="same", activation=tf.nn.relu)
    """
    return call_layer(Conv3D, locals())
