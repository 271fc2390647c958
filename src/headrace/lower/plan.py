"""Plan: what an executor runs. Program, fused steps and lifetimes together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanWhile, fuse
from headrace.lower.liveness import Lifetimes, lifetimes
from headrace.lower.native_groups import native_expected
from headrace.lower.update_groups import Grouped, group
from headrace.program.nodes import Node, Program

__all__ = ["Plan", "make_plan", "steps"]


class Plan(NamedTuple):
    """A rewritten program with its steps in order."""

    program: Program
    block: PlanBlock
    lives: Lifetimes
    kept: int = 0  # how many of the feeds, the last ones, are values kept between runs


def make_plan(program: Program, fusion: bool = True, kept: int = 0) -> Plan:
    block = fuse(program, fusion, growing=native_expected())
    if fusion:
        block = group(block, program)
    return Plan(program, block, lifetimes(block, program), kept)


def steps(block: PlanBlock) -> Iterator[Node | Fused | Grouped]:
    """Every step, branches and loop bodies included."""
    stack: list[PlanBlock] = [block]
    while stack:
        for s in stack.pop():
            if isinstance(s, PlanIf):
                stack.append(s.body)
            elif isinstance(s, PlanWhile):
                stack.append(s.test)
                stack.append(s.body)
            else:
                yield s
