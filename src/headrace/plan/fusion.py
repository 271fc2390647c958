"""Chains of element-wise operations become one step.

A fused step runs its members block by block over threads when its arrays are large, and one after the other in a single
temporary when they are small. A producer joins the group of its only user if both have the same static shape; then
nothing outside can tell when it ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from headrace.core import shapes
from headrace.program.nodes import Block, If, Node, Program, While, count_uses

if TYPE_CHECKING:
    from headrace.plan.grouping import Grouped

__all__ = ["Fused", "PlanBlock", "PlanIf", "PlanStatement", "PlanWhile", "fuse"]

#: Below this many elements (if known) separate calls are as good.
MIN_ELEMENTS = 16 * 1024

#: Worth running in blocks over threads even alone.
HEAVY = frozenset([
    "Tanh", "Exp", "Log", "Sigmoid", "Erf", "Erfc", "Pow", "Sin", "Cos", "Tan", "Log1p", "Expm1", "Softplus", "Elu",
    "Selu", "Atan", "Asin", "Acos", "Sinh", "Cosh",
])  # fmt: skip


class Fused(NamedTuple):
    """Element-wise nodes in order; the last one's output is the step's."""

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]

    @property
    def output(self) -> int:
        return self.nodes[-1].outputs[0]


class PlanIf(NamedTuple):
    pred: int
    branch: bool
    body: PlanBlock


class PlanWhile(NamedTuple):
    loop: While
    test: PlanBlock
    body: PlanBlock


PlanStatement = Union[Node, Fused, PlanIf, PlanWhile, "Grouped"]
PlanBlock = tuple[PlanStatement, ...]


def fuse(program: Program, enabled: bool = True) -> PlanBlock:
    """The program's block with element-wise groups made."""
    uses = count_uses(program)
    mutable = frozenset(v.current for v in program.variables if v.written)
    return _block(program.body, program, uses, mutable, enabled)


def _fusable(node: Node, program: Program, mutable: frozenset[int]) -> bool:
    traits = node.opdef.traits
    if not traits.elementwise or traits.stateful or len(node.outputs) != 1 or node.writes:
        return False
    info = program.values[node.outputs[0]]
    if not info.shape or (info.dtype.size == 1 and info.dtype.name in ("string", "resource")):
        return False
    n = shapes.num_elements(info.shape)
    if n is not None and n < MIN_ELEMENTS:
        return False
    return mutable.isdisjoint(node.inputs)


def _block(
    block: Block, program: Program, uses: dict[int, int], mutable: frozenset[int], enabled: bool
) -> PlanBlock:
    groups: dict[int, list[Node]] = {}  # output of the group's last node -> its nodes
    out: list[PlanStatement | None] = []
    place: dict[int, int] = {}
    for s in block:
        if isinstance(s, If):
            out.append(PlanIf(s.pred, s.branch, _block(s.body, program, uses, mutable, enabled)))
        elif isinstance(s, While):
            test = _block(s.test, program, uses, mutable, enabled)
            out.append(PlanWhile(s, test, _block(s.body, program, uses, mutable, enabled)))
        elif enabled and _fusable(s, program, mutable):
            shape = program.values[s.outputs[0]].shape
            members: list[Node] = []
            for i in dict.fromkeys(s.inputs):
                producer = groups.get(i)
                if producer is None or uses[i] != s.inputs.count(i):
                    continue
                if program.values[i].shape == shape:
                    members.extend(producer)
                    del groups[i]
                    out[place[i]] = None
            members.append(s)
            groups[s.outputs[0]] = members
            place[s.outputs[0]] = len(out)
            out.append(s)
        else:
            out.append(s)
    for value, members in groups.items():
        if len(members) > 1 or members[0].opdef.name in HEAVY:
            members.sort(key=lambda n: n.outputs[0])
            out[place[value]] = Fused(tuple(members), _inputs(members))
    return tuple(s for s in out if s is not None)


def _inputs(members: list[Node]) -> tuple[int, ...]:
    made = {m.outputs[0] for m in members}
    return tuple(dict.fromkeys(i for m in members for i in m.inputs if i not in made))
