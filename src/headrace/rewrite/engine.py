"""One forward walk over a program, applying named rules to each node.

A rule is ``rule(node, state)`` and answers None (does not apply), the values that the node's outputs become, or another node
that takes its place. Rules stand in one ordered list; every firing is counted under the rule's name and shown by ``explain``. A rule that may change
bits says so with ``exact=False`` and can be switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from headrace.program.nodes import (
    Block,
    If,
    LoopValue,
    Node,
    Program,
    Statement,
    ValueInfo,
    While,
    count_uses,
)

__all__ = ["RewriteState", "Rule", "remove_dead", "rewrite"]


class Rule(NamedTuple):
    """A named rewrite."""

    name: str
    apply: Callable[[Node, RewriteState], tuple[int, ...] | Node | None]
    exact: bool = True


class RewriteState:
    """What rules see and change: substitutions, constants, the nodes already there (by scope)."""

    def __init__(self, program: Program) -> None:
        self.values: list[ValueInfo] = list(program.values)
        self.constants: dict[int, Any] = dict(program.constants)
        #: values of variables that change during the run
        self.mutable = frozenset(v.current for v in program.variables if v.written)
        #: how many inputs each value is in the program as it came
        self.uses = count_uses(program)
        self.replaced: dict[int, int] = {}
        self.producers: dict[int, Node] = {}  # value -> the node that makes it
        self.scopes: list[dict[Hashable, Node]] = [{}]
        self.fired: dict[str, int] = {}

    def constant(self, array: Any, like: int) -> int:
        info = self.values[like]
        self.values.append(ValueInfo(info.dtype, array.shape, info.tensor))
        value = len(self.values) - 1
        self.constants[value] = array
        return value

    def lookup(self, key: Hashable) -> Node | None:
        found: Node | None
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None


def rewrite(program: Program, rules: list[Rule]) -> Program:
    """Apply the rules, then drop what nobody needs any more."""
    state = RewriteState(program)
    body = _block(program.body, rules, state)
    get = state.replaced.get
    fetches = tuple(None if f is None else get(f, f) for f in program.fetches)
    result = program._replace( body=body, fetches=fetches, values=state.values, constants=state.constants,
        notes={**program.notes, **state.fired}, effects=tuple(get(e, e) for e in program.effects),
    )  # fmt: skip
    return remove_dead(result)


def _block(block: Block, rules: list[Rule], state: RewriteState) -> Block:
    out: list[Statement] = []
    replaced = state.replaced
    for statement in block:
        if isinstance(statement, Node):
            node = _node(statement, rules, state)
            if node is not None:
                out.append(node)
        elif isinstance(statement, If):
            state.scopes.append({})
            body = _block(statement.body, rules, state)
            state.scopes.pop()
            if body:
                out.append(If(replaced.get(statement.pred, statement.pred), statement.branch, body))
        else:
            out.append(_loop(statement, rules, state))
    return tuple(out)


def _node(node: Node, rules: list[Rule], state: RewriteState) -> Node | None:
    replaced = state.replaced
    if replaced:
        inputs = tuple([replaced.get(i, i) for i in node.inputs])
        if inputs != node.inputs:
            node = Node(node.opdef, inputs, node.outputs, node.attrs, node.op, node.writes)
    for rule in rules:
        answer = rule.apply(node, state)
        if answer is None:
            continue
        state.fired[rule.name] = state.fired.get(rule.name, 0) + 1
        if isinstance(answer, Node):
            node = answer
            continue
        for old, new in zip(node.outputs, answer):
            replaced[old] = new
        return None
    for value in node.outputs:
        state.producers[value] = node
    return node


def _loop(loop: While, rules: list[Rule], state: RewriteState) -> While:
    get = state.replaced.get
    inits = [get(v.init, v.init) for v in loop.values]
    state.scopes.append({})
    test = _block(loop.test, rules, state)
    body = _block(loop.body, rules, state)
    state.scopes.pop()
    values = tuple(
        LoopValue(v.value, init, get(v.next, v.next)) for v, init in zip(loop.values, inits)
    )
    return While(values, test, get(loop.cond, loop.cond), body, loop.op)


# dead code --------------------------------------------------------------------------------------


def remove_dead(program: Program) -> Program:
    """Drop pure nodes whose results nobody reads."""
    live = {f for f in program.fetches if f is not None} | set(program.effects)
    dropped = 0
    body, dropped = _live_block(program.body, live)
    notes = dict(program.notes)
    if dropped:
        notes["dead code"] = notes.get("dead code", 0) + dropped
    return program._replace(body=body, notes=notes)


def _live_block(block: Block, live: set[int]) -> tuple[Block, int]:
    out: list[Statement] = []
    dropped = 0
    for statement in reversed(block):
        if isinstance(statement, Node):
            traits = statement.opdef.traits
            if statement.writes or traits.stateful or any(o in live for o in statement.outputs):
                live.update(statement.inputs)
                out.append(statement)
            else:
                dropped += 1
        elif isinstance(statement, If):
            body, n = _live_block(statement.body, live)
            dropped += n
            if body:
                live.add(statement.pred)
                out.append(If(statement.pred, statement.branch, body))
        else:
            for v in statement.values:
                live.update((v.init, v.next, v.value))
            live.add(statement.cond)
            body, n = _live_block(statement.body, live)
            test, m = _live_block(statement.test, live)
            dropped += n + m
            out.append(While(statement.values, test, statement.cond, body, statement.op))
    out.reverse()
    return tuple(out), dropped
