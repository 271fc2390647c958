"""The passes between a rewritten program and its listing, in their order.

``stages`` decides when a value is computed, ``select`` by what, ``storage`` where it lies. The
passes of ``PASSES`` go from a plan to a plan: they need the whole program. Those of
``LISTING_PASSES`` make the listing: select gives every step its instruction and what it calls,
storage says where its result lies. For steps whose shapes are known both are done together, a step
at a time, first. The emitter (emit.py) only names values and writes lines. ``explain`` prints
how many decisions each pass has made (``decisions``), and with ``HEADRACE_DEBUG=verify`` plan and
listing are checked after each.

    main, written = lower_program(program, "float32")      # written: what is of stage WRITE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace import env
from headrace.core.tensor import Operation
from headrace.lower.fusion import Fused, PlanWhile, fuse
from headrace.lower.listing import Instr, Listing
from headrace.lower.native_groups import native_expected
from headrace.lower.plan import Plan, steps
from headrace.lower.renewal import Renewal
from headrace.lower.select_calls import give_calls
from headrace.lower.select_packed import count_packed, pack
from headrace.lower.select_product_updates import take_products
from headrace.lower.select_restores import count_restores, take_restores
from headrace.lower.select_steps import Selection, give_results
from headrace.lower.select_updates import Grouped, group
from headrace.lower.stage_split import split
from headrace.lower.step_order import read_first
from headrace.lower.storage_appends import find_appends
from headrace.lower.storage_lifetimes import Lifetimes, kept_starts, lifetimes
from headrace.lower.storage_reuse import place_results
from headrace.lower.write_stage import WriteStage
from headrace.ops.training.product_updates import ProductUpdate
from headrace.program.nodes import Node, Program

__all__ = [
    "LISTING_PASSES",
    "PASSES",
    "PLAIN",
    "Choices",
    "Draft",
    "Pass",
    "decisions",
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
    apart: dict[Operation, str] = {}
    block = fuse(plan.program, choices.fusion, native, apart)
    block = read_first(block) if choices.fusion and native else block
    return plan._replace(block=block, apart=apart)


def _take_products(plan: Plan, choices: Choices) -> Plan:
    if not choices.fusion or not native_expected():
        return plan
    apart = dict(plan.apart)
    return plan._replace(block=take_products(plan.block, plan.program, apart), apart=apart)


def _count_products(plan: Plan) -> int:
    return sum(
        isinstance(s, Node) and isinstance(s.opdef.native, ProductUpdate) for s in steps(plan.block)
    )


def _group_updates(plan: Plan, choices: Choices) -> Plan:
    return plan._replace(block=group(plan.block, plan.program)) if choices.fusion else plan


def _take_restores(plan: Plan, choices: Choices) -> Plan:
    return plan._replace(block=take_restores(plan.block, plan.program))


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
    Pass(
        "storage",
        "values read into variables",
        _take_restores,
        lambda plan: count_restores(plan.block),
    ),
    Pass("storage", "appended loop variables", _append, lambda plan: len(plan.appends)),
    Pass("storage", "values that may be overwritten", _live, lambda plan: len(plan.lives.fresh)),
    Pass("storage", "old values kept for reads", _keep_starts, lambda plan: len(plan.starts)),
)


def make_plan(program: Program, choices: Choices = PLAIN) -> Plan:
    """Every pass over a rewritten program, in order."""
    plan = Plan(program, (), Lifetimes())
    verifies = env.verifies()
    for one in PASSES:
        plan = one.run(plan, choices)
        if verifies:
            from headrace.lower.plan_verify import verify_plan

            verify_plan(plan, f"{one.kind}: {one.name}")
    return plan


class Draft:
    """A listing under construction.

    Where the shapes of the feeds are known, a binder selects and places the first ``count`` steps,
    one by one (select_bound.py); else these are none.
    """

    def __init__(self, plan: Plan, renewal: Renewal | None) -> None:
        self.plan, self.renewal = plan, renewal
        self.binder = None if renewal is None else renewal.binder
        self.count = 0 if self.binder is None else self.binder.count
        self.bound: list[Instr] = []  # of bound steps
        self.rest: list[Instr] = []
        self.given: list[int] = []

    def bind(self) -> None:
        if self.binder is not None:
            # (imported by the first run that is bound)
            from headrace.lower.select_bound import bind_steps
            from headrace.lower.select_primitives import bind_step

            self.bound = bind_steps(self.binder, bind_step)
            self.given = [*self.binder.given]

    def select(self) -> None:
        self.rest = Selection(self.plan, self.count).outermost(self.plan.block[self.count :])

    def place(self) -> None:
        place_results(self.rest, self.plan.program, self.plan.lives, self.count)

    def give(self) -> None:
        last = give_results(self.plan)
        if self.binder is not None:
            last.detail = [self.binder.result(r) for r in last.detail]
        self.given += [r.value for r in last.detail if r.is_given]
        self.rest.append(last)

    def call(self) -> None:
        give_calls(self.rest, self.plan.program)

    def listing(self, keeper: WriteStage | None = None) -> Listing:
        """What there is of it."""
        plan, binder = self.plan, self.binder
        made = Listing(plan.program, [*self.bound, *self.rest], self.given)
        made.kept, made.keeper, made.starts = plan.kept, keeper, plan.starts
        if binder is not None and self.renewal is not None:
            made.bound = binder.bound(self.rest, self.renewal)
            made.watched = binder.watched
        return made


#: From a plan to its listing.
LISTING_PASSES: tuple[tuple[str, Callable[[Draft], None]], ...] = (
    ("select and storage: steps bound to shapes", Draft.bind),
    ("select: instructions", Draft.select),
    ("storage: results over inputs, what is let go", Draft.place),
    ("storage: results for the caller", Draft.give),
    ("select: kernels, groups and writers", Draft.call),
)


def make_listing(
    plan: Plan, keeper: WriteStage | None = None, renewal: Renewal | None = None
) -> Listing:
    """What a plan does. ``keeper`` gives the values that are kept between runs; ``renewal`` belongs
    to a binder, which knows the shapes of the feeds.
    """
    draft = Draft(plan, renewal)
    verifies = env.verifies()
    for name, run in LISTING_PASSES:
        run(draft)
        if verifies:
            from headrace.lower.listing_verify import verify_listing

            verify_listing(draft.listing(), name)
    made = draft.listing(keeper)
    if renewal is not None and made.bound is not None:
        renewal.hold(made.bound.steady)
    return made


def decisions(plan: Plan) -> dict[str, int]:
    """How many decisions each pass has made in a plan."""
    return {f"{one.kind}: {one.name}": one.count(plan) for one in PASSES}


def lower_program(program: Program, weights: str, fusion: bool = True) -> tuple[Plan, Plan | None]:
    """The plan of a rewritten program, and of its part that is of stage WRITE (None if there is
    none): its results are the last feeds of the first.
    """
    plan = make_plan(program, Choices(fusion, weights, splits=True))
    return plan, None if plan.part is None else make_plan(plan.part, Choices(fusion))
