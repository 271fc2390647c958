"""Matrix products that are less than products: over one number, or with a factor in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import same_shape
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["common_factor", "outer_product"]

_FLOATS = frozenset([dtypes.float32, dtypes.float64])
#: Elements from which an element-wise product may join a fused group (lower/fusion.py).
MIN_ELEMENTS = 16 * 1024


def outer_product(node: Node, state: RewriteState) -> Node | None:
    """A column times a row, the gradient behind a layer with one output.

    ``x[:, None] @ w[None, :]`` has one product for each element, as ``x * w`` has.
    """
    x, w = node.inputs
    a, b, out = state.shape(x), state.shape(w), state.shape(node.outputs[0])
    if state.dtype(x) not in _FLOATS or not state.mutable.isdisjoint(node.inputs):
        return None
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    if (
        a[0 if node.attrs["transpose_a"] else 1] != 1
        or b[1 if node.attrs["transpose_b"] else 0] != 1
    ):
        return None
    size = shapes.num_elements(out)
    if size is None or size < MIN_ELEMENTS:
        return None  # (while the batch's size is not known, products see to large ones)
    assert out is not None
    state.retire(node)
    column = _reshaped(x, (out[0], 1), node, state)
    row = _reshaped(w, (1, out[1]), node, state)
    return Node(lookup("Mul"), (column, row), node.outputs, {"T": state.dtype(x)}, node.op)


def _reshaped(value: int, shape: tuple[Any, ...], node: Node, state: RewriteState) -> int:
    if state.shape(value) == shape:
        return value
    dtype = state.dtype(value)
    array = np.asarray(shape, np.int32)
    key = array.dtype.char, array.shape, array.tobytes()
    target = state.same_constant.get(key)
    if target is None:  # the same constant, so that equal reshapes are seen to be equal
        target = state.same_constant[key] = state.new_constant(array, dtypes.int32)
    attrs = {"T": dtype, "Tshape": dtypes.int32}
    return state.add("Reshape", (value, target), dtype, shape, node.op, **attrs)


def common_factor(node: Node, state: RewriteState) -> Node | None:
    """Two products with the same matrix on one side, where nothing else uses them.

    A net that is differentiated twice makes them: ``a1.T @ b + a2.T @ b``.
    """
    for n, value in enumerate(node.inputs):
        first = _product(value, state)
        if first is None:
            continue
        for m in range(n + 1, len(node.inputs)):
            second = _product(node.inputs[m], state)
            side = None if second is None else _shared_side(first, second, state)
            if second is None or side is None:
                continue
            rest = [v for k, v in enumerate(node.inputs) if k not in (n, m)]
            return _joined(node, first, second, side, rest, state)
    return None


def _product(value: int, state: RewriteState) -> Node | None:
    product = state.producer(value, "MatMul")
    if product is None or not state.once(value) or state.dtype(value) not in _FLOATS:
        return None
    return product if state.mutable.isdisjoint(product.inputs) else None


def _shared_side(first: Node, second: Node, state: RewriteState) -> int | None:
    """Which input two products share, if the other ones may be added."""
    flags = ("transpose_a", "transpose_b")
    if first is second or any(first.attrs[f] != second.attrs[f] for f in flags):
        return None
    for side in (0, 1):
        others = first.inputs[1 - side], second.inputs[1 - side]
        if first.inputs[side] == second.inputs[side] and same_shape(*others, state):
            return side
    return None


def _joined(
    node: Node, first: Node, second: Node, side: int, rest: list[int], state: RewriteState
) -> Node:
    others = first.inputs[1 - side], second.inputs[1 - side]
    info = state.values[others[0]]
    both = state.add("AddV2", others, info.dtype, info.shape, node.op, T=info.dtype)
    inputs = (first.inputs[0], both) if side == 0 else (both, first.inputs[1])
    if not rest:
        return Node(first.opdef, inputs, node.outputs, first.attrs, node.op)
    out = state.values[node.outputs[0]]
    product = state.add("MatMul", inputs, out.dtype, out.shape, node.op, **first.attrs)
    attrs = {**node.attrs, "N": len(rest) + 1} if node.opdef.name == "AddN" else node.attrs
    return Node(node.opdef, (product, *rest), node.outputs, attrs, node.op)
