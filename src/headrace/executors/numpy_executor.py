"""The default executor: a plan becomes one generated Python function over NumPy (see codegen)."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from headrace.executors.base import Executable, Options
from headrace.executors.codegen import compile_plan
from headrace.plan.fusion import Fused
from headrace.plan.plan import Plan

__all__ = ["make_numpy"]


def make_numpy(plan: Plan, options: Options) -> Executable:
    compiled = compile_plan(plan)

    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        """The operation that raised, and its inputs, from the line of the generated code."""
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
        return node.op, inputs

    details = {"source": compiled.source, "reused buffers": compiled.n_reused}
    return Executable(compiled.run, plan, options, locate, details)


