"""Pooling functions of ``tf.nn``: the largest or the mean value of each window.

pool_ops.py defines the ops. Any axis but the batch may be pooled, so NCHW needs no transposition.

    >>> y = max_pool(images, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply, apply_named, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import OpDef
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.nn.nn_common import (
    deprecated,
    expand,
    rank_of,
    sequence_of,
    shape_of,
    squeeze,
)
from headrace.ops.nn.pool_ops import AVG_POOL, AVG_POOL3D, MAX_POOL, MAX_POOL3D, MAX_POOL_ARGMAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, DTypeLike, TensorLike

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "max_pool_with_argmax_v2",
    "pool",
    "pool_v2",
]

# what users call --------------------------------------------------------------------------------


def _pool_nd(
    opdef: OpDef,
    n: int,
    x: TensorLike,
    ksize: object,
    strides: object,
    padding: str,
    data_format: str,
    name: str | None,
) -> Tensor:
    at = 1 if data_format.startswith("NC") else n + 1
    return apply(
        opdef,
        x,
        ksize=sequence_of(ksize, n, at, "ksize"),
        strides=sequence_of(strides, n, at, "strides"),
        padding=padding,
        data_format=data_format,
        name=name,
    )


def max_pool(
    value: Array | Tensor,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """The largest element of each window of a batch of pictures.

    ``ksize`` and ``strides`` are [1, height, width, 1] for NHWC. Padding "SAME" gives ceil(size /
    stride), "VALID" only windows that lie inside.
    """
    value = deprecated("input", input, "value", value)
    return _pool_nd(MAX_POOL, 2, value, ksize, strides, padding, data_format or "NHWC", name)


def max_pool2d(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of a batch of pictures.

    ``ksize`` and ``strides`` are one number, two (height, width) or four.

    ``padding`` "SAME" gives ceil(size / stride) windows, "VALID" only those that lie inside.
    ``data_format`` is "NHWC" or "NCHW".
    """
    return _pool_nd(
        MAX_POOL, 2, input, ksize, strides, padding, data_format or "NHWC", name or "MaxPool2d"
    )


def max_pool3d(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of [batch, depth, height, width, channels].

    ``ksize`` and ``strides`` are one number, or a list of one, three or five. ``padding`` "SAME"
    gives ceil(size / stride) windows, "VALID" only those that lie inside. ``data_format`` is
    "NDHWC" or "NCDHW".
    """
    return _pool_nd(MAX_POOL3D, 3, input, ksize, strides, padding, data_format or "NDHWC", name)


def avg_pool(
    value: Array | Tensor,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """The mean of each window of images [n, height, width, channels].

    ``ksize`` and ``strides`` are [1, rows, columns, 1]. With padding "SAME" the mean is over the
    elements that are inside the image.

        tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    """
    value = deprecated("input", input, "value", value)
    return _pool_nd(AVG_POOL, 2, value, ksize, strides, padding, data_format or "NHWC", name)


def avg_pool2d(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """The mean of each window of a batch of pictures; see ``tf.nn.avg_pool``.

    ``value`` (newer: ``input``) is [batch, height, width, channels]; ``ksize`` and ``strides`` are
    one number, two or four. ``padding`` is "SAME" (padded pixels do not count) or "VALID",
    ``data_format`` "NHWC" or "NCHW".
    """
    return avg_pool(value, ksize, strides, padding, data_format, name, input)


def avg_pool3d(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of [batch, depth, height, width, channels].

    ``ksize`` and ``strides`` are one number, or a list of one, three or five. ``padding`` "SAME"
    gives ceil(size / stride) windows, "VALID" only those that lie inside. ``data_format`` is
    "NDHWC" or "NCDHW".
    """
    return _pool_nd(AVG_POOL3D, 3, input, ksize, strides, padding, data_format or "NDHWC", name)


def _pool1d(
    opdef: OpDef,
    default: str,
    input: TensorLike,
    ksize: object,
    strides: object,
    padding: str,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    data_format = data_format or "NWC"
    at = 1 if data_format.startswith("NC") else 2
    axis = 2 if at == 1 else 1
    with name_scope(name, default, [input]) as scope:
        result = apply(
            opdef,
            expand(input, axis),
            ksize=[1, *sequence_of(ksize, 1, at, "ksize")],
            strides=[1, *sequence_of(strides, 1, at, "strides")],
            padding=padding,
            data_format="NCHW" if at == 1 else "NHWC",
            name=scope,
        )
        return squeeze(result, [axis])


def max_pool1d(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of [batch, width, channels].

    ``ksize`` and ``strides`` are one number, or a list of one or three. ``padding`` "SAME" gives
    ceil(size / stride) windows, "VALID" only those that lie inside. ``data_format`` is "NWC" or
    "NCW".
    """
    return _pool1d(MAX_POOL, "MaxPool1d", input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: Tensor,
    ksize: object,
    strides: object,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of [batch, width, channels].

    ``ksize`` and ``strides`` are one number, or a list of one or three. ``padding`` "SAME" gives
    ceil(size / stride) windows, "VALID" only those that lie inside. ``data_format`` is "NWC" or
    "NCW".
    """
    return _pool1d(AVG_POOL, "AvgPool1D", input, ksize, strides, padding, data_format, name)


def _by_rank(
    functions: tuple[Callable[..., Tensor], Callable[..., Tensor], Callable[..., Tensor]],
    input: object,
    data_format: str | None,
) -> tuple[Callable[..., Tensor], Tensor]:
    input = convert_to_tensor(input, name="input")
    rank = rank_of(input)
    if rank is None:
        rank = len(data_format) if data_format is not None else None
    if rank is None:
        raise ValueError("The input must have a rank or a data format must be given.")
    if not 3 <= rank <= 5:
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {rank}.")
    return functions[rank - 3], input


def max_pool_v2(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The largest element of each window: 1-D, 2-D or 3-D by the rank of the input.

    ``ksize`` and ``strides`` are one number, or one per spatial dimension; ``padding`` is "SAME" or
    "VALID". ``data_format`` defaults to channels last.

        tf.nn.max_pool_v2([[[1.0], [3.0]]], 2, 2, "VALID")  # [[[3.0]]]
    """
    function, input = _by_rank((max_pool1d, max_pool, max_pool3d), input, data_format)
    return function(input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: object,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window, of one, two or three spatial dimensions by the input's rank.

    ``ksize`` and ``strides`` are one number, or one per spatial dimension. Padded elements ("SAME")
    do not count. ``data_format`` defaults to channels last.

        tf.nn.avg_pool_v2([[[1.0], [3.0]]], 2, 2, "VALID")  # [[[2.0]]]
    """
    function, input = _by_rank((avg_pool1d, avg_pool, avg_pool3d), input, data_format)
    return function(input, ksize, strides, padding, data_format, name)


def max_pool_with_argmax(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str = "NHWC",
    Targmax: object = None,
    name: str | None = None,
    output_dtype: object = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its position.

    Positions are those in the flattened image (row, column, channel) or, with
    ``include_batch_in_index``, in the flattened batch; their type is ``Targmax``.

    ``ksize`` and ``strides`` are [1, height, width, 1]; ``padding`` is "SAME" or "VALID";
    ``data_format`` is "NHWC". ``output_dtype`` is a newer name of ``Targmax``.
    """
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    Targmax = deprecated("output_dtype", output_dtype, "Targmax", Targmax)
    pooled: tuple[Tensor, Tensor] = apply_named(
        MAX_POOL_ARGMAX,
        input,
        ksize=ksize,
        strides=strides,
        padding=padding,
        Targmax=dtypes.int64 if Targmax is None else Targmax,
        include_batch_in_index=include_batch_in_index,
        name=name,
    )
    return pooled


def max_pool_with_argmax_v2(
    input: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest value of each window and its position; see ``max_pool_with_argmax``.

    A position is that in one image, flattened: ``(y * width + x) * channels + channel``, or in the
    whole batch with ``include_batch_in_index``. ``output_dtype`` is its type.
    """
    return max_pool_with_argmax(
        input,
        ksize,
        strides,
        padding,
        data_format,
        output_dtype,
        name,
        None,
        include_batch_in_index,
    )


def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: object = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: object = None,
) -> Tensor:
    """Pooling over windows in one to three spatial dimensions.

    ``window_shape``, ``strides`` and ``dilation_rate`` have a number per spatial dimension; strides
    and dilation cannot be combined, and dilation needs padding "VALID". ``pooling_type`` is "AVG"
    or "MAX".
    """
    rate = deprecated("dilations", dilations, "dilation_rate", dilation_rate)
    n = len(window_shape)
    if not 1 <= n <= 3:
        raise ValueError("It is required that 1 <= num_spatial_dims <= 3.")
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"{n}-D {pooling_type} pooling is not supported.")
    strides = [1] * n if strides is None else [int(s) for s in strides]
    rates = [1] * n if rate is None else [int(r) for r in rate]
    _check_pool(n, window_shape, padding, strides, rates)
    functions = (
        (max_pool1d, max_pool, max_pool3d)
        if pooling_type == "MAX"
        else (avg_pool1d, avg_pool, avg_pool3d)
    )
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        count_more(input._op.graph, 1)  # the dilation rate
        if max(rates) > 1:
            return _dilated_pool(functions[n - 1], input, window_shape, rates, data_format)
        return functions[n - 1](input, list(window_shape), strides, padding, data_format, scope)


def _check_pool(
    n: int, window_shape: Sequence[int], padding: str, strides: list[int], rates: list[int]
) -> None:
    for label, values in (("dilation_rate", rates), ("strides", strides)):
        if len(values) != n:
            raise ValueError(f"len({label})={len(values)} but should be {n}")
        if min(values) < 1:
            raise ValueError(f"all values of {label} must be positive")
    if max(strides) > 1 and max(rates) > 1:
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    if padding == "SAME" and max(rates) > 1:
        raise ValueError("pooling with SAME padding is not implemented for dilation_rate > 1")
    if any(s > w for s, w in zip(strides, window_shape)):
        raise ValueError(
            "strides > window_shape not supported due to inconsistency between CPU and "
            "GPU implementations"
        )


def _dilated_pool(
    function: Callable[..., Any],
    x: Tensor,
    window_shape: Sequence[int],
    rates: list[int],
    data_format: str | None,
) -> Tensor:
    """Every rate-th element is put into a batch of its own, where a dilated window is a plain
    one.
    """
    first = data_format is not None and data_format.startswith("NC")
    start, n = (2 if first else 1), len(rates)
    sizes = apply_op("Slice", shape_of(x), [start], [n])
    ends = apply_op("FloorMod", apply_op("Neg", sizes), np.array(rates, np.int32))
    margins = apply_op("Pack", [np.zeros(n, np.int32), ends], axis=1)
    block = np.array(rates, np.int32)
    if first:  # the channel dimension takes part with a block of 1
        block = np.array([1, *rates], np.int32)
        margins = apply_op("ConcatV2", [np.zeros((1, 2), np.int32), margins], 0)
    part = apply_op("SpaceToBatchND", x, block, margins)
    result = function(part, list(window_shape), 1, "VALID", data_format)
    return apply_op("BatchToSpaceND", result, block, margins)


def pool_v2(
    input: TensorLike,
    window_shape: TensorLike,
    pooling_type: str,
    strides: TensorLike | None = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Pooling over any number of dimensions.

    See ``tf.nn.pool``, whose arguments stand in another order.
    """
    return pool(input, window_shape, pooling_type, padding, dilations, strides, name, data_format)
