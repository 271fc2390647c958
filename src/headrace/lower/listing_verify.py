"""Whether a listing keeps its rules; ``HEADRACE_DEBUG=verify`` checks every one, as the tests do.

Nothing here is taken from the passes that are checked: who shares memory with whom follows from
the storage of the instructions alone.

- A value is made before it is read, and in no later stage than what reads it.
- What is overwritten in place is an input of the instruction, is memory of the run's own (no feed,
  constant, variable or loop variable), and nothing that shares its memory is read afterwards; in a
  loop, it was made in that loop.
- What is given to the caller without a copy is the run's own, and is given once.
- A listing that keeps what was made of variables (stage WRITE) watches the stamps of all of them.
- Lines belong to one instruction, in their order.
"""

from __future__ import annotations

from itertools import pairwise

from headrace.lower.listing import (
    CALLERS,
    IN_PLACE,
    MEMORY,
    VARIABLE,
    VIEW,
    Instr,
    Listing,
    Stage,
)
from headrace.program.nodes import Node
from headrace.program.verify import Malformed

__all__ = ["verify_listing"]


def verify_listing(listing: Listing, after: str = "") -> None:
    """Raise Malformed if a rule is broken; ``after`` names what made the listing."""
    problems = _Check(listing).run()
    if problems:
        from headrace.lower.listing_text import text_of_listing

        shown = "\n".join(f"  {p}" for p in problems[:20])
        where = f" after {after}" if after else ""
        raise Malformed(f"The listing is malformed{where}:\n{shown}\n\n{text_of_listing(listing)}")


def _is_of_shape(instr: Instr) -> bool:
    """Whether values of any stage may be read, since their shapes alone matter."""
    return isinstance(instr.source, Node) and instr.source.opdef.traits.of_shape


def _shared_inputs(instr: Instr) -> list[int]:
    """The inputs whose memory a view may share; not a shape or an axis."""
    if not isinstance(instr.source, Node):
        return [*instr.inputs]
    beside = instr.source.opdef.traits.known_inputs
    return [i for n, i in enumerate(instr.inputs) if n not in beside]


class _Check:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.problems: list[str] = []
        self.made: dict[int, int] = {}  # value -> number of the instruction that makes it
        self.stage: dict[int, Stage] = {}
        self.last: dict[int, int] = {}  # value -> the last instruction that reads it
        self.parent: dict[int, int] = {}  # values that share memory
        self.members: dict[int, list[int]] = {}
        self.foreign: set[int] = set()  # values whose memory is not the run's own
        self.loops: list[tuple[int, int]] = []  # first and last instruction of each loop
        self.depends: dict[int, frozenset[str]] = {}  # variables behind a value of stage WRITE

    def run(self) -> list[str]:
        self._start()
        self._find_loops()
        self._find_last_reads()
        instrs, firsts = self.listing.instrs, self.listing.written.firsts
        if any(b < a for a, b in pairwise(firsts)) or len(firsts) not in (0, len(instrs)):
            self.problems.append("lines are not in the order of their instructions")
        for n, instr in enumerate(instrs):
            self._reads(n, instr)
            if instr.storage.kind == IN_PLACE:
                self._overwrites(n, instr)
            self._makes(n, instr)
        self._gives()
        return self.problems

    def _says(self, n: int, text: str) -> None:
        self.problems.append(f"instruction {n} ({self.listing.instrs[n].op}) {text}")

    def _start(self) -> None:
        p = self.listing.program
        for v in (*p.feeds, *p.constants):
            self.made[v] = -1
        self.foreign.update(p.feeds, p.constants)
        self.stage.update(dict.fromkeys(p.feeds, Stage.RUN))
        self.stage.update(dict.fromkeys(p.constants, Stage.BUILD))
        for variable in p.variables:
            for v in (variable.start, variable.current):
                self.made[v] = -1
                self.foreign.add(v)
                # (what a general run reads of a variable, it reads in every run)
                kept = self.listing.bound is not None and not variable.written
                self.stage[v] = Stage.WRITE if kept else Stage.RUN
                self.depends[v] = frozenset([variable.key])
        if self.listing.kept:
            self.stage.update(dict.fromkeys(p.feeds[-self.listing.kept :], Stage.WRITE))

    def _find_loops(self) -> None:
        instrs = self.listing.instrs
        open_loops: list[tuple[int, int]] = []  # (number, depth)
        for n, instr in enumerate(instrs):
            if instr.op == "while":
                open_loops.append((n, instr.depth))
            elif instr.op == "next" and open_loops:
                self.loops.append((open_loops.pop()[0], n))
        if open_loops:
            self._says(open_loops[-1][0], "is a loop without an end")

    def _reads(self, n: int, instr: Instr) -> None:
        for v in instr.inputs:
            if v not in self.made:
                self._says(n, f"reads %{v}, which is not made yet")
            elif self.stage[v] > instr.stage and not _is_of_shape(instr):
                what = f"{self.stage[v].name}, and is of stage {instr.stage.name} itself"
                self._says(n, f"reads %{v} of the later stage {what}")

    def _find_last_reads(self) -> None:
        made: dict[int, int] = {}
        for n, instr in enumerate(self.listing.instrs):
            inside = [loop for loop in self.loops if loop[0] < n <= loop[1]]
            for v in instr.inputs:
                self.last[v] = n
                for first, last in inside:  # a value from before a loop is read until its end
                    if made.get(v, -1) <= first:
                        self.last[v] = max(self.last[v], last)
            made.update(dict.fromkeys(instr.outputs, n))

    def _makes(self, n: int, instr: Instr) -> None:
        behind: frozenset[str] = frozenset()
        if instr.stage is Stage.WRITE:
            behind = behind.union(*[self.depends.get(v, frozenset()) for v in instr.inputs])
            missing = behind.difference(self.listing.watched)
            if missing:
                self._says(n, f"keeps what was made of {sorted(missing)}, which is not watched")
        for v in instr.outputs:
            self.made[v] = n
            self.stage[v] = instr.stage
            self.depends[v] = behind
            if instr.storage in (VIEW, VARIABLE):
                for i in _shared_inputs(instr):
                    self._join(i, v)
            elif instr.storage.kind == IN_PLACE:
                self._join(instr.storage.of, v)
            elif instr.storage is MEMORY:
                self.foreign.add(v)
            if instr.op == "while":
                self.foreign.add(v)

    def _root(self, v: int) -> int:
        while self.parent.get(v, v) != v:
            v = self.parent[v]
        return v

    def _join(self, a: int, b: int) -> None:
        into, gone = self._root(a), self._root(b)
        if into != gone:
            both = self.members.setdefault(into, [into])
            both += self.members.pop(gone, [gone])
            self.parent[gone] = into

    def _sharing(self, v: int) -> list[int]:
        """The values that may share memory with one, so far."""
        root = self._root(v)
        return self.members.get(root, [root])

    def _overwrites(self, n: int, instr: Instr) -> None:
        of = instr.storage.of
        if of not in instr.inputs:
            self._says(n, f"overwrites %{of}, which it does not read")
            return
        for v in self._sharing(of):
            if v in self.foreign:
                self._says(n, f"overwrites %{of}, which shares memory with %{v}: not its own")
            elif self.last.get(v, -1) > n:
                where = self.last[v]
                self._says(n, f"overwrites %{of}; instruction {where} reads %{v} in it afterwards")

    def _gives(self) -> None:
        """What the caller gets without a copy."""
        if self.listing.program.borrowed:
            return
        given = [v for v in self.listing.given if v in self.made]
        for v in given:
            group = self._sharing(v)
            if any(u in self.foreign for u in group):
                self.problems.append(f"the caller is given %{v}, which is not the run's own")
            if sum(u in group for u in given) > 1:
                self.problems.append(f"the caller is given the memory of %{v} twice")
        for n, instr in enumerate(self.listing.instrs):
            if instr.storage is CALLERS and instr.source is not None:
                for v in instr.outputs:
                    if v not in self.listing.given:
                        self._says(n, f"makes %{v} for the caller, who is not given it")
