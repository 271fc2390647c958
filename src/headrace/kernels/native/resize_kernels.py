"""Bilinear and bicubic resizing in one pass over the output (kernels/numpy/resample.py has the
arithmetic, the positions and the weights; the bits are the same).

Items are rows of the output, of all images. For each there are the offsets of the rows of the input
that it is mixed from, and their weights; likewise for each column. Up to four channels are written
out in the loop over columns.

    bilinear(x, rows, columns, out)      # rows, columns: offsets and weights, see ``Axis``
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.kernels.native.element_loops import GRAIN, load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE, Value
from headrace.kernels.native.kernel import Kernel

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Axis", "resize", "takes"]

#: Element types of images.
_ELEMENTS = frozenset(["u8", "i8", "u16", "i16", "i32", "f32", "f64"])
#: Channels that are written out.
_WRITTEN_OUT = 4


class Axis(NamedTuple):
    """For each output position, the input positions (as offsets of elements) and their weights.

    Bilinear: (n, 2) offsets, (n,) weights of the upper ones. Bicubic: (n, 4) of both.
    """

    offsets: Array  # int64
    weights: Array  # float32


def takes(dtype: Any) -> bool:
    """Whether images of this type have native code."""
    return ELEMENT_OF_DTYPE.get(dtype.name) in _ELEMENTS


def resize(x: Array, rows: Axis, columns: Axis, channels: int, out: Array) -> None:
    """``x`` and ``out`` are contiguous, ``out`` is float32; ``rows`` are those of all images."""
    taps = 2 if columns.weights.ndim == 1 else 4
    kernel = _kernel(taps, ELEMENT_OF_DTYPE[x.dtype.name], min(channels, _WRITTEN_OUT + 1))
    width = len(columns.weights)
    arrays = [x, rows.offsets, rows.weights, columns.offsets, columns.weights, out]
    work = width * channels * taps // 2
    kernel.run(arrays, [width, channels], len(rows.weights), max(1, 2 * GRAIN // work))


@functools.cache
def _kernel(taps: int, element: str, channels: int) -> Kernel:
    return Kernel(_source(taps, element, channels), "resize")


def _source(taps: int, element: str, channels: int) -> str:
    names = [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
    f = Function("resize", names)
    operands, sizes, first, end = f.arguments
    x, row_offsets, row_weights, offsets, weights, out = load_operands(f, operands, 6)
    width, depth = f.load(sizes, "i64", 0), f.load(sizes, "i64", 1)
    n_weights = 1 if taps == 2 else 4
    with f.loop(first, end) as row:
        starts = [f.load(row_offsets, "i64", row.index * taps + k) for k in range(taps)]
        down = [f.load(row_weights, "f32", row.index * n_weights + k) for k in range(n_weights)]
        with f.loop(0, width) as column:
            at = [f.load(offsets, "i64", column.index * taps + k) for k in range(taps)]
            across = [
                f.load(weights, "f32", column.index * n_weights + k) for k in range(n_weights)
            ]
            target = (row.index * width + column.index) * depth

            def pixel(channel: Value | int) -> None:
                found = [
                    [f.convert(f.load(x, element, r + c + channel), "f32") for c in at]
                    for r in starts
                ]
                mix = _bilinear if taps == 2 else _bicubic
                f.store(mix(found, down, across), out, target + channel)

            if channels <= _WRITTEN_OUT:
                for channel in range(channels):
                    pixel(channel)
            else:
                with f.loop(0, depth) as each:
                    pixel(each.index)
    return module(f)


def _bilinear(found: list[list[Value]], down: list[Value], across: list[Value]) -> Value:
    """Columns first, then rows."""
    (a, b), (c, d) = found
    top, bottom = (b - a) * across[0] + a, (d - c) * across[0] + c
    return (bottom - top) * down[0] + top


def _bicubic(found: list[list[Value]], down: list[Value], across: list[Value]) -> Value:
    """Rows first, then columns."""
    mixed = [_weighted([row[c] for row in found], down) for c in range(4)]
    return _weighted(mixed, across)


def _weighted(values: list[Value], weights: list[Value]) -> Value:
    total = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:]):
        total = total + value * weight
    return total
