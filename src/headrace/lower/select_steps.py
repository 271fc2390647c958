"""The pass ``select`` over a plan: its steps as a flat list of instructions, each with its
implementation.

Branches and loops are instructions, too, and what is inside of them stands one level deeper. A
run of small steps that may be one native function is a ``segment``, followed by the same steps for
runs in which it is not native, and by ``else``.

    instrs = Selection(plan).outermost(plan.block)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from headrace.lower import user_calls
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanStatement, PlanWhile
from headrace.lower.listing import CALLERS, VARIABLE, VIEW, After, Instr
from headrace.lower.native_segments import NativeSegment
from headrace.lower.plan import Plan
from headrace.lower.segment_cuts import ShapeFacts
from headrace.lower.select_forms import is_small_update, select_form
from headrace.lower.select_updates import Grouped
from headrace.lower.storage_results import results_of
from headrace.program.nodes import Node

__all__ = ["Selection", "give_results"]

_DEEP = 58  # levels of branches and loops (Python's indentation ends at 100)


class Selection:
    """Instructions under construction. ``position`` numbers steps as storage_lifetimes.py does."""

    def __init__(self, plan: Plan, position: int = 0) -> None:
        self.plan, self.program, self.lives = plan, plan.program, plan.lives
        self.position = position
        self.instrs: list[Instr] = []
        self.depth = 0
        self.levels = 0  # of indentation: branches, loops and segments
        self.n_guards = 0
        self.started: frozenset[object] = frozenset()  # operations that run on their own threads
        self.waiting: list[Node] = []  # those whose results nobody has taken yet
        self.facts = ShapeFacts(plan.program)

    def outermost(self, block: PlanBlock) -> list[Instr]:
        """The instructions of the outermost block."""
        self.started = user_calls.independent(block)
        for is_segment, part in self.facts.cut(block, self.stands_alone):
            if is_segment:
                for statement in part:
                    self.join(statement)
                self.segment(part)
                continue
            for statement in part:
                self.join(statement)
                self.statement(statement)
        self.join(None)
        return self.instrs

    def add(
        self,
        op: str,
        inputs: tuple[int, ...] = (),
        outputs: tuple[int, ...] = (),
        source: Node | Fused | Grouped | None = None,
    ) -> Instr:
        """One more instruction."""
        made = Instr(op, inputs, outputs, source, self.depth)
        self.instrs.append(made)
        return made

    def block(self, block: PlanBlock) -> None:
        """The statements of a branch or of a loop."""
        self.depth += 1
        self.levels += 1
        for is_segment, part in self.facts.cut(block, self.stands_alone):
            if is_segment:
                self.segment(part)
            else:
                for statement in part:
                    self.statement(statement)
        self.depth -= 1
        self.levels -= 1

    def statement(self, s: PlanStatement) -> None:
        if isinstance(s, Node):
            self.node(s)
        elif isinstance(s, Fused):
            self.add("fused", s.inputs, (s.output,), s).implementation = "fused group"
        elif isinstance(s, Grouped):
            made = self.add("grouped", s.inputs, s.outputs, s)
            made.storage, made.implementation = VARIABLE, "grouped update"
        elif isinstance(s, PlanIf):
            self.branch(s)
            return
        else:
            self.loop(s)
            return
        self.position += 1

    def node(self, node: Node) -> None:
        opdef, outputs = node.opdef, node.outputs
        made = self.add(opdef.name, node.inputs, outputs, node)
        if node.writes:
            made.storage = VARIABLE
            made.implementation = "expression" if is_small_update(node, self.program) else "writer"
        elif outputs and outputs[0] in self.plan.appends:
            made.storage, made.implementation = VIEW, "appended"
        elif opdef.role == "merge":
            made.storage, made.implementation = VIEW, "choice"
        else:
            if opdef.traits.view:
                made.storage = VIEW
            if node.op in self.started and not self.depth:
                made.implementation = "kernel on a thread"
                self.waiting.append(node)
            else:
                select_form(made, node, self.program)

    def stands_alone(self, node: Node) -> bool:
        """Whether a node is not to be part of a segment."""
        if node.op in self.started:
            return True
        return bool(node.outputs and node.outputs[0] in self.plan.appends)

    def segment(self, part: Sequence[PlanStatement]) -> None:
        """Steps that may be one native function (native_segments.py), and the same steps for runs
        in which they are not.
        """
        after, last = self.position + len(part), self.lives.last
        members = [s for s in part if isinstance(s, (Node, Fused))]
        segment = NativeSegment(members, self.facts, lambda v: last.get(v, -1) >= after)
        made = self.add("segment", segment.inputs, (), members[-1])
        made.implementation, made.detail = "native or steps", segment
        self.levels += 1
        for s in members:
            self.statement(s)
        self.levels -= 1
        otherwise = self.add("else", (), segment.outputs)
        otherwise.implementation = "native"
        otherwise.ends = tuple([(i, After.CLEAR) for i in segment.inputs if last[i] < after])

    def branch(self, s: PlanIf, guard: str = "") -> None:
        """An ``if``; where they are nested deeper than Python allows, a flat sequence of guarded
        runs of steps.
        """
        made = self.add("if" if s.branch else "if not", (s.pred,))
        made.implementation = "branch"
        if self.levels < _DEEP:
            self.block(s.body)
            return
        own = f"g{self.n_guards}"
        self.n_guards += 1
        made.implementation, made.detail = "guard", (own, guard)
        for inner, group in itertools.groupby(s.body, key=lambda b: isinstance(b, PlanIf)):
            if inner:
                for b in group:
                    assert isinstance(b, PlanIf)
                    self.branch(b, own)
            else:
                made = self.add("if guard")
                made.implementation, made.detail = "guarded", own
                self.block(tuple(group))

    def loop(self, s: PlanWhile) -> None:
        values = s.loop.values
        made = self.add("while", tuple(v.init for v in values), tuple(v.value for v in values))
        made.storage, made.implementation = VIEW, "loop"
        appends = self.plan.appends
        made.detail = [(v.next, appends[v.next]) for v in values if v.next in appends]
        self.position += 1
        self.block(s.test)
        self._inside("break", (s.loop.cond,))
        self.block(s.body)
        self._inside("next", tuple(v.next for v in values)).detail = made.outputs
        self.position += 1

    def _inside(self, op: str, inputs: tuple[int, ...]) -> Instr:
        self.depth += 1
        made = self.add(op, inputs)
        made.implementation = "loop"
        self.depth -= 1
        return made

    def join(self, statement: PlanStatement | None) -> None:
        """Wait for the operations on threads of their own whose results a statement takes; at the
        end and before blocks, for all.
        """
        if not self.waiting:
            return
        taken = [n for n in self.waiting if user_calls.must_wait(statement, n)]
        for node in taken:
            self.add("join", (), node.outputs, node).implementation = "wait"
        if taken:
            self.waiting = [n for n in self.waiting if not any(n is t for t in taken)]


def give_results(plan: Plan) -> Instr:
    """The last instruction: fetched values, each the user's own."""
    made = Instr("return", tuple(f for f in plan.program.fetches if f is not None))
    made.storage, made.implementation = CALLERS, "the user's own"
    made.detail = results_of(plan.program, plan.lives)
    return made
