"""Which plans are worth binding to the shapes of their feeds (binding.py), or why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core import dtypes, shapes
from headrace.lower.fusion import Fused, PlanIf, PlanStatement, PlanWhile
from headrace.lower.plan import Plan
from headrace.lower.stage_split import before_writes
from headrace.program.binding_times import is_draw, why_no_computation
from headrace.program.nodes import Node, Program

__all__ = ["why_unbound"]

#: Weights from which a plain product is reason enough to bind a plan.
PRODUCT = 1 << 12
#: Larger training steps are not bound: it would take as long again to plan them.
MAX_STATEMENTS = 2000


def why_unbound(plan: Plan) -> str | None:
    """Why a plan cannot be bound to shapes, or gains nothing by it; None if it can.

    What comes before its writes must be pure steps one after the other, with something among them
    that is the kernel library's.
    """
    block: Sequence[Any] = plan.block
    if not any(_is_of_library(s, plan.program) for s in block):
        return "no product, convolution or layer in it is large enough for the kernel library"
    writes = plan.program.writes
    if writes:
        why_not = _why_not_split(plan)
        if why_not is not None:
            return why_not
        block = before_writes(plan.block, plan.program)[0]
        if not block:
            return "nothing comes before its writes"
    found = False
    for step in block:
        if isinstance(step, Fused):
            continue
        if not isinstance(step, Node):
            return "it has branches, loops or grouped writes"
        if writes and is_draw(step):
            continue
        why_not = _why_not_plain(step, plan)
        if why_not is not None:
            return f"{step.op.name} ({step.opdef.name}) {why_not}"
        if writes and not _is_dense(step):
            return f"{step.op.name} ({step.opdef.name}) is not of a dense layer: nothing is gained"
        found = found or _is_of_library(step, plan.program)
    if not found:
        return "no product, convolution or layer in it is large enough for the kernel library"
    if not writes and (plan.program.effects or None in plan.program.fetches):
        return "it has effects beside its results"
    return None


def _why_not_split(plan: Plan) -> str | None:
    if plan.kept:
        return "other results depend on variables alone and are kept"
    if len(plan.program.body) > MAX_STATEMENTS:
        return f"it has more than {MAX_STATEMENTS} operations"
    if any(isinstance(s, (PlanIf, PlanWhile)) for s in plan.block):
        return "it has branches or loops"
    return None


def _is_dense(node: Node) -> bool:
    """Whether a training step with this op is one of dense layers.

    Others gain nothing, their work is in kernels.
    """
    traits = node.opdef.traits
    return traits.elementwise or traits.view or traits.of_shape or traits.dense


def _is_of_library(node: PlanStatement, program: Program) -> bool:
    """Whether a step is large enough for the kernel library."""
    if not isinstance(node, Node):
        return False
    if node.opdef.role != "matmul":
        return node.opdef.traits.layer
    size = shapes.num_elements(program.values[node.inputs[1]].shape)
    return size is not None and size >= PRODUCT


def _why_not_plain(node: Node, plan: Plan) -> str | None:
    traits = node.opdef.traits
    if node.writes:
        return "writes a variable"
    why = why_no_computation(node.opdef)
    if why:
        return why
    if traits.data_dependent_shape and not traits.computes_shapes:
        return "has a result whose shape depends on values"
    if node.opdef.role == "merge":
        return "chooses between branches"
    if any(plan.program.values[o].dtype is dtypes.string for o in node.outputs):
        return "makes strings"
    return None
