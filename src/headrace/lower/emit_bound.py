"""A listing that is bound to shapes as one Python function (see bound_runs.py, select_bound.py).

What was known before the run and memory that stays are parameters; an array that may be another
one in each run has a local name. What comes after the first write, and what has an effect, follows
in the same function, named as it is where no shape is known (emit_general.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.lower.bound_values import FIXED, KNOWN, MOVING, outputs_of
from headrace.lower.emit_general import Lowering
from headrace.lower.listing import Instr
from headrace.lower.storage_results import Result

if TYPE_CHECKING:
    from headrace.lower.select_bound import Binder

__all__ = ["BoundLowering"]

_REFERENCE = re.compile(r"\$(-?\d+)")


class BoundLowering(Lowering):
    """From the instructions of a binding to a function."""

    def __init__(self, binder: Binder) -> None:
        super().__init__(binder.plan, None)
        self.binder = binder
        self.params, self.names = binder.params, dict(binder.names)
        self.in_rest = False  # the steps that are bound are written
        self.wanted: list[int] = []  # steady values that lines take
        for v in binder.variables:
            if not v.written:  # checked by the stamps, before anything else
                self.checked[0].update((v.start, v.current))

    def write_bound(self, instrs: Sequence[Instr]) -> None:
        """The steps that are bound: their lines with names for values."""
        for instr in instrs:
            instr.first = len(self.lines)
            for line in instr.code:
                self.emit(_REFERENCE.sub(lambda found: self.name(int(found[1])), line))

    def write_rest(self, instrs: Sequence[Instr]) -> None:
        """What has effects; it reads what was bound as it reads feeds."""
        for value in [v for v in self.names if v in self.program.constants]:
            del self.names[value]
        self.in_rest = True
        self.write(instrs)

    def param(self, name: str, value: Any) -> str:
        self.params[name] = value
        return name

    def new_param(self, value: Any) -> str:
        return self.param(f"p{len(self.params)}", value)

    def name(self, value: int) -> str:
        """How lines call a value."""
        if self._is_general(value):
            return super().name(value)
        found = self.names.get(value)
        if found is None:
            kind = self.binder.kind(value)
            if kind in (KNOWN, FIXED):
                found = self.new_param(self.binder.env[value])
            elif kind == MOVING:
                found = self.temporary()
            else:
                found = self._steady_name(value)
            self.names[value] = found
        return found

    def temporary(self) -> str:
        self.n_temps += 1
        return f"t{self.n_temps - 1}"

    def _is_general(self, value: int) -> bool:
        """Whether a value has the name that it has where no shape is known."""
        if value in self.by_start or value in self.by_current:
            return True
        if self.in_rest:
            return value not in self.binder.env or value in self.program.constants
        return False

    def _steady_name(self, value: int) -> str:
        binder = self.binder
        if not binder.of_variable[value]:
            self.wanted.append(value)
            self.params.setdefault("W", [])
            return f"W[{len(self.wanted) - 1}]"
        # a view of a variable is made in each run: it must not be held in between
        function, step = next((f, s) for f, s in binder.steady if value in outputs_of(s))
        args = ", ".join([self.name(i) for i in step.inputs])  # (these may be lines as well)
        name, outputs = self.temporary(), outputs_of(step)
        call = f"{self.new_param(function)}({args})"
        self.emit(f"{name} = {call}" + (f"[{outputs.index(value)}]" if len(outputs) > 1 else ""))
        return name

    def result(self, result: Result) -> str:
        return result.text if result.value in self.binder.fresh else super().result(result)
