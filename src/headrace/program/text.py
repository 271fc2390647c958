"""A program as text that a person can read, a statement a line.

    program of run(loss) fed with x
      %0 = feed x  float32[?,4]
      %5 = MatMul(%0, w)  float32[?,3]
      if %7 {
        %8 = Neg(%5)  float32[?,3]
      }
      fetch %8

Variables are shown by their names: ``w`` is what it was before the run, ``w'`` what the last write
made of it. Constants are shown by their values if they are small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.core import shapes
from headrace.program.constants import peek
from headrace.program.nodes import Block, If, Node, Program, While

__all__ = ["ValueNames", "text_of"]

#: A line is at most so wide.
WIDTH = 100
#: Elements of a constant that are shown.
MAX_ELEMENTS_SHOWN = 4


def text_of(program: Program) -> str:
    """The program, a statement a line."""
    return "\n".join(_cut(line) for line in _Printer(program).lines())


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 2] + " …"


class ValueNames:
    """How values are called in texts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[int, str] = {}
        for v in program.variables:
            self.names[v.start] = v.name
            if v.current != v.start:
                self.names[v.current] = f"{v.name}'"

    def name(self, value: int) -> str:
        found = self.names.get(value)
        if found is None:
            found = f"%{value}"
            if value in self.program.constants:
                found = _constant(peek(self.program.constants, value)) or found
            self.names[value] = found
        return found


class _Printer(ValueNames):
    def lines(self) -> Iterator[str]:
        p = self.program
        for f in p.feeds:
            tensor = p.values[f].tensor if f < len(p.values) else None
            yield f"{self.name(f)} = feed {'' if tensor is None else tensor.name}{self._type(f)}"
        yield from self._block(p.body, "")
        wanted = [self.name(f) for f in p.fetches if f is not None]
        yield f"fetch {', '.join(wanted) or 'nothing'}"
        if p.effects:
            yield f"effects {', '.join(map(self.name, p.effects))}"

    def _type(self, value: int) -> str:
        if not 0 <= value < len(self.program.values):
            return ""
        info = self.program.values[value]
        return f"  {info.dtype.name}{shapes.show(info.shape)}"

    def _block(self, block: Block, pad: str) -> Iterator[str]:
        for s in block:
            if isinstance(s, Node):
                yield pad + self._node(s)
            elif isinstance(s, If):
                yield f"{pad}if {'' if s.branch else 'not '}{self.name(s.pred)} {{"
                yield from self._block(s.body, pad + "  ")
                yield pad + "}"
            else:
                yield from self._loop(s, pad)

    def _node(self, node: Node) -> str:
        made = ", ".join(map(self.name, node.outputs))
        args = ", ".join(map(self.name, node.inputs))
        written = [self.program.variables[n].name for n in node.writes]
        writes = f"  writes {', '.join(written)}" if written else ""
        shown = self._type(node.outputs[0]) if node.outputs else ""
        head = f"{made} = " if made else ""
        return f"{head}{node.opdef.name}({args}){shown}{writes}  # {node.op.name}"

    def _loop(self, loop: While, pad: str) -> Iterator[str]:
        starts = ", ".join(f"{self.name(v.value)} = {self.name(v.init)}" for v in loop.values)
        yield f"{pad}loop {loop.op.name} with {starts} {{"
        yield from self._block(loop.test, pad + "  ")
        yield f"{pad}  while {self.name(loop.cond)}"
        yield from self._block(loop.body, pad + "  ")
        steps = ", ".join(f"{self.name(v.value)} = {self.name(v.next)}" for v in loop.values)
        yield f"{pad}  next {steps}"
        yield pad + "}"


def _constant(value: object) -> str:
    """A small constant as it is written; "" for others."""
    array = np.asarray(value)
    if array.dtype == object or array.size > MAX_ELEMENTS_SHOWN:
        return ""
    return str(array.tolist()).replace("'", "")
