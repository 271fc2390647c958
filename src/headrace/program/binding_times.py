"""When is a value known? One analysis for all who ask.

A value is of the latest stage among what it is made of: constants are known when the plan is made,
what depends on shapes alone when the feeds' shapes are known, what depends on unwritten variables
alone until one of them is written, everything else in the run.

- Folding (rewrite/rules/shape_rules.py) computes what is of stage BUILD.
- Stage WRITE is kept between runs (lower/stage_split.py) and packed (lower/select_packed.py).
- A run that is bound to shapes (lower/select_bound.py) computes stages BUILD and SHAPE once, and
  WRITE when a variable's version stamp has changed.

    stage_of(node, {3: Stage.BUILD, 4: Stage.BUILD}, shapes_known=False)   # Stage.BUILD
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Container
from typing import TYPE_CHECKING, Protocol

from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.core.opdef import OpDef

__all__ = [
    "Stage",
    "Stages",
    "constant_stages",
    "first_stages",
    "is_computation",
    "is_draw",
    "is_function",
    "stage_of",
    "why_no_computation",
    "why_no_function",
]


class Stage(enum.IntEnum):
    """When a value is known. A later stage may read an earlier one, never the reverse."""

    BUILD = 0  # when the plan is made: constants
    SHAPE = 1  # when the shapes of the feeds are known
    WRITE = 2  # when a variable was written: packed weights, folded norms
    RUN = 3  # in every run


class Stages(Protocol):
    """The stages of values; a dictionary is one."""

    def get(self, value: int, default: Stage, /) -> Stage: ...


class _OfConstants:
    __slots__ = ("constants",)

    def __init__(self, constants: Container[int]) -> None:
        self.constants = constants

    def get(self, value: int, default: Stage, /) -> Stage:
        return Stage.BUILD if value in self.constants else default


def constant_stages(constants: Container[int]) -> Stages:
    """Of constants BUILD, of all other values what ``get`` is given: nothing is looked at or
    copied.
    """
    return _OfConstants(constants)


@functools.lru_cache(4096)
def why_no_function(opdef: OpDef) -> str:
    """Why an op's results do not follow from its inputs alone; empty if they do.

    (What reads a variable is a function of the value that it is given, and what writes one makes
    the new value of the old one.)
    """
    traits = opdef.traits
    if traits.random:
        return "draws random numbers"
    if traits.stateful and not traits.writes:
        return "has a state"
    return "needs the session" if "rt" in opdef.kernel_params else ""


@functools.lru_cache(4096)
def why_no_computation(opdef: OpDef) -> str:
    """Why an op may not run at any time, anywhere; empty if it may."""
    why = why_no_function(opdef)
    return "runs on the host only" if not why and opdef.traits.host_only else why


def is_function(node: Node) -> bool:
    """Whether a node gives the same for the same inputs, and does nothing else."""
    return not (node.writes or why_no_function(node.opdef))


def is_computation(node: Node) -> bool:
    """A function that may run at any time, anywhere: in another order, earlier, or not at all."""
    return not (node.writes or why_no_computation(node.opdef))


def is_draw(node: Node) -> bool:
    """Whether a node does nothing but draw numbers, as many as its shape input says, from a
    generator of its own: a draw may run earlier, and what it took can be given back.
    """
    traits = node.opdef.traits
    return traits.random and traits.shape_input is not None and not node.writes


def stage_of(node: Node, stages: Stages, shapes_known: bool) -> Stage:
    """The stage of what a node makes. What only runs on the host, or has no inputs, is of RUN; a
    user's function without state is of BUILD if it is given constants alone.
    """
    if node.opdef.traits.calls_user:
        known = all(stages.get(i, Stage.RUN) is Stage.BUILD for i in node.inputs)
        return Stage.BUILD if known and is_function(node) else Stage.RUN
    if not node.inputs or not is_computation(node):
        return Stage.RUN
    latest = max([stages.get(i, Stage.RUN) for i in node.inputs])
    if shapes_known and node.opdef.traits.of_shape:
        return min(latest, Stage.SHAPE)
    return latest


def first_stages(program: Program, kept: int = 0) -> dict[int, Stage]:
    """The stages of what a program starts with; its last ``kept`` feeds are of stage WRITE."""
    given = len(program.feeds) - kept
    stages: dict[int, Stage] = dict.fromkeys(program.feeds[:given], Stage.RUN)
    stages.update(dict.fromkeys(program.feeds[given:], Stage.WRITE))
    stages.update(dict.fromkeys([v for v in program.constants if v not in stages], Stage.BUILD))
    for v in program.variables:
        stages[v.start] = Stage.RUN if v.written else Stage.WRITE
        stages[v.current] = stages[v.start]
    return stages
