"""What every pass over a plan promises: a step reads what was made before it.

verify_plan(plan, "grouped updates")     # where HEADRACE_DEBUG=verify asks for it
"""

from __future__ import annotations

from headrace.lower.fusion import PlanBlock, PlanIf, PlanWhile
from headrace.lower.listing import nodes_of
from headrace.lower.plan import Plan
from headrace.program.verify import verify

__all__ = ["verify_plan", "why_invalid"]


def verify_plan(plan: Plan, after: str) -> None:
    """Raise AssertionError if a rule is broken; ``after`` names the pass that made the plan."""
    verify(plan.program, after)
    if plan.part is not None:
        verify(plan.part, after)
    if plan.block:  # else steps are not made yet, or there are none
        wrong = why_invalid(plan)
        assert not wrong, f"The plan is wrong after {after}: {wrong}"


def why_invalid(plan: Plan) -> str:
    """The first step that reads what is not there, or fetch that nobody makes; empty if there is
    none.
    """
    program = plan.program
    made = {*program.feeds, *program.constants}
    for v in program.variables:
        made.update((v.start, v.current))
    wrong = _block(plan.block, made)
    missing = [f for f in program.fetches if f is not None and f not in made]
    return wrong or (f"values {missing} are fetched and never made" if missing else "")


def _block(block: PlanBlock, made: set[int]) -> str:
    for s in block:
        if isinstance(s, PlanIf):
            wrong = _missing((s.pred,), made, "a branch") or _block(s.body, made)
        elif isinstance(s, PlanWhile):
            wrong = _loop(s, made)
        else:
            name = nodes_of(s)[-1].op.name
            wrong = _missing(s.inputs, made, name)
            made.update(o for n in nodes_of(s) for o in n.outputs)
        if wrong:
            return wrong
    return ""


def _loop(s: PlanWhile, made: set[int]) -> str:
    values = s.loop.values
    wrong = _missing(tuple(v.init for v in values), made, "a loop")
    made.update(v.value for v in values)
    wrong = wrong or _block(s.test, made) or _missing((s.loop.cond,), made, "a loop's test")
    wrong = wrong or _block(s.body, made)
    return wrong or _missing(tuple(v.next for v in values), made, "a loop's next round")


def _missing(values: tuple[int, ...], made: set[int], who: str) -> str:
    missing = [v for v in values if v not in made]
    return f"{who} reads values {missing}, which are not made yet" if missing else ""
