"""Activations applied where an array lies, in one pass.

They follow a product that the kernel library made: its own code for tanh and what is made of it
takes several times as long as the same product's share of an element.

    apply(x, "gelu")
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.kernels.native import vector_math
from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["FUNCTIONS", "apply"]


def _gelu(f: Function, x: Value) -> Value:
    inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
    return x * 0.5 * (vector_math.tanh(f, inner) + 1.0)


def _relu(f: Function, x: Value) -> Value:
    """NaN stays, and so does -0."""
    zero = f.splat(f.constant("f32", 0.0), x.type.lanes)
    return f.select(f.compare("lt", x, zero), zero, x)


#: By the names of product_primitives.ACTIVATIONS.
FUNCTIONS: dict[str, Callable[[Function, Value], Value]] = {
    "": lambda f, x: x,
    "relu": _relu,
    "gelu": _gelu,
    "tanh": vector_math.tanh,
    "sigmoid": vector_math.sigmoid,
}


@functools.cache
def _kernel(name: str) -> Kernel:
    function = FUNCTIONS[name]
    source = element_loop(
        name, [Access("f32")], [Access("f32")], lambda f, values: [function(f, values[0])]
    )
    return Kernel(source, name)


def apply(x: Array, name: str) -> None:
    """To a contiguous float32 array."""
    _kernel(name).run([x, x], [], x.size, GRAIN)
