"""One forward walk over a program, applying named rules to each node.

A rule has a name, the op types at which its pattern ends (one dictionary look-up finds the rules of
a node), and a function ``rule(node, state)`` that checks and rewrites. It answers None (does not
apply), the values that the node's outputs become, or another node that takes its place; nodes that
come before that one are made with ``state.add``. Inputs are rewritten before their users, so a
pattern is matched backwards from its last node. Every firing is noted with the rule and the
operation; a rule whose pattern was there but whose check failed says why with ``return
state.no(reason)``. A rule that may change bits says so with ``exact=False``.

    Rule("double negation", ("Neg",), _double_negation, "-(-x) is x", example="-(-x) -> x")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.core.opdef import traits_of
from headrace.program.nodes import (
    Block,
    Firing,
    If,
    LoopValue,
    NearMiss,
    Node,
    Program,
    Statement,
    While,
)
from headrace.rewrite.analysis.dims import dims_of
from headrace.rewrite.analysis.loop_variables import dims_in_rounds
from headrace.rewrite.analysis.stored_shapes import Stores
from headrace.rewrite.rewrite_state import CONSTANT, RewriteState
from headrace.rewrite.rules.composites import replace_composites
from headrace.rewrite.rules.dead_code import remove_dead
from headrace.rewrite.rules.loop_rounds import may_unroll
from headrace.rewrite.rules.resolved_lists import resolve_lists
from headrace.rewrite.rules.unread_stacks import remove_unread_stacks

__all__ = [
    "ALL_CONSTANT",
    "BRANCH",
    "CONSTANT",
    "LOOP",
    "ROUNDS",
    "UNROLL",
    "Answer",
    "Rule",
    "rewrite",
]

Answer = tuple[int, ...] | Node | None

#: Stand for statements where a rule names op types: a branch (the rule is asked by the walk), a
#: node inside a loop, a loop, a loop that may be written out.
BRANCH = "<if>"
LOOP = "<while>"
ROUNDS = "<rounds>"
UNROLL = "<unroll>"
#: Where a rule names what makes its inputs: all of them are constants.
ALL_CONSTANT = (CONSTANT, "all")
_NOT_OPS = ("", CONSTANT)

#: A node is replaced by another at most this often: rules only ever simplify, this guards against
#: two that disagree.
MAX_REPLACEMENTS = 12


class Rule(NamedTuple):
    """A named rewrite."""

    name: str
    ops: tuple[str, ...]  # names or roles of the pattern's last node; () means every node
    apply: Callable[[Any, RewriteState], Any]  # of a node, an Answer; if ``training``, a Composite
    does: str  # one line for the documentation
    example: str = ""
    after: tuple[str, ...] = ()  # one of the inputs must be made by one of these; () means any
    exact: bool = True  # the same bits, for every value
    value_free: bool = False  # does not look at the values of constants
    training: bool = False  # for composites with their gradients, before the walk (composites.py)


class _Table:
    """Finds the rules of a node by its type and the types that make its inputs.

    One look-up for most nodes.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.walked = [r for r in rules if not r.training]
        self.composites = [r for r in rules if r.training]
        self.branch = next((r for r in rules if BRANCH in r.ops), None)
        self.loop = next((r for r in rules if LOOP in r.ops), None)
        self.rounds = [r for r in rules if ROUNDS in r.ops]
        self.unroll = next((r for r in rules if UNROLL in r.ops), None)
        self.found: dict[tuple[str, ...], tuple[Rule, ...]] = {}

    def find(self, key: tuple[str, ...]) -> tuple[Rule, ...]:
        """The key is an op type and, for up to two inputs, what makes them."""
        made = self.found[key] = tuple([r for r in self.walked if _may_apply(r, key)])
        return made


def _may_apply(rule: Rule, key: tuple[str, ...]) -> bool:
    if rule.ops and not _is_one_of(key[0], rule.ops):
        return False
    if len(key) == 1 or not rule.after:
        return True
    if rule.after == ALL_CONSTANT:
        return all(k == CONSTANT for k in key[1:])
    return any(_is_one_of(k, rule.after) for k in key[1:])


def _is_one_of(name: str, kinds: tuple[str, ...]) -> bool:
    """Whether an op is among kinds, which are names or roles.

    "" (a feed or a parameter) and CONSTANT are no ops: looking them up would load every op there
    is, in the first run of every program.
    """
    if name in kinds:
        return True
    return name not in _NOT_OPS and traits_of(name).role in kinds


_tables: dict[int, _Table] = {}


def _table_of(rules: Sequence[Rule]) -> _Table:
    kept = _tables.get(id(rules))
    if kept is None or kept.rules is not rules:
        kept = _Table(rules)
        if isinstance(rules, tuple):  # one of the fixed lists
            _tables[id(rules)] = kept
    return kept


def rewrite(program: Program, rules: Sequence[Rule]) -> Program:
    """Apply the rules, then drop what nobody needs any more."""
    table = _table_of(rules)
    program = replace_composites(_unrolled(program, table), table.composites)
    state = RewriteState(program)
    body = tuple(_Walk(state, table, program).block(program.body))
    result = _finished(program, state, body)
    del state.emit  # a cycle: what the walk knew would stay until the garbage collector comes
    return result if state.stores is None else remove_unread_stacks(result)


def _finished(program: Program, state: RewriteState, body: Block) -> Program:
    """The program after a walk."""
    get = state.replaced.get
    fetches = tuple(None if f is None else get(f, f) for f in program.fetches)
    notes = dict(program.notes)
    for firing in state.firings:
        notes[firing.rule] = notes.get(firing.rule, 0) + 1
    result = program._replace(
        body=body,
        fetches=fetches,
        values=state.values,
        constants=state.constants,
        notes=notes,
        effects=tuple(get(e, e) for e in program.effects),
        firings=(*program.firings, *state.firings),
        near_misses=(*program.near_misses, *state.misses),
    )
    return remove_dead(result)


#: Rules of the walk that writes loops out: what the number of rounds and indices depend on.
_COUNTING = ("known shape", "known size of a list", "known part of a shape", "constant folding")


def _unrolled(program: Program, table: _Table) -> Program:
    """The program with its short loops of products written out (rules/loop_rounds.py).

    This comes before composites: steps that were rounds may be a layer.
    """
    if table.unroll is None or not any(
        isinstance(s, While) and may_unroll(s) for s in program.body
    ):
        return program
    state = RewriteState(program)
    state.stores = Stores(program)
    counting = _Table([r for r in table.rules if r.name in _COUNTING])
    body = tuple(_Walk(state, counting, program, table.unroll).block(program.body))
    if not any(f.rule == table.unroll.name for f in state.firings):
        return program._replace(
            near_misses=tuple(m for m in state.misses if m.rule == table.unroll.name)
        )
    return remove_dead(resolve_lists(_finished(program, state, body), state))


class _Walk:
    """The walk over blocks inside blocks."""

    def __init__(
        self, state: RewriteState, table: _Table, program: Program, unroll: Rule | None = None
    ) -> None:
        self.state = state
        self.unroll = unroll
        self.program = program
        self.table = table
        self.out: list[Statement] = []
        self.makers = state.makers
        state.emit = self.node

    def block(self, block: Block) -> list[Statement]:
        outer, self.out = self.out, []
        for statement in block:
            if isinstance(statement, Node):
                self.node(statement)
            elif isinstance(statement, If):
                self.branch(statement)
            else:
                self.loop(statement)
        made, self.out = self.out, outer
        return made

    def node(self, node: Node) -> None:
        made = self.rewritten(node)
        if made is None:
            return
        state = self.state
        if state.loops and self.table.loop is not None:
            if self.table.loop.apply(made, state) is not None:
                state.firings.append(Firing(self.table.loop.name, made.op.name))
                return
            if state.reason is not None:
                state.note_miss(self.table.loop.name, made)
        state.place(made)
        self.out.append(made)
        for value in made.outputs:  # in running order nothing is far back
            shape = state.values[value].shape
            if shape is None or None in shape:
                dims = dims_of(value, state)
                if state.loops and dims is not None:
                    state.refine(value, dims)

    def rewritten(self, node: Node) -> Node | None:
        """The node after all rules; None if its outputs are other values now."""
        state = self.state
        node = state.current(node)
        rules = self.rules_of(node)
        replacements, i = 0, 0
        while i < len(rules):
            rule = rules[i]
            i += 1
            answer = rule.apply(node, state)
            if answer is None:
                if state.reason is not None:
                    state.note_miss(rule.name, node)
                continue
            state.reason = None
            state.firings.append(Firing(rule.name, node.op.name))
            if not isinstance(answer, Node):
                state.substitute(node, answer)
                return None
            state.swap(node, answer)
            replacements += 1
            if answer.opdef is not node.opdef and replacements < MAX_REPLACEMENTS:
                rules, i = self.rules_of(answer), 0
            node = answer
        return node

    def rules_of(self, node: Node) -> tuple[Rule, ...]:
        name, inputs = node.opdef.name, node.inputs
        key: tuple[str, ...]
        if len(inputs) == 1:
            key = (name, self.makers.get(inputs[0], ""))
        elif len(inputs) == 2:
            key = (name, self.makers.get(inputs[0], ""), self.makers.get(inputs[1], ""))
        else:
            key = (name,)
        found = self.table.found.get(key)
        return self.table.find(key) if found is None else found

    def branch(self, s: If) -> None:
        """A branch whose predicate is known is there or is not."""
        state, rule = self.state, self.table.branch
        pred = state.replaced.get(s.pred, s.pred)
        known = state.constants.get(pred)
        if known is not None and rule is not None:
            if bool(known) == s.branch:
                state.firings.append(Firing(rule.name, state.name_of(s.pred)))
                self.out.extend(self.block(s.body))
                return
            if not state.holds_result(s.body):  # a fetch from there must fail as it would
                state.firings.append(Firing(rule.name, state.name_of(s.pred)))
                state.forget(s.body)
                return
        state.scopes.append({})
        state.branches += 1
        body = tuple(self.block(s.body))
        state.branches -= 1
        state.scopes.pop()
        if body:
            self.out.append(If(pred, s.branch, body))

    def unrolled(self, loop: While) -> bool:
        """Whether the loop was written out; its values are those of the last round then."""
        state, rule = self.state, self.unroll
        rounds = None if rule is None else rule.apply(loop, state)
        if rule is None or rounds is None:
            if rule is not None and state.reason is not None:
                state.misses.append(NearMiss(rule.name, loop.op.name, state.reason))
            state.reason = None
            return False
        get = state.replaced.get
        now = {v.value: get(v.init, v.init) for v in loop.values}
        for _ in range(rounds):
            inside = self.round((*loop.test, *loop.body), now)
            now = {v.value: inside.get(v.next, get(v.next, v.next)) for v in loop.values}
        state.replaced.update({**inside, **now})
        state.firings.append(Firing(rule.name, loop.op.name))
        return True

    def round(self, block: Block, now: dict[int, int]) -> dict[int, int]:
        """A copy of a loop's nodes in which its values are ``now``; what each value became."""
        state, became = self.state, dict(now)
        for node in block:
            assert isinstance(node, Node)
            inputs = tuple([became.get(i, i) for i in node.inputs])
            outputs = tuple([state.copy_of(o) for o in node.outputs])
            self.node(node._replace(inputs=inputs, outputs=outputs))
            became.update((o, state.replaced.get(n, n)) for o, n in zip(node.outputs, outputs))
        return became

    def loop(self, loop: While) -> None:
        if self.unrolled(loop):
            return
        state = self.state
        get = state.replaced.get
        changing = []
        if state.stores is None:
            state.stores = Stores(self.program)
        for v in loop.values:
            init = get(v.init, v.init)
            if v.next == v.value and self.table.loop is not None and init not in state.mutable:
                state.replaced[v.value] = init  # it stays what it was
                state.firings.append(Firing(self.table.loop.name, state.name_of(v.value)))
            else:
                changing.append(LoopValue(v.value, init, v.next))
        for value, dims in dims_in_rounds(loop, changing, state).items():
            state.dims[value] = dims
            state.refine(value, dims)
        with state.inside_loop([v.value for v in changing]) as frame:
            test = tuple(self.block(loop.test))
            frame.in_test = False
            body = tuple(self.block(loop.body))
        self.out.extend(frame.before)
        values = tuple(LoopValue(v.value, v.init, get(v.next, v.next)) for v in changing)
        self.whole(While(values, test, get(loop.cond, loop.cond), body, loop.op))

    def whole(self, loop: While) -> None:
        """A loop after its body."""
        state, after = self.state, []
        for rule in self.table.rounds:
            answer = rule.apply(loop, state)
            if answer is None:
                if state.reason is not None:
                    state.misses.append(NearMiss(rule.name, loop.op.name, state.reason))
                state.reason = None
                continue
            state.reason = None
            for node in answer.after:
                state.firings.append(Firing(rule.name, node.op.name))
            for node in (*answer.before, *answer.after):
                state.place(node)
            self.out.extend(answer.before)
            after += answer.after
            loop = answer.loop
        self.out.append(loop)
        self.out.extend(after)
