"""Listing: what a plan does, as a flat list of instructions. It is what runs and what is printed.

An instruction says what is computed (``op``, ``inputs``, ``outputs``), when (``stage``), where the
result lies (``storage``), by what (``implementation``), why not by something better (``reason``)
and for which operations of the user's (``source``). The emitter (code_lines.py) writes its lines of
Python; ``first`` and ``end`` are the numbers of those lines.

Branches and loops are instructions, too: what stands between ``if`` and its end is one level
deeper (``depth``).

    listing = executable.details.listing
    print(text_of_listing(listing))          # listing_text.py
    verify_listing(listing)                  # listing_verify.py
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.lower.fusion import Fused
    from headrace.lower.update_groups import Grouped

    Step = Union[Node, Fused, Grouped]

__all__ = [
    "CALLERS",
    "IN_PLACE",
    "MEMORY",
    "MOVING",
    "NEW",
    "NONE",
    "VARIABLE",
    "VIEW",
    "Instr",
    "Listing",
    "Stage",
    "Storage",
    "nodes_of",
]


class Stage(enum.IntEnum):
    """When a value is known. A later stage may read an earlier one, never the reverse."""

    BUILD = 0  # when the plan is made: constants
    SHAPE = 1  # when the shapes of the feeds are known
    WRITE = 2  # when a variable was written: packed weights, folded norms
    RUN = 3  # in every run


class Storage(NamedTuple):
    """Where a result lies; ``of`` is the input whose memory it shares, if it is one."""

    kind: str
    of: int = -1


NONE = Storage("none")  # there is no result, or nobody reads it
NEW = Storage("new")  # an array of its own
VIEW = Storage("view")  # memory of its inputs, read in another way
VARIABLE = Storage("variable")  # the session's
MEMORY = Storage("memory")  # set aside when the plan was bound to shapes; every run writes it there
MOVING = Storage("moving")  # in a bound run: an array that may be another one each time
CALLERS = Storage("caller's")  # a result, written where the caller gets it
#: The kind of a storage whose ``of`` is overwritten.
IN_PLACE = "in place"


class Instr:
    """One instruction."""

    __slots__ = (
        "depth",
        "end",
        "first",
        "implementation",
        "inputs",
        "op",
        "outputs",
        "reason",
        "source",
        "stage",
        "storage",
    )

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
        self.end = first
        self.depth = depth
        self.stage = Stage.RUN
        self.storage = NEW if outputs else NONE
        self.implementation = "kernel"
        self.reason = ""


class Listing:
    """The instructions of one generated function, in their order.

    ``lines`` are the lines of the whole function, numbered from 1 as tracebacks do. ``watched``
    are the variables whose version stamps a run compares before it uses what was made of them
    (instructions of stage WRITE), ``bound`` says whether the shapes of the feeds are known.
    """

    __slots__ = (
        "_steps",
        "bound",
        "given",
        "instrs",
        "kept",
        "lines",
        "n_reused",
        "program",
        "watched",
    )

    def __init__(
        self,
        program: Program,
        instrs: list[Instr],
        lines: Sequence[str],
        n_reused: int = 0,
        given: Sequence[int] = (),
        bound: bool = False,
        watched: tuple[str, ...] = (),
        kept: int = 0,
    ) -> None:
        self.program = program
        self.instrs = instrs
        self.lines = lines
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
            for instr in self.instrs:
                if instr.source is not None:
                    found.update(dict.fromkeys(range(instr.first, instr.end), instr.source))
        return found

    def detached(self) -> Listing:
        """The same without constants and graph, for code that outlives them."""
        program = self.program._replace(body=(), constants={})
        more = self.n_reused, self.given, self.bound, self.watched, self.kept
        return Listing(program, self.instrs, self.lines, *more)


def nodes_of(step: Step) -> tuple[Node, ...]:
    """The nodes that a step computes."""
    return (step,) if isinstance(step, Node) else step.nodes
