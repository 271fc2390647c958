"""Transposed convolutions ("deconvolutions"): layers that enlarge images and volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.graph import get_default_graph
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, call_layer, constructor_arguments
from headrace.layers.conv import ConvCore
from headrace.layers.conv_arguments import (
    convert_data_format,
    deconv_output_length,
    normalize_tuple,
)
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.array_shape import transpose
from headrace.ops.array.joining import stack
from headrace.ops.nn.bias import bias_add
from headrace.ops.nn.conv_transposed_functions import atrous_conv2d_transpose
from headrace.ops.nn.conv_transposed_functions import conv2d_transpose as nn_conv2d_transpose
from headrace.ops.nn.conv_transposed_functions import conv3d_transpose as nn_conv3d_transpose
from headrace.variables.initializers import zeros_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = [
    "Conv2DTranspose",
    "Conv2DTransposeCore",
    "Conv3DTranspose",
    "Conv3DTransposeCore",
    "conv2d_transpose",
    "conv3d_transpose",
]


class _TransposedCore(ConvCore):
    """What 2-D and 3-D have in common; kernels are (…, filters, input channels)."""

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: object,
        strides: object = 1,
        padding: object = "valid",
        output_padding: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank, filters, kernel_size, strides, padding, **kwargs)
        self.output_padding = None
        if output_padding is not None:
            self.output_padding = normalize_tuple(output_padding, rank, "output_padding")
            if any(o >= s for o, s in zip(self.output_padding, self.strides)):
                raise ValueError(
                    f"Stride {self.strides} must be greater than output padding "
                    f"{self.output_padding}"
                )

    def build(self, input_shape: Any) -> None:
        shape = TensorShape(input_shape)
        if len(shape) != self.rank + 2:
            raise ValueError(
                f"Inputs should have rank {self.rank + 2}. Received input shape: {shape}"
            )
        channels = self._input_channels(shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self._channel_axis: channels})
        self._add_kernel((*self.kernel_size, self.filters, channels))
        self._add_bias()
        self.built = True

    def _lengths(self, space: list[Any]) -> list[Any]:
        pads = self.output_padding or (None,) * self.rank
        return [
            deconv_output_length(n, k, self.padding, p, s, d)
            for n, k, p, s, d in zip(
                space, self.kernel_size, pads, self.strides, self.dilation_rate
            )
        ]

    def _full_output_shape(self, batch: int | Tensor | None, space: list[Any]) -> list[Any]:
        if self.data_format == "channels_first":
            return [batch, self.filters, *space]
        return [batch, *space, self.filters]

    def call(self, inputs: Tensor) -> Tensor:
        have = shape_of(inputs)
        first = 2 if self.data_format == "channels_first" else 1
        batch = have[0]
        space = [have[first + i] for i in range(self.rank)]
        outputs = self._transposed(
            inputs, stack(self._full_output_shape(batch, self._lengths(space)))
        )
        if not get_default_graph()._is_eager:
            outputs.set_shape(self.compute_output_shape(inputs.shape))
        if self.use_bias:
            outputs = bias_add(
                outputs, self.bias, data_format=convert_data_format(self.data_format, ndim=4)
            )
        return self._activated(outputs)

    def _transposed(self, inputs: Tensor, output_shape: object) -> Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        first = 2 if self.data_format == "channels_first" else 1
        return TensorShape(
            self._full_output_shape(sizes[0], self._lengths(sizes[first : first + self.rank]))
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_padding": self.output_padding}


class Conv2DTransposeCore(_TransposedCore):
    """A transposed convolution over images, without variable scopes."""

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: object
    ) -> None:
        super().__init__(2, filters, kernel_size, strides, **kwargs)

    def _transposed(self, inputs: Tensor, output_shape: Any) -> Tensor:
        first, dilated = self.data_format == "channels_first", self.dilation_rate != (1, 1)
        padding = self.padding.upper()
        if first:  # TF's CPU kernels know NHWC alone; its layers transpose around them
            inputs = transpose(inputs, (0, 2, 3, 1))
            output_shape = stack(
                [output_shape[0], output_shape[2], output_shape[3], output_shape[1]]
            )
        else:
            output_shape[
                0
            ]  # TF looks at it too, and random seeds follow from the number of operations
        if dilated:
            result = atrous_conv2d_transpose(
                inputs, self.kernel, output_shape, self.dilation_rate[0], padding
            )
        else:
            result = nn_conv2d_transpose(
                inputs, self.kernel, output_shape, (1, *self.strides, 1), padding
            )
        return transpose(result, (0, 3, 1, 2)) if first else result


class Conv3DTransposeCore(_TransposedCore):
    """A transposed convolution over volumes, without variable scopes."""

    def __init__(
        self, filters: int, kernel_size: object, strides: object = 1, **kwargs: object
    ) -> None:
        super().__init__(3, filters, kernel_size, strides, **kwargs)

    def _transposed(self, inputs: Tensor, output_shape: Any) -> Tensor:
        first = self.data_format == "channels_first"
        strides = (1, 1, *self.strides) if first else (1, *self.strides, 1)
        return nn_conv3d_transpose(
            inputs,
            self.kernel,
            output_shape,
            strides,
            self.padding.upper(),
            data_format=convert_data_format(self.data_format, ndim=5),
        )


class Conv2DTranspose(Conv2DTransposeCore, Layer):
    """A transposed convolution: pictures become larger by ``strides``.

    With padding "valid" a size n becomes (n - 1) * stride + kernel (or n * stride if the kernel is
    smaller), with "same" n * stride. The kernel is [height, width, filters, channels].

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


def conv2d_transpose(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Callable[..., Any] | None = None,
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
    """A transposed convolution ("deconvolution") over images: they become larger by ``strides``.

    With padding "valid" a size n becomes (n - 1) * stride + kernel (n * stride if the kernel is
    smaller), with "same" n * stride. ``filters`` is the number of output channels. The variables
    are ``kernel`` [height, width, filters, channels] and ``bias``.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """
    return call_layer(Conv2DTranspose, locals())


class Conv3DTranspose(Conv3DTransposeCore, Layer):
    """A transposed convolution over volumes; see ``Conv2DTranspose``.

    The kernel is [depth, height, width, filters, channels].

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
        strides: object = (1, 1, 1),
        padding: object = "valid",
        data_format: str = "channels_last",
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


def conv3d_transpose(
    inputs: TensorLike,
    filters: int,
    kernel_size: TensorLike,
    strides: TensorLike = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
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
    """A transposed convolution over volumes [batch, depth, height, width, channels].

    The functional form of ``Conv3DTranspose``; a second call with ``reuse=True`` shares its
    variables.

    ``…_initializer`` make the variables' first values (None: that of the variable scope, else
    Glorot uniform for kernels). A ``…_regularizer`` takes a variable, ``activity_regularizer`` the
    output; the loss that each gives is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``. A
    ``…_constraint`` maps a variable to what it is after each update. ``activation=None`` is linear;
    ``use_bias=False`` leaves the bias out; ``trainable=False`` keeps the variables out of
    ``tf.trainable_variables()``.

    ``kernel_size`` and ``strides`` are one number or one for each dimension; ``padding`` is "valid"
    or "same"; ``data_format`` "channels_last" (the default) or "channels_first".
    """
    return call_layer(Conv3DTranspose, locals())
