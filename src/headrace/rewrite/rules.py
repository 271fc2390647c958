"""The rules, in the order in which they are tried on each node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from headrace.arrays import numpy_xp
from headrace.core import dtypes, shapes
from headrace.core.opdef import KernelNode, bind_kernel, lookup
from headrace.program.nodes import Node
from headrace.rewrite.engine import RewriteState, Rule

__all__ = ["RULES", "VALUE_FREE_RULES"]

#: Folding may not blow a small description up into a large constant.
MAX_FOLDED_BYTES = 64 * 1024

_PASS_THROUGH = frozenset(
    ["Identity", "StopGradient", "PreventGradient", "PlaceholderWithDefault", "Snapshot"]
)


def _pass_through(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Operations that only pass their input on."""
    if node.opdef.name in _PASS_THROUGH and node.inputs[0] not in state.mutable:
        return (node.inputs[0],)
    return None


_CROSS_ENTROPY = frozenset(["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"])


def _even_loss_gradient(node: Node, state: RewriteState) -> Node | None:
    """The gradient of a mean (or sum) of cross entropies: one scalar times the matrix that the forward op left.

    As it is written it is ``expand_dims(broadcast_to(g, shape(loss))) * backprop``. Loss and backprop are outputs of one
    node, so they have the same rows, and the scalar may be multiplied directly: the same products, element by element.
    """
    if node.opdef.name != "Mul":
        return None
    make = state.producers.get
    for i in (0, 1):
        column, backprop = make(node.inputs[i]), make(node.inputs[1 - i])
        if column is None or backprop is None or backprop.opdef.name not in _CROSS_ENTROPY:
            continue
        spread = make(column.inputs[0]) if column.opdef.name == "ExpandDims" else None
        if (
            spread is None
            or spread.opdef.name != "BroadcastTo"
            or state.values[spread.inputs[0]].shape != ()
        ):
            continue
        shape = make(spread.inputs[1])
        loss, gradient = backprop.outputs
        if shape is None or shape.opdef.name != "Shape" or shape.inputs[0] != loss:
            continue
        if node.inputs[1 - i] == gradient:
            inputs = (spread.inputs[0], gradient)
            return Node(node.opdef, inputs, node.outputs, node.attrs, node.op)
    return None


_SUMS = frozenset(["Add", "AddV2", "BiasAdd"])
_SINGLE_OR_DOUBLE = frozenset([dtypes.float32, dtypes.float64])


def _matmul_bias(node: Node, state: RewriteState) -> Node | None:
    """A matrix product to which a vector is added, and which nobody else uses, becomes one step."""
    if node.opdef.name not in _SUMS or node.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    for i in (0, 1):
        product, bias = state.producers.get(node.inputs[i]), node.inputs[1 - i]
        if product is None or product.opdef.name != "MatMul" or state.uses[node.inputs[i]] != 1:
            continue
        out, vector = state.values[node.inputs[i]], state.values[bias]
        if out.dtype not in _SINGLE_OR_DOUBLE or out.shape is None or vector.shape != out.shape[1:]:
            continue
        inputs = (*product.inputs, bias)
        if vector.shape[0] is None or not state.mutable.isdisjoint(inputs):
            continue
        attrs = {**product.attrs, "fused_ops": ("BiasAdd",), "num_args": 1}
        return Node(lookup("_FusedMatMul"), inputs, node.outputs, attrs, product.op)
    return None


def _is_pure(node: Node) -> bool:
    traits = node.opdef.traits
    return not (traits.stateful or traits.random or node.writes or traits.reads)


def _shape_of_known(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Shape, Size and Rank of a tensor whose static shape is complete."""
    if node.opdef.name not in ("Shape", "Size", "Rank"):
        return None
    info = state.values[node.inputs[0]]
    if info.shape is None:
        return None
    if node.opdef.name == "Rank":
        return (state.constant(np.asarray(len(info.shape), np.int32), node.outputs[0]),)
    known = shapes.known(info.shape)
    if known is None:
        return None
    dtype = node.attrs["out_type"].np_dtype
    value = known if node.opdef.name == "Shape" else shapes.num_elements(info.shape)
    return (state.constant(np.asarray(value, dtype), node.outputs[0]),)


def _size_as_float(node: Node, state: RewriteState) -> Node | None:
    """``cast(size(x))``, the divisor in the gradient of a mean, is one step."""
    if node.opdef.name != "Cast" or node.attrs["DstT"] not in _SINGLE_OR_DOUBLE:
        return None
    size = state.producers.get(node.inputs[0])
    if size is None or size.opdef.name != "Size":
        return None
    attrs = {"T": size.attrs["T"], "out_type": node.attrs["DstT"]}
    return Node(size.opdef, size.inputs, node.outputs, attrs, node.op)


def _fold(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Compute once what depends on constants alone."""
    constants = state.constants
    for i in node.inputs:
        if i not in constants:
            return None
    if (
        not node.inputs
        or not _is_pure(node)
        or node.opdef.traits.host_only
        or node.opdef.name == "Merge"
    ):
        return None
    if _too_large(node, state):
        return None
    kernel = bind_kernel(
        node.opdef, KernelNode(node.op.name, node.op.type, node.attrs, node.op), numpy_xp
    )
    try:
        with np.errstate(all="ignore"):
            result = kernel(*[constants[i] for i in node.inputs])
    except Exception:  # the error belongs to the run that needs the value
        return None
    results: tuple[Any, ...] = result if len(node.outputs) > 1 else (result,)
    arrays = [np.asarray(r) for r in results]
    given = sum(constants[i].nbytes for i in node.inputs)
    if sum(a.nbytes for a in arrays) > max(MAX_FOLDED_BYTES, given):
        return None
    return tuple(state.constant(a, o) for a, o in zip(arrays, node.outputs))


def _too_large(node: Node, state: RewriteState) -> bool:
    for o in node.outputs:
        n = shapes.num_elements(state.values[o].shape)
        if n is not None and n * state.values[o].dtype.size > 64 * MAX_FOLDED_BYTES:
            return True
    return False


def _share(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """The same op on the same inputs is computed once."""
    if not _is_pure(node) or node.opdef.traits.host_only or node.opdef.name == "Merge":
        return None
    if state.mutable and not state.mutable.isdisjoint(node.inputs):
        return None
    key = _key(node)
    if key is None:
        return None
    found = state.lookup(key)
    if found is not None:
        return found.outputs
    state.scopes[-1][key] = node
    return None


def _key(node: Node) -> Hashable | None:
    attrs = tuple([(k, v) for k, v in node.attrs.items() if k[0] != "_"])
    key = (node.opdef.name, node.inputs, attrs)
    try:
        hash(key)
    except TypeError:
        return None
    return key


#: Tried in this order on every node, inputs already rewritten.
RULES: list[Rule] = [
    Rule("pass-through", _pass_through),
    Rule("known shape", _shape_of_known),
    Rule("even loss gradient", _even_loss_gradient),
    Rule("size as float", _size_as_float),
    Rule("matmul and bias", _matmul_bias, exact=False),
    Rule("constant folding", _fold),
    Rule("common subexpression", _share),
]

#: Those that do not look at the values of constants.
VALUE_FREE_RULES: list[Rule] = [r for r in RULES if r.apply is not _fold]
