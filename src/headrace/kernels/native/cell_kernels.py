"""The element-wise part of an LSTM cell and its gradient, in one pass over the rows.

    h, c_new, gates, tanh_c = cell(product, c, order=(0, 1, 2, 3), forget_bias=1.0)
    dproduct, dc = cell_grad(dh, dc_new, c, gates, tanh_c, order=(0, 1, 2, 3))

``order`` says where the gates i, f, g (the new value) and o are among the four parts of a row. The
functions answer None for what they do not do: other shapes, types and layouts are NumPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.native import vector_math
from headrace.kernels.native.element_loops import lanes_for, load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike

__all__ = ["cell", "cell_grad", "cell_gradients", "cell_values"]

_ELEMENTS = {"float32": "f32", "float64": "f64"}
#: Elements of gates that a thread takes at least.
GRAIN = 64 * 1024
#: Registers that hold one value, so that several chains are under way at once.
INTERLEAVE = 2

#: Values of a vector's worth of columns to results: each operand is (array, part of its row).
Body = Callable[[Function, list[Value]], Sequence[Value]]
Place = tuple[int, int]


def _rows(
    name: str,
    element: str,
    widths: Sequence[int],
    reads: Sequence[Place],
    writes: Sequence[Place],
    body: Body,
) -> Kernel:
    """A kernel whose items are rows. ``widths`` says of how many parts the arrays' rows consist;
    sizes are (the length of a part,).
    """
    f = Function(name, [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")])
    operands, sizes, first, end = f.arguments
    pointers = load_operands(f, operands, len(widths))
    columns, lanes = f.load(sizes, "i64"), lanes_for([element])
    wide = lanes * INTERLEAVE
    whole = columns - (columns & (wide - 1))
    with f.loop(first, end) as row:
        starts = {n: row.index * (columns * n) for n in set(widths)}

        def step(index: Value, width: int, mask: Value | None) -> None:
            def place(at: Place) -> Value:
                return starts[widths[at[0]]] + (columns * at[1] + index)

            values = [f.load(pointers[r[0]], element, place(r), width, mask) for r in reads]
            for at, made in zip(writes, body(f, values)):
                f.store(made, pointers[at[0]], place(at), mask)

        with f.loop(0, whole, wide) as column:
            step(column.index, wide, None)
        with f.loop(whole, columns, lanes) as rest:
            step(rest.index, lanes, f.lanes_below(columns - rest.index, lanes))
    return Kernel(module(f), name)


def cell_values(f: Function, values: Sequence[Value], forget_bias: float) -> Sequence[Value]:
    """The four sums i, f, g, o and the state c to h, the new state, the gates and its tanh."""
    i, forget, g, o, c = values
    i, o = (vector_math.sigmoid(f, x) for x in (i, o))
    forget = vector_math.sigmoid(f, forget + forget_bias if forget_bias else forget)
    g = vector_math.tanh(f, g)
    new = forget * c + i * g
    tanh_c = vector_math.tanh(f, new)
    return o * tanh_c, new, i, forget, g, o, tanh_c


@functools.cache
def _cell(element: str, order: tuple[int, ...], forget_bias: float) -> Kernel:
    """Operands: product, c; h, c_new, gates, tanh_c."""
    reads = [*((0, k) for k in order), (1, 0)]
    writes = [(2, 0), (3, 0), *((4, k) for k in order), (5, 0)]

    def body(f: Function, values: list[Value]) -> Sequence[Value]:
        return cell_values(f, values, forget_bias)

    return _rows("cell", element, (4, 1, 1, 1, 4, 1), reads, writes, body)


def cell_gradients(f: Function, values: Sequence[Value]) -> Sequence[Value]:
    """The gradients of h and of the state, c, the four gates and tanh of the state to the gradients
    of the four sums and of c.
    """
    dh, dc, c, i, forget, g, o, tanh_c = values
    d = dh * o * (1.0 - tanh_c * tanh_c) + dc
    gates = (
        d * g * i * (1.0 - i),
        d * c * forget * (1.0 - forget),
        d * i * (1.0 - g * g),
        dh * tanh_c * o * (1.0 - o),
    )
    return *gates, d * forget


@functools.cache
def _cell_grad(element: str, order: tuple[int, ...]) -> Kernel:
    """Operands: dh, dc_new, c, gates, tanh_c; dproduct, dc."""
    reads = [(0, 0), (1, 0), (2, 0), *((3, k) for k in order), (4, 0)]
    writes = [*((5, k) for k in order), (6, 0)]
    return _rows("cell_grad", element, (1, 1, 1, 4, 1, 4, 1), reads, writes, cell_gradients)


def _fits(arrays: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: DTypeLike) -> bool:
    return all(
        type(a) is np.ndarray and a.shape == s and a.dtype == dtype and a.flags.c_contiguous
        for a, s in zip(arrays, shapes)
    )


def _run(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array], rows: int) -> None:
    width = outputs[-1].shape[1]
    kernel.run([*inputs, *outputs], [width], rows, max(1, GRAIN // (4 * width)))


def cell(
    product: Array, c: Array, *, order: Sequence[int], forget_bias: float
) -> tuple[Array, Array, Array, Array] | None:
    """See above."""
    element = _ELEMENTS.get(product.dtype.name)
    if element is None or product.ndim != 2 or not product.size:
        return None
    rows, width = product.shape[0], product.shape[1] // 4
    part = (rows, width)
    if not _fits([product, c], [(rows, 4 * width), part], product.dtype):
        return None
    out = [np.empty(s, product.dtype) for s in (part, part, (rows, 4 * width), part)]
    _run(_cell(element, tuple(order), float(forget_bias)), [product, c], out, rows)
    return out[0], out[1], out[2], out[3]


def cell_grad(
    dh: Array, dc_new: Any, c: Array, gates: Array, tanh_c: Array, *, order: Sequence[int]
) -> tuple[Array, Array] | None:
    """See above; ``dc_new`` may be a number."""
    element = _ELEMENTS.get(gates.dtype.name)
    if element is None or gates.ndim != 2 or not gates.size:
        return None
    rows, width = gates.shape[0], gates.shape[1] // 4
    part, dtype = (rows, width), gates.dtype
    if np.ndim(dc_new) == 0:
        dc_new = np.full(part, dc_new, dtype)
    inputs = [dh, dc_new, c, gates, tanh_c]
    if not _fits(inputs, [part, part, part, (rows, 4 * width), part], dtype):
        return None
    out = [np.empty((rows, 4 * width), dtype), np.empty(part, dtype)]
    _run(_cell_grad(element, tuple(order)), inputs, out, rows)
    return out[0], out[1]
