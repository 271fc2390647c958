"""Whether a program is one: what every pass may rely on, checked.

``HEADRACE_DEBUG=verify`` checks after every pass; the tests do. A program that breaks a rule is a
bug of Headrace, never of the user's: the error names the pass and shows the program.

- A value is made once: by a feed, a constant, a variable, a node or a loop.
- It is made before it is read, where "before" follows blocks: what a branch or a loop's body makes
  may be read after it, since its reader runs only if that ran. A loop's ``next`` values and
  its condition are made inside it or before it.
- A node has as many inputs and outputs as its op declares; its writes are variables that the
  program marks as written.
- Fetches and effects are made.
"""

from __future__ import annotations

from headrace.program.nodes import Block, If, Node, Program, While

__all__ = ["Malformed", "verify"]


class Malformed(AssertionError):
    """A program that breaks a rule."""


def verify(program: Program, after: str = "") -> None:
    """Raise Malformed if a rule is broken; ``after`` names what made the program."""
    problems = _Check(program).run()
    if problems:
        from headrace.program.text import text_of

        shown = "\n".join(f"  {p}" for p in problems[:20])
        where = f" after {after}" if after else ""
        raise Malformed(f"The program is malformed{where}:\n{shown}\n\n{text_of(program)}")


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.problems: list[str] = []
        self.made: set[int] = set()

    def run(self) -> list[str]:
        p = self.program
        self._start()
        self._block(p.body)
        for kind, values in (("fetch", p.fetches), ("effect", p.effects)):
            for v in values:
                if v is not None:
                    self._reads(v, kind)
        return self.problems

    def _start(self) -> None:
        p = self.program
        for v in p.feeds:
            self._makes(v, "a feed")
        for v in p.constants:
            if v in self.made:
                continue  # a feed that has a default
            self._makes(v, "a constant")
        for variable in p.variables:
            for value in (variable.start, variable.current):  # (equal until the first write)
                self._exists(value, f"variable {variable.name}")
                self.made.add(value)

    def _exists(self, value: int, what: str) -> None:
        if not 0 <= value < len(self.program.values):
            self.problems.append(f"{what}: there is no value %{value}")

    def _makes(self, value: int, what: str) -> None:
        self._exists(value, what)
        if value in self.made:
            self.problems.append(f"{what} makes %{value}, which is made already")
        self.made.add(value)

    def _reads(self, value: int, what: str) -> None:
        self._exists(value, what)
        if value not in self.made:
            self.problems.append(f"{what} reads %{value}, which is not made yet")

    def _block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Node):
                self._node(s)
            elif isinstance(s, If):
                self._reads(s.pred, "a branch")
                self._block(s.body)
            else:
                self._loop(s)

    def _node(self, node: Node) -> None:
        what = f"{node.op.name} ({node.opdef.name})"
        for i in node.inputs:
            self._reads(i, what)
        if node.opdef.simple:
            if len(node.inputs) != len(node.opdef.inputs):
                n, want = len(node.inputs), len(node.opdef.inputs)
                self.problems.append(f"{what} has {n} inputs, its op takes {want}")
            if len(node.outputs) > len(node.opdef.outputs):
                n, want = len(node.outputs), len(node.opdef.outputs)
                self.problems.append(f"{what} has {n} outputs, its op gives {want}")
        currents = set()
        for number in node.writes:
            if not 0 <= number < len(self.program.variables):
                self.problems.append(f"{what} writes variable {number}, which is not there")
                continue
            variable = self.program.variables[number]
            currents.add(variable.current)
            if not variable.written:
                text = f"{what} writes {variable.name}, which is not marked as written"
                self.problems.append(text)
        for o in node.outputs:
            if o in currents:
                continue
            self._makes(o, what)

    def _loop(self, loop: While) -> None:
        what = f"loop {loop.op.name}"
        for v in loop.values:
            self._reads(v.init, what)
        for v in loop.values:
            self._makes(v.value, what)
        self._block(loop.test)
        self._reads(loop.cond, f"the condition of {what}")
        self._block(loop.body)
        for v in loop.values:
            self._reads(v.next, f"the next round of {what}")
