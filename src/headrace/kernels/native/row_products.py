"""One row times a matrix, with what follows: ``activation(a @ weights + bias)``.

The kernel library's products are made for many rows: of one row their registers wait for their own
sums, and a core reads its weights at half the speed that its cache has. Here a tile is several
panels wide (recurrent_kernels.py lays the weights out), so that enough sums are under way.

    product = RowProduct(weights, bias, "relu")
    product(a, out)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.native.activation_loops import FUNCTIONS
from headrace.kernels.native.element_loops import load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.native.openmp_team import openmp_team
from headrace.kernels.native.recurrent_kernels import in_panels, panel_width
from headrace.runtime.helper_cores import helpers_wait
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["RowProduct"]

#: Panels of a tile.
TILE = 4
#: Bytes of weights that a thread reads at least: less is read before a second thread has begun.
GRAIN = 1 << 18


@functools.cache
def _kernel(activation: str, bias: bool) -> Kernel:
    """Operands: weights, the row, the bias, the result; sizes: rows and columns of the weights.

    Items are panels.
    """
    names = [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
    f = Function("row_product", names)
    operands, sizes, first, end = f.arguments
    weights, a, added, out = load_operands(f, operands, 4)
    depth, columns = (f.load(sizes, "i64", k) for k in range(2))
    wide = panel_width()
    function = FUNCTIONS[activation]

    def tile(panel: Value, panels: int, mask: Value | None) -> None:
        zero = f.constant("f32", 0.0, wide)
        starts = [f.at(weights, "f32", (panel + p) * wide * depth) for p in range(panels)]
        with f.loop(0, depth, 1, [zero] * panels) as loop:
            left = f.splat(f.load(a, "f32", loop.index), wide)
            right = [f.load(start, "f32", loop.index * wide, wide) for start in starts]
            loop.carry(*[f.fma(left, r, s) for r, s in zip(right, loop.carried)])
        for p, total in enumerate(loop.results):
            at = (panel + p) * wide
            if bias:
                total = total + f.load(added, "f32", at, wide, mask)
            f.store(function(f, total), out, at, mask)

    # the last panel may be broken: it is alone
    whole = f.select(end * wide > columns, end - 1, end)
    several = whole - f.binary("rem", whole - first, TILE)
    with f.loop(first, several, TILE) as tiles:
        tile(tiles.index, TILE, None)
    with f.loop(several, whole) as rest:
        tile(rest.index, 1, None)
    with f.when(whole < end):
        tile(whole, 1, f.lanes_below(columns - whole * wide, wide))
    return Kernel(module(f), "row_product")


class RowProduct:
    """A product with weights and bias, which are copied. It belongs to one thread."""

    __slots__ = ("_bias", "_job", "_kernel", "_most", "_operands", "_panels", "_sizes", "_weights")

    def __init__(self, weights: Array, bias: Array | None, activation: str) -> None:
        self._weights = panels = in_panels(weights)
        self._bias = None if bias is None else np.array(bias)
        self._panels = count = len(panels)
        self._kernel = _kernel(activation, bias is not None)
        self._sizes = self._kernel.sizes(weights.shape)
        self._most = min(count // TILE, max(1, panels.nbytes // GRAIN))
        self._operands: Any = None
        self._job: Any = None

    def settle(self, a: Array, out: Array) -> RowProduct:
        """These arrays are meant in every call: the caller keeps them alive."""
        self._operands = self._arguments(a, out)
        team = openmp_team()
        if team is not None and self._most > 1:
            address, share = self._kernel.address, self._share(min(thread_count(), self._most))
            self._job = team.job(address, self._operands, self._sizes, self._panels, share)
        return self

    def _arguments(self, a: Array, out: Array) -> Any:
        bias = a if self._bias is None else self._bias
        return self._kernel.operands([self._weights, a, bias, out])

    def _share(self, threads: int) -> int:
        return -(-self._panels // (threads * TILE)) * TILE

    def __call__(self, a: Array, out: Array) -> None:
        operands = self._operands
        if operands is None:
            operands = self._arguments(a, out)
        threads = min(thread_count(), self._most)
        if threads < 2 or helpers_wait():
            self._kernel.call(operands, self._sizes, 0, self._panels)
            return
        team = openmp_team()
        if team is not None and self._job is not None:
            team.repeat(self._job, threads)
            return
        self._kernel.share(operands, self._sizes, self._panels, self._share(threads), threads)
