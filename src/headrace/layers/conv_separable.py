"""Separable convolutions.

Each channel by itself, then a convolution of width 1 that mixes the channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, call_layer, constructor_arguments
from headrace.layers.conv import ConvCore
from headrace.layers.conv_arguments import convert_data_format
from headrace.layers.identifiers import (
    get_constraint,
    get_initializer,
    get_regularizer,
    serialize_object,
)
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.array_shape import expand_dims, squeeze
from headrace.ops.array.padding import pad
from headrace.ops.nn.bias import bias_add
from headrace.ops.nn.convolution import separable_conv2d as nn_separable_conv2d
from headrace.variables.initializers import zeros_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "SeparableConv1D",
    "SeparableConv1DCore",
    "SeparableConv2D",
    "SeparableConv2DCore",
    "separable_conv1d",
    "separable_conv2d",
]


class _SeparableCore(ConvCore):
    """What 1-D and 2-D have in common.

    The variables ``depthwise_kernel``, ``pointwise_kernel`` and ``bias``.
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: object,
        strides: object = 1,
        depth_multiplier: int = 1,
        depthwise_initializer: object = "glorot_uniform",
        pointwise_initializer: object = "glorot_uniform",
        depthwise_regularizer: object = None,
        pointwise_regularizer: object = None,
        depthwise_constraint: object = None,
        pointwise_constraint: object = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank, filters, kernel_size, strides, **kwargs)
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = get_initializer(depthwise_initializer)
        self.pointwise_initializer = get_initializer(pointwise_initializer)
        self.depthwise_regularizer = get_regularizer(depthwise_regularizer)
        self.pointwise_regularizer = get_regularizer(pointwise_regularizer)
        self.depthwise_constraint = get_constraint(depthwise_constraint)
        self.pointwise_constraint = get_constraint(pointwise_constraint)

    def build(self, input_shape: Any) -> None:
        channels = self._input_channels(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self._channel_axis: channels})
        self.depthwise_kernel = self.add_weight(
            name="depthwise_kernel",
            shape=(*self.kernel_size, channels, self.depth_multiplier),
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
            trainable=True,
            dtype=self.dtype,
        )
        self.pointwise_kernel = self.add_weight(
            name="pointwise_kernel",
            shape=(*(1,) * self.rank, self.depth_multiplier * channels, self.filters),
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
            trainable=True,
            dtype=self.dtype,
        )
        self._add_bias()
        self.built = True

    def _separable(
        self, inputs: TensorLike, depthwise: TensorLike, pointwise: TensorLike, rate: Sequence[int]
    ) -> Tensor:
        strides = self.strides * 2 if self.rank == 1 else self.strides
        last = self.data_format == "channels_last"
        data_format = convert_data_format(self.data_format, ndim=4)
        outputs = nn_separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            strides=(1, *strides, 1) if last else (1, 1, *strides),
            padding=self._op_padding,
            rate=rate,
            data_format=data_format,
        )
        if self.use_bias:
            outputs = bias_add(outputs, self.bias, data_format=data_format)
        return outputs

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["depth_multiplier"] = self.depth_multiplier
        for kind in ("initializer", "regularizer", "constraint"):
            del config[f"kernel_{kind}"]
            for part in ("depthwise", "pointwise"):
                config[f"{part}_{kind}"] = serialize_object(getattr(self, f"{part}_{kind}"))
        return config


class SeparableConv1DCore(_SeparableCore):
    """A separable convolution over sequences, without variable scopes."""

    _causal = True

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: Any
    ) -> None:
        super().__init__(1, filters, kernel_size, strides, **kwargs)

    def call(self, inputs: Any) -> Tensor:
        if self.padding == "causal":
            inputs = pad(inputs, self._compute_causal_padding())
        axis = 1 if self.data_format == "channels_last" else 2
        outputs = self._separable(
            expand_dims(inputs, axis),
            expand_dims(self.depthwise_kernel, 0),
            expand_dims(self.pointwise_kernel, 0),
            (1, *self.dilation_rate),
        )
        return self._activated(squeeze(outputs, [axis]))


class SeparableConv2DCore(_SeparableCore):
    """A separable convolution over images, without variable scopes."""

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: Any
    ) -> None:
        super().__init__(2, filters, kernel_size, strides, **kwargs)

    def call(self, inputs: Any) -> Tensor:
        outputs = self._separable(
            inputs, self.depthwise_kernel, self.pointwise_kernel, self.dilation_rate
        )
        return self._activated(outputs)


class SeparableConv1D(SeparableConv1DCore, Layer):
    """A depthwise convolution of each channel, then a mix of channels, over sequences.

    The kernels are [width, channels, depth_multiplier] and [1, channels * depth_multiplier,
    filters].

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: object = 1,
        padding: object = "valid",
        data_format: str = "channels_last",
        dilation_rate: object = 1,
        depth_multiplier: int = 1,
        activation: object = None,
        use_bias: bool = True,
        depthwise_initializer: object = None,
        pointwise_initializer: object = None,
        bias_initializer: object = zeros_initializer(),
        depthwise_regularizer: object = None,
        pointwise_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        depthwise_constraint: object = None,
        pointwise_constraint: object = None,
        bias_constraint: object = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**constructor_arguments(locals()))


def separable_conv1d(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: TensorLike = 1,
    depth_multiplier: int = 1,
    activation: object = None,
    use_bias: bool = True,
    depthwise_initializer: object = None,
    pointwise_initializer: object = None,
    bias_initializer: object = zeros_initializer(),
    depthwise_regularizer: object = None,
    pointwise_regularizer: object = None,
    bias_regularizer: object = None,
    activity_regularizer: object = None,
    depthwise_constraint: object = None,
    pointwise_constraint: object = None,
    bias_constraint: object = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: object = None,
) -> Tensor:
    """A convolution of each channel by itself, then one that mixes them: over sequences, the second
    one of width 1.

    ``depth_multiplier`` is how many channels the first makes of each, ``filters`` how many come
    out. The variables are ``depthwise_kernel``, ``pointwise_kernel`` and ``bias``. The other
    arguments are those of ``tf.layers.conv1d``.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """
    return call_layer(SeparableConv1D, locals())


class SeparableConv2D(SeparableConv2DCore, Layer):
    """A depthwise convolution of each channel, then a mix of channels, over pictures.

    The kernels are [height, width, channels, depth_multiplier] and [1, 1, channels *
    depth_multiplier, filters].

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: object = (1, 1),
        padding: object = "valid",
        data_format: str = "channels_last",
        dilation_rate: object = (1, 1),
        depth_multiplier: int = 1,
        activation: object = None,
        use_bias: bool = True,
        depthwise_initializer: object = None,
        pointwise_initializer: object = None,
        bias_initializer: object = zeros_initializer(),
        depthwise_regularizer: object = None,
        pointwise_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        depthwise_constraint: object = None,
        pointwise_constraint: object = None,
        bias_constraint: object = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**constructor_arguments(locals()))


def separable_conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: TensorLike = (1, 1),
    depth_multiplier: int = 1,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    depthwise_initializer: object = None,
    pointwise_initializer: object = None,
    bias_initializer: object = zeros_initializer(),
    depthwise_regularizer: object = None,
    pointwise_regularizer: object = None,
    bias_regularizer: object = None,
    activity_regularizer: object = None,
    depthwise_constraint: object = None,
    pointwise_constraint: object = None,
    bias_constraint: object = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: object = None,
) -> Tensor:
    """A convolution of each channel by itself, then one that mixes them: over images, the second
    one 1x1.

    ``depth_multiplier`` is how many channels the first makes of each, ``filters`` how many come
    out. The variables are ``depthwise_kernel``, ``pointwise_kernel`` and ``bias``. The other
    arguments are those of ``tf.layers.conv2d``.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """
    return call_layer(SeparableConv2D, locals())
