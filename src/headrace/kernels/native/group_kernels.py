"""Fused element-wise groups as kernels.

A :class:`Group` is the structure of a fused step, without graph or arrays: the element types of its
inputs and its members in order. Groups of the same structure share a kernel, whatever graph or
session they belong to; numbers that stand in a graph as constants are operands, not part of the
code. ``refuses`` says why a group has none.

    >>> group = Group(("f32", "f32"), (Member("Mul", (0, 1), "f32"), Member("Tanh", (2,), "f32")))
    >>> kernel = group_kernel(group, ("full", "row"))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.kernels.native.element_loops import Access, element_loop, lanes_for
from headrace.kernels.native.element_rules import RULES, refusal
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel

__all__ = [
    "Group",
    "Member",
    "body_cost",
    "group_kernel",
    "group_source",
    "refuses",
    "write_members",
]

_HALF = ("f16", "bf16")
#: Elementary operations from which a group computes for longer than it waits for memory.
HEAVY_COST = 10
#: Elementary operations in a chain, and the registers for a value from there on.
DEEP_CHAINS = ((96, 16), (48, 8))
#: Members that a group may have: a longer one takes too long to compile.
MAX_MEMBERS = 64


class Member(NamedTuple):
    """An op of a group.

    ``inputs`` count the group's inputs first, then the members before this one. ``attributes`` are
    pairs of name and value, as far as the op's rule reads them.
    """

    op: str
    inputs: tuple[int, ...]
    element: str
    attributes: tuple[tuple[str, Any], ...] = ()


class Group(NamedTuple):
    """The structure of a fused step; its result is the last member's."""

    inputs: tuple[str, ...]
    members: tuple[Member, ...]

    @property
    def element(self) -> str:
        return self.members[-1].element


def refuses(group: Group) -> str:
    """Why there is no kernel for a group; empty if there is one."""
    if len(group.members) > MAX_MEMBERS:
        return f"more than {MAX_MEMBERS} operations"
    elements = [*group.inputs, *(m.element for m in group.members)]
    for member in group.members:
        why = refusal(member.op, [elements[i] for i in member.inputs], dict(member.attributes))
        if why:
            return why
    return ""


def body_cost(group: Group) -> int:
    """Elementary operations for an element."""
    return sum(RULES[m.op].cost for m in group.members)


def chain_cost(group: Group) -> int:
    """Elementary operations one after the other, each waiting for the one before it."""
    costs = [0] * len(group.inputs)
    for member in group.members:
        before = max([costs[i] for i in member.inputs], default=0)
        costs.append(before + RULES[member.op].cost)
    return max(costs)


def interleave(group: Group) -> int:
    """Registers for a value: long chains wait for their own results, several hide that.

    More than registers there are: what goes to the stack and back waits for less. Ten tanh on AMD
    Zen 5, ns an element by 2, 4, 8 and 16: 6.7, 4.1, 2.9, 2.6 (AVX2), 3.6, 2.1, 1.5, 1.3 (AVX-512);
    of one tanh, exp or logistic loss 4 are best, or as good.
    """
    if body_cost(group) < HEAVY_COST:
        return 2
    chain = chain_cost(group)
    return next((n for least, n in DEEP_CHAINS if chain >= least), 4)


def write_members(f: Function, inputs: Sequence[Value], members: Sequence[Member]) -> list[Value]:
    """Instructions of all members for one vector; the members' values.

    Numbers of 16 bits are kept as float32 that were rounded to their type.
    """
    values = _started(f, inputs)
    for member in members:
        _append(f, values, member)
    return values


def write_result(f: Function, inputs: Sequence[Value], group: Group, lanes: int) -> Value:
    """The last member's value, of the group's type, computed by parts of so many lanes.

    The parts take turns, a member at a time: what a member needs stays in registers, and while one
    part waits for a quotient the next one is under way. Ten tanh of 16 registers take 1.94 ns for 8
    elements as a whole and 1.66 by parts of 8 registers (AMD Zen 5, AVX2; AVX-512: 1.05 and 0.84).
    """
    whole = max([v.type.lanes for v in inputs], default=0)
    parts = [
        _started(f, [f.part(v, at, lanes) for v in inputs] if whole > lanes else inputs)
        for at in range(0, max(whole, 1), lanes)
    ]
    for member in group.members:
        for values in parts:
            _append(f, values, member)
    return f.joined([f.convert(values[-1], group.element) for values in parts])


def _started(f: Function, inputs: Sequence[Value]) -> list[Value]:
    return [f.convert(v, "f32") if v.type.element in _HALF else v for v in inputs]


def _append(f: Function, values: list[Value], member: Member) -> None:
    """The value of one more member."""
    made = RULES[member.op].write(f, [values[i] for i in member.inputs], dict(member.attributes))
    if member.element in _HALF:
        made = f.convert(f.convert(made, member.element), "f32")
    values.append(made)


def group_source(group: Group, extents: Sequence[str]) -> str:
    """The module of a group's kernel ``group``."""
    inputs = [Access(e, x) for e, x in zip(group.inputs, extents)]
    lanes, registers = (
        lanes_for([*group.inputs, *(m.element for m in group.members)]),
        interleave(group),
    )
    part = lanes * min(registers, max(4, registers // 2))

    def body(f: Function, values: list[Value]) -> list[Value]:
        return [write_result(f, values, group, part)]

    return element_loop(
        "group", inputs, [Access(group.element)], body, interleave=registers, lanes=lanes
    )


@functools.lru_cache(1024)
def group_kernel(group: Group, extents: tuple[str, ...]) -> Kernel:
    """The kernel of a group whose inputs have these extents (element_loops.py)."""
    return Kernel(group_source(group, extents), "group")
