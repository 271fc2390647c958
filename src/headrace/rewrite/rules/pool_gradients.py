"""Gradients that come back through a maximum over windows.

A window hands its gradient to one element, the first that equals the maximum. So whatever depends
on that element's value alone may be done before the gradient is spread, on the pooled array, which
is a quarter of the size or less; and sums over images and places may be taken there, too.

    relu_grad(max_pool_grad(x, y, g), x)  ->  max_pool_grad(x, y, relu_grad(g, y))
    bias_add_grad(max_pool_grad(x, y, g)) ->  bias_add_grad(g)
"""

from __future__ import annotations

from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["relu_before_pooling", "sum_before_spreading"]

_ELSEWHERE = "the gradient of the pooling is used elsewhere, too"


def relu_before_pooling(node: Node, state: RewriteState) -> Node | None:
    """The element that gets the gradient is as large as the maximum.

    Relu lets both through, or neither.
    """
    gradient, features = node.inputs
    pool = state.producer(gradient, "max pool gradient")
    if pool is None or pool.inputs[0] != features:
        return None
    if not state.once(gradient):
        state.no(_ELSEWHERE)
        return None
    if not state.mutable.isdisjoint(pool.inputs):
        return None
    x, y, g = pool.inputs
    dtype = state.dtype(g)
    masked = state.add("ReluGrad", (g, y), dtype, state.shape(g), node.op, T=dtype)
    return Node(pool.opdef, (x, y, masked), node.outputs, pool.attrs, pool.op)


def _channel_axis(node: Node, rank: int) -> int:
    return 1 if str(node.attrs.get("data_format", "NHWC")).startswith("NC") else rank - 1


def sum_before_spreading(node: Node, state: RewriteState) -> Node | None:
    """A sum that leaves the channels.

    Each window's gradient is in it once, wherever it was handed to.
    """
    pool = state.producer(node.inputs[0], "max pool gradient")
    if pool is None or not state.mutable.isdisjoint(pool.inputs):
        return None
    rank = len(pool.attrs["ksize"])
    channels = _channel_axis(pool, rank)
    if pool.attrs["ksize"][channels] != 1 or pool.attrs["strides"][channels] != 1:
        return None
    if node.opdef.name == "BiasAddGrad":
        if _channel_axis(node, rank) != channels:
            return None
    elif not _leaves(node, channels, rank, state):
        return None
    return Node(node.opdef, (pool.inputs[2], *node.inputs[1:]), node.outputs, node.attrs, node.op)


def _leaves(node: Node, channels: int, rank: int, state: RewriteState) -> bool:
    """A reduction is over every axis but one."""
    axes = state.constants.get(node.inputs[1])
    if axes is None:
        return False
    return {int(a) % rank for a in axes.reshape(-1)} == set(range(rank)) - {channels}
