"""Transposed convolutions of ``tf.nn``: the gradient of a convolution as an operation."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import OpDef
from headrace.core.scopes import name_scope
from headrace.core.seeds import counted_with
from headrace.core.tensor import Tensor
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn.convolution import _as_2d, _channel_index
from headrace.ops.nn.nn_common import cast, deprecated, expand, sequence_of, squeeze

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = [
    "atrous_conv2d_transpose",
    "conv1d_transpose",
    "conv2d_transpose",
    "conv2d_transpose_v2",
    "conv3d_transpose",
    "conv3d_transpose_v2",
    "conv_transpose",
    "deconv2d",
]


# transposed -------------------------------------------------------------------------------------


def _transposed(
    opdef: OpDef,
    n: int,
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object,
    data_format: str,
    dilations: object,
    name: str | None,
) -> Tensor:
    at = _channel_index(data_format, n)
    return apply(
        opdef,
        _shape_tensor(output_shape),
        filters,
        input,
        strides=sequence_of(strides, n, at, "strides"),
        padding=padding,
        data_format=data_format,
        dilations=sequence_of(dilations, n, at, "dilations"),
        name=name,
    )


def _shape_tensor(shape: object) -> Tensor:
    """An output shape as an int32 tensor; a list may mix numbers, dimensions and tensors."""
    if isinstance(shape, (list, tuple)) and any(isinstance(d, Tensor) for d in shape):
        return apply_op("Pack", [cast(d, dtypes.int32) for d in shape], name="output_shape")
    tensor = (
        convert_to_tensor(shape, name="output_shape") if not isinstance(shape, Tensor) else shape
    )
    return cast(tensor, dtypes.int32)


def conv2d_transpose(
    value: object = None,
    filter: object = None,
    output_shape: ShapeLike | None = None,
    strides: TensorLike | None = None,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: object = None,
    filters: object = None,
    dilations: object = None,
) -> Tensor:
    """The gradient of conv2d as a layer ("deconvolution"); filters are (height, width, out, in).

    ``value`` is [batch, height, width, in]; ``output_shape`` is the whole shape of the result: for
    "SAME" padding sizes up to ``strides`` times the input's. ``strides`` is one number, [rows,
    columns] or four numbers. ``input``, ``filters`` are the newer names of ``value``, ``filter``.
    """
    value = deprecated("input", input, "value", value)
    filter = deprecated("filters", filters, "filter", filter)
    return conv2d_transpose_v2(
        value, filter, output_shape, strides, padding, data_format, dilations, name
    )


def conv2d_transpose_v2(
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv2d`` as a layer: pictures become larger by ``strides``.

    ``filters`` is [height, width, out channels, in channels], ``output_shape`` the whole result's
    shape.
    """
    with name_scope(name, "conv2d_transpose", [input, filters]) as scope:
        return _transposed(
            nn_conv.CONV2D_BACKPROP_INPUT,
            2,
            input,
            filters,
            output_shape,
            strides,
            padding,
            data_format or "NHWC",
            dilations,
            scope,
        )


#: The name before TF 1.0.
deconv2d = conv2d_transpose


def conv3d_transpose(
    value: object,
    filter: object = None,
    output_shape: ShapeLike | None = None,
    strides: TensorLike | None = None,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: object = None,
    filters: object = None,
    dilations: object = None,
) -> Tensor:
    """The gradient of ``conv3d`` as a layer; see ``conv2d_transpose``.

    The filter is [depth, height, width, out channels, in channels].
    """
    filter = deprecated("filters", filters, "filter", filter)
    value = deprecated("input", input, "value", value)
    return conv3d_transpose_v2(
        value, filter, output_shape, strides, padding, data_format, dilations, name
    )


def conv3d_transpose_v2(
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object = "SAME",
    data_format: str | None = "NDHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv3d`` as a layer; see ``conv2d_transpose``.

    ``input`` is [batch, depth, height, width, in], ``filters`` [depth, height, width, out, in], and
    ``output_shape`` the whole shape of the result. ``data_format`` "NCDHW" has channels second.
    """
    with name_scope(name, "conv3d_transpose", [input, filters]) as scope:
        return _transposed(
            nn_conv.CONV3D_BACKPROP_INPUT,
            3,
            input,
            filters,
            output_shape,
            strides,
            padding,
            data_format or "NDHWC",
            dilations,
            scope,
        )


@counted_with(-5)  # TF has no slices of a known output shape
def conv1d_transpose(
    input: Tensor,
    filters: Tensor,
    output_shape: object,
    strides: int,
    padding: object = "SAME",
    data_format: str | None = "NWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv1d`` as a layer; see ``conv2d_transpose``.

    ``filters`` is [width, out channels, in channels].
    """
    with name_scope(name, "conv1d_transpose", [input, filters]) as scope:
        data_format, axis = _as_2d(data_format)
        at = _channel_index(data_format, 1)
        shape = _shape_tensor(output_shape)
        head = apply_op("Slice", shape, [0], [axis])
        tail = apply_op("Slice", shape, [axis], [-1])
        result = apply(
            nn_conv.CONV2D_BACKPROP_INPUT,
            apply_op("ConcatV2", [head, [1], tail], 0),
            expand(filters, 0),
            expand(input, axis),
            strides=[1, *sequence_of(strides, 1, at, "stride")],
            padding=padding,
            data_format=data_format,
            dilations=[1, *sequence_of(dilations, 1, at, "dilations")],
            name=scope,
        )
        return squeeze(result, [axis])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: object,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """The transposed convolution in as many dimensions as the output shape has.

    ``output_shape`` has 3, 4 or 5 numbers, batch and channels among them; ``filters`` is
    [spatial..., out, in]. ``strides`` and ``dilations`` are one number or one per spatial
    dimension.
    """
    with name_scope(name, "conv_transpose", [input, filters]) as scope:
        if not isinstance(output_shape, (Tensor, Sized)):
            raise ValueError("output_shape must be a tensor or sized collection.")
        shape = output_shape._shape if isinstance(output_shape, Tensor) else (len(output_shape),)
        if not shape or shape[0] is None:
            raise ValueError("output_shape must have a known number of dimensions.")
        n = shape[0] - 2
        if n not in (1, 2, 3):
            raise ValueError(f"output_shape must be of length 3, 4 or 5 but was {n + 2}.")
        function = (conv1d_transpose, conv2d_transpose_v2, conv3d_transpose_v2)[n - 1]
        return function(
            input, filters, output_shape, strides, padding, data_format, dilations, scope
        )


@counted_with(7)  # TF pads and crops blocks
def atrous_conv2d_transpose(
    value: TensorLike,
    filters: Tensor,
    output_shape: TensorLike,
    rate: int,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The transpose of ``atrous_conv2d``: the gradient of the dilated convolution as a layer.

    ``filters`` is [height, width, out channels, in channels] with ``rate - 1`` zeros between its
    values; ``output_shape`` is the shape of the result, ``padding`` "SAME" or "VALID".
    """
    with name_scope(name, "atrous_conv2d_transpose", [value, filters]):
        if rate < 1:
            raise ValueError(f"rate {rate} cannot be less than one")
        return _transposed(
            nn_conv.CONV2D_BACKPROP_INPUT,
            2,
            value,
            filters,
            output_shape,
            1,
            padding,
            "NHWC",
            rate,
            None,
        )
