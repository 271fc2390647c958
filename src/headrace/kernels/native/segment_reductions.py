"""Reductions of a segment: over rows, columns or everything, of known shapes.

A row is read in vectors of up to four registers, which are joined lane by lane; what is left over
is read in ever shorter vectors. Columns are joined row by row, many at a time. The order of a sum
depends on the shape alone.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.kernels.native.element_loops import lanes_for
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.segment_code import Ref, SegmentCode, largest_power

__all__ = ["join_of", "write_argmax", "write_reduction"]

Join = Callable[[Value, Value], Value]


def join_of(f: Function, kind: str) -> Join:
    """How two values are joined."""
    joins: dict[str, Join] = {
        "max": f.maximum,
        "min": f.minimum,
        "sum": lambda x, y: x + y,
        "prod": lambda x, y: x * y,
        "all": lambda x, y: x & y,
        "any": lambda x, y: x | y,
    }
    return joins[kind]


def write_reduction(
    code: SegmentCode,
    f: Function,
    kind: str,
    source: Ref,
    out: Ref,
    sizes: tuple[int, int, int],
) -> None:
    """``out[o, i] = join(source[o, :, i])``."""
    outer, count, inner = sizes
    pointer, target = code.pointer(f, source), code.pointer(f, out)
    join, element = join_of(f, kind), source.element
    with f.loop(0, outer) as rows:
        if inner == 1:
            start = rows.index * count
            total = _row(f, pointer, element, start, count, join)
            f.store(total, target, rows.index)
        else:
            start = rows.index * (count * inner)
            to = rows.index * inner
            _columns(f, pointer, target, element, start, to, count, inner, join)


def _row(f: Function, pointer: Value, element: str, start: Value, count: int, join: Join) -> Value:
    wide = min(lanes_for([element]) * 4, largest_power(count))
    whole = count - count % wide
    total = f.load(pointer, element, start, wide)
    if whole > wide:
        with f.loop(wide, whole, wide, [total]) as loop:
            loop.carry(join(loop.carried[0], f.load(pointer, element, start + loop.index, wide)))
        total = loop.results[0]
    found = f.reduce(total, join)
    while whole < count:
        width = largest_power(count - whole)
        part = f.load(pointer, element, start + whole, width)
        found = join(found, f.reduce(part, join))
        whole += width
    return found


def _columns(
    f: Function,
    pointer: Value,
    target: Value,
    element: str,
    start: Value,
    to: Value,
    count: int,
    inner: int,
    join: Join,
) -> None:
    wide = lanes_for([element]) * 4

    def piece(at: Value, width: int) -> None:
        first = f.load(pointer, element, start + at, width)
        with f.loop(1, count, 1, [first]) as rows:
            place = start + rows.index * inner + at
            rows.carry(join(rows.carried[0], f.load(pointer, element, place, width)))
        f.store(rows.results[0], target, to + at)

    whole = inner - inner % wide
    if whole:
        with f.loop(0, whole, wide) as pieces:
            piece(pieces.index, wide)
    while whole < inner:
        width = largest_power(inner - whole)
        piece(f.constant("i64", whole), width)
        whole += width


def write_argmax(
    code: SegmentCode, f: Function, source: Ref, out: Ref, sizes: tuple[int, int], smallest: bool
) -> None:
    """The place of the first largest number of each row; the first NaN is the largest."""
    rows_count, count = sizes
    pointer, target = code.pointer(f, source), code.pointer(f, out)
    with f.loop(0, rows_count) as rows:
        start = rows.index * count
        first = f.load(pointer, source.element, start)
        with f.loop(1, count, 1, [first, f.constant("i64", 0)]) as loop:
            best, place = loop.carried
            x = f.load(pointer, source.element, start + loop.index)
            better = x < best if smallest else x > best
            if x.type.is_float:
                better = better | f.is_nan(x)
                better = better & ~f.is_nan(best)
            loop.carry(f.select(better, x, best), f.select(better, loop.index, place))
        f.store(f.convert(loop.results[1], out.element), target, rows.index)
