"""Normalisations and gelu, recognised from their usual spellings.

Batch normalisation with given statistics is a scale and a shift for each channel; after a
convolution both go into its weights and bias (fused_products.py). Layer normalisation is found in
the spelling of GPT-2 and tensor2tensor, ``(x - u) * rsqrt(s + e) * g + b``, with ``/ sqrt(s + e)``
or ``/ (s + e) ** 0.5``, and in that of ``tf.nn.batch_normalization`` with moments of the last axis
(tf.contrib.layers.layer_norm, BERT). Gelu is found with tanh and with erf, its factors in any
order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState
from headrace.rewrite.rules.fused_products import ELSEWHERE, WRITTEN, is_vector

__all__ = [
    "batch_norm_inference",
    "closed",
    "find_gelu",
    "find_layer_norm",
    "find_softmax",
    "gelu",
    "layer_norm",
    "softmax_spelled_out",
]

_FLOATS = frozenset([dtypes.float32, dtypes.float64])


def closed(nodes: list[Node], root: Node, state: RewriteState) -> bool:
    """Nothing outside the pattern uses what its inner nodes make."""
    uses: dict[int, int] = {}
    for node in (*nodes, root):
        for i in node.inputs:
            uses[i] = uses.get(i, 0) + 1
    return all(state.uses.get(o, 0) <= uses.get(o, 0) for n in nodes for o in n.outputs)


def scalar(value: int, state: RewriteState) -> float | None:
    """A constant of one element."""
    known = state.constants.get(value)
    if known is None or known.size != 1 or known.dtype.kind not in "fiu":
        return None
    return float(known.reshape(())[()])


class _Pattern:
    """A backward match.

    Which nodes belong to it. In ``training`` its inner values are read by gradients as well.
    """

    def __init__(self, state: RewriteState, training: bool = False) -> None:
        self.state = state
        self.training = training
        self.nodes: dict[int, Node] = {}  # by first output
        self.shared = False  # something that was looked for is used elsewhere

    def take(self, value: int, *types: str) -> Node | None:
        node = self.state.producer(value, *types)
        if node is not None:
            self.nodes[node.outputs[0]] = node
        return node

    def passed(self, value: int) -> int:
        """What a StopGradient (of tf.nn.moments) was given."""
        node = self.state.producer(value, "StopGradient")
        if node is None:
            return value
        self.nodes[value] = node
        return node.inputs[0]

    def opens(self, value: int) -> bool:
        """A product's factors are looked at if nothing else needs the product."""
        return self.training or self.state.once(value)

    def pairs(self, node: Node) -> list[tuple[int, int]]:
        """Both inputs of a commutative operation, in both orders."""
        a, b = node.inputs
        return [(a, b), (b, a)]


# batch normalisation ------------------------------------------------------------------------------


def batch_norm_inference(node: Node, state: RewriteState) -> Node | None:
    """With given statistics, after a convolution.

    X * (scale / sqrt(variance + e)) + (offset - mean * …).
    """
    if node.attrs["is_training"] or node.attrs["data_format"] != "NHWC":
        return None
    x, gamma, beta, mean, variance = node.inputs
    conv = state.producer(x, "Conv2D", "_FusedConv2D", "DepthwiseConv2dNative")
    if conv is None:
        return None
    shape = state.shape(gamma)
    if shape is None or len(shape) != 1 or shape[0] is None or state.dtype(x) is not dtypes.float32:
        return state.no("the number of channels is not known")
    if any(state.uses.get(o) for o in node.outputs[1:]):
        return state.no("its statistics are used, too")
    if not state.once(x):
        return state.no(ELSEWHERE.format("convolution"))
    if not state.mutable.isdisjoint((*conv.inputs, *node.inputs)):
        return state.no(WRITTEN)
    if len(conv.attrs.get("fused_ops", ())) > 1:
        return state.no("an activation stands between the convolution and the normalisation")
    state.retire(node)
    f32, op = dtypes.float32, node.op
    epsilon = state.new_constant(np.asarray(node.attrs["epsilon"], np.float32), f32)

    def new(kind: str, *inputs: int) -> int:
        return state.add(kind, inputs, f32, shape, op, T=f32)

    inv = new("Mul", new("Rsqrt", new("AddV2", variance, epsilon)), gamma)
    shift = new("Sub", beta, new("Mul", mean, inv))
    scaled = state.add("Mul", (x, inv), f32, state.shape(x), op, T=f32)
    return Node(lookup("AddV2"), (scaled, shift), node.outputs[:1], {"T": f32}, op)


# layer normalisation ------------------------------------------------------------------------------


class LayerNorm(NamedTuple):
    """What was found: its inputs and the nodes before the last."""

    x: int
    scale: int
    offset: int
    epsilon: float
    nodes: list[Node]


def find_layer_norm(node: Node, state: RewriteState, training: bool = False) -> LayerNorm | None:
    """Normalisation over the last axis that ends at the node."""
    shape = state.shape(node.outputs[0])
    if (
        not shape
        or state.dtype(node.outputs[0]) not in _FLOATS
        or len(shape) < 2
        or shape[-1] is None
    ):
        return None
    for match in (_as_gpt2, _as_batch_norm):
        pattern = _Pattern(state, training)
        found = match(node, pattern, state)
        if found is None or len(state.shape(found[0]) or ()) != len(shape):
            continue
        return LayerNorm(*found, list(pattern.nodes.values()))
    return None


def layer_norm(node: Node, state: RewriteState) -> Node | None:
    """Layer normalisation over the last axis as one step."""
    found = find_layer_norm(node, state)
    if found is None:
        return None
    if not closed(found.nodes, node, state):
        return state.no(ELSEWHERE.format("mean, the variance or the normalised value"))
    if not state.mutable.isdisjoint(found[:3]):
        return state.no(WRITTEN)
    attrs = {"epsilon": found.epsilon, "T": state.dtype(found.x)}
    return Node(lookup("_LayerNorm"), found[:3], node.outputs, attrs, node.op)


def _as_gpt2(node: Node, p: _Pattern, state: RewriteState) -> tuple[int, int, int, float] | None:
    """((x - u) * rsqrt(s + e)) * g + b, in any order of the factors."""
    length = (state.shape(node.outputs[0]) or (None,))[-1]
    for scaled, offset in p.pairs(node):
        product = state.producer(scaled, "Mul")
        if product is None or not is_vector(offset, length, state):
            continue
        for normal, scale in p.pairs(product):
            if not is_vector(scale, length, state):
                continue
            p.nodes.clear()
            p.nodes[scaled] = product
            found = _normal(normal, p, state)
            if found is not None:
                return found[0], scale, offset, found[1]
    return None


def _normal(value: int, p: _Pattern, state: RewriteState) -> tuple[int, float] | None:
    """(x - mean) * rsqrt(variance + epsilon), or / sqrt(…): (x, epsilon)."""
    node = p.take(value, "Mul", "RealDiv", "Div")
    if node is None:
        return None
    orders = p.pairs(node) if node.opdef.name == "Mul" else [node.inputs]
    for away, inverse in orders:
        difference = state.producer(away, "Sub")
        root = state.producer(
            inverse, *(("Rsqrt",) if node.opdef.name == "Mul" else ("Sqrt", "Pow"))
        )
        if difference is None or root is None:
            continue
        if root.opdef.name == "Pow" and scalar(root.inputs[1], state) != 0.5:
            continue
        p.nodes[away], p.nodes[inverse] = difference, root
        x, mean = difference.inputs
        epsilon = _variance(root.inputs[0], x, mean, p, state)
        if epsilon is not None:
            return x, epsilon
    return None


def _variance(value: int, x: int, mean: int, p: _Pattern, state: RewriteState) -> float | None:
    """mean((x - mean)^2) + epsilon over the last axis, kept: epsilon."""
    plus = p.take(value, "+")
    if plus is None or not _is_row_mean(mean, x, p, state):
        return None
    for variance, small in p.pairs(plus):
        epsilon = scalar(small, state)
        if epsilon is None:
            continue
        reduce = p.take(variance, "Mean")
        if reduce is None or not _over_last(reduce, state):
            return None
        square = p.take(reduce.inputs[0], "Square", "SquaredDifference", "Mul")
        if square is None:
            return None
        if square.opdef.name == "SquaredDifference":
            return epsilon if {p.passed(i) for i in square.inputs} == {x, mean} else None
        difference = p.take(square.inputs[0], "Sub")
        if len(set(square.inputs)) != 1 or difference is None:
            return None
        return epsilon if difference.inputs == (x, mean) else None
    return None


def _is_row_mean(mean: int, x: int, p: _Pattern, state: RewriteState) -> bool:
    node = p.take(mean, "Mean")
    return node is not None and node.inputs[0] == x and _over_last(node, state)


def _over_last(node: Node, state: RewriteState) -> bool:
    axes, rank = state.constants.get(node.inputs[1]), state.rank(node.inputs[0])
    if axes is None or axes.size != 1 or rank is None or not node.attrs["keep_dims"]:
        return False
    return int(axes.reshape(-1)[0]) in (-1, rank - 1)


def _as_batch_norm(
    node: Node, p: _Pattern, state: RewriteState
) -> tuple[int, int, int, float] | None:
    """x * inv + (offset - mean * inv) with inv = rsqrt(variance + epsilon) * scale."""
    length = (state.shape(node.outputs[0]) or (None,))[-1]
    for scaled, shift in p.pairs(node):
        left, right = state.producer(scaled, "Mul"), state.producer(shift, "Sub")
        if left is None or right is None or not is_vector(right.inputs[0], length, state):
            continue
        moved = state.producer(right.inputs[1], "Mul")
        if moved is None:
            continue
        for x, inv in p.pairs(left):
            for mean, again in p.pairs(moved):
                if inv != again:
                    continue
                p.nodes.clear()
                for n in (left, right, moved):
                    p.nodes[n.outputs[0]] = n
                found = _inverse(inv, x, mean, length, p, state)
                if found is not None:
                    return x, found[0], right.inputs[0], found[1]
    return None


def _inverse(
    inv: int, x: int, mean: int, length: object, p: _Pattern, state: RewriteState
) -> tuple[int, float] | None:
    product = p.take(inv, "Mul")
    if product is None:
        return None
    for root, scale in p.pairs(product):
        reciprocal = state.producer(root, "Rsqrt")
        if reciprocal is None or not is_vector(scale, length, state):
            continue
        p.nodes[root] = reciprocal
        epsilon = _variance(reciprocal.inputs[0], x, mean, p, state)
        if epsilon is not None:
            return scale, epsilon
    return None


# softmax ------------------------------------------------------------------------------------------


def find_softmax(node: Node, state: RewriteState) -> tuple[int, list[Node]] | None:
    """exp(x - max(x)) / sum(exp(x - max(x))) over the last axis: x, and the nodes before the
    last.
    """
    p = _Pattern(state)
    e, total = p.take(node.inputs[0], "Exp"), p.take(node.inputs[1], "Sum")
    if (
        e is None
        or total is None
        or total.inputs[0] != node.inputs[0]
        or not _over_last(total, state)
    ):
        return None
    away = p.take(e.inputs[0], "Sub")
    if away is None:
        return state.no(
            "the largest element is not subtracted first: large values overflow, and must"
        )
    top = p.take(away.inputs[1], "Max")
    if top is None or top.inputs[0] != away.inputs[0] or not _over_last(top, state):
        return None
    return away.inputs[0], list(p.nodes.values())


def softmax_spelled_out(node: Node, state: RewriteState) -> Node | None:
    """exp(x - max(x)) / sum(exp(x - max(x))) over the last axis is softmax.

    Without the maximum it is left alone.
    """
    found = find_softmax(node, state)
    if found is None:
        return None
    if not closed(found[1], node, state):
        return state.no(ELSEWHERE.format("exponential"))
    if found[0] in state.mutable:
        return state.no(WRITTEN)
    return Node(lookup("Softmax"), found[:1], node.outputs, {"T": node.attrs["T"]}, node.op)


# gelu ---------------------------------------------------------------------------------------------

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def find_gelu(
    node: Node, state: RewriteState, training: bool = False
) -> tuple[int, bool, list[Node]] | None:
    """Gelu that ends at the node: x, whether with tanh, and the nodes before the last."""
    if state.dtype(node.outputs[0]) not in _FLOATS:
        return None
    if not any(
        [
            i in state.constants or state.makers.get(i) in ("Mul", "Square", "Pow")
            for i in node.inputs
        ]
    ):
        return None  # 0.5 is nowhere
    p = _Pattern(state, training)
    number, others = _factors(node, p, state)
    if len(others) != 2 or not _nearly_equal(number, 0.5):
        if p.shared and any(_is_bent(v, state) for v in others):
            return state.no(ELSEWHERE.format("value inside"))
        return None
    for x, plus in (others, others[::-1]):
        sigma = p.take(plus, "+")
        if sigma is None:
            continue
        for one, bent in p.pairs(sigma):
            inner = p.take(bent, "Tanh", "Erf") if scalar(one, state) == 1.0 else None
            if inner is None:
                continue
            approximate = inner.opdef.name == "Tanh"
            if (_is_cubic if approximate else _is_scaled)(inner.inputs[0], x, p, state):
                return x, approximate, list(p.nodes.values())
    return None


def gelu(node: Node, state: RewriteState) -> Node | None:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), or x/2 * (1 + erf(x / sqrt(2)))."""
    found = find_gelu(node, state)
    if found is None:
        return None
    x, approximate, nodes = found
    if not closed(nodes, node, state):
        return state.no(ELSEWHERE.format("value inside"))
    if x in state.mutable:
        return state.no(WRITTEN)
    attrs = {"approximate": approximate, "T": state.dtype(x)}
    return Node(lookup("_Gelu"), (x,), node.outputs, attrs, node.op)


def _is_bent(value: int, state: RewriteState) -> bool:
    """1 + tanh(…), 1 + erf(…)."""
    plus = state.producer(value, "+")
    return plus is not None and any(state.producer(i, "Tanh", "Erf") for i in plus.inputs)


def _nearly_equal(a: float, b: float) -> bool:
    return abs(a - b) <= 3e-6 * abs(b)


def _factors(node: Node, p: _Pattern, state: RewriteState) -> tuple[float, list[int]]:
    """A product as a number and its other factors; products that only it uses are opened."""
    number = 1.0
    others: list[int] = []
    stack = [*node.inputs] if node.opdef.name != "Square" else [node.inputs[0]] * 2
    while stack and len(others) < 8:
        value = stack.pop()
        known = scalar(value, state)
        if known is not None:
            number *= known
            continue
        inner = state.producer(value, "*", "Square", "Pow")
        if inner is not None and not p.opens(value):
            p.shared, inner = True, None
        if inner is not None and inner.opdef.name == "Mul":
            stack += inner.inputs
        elif inner is not None and inner.opdef.name == "Square":
            stack += inner.inputs * 2
        elif inner is not None and scalar(inner.inputs[1], state) == 3.0:
            stack += inner.inputs[:1] * 3
        else:
            others.append(value)
            continue
        p.nodes[value] = inner
    return number, others


def _is_scaled(value: int, x: int, p: _Pattern, state: RewriteState) -> bool:
    """x / sqrt(2)."""
    node = p.take(value, "Mul", "RealDiv")
    if node is None or x not in node.inputs:
        return False
    if node.opdef.name == "RealDiv":
        divisor = scalar(node.inputs[1], state)
        return node.inputs[0] == x and divisor is not None and _nearly_equal(divisor, math.sqrt(2))
    number, others = _factors(node, p, state)
    return others == [x] and _nearly_equal(number, math.sqrt(0.5))


def _is_cubic(value: int, x: int, p: _Pattern, state: RewriteState) -> bool:
    """sqrt(2/pi) * (x + 0.044715 x^3), or with the x taken out.

    Sqrt(2/pi) * x * (1 + 0.044715 x^2).
    """
    node = p.take(value, "Mul")
    if node is None:
        return False
    number, others = _factors(node, p, state)
    power = 3
    if len(others) == 2 and x in others:
        others.remove(x)
        power = 2
    plus = p.take(others[0], "+") if len(others) == 1 and _nearly_equal(number, _ROOT) else None
    if plus is None:
        return False
    for first, rest in p.pairs(plus):
        if first != x if power == 3 else scalar(first, state) != 1.0:
            continue
        product = p.take(rest, "Mul")
        if product is None:
            continue
        small, cube = _factors(product, p, state)
        if cube == [x] * power and _nearly_equal(small, _CUBIC):
            return True
    return False
