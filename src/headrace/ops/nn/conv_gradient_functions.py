"""``tf.nn.conv2d_backprop_input`` and its like: the gradients of convolutions, to be called.

>>> dx = conv2d_backprop_input([1, 8, 8, 3], filters, dy, [1, 1, 1, 1], "SAME")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.build import apply
from headrace.core.tensor import Tensor
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn.convolution import _padding
from headrace.ops.nn.nn_common import deprecated

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
]


def conv2d_backprop_input(
    input_sizes: TensorLike,
    filter: Tensor | None = None,
    out_backprop: TensorLike | None = None,
    strides: TensorLike | None = None,
    padding: str | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
    filters: object = None,
) -> Tensor:
    """The gradient of ``conv2d`` for its input, which has the shape ``input_sizes``.

    ``filter`` and the other arguments are those of the convolution; ``out_backprop`` is the
    gradient of its result. ``filters`` is another name of ``filter``. ``strides`` and ``dilations``
    are [1, s, s, 1] for NHWC; ``padding`` is "SAME" or "VALID". ``use_cudnn_on_gpu`` has no effect,
    as on a CPU in TensorFlow.
    """
    filter = deprecated("filters", filters, "filter", filter)
    padding, explicit = _padding(padding)
    return apply(
        nn_conv.CONV2D_BACKPROP_INPUT,
        input_sizes,
        filter,
        out_backprop,
        strides=strides,
        padding=padding,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        explicit_paddings=explicit,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: TensorLike,
    padding: str,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv2d`` for its filter, which has the shape ``filter_sizes``.

    ``input`` and the other arguments are those of the convolution; ``out_backprop`` is the gradient
    of its result. ``strides`` and ``dilations`` are [1, s, s, 1] for NHWC; ``padding`` is "SAME" or
    "VALID". ``use_cudnn_on_gpu`` has no effect, as on a CPU in TensorFlow.
    """
    padding, explicit = _padding(padding)
    return apply(
        nn_conv.CONV2D_BACKPROP_FILTER,
        input,
        filter_sizes,
        out_backprop,
        strides=strides,
        padding=padding,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        explicit_paddings=explicit,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )


def conv3d_backprop_filter_v2(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str = "NDHWC",
    dilations: TensorLike = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv3d`` for its filter, which has the shape ``filter_sizes``.

    ``out_backprop`` is the gradient of the convolution's result; ``strides`` and ``dilations`` have
    five numbers, the first and the last of which are 1.
    """
    return apply(
        nn_conv.CONV3D_BACKPROP_FILTER,
        input,
        filter_sizes,
        out_backprop,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )


conv3d_backprop_filter = conv3d_backprop_filter_v2


def depthwise_conv2d_native_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``depthwise_conv2d`` for its input, which has the shape ``input_sizes``.

    ``out_backprop`` is the gradient of the convolution's result; ``strides`` and ``dilations`` are
    [1, s, s, 1] for NHWC.
    """
    return apply(
        nn_conv.DEPTHWISE_BACKPROP_INPUT,
        input_sizes,
        filter,
        out_backprop,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )


def depthwise_conv2d_native_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``depthwise_conv2d`` for its filter, which has the shape ``filter_sizes``.

    ``out_backprop`` is the gradient of the convolution's result; ``strides`` and ``dilations`` are
    [1, s, s, 1] for NHWC.
    """
    return apply(
        nn_conv.DEPTHWISE_BACKPROP_FILTER,
        input,
        filter_sizes,
        out_backprop,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )
