"""The emitter: instructions as lines of one Python function, and the local names of its values.

``CodeLines`` is what all parts of code generation share: emit_expressions.py (arguments and kernel
calls), emit_writes.py (updates of variables), emit_general.py (steps, branches, loops, results)
and emit_bound.py (runs that are bound to shapes). ``emit`` adds a line, ``assemble`` makes the
function. Plans of the same text share one compiled code object: kernels, constants, names of
variables and writers are parameters of a factory around it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from headrace.lower.listing import Listing
from headrace.lower.listing_verify import checked_listing
from headrace.lower.native_segments import NativeSegment
from headrace.lower.plan import Plan
from headrace.lower.session_state import RunContext
from headrace.program.constants import peek
from headrace.program.nodes import Node
from headrace.runtime.fork_locks import held_at_fork
from headrace.runtime.interrupts import FILENAME

__all__ = ["COUNTS", "CodeLines", "Compiled"]

#: Local names, before those of dead values are used again.
MAX_NAMES = 32
#: Parameters; compiling a function that closes over n of them takes n * n.
MAX_PARAMETERS = 1000

_factories: OrderedDict[str, Callable[..., Any]] = OrderedDict()
_factories_lock = held_at_fork(Lock())
_MAX_FACTORIES = 1024
#: How often a text was compiled, and how often it was there.
COUNTS = {"compiled": 0, "shared": 0}


class Compiled(NamedTuple):
    """The function and what is needed to explain it."""

    run: Callable[..., Any]
    listing: Listing
    names: dict[int, str]  # value -> local name
    make: Callable[..., Callable[..., Any]]  # the factory without its fixed arguments
    params: dict[str, Any]
    constant_params: dict[str, int]  # parameter -> the constant value that it holds
    segments: list[NativeSegment]


def _factory(source: str) -> Callable[..., Any]:
    found = _factories.get(source)
    if found is not None:
        COUNTS["shared"] += 1
        return found
    COUNTS["compiled"] += 1
    namespace: dict[str, Any] = {}
    exec(compile(source, FILENAME, "exec"), namespace)
    made: Callable[..., Any] = namespace["make"]
    with _factories_lock:
        _factories[source] = made
        while len(_factories) > _MAX_FACTORIES:
            _factories.popitem(last=False)
    return made


class CodeLines:
    """Lines, names and parameters of one generated function."""

    def __init__(self, plan: Plan, kept: Callable[..., Any] | None) -> None:
        self.plan = plan
        self.kept = kept
        self.program = plan.program
        self.lives = plan.lives
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.params: dict[str, Any] = {}
        self.constant_params: dict[str, int] = {}
        self.kernels: dict[Any, str] = {}
        self.numbers: dict[int, str] = {}  # constants of rank 0 that stand beside arrays
        self.n_temps = 0
        self.uses_rt = False
        self.checked: list[set[int]] = [set()]
        self.opened: list[int] = []  # the first lines of open branches and loops
        self.in_segment = ""  # the name of the result of the segment whose steps are written
        self.appended: dict[int, str] = {}  # results of appending to a loop variable
        self.outer: set[int] = set()  # values that the outermost block makes
        self.loaded: set[int] = set()  # variables that are read, not only written
        self.by_start = {v.start: (i, v) for i, v in enumerate(self.program.variables)}
        self.by_current = {v.current: (i, v) for i, v in enumerate(self.program.variables)}
        self.depth = 2
        self.writing = (0, 0)  # the first and the last line that are not interrupted
        self.locked = (0, 0)  # lines and depth after the last update under the lock
        self.free: list[str] = []  # names whose values nobody reads any more
        # operations that were started on threads of their own, by the names of what is waited for
        self.joining: dict[str, Node] = {}
        self.segments: list[NativeSegment] = []

    def emit(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def assemble(
        self, listing: Listing, prologue: list[str], n_feeds: int, name: Callable[[int], str]
    ) -> Compiled:
        """The function of a listing whose instructions were written.

        ``prologue`` are the lines before the first one; ``name(offset)`` gives the function's name,
        ``offset`` being the number of the line before it.
        """
        feeds = "".join(f", f{n}" for n in range(n_feeds))
        params = ", ".join(self.params)
        if len(self.params) > MAX_PARAMETERS:
            prologue.insert(0, f"  {params} = P")
            params = "*P"
        offset = 2 + len(prologue)
        called = name(offset)
        header = [f"def make(np, RunContext, {params}):", f" def {called}(S, V{feeds}):"]
        lines = [*header, *prologue, *self.lines, f" return {called}", ""]
        make = functools.partial(_factory("\n".join(lines)), np, RunContext)
        run = make(*self.params.values())
        listing.lines, listing.offset = lines, offset
        checked_listing(listing, "emitting it")
        return Compiled(
            run, listing, self.names, make, self.params, self.constant_params, self.segments
        )

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
        name = f"s{i}" if is_start and i in self.plan.starts else f"v{i}"
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
        if len(self.checked) == 1:
            self.outer.add(value)
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
