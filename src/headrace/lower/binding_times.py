"""When is a value known? One analysis for all who ask.

A value is of the latest stage among what it is made of (listing.Stage): constants are known when
the plan is made, what depends on shapes alone when the feeds' shapes are known, what depends on
unwritten variables alone until one of them is written, everything else in the run.

- Values of stage WRITE are kept between runs (kept_values.py) and packed (packing.py).
- A run that is bound to shapes (settling.py) computes stages BUILD and SHAPE once, and WRITE when a
  variable's version stamp has changed.
- ``before_writes`` finds what a training step computes before it writes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.lower.listing import Stage
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.lower.fusion import Fused, PlanBlock, PlanStatement

__all__ = ["before_writes", "first_stages", "is_pure", "node_stages", "stage_of"]


def is_pure(node: Node) -> bool:
    """Whether a node gives the same for the same inputs, and does nothing else."""
    traits = node.opdef.traits
    if node.writes or traits.random or traits.host_only or "rt" in node.opdef.kernel_params:
        return False
    return not traits.stateful


def first_stages(program: Program, kept: int = 0) -> dict[int, Stage]:
    """The stages of what a program starts with; its last ``kept`` feeds are kept values."""
    given = len(program.feeds) - kept
    stages: dict[int, Stage] = dict.fromkeys(program.feeds[:given], Stage.RUN)
    stages.update(dict.fromkeys(program.feeds[given:], Stage.WRITE))
    stages.update(dict.fromkeys([v for v in program.constants if v not in stages], Stage.BUILD))
    for v in program.variables:
        stages[v.start] = Stage.RUN if v.written else Stage.WRITE
        stages[v.current] = stages[v.start]
    return stages


def stage_of(step: Node | Fused, stages: Mapping[int, Stage], shapes_known: bool) -> Stage:
    """The stage of what a step makes.

    Without shapes, what nobody folded though its inputs are constants is too large to be kept.
    """
    latest = max([stages.get(i, Stage.RUN) for i in step.inputs], default=Stage.BUILD)
    if isinstance(step, Node):
        if not is_pure(step) or not step.inputs:
            return Stage.RUN
        if shapes_known and step.opdef.traits.of_shape:
            return min(latest, Stage.SHAPE)
    if latest <= Stage.SHAPE and not shapes_known:
        return Stage.RUN
    return latest


def node_stages(program: Program) -> dict[int, Stage]:
    """The stages of the values that the outermost block makes, while no shape is known."""
    stages = first_stages(program)
    for s in program.body:
        if isinstance(s, Node):
            stages.update(dict.fromkeys(s.outputs, stage_of(s, stages, False)))
    return stages


def before_writes(
    block: PlanBlock, program: Program
) -> tuple[list[Node | Fused], list[PlanStatement]]:
    """What a plan computes before it writes anything, usually the forward and the backward pass of
    a training step, and the rest.

    The first part reads variables as they were before the run and has no effect: it may run first,
    and again.
    """
    known = {*program.feeds, *program.constants, *(v.start for v in program.variables)}
    first: list[Node | Fused] = []
    rest: list[PlanStatement] = []
    for s in block:
        if _is_pure_step(s) and known.issuperset(s.inputs):  # type: ignore[union-attr]
            first.append(s)  # type: ignore[arg-type]
            known.update(_outputs(s))
        else:
            rest.append(s)
    return first, rest


def _is_pure_step(s: PlanStatement) -> bool:
    if isinstance(s, Node):
        return is_pure(s)
    return hasattr(s, "output")  # a fused group


def _outputs(s: PlanStatement) -> Iterable[int]:
    return s.outputs if isinstance(s, Node) else (s.output,)  # type: ignore[union-attr]
