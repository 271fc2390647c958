"""Why an operation is a step of its own and no member of a group, in words for ``explain``.

Nothing of it is kept while a plan is made but what depends on an operation's neighbours
(``Plan.apart``): the passes' own questions are asked again.
"""

from __future__ import annotations

from headrace.lower.fusion import why_not_fusable
from headrace.lower.plan import Plan
from headrace.lower.select_updates import why_not_grouped
from headrace.ops.training.product_updates import ProductUpdate
from headrace.program.nodes import Node

__all__ = ["why_alone"]


def why_alone(node: Node, plan: Plan) -> str:
    """Empty for operations of which no groups are made."""
    traits = node.opdef.traits
    known = plan.apart.get(node.op, "")
    if isinstance(node.opdef.native, ProductUpdate):  # a product and its update
        return ""
    if node.writes:
        return known or (why_not_grouped(node, plan.program) if traits.elementwise else "")
    if node.opdef.role == "reduction":
        return known or "what it reduces is not made by a group"
    if not traits.elementwise and not traits.like_elementwise:
        return ""
    mutable = frozenset(v.current for v in plan.program.variables if v.written)
    why = why_not_fusable(node, plan.program, mutable)
    return why or known or "no element-wise operation of its shape makes its inputs or reads it"
