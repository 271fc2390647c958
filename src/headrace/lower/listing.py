"""Listing: what a plan does, as a flat list of instructions. It is what runs and what is printed.

An instruction says what is computed (``op``, ``inputs``, ``outputs``), when (``stage``), where the
result lies (``storage``), by what (``implementation``), why not by something better (``reason``)
and for which operations of the user's (``source``). The emitter (emit_lines.py) writes its lines of
Python; ``Listing.lines_of`` gives them.

Branches and loops are instructions, too: what stands between ``if`` and its end is one level
deeper (``depth``).

    listing = executable.details.listing
    print(text_of_listing(listing))          # listing_text.py
    verify_listing(listing)                  # listing_verify.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

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
    "Instr",
    "Listing",
    "Stage",
    "Storage",
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


class Instr:
    """One instruction; ``first`` is the number of its first line, counted from the first line of
    all instructions.
    """

    # (what is not said is not stored: a plan has thousands)
    stage = Stage.RUN
    storage = NEW
    implementation = "kernel"
    reason = ""

    def __init__(
        self,
        op: str,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        source: Step | None,
        first: int,
        depth: int,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.source = source
        self.first = first
        self.depth = depth


class Listing:
    """The instructions of one generated function, in their order.

    ``lines`` are the lines of the whole function; ``offset`` is how many of them come before those
    of the first instruction. ``watched`` are the variables whose version stamps a run compares
    before it uses what was made of them (instructions of stage WRITE), ``bound`` says
    whether the shapes of the feeds are known.
    """

    __slots__ = (
        "_steps",
        "bound",
        "given",
        "instrs",
        "kept",
        "lines",
        "n_reused",
        "offset",
        "program",
        "watched",
    )

    def __init__(
        self,
        program: Program,
        instrs: list[Instr],
        lines: Sequence[str],
        offset: int,
        n_reused: int = 0,
        given: Sequence[int] = (),
        bound: bool = False,
        watched: tuple[str, ...] = (),
        kept: int = 0,
    ) -> None:
        self.program = program
        self.instrs = instrs
        self.lines = lines
        self.offset = offset
        self.n_reused = n_reused  # instructions that write into memory that is no longer needed
        self.given = given  # results that are not copied for the caller
        self.bound = bound
        self.watched = watched
        self.kept = kept  # so many feeds, the last ones, are values kept between runs
        self._steps: dict[int, Step] | None = None

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
        following = self.instrs[n + 1 : n + 2]
        end = following[0].first + self.offset if following else len(self.lines) - 2
        return range(self.instrs[n].first + self.offset + 1, end + 1)

    def detached(self) -> Listing:
        """The same without constants and graph, for code that outlives them."""
        program = self.program._replace(body=(), constants={})
        more = self.n_reused, self.given, self.bound, self.watched, self.kept
        return Listing(program, self.instrs, self.lines, self.offset, *more)


def nodes_of(step: Step) -> tuple[Node, ...]:
    """The nodes that a step computes."""
    return (step,) if isinstance(step, Node) else step.nodes
