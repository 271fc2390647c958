"""The passes between a rewritten program and its listing, in their order.

``stages`` decides when a value is computed, ``select`` by what, ``storage`` where it lies. The
first passes go from a plan to a plan: they need the whole program. The last two make the listing
(``make_listing``): select gives every step its instruction, storage says where its result lies.
Where the shapes of the feeds are known, both are done together, a step at a time (binding.py).
The emitter (emit_general.py, emit_bound.py) only names values and writes lines. ``explain`` prints
how many decisions each pass has made (``decisions``), and with ``HEADRACE_DEBUG=verify`` plan and
listing are checked after each.

    main, written = lower_program(program, "float32")      # written: what is of stage WRITE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace.lower import plan_verify
from headrace.lower.fusion import Fused, PlanBlock, PlanWhile, fuse
from headrace.lower.listing import Instr, Listing
from headrace.lower.listing_verify import checked_listing
from headrace.lower.native_groups import native_expected
from headrace.lower.plan import Plan, steps
from headrace.lower.select_packed import pack
from headrace.lower.select_steps import Selection, give_results
from headrace.lower.select_updates import Grouped, group
from headrace.lower.stage_split import split
from headrace.lower.step_order import read_first
from headrace.lower.storage_appends import find_appends
from headrace.lower.storage_lifetimes import Lifetimes, lifetimes
from headrace.lower.storage_reuse import place_results
from headrace.lower.storage_starts import kept_starts
from headrace.program.nodes import Program
from headrace.program.verify import checked

__all__ = [
    "PASSES",
    "Pass",
    "decisions",
    "list_steps",
    "lower_program",
    "make_listing",
    "make_plan",
]


class Pass(NamedTuple):
    """One pass over a plan, and how many decisions a plan shows it to have made."""

    kind: str  # "select" or "storage"
    name: str
    run: Callable[[Plan, bool], Plan]  # the flag: whether steps are brought together
    count: Callable[[Plan], int]


def _fuse_groups(plan: Plan, fusion: bool) -> Plan:
    native = native_expected()
    block = fuse(plan.program, fusion, growing=native)
    return plan._replace(block=read_first(block) if fusion and native else block)


def _group_updates(plan: Plan, fusion: bool) -> Plan:
    return plan._replace(block=group(plan.block, plan.program)) if fusion else plan


def _append(plan: Plan, fusion: bool) -> Plan:
    if not any(isinstance(s, PlanWhile) for s in plan.block):
        return plan
    return plan._replace(appends=find_appends(plan.block, plan.program))


def _keep_starts(plan: Plan, fusion: bool) -> Plan:
    return plan._replace(starts=kept_starts(plan.block, plan.program))


def _live(plan: Plan, fusion: bool) -> Plan:
    return plan._replace(lives=lifetimes(plan.block, plan.program))


def _count(kind: type) -> Callable[[Plan], int]:
    return lambda plan: sum(isinstance(s, kind) for s in steps(plan.block))


PASSES: tuple[Pass, ...] = (
    Pass("select", "fused groups", _fuse_groups, _count(Fused)),
    Pass("select", "grouped updates", _group_updates, _count(Grouped)),
    Pass("storage", "appended loop variables", _append, lambda plan: len(plan.appends)),
    Pass("storage", "old values kept for reads", _keep_starts, lambda plan: len(plan.starts)),
    Pass("storage", "values that may be overwritten", _live, lambda plan: len(plan.lives.fresh)),
)


def make_plan(program: Program, fusion: bool = True, kept: int = 0) -> Plan:
    """The plan of a program whose weights are packed and whose stages are apart."""
    plan = Plan(program, (), Lifetimes(), kept)
    for one in PASSES:
        plan = plan_verify.checked_plan(one.run(plan, fusion), one.name)
    return plan


def make_listing(plan: Plan) -> Listing:
    """What a plan does while no shape is known."""
    results = give_results(plan)
    instrs = [*list_steps(plan, plan.block), results]
    given = [r.value for r in results.detail if r.is_given]
    return checked_listing(Listing(plan.program, instrs, given, kept=plan.kept), "selecting")


def list_steps(plan: Plan, block: PlanBlock, position: int = 0) -> list[Instr]:
    """Select, then storage, over steps of a plan, the first of which has this number."""
    instrs = Selection(plan, position).outermost(block)
    place_results(instrs, plan.program, plan.lives, position)
    return instrs


def decisions(plan: Plan) -> dict[str, int]:
    """How many decisions each pass has made in a plan."""
    return {f"{one.kind}: {one.name}": one.count(plan) for one in PASSES}


def lower_program(program: Program, weights: str, fusion: bool = True) -> tuple[Plan, Plan | None]:
    """The plan of a rewritten program, and of its part that is of stage WRITE (None if there is
    none): its results are the last feeds of the first.
    """
    packed = checked(pack(program, weights), "select: packed weights")
    main, part = split(packed)
    checked(main, "stages: taking out what is of stage WRITE")
    if part is None:
        return make_plan(main, fusion), None
    checked(part, "stages: what is of stage WRITE")
    return make_plan(main, fusion, len(part.fetches)), make_plan(part, fusion)
