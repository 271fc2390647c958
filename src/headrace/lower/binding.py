"""Binding a plan to the shapes of its feeds: a run over memory that stays where it is.

The steps before the first write are selected and placed with known shapes (select_bound.py); what
comes after it, and what has an effect, is lowered as if no shape were known (passes.py). Both are
instructions of one listing, written as one function (emit_bound.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.lower.bound_segments import parts_of, wrap
from headrace.lower.bound_values import MOVING, look_of, outputs_of
from headrace.lower.emit_bound import BoundLowering
from headrace.lower.emit_lines import Compiled
from headrace.lower.fusion import Fused, PlanStatement
from headrace.lower.listing import Instr, Listing
from headrace.lower.listing_verify import checked_listing
from headrace.lower.passes import list_steps
from headrace.lower.plan import Plan
from headrace.lower.select_bound import Binder
from headrace.lower.select_primitives import bind_step, is_gradient
from headrace.lower.session_state import State
from headrace.lower.stage_split import before_writes
from headrace.lower.storage_arena import NotBound
from headrace.lower.storage_lifetimes import kept_starts, lifetimes
from headrace.lower.write_stage import WriteStage
from headrace.program.nodes import Node, VariableInfo

if TYPE_CHECKING:
    from headrace.lower.fusion import PlanBlock

__all__ = ["Binding", "NotBound", "bind_plan"]

#: Multiplications from which binding a training step pays.
MIN_WORK = 1 << 20


class Binding:
    """``run(state, values, *feeds)`` for feeds of these shapes."""

    __slots__ = ("__weakref__", "compiled", "notes", "renewal", "rest_line", "run")

    def __init__(
        self, compiled: Compiled, renewal: _Renewal, notes: dict[str, int], rest_line: int
    ) -> None:
        self.compiled = compiled
        self.renewal = renewal  # holds the primitives and their memory
        self.run = compiled.run
        self.notes = notes  # how many lines are primitives, and how many others there are
        self.rest_line = rest_line  # from this line on a run has effects

    def had_effects(self, error: BaseException) -> bool:
        """Whether a run that raised had begun with what must not be done twice."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code is self.run.__code__:
                return traceback.tb_lineno >= self.rest_line
            traceback = traceback.tb_next
        return False


def bind_plan(
    plan: Plan, state: State, values: dict[str, Any], feeds: Sequence[Any], kept: WriteStage | None
) -> Binding:
    """Bind a plan to the shapes of these feeds."""
    plan, count = _ordered(plan)
    variables = _used_variables(plan, count, kept)
    # (before the values: a write in between shows)
    stamps = state.stamps(v.key for v in variables if not v.written)
    held = [state.need(v.key, v.op) for v in variables]
    kept_values = () if kept is None else kept(state, values)
    binder = Binder(plan, count, variables, held, kept_values, feeds)
    try:
        instrs = _selected(binder)
        return _emitted(binder, instrs, stamps, kept)
    except BaseException:
        # they refer to it: its memory would stay until the collector of cycles comes
        binder.renewals.clear()
        raise


def _ordered(plan: Plan) -> tuple[Plan, int]:
    """The plan with what comes before its writes first, and the number of those steps."""
    block: PlanBlock = tuple([_primitive_of(s) or s for s in plan.block])
    count = len(block)
    if any(v.written for v in plan.program.variables):
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


def _selected(binder: Binder) -> list[Instr]:
    """The instructions after those of bound steps, which the binder holds; the last gives the
    results.
    """
    for facts, part in parts_of(binder):
        first = len(binder.instrs)
        for step in part:
            try:
                binder.step(step, bind_step)
            except NotBound as reason:
                last = step.nodes[-1] if isinstance(step, Fused) else step
                raise NotBound(f"{last.op.name}: {reason}") from None
        if facts is not None:
            wrap(binder, facts, part, binder.instrs[first:])
    if not binder.calls:
        raise NotBound("nothing for the kernel library")
    if binder.trains and binder.work < MIN_WORK:
        raise NotBound("too little work")
    rest: list[Instr] = []
    if binder.trains:
        _keep_from_rest(binder)
        rest = list_steps(binder.plan, binder.plan.block[binder.count :], binder.count)
    return [*rest, binder.give_results()]


def _keep_from_rest(binder: Binder) -> None:
    """What was bound is nobody's to overwrite or to give away."""
    lives = binder.lives
    for step in binder.plan.block[: binder.count]:
        for value in outputs_of(step):  # type: ignore[arg-type]
            lives.fresh.discard(value)
            lives.whole.discard(value)
            lives.shared.add(lives.root(value))


def _emitted(
    binder: Binder, rest: list[Instr], stamps: list[int], kept: WriteStage | None
) -> Binding:
    """The function; ``stamps`` are those of the unwritten variables' values."""
    scratch = binder.library.give_scratch(binder.calls)
    keys = tuple(v.key for v in binder.variables[: binder.n_steady])
    instrs = [*binder.instrs, *rest]
    listing = Listing(binder.program, instrs, binder.given, True, keys, len(binder.kept_values))
    checked_listing(listing, "binding it to shapes")
    lowering = BoundLowering(binder)
    lowering.write_bound(binder.instrs)
    rest_line = len(lowering.lines) + 1
    lowering.write_rest(rest)
    renewal = _Renewal(binder, lowering.wanted, scratch, stamps, kept)
    prologue = _prologue(lowering, renewal, kept)
    compiled = lowering.assemble(listing, prologue, binder.n_feeds, lowering.function_name)
    notes = {
        "primitives": len(binder.calls),
        "lines": len(lowering.lines),
        "bytes": binder.arena.nbytes + scratch.nbytes,
    }
    # (the parameters refer to what refers to them: memory goes with the function)
    binder.params = {}
    return Binding(compiled._replace(params={}), renewal, notes, rest_line + len(prologue) + 2)


def _prologue(lowering: BoundLowering, renewal: _Renewal, kept: WriteStage | None) -> list[str]:
    """Variables are loaded, then their stamps compared: a stamp changes before its variable
    does.
    """
    out, variables = lowering.loads(), lowering.program.variables
    if renewal.keys:
        steady = [i for i in sorted(lowering.loaded) if not variables[i].written]
        renewal.loaded = [variables[i] for i in steady]
        left = "".join(f"v{i}, " for i in steady)
        left = f"{left}= " if left else ""
        keys, again = lowering.param("K", renewal.keys), lowering.param("B", renewal)
        out.append(f"  if S.stamps({keys}) != {again}.stamps: {left}{again}(S, V)")
        if kept is not None:
            out.append(f"  else: {lowering.param('counts', kept.counts)}.hits += 1")
    return [*out, *lowering.guards()]


class _Renewal:
    """Brings what depends on unwritten variables up to date, when one of their stamps has changed.

    ``renewal(S, V)`` gives the variables that lines read.
    """

    __slots__ = ("binder", "kept", "kept_alive", "keys", "loaded", "scratch", "stamps", "wanted")

    def __init__(
        self,
        binder: Binder,
        wanted: list[int],
        scratch: object,
        stamps: list[int],
        kept: WriteStage | None,
    ) -> None:
        self.binder, self.scratch, self.stamps, self.kept = binder, scratch, stamps, kept
        self.keys = tuple(v.key for v in binder.variables[: binder.n_steady])
        self.loaded: list[VariableInfo] = []
        self.wanted = wanted  # steady values that lines take
        self.kept_alive: list[Any] = binder.params.get("W", [])
        self.kept_alive[:] = [binder.env[v] for v in wanted]
        self.let_go()

    def __del__(self) -> None:
        self.binder.renewals.clear()  # they refer to it: its memory goes at once

    def __call__(self, state: State, values: dict[str, Any]) -> list[Any]:
        with state.lock:  # no write may come between what is remembered and what is computed
            stamps = state.stamps(self.keys)
            if stamps != self.stamps:
                held = [state.need(v.key, v.op) for v in self.binder.variables]
                kept = () if self.kept is None else self.kept(state, values)
                self._renew(held[: self.binder.n_steady], kept)
                self.stamps = stamps
            return [state.need(v.key, v.op) for v in self.loaded]

    def _renew(self, held: Sequence[Any], kept: Sequence[Any]) -> None:
        s = self.binder
        if [look_of(v) for v in held] != s.variable_shapes:
            raise NotBound("a variable has another shape")
        if [look_of(v) for v in kept] != s.kept_shapes:
            raise NotBound("a kept value has another shape")
        for v, array in zip(s.variables, held):
            s.env[v.start] = s.env[v.current] = array
        s.env.update(zip(s.kept_values, kept))
        for function, step in s.steady:
            s.env.update(zip(outputs_of(step), s.results(function, step)))
        for renew in s.renewals:
            renew()
        self.kept_alive[:] = [s.env[v] for v in self.wanted]
        self.let_go()

    def let_go(self) -> None:
        """Variables, and views of them, are not held between runs."""
        s = self.binder
        for value, lies in s.of_variable.items():
            if lies:
                s.env[value] = None
        for value, kind in s.kinds.items():
            if kind == MOVING:
                s.env[value] = None
