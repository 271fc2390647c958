"""The default executor: a plan becomes one generated Python function over NumPy (see codegen)."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from headrace.core.tensor import Operation
from headrace.executors.base import Executable, Options
from headrace.executors.codegen import Compiled, compile_plan
from headrace.plan.fusion import Fused
from headrace.plan.plan import Plan

__all__ = ["make_locator", "make_numpy"]

Locator = Callable[[BaseException], tuple[Any, list[Any]] | None]


def make_numpy(plan: Plan, options: Options) -> Executable:
    compiled = compile_plan(plan)
    details = {"source": compiled.source, "reused buffers": compiled.n_reused}
    return Executable(compiled.run, plan, options, make_locator(compiled, plan, lambda op: op), details)


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
        step = compiled.lines.get(found.tb_lineno)
        if step is None:
            return None
        env = found.tb_frame.f_locals
        node = step.nodes[-1] if isinstance(step, Fused) else step
        inputs = []
        for i in step.inputs:
            name = compiled.names.get(i, "")
            inputs.append(env.get(name, plan.program.constants.get(i)))
        return to_user(node.op), inputs

    return locate
