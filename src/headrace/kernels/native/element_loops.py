"""Loops over the elements of arrays, from a function that says what happens to one element.

``element_loop`` writes a kernel (kernel.py) that loads vectors of all inputs, calls ``body`` with
them and stores what it returns. An operand is

- ``full``: an array of all elements,
- ``scalar``: one element for all of them,
- ``row``: a vector that is the same for every row (a bias),
- ``column``: a number for each row.

With ``full`` and ``scalar`` operands alone the items are elements, and ``sizes`` is not read. With
a ``row`` or ``column`` the items are rows, and ``sizes[0]`` is their length. An output may be the
same array as an input of the same index: an update in place.

    def momentum(f, values):
        var, accumulated, gradient, rate, factor = values
        accumulated = accumulated * factor + gradient
        return var - rate * accumulated, accumulated

    array, number = Access("f32"), Access("f32", "scalar")
    source = element_loop(
        "momentum", [array, array, array, number, number], [array, array], momentum
    )
    Kernel(source, "momentum").run([v, a, g, rate, factor, v, a], [], v.size, GRAIN)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Operand, Type, Value
from headrace.kernels.native.llvm_library import load

__all__ = ["GRAIN", "Access", "Body", "element_loop", "lanes_for", "load_operands"]
__all__ += ["operands_once"]

#: Elements that a thread takes at least: less is done before a second thread has woken up.
GRAIN = 16 * 1024
#: Registers that hold one value of the main loop, so that several chains are under way at once.
INTERLEAVE = 2


class Access(NamedTuple):
    """An operand's element type, and how its elements belong to those of the result."""

    element: str
    extent: str = "full"  # "full", "scalar", "row", "column"


Body = Callable[[Function, list[Value]], Sequence[Value]]


def lanes_for(elements: Sequence[str], vector_bits: int | None = None) -> int:
    """Lanes of a vector of the widest of some element types in one register."""
    bits = load().vector_bits if vector_bits is None else vector_bits
    widest = max((Type(e).bits for e in elements), default=32)
    return bits // max(16, widest)


def element_loop(
    name: str,
    inputs: Sequence[Access],
    outputs: Sequence[Access],
    body: Body,
    interleave: int = INTERLEAVE,
    lanes: int | None = None,
) -> str:
    """The module of a kernel ``name``; see above. ``lanes``: of one register, by default the CPU's
    for the widest element type.
    """
    f = Function(name, [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")])
    accesses = [*inputs, *outputs]
    lanes = lanes_for([a.element for a in accesses]) if lanes is None else lanes
    operands, sizes, first, end = f.arguments
    pointers = load_operands(f, operands, len(accesses))
    if any(a.extent in ("row", "column") for a in accesses):
        columns = f.load(sizes, "i64")
        with f.loop(first, end) as rows:
            start = rows.index * columns
            fixed = operands_once(f, accesses, pointers, rows.index)
            _span(f, inputs, outputs, pointers, fixed, body, (start, 0, columns), lanes, interleave)
    else:
        fixed = operands_once(f, accesses, pointers, None)
        span = (f.constant("i64", 0), first, end)
        _span(f, inputs, outputs, pointers, fixed, body, span, lanes, interleave)
    return module(f)


def load_operands(f: Function, operands: Value, count: int) -> list[Value]:
    """The pointers that a kernel was given."""
    return [f.load(operands, "ptr", k) for k in range(count)]


def operands_once(
    f: Function, accesses: Sequence[Access], pointers: Sequence[Value], row: Value | None
) -> list[Value | None]:
    """Scalars, and the row's element of columns."""
    found: list[Value | None] = []
    for access, pointer in zip(accesses, pointers):
        if access.extent == "scalar":
            found.append(f.load(pointer, access.element))
        elif access.extent == "column":
            assert row is not None
            found.append(f.load(pointer, access.element, row))
        else:
            found.append(None)
    return found


def _span(
    f: Function,
    inputs: Sequence[Access],
    outputs: Sequence[Access],
    pointers: Sequence[Value],
    fixed: Sequence[Value | None],
    body: Body,
    span: tuple[Value, Operand, Operand],
    lanes: int,
    interleave: int,
) -> None:
    """Elements ``low`` to ``high`` of a row that begins at ``start``.

    Wide vectors first, then single registers, the last one with a mask.
    """
    start, low, high = span
    low = low if isinstance(low, Value) else f.constant("i64", low)
    high = high if isinstance(high, Value) else f.constant("i64", high)

    def step(index: Value, width: int, mask: Value | None) -> None:
        values = []
        for access, pointer, known in zip(inputs, pointers, fixed):
            if known is not None:
                values.append(f.splat(known, width))
                continue
            at = index if access.extent == "row" else start + index
            values.append(f.load(pointer, access.element, at, width, mask))
        made = body(f, values)
        for access, pointer, value in zip(outputs, pointers[len(inputs) :], made):
            at = index if access.extent == "row" else start + index
            assert value.type.element == access.element, (value, access)
            f.store(f.splat(value, width), pointer, at, mask)

    wide = lanes * interleave
    rest = high - low
    whole = low + rest - (rest & (wide - 1))
    with f.loop(low, whole, wide) as main:
        step(main.index, wide, None)
    with f.loop(whole, high, lanes) as tail:
        step(tail.index, lanes, f.lanes_below(high - tail.index, lanes))
