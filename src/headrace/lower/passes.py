"""The passes between a rewritten program and its listing, in their order.

``stages`` decides when a value is computed, ``select`` by what, ``storage`` where it lies. The
passes of ``PASSES`` go from a plan to a plan: they need the whole program. Two more make the
listing (``make_listing``): select gives every step its instruction, storage says where its result
lies.
Where the shapes of the feeds are known, both are done together, a step at a time (binding.py).
The emitter (emit_general.py, emit_bound.py) only names values and writes lines. ``explain`` prints
how many decisions each pass has made (``decisions``), and with ``HEADRACE_DEBUG=verify`` plan and
listing are checked after each.

    main, written = lower_program(program, "float32")      # written: what is of stage WRITE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace.lower.fusion import Fused, PlanBlock, PlanWhile, fuse
from headrace.lower.listing import Instr, Listing
from headrace.lower.listing_verify import checked_listing
from headrace.lower.native_groups import native_expected
from headrace.lower.plan import Plan, steps
from headrace.lower.plan_verify import checked_plan
from headrace.lower.select_packed import count_packed, pack
from headrace.lower.select_product_updates import take_products
from headrace.lower.select_steps import Selection, give_results
from headrace.lower.select_updates import Grouped, group
from headrace.lower.stage_split import split
from headrace.lower.step_order import read_first
from headrace.lower.storage_appends import find_appends
from headrace.lower.storage_lifetimes import Lifetimes, kept_starts, lifetimes
from headrace.lower.storage_reuse import place_results
from headrace.ops.training.product_updates import ProductUpdate
from headrace.program.nodes import Node, Program

__all__ = [
    "PASSES",
    "PLAIN",
    "Choices",
    "Pass",
    "decisions",
    "list_steps",
    "lower_program",
    "make_listing",
    "make_plan",
]


class Choices(NamedTuple):
    """What a plan is made with."""

    fusion: bool = True  # whether steps are brought together
    weights: str | None = None  # the type of packed weights; None: they are not packed
    splits: bool = False  # whether what is of stage WRITE is taken out


PLAIN = Choices()


class Pass(NamedTuple):
    """One pass over a plan, and how many decisions a plan shows it to have made."""

    kind: str  # "stages", "select" or "storage"
    name: str
    run: Callable[[Plan, Choices], Plan]
    count: Callable[[Plan], int]


def _pack_weights(plan: Plan, choices: Choices) -> Plan:
    if choices.weights is None:
        return plan
    packed = pack(plan.program, choices.weights)
    return plan._replace(program=packed, packed=count_packed(plan.program, packed))


def _take_out(plan: Plan, choices: Choices) -> Plan:
    if not choices.splits:
        return plan
    main, part = split(plan.program)
    kept = 0 if part is None else len(part.fetches)
    return plan._replace(program=main, part=part, kept=kept)


def _fuse_groups(plan: Plan, choices: Choices) -> Plan:
    native = native_expected()
    block = fuse(plan.program, choices.fusion, growing=native)
    return plan._replace(block=read_first(block) if choices.fusion and native else block)


def _take_products(plan: Plan, choices: Choices) -> Plan:
    if not choices.fusion or not native_expected():
        return plan
    return plan._replace(block=take_products(plan.block, plan.program))


def _count_products(plan: Plan) -> int:
    return sum(
        isinstance(s, Node) and isinstance(s.opdef.native, ProductUpdate) for s in steps(plan.block)
    )


def _group_updates(plan: Plan, choices: Choices) -> Plan:
    return plan._replace(block=group(plan.block, plan.program)) if choices.fusion else plan


def _append(plan: Plan, choices: Choices) -> Plan:
    if not any(isinstance(s, PlanWhile) for s in plan.block):
        return plan
    return plan._replace(appends=find_appends(plan.block, plan.program))


def _live(plan: Plan, choices: Choices) -> Plan:
    return plan._replace(lives=lifetimes(plan.block, plan.program))


def _keep_starts(plan: Plan, choices: Choices) -> Plan:
    return plan._replace(starts=kept_starts(plan.lives, plan.program))


def _count(kind: type) -> Callable[[Plan], int]:
    return lambda plan: sum(isinstance(s, kind) for s in steps(plan.block))


PASSES: tuple[Pass, ...] = (
    Pass("select", "packed weights", _pack_weights, lambda plan: plan.packed),
    Pass("stages", "values kept until a write", _take_out, lambda plan: plan.kept),
    Pass("select", "fused groups", _fuse_groups, _count(Fused)),
    Pass("select", "products in updates", _take_products, _count_products),
    Pass("select", "grouped updates", _group_updates, _count(Grouped)),
    Pass("storage", "appended loop variables", _append, lambda plan: len(plan.appends)),
    Pass("storage", "values that may be overwritten", _live, lambda plan: len(plan.lives.fresh)),
    Pass("storage", "old values kept for reads", _keep_starts, lambda plan: len(plan.starts)),
)


def make_plan(program: Program, choices: Choices = PLAIN) -> Plan:
    """Every pass over a rewritten program, in order."""
    plan = Plan(program, (), Lifetimes())
    for one in PASSES:
        plan = checked_plan(one.run(plan, choices), f"{one.kind}: {one.name}")
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
    plan = make_plan(program, Choices(fusion, weights, splits=True))
    return plan, None if plan.part is None else make_plan(plan.part, Choices(fusion))
