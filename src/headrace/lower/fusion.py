"""Chains of element-wise operations become one step.

A fused step runs its members block by block over threads when its arrays are large, and one after
the other in a single temporary when they are small. A producer joins the group of its only user if
both have the same static shape; then nothing outside can tell when it ran. A reduction over
everything or over the last axis may close a group: then the group's result is never stored.

Where native kernels are at hand, groups grow (``growing``): a number that is repeated to the full
shape (Fill, BroadcastTo) joins as the number, and a producer with several users joins each of their
groups, if all of them are in groups: a pass over memory costs more than to compute it twice.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Union

from headrace.core import dtypes, shapes
from headrace.core.opdef import OpDef, lookup
from headrace.program.nodes import Block, If, Node, Program, Statement, While, count_uses

if TYPE_CHECKING:
    from headrace.core.tensor import Operation
    from headrace.lower.select_updates import Grouped

__all__ = [
    "Fused",
    "PlanBlock",
    "PlanIf",
    "PlanStatement",
    "PlanWhile",
    "fuse",
    "statements",
    "why_not_fusable",
]

#: Below this many elements (if known) separate calls are as good.
MIN_ELEMENTS = 16 * 1024

#: A single cheap function gains from another core only on many elements.
MIN_SINGLE_FUNCTION = 512 * 1024

#: Elements in each row of a batch of unknown size from which its functions may turn out large.
LONG_ROWS = 4096


#: Users of a producer, and members of its group, up to which it may be computed for each of them.
MAX_USERS, MAX_SHARED = 8, 12

#: Why a node did not join the group that makes an input.
OTHER_SHAPE = "the group that makes an input is of another shape"
READ_ELSEWHERE = "the group that makes an input is read by other steps, too"
TOO_SMALL = f"it has fewer than {MIN_ELEMENTS:,} elements"

_REDUCED_TYPES = frozenset([dtypes.float32, dtypes.float64])


#: The nodes of a group by identity: a producer may come in by several ways.
_Members = dict[int, Node]


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
        return self.nodes[-1].opdef.role == "reduction"


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


def statements(block: PlanBlock) -> Iterator[PlanStatement]:
    """Every statement in running order, branches and loop bodies included."""
    stack = [iter(block)]
    while stack:
        s = next(stack[-1], None)
        if s is None:
            stack.pop()
            continue
        yield s
        if isinstance(s, PlanWhile):
            stack += [iter(s.body), iter(s.test)]
        elif isinstance(s, PlanIf):
            stack.append(iter(s.body))


def fuse(
    program: Program,
    enabled: bool = True,
    growing: bool = False,
    apart: dict[Operation, str] | None = None,
) -> PlanBlock:
    """The program's block with element-wise groups made.

    ``apart`` gets the reasons why operations that might be members are none, as far as they depend
    on their neighbours; group_reasons.py has the others.
    """
    return _Fusing(program, enabled, growing and enabled, apart).block(program.body)


def why_not_fusable(node: Node, program: Program, mutable: frozenset[int]) -> str:
    """Why a node cannot be in a group, whatever its neighbours are; empty if it can."""
    traits = node.opdef.traits
    if traits.stateful or len(node.outputs) != 1 or node.writes:
        return "it has a state, or several results"
    if not traits.elementwise and not _is_like_elementwise(node, program):
        return "it is not element-wise for inputs of these shapes"
    info = program.values[node.outputs[0]]
    if not info.shape:
        return "it gives a number, not an array" if info.shape is not None else "its rank is open"
    if info.dtype.size == 1 and info.dtype.name in ("string", "resource"):
        return "it is not about numbers"
    n = shapes.num_elements(info.shape)
    if n is not None and n < MIN_ELEMENTS:
        return TOO_SMALL
    return "" if mutable.isdisjoint(node.inputs) else "it reads a variable that this run writes"


def _is_like_elementwise(node: Node, program: Program) -> bool:
    """Ops that are element-wise for inputs of the result's shape."""
    if not node.opdef.traits.like_elementwise:
        return False
    shape = program.values[node.outputs[0]].shape
    if len(node.inputs) == 1:
        return shape is not None
    known = shapes.known(shape) is not None
    return known and all(program.values[i].shape == shape for i in node.inputs)


def _repeated(block: Block, program: Program, mutable: frozenset[int]) -> dict[int, int]:
    """Values that are one number everywhere, with the number's value."""
    found: dict[int, int] = {}
    for s in block:
        at = s.opdef.traits.repeats if isinstance(s, Node) else None
        if at is None:
            continue
        assert isinstance(s, Node)
        number, shape = s.inputs[at], program.values[s.outputs[0]].shape
        if program.values[number].shape == () and shapes.known(shape) and number not in mutable:
            found[s.outputs[0]] = number
    return found


def _with_numbers(
    node: Node, numbers: dict[int, int], program: Program, uses: dict[int, int]
) -> Node:
    """The node with numbers in the place of arrays that repeat them, if one array is left."""
    shape = program.values[node.outputs[0]].shape
    repeats = [i in numbers and program.values[i].shape == shape for i in node.inputs]
    others = [i for i, r in zip(node.inputs, repeats) if not r]
    if True not in repeats or not any(program.values[i].shape == shape for i in others):
        return node
    opdef = _broadcasting(node.opdef)
    if opdef is None:
        return node
    inputs = []
    for i, r in zip(node.inputs, repeats):
        inputs.append(numbers[i] if r else i)
        if r:
            uses[i] -= 1
            uses[numbers[i]] = uses.get(numbers[i], 0) + 1
    return node._replace(opdef=opdef, inputs=tuple(inputs))


@functools.cache
def _broadcasting(opdef: OpDef) -> OpDef | None:
    """The op as one that takes numbers in the place of arrays; None if there is no such kernel."""
    if opdef.role == "select":
        return lookup("SelectV2")
    if not opdef.traits.elementwise:
        return None
    if not opdef.traits.same_shapes:
        return opdef
    if opdef.trusting is None:
        return None
    made = copy.copy(opdef)
    made.kernel, made.traits = opdef.trusting, opdef.traits._replace(same_shapes=False)
    return made


class _Sharing:
    """Producers that may join the groups of all their users."""

    def __init__(self, block: Block, program: Program, fusable: set[int]) -> None:
        self.block, self.program, self.fusable = block, program, fusable

    @functools.cached_property
    def users(self) -> dict[int, list[bool]]:
        """Of each value, whether its users are fusable and have its shape (few blocks ask)."""
        found: dict[int, list[bool]] = {}
        values, fusable = self.program.values, self.fusable
        for s in self.block:
            if isinstance(s, Node):
                fits = bool(s.outputs) and s.outputs[0] in fusable
                for i in dict.fromkeys(s.inputs):
                    same = fits and values[i].shape == values[s.outputs[0]].shape
                    found.setdefault(i, []).append(same)
        return found

    def allows(self, value: int, uses: int, times: int, producer: _Members) -> bool:
        """Whether all uses are in groups of the same shape."""
        users = self.users.get(value, [])
        return (
            1 < len(users) <= MAX_USERS
            and all(users)
            and len(producer) <= MAX_SHARED
            and uses >= times
        )


class _Fusing:
    """Groups under construction, for all blocks of a program."""

    def __init__(
        self, program: Program, enabled: bool, growing: bool, apart: dict[Operation, str] | None
    ) -> None:
        self.program, self.enabled, self.growing = program, enabled, growing
        self.apart = {} if apart is None else apart
        self.uses = count_uses(program)
        self.mutable = frozenset(v.current for v in program.variables if v.written)

    def block(self, block: Block) -> PlanBlock:
        """A block's statements with groups; those of inner blocks are their own."""
        if self.growing:
            block = self._without_repeats(block)
        groups = _Groups(block, self)
        for s in block:
            if isinstance(s, If):
                groups.out.append(PlanIf(s.pred, s.branch, self.block(s.body)))
            elif isinstance(s, While):
                groups.out.append(PlanWhile(s, self.block(s.test), self.block(s.body)))
            else:
                groups.node(s)
        return groups.finished()

    def is_fusable(self, s: Statement) -> bool:
        return isinstance(s, Node) and not why_not_fusable(s, self.program, self.mutable)

    def _without_repeats(self, block: Block) -> Block:
        """Numbers in the place of arrays that repeat them, which nothing reads then."""
        program, uses = self.program, self.uses
        numbers = _repeated(block, program, self.mutable)
        if not numbers:
            return block
        changed = [
            _with_numbers(s, numbers, program, uses)
            if isinstance(s, Node) and self.is_fusable(s)
            else s
            for s in block
        ]

        def is_read(s: Statement) -> bool:
            if not isinstance(s, Node) or not s.outputs or s.outputs[0] not in numbers:
                return True
            return uses.get(s.outputs[0], 0) > 0

        return tuple([s for s in changed if is_read(s)])


class _Groups:
    """The groups of one block."""

    def __init__(self, block: Block, fusing: _Fusing) -> None:
        self.fusing, self.program, self.uses = fusing, fusing.program, fusing.uses
        # (a fusable node has one output)
        is_fusable = fusing.is_fusable
        self.fusable = {s.outputs[0] for s in block if is_fusable(s)} if fusing.enabled else set()  # type: ignore[union-attr]
        self.sharing = _Sharing(block, fusing.program, self.fusable) if fusing.growing else None
        self.groups: dict[int, _Members] = {}  # output of the group's last node -> its nodes
        self.closed: dict[int, _Members] = {}  # groups that end in a reduction
        self.place: dict[int, int] = {}
        self.out: list[PlanStatement | None] = []

    def node(self, s: Node) -> None:
        """One more node of the block, in a group or alone."""
        if s.outputs and s.outputs[0] in self.fusable:
            self.groups[s.outputs[0]] = _joined(self._parts(s), s)
            self.place[s.outputs[0]] = len(self.out)
        elif self.fusing.enabled and s.opdef.role == "reduction" and s.inputs[0] in self.groups:
            why = _why_not_closing(s, self.program, self.uses)
            if why:
                self.fusing.apart[s.op] = why
            else:
                source = s.inputs[0]
                self.closed[s.outputs[0]] = _joined([self.groups.pop(source)], s)
                self.out[self.place[source]] = None
                self.place[s.outputs[0]] = len(self.out)
        self.out.append(s)

    def _parts(self, s: Node) -> list[_Members]:
        """The groups that make a node's inputs and become part of its own."""
        shape = self.program.values[s.outputs[0]].shape
        parts: list[_Members] = []
        for i in dict.fromkeys(s.inputs):
            producer = self.groups.get(i)
            if producer is None:
                continue
            if self.program.values[i].shape != shape:
                self.fusing.apart[s.op] = OTHER_SHAPE
                continue
            times, uses = s.inputs.count(i), self.uses[i]
            if uses == times:
                parts.append(producer)
                del self.groups[i]
                self.out[self.place[i]] = None
            elif self.sharing is not None and self.sharing.allows(i, uses, times, producer):
                self.uses[i] -= times
                parts.append(dict(producer))
            else:
                self.fusing.apart[s.op] = READ_ELSEWHERE
        return parts

    def finished(self) -> PlanBlock:
        """The block's statements, groups in the place of their last nodes."""
        self.groups.update(self.closed)
        for value, group in self.groups.items():
            members = [*group.values()]
            if len(members) > 1 or self._gains_alone(members[0], value):
                members.sort(key=lambda n: self.place[n.outputs[0]])
                self.out[self.place[value]] = Fused(tuple(members), _inputs(members))
        return tuple([s for s in self.out if s is not None])

    def _gains_alone(self, node: Node, value: int) -> bool:
        """Whether a single op is worth a group: its blocks, or native code, beat NumPy's pass."""
        traits = node.opdef.traits
        if traits.heavy:
            return True
        if traits.like_elementwise:
            return False
        # our own steps see to threads themselves
        is_large = node.opdef.name[0] != "_" and _is_large(value, self.program)
        return is_large or (self.fusing.growing and _takes_passes(node, self.program))


def _joined(parts: list[_Members], node: Node) -> _Members:
    """The members of all parts, and the node; the largest part takes the others in, so that long
    chains take no longer than their length.
    """
    whole = max(parts, key=len, default={})
    for part in parts:
        if part is not whole:
            whole.update(part)
    whole[id(node)] = node
    return whole


def _why_not_closing(node: Node, program: Program, uses: dict[int, int]) -> str:
    """Why a reduction is not the end of the group that makes its input; empty if it is: nobody else
    reads that, and it is over all axes or the last, of floats.
    """
    source = node.inputs[0]
    info, axes = program.values[source], program.constants.get(node.inputs[1])
    if uses[source] != 1:
        return READ_ELSEWHERE
    if axes is None or not info.shape:
        return "its axes, or the rank of its input, are not known"
    rank = len(info.shape)
    gone = {int(a) % rank for a in axes.reshape(-1) if -rank <= a < rank}
    if info.dtype not in _REDUCED_TYPES or any(not -rank <= a < rank for a in axes.reshape(-1)):
        return "it is not of float32 or float64"
    if len(gone) == rank:
        is_whole = node.opdef.traits.reduces in ("sum", "mean")
        return "" if is_whole else "it is over all axes, and neither a sum nor a mean"
    return "" if gone == {rank - 1} else "it is over other axes than the last"


def _is_large(value: int, program: Program) -> bool:
    """Whether a single cheap function has, or for large batches may have, so many elements that
    another core helps.
    """
    shape = program.values[value].shape or ()
    n = shapes.num_elements(shape)
    if n is None:  # perhaps: it is asked again when it runs
        return shape[0] is None and (shapes.num_elements(shape[1:]) or 0) >= LONG_ROWS
    return n >= MIN_SINGLE_FUNCTION


def _takes_passes(node: Node, program: Program) -> bool:
    """Whether NumPy makes several passes over the arrays of a single op, native code one: the
    gradient of an activation.
    """
    if node.opdef.traits.ufunc is not None or node.opdef.traits.into or node.opdef.name[0] == "_":
        return False
    return shapes.num_elements(program.values[node.outputs[0]].shape) is not None


def _inputs(members: list[Node]) -> tuple[int, ...]:
    made = {m.outputs[0] for m in members}
    wanted = [m.inputs[:1] if m.opdef.role == "reduction" else m.inputs for m in members]
    return tuple(dict.fromkeys(i for inputs in wanted for i in inputs if i not in made))
