"""Matrix products and convolutions with what is done to their results: bias, scale, activation as
one step.

A product is absorbed only if nothing else uses it. An activation's output may have any number of
users (the backward part of a training step reads it); what it was computed from may not.
"""

from __future__ import annotations

import numpy as np

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_of, same_shape
from headrace.rewrite.rewrite_state import RewriteState

__all__ = [
    "activated_product",
    "bias_before_reshape",
    "conv_activation",
    "conv_bias",
    "conv_sum",
    "conv_scale",
    "even_loss_gradient",
    "matmul_bias",
    "sum_of_products",
]

_SINGLE_OR_DOUBLE = frozenset([dtypes.float32, dtypes.float64])
ELSEWHERE = "the {} is used elsewhere, too (by a gradient, a fetch or another operation)"
WRITTEN = "it reads a variable that is written in this run"


def is_vector(value: int, length: object, state: RewriteState) -> bool:
    """A vector of this (known) length."""
    return length is not None and state.shape(value) == (length,)


def even_loss_gradient(node: Node, state: RewriteState) -> Node | None:
    """The gradient of a mean (or sum) of cross entropies: one scalar times the matrix that the
    forward op left.

    As it is written it is ``expand_dims(broadcast_to(g, shape(loss))) * backprop``. Loss and
    backprop are outputs of one node, so they have the same rows, and the scalar may be multiplied
    directly: the same products, element by element.
    """
    make = state.producers.get
    for i in (0, 1):
        column, backprop = make(node.inputs[i]), make(node.inputs[1 - i])
        if column is None or backprop is None or backprop.opdef.role != "cross entropy":
            continue
        if column.opdef.name not in ("ExpandDims", "Reshape"):
            continue
        if node.inputs[1 - i] != backprop.outputs[1] or state.rank(node.inputs[i]) != 2:
            continue
        scalar = _spread_scalar(column.inputs[0], state)
        rows = dims_of(column.inputs[0], state)
        if scalar is None or rows is None or rows != dims_of(backprop.outputs[0], state):
            continue
        if not _is_column(node.inputs[i], state):
            continue
        return Node(node.opdef, (scalar, backprop.outputs[1]), node.outputs, node.attrs, node.op)
    return None


def _spread_scalar(value: int, state: RewriteState) -> int | None:
    """The scalar that every element of a value is, if it was spread and reshaped."""
    node = state.producers.get(value)
    while node is not None and node.opdef.name == "Reshape":
        node = state.producers.get(node.inputs[0])
    if node is None or node.opdef.name not in ("BroadcastTo", "Fill"):
        return None
    scalar = node.inputs[0 if node.opdef.name == "BroadcastTo" else 1]
    return scalar if state.shape(scalar) == () else None


def _is_column(value: int, state: RewriteState) -> bool:
    shape = state.shape(value)
    return shape is not None and shape[-1] == 1


# matrix products ----------------------------------------------------------------------------------


def matmul_bias(node: Node, state: RewriteState) -> Node | None:
    """A matrix product to which a vector is added becomes one step."""
    if node.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    for i in (0, 1):
        product, bias = state.producer(node.inputs[i], "MatMul"), node.inputs[1 - i]
        if product is None:
            continue
        out = state.values[node.inputs[i]]
        if out.dtype not in _SINGLE_OR_DOUBLE or out.shape is None:
            continue
        if not is_vector(bias, out.shape[1], state):
            continue
        if not state.once(node.inputs[i]):
            return state.no(ELSEWHERE.format("product"))
        inputs = (*product.inputs, bias)
        if not state.mutable.isdisjoint(inputs):
            return state.no(WRITTEN)
        attrs = {**product.attrs, "fused_ops": ("BiasAdd",), "num_args": 1, "epsilon": 0.0}
        return Node(lookup("_FusedMatMul"), inputs, node.outputs, attrs, product.op)
    return None


def bias_before_reshape(node: Node, state: RewriteState) -> Node | None:
    """A bias after a reshape that keeps the last axis (a dense layer over several axes) is added
    before it.
    """
    if node.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    for i in (0, 1):
        reshape, bias = state.producer(node.inputs[i], "Reshape"), node.inputs[1 - i]
        product = None if reshape is None else state.producer(reshape.inputs[0], "MatMul")
        shape = state.shape(node.inputs[i])
        if product is None or reshape is None or not shape or not is_vector(bias, shape[-1], state):
            continue
        inner = state.values[reshape.inputs[0]]
        if inner.dtype not in _SINGLE_OR_DOUBLE or not inner.shape or inner.shape[-1] != shape[-1]:
            continue
        if not state.once(node.inputs[i]) or not state.once(reshape.inputs[0]):
            return state.no(ELSEWHERE.format("product"))
        if not state.mutable.isdisjoint((*product.inputs, *reshape.inputs, bias)):
            return state.no(WRITTEN)
        state.retire(node, reshape)
        moved = state.add(
            "BiasAdd", (reshape.inputs[0], bias), inner.dtype, inner.shape, node.op, T=inner.dtype
        )
        return Node(
            reshape.opdef, (moved, reshape.inputs[1]), node.outputs, reshape.attrs, reshape.op
        )
    return None


def _activation(node: Node, state: RewriteState) -> tuple[str, int] | None:
    """(name in fused_ops, what it is applied to); ``maximum(x, 0)`` is relu."""
    name = node.opdef.name
    if name == "_Gelu":
        return "GeluApproximate" if node.attrs["approximate"] else "GeluExact", node.inputs[0]
    if name != "Maximum":
        return name, node.inputs[0]
    for i in (0, 1):
        zero = state.constants.get(node.inputs[i])
        if zero is not None and zero.ndim == 0 and zero == 0:
            return "Relu", node.inputs[1 - i]
    return None


def activated_product(node: Node, state: RewriteState) -> Node | None:
    """An activation of a product with bias is computed with it, also through a reshape."""
    found = _activation(node, state)
    if found is None:
        return None
    name, source = found
    product = state.producer(source, "_FusedMatMul")
    reshape = None
    if product is None:
        reshape = state.producer(source, "Reshape")
        product = None if reshape is None else state.producer(reshape.inputs[0], "_FusedMatMul")
        if product is None:
            return None
    if len(product.attrs["fused_ops"]) > 1:
        return None
    if not state.once(source) or (reshape is not None and not state.once(reshape.inputs[0])):
        return state.no(ELSEWHERE.format("value before the activation"))
    if not state.mutable.isdisjoint(product.inputs):
        return state.no(WRITTEN)
    attrs = {**product.attrs, "fused_ops": ("BiasAdd", name)}
    if reshape is None:
        return Node(product.opdef, product.inputs, node.outputs, attrs, product.op)
    inner = state.values[product.outputs[0]]
    state.retire(node, reshape, product)
    whole = state.add("_FusedMatMul", product.inputs, inner.dtype, inner.shape, product.op, **attrs)
    return Node(reshape.opdef, (whole, reshape.inputs[1]), node.outputs, reshape.attrs, reshape.op)


# convolutions -------------------------------------------------------------------------------------


def _channels(node: Node, state: RewriteState) -> int | None:
    """Output channels of a channels-last convolution."""
    if node.attrs["data_format"] != "NHWC":
        return None
    shape = state.shape(node.outputs[0])
    return None if shape is None else shape[-1]


def _as_vector(value: int, channels: int, state: RewriteState) -> bool:
    """One number for each channel: [c] or [1, …, 1, c]."""
    shape = state.shape(value)
    return (
        bool(shape)
        and shape == (*(1,) * (len(shape or ()) - 1), channels)
        and len(shape or ()) <= 4
    )


def _flat(value: int, channels: int, node: Node, state: RewriteState) -> int:
    """Such numbers as a vector."""
    if state.shape(value) == (channels,):
        return value
    shape = state.new_constant(np.asarray([channels], np.int32), dtypes.int32)
    dtype = state.dtype(value)
    return state.add(
        "Reshape", (value, shape), dtype, (channels,), node.op, T=dtype, Tshape=dtypes.int32
    )


def conv_scale(node: Node, state: RewriteState) -> Node | None:
    """A convolution times a number for each channel (batch normalisation) is a convolution with
    scaled weights.
    """
    for i in (0, 1):
        conv, scale = state.producer(node.inputs[i], "conv2d"), node.inputs[1 - i]
        channels = None if conv is None else _channels(conv, state)
        if conv is None or channels is None or not _as_vector(scale, channels, state):
            continue
        if len(conv.attrs.get("fused_ops", ())) > 1:
            continue
        why = _may_scale(conv, node.inputs[i], scale, state)
        if why is not None:
            return state.no(why)
        state.retire(node)
        factor = _flat(scale, channels, node, state)
        inputs = [conv.inputs[0], _scaled(conv, factor, state)]
        if conv.opdef.name == "_FusedConv2D":
            dtype = state.dtype(conv.inputs[2])
            inputs.append(
                state.add("Mul", (conv.inputs[2], factor), dtype, (channels,), node.op, T=dtype)
            )
        return Node(conv.opdef, tuple(inputs), node.outputs, conv.attrs, conv.op)
    return None


def _may_scale(conv: Node, out: int, scale: int, state: RewriteState) -> str | None:
    if not state.once(out):
        return ELSEWHERE.format("convolution")
    if not state.mutable.isdisjoint((*conv.inputs, scale)):
        return WRITTEN
    shape = state.shape(conv.inputs[1])
    if shape is None or None in shape:
        return "the shape of the weights is not known"
    return None


def _scaled(conv: Node, scale: int, state: RewriteState) -> int:
    """The weights times a vector of output channels."""
    weights = conv.inputs[1]
    shape, dtype = state.shape(weights), state.dtype(weights)
    assert shape is not None
    if conv.opdef.name == "DepthwiseConv2dNative":
        pair = state.new_constant(np.asarray(shape[-2:], np.int32), dtypes.int32)
        scale = state.add(
            "Reshape", (scale, pair), dtype, shape[-2:], conv.op, T=dtype, Tshape=dtypes.int32
        )
    return state.add("Mul", (weights, scale), dtype, shape, conv.op, T=dtype)


def conv_bias(node: Node, state: RewriteState) -> Node | None:
    """A convolution to which a vector is added becomes one step.

    Added twice, the vectors are added first.
    """
    if node.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    for i in (0, 1):
        conv, bias = state.producer(node.inputs[i], "Conv2D", "_FusedConv2D"), node.inputs[1 - i]
        channels = None if conv is None else _channels(conv, state)
        if conv is None or channels is None or not _as_vector(bias, channels, state):
            continue
        if state.dtype(bias) is not dtypes.float32 or len(conv.attrs.get("fused_ops", ())) > 1:
            continue
        if not state.once(node.inputs[i]):
            return state.no(ELSEWHERE.format("convolution"))
        if not state.mutable.isdisjoint((*conv.inputs, bias)):
            return state.no(WRITTEN)
        state.retire(node)
        bias = _flat(bias, channels, node, state)
        if conv.opdef.name == "_FusedConv2D":
            bias = state.add(
                "AddV2",
                (conv.inputs[2], bias),
                dtypes.float32,
                (channels,),
                node.op,
                T=dtypes.float32,
            )
        attrs = {**conv.attrs, "fused_ops": ("BiasAdd",), "num_args": 1, "epsilon": 0.0}
        return Node(lookup("_FusedConv2D"), (*conv.inputs[:2], bias), node.outputs, attrs, conv.op)
    return None


def conv_sum(node: Node, state: RewriteState) -> Node | None:
    """What is added to a convolution with bias (the shortcut of a residual block) is added in its
    pass.
    """
    for i in (1, 0):  # the last of two convolutions
        value, other = node.inputs[i], node.inputs[1 - i]
        conv = state.producer(value, "_FusedConv2D")
        if conv is None or value == other or tuple(conv.attrs["fused_ops"]) != ("BiasAdd",):
            continue
        if state.dtype(other) is not dtypes.float32 or not same_shape(value, other, state):
            continue
        if not state.once(value):
            return state.no(ELSEWHERE.format("convolution"))
        if not state.mutable.isdisjoint((*conv.inputs, other)):
            return state.no(WRITTEN)
        attrs = {**conv.attrs, "fused_ops": ("BiasAdd", "Add"), "num_args": 2}
        return Node(lookup("_FusedConv2D"), (*conv.inputs, other), node.outputs, attrs, conv.op)
    return None


def conv_activation(node: Node, state: RewriteState) -> Node | None:
    """Relu after a convolution with bias is part of it."""
    found = _activation(node, state)
    conv = None if found is None else state.producer(found[1], "_FusedConv2D")
    if conv is None or found is None or found[0] != "Relu" or "Relu" in conv.attrs["fused_ops"]:
        return None
    if not state.once(found[1]):
        return state.no(ELSEWHERE.format("value before the activation"))
    if not state.mutable.isdisjoint(conv.inputs):
        return state.no(WRITTEN)
    attrs = {**conv.attrs, "fused_ops": (*conv.attrs["fused_ops"], "Relu")}
    return Node(conv.opdef, conv.inputs, node.outputs, attrs, conv.op)


# sums of products ---------------------------------------------------------------------------------

#: Products that must come together, and the longest inner axis (where it is known) of one of them.
MIN_PRODUCTS, MAX_INNER = 3, 256


def sum_of_products(node: Node, state: RewriteState) -> Node | None:
    """The gradient of a weight that an unrolled network uses at every step: one product of all
    steps' rows.

    ``a1.T @ b1 + a2.T @ b2 + …`` is ``concat(a).T @ concat(b)``: the matrices that would be added
    are never made.
    """
    taken = [p for p in (_outer_product(v, state) for v in node.inputs) if p is not None]
    if len(taken) < MIN_PRODUCTS:
        return None
    first = state.values[taken[0].outputs[0]]
    taken = [p for p in taken if state.values[p.outputs[0]].shape == first.shape]
    if len(taken) < MIN_PRODUCTS:
        return None
    if not state.mutable.isdisjoint([i for p in taken for i in p.inputs]):
        return state.no(WRITTEN)
    axis = state.new_constant(np.array(0, np.int32), dtypes.int32)
    rows = []
    for side in (0, 1):
        parts = [p.inputs[side] for p in taken]
        info = state.values[parts[0]]
        shape = (None, None if info.shape is None else info.shape[1])
        attrs = {"N": len(parts), "T": info.dtype, "Tidx": dtypes.int32}
        rows.append(state.add("ConcatV2", (*parts, axis), info.dtype, shape, node.op, **attrs))
    made = {p.outputs[0] for p in taken}
    rest = [v for v in node.inputs if v not in made]
    if not rest:
        return Node(taken[0].opdef, tuple(rows), node.outputs, taken[0].attrs, node.op)
    product = state.add("MatMul", rows, first.dtype, first.shape, node.op, **taken[0].attrs)
    attrs = {**node.attrs, "N": len(rest) + 1}
    return Node(node.opdef, (product, *rest), node.outputs, attrs, node.op)


def _outer_product(value: int, state: RewriteState) -> Node | None:
    """``matmul(a, b, transpose_a=True)`` over few rows, which nothing else uses."""
    product = state.producer(value, "MatMul")
    if product is None or not state.once(value):
        return None
    if not product.attrs["transpose_a"] or product.attrs["transpose_b"]:
        return None
    shape, left = state.shape(value), state.shape(product.inputs[0])
    if state.dtype(value) not in _SINGLE_OR_DOUBLE or shape is None or None in shape:
        return None
    inner = None if left is None else left[0]
    return product if inner is None or inner <= MAX_INNER else None
