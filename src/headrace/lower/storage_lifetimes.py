"""How long values live and who may overwrite them.

Positions number the steps in running order. A value used inside a loop but made before it lives to
the loop's end. Values that may share memory (views, loop variables, selected branches) form one
group that lives as long as its longest member.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanStatement, PlanWhile
from headrace.lower.select_updates import Grouped
from headrace.program.nodes import Node, Program

__all__ = ["Lifetimes", "kept_starts", "lifetimes", "written_variables"]


class Lifetimes:
    """Answers about values by step position."""

    def __init__(self) -> None:
        self.last: dict[int, int] = dict()
        self.born: dict[int, int] = dict()
        self.parent: dict[int, int] = dict()
        self.group_last: dict[int, int] = dict()
        self.fresh: set[int] = set()  # made by a step that returns memory of its own
        self.whole: set[int] = set()  # a fresh value in another shape
        self.shared: set[int] = set()  # groups that contain a feed, constant or variable
        self.escaped: set[int] = set()  # handed to something that may keep them
        self.carried: set[int] = set()  # loop variables
        self.first_write: dict[int, int] = dict()  # of variables, by their numbers

    def root(self, value: int) -> int:
        parent = self.parent
        if value not in parent:
            return value
        r = value
        while parent.get(r, r) != r:
            r = parent[r]
        while parent.get(value, value) != r:
            parent[value], value = r, parent[value]
        return r

    def join(self, a: int, b: int) -> None:
        self.join_all((a,), b)

    def join_all(self, sources: Iterable[int], value: int) -> None:
        """A value may share memory with each of these."""
        parent, of = self.parent, self.root(value)
        for source in sources:
            root = source if source not in parent else self.root(source)
            if root != of:
                parent[of] = root
                of = root

    def dies_at(self, value: int, position: int) -> bool:
        """Nobody reads the value, or anything that may share its memory, after this step."""
        return self.group_last.get(self.root(value), -1) == position

    def reusable(self, value: int, position: int) -> bool:
        """The step at ``position`` may overwrite this input."""
        return (
            value in self.fresh
            and self.root(value) not in self.shared
            and self.dies_at(value, position)
        )


def lifetimes(block: PlanBlock, program: Program) -> Lifetimes:
    """Number the steps (in emission order) and find last uses."""
    out = Lifetimes()
    counter = _Counter()
    loops: list[tuple[int, set[int]]] = []
    _visit(block, out, counter, loops)
    end = counter.n + 1
    for f in program.fetches:
        if f is not None:
            out.last[f] = end
    group_last = out.group_last = dict(out.last)
    for value in out.parent:
        r = out.root(value)
        group_last[r] = max(group_last.get(r, -1), out.last.get(value, -1))
    outside = [*program.feeds, *program.constants]
    for v in program.variables:
        outside += [v.start, v.current]
    outside += [*out.escaped, *out.carried]
    parent = out.parent
    out.shared.update([v if v not in parent else out.root(v) for v in outside])
    return out


def written_variables(step: PlanStatement) -> list[int]:
    """The variables (by number) that a step writes."""
    nodes = step.nodes if isinstance(step, Grouped) else [step] if isinstance(step, Node) else []
    return [w for node in nodes for w in node.writes]


def kept_starts(lives: Lifetimes, program: Program) -> frozenset[int]:
    """The variables (by number) whose value from before the run is read after a write of them.

    The emitter gives these values names of their own.
    """
    starts = [v.start for v in program.variables]
    found = [i for i, at in lives.first_write.items() if lives.last.get(starts[i], -1) > at]
    return frozenset(found)


class _Counter:
    def __init__(self) -> None:
        self.n = 0


def _visit(
    block: PlanBlock, out: Lifetimes, counter: _Counter, loops: list[tuple[int, set[int]]]
) -> None:
    for s in block:
        if isinstance(s, PlanIf):
            _use(s.pred, counter.n, out, loops)
            _visit(s.body, out, counter, loops)
        elif isinstance(s, PlanWhile):
            _visit_loop(s, out, counter, loops)
        else:
            _visit_step(s, out, counter, loops)
            counter.n += 1


def _use(value: int, position: int, out: Lifetimes, loops: list[tuple[int, set[int]]]) -> None:
    out.last[value] = position  # positions only grow
    for start, used in loops:
        if out.born.get(value, -1) < start:
            used.add(value)


def _visit_step(
    s: PlanStatement, out: Lifetimes, counter: _Counter, loops: list[tuple[int, set[int]]]
) -> None:
    if isinstance(s, Grouped):
        for node in s.nodes:
            _visit_step(node, out, counter, loops)
        return
    assert isinstance(s, (Node, Fused))
    last, position = out.last, counter.n
    for i in s.inputs:
        if loops:
            _use(i, position, out, loops)
        else:
            last[i] = position
    if isinstance(s, Fused):
        out.born[s.output] = counter.n
        out.fresh.add(s.output)
        return
    for w in s.writes:
        out.first_write.setdefault(w, position)
    traits = s.opdef.traits
    if traits.stateful and not s.writes:
        out.escaped.update(s.inputs)
    view = traits.view or s.opdef.role == "merge" or bool(s.writes) or traits.stateful
    for o in s.outputs:
        out.born[o] = counter.n
        if view:
            # (a shape or an axis is not what is viewed)
            beside = traits.known_inputs
            viewed = [i for k, i in enumerate(s.inputs) if k not in beside] if beside else s.inputs
            out.join_all(viewed, o)
            if traits.whole and (s.inputs[0] in out.fresh or s.inputs[0] in out.whole):
                out.whole.add(o)
        else:
            out.fresh.add(o)


def _visit_loop(
    s: PlanWhile, out: Lifetimes, counter: _Counter, loops: list[tuple[int, set[int]]]
) -> None:
    for v in s.loop.values:
        _use(v.init, counter.n, out, loops)
        out.join(v.value, v.init)
        out.join(v.value, v.next)
        out.born[v.value] = counter.n
    start = counter.n
    counter.n += 1
    used: set[int] = set()
    loops.append((start + 1, used))
    _visit(s.test, out, counter, loops)
    _use(s.loop.cond, counter.n, out, loops)
    _visit(s.body, out, counter, loops)
    loops.pop()
    for v in s.loop.values:
        out.last[v.next] = max(out.last.get(v.next, -1), counter.n)
        out.last[v.value] = max(out.last.get(v.value, -1), counter.n)
        out.carried.add(v.value)
    for value in used:
        out.last[value] = max(out.last.get(value, -1), counter.n)
    counter.n += 1
