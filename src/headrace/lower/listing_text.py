"""A listing as text that a person can read, an instruction a line, within 100 columns.

    listing of 3 instructions; shapes of the feeds are not known
      run    %5 = MatMul(%0, w)             product       new        dense/MatMul
      run    %6 = Tanh(%5)                  kernel        over %5    dense/Tanh
      run    return %6                      the user's own

The columns: when it runs (listing.Stage), what is computed, by what, where the result lies, and the
end of the name of the user's operation. Below an instruction stands why nothing better was taken.
Where runs were measured, the time of an instruction and its share come first.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from headrace.lower.listing import IN_PLACE, NEW, Instr, Listing, nodes_of
from headrace.program.text import ValueNames

__all__ = ["instruction_text", "seconds_text", "shortened", "text_of_listing"]

#: A line is at most so wide; so wide are the columns of what is computed and by what.
WIDTH, CALL, BY, WHERE = 98, 42, 15, 10
#: The column of times, and of what is computed beside it.
TIME, CALL_BESIDE = 18, 34

#: Seconds by the identity of a step, and those of the whole run.
Times = tuple[Mapping[int, float], float]


def text_of_listing(listing: Listing, times: Times | None = None) -> str:
    """The listing, an instruction a line."""
    return "\n".join(_lines(listing, times))


def seconds_text(seconds: float) -> str:
    """A time in four digits or fewer and its unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _lines(listing: Listing, times: Times | None) -> Iterator[str]:
    shapes = "are known: it is bound to them" if listing.bound else "are not known"
    yield f"listing of {len(listing.instrs)} instructions; shapes of the feeds {shapes}"
    names, told = ValueNames(listing.program), set()
    for instr in listing.instrs:
        time = None
        if times is not None:
            time = ""
            key = id(instr.source)
            if key in times[0] and key not in told and instr.op != "segment":
                told.add(key)
                share = 100 * times[0][key] / times[1] if times[1] else 0.0
                time = f"{seconds_text(times[0][key]):>9} {share:5.1f} %"
        yield instruction_text(instr, names, time)
        if instr.reason:
            yield from textwrap.wrap(
                instr.reason, WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 9
            )
    if listing.watched:
        yield f"  watches {len(listing.watched)} variable(s): {', '.join(listing.watched)}"[:WIDTH]


def instruction_text(instr: Instr, names: ValueNames, time: str | None = None) -> str:
    """One instruction in one line; ``time`` is what stands in the column of times, if there is
    one.
    """
    room = CALL if time is None else CALL_BESIDE
    pad = "  " * instr.depth
    call = f"{pad}{_call(instr, names, room - 2 * instr.depth)}"
    user = "" if instr.source is None else nodes_of(instr.source)[-1].op.name
    storage = instr.storage
    where = storage.kind if instr.outputs or storage is not NEW else ""
    if storage.kind == IN_PLACE:
        where = f"over {names.name(storage.of)}"
    stage = instr.stage.name.lower()
    first = f"  {stage:<5}  " if time is None else f"  {stage:<5} {time:<{TIME}} "
    line = f"{first}{call:<{room}} {instr.implementation:<{BY}} {where}"
    if user:
        line = f"{line:<{len(first) + room + BY + WHERE + 2}} "
        if len(line) < WIDTH:
            line += shortened(user, WIDTH - len(line))
    return line.rstrip() if len(line) <= WIDTH else line[: WIDTH - 2] + " …"


def shortened(name: str, room: int) -> str:
    """A name in so many columns: its end, which says more than its scopes."""
    return name if len(name) <= room else f"…{name[len(name) - max(0, room - 1) :]}"


def _call(instr: Instr, names: ValueNames, room: int) -> str:
    kinds = instr.op
    if instr.source is not None and instr.op in ("fused", "grouped"):
        members = [n.opdef.name for n in nodes_of(instr.source)]
        kinds = "+".join(members) if instr.op == "fused" else f"{members[0]} x {len(members)}"
    made = ", ".join(map(names.name, instr.outputs[:3])) + (", …" if instr.outputs[3:] else "")
    head = f"{made} = " if made and instr.op != "while" else ""
    args = ", ".join(map(names.name, instr.inputs))
    plain = instr.source is None
    call = f"{head}{kinds} {args}" if plain else f"{head}{kinds}({args})"
    if len(call) <= room:
        return call
    shown = f"{head}{kinds}({len(instr.inputs)} values)"
    return shown if len(shown) <= room else shown[: room - 2] + " …"
