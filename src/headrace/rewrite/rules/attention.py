"""Attention: ``softmax(q k^T …) v`` as one step that never holds all scores at once.

Between the product and the softmax there may be any number of steps with a scale or a mask: BERT
adds a mask, GPT-2 multiplies with one and subtracts a large number, tensor2tensor scales the
queries before. Each is an element-wise operation whose other operand is no larger than the scores.
"""

from __future__ import annotations

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_of
from headrace.rewrite.rewrite_state import RewriteState
from headrace.rewrite.rules.fused_products import ELSEWHERE, WRITTEN

__all__ = ["attention"]

MAX_STEPS = 6


def attention(node: Node, state: RewriteState) -> Node | None:
    """The product of a softmax of products, with what lies between."""
    if node.attrs["adj_x"] or node.attrs["adj_y"]:
        return None
    softmax = state.producer(node.inputs[0], "Softmax")
    if softmax is None or state.dtype(node.outputs[0]) not in (dtypes.float32, dtypes.float64):
        return None
    if not state.once(node.inputs[0]):
        return state.no(ELSEWHERE.format("softmax"))
    value = softmax.inputs[0]
    steps: list[tuple[str, int]] = []
    while len(steps) <= MAX_STEPS:
        product = state.producer(value, "batch matmul")
        if not state.once(value):
            return (
                None
                if product is None
                else state.no(ELSEWHERE.format("product of queries and keys"))
            )
        if product is not None:
            return _made(node, product, steps[::-1], state)
        found = _step(value, state)
        if found is None:
            return None
        value, name, arg = found
        steps.append((name, arg))
    return None


_STEPS = ("+", "-", "*", "/")


def _step(value: int, state: RewriteState) -> tuple[int, str, int] | None:
    """(the scores, the operation, its other operand)."""
    inner = state.producer(value, *_STEPS)
    if inner is None:
        return None
    sides = (0, 1) if inner.opdef.role in "+*" else (0,)
    for i in sides:
        if _leads_to_product(inner.inputs[i], state) and _is_smaller(
            inner.inputs[1 - i], value, inner.inputs[i], state
        ):
            return inner.inputs[i], inner.opdef.role, inner.inputs[1 - i]
    return None


def _leads_to_product(value: int, state: RewriteState) -> bool:
    for _ in range(MAX_STEPS):
        if not state.once(value):
            return False
        if state.producer(value, "batch matmul") is not None:
            return True
        inner = state.producer(value, *_STEPS)
        if inner is None:
            return False
        rank = [state.rank(i) or 0 for i in inner.inputs]
        value = inner.inputs[1 if rank[1] > rank[0] else 0]
        if rank[0] == rank[1] and state.producer(value, "batch matmul", *_STEPS) is None:
            value = inner.inputs[1]
    return False


def _is_smaller(arg: int, result: int, scores: int, state: RewriteState) -> bool:
    """The other operand does not stretch the scores."""
    mine, other, both = dims_of(scores, state), dims_of(arg, state), state.rank(result)
    if mine is None or other is None or len(other) > len(mine) or both != len(mine):
        return False
    # a length that is not known before the run is checked by the step itself
    return all(
        o == 1 or o == m or not (type(o) is int and type(m) is int)
        for o, m in zip(other[::-1], mine[::-1])
    )


def _made(
    node: Node, product: Node, steps: list[tuple[str, int]], state: RewriteState
) -> Node | None:
    q, k, v = product.inputs[0], product.inputs[1], node.inputs[1]
    if product.attrs["adj_x"]:
        return None
    ranks = {state.rank(i) for i in (q, k, v)}
    if len(ranks) != 1 or None in ranks or min(r or 0 for r in ranks) < 3:
        return state.no("the ranks of queries, keys and values are not known to be equal")
    args = tuple(arg for _, arg in steps)
    inputs = (q, k, v, *args)
    if not state.mutable.isdisjoint(inputs):
        return state.no(WRITTEN)
    attrs = {
        "steps": tuple(name for name, _ in steps),
        "adj_y": product.attrs["adj_y"],
        "num_args": len(args),
        "T": state.dtype(q),
    }
    return Node(lookup("_Attention"), inputs, node.outputs, attrs, product.op)
