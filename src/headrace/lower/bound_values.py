"""The values of a run that is bound to shapes, with their arrays (see select_bound.py).

A value of stage BUILD or SHAPE is ``known``, one of stage WRITE ``steady``: computed again when
the version stamp of a variable has changed. A value of stage RUN is

- ``fixed``: it lies in memory that was set aside for it, and each run writes it there, or
- ``moving``: an array that may be another one in each run: a variable that the program goes on to
  write, or a large result of a kernel that has no way to write where it is told.

The selection of an implementation asks for arrays (a primitive is chosen by how an array lies), not
for names: a line refers to value 7 as ``$7``, and the emitter (emit.py) puts its name there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import library
from headrace.lower.fusion import Fused
from headrace.lower.listing import Instr, Stage
from headrace.lower.plan import Plan
from headrace.lower.storage_arena import Arena, NotBound
from headrace.program.binding_times import first_stages
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.packed_weights import PackedForms

__all__ = ["FIXED", "KNOWN", "MOVING", "REFERENCE", "STEADY", "BoundValues"]
__all__ += ["is_view", "look_of", "outputs_of"]

KNOWN, STEADY, FIXED, MOVING = "known", "steady", "fixed", "moving"

#: How a line refers to a value.
REFERENCE = re.compile(r"\$(-?\d+)")


class BoundValues:
    """Values, memory, parameters and instructions of a binding under construction."""

    def __init__(self, plan: Plan, count: int, kept: int) -> None:
        self.plan, self.program, self.lives = plan, plan.program, plan.lives
        self.count = count  # so many steps, the first ones, are bound
        self.trains = count < len(plan.block)
        kernels = library()
        if kernels is None:
            raise NotBound("no kernel library")
        self.accelerator, self.library = kernels, kernels.fixed
        self.stages = first_stages(self.program, kept)
        self.position = 0
        self.env: dict[int, Any] = {}
        self.kinds: dict[int, str] = {}  # of values of stage RUN
        # of steady values: whether they lie in a variable's memory
        self.of_variable: dict[int, bool] = {}
        self.arena = Arena(self.library.aligned)
        self.passing: dict[int, list[int]] = {}  # moving results by the step after which they go
        self.params: dict[str, Any] = {}
        self.instrs: list[Instr] = []
        self.code: list[str] = []  # the lines of the instruction that is being made
        self.uses = _uses(plan)

    # instructions -------------------------------------------------------------------------------
    def begin(
        self,
        op: str,
        inputs: tuple[int, ...] = (),
        outputs: tuple[int, ...] = (),
        source: Node | Fused | None = None,
    ) -> Instr:
        """One more instruction: lines belong to it until the next one is begun."""
        made = Instr(op, inputs, outputs, source)
        made.code = self.code = []
        self.instrs.append(made)
        return made

    def emit(self, line: str) -> None:
        """A line of the instruction."""
        self.code.append(line)

    def name(self, value: int) -> str:
        """How a line refers to a value."""
        return f"${value}"

    def param(self, name: str, value: object) -> str:
        self.params[name] = value
        return name

    def new_param(self, value: object) -> str:
        return self.param(f"p{len(self.params)}", value)

    # values -------------------------------------------------------------------------------------
    def kind(self, value: int) -> str:
        """KNOWN, STEADY, FIXED or MOVING."""
        stage = self.stages.get(value, Stage.RUN)
        if stage <= Stage.SHAPE:
            if value not in self.env:
                self.env[value] = self.program.constants[value]
            return KNOWN
        found = STEADY if stage is Stage.WRITE else self.kinds.get(value)
        if found is None:
            raise NotBound(f"value {value} is not there")
        return found

    def array(self, value: int) -> Any:
        """The value as it is now; a fixed one has its place and any contents."""
        self.kind(value)
        return self.env[value]

    def place(self, value: int, array: Array) -> None:
        """A value lies there in every run."""
        self.env[value], self.kinds[value] = array, FIXED

    def is_fixed(self, value: int) -> bool:
        return self.kind(value) == FIXED

    def is_data(self, value: int) -> bool:
        """Fixed, or an array that may be another one in each run."""
        return self.kind(value) in (FIXED, MOVING)

    def results(self, function: Callable[..., Any], step: Node | Fused) -> tuple[Any, ...]:
        """What a step's function gives for its inputs as they are now."""
        found = function(*[self.array(i) for i in step.inputs])
        return found if len(outputs_of(step)) > 1 else (found,)

    # memory -------------------------------------------------------------------------------------
    def reserve(
        self, values: Sequence[int], shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any]
    ) -> Any:
        """Memory that stays until the last use of these values (none: until this step is done)."""
        last = max([self._last_use(v) for v in values], default=self.position)
        return self.arena.reserve(shape, dtype, max(last, self.position))

    def _last_use(self, value: int) -> int:
        return self.lives.group_last.get(self.lives.root(value), self.position)

    def end_of_step(self) -> None:
        """After a step: memory and names that nothing reads any more."""
        self.arena.end_of_step(self.position)
        gone = self.passing.pop(self.position, [])
        if gone:
            self.emit(" = ".join([*map(self.name, gone), "None"]))
        self.position += 1

    def let_move(
        self, step: Node | Fused, function: Callable[..., Any], array: Array, *also: str
    ) -> None:
        """A line that gives a result its name; it is let go after its last use."""
        (value,) = outputs_of(step)
        self.env[value], self.kinds[value] = array, MOVING
        self.emit(f"{self.name(value)} = {self.call_text(step, function, *also)}")
        last = self.lives.last.get(value, self.position)  # (views of it hold it themselves)
        self.passing.setdefault(max(last, self.position), []).append(value)

    def call_text(self, step: Node | Fused, function: Callable[..., Any], *also: str) -> str:
        """A call of a step's function; ``also`` are arguments before the inputs."""
        return f"{self.new_param(function)}({', '.join([*also, *map(self.name, step.inputs)])})"


def look_of(
    value: Array | np.generic | PackedForms,
) -> tuple[tuple[int, ...] | None, np.dtype[Any] | None]:
    """What must stay the same of a value that is made again."""
    return getattr(value, "shape", None), getattr(value, "dtype", None)


def outputs_of(step: Node | Fused) -> tuple[int, ...]:
    return (step.output,) if isinstance(step, Fused) else step.outputs


def is_view(step: Node | Fused) -> bool:
    return isinstance(step, Node) and step.opdef.traits.view


def _uses(plan: Plan) -> dict[int, list[Any]]:
    """The steps that read each value; None stands for the caller."""
    found: dict[int, list[Any]] = {}
    for step in plan.block:
        for i in step.inputs:  # type: ignore[union-attr]
            found.setdefault(i, []).append(step)
    for f in plan.program.fetches:
        if f is not None:
            found.setdefault(f, []).append(None)
    return found
