"""Listing: what a plan does, as a flat list of instructions. It is what runs and what is printed.

An instruction says what is computed (``op``, ``inputs``, ``outputs``), when (``stage``), where the
result lies (``storage``), by what (``implementation``), why not by something better (``reason``)
and for which operations of the user's (``source``). The passes make it, with all objects that its
lines call (select_steps.py, storage_reuse.py, select_calls.py; where shapes are known
select_bound.py, storage_arena.py); the emitter (emit.py) changes nothing in it: it names the values
and writes lines of Python, which ``Listing.lines_of`` gives.

Branches and loops are instructions, too: what stands between ``if`` and its end is one level
deeper (``depth``).

    listing = executable.details.listing
    print(text_of_listing(listing))          # listing_text.py
    verify_listing(listing)                  # listing_verify.py
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from headrace.program.binding_times import Stage
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.lower.fusion import Fused
    from headrace.lower.select_updates import Grouped

    Step = Union[Node, Fused, Grouped]

__all__ = [
    "CALLERS",
    "IN_PLACE",
    "MEMORY",
    "MOVING",
    "NEW",
    "VARIABLE",
    "VIEW",
    "After",
    "Bound",
    "Instr",
    "Listing",
    "Stage",
    "Storage",
    "Written",
    "nodes_of",
]


class Storage(NamedTuple):
    """Where a result lies; ``of`` is the input whose memory it shares, if it is one."""

    kind: str
    of: int = -1


NEW = Storage("new")  # an array of its own
VIEW = Storage("view")  # memory of its inputs, read in another way
VARIABLE = Storage("variable")  # the session's
MEMORY = Storage("memory")  # set aside when the plan was bound to shapes; every run writes it there
MOVING = Storage("moving")  # in a bound run: an array that may be another one each time
CALLERS = Storage("caller's")  # a result, written where the caller gets it
#: The kind of a storage whose ``of`` is overwritten.
IN_PLACE = "in place"


class After(enum.IntEnum):
    """What becomes of a value that nothing reads any more."""

    NAME = 0  # its name may be used again: it is small
    CLEAR = 1  # it is let go at once
    POOL = 2  # its memory goes to the pool of buffers (runtime/buffers.py)


class Instr:
    """One instruction.

    ``text`` is how it is written: an expression over its inputs, ``{0}``, ``{1}``, …, in which
    ``{call}`` is ``function``; ``params`` are the other objects that the text names.
    """

    # (what is not said is not stored: a plan has thousands)
    stage = Stage.RUN
    storage = NEW
    implementation = "kernel"
    reason = ""
    text = ""
    params: tuple[tuple[str, Any], ...] = ()
    #: A kernel, a fused group, a writer, a segment.
    function: Callable[..., Any] | None = None
    wants_rt = False  # the text names ``rt``, the run's context
    #: What ``{0}``, ``{1}``, … are, if not the inputs.
    arguments: tuple[int, ...] | None = None
    #: Constant inputs that are arrays of rank 0 there, not numbers.
    arrays: tuple[int, ...] = ()
    #: Variables may have no value yet: the text takes what there is.
    takes_unset = False
    #: In a bound run, its lines; ``$7`` stands for the name of value 7.
    code: Sequence[str] = ()
    #: What follows from the implementation: a segment, the names of guards, how results are given.
    detail: Any = None
    #: Values that nothing reads any more.
    ends: tuple[tuple[int, After], ...] = ()
    takes_over = False  # an assignment: the variable takes over the memory of what it is given

    def __init__(
        self,
        op: str,
        inputs: tuple[int, ...] = (),
        outputs: tuple[int, ...] = (),
        source: Step | None = None,
        depth: int = 0,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.source = source
        self.depth = depth


class Bound(NamedTuple):
    """What a run that is bound to shapes has beside its instructions."""

    steps: int  # so many instructions, the first, are bound
    params: Mapping[str, Any]  # the objects that their lines name
    objects: Mapping[int, Any]  # values that are objects: known ones, and memory that stays
    steady: Sequence[int]  # values made again when a variable was written, as W[0], W[1], …
    #: Variables (their places in the program) whose memory is read where it lies, so that a run
    #: has to refer to them: a write overwrites only what nobody refers to.
    held: Sequence[int]
    renewal: Any  # does that (lower/renewal.py)


class Written(NamedTuple):
    """The lines of a function, and how many of them come before those of each instruction."""

    lines: Sequence[str]
    firsts: Sequence[int]


class Listing:
    """The instructions of one generated function, in their order.

    ``given`` are results that are not copied for the caller, ``watched`` the variables whose
    version stamps a run compares before it uses what was made of them (instructions of stage
    WRITE); ``bound`` says what is different where the shapes of the feeds are known, ``kept`` how
    many feeds, the last ones, are values kept between runs, which ``keeper`` gives, and ``starts``
    which variables have a name of its own for their old value. ``written`` is what the emitter
    makes of it.
    """

    __slots__ = (
        "_steps",
        "bound",
        "given",
        "instrs",
        "keeper",
        "kept",
        "program",
        "starts",
        "watched",
        "written",
    )

    def __init__(
        self, program: Program, instrs: list[Instr], given: Sequence[int] = (), kept: int = 0
    ) -> None:
        self.program = program
        self.instrs = instrs
        self.given = given
        self.kept = kept
        self.keeper: Any = None
        self.starts: frozenset[int] = frozenset()
        self.bound: Bound | None = None
        self.watched: tuple[str, ...] = ()
        self.written = Written((), ())
        self._steps: dict[int, Step] | None = None

    @property
    def lines(self) -> Sequence[str]:
        return self.written.lines

    @property
    def n_reused(self) -> int:
        """How many instructions write into memory that is no longer needed."""
        return sum(i.storage.kind == IN_PLACE for i in self.instrs)

    @property
    def steps(self) -> Mapping[int, Step]:
        """The step that each line belongs to."""
        found = self._steps
        if found is None:
            found = self._steps = {}
            for n, instr in enumerate(self.instrs):
                if instr.source is not None:
                    found.update(dict.fromkeys(self.lines_of(n), instr.source))
        return found

    def lines_of(self, n: int) -> range:
        """The numbers of an instruction's lines, as tracebacks count them."""
        lines, firsts = self.written
        end = firsts[n + 1] if n + 1 < len(firsts) else len(lines) - 2
        return range(firsts[n] + 1, end + 1)

    def detached(self) -> Listing:
        """The same without constants and graph, for code that outlives them."""
        program = self.program._replace(body=(), constants={})
        made = Listing(program, self.instrs, self.given, self.kept)
        made.written = self.written
        return made


def nodes_of(step: Step) -> tuple[Node, ...]:
    """The nodes that a step computes."""
    return (step,) if isinstance(step, Node) else step.nodes
