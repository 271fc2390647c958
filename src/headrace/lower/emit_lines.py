"""Lines, local names and parameters of one generated function.

``emit`` adds a line, ``name`` gives a value its local name, ``param`` an object its own, and
``assemble`` makes the function. Plans of the same text share one compiled code object: kernels,
constants, names of variables and writers are parameters of a factory around it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from headrace import env
from headrace.lower.listing import Listing, Written
from headrace.lower.session_state import RunContext
from headrace.program.constants import peek
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
    """Lines, names and parameters of the function of a listing."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.program = listing.program
        bound = listing.bound
        self.lines: list[str] = []
        self.firsts: list[int] = []  # how many lines come before each instruction's
        self.names = {feed: f"f{n}" for n, feed in enumerate(self.program.feeds)}
        self.objects = {} if bound is None else bound.objects
        self.object_names: dict[int, str] = {}
        self.params: dict[str, Any] = {} if bound is None else dict(bound.params)
        self.constant_params: dict[str, int] = {}
        self.functions: dict[int, str] = {}  # the names of functions, by their identities
        self.numbers: dict[int, str] = {}  # constants of rank 0 that stand beside arrays
        self.n_temps = 0
        self.checked: list[set[int]] = [set()]  # variables that have a value, by level
        self.ready: dict[int, str] = {}  # names of those that were read and have one everywhere
        self.outer: set[int] = set()  # values that the outermost block makes
        self.free: list[str] = []  # names whose values nothing reads any more
        self.loaded: set[int] = set()  # variables that are read, not only written
        variables = self.program.variables
        self.variables = {v.current: (i, v) for i, v in enumerate(variables)}
        self.variables.update((v.start, (i, v)) for i, v in enumerate(variables))
        self.depth = 2
        if bound is not None:
            for feed in self.program.feeds:
                if feed in self.objects:
                    del self.names[feed]
            self.names.update((v, f"W[{n}]") for n, v in enumerate(bound.steady))
            for v in variables:
                if v.key in listing.watched:  # checked by the stamps, before anything else
                    self.checked[0].update((v.start, v.current))

    def emit(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def assemble(self, prologue: list[str], name: Callable[[int], str]) -> Compiled:
        """The function, once the instructions are written.

        ``prologue`` are the lines before the first one; ``name(offset)`` gives the function's name,
        ``offset`` being the number of the line before it.
        """
        listing = self.listing
        feeds = "".join(f", f{n}" for n in range(len(self.program.feeds) - listing.kept))
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
        listing.written = Written(lines, [n + offset for n in self.firsts])
        if env.verifies():
            from headrace.lower.listing_verify import verify_listing

            verify_listing(listing, "emitting it")
        return Compiled(run, listing, self.names, make, self.params, self.constant_params)

    # parameters ---------------------------------------------------------------------------------
    def param(self, name: str, value: object) -> str:
        assert self.params.setdefault(name, value) is value, f"two parameters are called {name}"
        return name

    def new_param(self, letter: str, value: object) -> str:
        return self.param(f"{letter}{len(self.params)}", value)

    def function(self, function: Any) -> str:
        """The name of what an instruction calls."""
        name = self.functions.get(id(function))
        if name is None:
            name = self.functions[id(function)] = self.new_param("k", function)
        return name

    def number(self, value: int) -> str:
        """A constant number as an array of rank 0."""
        name = self.numbers.get(value)
        if name is None:
            array = np.asarray(peek(self.program.constants, value))
            name = self.numbers[value] = self.new_param("z", array)
            self.constant_params[name] = value
        return name

    # values -------------------------------------------------------------------------------------
    def name(self, value: int) -> str:
        """The local name of a value.

        Variables are checked to be initialised where they are first used.
        """
        if value in self.variables:
            return self.ready.get(value) or self.variable(value)
        found = self.names.get(value)
        if found is not None:
            return found
        array = peek(self.program.constants, value)
        if array is not None:
            is_number = array.ndim == 0 and array.dtype.kind != "O"
            found = self.names[value] = self.new_param("c", array[()] if is_number else array)
            self.constant_params[found] = value
            return found
        assert value in self.objects, f"value {value} is used before it is made"
        return self.reference(value)

    def reference(self, value: int) -> str:
        """What stands for ``$7`` in the lines of a bound step: its objects, else its name."""
        found = self.object_names.get(value)
        if found is not None:
            return found
        if value not in self.objects:
            return self.name(value)
        name = self.object_names[value] = self.new_param("p", self.objects[value])
        return name

    def variable(self, value: int, check: bool = True) -> str:
        i, info = self.variables[value]
        name = f"s{i}" if value == info.start and i in self.listing.starts else f"v{i}"
        self.names[value] = name
        self.loaded.add(i)
        if check and not any(value in scope for scope in self.checked):
            self.checked[-1].add(value)
            key, op = self.param(f"q{i}", info.key), self.param(f"o{i}", info.op)
            self.emit(f"if {name} is None: {name} = S.need({key}, {op})")
        if value in self.checked[0]:
            self.ready[value] = name
        return name

    def new(self, value: int) -> str:
        """A name; outside of branches and loops, after the first few, one whose value nothing reads
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
        if value not in self.variables:
            return self.name(value)
        name = self.variable(value, check=False)
        i, info = self.variables[value]
        op = self.param(f"o{i}", info.op)
        return f"({name} if {name} is not None else S.need({self.param_key(value)}, {op}))"

    def unset(self, value: int) -> str:
        """What there is of a variable: its value or None."""
        name = self.variable(value, check=False)
        return f"(S.raw({self.param_key(value)}) if {name} is None else {name})"

    def param_key(self, value: int) -> str:
        i, info = self.variables[value]
        return self.param(f"q{i}", info.key)
