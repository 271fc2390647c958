"""Shape rules and checks of the convolution ops (conv_ops.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from headrace import errors
from headrace.core import infer, shapes
from headrace.kernels.numpy import im2col
from headrace.kernels.numpy.im2col import Geometry

__all__ = [
    "Attrs",
    "channels_first",
    "check_conv_attrs",
    "check_reach",
    "check_windows",
    "conv_shape",
    "depthwise_shape",
    "explicit_pads",
    "filter_grad_shape",
    "input_grad_shape",
    "spatial",
    "window_dim",
]

Attrs = dict[str, Any]


def channels_first(attrs: Attrs) -> bool:
    return str(attrs["data_format"]).startswith("NC")


def spatial(values: Sequence[Any], first: bool) -> tuple[Any, ...]:
    """The spatial part of something with an entry per dimension."""
    return tuple(values[2:] if first else values[1:-1])


def explicit_pads(attrs: Attrs, first: bool) -> im2col.Pads:
    flat = attrs.get("explicit_paddings") or ()
    return spatial(list(zip(flat[::2], flat[1::2])), first)


def check_reach(g: Geometry) -> None:
    """Refuse a window that is too large for its padded input.

    TensorFlow divides (size - reach + stride) by the stride towards zero: a window that is a little
    too large gives no output, a larger one is refused.
    """
    for size, k, stride, dilation, pads in zip(g.size, g.kernel, g.strides, g.dilations, g.pads):
        reach = (k - 1) * dilation + 1
        if size + sum(pads) - reach + 2 * stride <= 0:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Computed output size would be negative: input size {size}, window size {reach}",
            )


def check_windows(c: infer.Inference, rank: int, explicit_too: bool = True) -> bool:
    """The attributes of a windowed op; returns whether channels come first.

    Explicit paddings of backward operations are checked when they first run.
    """
    padding = c.attr("padding")
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise ValueError(
            f"Attr 'padding' of '{c.op.type}' Op passed string '{padding}' not in: "
            '"SAME", "VALID"'
        )
    for name in ("strides", "dilations", "ksize"):
        values = c.attr(name)
        if values is not None and len(values) != rank:
            raise ValueError(
                f"{c.op.type} requires the {name} attribute to contain {rank} values, but "
                f"got: {len(values)}"
            )
    first = channels_first(c.op._attrs)
    explicit = c.attr("explicit_paddings") or ()
    if padding == "EXPLICIT" and explicit_too:
        _check_explicit(explicit, rank, first)
    return first


def _check_explicit(explicit: Sequence[int], rank: int, first: bool) -> None:
    if len(explicit) != 2 * rank:
        raise ValueError(
            f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(explicit)}"
        )
    if min(explicit) < 0:
        raise ValueError(
            f"All elements of explicit_paddings must be nonnegative, but got {list(explicit)}"
        )
    channel = 1 if first else rank - 1
    if any(explicit[i] for i in (0, 1, 2 * channel, 2 * channel + 1)):
        raise ValueError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported: "
            f"{list(explicit)}"
        )


def window_dim(
    size: int | None, kernel: int | None, stride: int, dilation: int, padding: str, pads: Any
) -> int | None:
    """One output dimension, or None where it is not known."""
    if dilation < 1:
        raise ValueError(f"Dilation rate must be >= 1, but got {dilation}")
    if stride < 1:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if stride > 2**31 - 1:
        raise ValueError(f"Attr strides has value {stride} out of range for an int32")
    if size is None or (kernel is None and padding != "SAME"):
        return None
    if padding != "SAME" and kernel is not None:
        reach = (kernel - 1) * dilation + 1
        if size + sum(pads) < reach:
            raise ValueError(
                f"Negative dimension size caused by subtracting {reach} from {size + sum(pads)}"
            )
    return im2col.out_size(size, kernel or 1, stride, dilation, padding, pads)


def _output_spatial(
    c: infer.Inference, first: bool, size: Sequence[int | None], kernel: Sequence[int | None]
) -> tuple[int | None, ...]:
    a = c.op._attrs
    explicit = a.get("explicit_paddings") or ()
    return _output_dims(first, size, kernel, a["strides"], a["dilations"], a["padding"], explicit)


@lru_cache(
    1024
)  # the layers of a network are few, but built again for each tower and each gradient
def _output_dims(
    first: bool,
    size: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit: Sequence[int],
) -> tuple[int | None, ...]:
    pads = ((0, 0),) * len(size)
    if padding == "EXPLICIT":
        pads = spatial(list(zip(explicit[::2], explicit[1::2])), first)
    steps = zip(size, kernel, spatial(strides, first), spatial(dilations, first), pads)
    return tuple(window_dim(n, k, s, d, padding, p) for n, k, s, d, p in steps)


def check_conv_attrs(attrs: dict[str, Any]) -> None:
    """Strides and dilations are spatial: what TensorFlow's kernels check when they are made."""
    first = attrs["data_format"][1] == "C"
    if attrs["padding"] == "EXPLICIT":
        try:
            _check_explicit(attrs["explicit_paddings"], len(attrs["strides"]), first)
        except ValueError as error:
            raise errors.InvalidArgumentError(None, None, str(error)) from None
    for name in ("strides", "dilations"):
        values = attrs[name]
        if values[0] != 1 or values[1 if first else -1] != 1:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Current implementation does not yet support {name} in the batch and depth "
                "dimensions.",
            )


def _assemble(
    first: bool, batch: int | None, middle: Sequence[int | None], depth: int | None
) -> shapes.Shape:
    return (batch, depth, *middle) if first else (batch, *middle, depth)


def conv_shape(c: infer.Inference) -> list[shapes.Shape]:
    rank = len(c.attr("strides"))
    x, w = c.require_rank(0, rank), c.require_rank(1, rank)
    assert x is not None and w is not None
    first = check_windows(c, rank)
    depth = x[1] if first else x[-1]
    want = w[-2]
    if depth is not None and want is not None and depth != want:
        if want == 0 or depth % want:
            raise ValueError(
                f"Depth of input ({depth}) is not a multiple of input depth of filter ({want})"
            )
        if w[-1] is not None and w[-1] % (depth // want):
            raise ValueError(
                f"Depth of output ({w[-1]}) is not a multiple of the number of groups "
                f"({depth // want})"
            )
    middle = _output_spatial(c, first, spatial(x, first), w[:-2])
    return [_assemble(first, x[0], middle, w[-1])]


def depthwise_shape(c: infer.Inference) -> list[shapes.Shape]:
    x, w = c.require_rank(0, 4), c.require_rank(1, 4)
    assert x is not None and w is not None
    first = check_windows(c, 4)
    depth = x[1] if first else x[-1]
    if depth is not None and w[2] is not None and depth != w[2]:
        raise ValueError(f"Dimensions must be equal, but are {depth} and {w[2]}")
    channels = w[2] if depth is None else depth
    width = None if channels is None or w[3] is None else channels * w[3]
    return [_assemble(first, x[0], _output_spatial(c, first, spatial(x, first), w[:2]), width)]


def _sizes_shape(c: infer.Inference, i: int) -> shapes.Shape:
    rank = len(c.attr("strides"))
    found = c.shape_value(i)
    if found is not None and len(found) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(found)}")
    return (None,) * rank if found is None else found


def input_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    rank = len(c.attr("strides"))
    check_windows(c, rank, explicit_too=False)
    shape, g = _sizes_shape(c, 0), c.shape(2)
    assert shape is not None
    batch = g[0] if shape[0] is None and g is not None and len(g) == rank else shape[0]
    return [(batch, *shape[1:])]


def filter_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    rank = len(c.attr("strides"))
    check_windows(c, rank, explicit_too=False)
    return [_sizes_shape(c, 1)]
