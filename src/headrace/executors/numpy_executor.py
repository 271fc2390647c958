"""The default executor: a plan becomes one generated Python function over NumPy
(lower/emit.py).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from types import CodeType, TracebackType
from typing import Any

from headrace import env
from headrace.core.tensor import Operation
from headrace.lower.bound_runs import BoundRuns, runs_for
from headrace.lower.emit import emit
from headrace.lower.emit_lines import Compiled
from headrace.lower.executable import Details, Executable, Options, Run
from headrace.lower.fused_code import FUSED_FILENAME
from headrace.lower.fusion import Fused
from headrace.lower.listing import Listing
from headrace.lower.passes import make_listing
from headrace.lower.plan import Plan
from headrace.lower.write_stage import WriteStage
from headrace.program.nodes import Node
from headrace.runtime.fork_locks import held_at_fork

__all__ = ["GeneralRun", "make_locator", "make_numpy"]

_writing = held_at_fork(RLock())

Locator = Callable[[BaseException], tuple[Any, list[Any]] | None]


class GeneralRun:
    """The function of a plan whose feeds may have any shapes.

    A plan whose runs are bound to shapes at first sight may never need it: it is written when it
    is called or looked at.
    """

    __slots__ = ("_made", "kept", "plan")

    def __init__(self, plan: Plan, kept: WriteStage | None) -> None:
        self.plan, self.kept = plan, kept
        self._made: Compiled | None = None

    @property
    def compiled(self) -> Compiled:
        made = self._made
        if made is None:
            with _writing:
                made = self._made
                if made is None:
                    made = self._made = emit(make_listing(self.plan, self.kept))
        return made

    def __call__(self, state: Any, values: Any, /, *feeds: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.compiled.run(state, values, *feeds)
        return found

    def listing(self) -> Listing:
        return self.compiled.listing

    def codes(self) -> list[tuple[CodeType, Listing]]:
        return [(self.compiled.run.__code__, self.compiled.listing)]

    def locate(self, error: BaseException) -> tuple[Any, list[Any]] | None:
        if self._made is None:
            return None  # nothing of it ran
        return make_locator(self.compiled, self.plan, lambda op: op)(error)


def make_numpy(plan: Plan, options: Options, part: Executable | None = None) -> Executable:
    """``part`` computes what is kept between runs: the last ``plan.kept`` feeds."""
    kept = None if part is None else WriteStage(part)
    general = GeneralRun(plan, kept)
    details = Details(general, part)
    locate = general.locate if part is None else _first_of(part.locate, general.locate)
    bound: BoundRuns | str = "rewriting or fusion is off"
    if options.rewrites and options.fusion:
        bound = runs_for(plan, general, kept)
    if isinstance(bound, BoundRuns) and not bound.trains and not env.verifies():
        locate = _first_of(locate, _bound_locator(bound))
        return Executable(bound, plan, options, locate, details)
    run: Run = general.compiled.run
    if isinstance(bound, BoundRuns):
        bound.general = run
        run, locate = bound, _first_of(locate, _bound_locator(bound))
    else:
        details.unbound = bound
    return Executable(run, plan, options, locate, details)


def _bound_locator(runs: BoundRuns) -> Locator:
    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        every = [make_locator(c, runs.plan, lambda op: op) for c in runs.compiled()]
        return _first_of(*every)(error)

    return locate


def _first_of(*locators: Locator) -> Locator:
    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        for locator in locators:
            found = locator(error)
            if found is not None:
                return found
        return None

    return locate


def make_locator(
    compiled: Compiled, plan: Plan, to_user: Callable[[Operation], Operation]
) -> Locator:
    """Finds the operation that raised, and its inputs, from the line of the generated code."""

    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        traceback: TracebackType | None = error.__traceback__
        found = None
        while traceback is not None:
            if traceback.tb_frame.f_code is compiled.run.__code__:
                found = traceback
            traceback = traceback.tb_next
        if found is None:
            return None
        env = found.tb_frame.f_locals
        step = compiled.listing.steps.get(found.tb_lineno)
        if step is None:
            op = (
                _missing_fetch(compiled, plan, env)
                if isinstance(error, UnboundLocalError)
                else None
            )
            return None if op is None else (to_user(op), [])
        if isinstance(step, Fused):
            node, inputs = _failed_member(step, found)
            return to_user(node.op), inputs
        inputs = []
        for i in step.inputs:
            name = compiled.names.get(i, "")
            inputs.append(env.get(name, plan.program.constants.get(i)))
        return to_user(step.op), inputs

    return locate


def _missing_fetch(compiled: Compiled, plan: Plan, env: dict[str, Any]) -> Operation | None:
    """The fetched operation whose branch was not taken."""
    for value in plan.program.fetches:
        tensor = None if value is None else plan.program.values[value].tensor
        name = None if value is None else compiled.names.get(value)
        if tensor is not None and name is not None and name[0] == "t" and name not in env:
            return tensor._op
    return None


def _failed_member(step: Fused, traceback: TracebackType) -> tuple[Node, list[Any]]:
    """Which node of a fused step raised: each is one line of the step's own code
    (lower/fused_code.py).
    """
    found: TracebackType | None = traceback
    inner = None
    while found is not None:
        if found.tb_frame.f_code.co_filename == FUSED_FILENAME:
            inner = found
        found = found.tb_next
    if inner is None:
        return step.nodes[-1], []
    line = inner.tb_lineno - inner.tb_frame.f_code.co_firstlineno - 1
    node = step.nodes[min(line, len(step.nodes) - 1)]
    names = {value: f"x{k}" for k, value in enumerate(step.inputs)}
    names.update({made.outputs[0]: f"t{k}" for k, made in enumerate(step.nodes)})
    env = inner.tb_frame.f_locals
    return node, [env.get(names[i], env.get("out")) for i in node.inputs]
