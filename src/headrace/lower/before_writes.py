"""What a program computes before it writes anything: usually the forward and the backward pass of a
training step.

``split`` takes those nodes out. They read variables as they were before the run and have no effect,
so they may run first, and as often as one likes. What is left writes the variables; it gets what
the first part computed as further feeds.

    pure, rest = split(program)
    rest.feeds == program.feeds + pure.fetches
"""

from __future__ import annotations

from headrace.lower.kept_values import is_pure
from headrace.program.nodes import Node, Program, Statement, walk

__all__ = ["split"]


def split(program: Program) -> tuple[Program, Program] | None:
    """The part before the writes and the rest; None if there is nothing to split."""
    if not any(v.written for v in program.variables):
        return None
    if any(
        not isinstance(s, Node) for s in program.body
    ):  # branches and loops are left as they are
        return None
    first = _first_part(program)
    if not first:
        return None
    made = {o: n for n in first for o in n.outputs}
    views = _views_of_variables(program, first)
    inside = {id(n) for n in first}
    rest = [s for s in program.body if id(s) not in inside]
    again: dict[int, Node] = {}
    handed: dict[int, None] = {}
    wanted = _wanted(program, rest)
    while wanted:
        value = wanted.pop()
        node = made.get(value)
        if node is None:
            continue
        if (
            value in views
        ):  # a view of a variable must not be held while that is written: the rest makes it again
            if id(node) not in again:
                again[id(node)] = node
                wanted.extend(node.inputs)
        else:
            handed[value] = None
    passed = tuple(sorted(handed))
    pure = program._replace(fetches=passed, body=tuple(first), effects=(), borrowed=True)
    order = [s for s in program.body if id(s) not in inside or id(s) in again]
    return pure, program._replace(feeds=program.feeds + passed, body=tuple(order))


def _first_part(program: Program) -> list[Node]:
    """The pure nodes that depend on no write, in their order."""
    known = {*program.feeds, *program.constants, *(v.start for v in program.variables)}
    found = []
    for s in program.body:
        if isinstance(s, Node) and is_pure(s) and all(i in known for i in s.inputs):
            found.append(s)
            known.update(s.outputs)
    return found


def _views_of_variables(program: Program, nodes: list[Node]) -> set[int]:
    lying = {v.start for v in program.variables}
    found: set[int] = set()
    for node in nodes:
        view = node.opdef.traits.view or node.opdef.name == "ReadVariableOp"
        if view and any(i in lying for i in node.inputs):
            lying.update(node.outputs)
            found.update(node.outputs)
    return found


def _wanted(program: Program, rest: list[Statement]) -> list[int]:
    """Values that the rest, or the caller, reads."""
    values = [f for f in (*program.fetches, *program.effects) if f is not None]
    for node in walk(tuple(rest)):
        values.extend(node.inputs)
    return values
