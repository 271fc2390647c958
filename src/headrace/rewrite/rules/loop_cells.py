"""The element-wise part of an LSTM cell in the body of a loop that has no gradient.

Composites with their gradients (composites.py) are looked for outside of loops; in a loop the
backward pass reads the values inside from stacks. A loop without one has cells that nothing looks
into, and each becomes one step.
"""

from __future__ import annotations

from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_of
from headrace.rewrite.rewrite_state import RewriteState
from headrace.rewrite.rules.fused_products import ELSEWHERE
from headrace.rewrite.rules.lstm_cells import Cell, find_lstm_cell

__all__ = ["lstm_cell_in_loop"]


def lstm_cell_in_loop(node: Node, state: RewriteState) -> Node | None:
    """Asked at ``h = sigmoid(o) * tanh(c)``.

    What reads c from here on reads what the one step makes.
    """
    if not state.loops or state.loops[-1].branches != state.branches:
        return None
    found = find_lstm_cell(node, state)
    if found is None:
        return None
    if not _nobody_looks_inside(found, node, state):
        return state.no(ELSEWHERE.format("value inside"))
    gates, c = dims_of(found.product, state), dims_of(found.c, state)
    if gates is None or c is None or gates[0] != c[0]:
        return state.no("the state may have other rows than the gates")
    kind, out = state.dtype(found.c), state.shape(node.outputs[0])
    new, wide = state.new_value(kind, out), state.new_value(kind, state.shape(found.product))
    _read_instead(found.new.outputs[0], new, state)
    outputs = (*node.outputs, new, wide, state.new_value(kind, out))
    attrs = {"order": found.order, "forget_bias": found.forget_bias, "T": kind}
    return Node(lookup("_LSTMCell"), (found.product, found.c), outputs, attrs, node.op)


def _nobody_looks_inside(found: Cell, last: Node, state: RewriteState) -> bool:
    own: dict[int, int] = {}
    for n in (*found.nodes, last):
        for i in n.inputs:
            own[i] = own.get(i, 0) + 1
    inner = [o for n in found.nodes if n is not found.new for o in n.outputs]
    return all(state.uses.get(v, 0) <= own.get(v, 0) for v in inner)


def _read_instead(old: int, new: int, state: RewriteState) -> None:
    for value, to in state.replaced.items():
        if to == old:
            state.replaced[value] = new
    state.replaced[old] = new
    state.uses[new] = state.uses.get(old, 1) - 1  # tanh reads the old one
