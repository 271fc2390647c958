"""Which variables are read as they were before the run after a write of them.

The emitter gives their first values names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.lower.fusion import PlanBlock, PlanIf, PlanWhile
from headrace.lower.select_updates import Grouped
from headrace.program.nodes import Node, Program

__all__ = ["kept_starts", "written_variables"]

_END = 1 << 60


def written_variables(step: object) -> list[int]:
    """The variables (by number) that a step writes."""
    nodes = step.nodes if isinstance(step, Grouped) else [step] if isinstance(step, Node) else []
    return [w for node in nodes for w in node.writes]


def kept_starts(block: PlanBlock, program: Program) -> frozenset[int]:
    """The variables (by number) whose old value is read after a write."""
    if not any(v.written for v in program.variables):
        return frozenset()
    scan = _Scan({v.start: i for i, v in enumerate(program.variables)})
    scan.block(block, False)
    for f in program.fetches:
        if f in scan.by_start:
            scan.last[scan.by_start[f]] = _END
    return frozenset(i for i, at in scan.first.items() if scan.last.get(i, -1) > at)


class _Scan:
    def __init__(self, by_start: Mapping[int | None, int]) -> None:
        self.by_start = by_start
        self.first: dict[int, int] = {}  # the position of a variable's first write
        self.last: dict[int, int] = {}  # and of the last use of its old value
        self.at = 0

    def block(self, block: PlanBlock, loop: bool) -> None:
        for s in block:
            if isinstance(s, PlanIf):
                self.use(s.pred, self.at)
                self.block(s.body, loop)
            elif isinstance(s, PlanWhile):
                self.loop(s)
            else:
                for i in s.inputs:
                    # a read in a loop may come after a write of an earlier iteration
                    self.use(i, _END - 1 if loop else self.at)
                for w in written_variables(s):
                    self.first.setdefault(w, self.at)
                self.at += 1

    def loop(self, s: PlanWhile) -> None:
        values = s.loop.values
        for v in values:
            self.use(v.init, self.at)
        self.block(s.test, True)
        self.use(s.loop.cond, self.at)
        self.block(s.body, True)
        for v in values:
            self.use(v.next, self.at)

    def use(self, value: int, at: int) -> None:
        found = self.by_start.get(value)
        if found is not None:
            self.last[found] = max(self.last.get(found, -1), at)
