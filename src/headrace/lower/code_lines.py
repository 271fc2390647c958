"""The lines of a function under construction, and the local names of its values.

``CodeLines`` is what the parts of code generation share: code_expressions.py (the right-hand side
of a line), code_writes.py (updates of variables) and codegen.py (order, branches, loops, results).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.lower.fusion import Fused
from headrace.lower.native_segments import NativeSegment
from headrace.lower.plan import Plan
from headrace.lower.segment_cuts import ShapeFacts
from headrace.lower.update_groups import Grouped
from headrace.program.constants import peek
from headrace.program.nodes import Node

__all__ = ["CodeLines"]

#: Local names, before those of dead values are used again.
MAX_NAMES = 32


class CodeLines:
    """Lines, names and parameters of one generated function."""

    def __init__(self, plan: Plan, kept: Callable[..., Any] | None) -> None:
        self.plan = plan
        self.kept = kept
        self.program = plan.program
        self.lives = plan.lives
        self.lines: list[str] = []
        self.steps: dict[int, Node | Fused | Grouped] = {}
        self.names: dict[int, str] = {}
        self.params: dict[str, Any] = {}
        self.constant_params: dict[str, int] = {}
        self.kernels: dict[Any, str] = {}
        self.numbers: dict[int, str] = {}  # constants of rank 0 that stand beside arrays
        self.position = 0
        self.n_temps = 0
        self.n_reused = 0
        self.n_guards = 0
        self.uses_rt = False
        self.checked: list[set[int]] = [set()]
        self.growing: dict[int, str] = {}  # results of appending to a loop variable
        # which block (by its set of checked variables) makes a value
        self.home: dict[int, set[int]] = {}
        self.loaded: set[int] = set()  # variables that are read, not only written
        self.by_start = {v.start: (i, v) for i, v in enumerate(self.program.variables)}
        self.by_current = {v.current: (i, v) for i, v in enumerate(self.program.variables)}
        self.depth = 2
        self.locked = (0, 0)  # lines and depth after the last update under the lock
        self.free: list[str] = []  # names whose values nobody reads any more
        self.started: frozenset[Any] = frozenset()  # operations that run on threads of their own
        # those that were started, None once their results are taken
        self.joining: dict[str, Node | None] = {}
        self.segments: list[NativeSegment] = []
        self.facts = ShapeFacts(plan.program)
        self.starts_kept: dict[int, bool] = {}  # variables whose old value has a name of its own

    def emit(self, text: str, step: Node | Fused | Grouped | None = None) -> None:
        self.lines.append(" " * self.depth + text)
        if step is not None:
            self.steps[len(self.lines)] = step

    def param(self, name: str, value: Any) -> str:
        assert self.params.setdefault(name, value) is value, f"two parameters are called {name}"
        return name

    def name(self, value: int) -> str:
        """The local name of a value.

        Variables are checked to be initialised where they are first used.
        """
        found = self.names.get(value)
        if value in self.by_start or value in self.by_current:
            return self.variable(value)
        if found is not None:
            return found
        array = peek(self.program.constants, value)
        if array is not None:
            name = f"c{len(self.params)}"
            self.names[value] = name
            self.constant_params[name] = value
            return self.param(
                name, array[()] if array.ndim == 0 and array.dtype.kind != "O" else array
            )
        raise AssertionError(f"value {value} is used before it is made")

    def variable(self, value: int, check: bool = True) -> str:
        is_start = value in self.by_start
        i, info = self.by_start[value] if is_start else self.by_current[value]
        name = f"s{i}" if is_start and self.starts_kept.get(i) else f"v{i}"
        self.names[value] = name
        self.loaded.add(i)
        if check and not any(value in scope for scope in self.checked):
            self.checked[-1].add(value)
            key, op = self.param(f"q{i}", info.key), self.param(f"o{i}", info.op)
            self.emit(f"if {name} is None: {name} = S.need({key}, {op})")
        return name

    def new(self, value: int) -> str:
        """A name; outside of branches and loops, after the first few, one whose value nobody reads
        any more.
        """
        if self.free and self.n_temps >= MAX_NAMES and len(self.checked) == 1:
            name = self.free.pop()
        else:
            name = f"t{self.n_temps}"
            self.n_temps += 1
        self.names[value] = name
        self.home[value] = self.checked[-1]
        return name

    def name_lazily(self, value: int) -> str:
        """A variable is checked only if its branch is the one that is taken."""
        if value not in self.by_start and value not in self.by_current:
            return self.name(value)
        name = self.variable(value, check=False)
        i, info = self.by_start.get(value) or self.by_current[value]
        op = self.param(f"o{i}", info.op)
        return f"({name} if {name} is not None else S.need({self.param_key(value)}, {op}))"

    def param_key(self, value: int) -> str:
        i, info = self.by_start.get(value) or self.by_current[value]
        return self.param(f"q{i}", info.key)
