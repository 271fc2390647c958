"""Optimizer updates whose gradient is a product: the gradient is never stored.

The gradient of a dense layer's weights is ``left.T @ right``, a product over the rows of a batch,
and in most programs an update is all that reads it. Here a thread sums a tile of the gradient in
registers and updates that part of the variable and its slots at once, while they come from memory:
an update costs the time to fetch them at most. Several pairs of matrices are summed one after the
other, as for a layer that is used twice.

A thread takes some rows of the variable, a row of tiles after the other, so that memory is read and
written along its rows. The right matrix is laid out in panels first, so that the columns of a tile
lie one behind the other. Each element is summed along the batch from its first to its last term,
pair by pair: results depend neither on the tiles nor on the number of threads.

    update = find_update(rule, dtype, attrs)
    update_of_products(update, [var, m, v], numbers, [(left, right)], [var, m, v])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.kernels.native.element_loops import lanes_for, load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel
from headrace.runtime.helper_cores import helpers_wait
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.native.update_kernels import Update

__all__ = ["MAX_DEPTH", "panel_width", "update_of_products"]

#: Rows of the batch at most, of all pairs together.
MAX_DEPTH = 2048
#: Numbers of the right matrices that are laid out at a time: they stay in the second cache.
PACKED = 1 << 16
#: Registers of columns in a tile.
REGISTERS = 2
#: Rows of a tile, by the width of registers: of 32 registers and of 16.
TILE_ROWS = {512: 14, 256: 6, 128: 6}
#: Rows of tiles that a thread computes with what it has laid out, at least.
MIN_TILES = 6
#: Multiplications that a thread takes at least.
GRAIN = 1 << 19


class _Form(NamedTuple):
    """What the code depends on beside the rule: pairs of matrices, and what is left of rows and
    columns after whole tiles.
    """

    pairs: int
    last_rows: int
    last_columns: int


def panel_width() -> int:
    return lanes_for(["f32"]) * REGISTERS


def _tile_rows() -> int:
    return TILE_ROWS[lanes_for(["f32"]) * 32]


class _Code:
    """A kernel under construction.

    Operands: left and right of each pair, the variables, the numbers, the variables' new values.
    Sizes: rows, columns, the rows of an item, the columns that are laid out together, then the
    depth of each pair.
    """

    def __init__(self, update: Update, form: _Form) -> None:
        names = [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
        self.f = Function("update_of_products", names)
        self.update, self.form = update, form
        self.lanes, self.width = lanes_for(["f32"]), panel_width()
        self.count = len(update.rule.variables)

    def source(self) -> str:
        f, form = self.f, self.form
        operands, sizes, first, end = f.arguments
        numbers = len(self.update.rule.rest) - 1
        given = load_operands(f, operands, 2 * form.pairs + 2 * self.count + numbers)
        self.pairs = [tuple(given[2 * k : 2 * k + 2]) for k in range(form.pairs)]
        given = given[2 * form.pairs :]
        self.variables, self.made = given[: self.count], given[-self.count :]
        self.numbers = [f.load(p, "f32") for p in given[self.count : -self.count]]
        self.rows, self.columns, share, self.group = (f.load(sizes, "i64", k) for k in range(4))
        self.depths = [f.load(sizes, "i64", 4 + k) for k in range(form.pairs)]
        self.packed = f.local("f32", PACKED)
        self.partial = f.local("f32", _tile_rows() * self.width)
        with f.loop(first, end) as items:
            start = items.index * share
            stop = f.minimum(start + share, self.rows)
            with f.loop(0, self.columns, self.group) as groups:
                left = groups.index
                right = f.minimum(left + self.group, self.columns)
                whole = right - f.binary("rem", right - left, self.width)
                self._pack(left, whole, right)
                tile = _tile_rows()
                last = stop - f.binary("rem", stop - start, tile)
                with f.loop(start, last, tile) as tiles:
                    self._row_of_tiles(tiles.index, tile, left, whole, right)
                if form.last_rows:
                    with f.when(last < stop):
                        self._row_of_tiles(last, form.last_rows, left, whole, right)
        return module(f)

    def _pack(self, left: Value, whole: Value, right: Value) -> None:
        """The columns of the right matrices in panels, the last of which may be narrower."""
        f = self.f
        self.starts = []
        start: Value = f.constant("i64", 0)
        for (_, matrix), depth in zip(self.pairs, self.depths):
            self.starts.append(start)
            with f.loop(0, depth) as rows:
                at = rows.index * self.columns
                with f.loop(left, whole, self.width) as panels:
                    self._pack_row(matrix, at, panels.index, None, (start, left, depth, rows.index))
                if self.form.last_columns:
                    there = self.form.last_columns
                    with f.when(whole < right):
                        self._pack_row(matrix, at, whole, there, (start, left, depth, rows.index))
            start = start + self.group * depth

    def _pack_row(
        self,
        matrix: Value,
        at: Value,
        column: Value,
        there: int | None,
        place: tuple[Value, Value, Value, Value],
    ) -> None:
        f, (start, left, depth, row) = self.f, place
        to = start + (column - left) * depth + row * self.width
        for r in range(self._registers(there)):
            mask = self._mask(there, r)
            found = f.load(matrix, "f32", at + column + r * self.lanes, self.lanes, mask)
            f.store(found, self.packed, to + r * self.lanes)

    def _row_of_tiles(self, row: Value, rows: int, left: Value, whole: Value, right: Value) -> None:
        f = self.f
        with f.loop(left, whole, self.width) as panels:
            self._tile(row, rows, panels.index, left, None)
        if self.form.last_columns:
            with f.when(whole < right):
                self._tile(row, rows, whole, left, self.form.last_columns)

    def _registers(self, there: int | None) -> int:
        return REGISTERS if there is None else -(-there // self.lanes)

    def _mask(self, there: int | None, register: int) -> Value | None:
        """The lanes of a register of columns that are there; None: all."""
        left = self.lanes if there is None else there - register * self.lanes
        if left >= self.lanes:
            return None
        return self.f.lanes_below(self.f.constant("i64", left), self.lanes)

    def _tile(
        self, row: Value, rows: int, column: Value, first_column: Value, there: int | None
    ) -> None:
        f, lanes, registers = self.f, self.lanes, self._registers(there)
        self._fetch(row, rows, column)
        sums = [f.constant("f32", 0.0, lanes)] * (rows * registers)
        for (left, _), depth, start in zip(self.pairs, self.depths, self.starts):
            panel = f.at(self.packed, "f32", start + (column - first_column) * depth)
            with f.loop(0, depth, 1, sums) as loop:
                at = f.at(left, "f32", loop.index * self.rows + row)
                place = loop.index * self.width
                rights = [f.load(panel, "f32", place + c * lanes, lanes) for c in range(registers)]
                found = []
                for r in range(rows):
                    factor = f.splat(f.load(at, "f32", r), lanes)
                    for c in range(registers):
                        total = loop.carried[r * registers + c]
                        found.append(f.fma(factor, rights[c], total))
                loop.carry(*found)
            sums = list(loop.results)
        for n, total in enumerate(sums):
            f.store(total, self.partial, (n // registers) * self.width + n % registers * lanes)
        self._apply(row, rows, column, there)

    def _fetch(self, row: Value, rows: int, column: Value) -> None:
        """What the tile will update is on its way while the tile is summed."""
        f = self.f
        f.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for r in range(rows):
            for pointer in self.variables:
                for start in range(0, self.width * 4, 64):
                    at = f.at(pointer, "f32", (row + r) * self.columns + column + start // 4)
                    f.emit(f"call void @llvm.prefetch.p0({at!r}, i32 1, i32 3, i32 1)")

    def _apply(self, row: Value, rows: int, column: Value, there: int | None) -> None:
        """The update of a tile, row by row."""
        f, lanes = self.f, self.lanes
        numbers = [f.splat(n, lanes) for n in self.numbers]
        with f.loop(0, rows) as loop:
            for c in range(self._registers(there)):
                mask = self._mask(there, c)
                at = (row + loop.index) * self.columns + column + c * lanes
                values = [f.load(p, "f32", at, lanes, mask) for p in self.variables]
                place = loop.index * self.width + c * lanes
                values.append(f.load(self.partial, "f32", place, lanes))
                for pointer, new in zip(self.made, self.update.body(f, [*values, *numbers])):
                    f.store(f.splat(new, lanes), pointer, at, mask)


@functools.lru_cache(maxsize=256)
def _kernel(update: Update, form: _Form) -> Kernel:
    return Kernel(_Code(update, form).source(), "update_of_products")


def update_of_products(
    update: Update,
    variables: Sequence[Array],
    numbers: Sequence[Array],
    pairs: Sequence[tuple[Array, Array]],
    made: Sequence[Any],
) -> None:
    """Write the variables' new values into ``made``, which may be the variables themselves.

    The gradient is the sum of ``left.T @ right``. All are contiguous matrices of float32.
    """
    rows, columns = variables[0].shape
    tile, wide = _tile_rows(), panel_width()
    kernel = _kernel(update, _Form(len(pairs), rows % tile, columns % wide))
    depths = [len(left) for left, _ in pairs]
    together = max(wide, min(PACKED // (sum(depths) * wide), -(-columns // wide)) * wide)
    threads, tiles = thread_count(), -(-rows // tile)
    items = max(1, min(2 * threads, tiles // MIN_TILES))
    share = -(-tiles // items) * tile
    items = -(-rows // share)
    given = [*(m for pair in pairs for m in pair), *variables, *numbers, *made]
    operands = kernel.operands(given)
    sizes = kernel.sizes([rows, columns, share, together, *depths])
    threads = min(threads, items, sum(depths) * rows * columns // GRAIN)
    if threads < 2 or helpers_wait():
        kernel.call(operands, sizes, 0, items)
    else:
        kernel.share(operands, sizes, items, 1, threads)
