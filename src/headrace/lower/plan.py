"""Plan: what an executor runs. A program, its steps in order, and what the passes decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headrace.core.tensor import Operation
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanWhile, statements
from headrace.lower.select_updates import Grouped
from headrace.lower.storage_lifetimes import Lifetimes
from headrace.program.nodes import Node, Program

__all__ = ["Plan", "steps"]


class Plan(NamedTuple):
    """A rewritten program as the passes (passes.py) left it."""

    program: Program  # select: packed weights
    block: PlanBlock  # select: fused groups, grouped updates
    lives: Lifetimes  # storage: who may be overwritten, and when
    packed: int = 0  # select: so many steps take packed weights
    kept: int = 0  # stages: so many of the feeds, the last ones, are of stage WRITE
    part: Program | None = None  # stages: what computes these
    appends: Mapping[int, int] = {}  # storage: results of appending to a loop variable, their axis
    apart: Mapping[Operation, str] = {}  # select: why operations are in no group (group_reasons.py)
    starts: frozenset[int] = frozenset()  # storage: variables whose old value is read after a write


def steps(block: PlanBlock) -> Iterator[Node | Fused | Grouped]:
    """Every step in running order, branches and loop bodies included."""
    for s in statements(block):
        if not isinstance(s, (PlanIf, PlanWhile)):
            yield s
