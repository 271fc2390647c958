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
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import shapes
from headrace.core.build import apply
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.tensor import Operation
from headrace.kernels.numpy import im2col, windowed
from headrace.kernels.numpy.im2col import Geometry
from headrace.ops.nn.conv_shapes import (
    Attrs,
    channels_first,
    check_conv_attrs,
    check_reach,
    conv_shape,
    depthwise_shape,
    explicit_pads,
    filter_grad_shape,
    input_grad_shape,
    spatial,
)
from headrace.ops.nn.nn_common import shape_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__: list[str] = []

Grads = list[Any]

# geometry ---------------------------------------------------------------------------------------


def to_last(x: Any, first: bool) -> Any:
    """Channels-last, as a view."""
    return x.transpose(0, *range(2, x.ndim), 1) if first else x


def from_last(x: Array, first: bool) -> Array:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1)) if first else x


def _last_shape(shape: Array, first: bool) -> tuple[int, ...]:
    whole = tuple(int(d) for d in shape)
    return (whole[0], *whole[2:], whole[1]) if first else whole


def _geometry(attrs: Attrs, size: Sequence[int], kernel: Sequence[int]) -> Geometry:
    """Where the windows lie; ``size`` and ``kernel`` are the spatial extents."""
    first = channels_first(attrs)
    found = im2col.geometry(
        tuple(size),
        tuple(kernel),
        spatial(attrs["strides"], first),
        spatial(attrs["dilations"], first),
        attrs["padding"],
        explicit_pads(attrs, first),
    )
    if not all(found.out) and (all(size) or attrs["padding"] == "VALID"):
        check_reach(found)
    return found


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
        raise errors.UnimplementedError(
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
    shape=conv_shape,
    kernel=_conv_kernel,
    grad=_2D.grad,
    check_attrs=check_conv_attrs,
    layer=True,
    role="conv2d",
    packed_as="_PackedConv2D",
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
    shape=conv_shape,
    kernel=_fused_conv_kernel,
    grad=NOT_DIFFERENTIABLE,
    check_attrs=check_conv_attrs,
    layer=True,
    role="conv2d",
    packed_as="_PackedConv2D",
    packed_from=256,
)
CONV2D_BACKPROP_INPUT = _2D.by_input = define(
    "Conv2DBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T -> output: T; " + ATTRS_2D,
    shape=input_grad_shape,
    kernel=_input_grad_kernel,
    grad=_2D.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
CONV2D_BACKPROP_FILTER = _2D.by_filter = define(
    "Conv2DBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + ATTRS_2D,
    shape=filter_grad_shape,
    kernel=_filter_grad_kernel,
    grad=_2D.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
DEPTHWISE = _DEPTHWISE.forward = define(
    "DepthwiseConv2dNative",
    "input: T, filter: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=depthwise_shape,
    kernel=_depthwise_kernel,
    grad=_DEPTHWISE.grad,
    role="conv2d",
    check_attrs=check_conv_attrs,
)
DEPTHWISE_BACKPROP_INPUT = _DEPTHWISE.by_input = define(
    "DepthwiseConv2dNativeBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=input_grad_shape,
    kernel=_depthwise_input_grad_kernel,
    grad=_DEPTHWISE.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
DEPTHWISE_BACKPROP_FILTER = _DEPTHWISE.by_filter = define(
    "DepthwiseConv2dNativeBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + _ATTRS_DEPTHWISE,
    shape=filter_grad_shape,
    kernel=_depthwise_filter_grad_kernel,
    grad=_DEPTHWISE.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
CONV3D = _3D.forward = define(
    "Conv3D",
    "input: T, filter: T -> output: T; " + _ATTRS_3D,
    shape=conv_shape,
    kernel=_conv_kernel,
    grad=_3D.grad,
    check_attrs=check_conv_attrs,
)
CONV3D_BACKPROP_INPUT = _3D.by_input = define(
    "Conv3DBackpropInputV2",
    "input_sizes: Tshape, filter: T, out_backprop: T -> output: T; "
    + _ATTRS_3D
    + ", Tshape: type(index)=int32",
    shape=input_grad_shape,
    kernel=_input_grad_kernel,
    grad=_3D.input_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(0,),
)
CONV3D_BACKPROP_FILTER = _3D.by_filter = define(
    "Conv3DBackpropFilterV2",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T; " + _ATTRS_3D,
    shape=filter_grad_shape,
    kernel=_filter_grad_kernel,
    grad=_3D.filter_grad_grad,
    check_attrs=check_conv_attrs,
    known_inputs=(1,),
)
