"""All steps of an LSTM layer in training, and their gradient.

A row of a step needs the same row of the step before, and no other. So a thread takes some rows
through all steps: the rows' product with the state's weights, then the cell (cell_kernels.py), with
no other thread to wait for. The products with the inputs, which need no earlier step, are large and
a library's.

    outputs…, last, states, gates, tanhs = layer(inputs…, h, c, kernel, bias, N=20, …)
    dinputs…, dh, dc, dkernel, dbias = layer_grad(…)

The weights are laid out in panels, so that the columns of a tile lie one behind the other. Each sum
runs along the common axis from its first to its last term: results depend neither on the number of
threads nor on the tiles. Answers are None for what is NumPy's: other types, no rows, inference, and
weights that do not stay in a core's cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.native.cell_kernels import cell_gradients, cell_values
from headrace.kernels.native.element_loops import lanes_for, load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.numpy.gemm import column_sums, matmul, matmul_bias
from headrace.runtime.helper_cores import helpers_wait
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Steps", "in_panels", "layer", "layer_grad", "stays_in_cache"]

#: Registers of columns in a tile, and rows of the tiles, largest first: of 16 registers and of 32.
REGISTERS = 2
TILE_ROWS = {256: (6, 4, 2, 1), 512: (8, 4, 2, 1)}
#: Panels of a tile of one row, which would wait for its own sums otherwise.
PANELS_OF_ONE_ROW = 4
#: Bytes of the state's weights that stay in a core's cache from step to step.
MAX_WEIGHTS = 3 << 19
#: Multiplications of all steps that a thread takes at least.
GRAIN = 1 << 20

Gates = Callable[[Function, Sequence[Value]], Sequence[Value]]


# code ---------------------------------------------------------------------------------------------


class _Panels:
    """The product of some rows with weights in panels: ``out[row] (+)= a[row] @ weights``."""

    def __init__(self, f: Function, weights: Value, depth: Value, columns: Value) -> None:
        self.f, self.weights, self.depth, self.columns = f, weights, depth, columns
        self.width = panel_width()

    def multiply(self, a: Value, out: Value, first: Value, end: Value, add: bool) -> None:
        f, wide = self.f, self.width
        whole = self.columns - (self.columns & (wide - 1))
        several = wide * PANELS_OF_ONE_ROW
        alone = f.compare("eq", end - first, 1)
        done = f.select(alone, whole - (whole & (several - 1)), f.constant("i64", 0))
        with f.loop(0, done, several) as groups:
            panel = f.at(self.weights, "f32", groups.index * self.depth)
            self._tile(panel, a, out, first, 1, add, groups.index, None, PANELS_OF_ONE_ROW)
        with f.loop(done, whole, wide) as panels:
            self._panel(a, out, first, end, add, panels.index, None)
        with f.when(whole < self.columns):
            mask = f.lanes_below(self.columns - whole, wide)
            self._panel(a, out, first, end, add, whole, mask)

    def _panel(
        self,
        a: Value,
        out: Value,
        first: Value,
        end: Value,
        add: bool,
        column: Value,
        mask: Value | None,
    ) -> None:
        """All rows of some columns, in tiles of several rows as long as there are enough."""
        f, start = self.f, first
        panel = f.at(self.weights, "f32", column * self.depth)
        for rows in TILE_ROWS.get(lanes_for(["f32"]) * 32, (6, 4, 2, 1)):
            stop = end - (f.binary("rem", end - start, rows))
            with f.loop(start, stop, rows) as tiles:
                self._tile(panel, a, out, tiles.index, rows, add, column, mask)
            start = stop

    def _tile(
        self,
        panel: Value,
        a: Value,
        out: Value,
        row: Value,
        rows: int,
        add: bool,
        column: Value,
        mask: Value | None,
        panels: int = 1,
    ) -> None:
        """Some rows by the columns of some panels, each sum in a register of its own."""
        f, wide = self.f, self.width
        parts = [(r, p) for p in range(panels) for r in range(rows)]
        targets = [(row + r) * self.columns + (column + p * wide) for r, p in parts]
        zero = f.constant("f32", 0.0, wide)
        sums = [f.load(out, "f32", at, wide, mask) if add else zero for at in targets]
        starts = [f.at(a, "f32", (row + r) * self.depth) for r in range(rows)]
        sides = [f.at(panel, "f32", self.depth * (p * wide)) for p in range(panels)]
        with f.loop(0, self.depth, 1, sums) as loop:
            right = [f.load(side, "f32", loop.index * wide, wide) for side in sides]
            left = [f.splat(f.load(start, "f32", loop.index), wide) for start in starts]
            found = [f.fma(left[r], right[p], s) for (r, p), s in zip(parts, loop.carried)]
            loop.carry(*found)
        for at, total in zip(targets, loop.results):
            f.store(total, out, at, mask)


def _each_row(
    f: Function, first: Value, end: Value, width: Value, step: Callable[..., None]
) -> None:
    """``step(row, column, lanes, mask)`` for all columns of some rows."""
    lanes = lanes_for(["f32"])
    whole = width - (width & (lanes - 1))
    with f.loop(first, end) as rows:
        with f.loop(0, whole, lanes) as columns:
            step(rows.index, columns.index, lanes, None)
        with f.when(whole < width):
            step(rows.index, whole, lanes, f.lanes_below(width - whole, lanes))


def _kernel_start(name: str, operands: int) -> tuple[Function, list[Value], list[Value]]:
    """A function, its arrays, and its sizes: steps, rows, the length of a part of a row."""
    f = Function(name, [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")])
    pointers = load_operands(f, f.arguments[0], operands)
    return f, pointers, [f.load(f.arguments[1], "i64", k) for k in range(3)]


@functools.cache
def _forward(order: tuple[int, ...], forget_bias: float, training: bool) -> Kernel:
    """Operands: weights, h, c; gates (the inputs' products before), outputs; in training also
    states and tanhs, otherwise c becomes the last state, and gates are spoilt.
    """
    f, (weights, h, c, gates, outputs, *notes), (steps, rows, width) = _kernel_start(
        "lstm_steps", 7 if training else 5
    )
    _, _, first, end = f.arguments
    panels = _Panels(f, weights, width, width * 4)
    part = rows * width
    with f.loop(0, steps) as loop:
        is_first = f.compare("eq", loop.index, 0)
        before, now = (loop.index - 1) * part, loop.index * part
        earlier = f.select(is_first, h, f.at(outputs, "f32", before))
        state = f.select(is_first, c, f.at(notes[0], "f32", before)) if training else c
        sums = f.at(gates, "f32", now * 4)
        out, *kept = (f.at(p, "f32", now) for p in (outputs, *notes))
        panels.multiply(earlier, sums, first, end, add=True)

        def step(row: Value, column: Value, lanes: int, mask: Value | None) -> None:
            at = row * width + column
            places = [row * (width * 4) + width * k + column for k in order]
            values = [f.load(sums, "f32", p, lanes, mask) for p in places]
            found = cell_values(f, [*values, f.load(state, "f32", at, lanes, mask)], forget_bias)
            made, new, *activated, tanh_c = found
            f.store(made, out, at, mask)
            for value, pointer in zip((new, tanh_c), kept or [c]):
                f.store(value, pointer, at, mask)
            for value, place in zip(activated, places if training else ()):
                f.store(value, sums, place, mask)

        _each_row(f, first, end, width, step)
    return Kernel(module(f), "lstm_steps")


@functools.cache
def _backward(order: tuple[int, ...]) -> Kernel:
    """Operands: weights (turned), dh, c, states, gates, tanhs; dgates, the gradients of the output
    and of the state before the first step (before: of those after the last one).
    """
    f, pointers, (steps, rows, width) = _kernel_start("lstm_steps_grad", 9)
    weights, dh, c, states, gates, tanhs, dgates, later, d = pointers
    _, _, first, end = f.arguments
    panels = _Panels(f, weights, width * 4, width)
    part = rows * width
    with f.loop(0, steps) as loop:
        k = steps - 1 - loop.index
        now = k * part
        is_first = f.compare("eq", k, 0)
        state = f.select(is_first, c, f.at(states, "f32", (k - 1) * part))
        arrived, tanh_c = (f.at(p, "f32", now) for p in (dh, tanhs))
        activated, sums = (f.at(p, "f32", now * 4) for p in (gates, dgates))

        def step(row: Value, column: Value, lanes: int, mask: Value | None) -> None:
            at = row * width + column
            places = [row * (width * 4) + width * part + column for part in order]
            own, back, dc, before, tanh_now = (
                f.load(p, "f32", at, lanes, mask) for p in (arrived, later, d, state, tanh_c)
            )
            values = [f.load(activated, "f32", p, lanes, mask) for p in places]
            *found, dc = cell_gradients(f, [own + back, dc, before, *values, tanh_now])
            for value, place in zip(found, places):
                f.store(value, sums, place, mask)
            f.store(dc, d, at, mask)

        _each_row(f, first, end, width, step)
        panels.multiply(sums, later, first, end, add=False)
    return Kernel(module(f), "lstm_steps_grad")


# calls --------------------------------------------------------------------------------------------


def panel_width() -> int:
    return lanes_for(["f32"]) * REGISTERS


def in_panels(weights: Array) -> Array:
    """Columns in groups of a panel's width, the last one filled up with zeros."""
    depth, columns = weights.shape
    wide = panel_width()
    count = -(-columns // wide)
    out = np.empty((count, depth, wide), np.float32)
    whole = columns - columns % wide
    out[: whole // wide] = weights[:, :whole].reshape(depth, -1, wide).transpose(1, 0, 2)
    if whole < columns:
        out[-1, :, columns - whole :] = 0
        out[-1, :, : columns - whole] = weights[:, whole:]
    return out


class Steps:
    """A kernel with its arrays, which stay where they are; calling it runs all steps."""

    __slots__ = ("arrays", "kernel", "operands", "rows", "sizes", "threads")

    def __init__(self, kernel: Kernel, arrays: Sequence[Array], sizes: Sequence[int]) -> None:
        steps, self.rows, width = sizes
        self.kernel, self.arrays = kernel, arrays
        self.operands, self.sizes = kernel.operands(arrays), kernel.sizes(sizes)
        self.threads = min(self.rows * 4 * width * width * steps // GRAIN, self.rows)

    @classmethod
    def of_inference(
        cls, arrays: Sequence[Array], sizes: Sequence[int], order: Sequence[int], forget: float
    ) -> Steps:
        """``arrays``: the state's weights in panels, h, c, gates, outputs; c becomes the last
        state. ``sizes``: steps, rows, the length of a state.
        """
        return cls(_forward(tuple(order), float(forget), False), arrays, sizes)

    def __call__(self) -> None:
        threads = min(thread_count(), self.threads)
        if threads < 2 or helpers_wait():
            self.kernel.call(self.operands, self.sizes, 0, self.rows)
            return
        share = -(-self.rows // threads)
        self.kernel.share(self.operands, self.sizes, self.rows, share, threads)


def _run(kernel: Kernel, arrays: Sequence[Array], steps: int, rows: int, width: int) -> None:
    Steps(kernel, arrays, (steps, rows, width))()


def stays_in_cache(width: int) -> bool:
    """Whether the weights of a state of this length stay in a core's cache from step to step."""
    return 0 < 16 * width * width <= MAX_WEIGHTS


def _is_ours(kernel: Any, rows: int) -> bool:
    width = kernel.shape[1] // 4
    fits = stays_in_cache(width) and rows > 0
    return fits and kernel.dtype == np.float32 and kernel.shape[0] > width


def _stretched(x: Array, rows: int) -> Array:
    return np.ascontiguousarray(np.broadcast_to(x, (rows, x.shape[1])))


def _joined(parts: Sequence[Array], rows: int, out: Array | None = None) -> Array:
    """Matrices one below the other, stretched to all rows."""
    if any(p.shape[0] != rows for p in parts):
        parts = [np.broadcast_to(p, (rows, p.shape[1])) for p in parts]
    return np.concatenate(parts, out=out)


def _filled(parts: Sequence[Any], rows: int, width: int) -> Array:
    """The same of matrices and numbers."""
    return np.concatenate([np.broadcast_to(p, (rows, width)) for p in parts])


def layer(
    *arrays: Any, N: int, order: Sequence[int], forget_bias: float, training: bool
) -> tuple[Array, ...] | None:
    """What each step puts out, the last state; of all steps the states, gates and tanhs."""
    inputs, (h, c, kernel, bias) = arrays[:N], arrays[N:]
    rows = max(x.shape[0] for x in inputs)
    if not training or not _is_ours(kernel, rows):
        return None
    width, wide = kernel.shape[1] // 4, inputs[0].shape[1]
    gates = matmul_bias(_joined(inputs, rows), kernel[:wide], bias).reshape(N, rows, 4 * width)
    outputs, states, tanhs = (np.empty((N, rows, width), np.float32) for _ in range(3))
    first = [_stretched(x, rows) for x in (h, c)]
    made = [in_panels(kernel[wide:]), *first, gates, outputs, states, tanhs]
    _run(_forward(tuple(order), float(forget_bias), True), made, N, rows, width)
    return (*outputs, states[-1], states, gates, tanhs)


def layer_grad(*arrays: Any, N: int, order: Sequence[int]) -> tuple[Array, ...] | None:
    """The gradients of the inputs, of the first output and state, of the kernel and of the bias."""
    dh, dc, inputs = arrays[:N], arrays[N], arrays[N + 1 : 2 * N + 1]
    h, c, kernel = arrays[2 * N + 1 : 2 * N + 4]
    outputs, (states, gates, tanhs) = arrays[2 * N + 4 : 3 * N + 4], arrays[3 * N + 4 :]
    _, rows, width = states.shape
    if not _is_ours(kernel, rows):
        return None
    wide = inputs[0].shape[1]
    d, later = np.empty((rows, width), np.float32), np.zeros((rows, width), np.float32)
    d[...] = dc
    arrived = _joined(dh, rows) if all(g.ndim for g in dh) else _filled(dh, rows, width)
    dgates = np.empty((N, rows, 4 * width), np.float32)
    kept = [np.ascontiguousarray(a) for a in (states, gates, tanhs)]
    made = [in_panels(kernel[wide:].T), arrived, _stretched(c, rows), *kept, dgates, later, d]
    _run(_backward(tuple(order)), made, N, rows, width)
    flat = dgates.reshape(-1, 4 * width)
    both = np.empty((N * rows, wide + width), np.float32)
    _joined(inputs, rows, both[:, :wide])
    _joined([h, *outputs[:-1]], rows, both[:, wide:])
    dkernel = matmul(both.T, flat)
    dx = matmul(flat, kernel[:wide].T).reshape(N, rows, wide)
    dxs = [_like(g, x) for g, x in zip(dx, inputs)]
    return (*dxs, _like(later, h), _like(d, c), dkernel, column_sums(flat))


def _like(grad: Array, x: Array) -> Array:
    """The gradient of what was stretched over all rows."""
    return grad if grad.shape == x.shape else grad.sum(0, keepdims=True)
