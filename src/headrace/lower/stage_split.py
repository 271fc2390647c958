"""The pass ``stages``: what a plan computes when (program/binding_times.py).

A program that only reads a variable computes the same from it every time until somebody writes it:
a normalised or transposed weight, a folded batch norm, a packed matrix. ``split`` takes such nodes
(stage WRITE) out of the program. What is left has their results as further feeds, and the part that
was taken out runs again only when one of its variables was written (write_stage.py).

    main, part = split(program)
    part.fetches == main.feeds[len(program.feeds):]

Views of a variable cost nothing and would keep its memory from being overwritten in place: they
stay where they are. So do small results. ``before_writes`` finds what a training step computes
before it writes anything: that part may be bound to shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.core import shapes
from headrace.program.binding_times import (
    Stage,
    first_stages,
    is_computation,
    is_draw,
    stage_of,
)
from headrace.program.nodes import If, Node, Program, Statement, While

if TYPE_CHECKING:
    from headrace.lower.fusion import Fused, PlanBlock, PlanStatement

__all__ = ["before_writes", "makers_of", "node_stages", "split", "step_stage"]

#: Elements that a node must read or make before keeping its result pays.
MIN_ELEMENTS = 4096


def split(program: Program) -> tuple[Program, Program | None]:
    """The program without what depends on unwritten variables alone, and that part (None if there
    is none).
    """
    if all(v.written for v in program.variables):
        return program, None
    makers = makers_of(program)
    if not any(_is_work(n, program) for n in makers.values()):
        return program, None
    worth = _worth(makers, program)
    kept, stays = _needed_outside(program, makers, worth)
    if not kept:
        return program, None
    inside = _closure(kept, makers)
    order = [s for s in program.body if isinstance(s, Node)]
    part = program._replace(
        feeds=(),
        fetches=tuple(kept),
        body=tuple(n for n in order if n.outputs and n.outputs[0] in inside),
        effects=(),
    )
    movable = {id(n) for n in makers.values()}
    body = tuple(
        s
        for s in program.body
        if not isinstance(s, Node) or id(s) not in movable or any(o in stays for o in s.outputs)
    )
    return program._replace(feeds=program.feeds + tuple(kept), body=body), part


def node_stages(program: Program) -> dict[int, Stage]:
    """The stages of the values that the outermost block makes, while no shape is known."""
    stages = first_stages(program)
    for s in program.body:
        if isinstance(s, Node):
            stages.update(dict.fromkeys(s.outputs, step_stage(s, stages, False)))
    return stages


def step_stage(step: Node | Fused, stages: Mapping[int, Stage], shapes_known: bool) -> Stage:
    """The stage in which a step of a plan runs.

    Without shapes, what nobody folded though its inputs are constants is too large to be kept.
    """
    if isinstance(step, Node):
        found = stage_of(step, stages, shapes_known)
    else:
        found = max([stages.get(i, Stage.RUN) for i in step.inputs], default=Stage.BUILD)
    return Stage.RUN if found <= Stage.SHAPE and not shapes_known else found


def before_writes(
    block: PlanBlock, program: Program
) -> tuple[list[Node | Fused], list[PlanStatement]]:
    """What a plan computes before it writes anything, usually the forward and the backward pass of
    a training step, and the rest.

    The first part reads variables as they were before the run and has no effect, but for random
    numbers that are drawn and can be given back (bound_draws.py): it may run first, and again. A
    draw stays behind what might raise before it, so that an error leaves its generator as it was.
    """
    known = {*program.feeds, *program.constants, *(v.start for v in program.variables)}
    first: list[Node | Fused] = []
    rest: list[PlanStatement] = []
    for s in block:
        is_first = _is_pure_step(s) or (not rest and isinstance(s, Node) and is_draw(s))
        if is_first and known.issuperset(s.inputs):  # type: ignore[union-attr]
            first.append(s)  # type: ignore[arg-type]
            known.update(_outputs(s))
        else:
            rest.append(s)
    return _draws_early(first), rest


def _draws_early(steps: list[Node | Fused]) -> list[Node | Fused]:
    """Draws right behind what they need, so that they do not stand between small steps."""
    early: list[Node | Fused] = []
    for s in steps:
        at = len(early)
        if isinstance(s, Node) and is_draw(s):
            while at and not set(s.inputs).intersection(_outputs(early[at - 1])):
                at -= 1
        early.insert(at, s)
    return early


def _is_pure_step(s: PlanStatement) -> bool:
    if isinstance(s, Node):
        return is_computation(s)
    return hasattr(s, "output")  # a fused group


def _outputs(s: PlanStatement) -> Iterable[int]:
    return s.outputs if isinstance(s, Node) else (s.output,)  # type: ignore[union-attr]


def makers_of(program: Program) -> dict[int, Node]:
    """The nodes of the outermost block whose results change only when a variable is written, by
    what they make.
    """
    stages = node_stages(program)
    return {
        o: s
        for s in program.body
        if isinstance(s, Node)
        for o in s.outputs
        if stages[o] is Stage.WRITE
    }


def _is_view(node: Node) -> bool:
    return node.opdef.traits.view or node.opdef.role == "merge"


def _is_work(node: Node, program: Program) -> bool:
    if _is_view(node):
        return False
    sizes = [shapes.num_elements(program.values[v].shape) for v in (*node.inputs, *node.outputs)]
    return any(s is not None and s >= MIN_ELEMENTS for s in sizes)


def _worth(makers: dict[int, Node], program: Program) -> set[int]:
    """Values whose making includes real work. (Makers are in running order: inputs come first.)"""
    worth: set[int] = set()
    for value, node in makers.items():
        if _is_work(node, program) or any(i in worth for i in node.inputs):
            worth.add(value)
    return worth


def _needed_outside(
    program: Program, makers: dict[int, Node], worth: set[int]
) -> tuple[list[int], set[int]]:
    """The values to keep, and those that the rest computes for itself."""
    kept: dict[int, None] = {}
    stays: set[int] = set()
    stack = _uses_outside(program, makers)
    while stack:
        value = stack.pop()
        node = makers.get(value)
        if node is None or value in stays or value in kept:
            continue
        if value in worth and not _is_view(node):
            kept[value] = None
        else:
            stays.update(node.outputs)
            stack.extend(node.inputs)
    return sorted(kept), stays


def _uses_outside(program: Program, makers: dict[int, Node]) -> list[int]:
    uses: list[int] = [f for f in (*program.fetches, *program.effects) if f is not None]
    stack: list[Statement] = list(program.body)
    while stack:
        s = stack.pop()
        if isinstance(s, Node):
            if not any(makers.get(o) is s for o in s.outputs):
                uses.extend(s.inputs)
        elif isinstance(s, If):
            uses.append(s.pred)
            stack.extend(s.body)
        else:
            assert isinstance(s, While)
            uses.append(s.cond)
            for v in s.values:
                uses += [v.init, v.next]
            stack.extend(s.test)
            stack.extend(s.body)
    return uses


def _closure(kept: list[int], makers: dict[int, Node]) -> set[int]:
    """Everything that the kept values are made from (by the first output of each maker)."""
    inside: set[int] = set()
    stack = list(kept)
    while stack:
        node = makers.get(stack.pop())
        if node is not None and node.outputs[0] not in inside:
            inside.add(node.outputs[0])
            stack.extend(node.inputs)
    return inside
