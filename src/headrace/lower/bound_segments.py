"""Small steps between the products of a bound training step, as native functions.

A run that is bound to shapes takes its steps one by one, each writing where its result has its
place (select_bound.py). Consecutive small ones are a native segment besides (native_segments.py):
once that is hot, one call makes their results, and what later steps read is copied into its place.

    r = g(S, $4, $7)
    if r is None:
     subtract($4, $7, $9)        # the steps, as they were bound
     ...
    else:
     copyto($12, r[0])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Union

import numpy as np

from headrace.core import shapes
from headrace.lower.bound_values import FIXED, MOVING, outputs_of
from headrace.lower.fusion import Fused
from headrace.lower.listing import Instr, Stage
from headrace.lower.native_segments import NativeSegment
from headrace.lower.segment_cuts import ShapeFacts
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.lower.select_bound import Binder

__all__ = ["parts_of", "wrap"]

Step = Union[Node, Fused]

#: Elements of an array in such a segment: larger ones gain from a second thread.
MAX_ELEMENTS = 1 << 14
#: Lines that a call is to replace, at least.
MIN_LINES = 3


def parts_of(binder: Binder) -> Iterator[tuple[ShapeFacts | None, Sequence[Step]]]:
    """The bound steps in order: those of a segment together, with the facts that it was cut by."""
    block: Sequence[Step] = binder.plan.block[: binder.count]  # type: ignore[assignment]
    if not binder.trains:
        yield None, block
        return
    facts = ShapeFacts(binder.program)
    for is_segment, part in facts.cut(block, lambda node: _is_large(node, binder)):
        yield facts if is_segment else None, part  # type: ignore[misc]


def _is_large(node: Node, binder: Binder) -> bool:
    values = binder.program.values
    for v in (*node.inputs, *node.outputs):
        size = shapes.num_elements(values[v].shape)
        if size is None or size > MAX_ELEMENTS:
            return True
    return False


def wrap(binder: Binder, facts: ShapeFacts, part: Sequence[Step], instrs: Sequence[Instr]) -> None:
    """Put the call of a native function around the lines of steps that have just been bound."""
    made = {o for s in part for o in outputs_of(s)}
    if not _may_wrap(binder, part, instrs, made):
        return
    last = binder.lives.last
    is_read = lambda v: last.get(v, -1) >= binder.position
    segment = NativeSegment(part, facts, is_read, products=binder.work)
    kinds = binder.kinds
    placed = [binder.env[v] for v in segment.outputs if kinds.get(v) == FIXED]
    if not all(a.flags.writeable for a in placed):
        return  # (a view that repeats elements)
    found = f"n{binder.position}"
    given = "".join(f", {binder.name(v)}" for v in segment.inputs)
    copyto = binder.param("copyto", np.copyto)
    taken = []
    for n, value in enumerate(segment.outputs):
        if kinds.get(value) == FIXED:
            taken.append(f" {copyto}({binder.name(value)}, {found}[{n}])")
        elif kinds.get(value) == MOVING:
            taken.append(f" {binder.name(value)} = {found}[{n}]")
    for instr in instrs:
        instr.code = [" " + line for line in instr.code]
        instr.detail = segment
    call = f"{found} = {binder.new_param(segment)}(S{given})"
    instrs[0].code = [call, f"if {found} is None:", *instrs[0].code]
    instrs[-1].code = [*instrs[-1].code, "else:", *(taken or [" pass"])]


def _may_wrap(
    binder: Binder, part: Sequence[Step], instrs: Sequence[Instr], made: set[int]
) -> bool:
    """Whether a native function may do all that the lines do."""
    if sum(len(i.code) for i in instrs) < MIN_LINES:
        return False
    if any(i.stage is Stage.WRITE for i in instrs):
        return False  # computed only when a variable was written
    if any(v in binder.fresh for v in made):
        return False  # written where the caller gets it
    if any((total in made) != (product in made) for total, product in binder.sums.items()):
        return False  # a product outside has added it
    inputs = {i for s in part for i in s.inputs}
    if any(v in binder.doubtful for v in (*made, *inputs)):
        return False
    return not any("fail_for_nan" in line for i in instrs for line in i.code)
