"""``tf.nn.conv2d`` and everything else that users call to convolve.

``convolution``, ``atrous_conv2d`` and dilated depthwise and separable convolutions put the dilation
into the op's ``dilations`` attribute; TensorFlow wraps them in SpaceToBatchND / BatchToSpaceND,
which gives the same numbers.

    >>> y = conv2d(images, filters, strides=[1, 2, 2, 1], padding="SAME")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import infer
from headrace.core.build import apply
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn.nn_common import deprecated, expand, rank_of, sequence_of, squeeze

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "atrous_conv2d",
    "conv1d",
    "conv1d_v2",
    "conv2d",
    "conv2d_v2",
    "conv3d",
    "conv3d_v2",
    "convolution",
    "convolution_v2",
    "depthwise_conv2d",
    "depthwise_conv2d_native",
    "depthwise_conv2d_v2",
    "separable_conv2d",
    "separable_conv2d_v2",
]


def _padding(padding: object) -> tuple[Any, list[int]]:
    """ "SAME", "VALID", or a pair per dimension."""
    if padding == "EXPLICIT":
        raise ValueError(
            '"EXPLICIT" is not a valid value for the padding parameter. To use explicit '
            "padding, the padding "
            "parameter must be a list."
        )
    if not isinstance(padding, (list, tuple)):
        return padding, []
    if len(padding) != 4:
        raise ValueError(
            f"When padding is a list, it must be of size 4. Got padding of size: {len(padding)}"
        )
    for i, pair in enumerate(padding):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(
                "When padding is a list, each element of padding must be a list/tuple of size 2. "
                f"Element with index {i} of padding is {pair!r}"
            )
    return "EXPLICIT", [p for pair in padding for p in pair]


def _channel_index(data_format: str, n: int) -> int:
    return 1 if data_format.startswith("NC") else n + 1


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: TensorLike | None = None,
    padding: TensorLike | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: object = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Convolve images (n, height, width, in) with filters (height, width, in, out).

    ``strides`` is [1, rows, columns, 1]; ``padding`` "SAME" keeps the size (divided by the stride),
    "VALID" pads nothing, a list of pairs says how much. ``data_format`` "NCHW" has channels second.
    ``dilations`` spreads the filter. ``input`` is computed in the type it has: float16, bfloat16,
    float32 or float64.

        tf.nn.conv2d(images, filters, strides=[1, 2, 2, 1], padding="SAME")
    """
    filter = deprecated("filters", filters, "filter", filter)
    data_format = data_format or "NHWC"
    at = _channel_index(data_format, 2)
    padding, explicit = _padding(padding)
    return apply(
        nn_conv.CONV2D,
        input,
        filter,
        strides=sequence_of(strides, 2, at, "strides"),
        padding=padding,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        explicit_paddings=explicit,
        data_format=data_format,
        dilations=sequence_of(dilations, 2, at, "dilations"),
        name=name,
    )


def conv2d_v2(
    input: TensorLike,
    filters: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NHWC",
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.conv2d``, with TF 2's arguments; strides may be one number.

    ``input`` is [batch, height, width, in] and ``filters`` [height, width, in, out]; ``strides``
    and ``dilations`` are one number, two or four. ``padding`` is "SAME", "VALID" or a list of
    pairs, ``data_format`` "NHWC" or "NCHW".
    """
    return conv2d(input, filters, strides, padding, True, data_format, dilations, name)


def conv3d(
    input: TensorLike,
    filter: object = None,
    strides: TensorLike | None = None,
    padding: object = None,
    data_format: str | None = "NDHWC",
    dilations: object = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: object = None,
) -> Tensor:
    """Convolve volumes (n, depth, height, width, in) with filters (depth, height, width, in, out).

    ``strides`` and ``dilations`` have five numbers, the first and the last of which are 1.
    ``padding`` is "SAME" or "VALID".
    """
    filter = deprecated("filters", filters, "filter", filter)
    return apply(
        nn_conv.CONV3D,
        input,
        filter,
        strides=strides,
        padding=padding,
        data_format=data_format or "NDHWC",
        dilations=(1, 1, 1, 1, 1) if dilations is None else dilations,
        name=name,
    )


def conv3d_v2(
    input: TensorLike,
    filters: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str | None = "NDHWC",
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.conv3d``, with TF 2's arguments.

    ``input`` is [batch, depth, height, width, in] and ``filters`` [depth, height, width, in, out];
    ``strides`` and ``dilations`` have five numbers. ``padding`` is "SAME" or "VALID".
    """
    return conv3d(input, filters, strides, padding, data_format, dilations, name)


def _as_2d(data_format: str | None) -> tuple[str, int]:
    """A 1-D data format as the 2-D one, and the axis that is added."""
    if data_format in (None, "NWC", "NHWC"):
        return "NHWC", 1
    if data_format in ("NCW", "NCHW"):
        return "NCHW", 2
    raise ValueError('data_format must be "NWC" or "NCW".')


def conv1d(
    value: object = None,
    filters: TensorLike | None = None,
    stride: TensorLike | None = None,
    padding: object = None,
    use_cudnn_on_gpu: object = None,
    data_format: str | None = None,
    name: str | None = None,
    input: object = None,
    dilations: TensorLike | None = None,
) -> Tensor:
    """Convolve sequences (n, width, in) with filters (width, in, out).

    ``stride`` is one number, ``padding`` "SAME" or "VALID", ``data_format`` "NWC" or "NCW". The
    operation is a Conv2D of height 1, as in TF. ``value`` is the old name of ``input``.

    ``use_cudnn_on_gpu`` has no effect, as on a CPU in TensorFlow.
    """
    value = deprecated("input", input, "value", value)
    with name_scope(name, "conv1d", [value, filters]) as scope:
        data_format, axis = _as_2d(data_format)
        at = _channel_index(data_format, 1)
        result = apply(
            nn_conv.CONV2D,
            expand(value, axis),
            expand(filters, 0),
            strides=[1, *sequence_of(stride, 1, at, "stride")],
            padding=padding,
            data_format=data_format,
            dilations=[1, *sequence_of(dilations, 1, at, "dilations")],
            name=scope,
        )
        return squeeze(result, [axis])


def conv1d_v2(
    input: TensorLike,
    filters: TensorLike,
    stride: TensorLike,
    padding: TensorLike,
    data_format: str | None = "NWC",
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.conv1d``, with TF 2's arguments.

    ``input`` is [batch, width, in] and ``filters`` [width, in, out]; ``stride`` and ``dilations``
    are numbers. ``padding`` is "SAME" or "VALID", ``data_format`` "NWC" or "NCW".
    """
    return conv1d(input, filters, stride, padding, True, data_format, name, dilations=dilations)


# any number of dimensions, dilated --------------------------------------------------------------


def convolution(
    input: TensorLike,
    filter: TensorLike,
    padding: Any,
    strides: TensorLike | None = None,
    dilation_rate: object = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: object = None,
    dilations: object = None,
) -> Tensor:
    """A convolution in one, two or three dimensions, by the rank of the input.

    Filters are (spatial…, in, out). ``strides`` and ``dilation_rate`` have a number per spatial
    dimension; only one of them may be larger than 1. ``padding`` is "SAME" or "VALID".
    """
    filter = deprecated("filters", filters, "filter", filter)
    dilation_rate = deprecated("dilations", dilations, "dilation_rate", dilation_rate)
    input = convert_to_tensor(input, name="input")
    if not isinstance(filter, Tensor):
        filter = convert_to_tensor(filter, input._dtype._base, name="filter")
    rank = rank_of(input) or rank_of(filter)
    if rank is None:
        raise ValueError("rank of input or filter must be known")
    n = rank - 2
    if not 1 <= n <= 3:
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {rank}.")
    data_format = data_format or ("NWC", "NHWC", "NDHWC")[n - 1]
    at = _channel_index(data_format, n)
    strides = sequence_of(strides, n, at, "strides")
    rates = sequence_of(dilation_rate, n, at, "dilations")
    if any(s > 1 for s in strides) and any(r > 1 for r in rates):
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    with name_scope(name, "convolution", [input, filter]) as scope:
        if n == 1:
            return conv1d(
                input,
                filter,
                strides,
                padding,
                data_format=data_format,
                name=scope,
                dilations=rates,
            )
        function = conv2d_v2 if n == 2 else conv3d_v2
        if max(rates) > 1:
            _count_dilation(input, rates)
        return function(input, filter, strides, padding, data_format, rates, scope)


def convolution_v2(
    input: TensorLike,
    filters: TensorLike,
    strides: TensorLike | None = None,
    padding: TensorLike = "VALID",
    data_format: str | None = None,
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.convolution``, with TF 2's arguments.

    One, two or three spatial dimensions by the rank of ``input``; ``strides`` and ``dilations`` are
    one number or one per spatial dimension, and only one of them may be above 1. ``padding`` has a
    default here, "VALID".
    """
    return convolution(input, filters, padding, strides, dilations, name, data_format)


def atrous_conv2d(
    value: Tensor, filters: Tensor, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """A convolution whose filter has ``rate - 1`` zeros between its values (dilated).

    The same as ``conv2d`` with ``dilations=[1, rate, rate, 1]`` and strides of 1.

    ``filters`` is [height, width, in, out]; ``padding`` is "SAME" or "VALID".
    """
    if np.max(rate) > 1 and padding not in ("SAME", "VALID"):
        raise ValueError(f"Invalid padding method {padding}")
    return convolution(
        value, filters, padding, dilation_rate=np.broadcast_to(rate, (2,)).tolist(), name=name
    )


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: TensorLike,
    padding: object,
    data_format: str | None = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """A filter of its own for each channel: filters (height, width, in, multiplier).

    Output channel ``k * multiplier + q`` comes from input channel k. ``strides`` is [1, s, s, 1];
    ``padding`` "SAME" or "VALID".
    """
    return apply(
        nn_conv.DEPTHWISE,
        input,
        filter,
        strides=strides,
        padding=padding,
        data_format=data_format or "NHWC",
        dilations=dilations,
        name=name,
    )


def _rates(rate: Any, data_format: str) -> list[int]:
    """A dilation per dimension of the array."""
    if isinstance(rate, Tensor):
        rate = infer.static_value(rate)
        if rate is None:
            raise ValueError("The dilation rate must be known while the graph is built.")
    pair = [int(r) for r in np.broadcast_to(1 if rate is None else rate, (2,))]
    if min(pair) < 1:
        raise ValueError("dilation_rate must be positive")
    return [1, 1, *pair] if data_format.startswith("NC") else [1, *pair, 1]


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: TensorLike,
    padding: object,
    rate: object = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: object = None,
) -> Tensor:
    """Every channel convolved with filters of its own.

    ``filter`` is [height, width, channels, multiplier]; the result has channels * multiplier
    channels. With a ``rate`` (dilation) above 1 all strides must be 1.
    """
    rate = deprecated("dilations", dilations, "rate", rate)
    data_format = data_format or "NHWC"
    with name_scope(name, "depthwise", [input, filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        filter = convert_to_tensor(filter, name="filter_in")
        rates = _rates(rate, data_format)
        _count_dilation(input, rates)
        return depthwise_conv2d_native(input, filter, strides, padding, data_format, rates, scope)


def depthwise_conv2d_v2(
    input: TensorLike,
    filter: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str | None = None,
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.depthwise_conv2d``; ``dilations`` is its ``rate``.

    ``input`` is [batch, height, width, channels] and ``filter`` [height, width, channels,
    multiplier]; the result has channels * multiplier channels. ``strides`` has four numbers, which
    are 1 where ``dilations`` (two numbers) are above 1.
    """
    return depthwise_conv2d(input, filter, strides, padding, dilations, name, data_format)


def _count_dilation(input: Tensor, rates: Sequence[int]) -> None:
    """TF brings a dilated convolution about by moving space to batch and back."""
    count_more(input._op.graph, 12 if max(rates) > 1 else 2)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: TensorLike,
    padding: object,
    rate: object = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: object = None,
) -> Tensor:
    """A filter for each channel, then a 1x1 convolution that mixes the channels.

    ``depthwise_filter`` is (height, width, in, multiplier), ``pointwise_filter`` (1, 1, in *
    multiplier, out). ``strides`` is [1, s, s, 1]; ``rate`` dilates the first convolution.
    """
    rate = deprecated("dilations", dilations, "rate", rate)
    data_format = data_format or "NHWC"
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        shape = pointwise_filter.shape.with_rank(4)
        shape[0].assert_is_compatible_with(1)
        shape[1].assert_is_compatible_with(1)
        rates = _rates(rate, data_format)
        _count_dilation(input, rates)
        middle = depthwise_conv2d_native(
            input, depthwise_filter, strides, padding, data_format, rates, "depthwise"
        )
        return conv2d(
            middle, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format, name=scope
        )


def separable_conv2d_v2(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: TensorLike,
    padding: TensorLike,
    data_format: str | None = None,
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of ``tf.nn.separable_conv2d``; ``dilations`` is its ``rate``.

    ``depthwise_filter`` is [height, width, channels, multiplier], ``pointwise_filter`` [1, 1,
    channels * multiplier, out]. ``strides`` has four numbers.
    """
    return separable_conv2d(
        input, depthwise_filter, pointwise_filter, strides, padding, dilations, name, data_format
    )
