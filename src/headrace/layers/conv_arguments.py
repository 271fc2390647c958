"""Arguments that convolutions and pooling share.

Sizes per dimension, padding, data formats, lengths of outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = [
    "conv_input_length",
    "conv_output_length",
    "convert_data_format",
    "deconv_output_length",
    "normalize_data_format",
    "normalize_padding",
    "normalize_tuple",
]


def convert_data_format(data_format: str, ndim: int) -> str:
    """``channels_last`` and ``channels_first`` in the letters of the ops: NHWC, NCHW, …"""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("Invalid data_format:", data_format)
    if not 3 <= ndim <= 5:
        raise ValueError("Input rank not supported:", ndim)
    space = "DHW"[5 - ndim :]
    return f"N{space}C" if data_format == "channels_last" else f"NC{space}"


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """A number or n numbers as a tuple of n numbers."""
    if isinstance(value, int):
        return (value,) * n
    message = f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
    try:
        values = tuple(value)
    except TypeError:
        raise ValueError(message) from None
    if len(values) != n:
        raise ValueError(message)
    for single in values:
        try:
            int(single)
        except (ValueError, TypeError):
            raise ValueError(
                f"{message} including element {single} of type {type(single)}"
            ) from None
    return values


def normalize_data_format(value: str | None) -> str:
    data_format = "channels_last" if value is None else value.lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", "channels_last". '
            f"Received: {value}"
        )
    return data_format


def normalize_padding(value: str) -> str:
    if isinstance(value, (list, tuple)):
        return value
    padding = value.lower()
    if padding not in ("valid", "same", "causal"):
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or '
            '"causal", only for `Conv1D). '
            f"Received: {padding}"
        )
    return padding


def _dilated(filter_size: int, dilation: int) -> int:
    return filter_size + (filter_size - 1) * (dilation - 1)


def conv_output_length(
    input_length: Any, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> Any:
    """The length of a convolution's output; None stays None."""
    if input_length is None:
        return None
    more = {
        "valid": 1 - _dilated(filter_size, dilation),
        "full": _dilated(filter_size, dilation) - 1,
    }
    return (input_length + more.get(padding, 0) + stride - 1) // stride


def conv_input_length(output_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """The length of an input whose convolution has this length; None stays None."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def deconv_output_length(
    input_length: Tensor,
    filter_size: int,
    padding: str,
    output_padding: int | None = None,
    stride: int = 0,
    dilation: int = 1,
) -> Tensor | int:
    """The length of a transposed convolution's output, for a number or a scalar tensor."""
    if input_length is None:
        return None
    filter_size = _dilated(filter_size, dilation)
    if output_padding is not None:
        pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
        return (input_length - 1) * stride + filter_size - 2 * pad + output_padding
    length = input_length * stride
    if padding == "valid":
        length = length + max(filter_size - stride, 0)
    elif padding == "full":
        length = length - (stride + filter_size - 2)
    return length
