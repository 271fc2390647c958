"""A listing as one Python function.

Every value is a local variable, in a long plan one that held another before; every instruction is a
line or a few. Nothing is decided here but names: what is computed, by what and where it lies stands
in the instructions. Kernels, constants, variable names and writers are parameters of a factory
around the function, so plans of the same structure share one compiled code object. A failing line
leads to its node.

    def make(np, k0, c0):
        def run(S, V, f0):
            t0 = f0 * c0
            return k0(t0)
        return run

The steps of a listing that is bound to shapes come with lines of their own, in which ``$7`` stands
for value 7 (select_bound.py); here they get names, too. What comes after them, with effects, is
written as it is where no shape is known.
"""

from __future__ import annotations

from collections.abc import Callable
from signal import SIGINT
from typing import Any

import numpy as np

from headrace.lower.bound_values import REFERENCE
from headrace.lower.emit_lines import CodeLines, Compiled
from headrace.lower.listing import IN_PLACE, VARIABLE, After, Instr, Listing, nodes_of
from headrace.lower.storage_appends import Appended
from headrace.lower.storage_results import Result
from headrace.program.nodes import Node
from headrace.runtime import buffers
from headrace.runtime.interrupts import getsignal, handler, name_with_writes, protect

__all__ = ["emit"]

_ONE, _ZERO = np.int32(1), np.int32(0)


def emit(listing: Listing) -> Compiled:
    """The function that does what a listing says."""
    return _Emitter(listing).compile()


class _Emitter(CodeLines):
    """Writes one instruction after the other."""

    def __init__(self, listing: Listing) -> None:
        super().__init__(listing)
        self.opened: list[int] = []  # the first lines of open branches and loops
        self.in_segment = ""  # the name of the result of the segment whose steps are written
        self.appended: dict[int, str] = {}  # results of appending to a loop variable
        # operations that were started on threads of their own, by the names of what is waited for
        self.joining: dict[str, Any] = {}
        self.writing = (0, 0)  # the first and the last line that are not interrupted
        self.locked = (0, 0)  # lines and depth after the last update under the lock

    def compile(self) -> Compiled:
        start, writes = 0, False
        for instr in self.listing.instrs:
            while len(self.checked) - 1 > instr.depth:
                self.close()
            if not instr.depth:  # a statement of the outermost block begins
                self.wrote(writes, start)
                start, writes = len(self.lines), False
            writes = writes or instr.storage is VARIABLE
            self.firsts.append(len(self.lines))
            self.instruction(instr)
        self.wrote(writes, start)
        return self.assemble(self.prologue(), self.function_name)

    def wrote(self, writes: bool, start: int) -> None:
        """Tell the lines of a statement that writes."""
        if writes:
            self.writing = self.writing[0] or start + 1, len(self.lines)

    def instruction(self, instr: Instr) -> None:
        special = _SPECIAL.get(instr.implementation)
        if special is not None:
            special(self, instr)
        elif instr.text:
            self.step(instr)
        else:
            self.code(instr)
        if instr.ends and special is not _Emitter.otherwise:
            self.release(instr)

    def function_name(self, offset: int) -> str:
        """Tells the lines between which the run is not interrupted (runtime/interrupts.py)."""
        first, last = self.writing
        return name_with_writes(first + offset, last + offset) if last else "run"

    def prologue(self) -> list[str]:
        """Lines that give kept values and variables their names, and make a run that writes safe
        from interrupts.
        """
        out, listing, variables = [], self.listing, self.program.variables
        held = () if listing.bound is None else listing.bound.held
        self.loaded.update(held)
        if listing.kept and listing.bound is None:
            n = len(self.program.feeds)
            names = "".join(f"f{i}, " for i in range(n - listing.kept, n))
            out.append(f"  {names}= {self.param('kept', listing.keeper)}(S, V)")
        for i in sorted(self.loaded):
            out.append(f"  v{i} = V.get({self.param_key(variables[i].start)})")
            if i in listing.starts:
                # None may mean that another thread is writing it; later this run's own write
                # would be seen
                out.append(f"  if v{i} is None: v{i} = S.raw(q{i})")
                out.append(f"  s{i} = v{i}")
        if listing.watched:
            out += self.renewal()
        if held:  # to the end of the run
            out.append(f"  held = {''.join(f'v{i}, ' for i in held)}")
        if self.program.writes:
            look, on_interrupt = self.param("getsignal", getsignal), self.param("handler", handler)
            protected = f"{look}({int(SIGINT)}) is {on_interrupt}"
            out.append(f"  if not {protected}: {self.param('protect', protect)}()")
        if any(instr.wants_rt for instr in listing.instrs):
            out.append("  rt = RunContext(S)")
        return out

    def renewal(self) -> list[str]:
        """Variables are loaded, then their stamps compared: a stamp changes before its variable
        does.
        """
        listing, variables = self.listing, self.program.variables
        assert listing.bound is not None
        steady = [i for i in sorted(self.loaded) if not variables[i].written]
        wanted = tuple([variables[i] for i in steady])
        left = "".join(f"v{i}, " for i in steady)
        left = f"{left}= " if left else ""
        keys, again = self.param("K", listing.watched), self.param("B", listing.bound.renewal)
        call = f"{left}{again}(S, V, {self.param('L', wanted)})"
        out = [f"  if S.stamps({keys}) != {again}.stamps: {call}"]
        if listing.keeper is not None:
            out.append(f"  else: {self.param('counts', listing.keeper.counts)}.hits += 1")
        return out

    # steps --------------------------------------------------------------------------------------
    def code(self, instr: Instr) -> None:
        """The lines of a bound step."""
        for value in instr.outputs:
            if value not in self.objects and value not in self.names and instr.code:
                self.new(value)
        for line in instr.code:
            self.emit(REFERENCE.sub(lambda found: self.reference(int(found[1])), line))

    def written(self, instr: Instr, **also: str) -> str:
        """The instruction's text with names."""
        values = self.arguments(instr)
        if instr.arrays or instr.takes_unset:
            args = [self.argument(instr, i) for i in values]
        else:
            args = [self.name(i) for i in values]
        for name, value in instr.params:
            self.param(name, value)
        if instr.function is None:
            return instr.text.format(*args, **also)
        return instr.text.format(*args, call=self.function(instr.function), **also)

    def arguments(self, instr: Instr) -> tuple[int, ...]:
        return instr.inputs if instr.arguments is None else instr.arguments

    def argument(self, instr: Instr, value: int) -> str:
        if instr.takes_unset and value in self.variables:
            return self.unset(value)
        return self.number(value) if value in instr.arrays else self.name(value)

    def step(self, instr: Instr) -> None:
        """An expression or a call."""
        if instr.storage.kind == IN_PLACE and isinstance(instr.source, Node):
            old, new = instr.storage.of, instr.outputs[0]
            name = self.name(old)
            self.emit(self.written(instr, out=name))
            self.names[new] = name
            if old in self.outer:
                self.outer.discard(old)
                self.outer.add(new)
            return
        right, outputs = self.written(instr), instr.outputs
        if len(outputs) == 1:
            self.emit(f"{self.new(outputs[0])} = {right}")
        else:
            left = ", ".join([self.new(o) for o in outputs])
            self.emit(f"{left} = {right}" if left else right)

    def append(self, instr: Instr) -> None:
        old, new = (self.name(i) for i in instr.inputs[:2])
        call = f"{self.appended[instr.outputs[0]]}.append({old}, {new})"
        self.emit(f"{self.new(instr.outputs[0])} = {call}")

    def merge(self, instr: Instr) -> None:
        pred, if_false, if_true = (self.name_lazily(i) for i in instr.inputs)
        self.emit(f"{self.new(instr.outputs[0])} = {if_true} if {pred} else {if_false}")
        self.emit(
            f"{self.new(instr.outputs[1])} = {self.param('one', _ONE)} if {pred} else "
            f"{self.param('zero', _ZERO)}"
        )

    def start(self, instr: Instr) -> None:
        """The line that starts a Python function on a thread of its own (user_calls.py)."""
        name = f"j{len(self.joining)}"
        self.joining[name] = instr.source
        self.emit(f"{name} = {self.written(instr)}")

    def join(self, instr: Instr) -> None:
        """Wait for it."""
        name = next(n for n, step in self.joining.items() if step is instr.source)
        names = [self.new(o) for o in instr.outputs]
        left = f"{', '.join(names)} = " if names else ""
        self.emit(f"{left}{name}.result()")

    def release(self, instr: Instr) -> None:
        """Let go of what nothing reads any more."""
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

    # writes -------------------------------------------------------------------------------------
    def small_update(self, instr: Instr) -> None:
        """What a Writer does, in the generated code itself, under the session's lock."""
        (i,) = dict.fromkeys(_writes_of(instr))
        args = [self.argument(instr, v) for v in instr.inputs[1:]]
        start = self.program.variables[i].start
        key, op = self.param_key(start), self.param(f"o{i}", self.program.variables[i].op)
        if self.locked != (len(self.lines), self.depth):  # one after the other they share the lock
            self.emit("with S.lock:")
        self.depth += 1
        self.emit(f"if {key} in S.busy: S.wait_until_idle(({key},))")
        self.emit(f"v{i} = V.get({key})")
        self.emit(f"if v{i} is None: v{i} = S.need({key}, {op})")
        self.emit(f"S.versions[{key}] += 1")
        self.emit(f"v{i} = V[{key}] = {instr.text.format(f'v{i}', *args)}")
        self.wrote_variables(instr)
        self.depth -= 1
        self.locked = (len(self.lines), self.depth)

    def call_writer(self, instr: Instr) -> None:
        """A call that gives variables new values; their old ones are let go before it."""
        targets = [f"v{w}" for w in _writes_of(instr)]
        right = self.written(instr)
        if isinstance(instr.source, Node):
            taken = [self.argument(instr, v) for v in self.arguments(instr)]
            live = [t for t in dict.fromkeys(targets) if t not in taken]
            self.emit(" = ".join([*live, "None"]) if live else "pass")
            results = zip(instr.source.outputs, instr.source.op._outputs)
            targets += [self.new(o) for o, t in results if not t._dtype._is_ref]
        self.emit(f"{', '.join(targets)}, = {right}")
        self.wrote_variables(instr)

    def wrote_variables(self, instr: Instr) -> None:
        """The names of what a write left behind."""
        assert instr.source is not None
        for node in nodes_of(instr.source):
            for w in node.writes:
                current = self.program.variables[w].current
                self.names.setdefault(current, f"v{w}")
                self.ready.pop(current, None)
                for scope in self.checked:
                    scope.discard(current)
                self.checked[-1].add(current)
            if node.outputs and node.op._outputs[0]._dtype._is_ref:
                self.emit(f"{self.new(node.outputs[0])} = v{node.writes[0]}")

    # segments, branches and loops ---------------------------------------------------------------
    def segment(self, instr: Instr) -> None:
        given = [self.name(i) for i in instr.inputs]
        name = self.function(instr.detail)
        self.in_segment = result = f"sr{len(self.params)}"
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

    def loop(self, instr: Instr) -> None:
        {"while": self.begin, "break": self.leave, "next": self.repeat}[instr.op](instr)

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
        if instr.implementation == "branch":
            self.emit(f"if {test}:")
            self.open()
            return
        own, guard = instr.detail
        self.emit(f"{own} = {guard} and {test}" if guard else f"{own} = {test}")

    def guarded(self, instr: Instr) -> None:
        self.emit(f"if {instr.detail}:")
        self.open()

    def begin(self, instr: Instr) -> None:
        inits = [self.name(i) for i in instr.inputs]
        targets = [self.new(v) for v in instr.outputs]
        if targets:
            self.emit(f"{', '.join(targets)} = {', '.join(inits)}")
        for value, axis in instr.detail:  # arrays with room at their end (storage_appends.py)
            name = self.appended[value] = f"h{len(self.appended)}"
            self.emit(f"{name} = {self.param('Appended', Appended)}({axis})")
        self.emit("while True:")
        self.open()

    def leave(self, instr: Instr) -> None:
        self.emit(f"if not {self.name(instr.inputs[0])}: break")

    def repeat(self, instr: Instr) -> None:
        """The values of the next iteration."""
        if instr.inputs:
            nexts = ", ".join([self.name(i) for i in instr.inputs])
            self.emit(f"{', '.join([self.names[v] for v in instr.detail])} = {nexts}")

    # results ------------------------------------------------------------------------------------
    def give_results(self, instr: Instr) -> None:
        parts = [self.result(r) for r in instr.detail]
        self.emit(f"return ({', '.join(parts)},)" if parts else "return ()")

    def result(self, result: Result) -> str:
        """A fetched value as the user's own."""
        if result.value is None or "{" not in result.text:
            return result.text
        for name, value in result.params:
            self.param(name, value)
        return result.text.format(self.name(result.value))


def _writes_of(instr: Instr) -> list[int]:
    """The variables that an instruction writes, by number."""
    assert instr.source is not None
    return [w for node in nodes_of(instr.source) for w in node.writes]


#: How instructions are written that are no plain call or expression.
_SPECIAL: dict[str, Callable[[_Emitter, Instr], None]] = {
    "writer": _Emitter.call_writer,
    "grouped update": _Emitter.call_writer,
    "expression": _Emitter.small_update,
    "appended": _Emitter.append,
    "choice": _Emitter.merge,
    "kernel on a thread": _Emitter.start,
    "wait": _Emitter.join,
    "native or steps": _Emitter.segment,
    "native": _Emitter.otherwise,
    "branch": _Emitter.branch,
    "guard": _Emitter.branch,
    "guarded": _Emitter.guarded,
    "loop": _Emitter.loop,
    "the user's own": _Emitter.give_results,
}
