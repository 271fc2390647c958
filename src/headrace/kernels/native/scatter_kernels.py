"""Rows of an array joined with rows of another, at places that numbers give.

    scatter("add", out, rows, updates)       # out[rows[i]] += updates[i], in the order of i

One thread takes all rows in their order, so that a place which occurs repeatedly is updated
repeatedly, as in TensorFlow; the bits are those of ``np.add.at``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.kernels.native.element_loops import lanes_for, load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE, Value
from headrace.kernels.native.kernel import Kernel

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["scatter", "takes"]

Join = Callable[[Function, Value, Value], Value]

_JOINS: dict[str, Join] = {
    "add": lambda f, a, b: a + b,
    "sub": lambda f, a, b: a - b,
    "mul": lambda f, a, b: a * b,
    "div": lambda f, a, b: a / b,
    "min": lambda f, a, b: f.minimum(a, b),
    "max": lambda f, a, b: f.maximum(a, b),
    "update": lambda f, a, b: b,
}
_FLOATS = ("f32", "f64")
_ELEMENTS = (*_FLOATS, "i32", "i64")
_INDICES = ("i32", "i64")


def takes(how: str, ref: Any, rows: Any, updates: Any) -> bool:
    """Whether there is native code. Rows must be within bounds: the caller checks."""
    element = ELEMENT_OF_DTYPE.get(ref.dtype.name)
    return (
        how in _JOINS
        and element in (_FLOATS if how == "div" else _ELEMENTS)
        and ref.dtype == updates.dtype
        and ELEMENT_OF_DTYPE.get(rows.dtype.name) in _INDICES
        and rows.ndim == 1
        and updates.shape == (rows.shape[0], *ref.shape[1:])
        and all(a.flags.c_contiguous for a in (ref, rows, updates))
        and bool(updates.size)
    )


def scatter(how: str, ref: Array, rows: Array, updates: Array) -> None:
    """See above; only for what ``takes`` takes."""
    kernel = _kernel(how, *(ELEMENT_OF_DTYPE[a.dtype.name] for a in (ref, rows)))
    kernel.call(
        kernel.operands([ref, rows, updates]), kernel.sizes([ref[0].size]), 0, rows.shape[0]
    )


@functools.cache
def _kernel(how: str, element: str, index: str) -> Kernel:
    names = [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
    f = Function("scatter", names)
    operands, sizes, first, end = f.arguments
    ref, rows, updates = load_operands(f, operands, 3)
    width, lanes = f.load(sizes, "i64"), lanes_for([element])
    whole = width - (width & (lanes - 1))
    with f.loop(first, end) as row:
        target = f.convert(f.load(rows, index, row.index), "i64") * width
        source = row.index * width

        def step(column: Value, lanes: int, target: Value = target, source: Value = source) -> None:
            old = f.load(ref, element, target + column, lanes)
            new = f.load(updates, element, source + column, lanes)
            f.store(_JOINS[how](f, old, new), ref, target + column)

        with f.loop(0, whole, lanes) as main:
            step(main.index, lanes)
        with f.loop(whole, width) as rest:
            step(rest.index, 0)
    return Kernel(module(f), "scatter")
