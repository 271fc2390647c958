"""Stacks that nothing reads: a backward loop took a value off only to ask for its shape, which
turned out to be known.

Pushing and taking off are effects, so that dead code does not go by itself here. A stack goes with
all that is done to it if nothing reads what is taken off; what was pushed need not be kept through
the loop any more.
"""

from __future__ import annotations

from headrace.program.nodes import Block, If, Node, Program, Statement, While, count_uses, walk
from headrace.rewrite.rules.dead_code import remove_dead

__all__ = ["remove_unread_stacks"]


def remove_unread_stacks(program: Program) -> Program:
    """Also those that are only read to be pushed onto such a stack."""
    while True:
        unread = _unread(program)
        if not unread:
            return program
        notes = {**program.notes, "dead code": program.notes.get("dead code", 0) + len(unread)}
        program = program._replace(body=_without(program.body, unread), notes=notes)
        program = remove_dead(program)


def _unread(program: Program) -> set[int]:
    """The handles of stacks whose every use is an operation on stacks without a reader."""
    handles: dict[int, int] = {}  # and how many uses were seen
    read: set[int] = set()
    uses = None
    for node in walk(program.body):
        name = node.opdef.name
        if name == "StackV2":
            uses = uses or count_uses(program)
            handles[node.outputs[0]] = 0
        elif node.opdef.traits.stored and node.inputs[0] in handles:
            assert uses is not None
            handles[node.inputs[0]] += 1
            if any(uses.get(o) for o in node.outputs):
                read.add(node.inputs[0])
    return {h for h, n in handles.items() if uses and uses.get(h, 0) == n and h not in read}


def _without(block: Block, handles: set[int]) -> Block:
    out: list[Statement] = []
    for s in block:
        if isinstance(s, Node):
            name = s.opdef.name
            if name == "StackV2" and s.outputs[0] in handles:
                continue
            if s.opdef.traits.stored and s.inputs[0] in handles:
                continue
            out.append(s)
        elif isinstance(s, If):
            body = _without(s.body, handles)
            if body:
                out.append(If(s.pred, s.branch, body))
        else:
            test, body = _without(s.test, handles), _without(s.body, handles)
            out.append(While(s.values, test, s.cond, body, s.op))
    return tuple(out)
