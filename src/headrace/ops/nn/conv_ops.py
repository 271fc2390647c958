"""Convolution ops: Conv2D, Conv3D, DepthwiseConv2dNative, and their gradients by input and by
filter.

The three kinds share their rules; a kind differs in the number of spatial dimensions and in what a
filter's last two dimensions mean. Kernels work channels-last (see
:mod:`headrace.kernels.numpy.im2col`): for NCHW the array is transposed as a view and so is the
result, and element-wise NumPy ops keep that memory order, so a chain of NCHW layers copies nothing.
Another array namespace brings its own ``xp.windows`` with the functions of im2col.

    >>> y = apply(CONV2D, images, filters, strides=[1, 1, 1, 1], padding="SAME")
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.tensor import Operation
from headrace.kernels.numpy import im2col, windowed
from headrace.kernels.numpy.im2col import Geometry
from headrace.ops.nn.nn_common import shape_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__: list[str] = []

Grads = list[Any]
Attrs = dict[str, Any]

# geometry ---------------------------------------------------------------------------------------


def channels_first(attrs: Attrs) -> bool:
    return str(attrs["data_format"]).startswith("NC")


def spatial(values: Sequence[Any], first: bool) -> tuple[Any, ...]:
    """The spatial part of something with an entry per dimension."""
    return tuple(values[2:] if first else values[1:-1])


def to_last(x: Any, first: bool) -> Any:
    """Channels-last, as a view."""
    return x.transpose(0, *range(2, x.ndim), 1) if first else x


def from_last(x: Array, first: bool) -> Array:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1)) if first else x


def _last_shape(shape: Array, first: bool) -> tuple[int, ...]:
    whole = tuple(int(d) for d in shape)
    return (whole[0], *whole[2:], whole[1]) if first else whole


def _explicit(attrs: Attrs, first: bool) -> im2col.Pads:
    flat = attrs.get("explicit_paddings") or ()
    return spatial(list(zip(flat[::2], flat[1::2])), first)


def _geometry(attrs: Attrs, size: Sequence[int], kernel: Sequence[int]) -> Geometry:
    """Where the windows lie; ``size`` and ``kernel`` are the spatial extents."""
    first = channels_first(attrs)
    found = im2col.geometry(
        tuple(size),
        tuple(kernel),
        spatial(attrs["strides"], first),
        spatial(attrs["dilations"], first),
        attrs["padding"],
        _explicit(attrs, first),
    )
    if not all(found.out) and all(size):
        _check_reach(found)
    return found


def _check_reach(g: Geometry) -> None:
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


def library(xp: ArrayNamespace) -> Any:
    """The convolution functions for an array namespace."""
    return windowed if xp.name == "numpy" else xp.windows


# kernels ----------------------------------------------------------------------------------------


def conv_geometry(node: KernelNode, x: Any, w: Array) -> Geometry:
    """For channels-last images."""
    rank = len(node.attrs["strides"])
    if x.ndim != rank or w.ndim != rank:
        what, wrong = ("input", x) if x.ndim != rank else ("filter", w)
        raise errors.InvalidArgumentError(
            None, None, f"{what} must be {rank}-dimensional: {shapes.show(wrong.shape)}"
        )
    if x.shape[-1] != w.shape[-2]:
        raise _depth_error(node.op_type, x.shape[-1], w.shape[-2])
    return _geometry(node.attrs, x.shape[1:-1], w.shape[:-2])


def _conv_kernel(xp: ArrayNamespace, x: object, w: Array, *, node: KernelNode) -> Array:
    first = channels_first(node.attrs)
    x = to_last(x, first)
    return from_last(library(xp).conv(x, w, conv_geometry(node, x, w)), first)


def _fused_conv_kernel(
    xp: ArrayNamespace, x: Array, w: Array, *args: Any, node: KernelNode
) -> Array:
    first = channels_first(node.attrs)
    x = to_last(x, first)
    geometry = conv_geometry(node, x, w)
    bias, add, relu = fused_parts(node, args, first)
    if xp.name == "numpy":
        return from_last(windowed.conv_fused(x, w, geometry, bias, add, relu), first)
    out = library(xp).conv(x, w, geometry)
    for term in (bias, add):
        out = out if term is None else out + term
    return from_last(xp.maximum(out, 0) if relu else out, first)


def fused_parts(node: KernelNode, args: Sequence[TensorLike], first: bool) -> tuple[Any, Any, bool]:
    """What is done to a convolution's result.

    A bias to add, an array to add, whether relu comes last.
    """
    fused, rest = node.attrs["fused_ops"], list(args)
    bias = rest.pop(0) if "BiasAdd" in fused else None
    add = to_last(rest.pop(0), first) if "Add" in fused else None
    return bias, add, "Relu" in fused


def _depth_error(kind: str, have: int, want: int) -> errors.OpError:
    if want and have % want == 0:
        return errors.UnimplementedError(
            None,
            None,
            f"The {kind} op currently does not support grouped convolutions on the CPU. A "
            "grouped convolution was "
            f"attempted to be run because the input depth of {have} does not match the "
            f"filter input depth of {want}",
        )
    return errors.InvalidArgumentError(
        None, None, f"input depth must be evenly divisible by filter depth: {have} vs {want}"
    )


def _input_grad_kernel(
    xp: ArrayNamespace, sizes: Array, w: Array, g: object, *, node: KernelNode
) -> Array:
    first = channels_first(node.attrs)
    _check_ranks(node, filter=w, out_backprop=g)
    shape = _last_shape(sizes, first)
    g = to_last(g, first)
    geometry = _geometry(node.attrs, shape[1:-1], w.shape[:-2])
    _check_backprop(node.op_type, geometry, g, shape[0], w.shape[-1])
    return from_last(library(xp).conv_input_grad(shape, w, g, geometry), first)


def _filter_grad_kernel(
    xp: ArrayNamespace, x: Array, sizes: Array, g: Array, *, node: KernelNode
) -> Any:
    first = channels_first(node.attrs)
    _check_ranks(node, input=x, out_backprop=g)
    shape = tuple(int(d) for d in sizes)
    x, g = to_last(x, first), to_last(g, first)
    geometry = _geometry(node.attrs, x.shape[1:-1], shape[:-2])
    _check_backprop(node.op_type, geometry, g, x.shape[0], shape[-1])
    return library(xp).conv_filter_grad(x, shape, g, geometry)


def _check_ranks(node: KernelNode, **arrays: Any) -> None:
    rank = len(node.attrs["strides"])
    for what, array in arrays.items():
        if array.ndim != rank:
            raise errors.InvalidArgumentError(
                None, None, f"{node.op_type}: {what} must be {rank}-dimensional"
            )


def _check_backprop(kind: str, geometry: Geometry, g: Any, batch: int, depth: int) -> None:
    label = kind.replace("Conv2DBackprop", "Conv2DCustomBackprop")
    if g.shape[0] != batch:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{label}: input and out_backprop must have the same batch size, {batch} vs "
            f"{g.shape[0]}",
        )
    if g.shape[-1] != depth:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{label}: filter and out_backprop must have the same out_depth, {depth} vs "
            f"{g.shape[-1]}",
        )
    for i, (have, want) in enumerate(zip(g.shape[1:-1], geometry.out)):
        if have != want:
            raise errors.InvalidArgumentError(
                None, None, f"{label}: {_size_text(geometry, i, have)}"
            )


def _size_text(g: Geometry, i: int, have: int) -> str:
    return (
        f"Size of out_backprop doesn't match computed: actual = {have}, computed = "
        f"{g.out[i]} spatial_dim: {i + 1} "
        f"input: {g.size[i]} filter: {g.kernel[i]} output: {have} stride: {g.strides[i]} "
        f"dilation: {g.dilations[i]}"
    )


def _depthwise_kernel(xp: ArrayNamespace, x: Array, w: Array, *, node: KernelNode) -> Array:
    first = channels_first(node.attrs)
    if x.ndim != 4 or w.ndim != 4:
        what, wrong = ("input", x) if x.ndim != 4 else ("filter", w)
        raise errors.InvalidArgumentError(
            None, None, f"{what} must be 4-dimensional: {shapes.show(wrong.shape)}"
        )
    steps = node.attrs["strides"]
    if steps[0] != 1 or steps[1 if first else 3] != 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Current implementation does not yet support strides in the batch and depth "
            "dimensions.",
        )
    x = to_last(x, first)
    if x.shape[-1] != w.shape[-2]:
        raise errors.InvalidArgumentError(
            None, None, f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[-2]}"
        )
    geometry = _geometry(node.attrs, x.shape[1:-1], w.shape[:-2])
    return from_last(library(xp).depthwise(x, w, geometry), first)


def _depthwise_input_grad_kernel(
    xp: ArrayNamespace, sizes: Array, w: Array, g: Array, *, node: KernelNode
) -> Array:
    first = channels_first(node.attrs)
    shape = _last_shape(sizes, first)
    g = to_last(g, first)
    geometry = _geometry(node.attrs, shape[1:-1], w.shape[:-2])
    _check_backprop(node.op_type, geometry, g, shape[0], w.shape[-1] * w.shape[-2])
    return from_last(library(xp).depthwise_input_grad(shape, w, g, geometry), first)


def _depthwise_filter_grad_kernel(
    xp: ArrayNamespace, x: Array, sizes: Array, g: Array, *, node: KernelNode
) -> Any:
    first = channels_first(node.attrs)
    shape = tuple(int(d) for d in sizes)
    x, g = to_last(x, first), to_last(g, first)
    geometry = _geometry(node.attrs, x.shape[1:-1], shape[:-2])
    _check_backprop(node.op_type, geometry, g, x.shape[0], shape[-1] * shape[-2])
    return library(xp).depthwise_filter_grad(x, shape, g, geometry)


# shapes -----------------------------------------------------------------------------------------


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


def _conv_shape(c: infer.Inference) -> list[shapes.Shape]:
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


def _depthwise_shape(c: infer.Inference) -> list[shapes.Shape]:
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


def _input_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    rank = len(c.attr("strides"))
    check_windows(c, rank, explicit_too=False)
    shape, g = _sizes_shape(c, 0), c.shape(2)
    assert shape is not None
    batch = g[0] if shape[0] is None and g is not None and len(g) == rank else shape[0]
    return [(batch, *shape[1:])]


def _filter_grad_shape(c: infer.Inference) -> list[shapes.Shape]:
    rank = len(c.attr("strides"))
    check_windows(c, rank, explicit_too=False)
    return [_sizes_shape(c, 1)]


# gradients --------------------------------------------------------------------------------------

_ATTRS = ("strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "data_format", "dilations")


def _same_attrs(op: Operation) -> Attrs:
    return {k: op._attrs[k] for k in _ATTRS if k in op._attrs}


class _Family:
    """A convolution and its two gradient ops, which are each other's gradients."""

    forward: OpDef
    by_input: OpDef
    by_filter: OpDef

    def grad(self, op: Operation, g: TensorLike) -> Grads:
        x, w = op._inputs
        attrs = _same_attrs(op)
        return [
            None if 0 in op._skip else apply(self.by_input, shape_of(x), w, g, **attrs),
            None if 1 in op._skip else apply(self.by_filter, x, shape_of(w), g, **attrs),
        ]

    def input_grad_grad(self, op: Operation, g: Tensor) -> Grads:
        _, w, out = op._inputs
        attrs = _same_attrs(op)
        return [
            None,
            apply(self.by_filter, g, shape_of(w), out, **attrs),
            apply(self.forward, g, w, **attrs),
        ]

    def filter_grad_grad(self, op: Operation, g: Tensor) -> Grads:
        x, _, out = op._inputs
        attrs = _same_attrs(op)
        return [
            apply(self.by_input, shape_of(x), g, out, **attrs),
            None,
            apply(self.forward, x, g, **attrs),
        ]


_2D, _3D, _DEPTHWISE = _Family(), _Family(), _Family()

_T = "T: type(float), strides: list(int), "
ATTRS_2D = _T + (
    "use_cudnn_on_gpu: bool=True, padding: str, explicit_paddings: list(int)=(), "
    "data_format: str='NHWC', "
    "dilations: list(int)=(1, 1, 1, 1)"
)
_ATTRS_DEPTHWISE = _T + "padding: str, data_format: str='NHWC', dilations: list(int)=(1, 1, 1, 1)"
_ATTRS_3D = _T + "padding: str, data_format: str='NDHWC', dilations: list(int)=(1, 1, 1, 1, 1)"

CONV2D = _2D.forward = define(
    "Conv2D",
    "input: T, filter: T -> output: T; " + ATTRS_2D,
    shape=_conv_shape,
    kernel=_conv_kernel,
    grad=_2D.grad,
    check_attrs=check_conv_attrs,
    layer=True,
    role="conv2d",
    packed_as="_HeldConv2D",
    packed_from=256,
)
#: TensorFlow's own fused convolution, which a rewrite makes of a chain: ``fused_ops`` are some of
#: "BiasAdd", "Add" and "Relu", in this order; ``args`` are the bias and the array to add, as far as
#: they are named there.
FUSED_CONV2D = define(
    "_FusedConv2D",
    "input: T, filter: T, args: num_args*T -> output: T; "
    + ATTRS_2D
    + ", fused_ops: list(str)=[], epsilon: float=0.0001",
    shape=_conv_shape,
    kernel=_fused_conv_kernel,
    grad=NOT_DIFFERENTIABLE,
    check_attrs=check_conv_attrs,
    layer=True,
    role="conv2d",
    packed_as="_HeldConv2D",
    packed_from=256,
)
CONV2D_BACKPROP_INPUT = _2D.by_input = define(
    "Conv2DBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T -> output: T; " + ATTRS_2D,
    shape=_input_grad_shape,
    kernel=_input_grad_kernel,
    grad=_2D.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
CONV2D_BACKPROP_FILTER = _2D.by_filter = define(
    "Conv2DBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + ATTRS_2D,
    shape=_filter_grad_shape,
    kernel=_filter_grad_kernel,
    grad=_2D.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
DEPTHWISE = _DEPTHWISE.forward = define(
    "DepthwiseConv2dNative",
    "input: T, filter: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=_depthwise_shape,
    kernel=_depthwise_kernel,
    grad=_DEPTHWISE.grad,
    role="conv2d",
    check_attrs=check_conv_attrs,
)
DEPTHWISE_BACKPROP_INPUT = _DEPTHWISE.by_input = define(
    "DepthwiseConv2dNativeBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=_input_grad_shape,
    kernel=_depthwise_input_grad_kernel,
    grad=_DEPTHWISE.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
DEPTHWISE_BACKPROP_FILTER = _DEPTHWISE.by_filter = define(
    "DepthwiseConv2dNativeBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=_filter_grad_shape,
    kernel=_depthwise_filter_grad_kernel,
    grad=_DEPTHWISE.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
CONV3D = _3D.forward = define(
    "Conv3D",
    "input: T, filter: T -> output: T; " + _ATTRS_3D,
    shape=_conv_shape,
    kernel=_conv_kernel,
    grad=_3D.grad,
    check_attrs=check_conv_attrs,
)
CONV3D_BACKPROP_INPUT = _3D.by_input = define(
    "Conv3DBackpropInputV2",
    "input_sizes: Tshape, filter: T, out_backprop: T -> output: T; "
    + _ATTRS_3D
    + ", Tshape: type(index)=int32",
    shape=_input_grad_shape,
    kernel=_input_grad_kernel,
    grad=_3D.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
CONV3D_BACKPROP_FILTER = _3D.by_filter = define(
    "Conv3DBackpropFilterV2",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + _ATTRS_3D,
    shape=_filter_grad_shape,
    kernel=_filter_grad_kernel,
    grad=_3D.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
