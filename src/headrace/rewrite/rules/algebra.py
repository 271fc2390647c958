"""Arithmetic that is known beforehand.

The exact rules keep every bit: NaN, infinities, the sign of zero and the wrapping of integers. ``x
+ 0.0`` is not among them (-0.0 + 0.0 is 0.0), ``x - 0.0`` is; ``x * 0`` is for integers only. What
changes rounding is apart, marked ``exact=False``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_of, same_shape
from headrace.rewrite.rewrite_state import RewriteState

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "constants_together",
    "division_by_constant",
    "double_inverse",
    "negations",
    "neutral_element",
    "powers",
    "reciprocal_root",
    "sum_of_two",
    "zero_added",
    "zero_factor",
]

_FLOATS = frozenset([dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])


def _spread(constant: Array, x: int, state: RewriteState) -> bool:
    """An operation on x and the constant has x's shape."""
    if constant.ndim == 0:
        return True
    dims = dims_of(x, state)
    if dims is None or constant.ndim > len(dims):
        return False
    return all(c in (1, d) for c, d in zip(reversed(constant.shape), reversed(dims)))


def filled(value: int, state: RewriteState) -> float | None:
    """The number that every element of a constant is.

    None if there are several (or none, or it is no real number).
    """
    if value not in state.fills:
        array = state.constants.get(value)
        found: float | None = None
        if array is not None and array.dtype.kind in "fiu" and 0 < array.size <= 1 << 16:
            first = array.item(0)
            if array.ndim == 0 or bool((array == first).all()):
                found = float(first)
                if (
                    first == 0
                    and array.ndim
                    and array.dtype.kind == "f"
                    and len(set(np.signbit(array).flat)) > 1
                ):
                    found = None
        state.fills[value] = found
    return state.fills[value]


def _beside(node: Node, number: float, right_only: bool, state: RewriteState) -> int | None:
    """The input beside a constant full of this number (the sign of zero counts), if the result has
    its shape.
    """
    for i in (1,) if right_only else (1, 0):
        found = filled(node.inputs[i], state)
        if found is None or found != number:
            continue
        constant, x = state.constants[node.inputs[i]], node.inputs[1 - i]
        if (
            found == 0
            and constant.dtype.kind == "f"
            and math.copysign(1, found) != math.copysign(1, number)
        ):
            continue
        if x not in state.mutable and _spread(constant, x, state):
            return x
    return None


def neutral_element(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """x * 1, x / 1, x - 0, x + (-0.0), x ** 1, and x + 0 for integers."""
    neutral = node.opdef.traits.neutral
    if neutral is None:
        return None
    number, right_only = neutral
    x = _beside(node, number, right_only, state)
    return None if x is None else (x,)


def zero_added(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """x + 0.0, which would make 0.0 of -0.0."""
    if state.dtype(node.outputs[0])._kind != "f":
        return None
    x = _beside(node, 0.0, False, state)
    return None if x is None else (x,)


def zero_factor(node: Node, state: RewriteState) -> Node | None:
    """x * 0 for integers (a float may be NaN)."""
    if not state.dtype(node.outputs[0]).is_integer:
        return None
    x = _beside(node, 0.0, False, state)
    if x is None:
        return None
    return Node(lookup("ZerosLike"), (x,), node.outputs, {"T": node.attrs["T"]}, node.op)


def powers(node: Node, state: RewriteState) -> Node | None:
    """x ** 2, x ** 0.5 and x ** -1 are operations of their own, which is how the kernel computes
    them.
    """
    constant = state.constants.get(node.inputs[1])
    if constant is None or constant.ndim or state.dtype(node.inputs[0]) not in _FLOATS:
        return None
    name = {2.0: "Square", 0.5: "Sqrt", -1.0: "Reciprocal"}.get(float(constant))
    if name is None:
        return None
    return Node(lookup(name), node.inputs[:1], node.outputs, {"T": node.attrs["T"]}, node.op)


def negations(node: Node, state: RewriteState) -> Node | None:
    """a + (-b) is a - b, a - (-b) is a + b, (-a) * (-b) is a * b: the same numbers, one step
    less.
    """
    name = node.opdef.name
    if state.dtype(node.outputs[0])._kind not in "fiuc":
        return None
    left, right = (state.producer(i, "Neg") for i in node.inputs)
    if not state.mutable.isdisjoint(node.inputs):
        return None
    if name in ("Mul", "RealDiv"):
        if left is None or right is None:
            return None
        return _on(node, name, (left.inputs[0], right.inputs[0]), state)
    if right is not None:
        return _on(
            node, "AddV2" if name == "Sub" else "Sub", (node.inputs[0], right.inputs[0]), state
        )
    if left is not None and name != "Sub":
        return _on(node, "Sub", (node.inputs[1], left.inputs[0]), state)
    return None


def _on(node: Node, op_type: str, inputs: tuple[int, ...], state: RewriteState) -> Node | None:
    if not state.mutable.isdisjoint(inputs):
        return state.no("a variable that it reads is written in this run")
    return Node(lookup(op_type), inputs, node.outputs, {"T": node.attrs["T"]}, node.op)


def double_inverse(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """-(-x), not (not x), conj(conj(x))."""
    inner = state.producers.get(node.inputs[0])
    if inner is None or inner.opdef is not node.opdef or not state.mutable.isdisjoint(inner.inputs):
        return None
    return inner.inputs


def sum_of_two(node: Node, state: RewriteState) -> Node | None:
    """AddN of two equal shapes is an addition, which may be part of an element-wise chain."""
    if len(node.inputs) != 2 or state.dtype(node.outputs[0])._kind not in "fiuc":
        return None
    if not same_shape(node.inputs[0], node.inputs[1], state):
        return state.no("the shapes might differ, which AddN does not allow")
    return Node(lookup("AddV2"), node.inputs, node.outputs, {"T": node.attrs["T"]}, node.op)


def division_by_constant(node: Node, state: RewriteState) -> Node | None:
    """x / 4 is x * 0.25: exact for powers of two."""
    constant = state.constants.get(node.inputs[1])
    if (
        constant is None
        or constant.ndim
        or constant.dtype.kind != "f"
        or constant.dtype.itemsize < 4
    ):
        return None
    mantissa, exponent = np.frexp(constant)
    if abs(mantissa) != 0.5 or not -100 < exponent < 100:
        return None
    return _times(node, 1 / constant, state)


def reciprocal_of_constant(node: Node, state: RewriteState) -> Node | None:
    """x / c is x * (1 / c), up to rounding."""
    constant = state.constants.get(node.inputs[1])
    if constant is None or node.inputs[0] in state.constants or constant.dtype.kind != "f":
        return None
    if constant.dtype.itemsize < 4 or constant.size > 4096 or state.rank(node.inputs[0]) == 0:
        return None
    with np.errstate(all="ignore"):
        inverse = 1 / constant
    size = np.abs(inverse)
    if not bool((np.isfinite(size) & (size > np.finfo(constant.dtype).tiny * 4)).all()):
        return state.no("the reciprocal is not a normal number")
    return _times(node, inverse, state)


def _times(node: Node, factor: Array | np.generic, state: RewriteState) -> Node:
    dtype = state.dtype(node.inputs[1])
    value = state.new_constant(np.asarray(factor, dtype.np_dtype), dtype)
    return Node(
        lookup("Mul"), (node.inputs[0], value), node.outputs, {"T": node.attrs["T"]}, node.op
    )


def constants_together(node: Node, state: RewriteState) -> Node | tuple[int, ...] | None:
    """(x * c) * d is x * (c * d), likewise for sums; up to rounding for floats."""
    kind = node.opdef.role or node.opdef.name
    for i in (1, 0):
        outer, middle = state.constants.get(node.inputs[i]), node.inputs[1 - i]
        inner = state.producer(middle, kind) if outer is not None else None
        if outer is None or inner is None:
            continue
        if not state.once(middle):
            return state.no("the product in between is used elsewhere")
        for k in (1, 0):
            constant, x = state.constants.get(inner.inputs[k]), inner.inputs[1 - k]
            if constant is None or x in state.mutable or x in state.constants:
                continue
            return _joined(node, x, constant, outer, middle, state)
    return None


def _joined(
    node: Node, x: int, inner: Array, outer: Array, middle: int, state: RewriteState
) -> Node | tuple[int, ...] | None:
    if inner.dtype.kind not in "fiu" or inner.dtype.itemsize < 4:
        return None
    with np.errstate(all="ignore"):
        both = inner + outer if node.opdef.role == "+" else inner * outer
    if both.size > max(inner.size, outer.size) or not bool(np.isfinite(both).all()):
        return state.no("the constants together are larger, or too large a number")
    if both.dtype.kind == "f" and node.opdef.name == "Mul":
        size = np.abs(both)
        if bool(((size < np.finfo(both.dtype).tiny) & (size > 0)).any()) or bool((size == 0).any()):
            return state.no("the constants' product is not a normal number")
        if bool((both == 1).all()) and _spread(both, x, state):
            return (x,)
    value = state.new_constant(np.asarray(both, inner.dtype), state.dtype(middle))
    return Node(node.opdef, (x, value), node.outputs, node.attrs, node.op)


def reciprocal_root(node: Node, state: RewriteState) -> Node | None:
    """1 / sqrt(x) is rsqrt(x), which is how that is computed.

    X / sqrt(y) is x * rsqrt(y) up to rounding.
    """
    root = state.producer(node.inputs[-1], "Sqrt")
    if root is None or not state.once(node.inputs[-1]) or not state.mutable.isdisjoint(root.inputs):
        return None
    if node.opdef.name != "Reciprocal":
        if filled(node.inputs[0], state) != 1.0:
            return None
        if not _spread(state.constants[node.inputs[0]], node.inputs[1], state):
            return None
    return Node(lookup("Rsqrt"), root.inputs, node.outputs, {"T": node.attrs["T"]}, node.op)
