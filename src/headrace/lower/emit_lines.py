"""The emitter: instructions as lines of one Python function, and the local names of its values.

``CodeLines`` is what all parts of code generation share: emit_expressions.py (the right-hand side
of a line), emit_writes.py (updates of variables), emit_general.py (order, branches, loops, results)
and emit_bound.py (runs that are bound to shapes). ``begin`` opens an instruction, ``emit`` adds a
line to it, ``assemble`` makes the function. Plans of the same text share one compiled code object:
kernels, constants, names of variables and writers are parameters of a factory around it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.lower.listing import Instr, Listing
from headrace.lower.listing_verify import checked_listing
from headrace.lower.native_segments import NativeSegment
from headrace.lower.plan import Plan
from headrace.lower.segment_cuts import ShapeFacts
from headrace.lower.session_state import RunContext
from headrace.program.constants import peek
from headrace.program.nodes import Node
from headrace.runtime.interrupts import FILENAME

if TYPE_CHECKING:
    from headrace.lower.listing import Step

__all__ = ["COUNTS", "CodeLines", "Compiled"]

#: Local names, before those of dead values are used again.
MAX_NAMES = 32
#: Parameters; compiling a function that closes over n of them takes n * n.
MANY = 1000

_factories: OrderedDict[str, Callable[..., Any]] = OrderedDict()
_factories_lock = Lock()
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
        self.instrs: list[Instr] = []
        self.instr = Instr("begin", (), (), None, 0, 0)
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
        self.given: list[int] = []  # results that are not copied for the caller
        self.appended: dict[int, str] = {}  # results of appending to a loop variable
        # which block (by its set of checked variables) makes a value
        self.home: dict[int, set[int]] = {}
        self.loaded: set[int] = set()  # variables that are read, not only written
        self.by_start = {v.start: (i, v) for i, v in enumerate(self.program.variables)}
        self.by_current = {v.current: (i, v) for i, v in enumerate(self.program.variables)}
        self.depth = 2
        self.writing = (0, 0)  # the first and the last line that are not interrupted
        self.locked = (0, 0)  # lines and depth after the last update under the lock
        self.free: list[str] = []  # names whose values nobody reads any more
        self.started: frozenset[Any] = frozenset()  # operations that run on threads of their own
        # those that were started, None once their results are taken
        self.joining: dict[str, Node | None] = {}
        self.segments: list[NativeSegment] = []
        self.facts = ShapeFacts(plan.program)
        self.starts_kept: dict[int, bool] = {}  # variables whose old value has a name of its own

    def begin(
        self,
        op: str,
        inputs: tuple[int, ...] = (),
        outputs: tuple[int, ...] = (),
        source: Step | None = None,
    ) -> Instr:
        """Open an instruction: lines belong to it until the next one is opened."""
        made = Instr(op, inputs, outputs, source, len(self.lines), len(self.checked) - 1)
        self.instr = made
        self.instrs.append(made)
        return made

    def emit(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def assemble(
        self,
        prologue: list[str],
        n_feeds: int,
        name: Callable[[int], str],
        bound: bool = False,
        watched: tuple[str, ...] = (),
        kept: int = 0,
    ) -> Compiled:
        """The function of all instructions.

        ``prologue`` are the lines before the first one; ``name(offset)`` gives the function's name,
        ``offset`` being the number of the line before it.
        """
        feeds = "".join(f", f{n}" for n in range(n_feeds))
        params = ", ".join(self.params)
        if len(self.params) > MANY:
            prologue.insert(0, f"  {params} = P")
            params = "*P"
        offset = 2 + len(prologue)
        called = name(offset)
        header = [f"def make(np, RunContext, {params}):", f" def {called}(S, V{feeds}):"]
        lines = [*header, *prologue, *self.lines, f" return {called}", ""]
        make = functools.partial(_factory("\n".join(lines)), np, RunContext)
        run = make(*self.params.values())
        more = self.n_reused, self.given, bound, watched, kept
        listing = Listing(self.program, self.instrs, lines, offset, *more)
        checked_listing(listing, "binding it to shapes" if bound else "lowering it")
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
