"""A plan as one Python function.

Every value is a local variable, in a long plan one that held another before; every step is a line.
Kernels, constants, variable names and writers are parameters of a factory around the function, so
plans of the same structure share one compiled code object. A failing line leads to its node.

    def make(np, k0, c0):
        def run(S, V, f0):
            t0 = f0 * c0
            return k0(t0)
        return run
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable
from signal import SIGINT
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.lower import fused_code as fused_steps
from headrace.lower import user_calls
from headrace.lower.emit_expressions import argument, expression
from headrace.lower.emit_lines import CodeLines, Compiled
from headrace.lower.emit_writes import emit_group, emit_write
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanWhile
from headrace.lower.listing import CALLERS, IN_PLACE, VIEW, Storage
from headrace.lower.native_groups import native_step
from headrace.lower.native_segments import NativeSegment
from headrace.lower.plan import Plan, steps
from headrace.lower.select_updates import Grouped
from headrace.lower.storage_appends import Appended
from headrace.lower.storage_results import copy_unknown, own_string, own_unknown
from headrace.lower.storage_starts import scan, written_variables
from headrace.program.nodes import Node
from headrace.runtime import buffers
from headrace.runtime.interrupts import getsignal, handler, name_with_writes, protect

__all__ = ["Lowering", "compile_plan"]

_DEEP = 60  # levels of indentation (Python ends at 100)
_SHORT_ROW = 16
_SMALL = 4096  # elements below which reuse of a buffer gains nothing


_ONE, _ZERO = np.int32(1), np.int32(0)

_size = functools.lru_cache(1024)(shapes.num_elements)


def compile_plan(plan: Plan, kept: Callable[..., Any] | None = None) -> Compiled:
    """``kept(S, V)`` gives the last feeds of the plan, those that are not the caller's."""
    return Lowering(plan, kept).compile()


class Lowering(CodeLines):
    """From a plan to a function; subclasses know more than the plan."""

    # driver -------------------------------------------------------------------------------------
    def compile(self) -> Compiled:
        for n, feed in enumerate(self.program.feeds):
            self.names[feed] = f"f{n}"
        self.keep_starts()
        self.outermost(self.plan.block)
        self.give_results()
        n_feeds = len(self.program.feeds) - self.plan.kept
        return self.assemble(self.prologue(), n_feeds, self.function_name)

    def outermost(self, block: PlanBlock) -> None:
        """Statements of the outermost block."""
        self.started = user_calls.independent(block)
        for is_segment, part in self.facts.cut(block, self.stands_alone):
            if is_segment:
                for statement in part:
                    user_calls.emit_joins(self, statement)
                self.segment(part)
                continue
            for statement in part:
                before = len(self.lines)
                user_calls.emit_joins(self, statement)
                self.statements((statement,))
                if any(written_variables(step) for step in steps((statement,))):
                    self.writing = self.writing[0] or before + 1, len(self.lines)
        user_calls.emit_joins(self, None)

    def give_results(self) -> None:
        fetched = tuple(f for f in self.program.fetches if f is not None)
        results = self.results()
        instr = self.begin("return", fetched)
        instr.storage, instr.implementation = CALLERS, "the user's own"
        self.emit(f"return {results}")

    def function_name(self, offset: int) -> str:
        """Tells the lines between which the run is not interrupted (runtime/interrupts.py)."""
        first, last = self.writing
        return name_with_writes(first + offset, last + offset) if last else "run"

    def prologue(self) -> list[str]:
        out = []
        if self.plan.kept:
            n = len(self.program.feeds)
            names = "".join(f"f{i}, " for i in range(n - self.plan.kept, n))
            out.append(f"  {names}= {self.param('kept', self.kept)}(S, V)")
        return [*out, *self.loads(), *self.guards()]

    def loads(self) -> list[str]:
        """Lines that give the variables their names."""
        out = []
        for i, v in enumerate(self.program.variables):
            if i in self.loaded:
                out.append(f"  v{i} = V.get({self.param(f'q{i}', v.key)})")
                if self.starts_kept.get(i):
                    # None may mean that another thread is writing it; later this run's own write
                    # would be seen
                    out.append(f"  if v{i} is None: v{i} = S.raw(q{i})")
                    out.append(f"  s{i} = v{i}")
        return out

    def guards(self) -> list[str]:
        """Lines that make a run that writes safe from interrupts, and those that kernels need."""
        out = []
        if any(v.written for v in self.program.variables):
            look, on_interrupt = self.param("getsignal", getsignal), self.param("handler", handler)
            protected = f"{look}({int(SIGINT)}) is {on_interrupt}"
            out.append(f"  if not {protected}: {self.param('protect', protect)}()")
        if self.uses_rt:
            out.append("  rt = RunContext(S)")
        return out

    def keep_starts(self) -> None:
        """Variables whose old value is read after a write keep it under a name of its own."""
        if not any(v.written for v in self.program.variables):
            return
        first_write: dict[int, int] = {}
        last_start_use: dict[int, int] = {}
        scan(self.plan.block, self.by_start, first_write, last_start_use, [0], False)
        end = 1 << 60
        for f in self.program.fetches:
            if f in self.by_start:
                last_start_use[self.by_start[f][0]] = end
        for i, at in first_write.items():
            self.starts_kept[i] = last_start_use.get(i, -1) > at

    # statements ---------------------------------------------------------------------------------
    def block(self, block: PlanBlock) -> None:
        for is_segment, part in self.facts.cut(block, self.stands_alone):
            if is_segment:
                self.segment(part)
            else:
                self.statements(part)

    def stands_alone(self, node: Node) -> bool:
        """Whether a node has a line of a kind of its own."""
        return node.op in self.started or bool(node.outputs and node.outputs[0] in self.appended)

    def segment(self, part: PlanBlock) -> None:
        """Steps that may be one native function (native_segments.py), and the same steps as lines
        for runs in which they are not.
        """
        after, last = self.position + len(part), self.lives.last
        members = [s for s in part if isinstance(s, (Node, Fused))]
        segment = NativeSegment(members, self.facts, lambda v: last.get(v, -1) >= after)
        self.segments.append(segment)
        given = [self.name(i) for i in segment.inputs]
        result, name = f"sr{len(self.params)}", self.param(f"segment{len(self.params)}", segment)
        instr = self.begin("segment", segment.inputs, (), members[-1])
        instr.implementation = "native or steps"
        self.emit(f"{result} = {name}({', '.join(['S', *given])})")
        self.emit(f"if {result} is None:")
        self.depth += 1
        self.statements(part)
        self.depth -= 1
        self.begin("else", segment.outputs).implementation = "native"
        self.emit("else:")
        self.depth += 1
        made = [self.names[o] for o in segment.outputs]
        if made:
            self.emit(f"{', '.join(made)}, = {result}")
        gone = [n for n, i in zip(given, segment.inputs) if n[0] == "t" and last[i] < after]
        gone = [n for n in dict.fromkeys(gone) if n not in made]
        self.emit(" = ".join([*gone, result, "None"]))
        self.depth -= 1

    def statements(self, block: PlanBlock) -> None:
        for s in block:
            if isinstance(s, Node):
                instr = self.begin(s.opdef.name, s.inputs, s.outputs, s)
                if s.opdef.traits.view:
                    instr.storage = VIEW
                self.node(s)
            elif isinstance(s, Fused):
                self.begin("fused", s.inputs, (s.output,), s)
                self.fused(s)
            elif isinstance(s, Grouped):
                self.begin("grouped", s.inputs, s.outputs, s)
                emit_group(self, s)
            else:
                if isinstance(s, PlanIf):
                    self.branch(s)
                else:
                    self.loop(s)
                continue
            self.release(s)
            self.position += 1

    def branch(self, s: PlanIf, guard: str = "") -> None:
        """An ``if``; where they are nested deeper than Python allows, a flat sequence of guarded
        runs of steps.
        """
        self.begin("if" if s.branch else "if not", (s.pred,)).implementation = "branch"
        test = self.name(s.pred)
        test = test if s.branch else f"not {test}"
        if self.depth < _DEEP:
            self.emit(f"if {test}:")
            self.nested(s.body)
            return
        own = f"g{self.n_guards}"
        self.n_guards += 1
        self.emit(f"{own} = {guard} and {test}" if guard else f"{own} = {test}")
        for inner, group in itertools.groupby(s.body, key=lambda b: isinstance(b, PlanIf)):
            if inner:
                for b in group:
                    assert isinstance(b, PlanIf)
                    self.branch(b, own)
            else:
                self.emit(f"if {own}:")
                self.nested(tuple(group))

    def nested(self, block: PlanBlock) -> None:
        self.depth += 1
        self.checked.append(set())
        before = len(self.lines)
        self.block(block)
        if len(self.lines) == before:
            self.emit("pass")
        self.checked.pop()
        self.depth -= 1

    def loop(self, s: PlanWhile) -> None:
        values = s.loop.values
        instr = self.begin("while", tuple(v.init for v in values), tuple(v.value for v in values))
        instr.storage, instr.implementation = VIEW, "loop"
        inits = [self.name(v.init) for v in values]
        targets = [self.new(v.value) for v in values]
        if targets:
            self.emit(f"{', '.join(targets)} = {', '.join(inits)}")
        self.begin_appends(s)
        self.position += 1
        self.emit("while True:")
        self.depth += 1
        self.checked.append(set())
        self.block(s.test)
        self.begin("break", (s.loop.cond,)).implementation = "loop"
        self.emit(f"if not {self.name(s.loop.cond)}: break")
        self.block(s.body)
        self.begin("next", tuple(v.next for v in values)).implementation = "loop"
        if targets:
            nexts = ", ".join(self.name(v.next) for v in values)
            self.emit(f"{', '.join(targets)} = {nexts}")
        self.checked.pop()
        self.depth -= 1
        self.position += 1

    def begin_appends(self, s: PlanWhile) -> None:
        """Arrays with room at their end, one for each loop variable that is appended to (see
        storage_appends.py).
        """
        appends = self.plan.appends
        for v in s.loop.values:
            if v.next in appends:
                name = self.appended[v.next] = f"h{len(self.appended)}"
                self.emit(f"{name} = {self.param('Appended', Appended)}({appends[v.next]})")

    def node(self, node: Node) -> None:
        if node.writes:
            emit_write(self, node)
            return
        if node.outputs and node.outputs[0] in self.appended:
            old, new = (self.name(i) for i in node.inputs[:2])
            call = f"{self.appended[node.outputs[0]]}.append({old}, {new})"
            self.instr.storage, self.instr.implementation = VIEW, "appended"
            self.emit(f"{self.new(node.outputs[0])} = {call}")
            return
        if node.opdef.role == "merge":
            self.merge(node)
            return
        args = [argument(self, node, i) for i in range(len(node.inputs))]
        if node.op in self.started and len(self.checked) == 1:
            user_calls.emit_start(self, node, args)
            return
        right = expression(self, node, args)
        outputs = node.outputs
        if len(outputs) == 1:
            reused = self.reuse(node, args)
            if reused is not None:
                self.emit(reused)
                return
            self.emit(f"{self.new(outputs[0])} = {right}")
        elif not outputs:
            self.emit(right)
        else:
            self.emit(f"{', '.join(self.new(o) for o in outputs)} = {right}")

    def reuse(self, node: Node, args: list[str]) -> str | None:
        """An ``out=`` form over an input that dies here, where that input certainly has the
        result's shape.
        """
        form = node.opdef.traits.into
        out = node.outputs[0]
        info = self.program.values[out]
        if form is None or not info.shape or info.dtype._kind not in "fiuc":
            return None
        n = _size(info.shape)
        if n is not None and n < _SMALL:
            return None
        for k, value in enumerate(node.inputs):
            if not self.lives.reusable(value, self.position) or value not in self.names:
                continue
            if self.program.values[value].dtype is info.dtype and self._covers(node, k):
                target = args[k]
                self.names[out] = target
                if value in self.home:
                    self.home[out] = self.home.pop(value)
                self.n_reused += 1
                self.instr.storage = Storage(IN_PLACE, value)
                operator = node.opdef.role
                if operator in ("+", "*") or (k == 0 and operator in ("-", "/")):
                    return f"{target} {operator}= {args[1 - k]}"
                return form.format(*args, out=target)
        return None

    def _covers(self, node: Node, k: int) -> bool:
        """Input k certainly has the broadcast shape of all inputs."""
        mine = self.program.values[node.inputs[k]].shape
        if mine is None or self.program.values[node.outputs[0]].shape != mine:
            return False
        for j, value in enumerate(node.inputs):
            other = self.program.values[value].shape
            if j == k or value == node.inputs[k]:
                continue
            if other is None or len(other) > len(mine):
                return False
            for a, b in zip(reversed(other), reversed(mine)):
                if a != 1 and (a is None or a != b):
                    return False
        return True

    def merge(self, node: Node) -> None:
        self.instr.storage, self.instr.implementation = VIEW, "choice"
        pred, if_false, if_true = (self.name_lazily(i) for i in node.inputs)
        self.emit(f"{self.new(node.outputs[0])} = {if_true} if {pred} else {if_false}")
        self.emit(
            f"{self.new(node.outputs[1])} = {self.param('one', _ONE)} if {pred} else "
            f"{self.param('zero', _ZERO)}"
        )

    def fused(self, step: Fused) -> None:
        args = [self.name(i) for i in step.inputs]
        own = next(
            (
                k
                for k, v in enumerate(step.inputs)
                if self.lives.reusable(v, self.position)
                and not any(
                    w != v and self.lives.root(w) == self.lives.root(v) for w in step.inputs
                )
                and self.program.values[v].dtype is self.program.values[step.output].dtype
                and self.program.values[v].shape == self.program.values[step.output].shape
            ),
            None,
        )
        if own is not None:
            self.n_reused += 1
            self.instr.storage = Storage(IN_PLACE, step.inputs[own])
        self.instr.implementation = "fused group"
        function = fused_steps.make_fused(step, self.program, own)
        native = native_step(step, self.program, own, function)
        name = self.param(f"k{len(self.params)}", native)
        self.emit(f"{self.new(step.output)} = {name}(S, {', '.join(args)})")

    def release(self, s: Node | Fused | Grouped) -> None:
        """Let go of large values after their last use, and of views: one of a variable keeps it
        from being overwritten.

        Small ones go when their name is used again.
        """
        last, position, gone = self.lives.last, self.position, []
        outermost = self.checked[0] if len(self.checked) == 1 else None
        for value in s.inputs:
            if last.get(value) != position:
                continue
            name = self.names.get(value)
            if name is None or name[0] != "t":
                continue
            if not self.is_small(value):
                outputs = (s.output,) if isinstance(s, Fused) else s.outputs
                if any(self.names.get(o) == name for o in outputs):
                    continue
                gone.append(name)
                if value in self.lives.fresh and self.may_be_pooled(value):
                    self.emit(f"{self.param('give', buffers.give)}({name})")
            if outermost is not None and self.home.pop(value, None) is outermost:
                self.free.append(name)
        if gone:
            self.emit(" = ".join([*dict.fromkeys(gone), "None"]))

    def may_be_pooled(self, value: int) -> bool:
        """Large enough to be used again, and certainly there (a branch that was not taken makes
        nothing).
        """
        info = self.program.values[value]
        if (
            self.home.get(value) is not self.checked[-1]
            or info.dtype._kind not in "fiucb"
            or info.shape == ()
        ):
            return False
        size = shapes.num_elements(info.shape)
        return size is None or size * info.dtype.size >= buffers.MIN_BYTES

    def is_small(self, value: int) -> bool:
        """A few elements in all, or a few in each row of a batch: not worth a line."""
        shape = self.program.values[value].shape
        size = _size(shape)
        if size is not None:
            return size < _SMALL
        row = _size(shape[1:]) if shape else None
        return row is not None and row <= _SHORT_ROW

    # results ------------------------------------------------------------------------------------
    def results(self) -> str:
        """The fetched values, each the user's own."""
        parts = []
        fetched = {f for f in self.program.fetches if f is not None}
        sharing = Counter(map(self.lives.root, fetched))
        seen: set[int] = set()
        for f in self.program.fetches:
            if f is None:
                parts.append("None")
                continue
            alone = f not in seen and sharing[self.lives.root(f)] == 1
            parts.append(self.result(f, alone))
            seen.add(f)
        return f"({', '.join(parts)},)" if parts else "()"

    def result(self, value: int, alone: bool) -> str:
        """``alone``: nothing that was returned or will be shares its memory."""
        info = self.program.values[value]
        name = self.name(value)
        lives = self.lives
        own = alone and (value in lives.fresh or value in lives.whole)
        own = own and lives.root(value) not in lives.shared
        own = own or self.program.borrowed
        if info.dtype is dtypes.resource or info.dtype is dtypes.variant:
            return name
        if own and info.shape != ():
            self.given.append(value)
        if info.dtype is dtypes.string and not info.shape:
            return f"{self.param('text', own_string)}({name})"
        if info.shape == ():
            return f"{name}[()]"
        if info.shape is None:
            helper = self.param("own1" if own else "own0", own_unknown if own else copy_unknown)
            return f"{helper}({name})"
        return name if own else f"np.array({name})"
