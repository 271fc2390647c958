"""A listing as text that a person can read, an instruction a line, within 100 columns.

    listing of 3 instructions; shapes of the feeds are not known
      run    %5 = MatMul(%0, w)             product       new        dense/MatMul
      run    %6 = Tanh(%5)                  kernel        over %5    dense/Tanh
      run    return %6                      the user's own

The columns: when it runs (listing.Stage), what is computed, by what, where the result lies, and the
user's operation. Below an instruction stands why nothing better was taken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from headrace.lower.listing import IN_PLACE, NEW, Instr, Listing, nodes_of
from headrace.program.text import ValueNames

__all__ = ["instruction_text", "text_of_listing"]

#: A line is at most so wide; so wide are the columns of what is computed and by what.
WIDTH, CALL, BY, WHERE = 98, 42, 15, 10


def text_of_listing(listing: Listing) -> str:
    """The listing, an instruction a line."""
    return "\n".join(_lines(listing))


def _lines(listing: Listing) -> Iterator[str]:
    shapes = "are known: it is bound to them" if listing.bound else "are not known"
    yield f"listing of {len(listing.instrs)} instructions; shapes of the feeds {shapes}"
    names = ValueNames(listing.program)
    for instr in listing.instrs:
        yield instruction_text(instr, names)
        if instr.reason:
            yield from textwrap.wrap(
                instr.reason, WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 9
            )
    if listing.watched:
        yield f"  watches {len(listing.watched)} variable(s): {', '.join(listing.watched)}"[:WIDTH]


def instruction_text(instr: Instr, names: ValueNames) -> str:
    """One instruction in one line."""
    pad = "  " * instr.depth
    call = f"{pad}{_call(instr, names)}"
    user = "" if instr.source is None else nodes_of(instr.source)[-1].op.name
    storage = instr.storage
    where = storage.kind if instr.outputs or storage is not NEW else ""
    if storage.kind == IN_PLACE:
        where = f"over {names.name(storage.of)}"
    line = f"  {instr.stage.name.lower():<5}  {call:<{CALL}} {instr.implementation:<{BY}} {where}"
    line = line if not user else f"{line:<{CALL + BY + WHERE + 11}} {user}"
    return line.rstrip() if len(line) <= WIDTH else line[: WIDTH - 2] + " …"


def _call(instr: Instr, names: ValueNames) -> str:
    kinds = instr.op
    if instr.source is not None and instr.op in ("fused", "grouped"):
        members = [n.opdef.name for n in nodes_of(instr.source)]
        kinds = "+".join(members) if instr.op == "fused" else f"{members[0]} x {len(members)}"
    room = CALL - 2 * instr.depth
    made = ", ".join(map(names.name, instr.outputs[:3])) + (", …" if instr.outputs[3:] else "")
    head = f"{made} = " if made and instr.op != "while" else ""
    args = ", ".join(map(names.name, instr.inputs))
    plain = instr.source is None
    call = f"{head}{kinds} {args}" if plain else f"{head}{kinds}({args})"
    if len(call) <= room:
        return call
    shown = f"{head}{kinds}({len(instr.inputs)} values)"
    return shown if len(shown) <= room else shown[: room - 2] + " …"
