"""Updates of many small variables become one step.

A network has more small variables (biases, scales, offsets) than large ones, and updating each
costs a dozen calls on a few numbers. Updates by the same rule with the same hyper-parameters are
element-wise: done on all of their elements together they give the same bits in as many calls as one
of them takes. The step stands where the last of them stood; nothing in between may look at what the
others wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import shapes
from headrace.lower.fusion import Fused, PlanBlock, PlanStatement
from headrace.ops.training.native_updates import MIN_OVERWRITTEN
from headrace.program.constants import exact_key
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["Grouped", "gradient_position", "group", "why_not_grouped"]

#: The largest variable that joins, and how many must come together to pay.
MAX_ELEMENTS = MIN_OVERWRITTEN
MIN_MEMBERS = {1: 6, 2: 3}  # by variables that one update writes; otherwise two


class Grouped(NamedTuple):
    """Updates by one rule, done together."""

    nodes: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(i for n in self.nodes for i in n.inputs))

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(o for n in self.nodes for o in n.outputs)

    @property
    def op(self) -> Any:
        return self.nodes[-1].op


def gradient_position(node: Node, program: Program) -> int | None:
    """Which input of an element-wise update has the variable's shape, all others being scalars."""
    written = node.opdef.traits.writes
    shape = program.values[node.inputs[0]].shape
    found = None
    for i, value in enumerate(node.inputs):
        have = program.values[value].shape
        if i in written:
            if have != shape:
                return None
        elif have == shape and found is None:
            found = i
        elif have != ():
            return None
    return found


def group(block: PlanBlock, program: Program) -> PlanBlock:
    """The block with small updates brought together."""
    if not program.writes:
        return block
    out: list[PlanStatement | None] = list(block)
    open_groups: dict[Any, list[int]] = {}
    touched: dict[int, Any] = {}  # values that a member has written: by which group
    same = {
        v.start: v.start for v in program.variables
    }  # reads of a variable as it was before the run
    for at, s in enumerate(block):
        if not isinstance(s, (Node, Fused)):
            _close_all(open_groups, touched, out, block)
            continue
        for value in s.inputs:
            key = touched.get(value)
            if key is not None and key in open_groups:
                _close(key, open_groups, out, block)
        if not isinstance(s, Node):
            continue
        if s.opdef.role in ("read", "identity") and s.inputs[0] in same:
            same[s.outputs[0]] = same[s.inputs[0]]
            continue
        key = _key(s, program, same)
        if key is None:
            if s.opdef.traits.stateful and not s.writes:
                _close_all(open_groups, touched, out, block)
            continue
        open_groups.setdefault(key, []).append(at)
        for w in s.writes:
            touched[program.variables[w].current] = key
        for o in s.outputs:
            touched[o] = key
    _close_all(open_groups, touched, out, block)
    return tuple(s for s in out if s is not None)


def _position(node: Node, program: Program) -> int | str:
    """Which input of an update is its gradient; why it cannot be a member of a group."""
    traits = node.opdef.traits
    if not node.writes or not traits.elementwise or node.opdef.trusting is None:
        return "it is not element-wise"
    info = program.values[node.inputs[0]]
    size = shapes.num_elements(info.shape)
    if size is None or not info.shape:
        return "its variable is a number, or its shape is not known"
    if size > MAX_ELEMENTS:
        return f"its variable has more than {MAX_ELEMENTS:,} elements"
    if len(set(node.writes)) != len(node.writes):
        return "it writes one variable twice"
    at = gradient_position(node, program)
    return "not one input has the variable's shape, the others being numbers" if at is None else at


def why_not_grouped(node: Node, program: Program) -> str:
    """Of an update that is a step of its own."""
    at = _position(node, program)
    if isinstance(at, str):
        return at
    least = MIN_MEMBERS.get(len(node.writes), 2)
    return f"fewer than {least} updates with the same rule and rates come one after the other"


def _key(
    node: Node, program: Program, same: dict[int, int]
) -> tuple[int | str | DType | tuple[Any, ...], ...] | None:
    """What the members of a group have in common; None for anything that cannot be a member."""
    at = _position(node, program)
    if isinstance(at, str):
        return None
    written = node.opdef.traits.writes
    rest = [v for i, v in enumerate(node.inputs) if i not in written and i != at]
    shared = tuple(same.get(v, v) for v in rest)
    attrs = tuple(exact_key(node.attrs[p]) for p in node.opdef.kernel_params)
    return (node.opdef.name, program.variables[node.writes[0]].dtype, at, shared, attrs)


def _close(
    key: Sequence[int | str | DType | Sequence[Any]],
    groups: dict[Any, list[int]],
    out: list[PlanStatement | None],
    block: PlanBlock,
) -> None:
    members = groups.pop(key)
    nodes = [block[i] for i in members]
    first = nodes[0]
    assert isinstance(first, Node)
    if len(nodes) < MIN_MEMBERS.get(len(first.writes), 2):
        return
    for i in members[:-1]:
        out[i] = None
    out[members[-1]] = Grouped(tuple(nodes))  # type: ignore[arg-type]


def _close_all(
    groups: dict[Any, list[int]],
    touched: dict[int, Any],
    out: list[PlanStatement | None],
    block: PlanBlock,
) -> None:
    for key in list(groups):
        _close(key, groups, out, block)
    touched.clear()
