"""Which consecutive steps of a plan may be one native function (native_segments.py).

Decided from static facts alone, when a plan is made: the ops have rules, they are pure, and arrays
are certainly small, or so for usual batches.

    facts = ShapeFacts(program)
    for is_segment, part in facts.cut(plan.block, excluded):
        ...
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Union

from headrace.core import shapes
from headrace.kernels.native.native_types import has_code, kind_of
from headrace.lower import segment_rules
from headrace.lower.fusion import Fused, PlanStatement
from headrace.lower.native_groups import native_expected
from headrace.program.binding_times import is_computation
from headrace.program.nodes import Node, Program, walk

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.opdef import OpDef

__all__ = ["ShapeFacts", "Step", "nodes_of"]

#: Elements of an array in a segment; of a row, where the number of rows is not known.
MAX_ELEMENTS, MAX_ROW = 1 << 16, 256
#: Steps of a segment: fewer gain nothing, more take long to compile.
MIN_STEPS, MAX_STEPS = 3, 128
#: Operations of a program that is looked at: the first run of a larger one takes long enough.
MAX_PROGRAM = 2000

Step = Union[Node, Fused]
Part = tuple[bool, tuple[PlanStatement, ...]]


def nodes_of(step: Step) -> tuple[Node, ...]:
    return step.nodes if isinstance(step, Fused) else (step,)


class ShapeFacts:
    """What the cuts of one program depend on.

    ``structural``: constants that belong to the code (shapes, axes, flags; constants that are
    floats are inputs of a segment). ``of_shape``: values that follow from shapes and those.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.is_worth = native_expected() and len(program.body) <= MAX_PROGRAM
        self.structural: frozenset[int] = frozenset()
        self.of_shape: frozenset[int] = frozenset()
        self.small: dict[int, bool] = {}  # whether an array's elements are of a type with code, few
        if self.is_worth:
            self._find_structural_values()

    def _find_structural_values(self) -> None:
        values = self.program.values
        kinds = {v: kind_of(values[v].dtype.name) for v in self.program.constants}
        known = {v for v, kind in kinds.items() if kind in ("i", "u", "b")}
        self.structural = frozenset(known)
        for node in walk(self.program.body):
            follows = node.opdef.traits.of_shape or known.issuperset(node.inputs)
            if not follows or not node.inputs or not is_computation(node):
                continue
            if all(kind_of(values[o].dtype.name) for o in node.outputs):
                known.update(node.outputs)
        self.of_shape = frozenset(known - self.structural)

    def cut(
        self, block: Sequence[PlanStatement], excluded: Callable[[Node], bool]
    ) -> Iterator[Part]:
        """The statements in order: (True, a segment's steps) or (False, (another statement,))."""
        if not self.is_worth:
            yield from ((False, (s,)) for s in block)
            return
        pending: list[PlanStatement] = []
        for s in block:
            if isinstance(s, (Node, Fused)) and self._may_join(s, excluded):
                pending.append(s)
                if len(pending) == MAX_STEPS:
                    yield from _cut(pending)
                    pending = []
                continue
            if pending:
                yield from _cut(pending)
                pending = []
            yield False, (s,)
        if pending:
            yield from _cut(pending)

    def _may_join(self, step: Step, excluded: Callable[[Node], bool]) -> bool:
        if isinstance(step, Node):  # (the most by far: no generator for one)
            return self._node_may_join(step) and not excluded(step)
        return all(self._node_may_join(n) and not excluded(n) for n in nodes_of(step))

    def _node_may_join(self, node: Node) -> bool:
        if not is_computation(node):
            return False
        if self.of_shape.issuperset(node.outputs):
            return True
        values = self.program.values
        inputs = node.inputs
        if not _has_rule(node.opdef, tuple([values[i].dtype for i in inputs])):
            return False
        too_large = segment_rules.TOO_LARGE.get(node.opdef.name)
        if too_large is not None and too_large([values[i].shape for i in inputs], node.attrs):
            return False
        large = node.opdef.traits.large_inputs
        if large:
            inputs = tuple([v for k, v in enumerate(inputs) if k not in large])
        small = self.small
        for v in (*inputs, *node.outputs):
            fits = small.get(v)
            if fits is None:
                info = values[v]
                fits = small[v] = bool(kind_of(info.dtype._name)) and _is_small(info.shape)
            if not fits:
                return False
        return True


def _cut(pending: list[PlanStatement]) -> Iterator[Part]:
    """A segment, if it has enough work; views at its ends gain nothing."""
    first, last = 0, len(pending)
    if last < MIN_STEPS:
        yield False, tuple(pending)
        return
    while first < last and _is_view(pending[first]):
        first += 1
    while last > first and _is_view(pending[last - 1]):
        last -= 1
    if last - first < MIN_STEPS or sum(map(_is_work, pending[first:last])) < MIN_STEPS:
        first = last = len(pending)
    yield from ((False, (s,)) for s in pending[:first])
    if first < last:
        yield True, tuple(pending[first:last])
    yield from ((False, (s,)) for s in pending[last:])


def _is_work(s: PlanStatement) -> bool:
    return isinstance(s, Fused) or (
        isinstance(s, Node) and not s.opdef.traits.view and not s.opdef.traits.of_shape
    )


def _is_view(s: PlanStatement) -> bool:
    return isinstance(s, Node) and s.opdef.traits.view


@functools.lru_cache(1024)
def _has_rule(opdef: OpDef, dtypes: tuple[DType, ...]) -> bool:
    name = opdef.name
    if name in segment_rules.RULES or opdef.traits.rearranges:
        return True
    return (opdef.traits.elementwise or name in ("ZerosLike", "OnesLike")) and has_code(
        name, *[d._name for d in dtypes]
    )


@functools.lru_cache(1024)
def _is_small(shape: shapes.Shape) -> bool:
    """Certainly, or for batches that are not large."""
    if shape is None:
        return True  # (seen when it is bound)
    size = shapes.num_elements(shape)
    if size is not None:
        return size <= MAX_ELEMENTS
    return math.prod(d for d in shape if d is not None) <= MAX_ROW
