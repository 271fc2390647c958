"""Chains of element-wise operations become one step.

A fused step runs its members block by block over threads when its arrays are large, and one after
the other in a single temporary when they are small. A producer joins the group of its only user if
both have the same static shape; then nothing outside can tell when it ran. A reduction over
everything or over the last axis may close a group: then the group's result is never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from headrace.core import dtypes, shapes
from headrace.program.nodes import Block, If, Node, Program, While, count_uses

if TYPE_CHECKING:
    from headrace.lower.update_groups import Grouped

__all__ = ["Fused", "PlanBlock", "PlanIf", "PlanStatement", "PlanWhile", "fuse"]

#: Below this many elements (if known) separate calls are as good.
MIN_ELEMENTS = 16 * 1024

#: A single cheap function gains from another core only on many elements.
LARGE_ALONE = 512 * 1024

#: Elements in each row of a batch of unknown size from which its functions may turn out large.
LONG_ROWS = 4096

#: Worth running in blocks over threads even alone.
HEAVY = frozenset(
    [
        "Tanh",
        "Exp",
        "Log",
        "Sigmoid",
        "Erf",
        "Erfc",
        "Pow",
        "Sin",
        "Cos",
        "Tan",
        "Log1p",
        "Expm1",
        "Softplus",
        "Elu",
        "Selu",
        "Atan",
        "Asin",
        "Acos",
        "Sinh",
        "Cosh",
    ]
)


#: May close a group.
REDUCTIONS = frozenset(["Sum", "Mean", "Max", "Min"])
_REDUCED_TYPES = frozenset([dtypes.float32, dtypes.float64])


class Fused(NamedTuple):
    """Element-wise nodes in order, perhaps a reduction after them.

    The last one's output is the step's.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]

    @property
    def output(self) -> int:
        return self.nodes[-1].outputs[0]

    @property
    def reduces(self) -> bool:
        return self.nodes[-1].opdef.name in REDUCTIONS


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
    closed: dict[int, list[Node]] = {}  # groups that end in a reduction
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
        elif enabled and s.opdef.name in REDUCTIONS and _closes(s, groups, program, uses):
            source = s.inputs[0]
            members = [*groups.pop(source), s]
            out[place[source]] = None
            place[s.outputs[0]] = len(out)
            closed[s.outputs[0]] = members
            out.append(s)
        else:
            out.append(s)
    groups.update(closed)
    for value, members in groups.items():
        alone = members[0].opdef.name
        large = alone[0] != "_" and _is_large(
            value, program
        )  # our own steps see to threads themselves
        if len(members) > 1 or alone in HEAVY or large:
            members.sort(key=lambda n: place[n.outputs[0]])
            out[place[value]] = Fused(tuple(members), _inputs(members))
    return tuple(s for s in out if s is not None)


def _closes(
    node: Node, groups: dict[int, list[Node]], program: Program, uses: dict[int, int]
) -> bool:
    """A reduction of a group that nobody else reads, of floats, over all axes or the last."""
    source = node.inputs[0]
    info, axes = program.values[source], program.constants.get(node.inputs[1])
    if source not in groups or uses[source] != 1 or axes is None or not info.shape:
        return False
    rank = len(info.shape)
    gone = {int(a) % rank for a in axes.reshape(-1) if -rank <= a < rank}
    if info.dtype not in _REDUCED_TYPES or any(not -rank <= a < rank for a in axes.reshape(-1)):
        return False
    if len(gone) == rank:
        return node.opdef.name in ("Sum", "Mean")
    return gone == {rank - 1}


def _is_large(value: int, program: Program) -> bool:
    """Whether a single cheap function has, or for large batches may have, so many elements that
    another core helps.
    """
    shape = program.values[value].shape or ()
    n = shapes.num_elements(shape)
    if n is None:  # perhaps: it is asked again when it runs
        return shape[0] is None and (shapes.num_elements(shape[1:]) or 0) >= LONG_ROWS
    return n >= LARGE_ALONE


def _inputs(members: list[Node]) -> tuple[int, ...]:
    made = {m.outputs[0] for m in members}
    wanted = [m.inputs[:1] if m.opdef.name in REDUCTIONS else m.inputs for m in members]
    return tuple(dict.fromkeys(i for inputs in wanted for i in inputs if i not in made))
