"""A listing as one Python function.

Every value is a local variable, in a long plan one that held another before; every instruction is a
line or a few. Nothing is decided here but names: what is computed, by what and where it lies stands
in the instructions (select_steps.py, storage_reuse.py). Kernels, constants, variable names and
writers are parameters of a factory around the function, so plans of the same structure share one
compiled code object. A failing line leads to its node.

    def make(np, k0, c0):
        def run(S, V, f0):
            t0 = f0 * c0
            return k0(t0)
        return run
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from signal import SIGINT
from typing import Any

import numpy as np

from headrace.lower import user_calls
from headrace.lower.emit_expressions import arguments, call_kernel
from headrace.lower.emit_lines import CodeLines, Compiled
from headrace.lower.emit_writes import emit_group, emit_write
from headrace.lower.fused_code import make_fused
from headrace.lower.fusion import Fused
from headrace.lower.listing import IN_PLACE, VARIABLE, After, Instr
from headrace.lower.native_groups import native_step
from headrace.lower.passes import make_listing
from headrace.lower.plan import Plan
from headrace.lower.storage_appends import Appended
from headrace.lower.storage_results import Result
from headrace.program.nodes import Node
from headrace.runtime import buffers
from headrace.runtime.interrupts import getsignal, handler, name_with_writes, protect

__all__ = ["Lowering", "compile_plan"]

_ONE, _ZERO = np.int32(1), np.int32(0)


def compile_plan(plan: Plan, kept: Callable[..., Any] | None = None) -> Compiled:
    """``kept(S, V)`` gives the last feeds of the plan, those that are not the caller's."""
    return Lowering(plan, kept).compile()


class Lowering(CodeLines):
    """From a listing to a function; a subclass knows the shapes."""

    # driver -------------------------------------------------------------------------------------
    def compile(self) -> Compiled:
        for n, feed in enumerate(self.program.feeds):
            self.names[feed] = f"f{n}"
        listing = make_listing(self.plan)
        self.write(listing.instrs)
        n_feeds = len(self.program.feeds) - self.plan.kept
        return self.assemble(listing, self.prologue(), n_feeds, self.function_name)

    def write(self, instrs: Iterable[Instr]) -> None:
        """The lines of instructions; the levels of branches and loops follow from their depths."""
        start, writes = len(self.lines), False
        for instr in instrs:
            while len(self.checked) - 1 > instr.depth:
                self.close()
            if not instr.depth:  # a statement of the outermost block begins
                if writes:
                    self.writing = self.writing[0] or start + 1, len(self.lines)
                start, writes = len(self.lines), False
            writes = writes or instr.storage is VARIABLE
            instr.first = len(self.lines)
            self.instruction(instr)
        while len(self.checked) > 1:
            self.close()
        if writes:
            self.writing = self.writing[0] or start + 1, len(self.lines)

    def instruction(self, instr: Instr) -> None:
        step = instr.source
        if step is None or instr.op in _BY_OP:
            _BY_OP[instr.op](self, instr)
            return
        if isinstance(step, Node):
            self.node(instr, step)
        elif isinstance(step, Fused):
            self.fused(instr, step)
        else:
            emit_group(self, step)
        if instr.ends:
            self.release(instr)

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
                if i in self.plan.starts:
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

    # steps --------------------------------------------------------------------------------------
    def node(self, instr: Instr, node: Node) -> None:
        special = _BY_IMPLEMENTATION.get(instr.implementation)
        if special is not None:
            special(self, instr, node)
            return
        args, outputs = arguments(self, node), node.outputs
        if instr.storage.kind == IN_PLACE:
            self.overwrite(node, args, node.inputs.index(instr.storage.of))
            return
        for name, value in instr.params:
            self.param(name, value)
        right = instr.text.format(*args) if instr.text else call_kernel(self, node, args)
        if outputs:
            right = f"{', '.join([self.new(o) for o in outputs])} = {right}"
        self.emit(right)

    def overwrite(self, node: Node, args: list[str], k: int) -> None:
        """The ``out=`` form over input k."""
        target = args[k]
        self.take_name(node.inputs[k], node.outputs[0], target)
        operator = node.opdef.role
        if operator in ("+", "*") or (k == 0 and operator in ("-", "/")):
            self.emit(f"{target} {operator}= {args[1 - k]}")
            return
        form = node.opdef.traits.into
        assert form is not None
        self.emit(form.format(*args, out=target))

    def take_name(self, old: int, new: int, name: str) -> None:
        self.names[new] = name
        if old in self.outer:
            self.outer.discard(old)
            self.outer.add(new)

    def fused(self, instr: Instr, step: Fused) -> None:
        args = [self.name(i) for i in step.inputs]
        is_over = instr.storage.kind == IN_PLACE
        own = step.inputs.index(instr.storage.of) if is_over else None
        function = make_fused(step, self.program, own)
        native = native_step(step, self.program, own, function)
        name = self.param(f"k{len(self.params)}", native)
        self.emit(f"{self.new(step.output)} = {name}(S, {', '.join(args)})")

    def append(self, instr: Instr, node: Node) -> None:
        old, new = (self.name(i) for i in node.inputs[:2])
        call = f"{self.appended[node.outputs[0]]}.append({old}, {new})"
        self.emit(f"{self.new(node.outputs[0])} = {call}")

    def merge(self, instr: Instr, node: Node) -> None:
        pred, if_false, if_true = (self.name_lazily(i) for i in node.inputs)
        self.emit(f"{self.new(node.outputs[0])} = {if_true} if {pred} else {if_false}")
        self.emit(
            f"{self.new(node.outputs[1])} = {self.param('one', _ONE)} if {pred} else "
            f"{self.param('zero', _ZERO)}"
        )

    def start(self, instr: Instr, node: Node) -> None:
        """The line that starts a Python function on a thread of its own (user_calls.py)."""
        kernel, _, given = call_kernel(self, node, arguments(self, node)).partition("(")
        name = f"j{len(self.joining)}"
        self.joining[name] = node
        starts = user_calls.start
        if not node.opdef.traits.calls_user:
            starts = user_calls.start_queue_operation
        self.emit(f"{name} = {self.param(starts.__name__, starts)}({kernel}, {given}")

    def join(self, instr: Instr) -> None:
        """Wait for it."""
        name = next(n for n, node in self.joining.items() if node is instr.source)
        names = [self.new(o) for o in instr.outputs]
        left = f"{', '.join(names)} = " if names else ""
        self.emit(f"{left}{name}.result()")

    def release(self, instr: Instr) -> None:
        """Let go of what nobody reads any more."""
        gone, is_outermost = [], len(self.checked) == 1
        for value, after in instr.ends:
            name = self.names.get(value)
            if name is None or name[0] != "t":
                continue
            if after is not After.NAME:
                gone.append(name)
            if after is After.POOL:
                self.emit(f"{self.param('give', buffers.give)}({name})")
            if is_outermost and value in self.outer:
                self.outer.discard(value)
                self.free.append(name)
        if gone:
            self.emit(" = ".join([*gone, "None"]))

    # segments, branches and loops ---------------------------------------------------------------
    def segment(self, instr: Instr) -> None:
        segment = instr.detail
        self.segments.append(segment)
        given = [self.name(i) for i in segment.inputs]
        result, name = f"sr{len(self.params)}", self.param(f"segment{len(self.params)}", segment)
        self.in_segment = result
        self.emit(f"{result} = {name}({', '.join(['S', *given])})")
        self.emit(f"if {result} is None:")
        self.depth += 1

    def otherwise(self, instr: Instr) -> None:
        """The results of a segment that is native."""
        result = self.in_segment
        self.depth -= 1
        self.emit("else:")
        self.depth += 1
        made = [self.names[o] for o in instr.outputs]
        if made:
            self.emit(f"{', '.join(made)}, = {result}")
        ended = dict.fromkeys([self.names[i] for i, _ in instr.ends if i in self.names])
        gone = [n for n in ended if n[0] == "t" and n not in made]
        self.emit(" = ".join([*gone, result, "None"]))
        self.depth -= 1

    def open(self) -> None:
        """A level deeper."""
        self.depth += 1
        self.checked.append(set())
        self.opened.append(len(self.lines))

    def close(self) -> None:
        """The end of a branch or of a loop."""
        if self.opened.pop() == len(self.lines):
            self.emit("pass")
        self.checked.pop()
        self.depth -= 1

    def branch(self, instr: Instr) -> None:
        test = self.name(instr.inputs[0])
        test = test if instr.op == "if" else f"not {test}"
        if instr.detail is None:
            self.emit(f"if {test}:")
            self.open()
            return
        own, guard = instr.detail
        self.emit(f"{own} = {guard} and {test}" if guard else f"{own} = {test}")

    def guarded(self, instr: Instr) -> None:
        self.emit(f"if {instr.detail}:")
        self.open()

    def loop(self, instr: Instr) -> None:
        inits = [self.name(i) for i in instr.inputs]
        targets = [self.new(v) for v in instr.outputs]
        if targets:
            self.emit(f"{', '.join(targets)} = {', '.join(inits)}")
        appends = self.plan.appends
        for v in instr.detail.loop.values:  # arrays with room at their end (storage_appends.py)
            if v.next in appends:
                name = self.appended[v.next] = f"h{len(self.appended)}"
                self.emit(f"{name} = {self.param('Appended', Appended)}({appends[v.next]})")
        self.emit("while True:")
        self.open()

    def leave(self, instr: Instr) -> None:
        self.emit(f"if not {self.name(instr.inputs[0])}: break")

    def repeat(self, instr: Instr) -> None:
        """The values of the next iteration."""
        values = instr.detail.loop.values
        if values:
            nexts = ", ".join([self.name(v.next) for v in values])
            self.emit(f"{', '.join([self.names[v.value] for v in values])} = {nexts}")

    # results ------------------------------------------------------------------------------------
    def give_results(self, instr: Instr) -> None:
        parts = [self.result(r) for r in instr.detail]
        self.emit(f"return ({', '.join(parts)},)" if parts else "return ()")

    def result(self, result: Result) -> str:
        """A fetched value as the user's own."""
        if result.value is None:
            return result.text
        for name, value in result.params:
            self.param(name, value)
        return result.text.format(self.name(result.value))


#: How instructions are written that are no plain call or expression.
_BY_IMPLEMENTATION: dict[str, Callable[[Any, Instr, Node], None]] = {
    "writer": emit_write,
    "expression": emit_write,
    "appended": Lowering.append,
    "choice": Lowering.merge,
    "kernel on a thread": Lowering.start,
}
_BY_OP: dict[str, Callable[[Any, Instr], None]] = {
    "segment": Lowering.segment,
    "else": Lowering.otherwise,
    "if": Lowering.branch,
    "if not": Lowering.branch,
    "if guard": Lowering.guarded,
    "while": Lowering.loop,
    "break": Lowering.leave,
    "next": Lowering.repeat,
    "join": Lowering.join,
    "return": Lowering.give_results,
}
