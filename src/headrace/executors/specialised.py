"""Planning again for the shapes that are fed.

A placeholder declared as ``[None, 784]`` or without a shape keeps a plan general: shapes are
computed in every run, broadcasts are asked about, and ops that might broadcast are not fused. Once
a session has run such a plan ``RUNS`` times with feeds of the same shapes, the program is planned
again as if these shapes had been declared (program/fed_shapes.py), by the same rules, fusion and
lowering, and runs with these shapes take that plan. Feeds of other shapes take the general one.

Which run changes over is a function of the program: runs are counted for each session and each list
of shapes. The plans themselves belong to the graph, so another session finds them made. A session
has at most ``MAX_SHAPES`` lists of shapes at a time; one more replaces the oldest, after ever more
runs. ``explain`` prints what was planned again, and why something was not.

Short loops of products (recurrent networks) are written out then, too, and the plan is taken if it
is bound to memory: it takes longer to make, so that a program which runs once or twice does not
pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core import shapes
from headrace.lower.bound_runs import BoundRuns
from headrace.lower.executable import Executable, Run, SessionRun
from headrace.lower.plan import Plan, steps
from headrace.lower.signature_counts import SignatureCounts
from headrace.program.fed_shapes import with_fed_shapes
from headrace.program.nodes import Node, Program, While
from headrace.rewrite.rules.loop_rounds import RULE, may_unroll, why_not_unrolled

if TYPE_CHECKING:
    from headrace.lower.session_state import State

__all__ = ["RUNS", "SpecialisedRuns", "specialise"]

#: Runs of a session with the same shapes after which the plan is made again for them.
RUNS = 24
#: The same for a plan with a loop that may be written out: its runs take long.
LOOP_RUNS = 4
#: Lists of shapes that a session has plans for.
MAX_SHAPES = 4
#: Steps about shapes, or left alone because of them, from which planning again pays.
MIN_OPEN_STEPS = 4
#: Larger programs are not planned again.
MAX_OPS = 5000

Signature = tuple[tuple[int, ...], ...]
#: Plans a program; with True it may be larger than its first plan (rewrite/rules/loop_rounds.py).
Make = Callable[[Program, bool], Executable]


class _Table:
    """What one session knows of one plan: by shapes, how to run; and the counts before that."""

    __slots__ = ("counts", "evicted", "runs")

    def __init__(self) -> None:
        self.runs: dict[Signature, Run] = {}
        self.counts = SignatureCounts()
        self.evicted = 0

    def values(self) -> tuple[Any, ...]:
        """Nothing that is bound to memory (lower/bound_runs.py)."""
        return ()

    def clear(self) -> None:
        self.runs.clear()
        self.counts = SignatureCounts()


class SpecialisedRuns(SessionRun):
    """What an executable calls: its own run, or the one for the shapes of the feeds."""

    __slots__ = (
        "__weakref__",
        "general",
        "has_loops",
        "is_bound",
        "made",
        "make",
        "n_steps",
        "program",
        "reasons",
        "unbound",
    )

    def __init__(self, program: Program, general: Executable, make: Make, has_loops: bool) -> None:
        self.program = program
        self.general = general.run
        self.n_steps, self.is_bound = _count(general.plan), _is_bound(general)
        self.has_loops = has_loops
        self.unbound = ""  # why a plan with loops written out was not taken
        self.make = make
        self.made: dict[Signature, Executable] = {}
        self.reasons: dict[Signature, str] = {}  # why not

    def within(self, state: State) -> Run:
        """The run for one session."""
        table: _Table = state.bindings.setdefault(self, _Table())
        general = _run_in(self.general, state)
        runs, first = table.runs, self._first

        def run(state: State, values: dict[str, Any], /, *feeds: Any) -> tuple[Any, ...]:
            signature = tuple([f.shape for f in feeds])
            found = runs.get(signature)
            if found is None:
                found = first(table, state, signature, general)
            return found(state, values, *feeds)

        return run

    def _first(self, table: _Table, state: State, signature: Signature, general: Run) -> Run:
        """How to run with shapes that have no plan of their own yet."""
        full = len(table.runs) >= MAX_SHAPES
        often = LOOP_RUNS if self.has_loops else RUNS
        if not table.counts.reaches(signature, 1 + often * (1 + (table.evicted + 1) * full)):
            return general
        if full:
            table.runs.pop(next(iter(table.runs)), None)
            table.evicted += 1
        made = self._planned(signature)
        run = general if made is None else made.run_in(state)
        table.runs[signature] = run
        return run

    def _planned(self, signature: Signature) -> Executable | None:
        """The plan for these shapes; None (with a reason) where it would be no better."""
        made = self.made.get(signature)
        if made is not None or signature in self.reasons:
            return made
        if len(self.reasons) + len(self.made) >= 4 * MAX_SHAPES:
            self.made.clear()
            self.reasons.clear()
        try:
            known = with_fed_shapes(self.program, signature)
            made = self._better(known, often=True)
            if made is None and self.has_loops:
                made = self._better(known, often=False)
        except ValueError as error:
            self.reasons[signature] = f"these shapes contradict the graph: {error}"
            return None
        if made is None:
            self.reasons[signature] = "knowing these shapes changes nothing" + self.unbound
            return None
        self.made[signature] = made
        return made

    def _better(self, known: Program, often: bool) -> Executable | None:
        """The plan, if it has fewer steps than the general one or is bound to memory."""
        made = self.make(known, often)
        if _count(made.plan) >= self.n_steps and _is_bound(made) <= self.is_bound:
            if often and self.has_loops:
                self.unbound = f"; with loops written out: {_why_unbound(made)}"
            return None
        return made

    def current(self, state: State) -> Iterator[tuple[Signature, Executable]]:
        """The plans that a session runs, the newest last."""
        table: _Table | None = state.bindings.get(self)
        for signature in [] if table is None else [*table.runs]:
            found = self.made.get(signature)
            if found is not None:
                yield signature, found

    def notes(self, state: State) -> list[str]:
        """In words, for ``explain``."""
        found = [
            f"{_show(s)}: {_count(e.plan)} steps instead of {self.n_steps}"
            for s, e in self.current(state)
        ]
        found += [f"not for {_show(s)}: {why}" for s, why in self.reasons.items()]
        often = LOOP_RUNS if self.has_loops else RUNS
        return found or [f"none yet ({often} runs with the same shapes)"]


def specialise(program: Program, general: Executable, make: Make) -> Executable:
    """The executable with plans for the shapes that are fed, where those can be better.

    ``make`` gives the plan of a program whose shapes are known, ``general`` is that of ``program``.
    """
    loops = _may_unroll(program)
    why = _why_not(program, general, loops)
    if why is not None:
        general.details.not_specialised = why
        return general
    runs = SpecialisedRuns(program, general, make, loops)
    locate = general.locate

    def locate_in_any(error: BaseException) -> tuple[Any, list[Any]] | None:
        for one in (locate, *[e.locate for e in [*runs.made.values()]]):
            found = one(error)
            if found is not None:
                return found
        return None

    details = general.details
    details.specialised, details.general_run = runs, general.run
    return Executable(runs, general.plan, general.options, locate_in_any, details)


def _why_not(program: Program, general: Executable, loops: bool) -> str | None:
    """Why a plan is not made again for the shapes that are fed."""
    given = [program.values[f] for f in program.feeds]
    if not loops and all(shapes.num_elements(v.shape) is not None for v in given):
        return "the shapes of its feeds are declared"
    if any(v.dtype.name in ("resource", "variant", "string") for v in given):
        return "a feed is no array of numbers"
    if len(program.body) > MAX_OPS:
        return f"it has more than {MAX_OPS} operations"
    writes = program.writes
    if not writes and isinstance(general.run, BoundRuns):
        return "its runs are bound to the shapes of their feeds"
    if loops:
        return None
    found = sum(_is_open(s, general.plan) for s in steps(general.plan.block))
    few = "few of its steps depend on shapes that are not declared"
    return few if found < MIN_OPEN_STEPS else None


def _why_unbound(made: Executable) -> str:
    """Why a loop is still there, or if it is not, why the plan is no better for it."""
    misses = made.plan.program.near_misses
    return next((m.why_not for m in misses if m.rule == RULE), made.details.unbound or "")


def _may_unroll(program: Program) -> bool:
    """Whether there is a loop that might be written out if its number of rounds were known."""
    return any(
        isinstance(s, While) and may_unroll(s) and why_not_unrolled(s) is None for s in program.body
    )


def _is_open(step: object, plan: Plan) -> bool:
    """Whether a step is about shapes, or is not fused with others because they are not known."""
    if not isinstance(step, Node):
        return False
    traits = step.opdef.traits
    if traits.of_shape or traits.computes_shapes:
        return True
    info = plan.program.values[step.outputs[0]] if step.outputs else None
    return traits.elementwise and info is not None and shapes.num_elements(info.shape) is None


def _run_in(run: Any, state: State) -> Run:
    return run.within(state) if isinstance(run, SessionRun) else run


def _is_bound(executable: Executable) -> bool:
    return isinstance(executable.run, BoundRuns)


def _count(plan: Plan) -> int:
    return sum(1 for _ in steps(plan.block))


def _show(signature: Signature) -> str:
    return " ".join(map(shapes.show, signature))
