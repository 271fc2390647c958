"""Small matrix products of a segment.

Tiles of six rows and two registers of columns (or twelve rows and one) are summed over the common
axis with fused multiplications, columns outside, so that a panel of the right matrix stays in the
cache. A right matrix that is turned is laid out anew first. Products of millions of multiplications
belong to a library (lower/segment_rules.py).
"""

from __future__ import annotations

from headrace.kernels.native.element_loops import lanes_for
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.segment_code import Ref, SegmentCode, largest_power

__all__ = ["multiply"]

#: Sums of a tile: as many registers as fit beside its inputs, of 16.
SUMS = 12


def multiply(
    code: SegmentCode, a: Ref, b: Ref, turn_a: bool, turn_b: bool, into: Ref | None = None
) -> Ref:
    """``a @ b`` of matrices, either of them turned first."""
    a, b = code.contiguous(a), code.contiguous(b)
    if turn_b:
        laid = code.scratch(b.element, b.shape[::-1])
        code.copy(Ref(b.buffer, b.shape[::-1], b.offset, (1, b.shape[1])), laid)
        b = laid
    depth, rows = a.shape if turn_a else a.shape[::-1]
    columns = b.shape[1]
    out = code.scratch(a.element, (rows, columns)) if into is None else into
    row_step, depth_step = (1, rows) if turn_a else (depth, 1)

    def write(code: SegmentCode, f: Function) -> None:
        pointers = [code.pointer(f, r) for r in (a, b, out)]
        _Product(f, pointers, a.element, (rows, depth, columns), row_step, depth_step).write()

    code.unit([a, b], [out], write)
    return out


class _Product:
    def __init__(
        self,
        f: Function,
        pointers: list[Value],
        element: str,
        sizes: tuple[int, int, int],
        row_step: int,
        depth_step: int,
    ) -> None:
        self.f, self.pointers, self.element = f, pointers, element
        self.rows, self.depth, self.columns = sizes
        self.row_step, self.depth_step = row_step, depth_step

    def write(self) -> None:
        f, wide = self.f, lanes_for([self.element]) * 2
        whole = self.columns - self.columns % wide
        if whole:
            with f.loop(0, whole, wide) as panels:
                self._panel(panels.index, wide)
        if whole == self.columns:
            return
        rest = self.columns - whole
        width = largest_power(rest)
        if width != rest and 2 * width <= self.columns:
            # one wider tile that overlaps the one before it
            self._panel(f.constant("i64", self.columns - 2 * width), 2 * width)
            return
        self._panel(f.constant("i64", whole), width)
        if width != rest:
            self._panel(f.constant("i64", self.columns - width), width)

    def _panel(self, column: Value, width: int) -> None:
        """All rows of some columns."""
        f = self.f
        registers = -(-width // lanes_for([self.element]))
        rows = min(SUMS // registers, self.rows)
        whole = self.rows - self.rows % rows
        with f.loop(0, whole, rows) as tiles:
            self._tile(tiles.index, column, rows, width)
        if whole < self.rows:
            self._tile(f.constant("i64", whole), column, self.rows - whole, width)

    def _tile(self, row: Value, column: Value, rows: int, width: int) -> None:
        f, element = self.f, self.element
        a, b, out = self.pointers
        zero = f.constant(element, 0.0, width)
        starts = [(row + r) * self.row_step for r in range(rows)]
        with f.loop(0, self.depth, 1, [zero] * rows) as loop:
            at = loop.index * self.columns + column
            right = f.load(b, element, at, width)
            along = loop.index * self.depth_step
            sums = []
            for start, total in zip(starts, loop.carried):
                left = f.splat(f.load(a, element, start + along), width)
                sums.append(f.fma(left, right, total))
            loop.carry(*sums)
        for r, total in enumerate(loop.results):
            f.store(total, out, (row + r) * self.columns + column)
