"""Distances between all pairs of points: a sum over a short last axis of an outer difference.

``reduce_sum(square(points[None] - centres[:, None]), 2)`` with points of two or three numbers makes
an array for each pair and each number, and then adds up pairs of neighbours. Taken apart by the
last axis, it is a sum of a few element-wise terms of the pairs, which is one fused step.

    sum(square(a - b), -1) -> square(a0 - b0) + square(a1 - b1)
"""

from __future__ import annotations

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["short_axis_distances"]

_FLOATS = frozenset([dtypes.float32, dtypes.float64])
_OUTER = ("Square", "Abs", "SquaredDifference")
#: Numbers of a point.
MAX_LENGTH = 4
#: Pairs from which the terms are a fused step, and for each point at least.
MIN_PAIRS, MIN_SPREAD = 16 * 1024, 4


def short_axis_distances(node: Node, state: RewriteState) -> Node | None:
    """The sum over the last axis of the squares, or sizes, of the differences of all pairs."""
    outer = state.producer(node.inputs[0], *_OUTER)
    axes = state.constants.get(node.inputs[1])
    shape = shapes.known(state.shape(node.inputs[0]))
    if outer is None or axes is None or axes.size != 1 or shape is None or node.attrs["keep_dims"]:
        return None
    inner = outer if len(outer.inputs) == 2 else state.producer(outer.inputs[0], "Sub")
    if inner is None or state.dtype(node.outputs[0]) not in _FLOATS or len(shape) < 2:
        return None
    pairs, length = int(np.prod(shape[:-1])), shape[-1]
    if int(axes.reshape(())) % len(shape) != len(shape) - 1 or not 2 <= length <= MAX_LENGTH:
        return None
    points = [shapes.known(state.shape(i)) for i in inner.inputs]
    if any(p is None or len(p) != len(shape) or p[-1] != length for p in points):
        return None
    largest = max(int(np.prod(p)) for p in points if p is not None)
    if pairs < MIN_PAIRS or pairs * length < MIN_SPREAD * largest:
        return None
    steps = {outer.outputs[0], inner.outputs[0]}
    if not all(state.once(v) for v in steps) or not state.mutable.isdisjoint(inner.inputs):
        return state.no("the differences are used elsewhere, or read what this run writes")
    return _terms(node, outer, inner, tuple(shape), state)


def _terms(
    node: Node, outer: Node, inner: Node, shape: tuple[int, ...], state: RewriteState
) -> Node:
    dtype, pairs = state.dtype(node.outputs[0]), shape[:-1]
    attrs = {"T": dtype}
    terms = []
    for k in range(shape[-1]):
        parts = [_part(i, k, node, state) for i in inner.inputs]
        term = state.add(inner.opdef.name, parts, dtype, pairs, inner.op, **attrs)
        if outer is not inner:
            term = state.add(outer.opdef.name, [term], dtype, pairs, outer.op, **attrs)
        terms.append(term)
    total = terms[0]
    for term in terms[1:-1]:
        total = state.add("AddV2", [total, term], dtype, pairs, node.op, **attrs)
    return Node(lookup("AddV2"), (total, terms[-1]), node.outputs, attrs, node.op)


def _part(value: int, k: int, node: Node, state: RewriteState) -> int:
    """``value[..., k]``."""
    shape, dtype, index = state.shape(value), state.dtype(value), dtypes.int32
    assert shape is not None
    begin = np.array([0] * (len(shape) - 1) + [k], np.int32)
    size = np.array([*shape[:-1], 1], np.int32)
    bounds = [state.new_constant(b, index) for b in (begin, size)]
    cut = state.add(
        "Slice", (value, *bounds), dtype, (*shape[:-1], 1), node.op, T=dtype, Index=index
    )
    target = state.new_constant(np.array(shape[:-1], np.int32), index)
    attrs = {"T": dtype, "Tshape": index}
    return state.add("Reshape", (cut, target), dtype, shape[:-1], node.op, **attrs)
