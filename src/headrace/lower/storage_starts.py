"""Which variables are read as they were before the run after a write of them.

Codegen keeps their first values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.lower.fusion import PlanBlock, PlanIf, PlanWhile
from headrace.lower.select_updates import Grouped
from headrace.program.nodes import Node

__all__ = ["scan", "written_variables"]


def written_variables(step: object) -> list[int]:
    """The variables (by number) that a step writes."""
    nodes = step.nodes if isinstance(step, Grouped) else [step] if isinstance(step, Node) else []
    return [w for node in nodes for w in node.writes]


def scan(
    block: PlanBlock,
    by_start: Mapping[int, tuple[int, Any]],
    first: dict[int, int],
    last: dict[int, int],
    at: list[int],
    loop: bool,
) -> None:
    for s in block:
        if isinstance(s, PlanIf):
            _scan_use(by_start, s.pred, last, at)
            scan(s.body, by_start, first, last, at, loop)
        elif isinstance(s, PlanWhile):
            for v in s.loop.values:
                _scan_use(by_start, v.init, last, at)
            scan(s.test, by_start, first, last, at, True)
            _scan_use(by_start, s.loop.cond, last, at)
            scan(s.body, by_start, first, last, at, True)
            for v in s.loop.values:
                _scan_use(by_start, v.next, last, at)
        else:
            for i in s.inputs:
                # a read in a loop may come after a write of an earlier iteration
                _scan_use(by_start, i, last, [1 << 59] if loop else at)
            for w in written_variables(s):
                first.setdefault(w, at[0])
            at[0] += 1


def _scan_use(
    by_start: Mapping[int, tuple[int, Any]], value: int, last: dict[int, int], at: list[int]
) -> None:
    found = by_start.get(value)
    if found is not None:
        last[found[0]] = max(last.get(found[0], -1), at[0])
