"""Fused groups that end in a reduction, as kernels: the group's result is never stored.

A row is cut into stretches of ``STRETCH`` vectors. The vectors of a stretch are joined lane by
lane, then the stretches, then the lanes by halves: the order depends on the row's length alone. A
reduction over everything makes a partial result for each block of ``BLOCK`` elements (or each row,
if a row or column is broadcast), which the caller joins in a fixed order. So threads change
nothing.

    >>> kernel = reduction_kernel(group, ("full", "full"), "sum", flat=True)
    >>> kernel.run([x, y, partials], [x.size], len(partials), grain)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from headrace.kernels.native.element_loops import Access, lanes_for, load_operands, operands_once
from headrace.kernels.native.group_kernels import Group, interleave, write_members
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel

__all__ = ["BLOCK", "reduction_kernel", "reduction_source"]

#: Elements of a partial result of a reduction over everything.
BLOCK = 8192
#: Registers for a value, at most: their number decides in which order a sum is made.
MAX_INTERLEAVE = 4
#: Vectors that are joined one after the other.
STRETCH = 16

Join = Callable[[Value, Value], Value]


def _joins(f: Function, reduction: str) -> tuple[Join, float]:
    """How two values are joined, and the value that changes nothing."""
    if reduction == "max":
        return f.maximum, -math.inf
    if reduction == "min":
        return f.minimum, math.inf
    return (lambda x, y: x + y), -0.0


def reduction_source(group: Group, extents: Sequence[str], reduction: str, flat: bool) -> str:
    """The module of a kernel ``reduced``.

    Items are rows of ``sizes[0]`` elements; with ``flat`` they are blocks of ``sizes[0]`` elements
    in all. The output has an element for each item.
    """
    f = Function(
        "reduced", [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
    )
    accesses = [Access(e, x) for e, x in zip(group.inputs, extents)]
    operands, sizes, first, end = f.arguments
    pointers = load_operands(f, operands, len(accesses) + 1)
    length = f.load(sizes, "i64")
    with f.loop(first, end) as items:
        start, low, high = f.constant("i64", 0), f.constant("i64", 0), length
        if flat:
            low = items.index * BLOCK
            high = f.minimum(low + BLOCK, length)
        else:
            start = items.index * length
        fixed = operands_once(f, accesses, pointers[:-1], items.index)
        total = _row(f, group, accesses, pointers, fixed, (start, low, high), reduction)
        f.store(total, pointers[-1], items.index)
    return module(f)


def _row(
    f: Function,
    group: Group,
    accesses: Sequence[Access],
    pointers: Sequence[Value],
    fixed: Sequence[Value | None],
    span: tuple[Value, Value, Value],
    reduction: str,
) -> Value:
    """The reduction of elements ``low`` to ``high`` of the row that begins at ``start``."""
    start, low, high = span
    lanes = lanes_for([*group.inputs, *(m.element for m in group.members)])
    wide = lanes * min(MAX_INTERLEAVE, interleave(group))
    join, neutral = _joins(f, reduction)

    def value(index: Value, width: int, mask: Value | None) -> Value:
        inputs = []
        for access, pointer, known in zip(accesses, pointers, fixed):
            at = index if access.extent == "row" else start + index
            inputs.append(
                f.load(pointer, access.element, at, width, mask)
                if known is None
                else f.splat(known, width)
            )
        return f.splat(write_members(f, inputs, group.members)[-1], width)

    rest = high - low
    whole = low + rest - (rest & (wide - 1))
    none = f.constant(group.element, neutral, wide)
    with f.loop(low, whole, wide * STRETCH, [none]) as stretches:
        stop = f.minimum(stretches.index + wide * STRETCH, whole)
        with f.loop(stretches.index, stop, wide, [none]) as vectors:
            vectors.carry(join(vectors.carried[0], value(vectors.index, wide, None)))
        stretches.carry(join(stretches.carried[0], vectors.results[0]))
    few = f.constant(group.element, neutral, lanes)
    with f.loop(whole, high, lanes, [few]) as tail:
        mask = f.lanes_below(high - tail.index, lanes)
        last = f.select(mask, value(tail.index, lanes, mask), few)
        tail.carry(join(tail.carried[0], last))
    return join(f.reduce(stretches.results[0], join), f.reduce(tail.results[0], join))


@functools.lru_cache(1024)
def reduction_kernel(group: Group, extents: tuple[str, ...], reduction: str, flat: bool) -> Kernel:
    """The kernel of a group whose inputs have these extents, and of the reduction after it."""
    return Kernel(reduction_source(group, extents, reduction, flat), "reduced")
