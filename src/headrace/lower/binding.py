"""Binding a plan to the shapes of its feeds: a run over memory that stays where it is.

The steps before the first write are selected and placed with known shapes (select_bound.py); what
comes after it, and what has an effect, is lowered as if no shape were known. Both are instructions
of one listing (passes.py), written as one function (emit.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.lower.bound_draws import give_back
from headrace.lower.emit import emit
from headrace.lower.emit_lines import Compiled
from headrace.lower.fusion import Fused, PlanStatement
from headrace.lower.passes import make_listing
from headrace.lower.plan import Plan
from headrace.lower.renewal import Renewal
from headrace.lower.select_bound import Binder
from headrace.lower.select_primitives import is_gradient
from headrace.lower.session_state import State
from headrace.lower.stage_split import before_writes
from headrace.lower.storage_lifetimes import kept_starts, lifetimes
from headrace.lower.write_stage import WriteStage
from headrace.program.nodes import Node, VariableInfo

if TYPE_CHECKING:
    from headrace.lower.fusion import PlanBlock

__all__ = ["Binding", "bind_plan"]


class Binding:
    """``run(state, values, *feeds)`` for feeds of these shapes."""

    __slots__ = ("__weakref__", "compiled", "notes", "renewal", "rest_line", "run")

    def __init__(self, compiled: Compiled, renewal: Renewal) -> None:
        listing, binder = compiled.listing, renewal.binder
        assert listing.bound is not None
        self.compiled = compiled._replace(params={})
        self.renewal = renewal  # holds the primitives and their memory
        self.run = compiled.run
        #: From this line on a run has effects.
        self.rest_line = listing.lines_of(listing.bound.steps).start
        #: How many lines are primitives, and how many others there are.
        self.notes = {
            "primitives": len(binder.calls),
            "lines": len(listing.lines) - listing.lines_of(0).start - 1,
            "bytes": binder.arena.nbytes + renewal.scratch.nbytes,
        }

    def had_effects(self, error: BaseException) -> bool:
        """Whether a run that raised had begun with what must not be done twice."""
        where = self._where(error)
        return where is not None and where.tb_lineno >= self.rest_line

    def give_back_draws(self, error: BaseException) -> None:
        """Leave the generators as they were before a run that raised."""
        where = self._where(error)
        rt = None if where is None else where.tb_frame.f_locals.get("rt")
        if rt is not None:
            give_back(rt)

    def _where(self, error: BaseException) -> TracebackType | None:
        """The part of an error's traceback that is this run's."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code is not self.run.__code__:
            traceback = traceback.tb_next
        return traceback


def bind_plan(
    plan: Plan, state: State, values: dict[str, Any], feeds: Sequence[Any], kept: WriteStage | None
) -> Binding:
    """Bind a plan to the shapes of these feeds."""
    plan, count = _ordered(plan)
    variables = _used_variables(plan, count, kept)
    # (before the values: a write in between shows)
    stamps = state.stamps(v.key for v in variables if not v.written)
    arrays = [state.need(v.key, v.op) for v in variables]
    kept_values = () if kept is None else kept(state, values)
    binder = Binder(plan, count, variables, arrays, kept_values, feeds)
    renewal = Renewal(binder, stamps, kept)
    return Binding(emit(make_listing(plan, kept, renewal)), renewal)


def _ordered(plan: Plan) -> tuple[Plan, int]:
    """The plan with what comes before its writes first, and the number of those steps."""
    block: PlanBlock = tuple([_primitive_of(s) or s for s in plan.block])
    count = len(block)
    if plan.program.writes:
        first, rest = before_writes(block, plan.program)
        block, count = (*first, *rest), len(first)
    if block == plan.block:
        return plan, count
    lives = lifetimes(block, plan.program)
    starts = kept_starts(lives, plan.program)
    return plan._replace(block=block, lives=lives, starts=starts), count


def _primitive_of(step: PlanStatement) -> Node | None:
    """The op of a group of one that the kernel library has a primitive for."""
    if not isinstance(step, Fused) or len(step.nodes) != 1:
        return None
    return step.nodes[0] if is_gradient(step.nodes[0]) else None


def _used_variables(plan: Plan, count: int, kept: WriteStage | None) -> tuple[VariableInfo, ...]:
    """Those that the first ``count`` steps, kept values or results take.

    First the ones that the program does not write.
    """
    used = {i for step in plan.block[:count] for i in step.inputs}  # type: ignore[union-attr]
    used.update(f for f in plan.program.fetches if f is not None)
    keys = () if kept is None else kept.keys
    found = [
        v
        for v in plan.program.variables
        if v.start in used or (v.current in used and not v.written) or v.key in keys
    ]
    return tuple(sorted(found, key=lambda v: v.written))
