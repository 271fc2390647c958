"""Comparisons, logic, and tests for NaN and infinity. All give booleans, none has a derivative.

>>> both = tf.logical_and(tf.greater(x, 0), tf.is_finite(x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shape_fns, shapes
from headrace.core.build import apply
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "approximate_equal",
    "equal",
    "greater",
    "greater_equal",
    "is_finite",
    "is_inf",
    "is_nan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


def _equality_shape(c: Inference) -> list[Shape]:
    """Broadcast; shapes that do not fit are one False if ``incompatible_shape_error`` is off."""
    if c.attr("incompatible_shape_error"):
        return shape_fns.broadcast(c)
    try:
        out = shapes.broadcast(c.shape(0), c.shape(1))
    except ValueError:
        return [()]
    return [
        out
        if shapes.known(c.shape(0)) is not None and shapes.known(c.shape(1)) is not None
        else None
    ]


def _equality(ufunc: str, unequal_shapes: bool) -> Callable[..., Any]:
    answer = np.bool_(unequal_shapes)

    def kernel(xp: ArrayNamespace, x: Array, y: Array, *, incompatible_shape_error: bool) -> Any:
        if not incompatible_shape_error:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return answer
        return getattr(xp, ufunc)(x, y)

    return kernel


def _define_equality(op_type: str, ufunc: str, unequal_shapes: bool) -> OpDef:
    return define(
        op_type,
        "x: T, y: T -> z: bool; incompatible_shape_error: bool=True",
        shape=_equality_shape,
        kernel=_equality(ufunc, unequal_shapes),
        grad=NOT_DIFFERENTIABLE,
        elementwise=True,
        static_value=True,
    )


def _define_order(op_type: str, ufunc: str) -> OpDef:
    return define(
        op_type,
        "x: T, y: T -> z: bool; T: type(real)",
        shape=shape_fns.broadcast,
        ufunc=ufunc,
        grad=NOT_DIFFERENTIABLE,
        elementwise=True,
    )


def _define_logic(op_type: str, ufunc: str) -> OpDef:
    return define(
        op_type,
        "x: bool, y: bool -> z: bool",
        shape=shape_fns.broadcast,
        ufunc=ufunc,
        grad=NOT_DIFFERENTIABLE,
        elementwise=True,
    )


def _define_test(op_type: str, ufunc: str) -> OpDef:
    return define(
        op_type,
        "x: T -> y: bool; T: type(float)",
        shape=shape_fns.unchanged,
        ufunc=ufunc,
        grad=NOT_DIFFERENTIABLE,
        elementwise=True,
    )


def _approximate_equal(xp: ArrayNamespace, x: Array, y: Array, *, tolerance: float) -> Array:
    if x.shape != y.shape:
        given = f"x shape: {shapes.show(x.shape)}. y shape: {shapes.show(y.shape)}"
        raise errors.InvalidArgumentError(None, None, f"x and y must be of the same shape. {given}")
    if x.dtype.kind == "u":  # the difference must not wrap around
        x, y = xp.maximum(x, y), xp.minimum(x, y)
    within = xp.less_equal if x.dtype.name in ("float32", "float64") else xp.less  # as TensorFlow
    return within(xp.absolute(xp.subtract(x, y)), tolerance)


EQUAL = _define_equality("Equal", "equal", False)
NOT_EQUAL = _define_equality("NotEqual", "not_equal", True)
LESS = _define_order("Less", "less")
LESS_EQUAL = _define_order("LessEqual", "less_equal")
GREATER = _define_order("Greater", "greater")
GREATER_EQUAL = _define_order("GreaterEqual", "greater_equal")
APPROXIMATE_EQUAL = define(
    "ApproximateEqual",
    "x: T, y: T -> z: bool; T: type(number), tolerance: float=1e-05",
    shape=shape_fns.same_shape_inputs,
    kernel=_approximate_equal,
    grad=NOT_DIFFERENTIABLE,
    elementwise=True,
    same_shapes=True,
)
LOGICAL_AND = _define_logic("LogicalAnd", "logical_and")
LOGICAL_OR = _define_logic("LogicalOr", "logical_or")
LOGICAL_NOT = define(
    "LogicalNot",
    "x: bool -> y: bool",
    shape=shape_fns.unchanged,
    ufunc="logical_not",
    grad=NOT_DIFFERENTIABLE,
    elementwise=True,
    fails="never",
    batching="elementwise",
)
IS_NAN = _define_test("IsNan", "isnan")
IS_INF = _define_test("IsInf", "isinf")
IS_FINITE = _define_test("IsFinite", "isfinite")


@dispatched("binary")
def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x == y`` element by element, broadcast, as booleans.

    ``==`` on tensors compares identity in v1.
    """
    return apply(EQUAL, x, y, name=name)


@dispatched("binary")
def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x != y`` element by element, broadcast, as booleans."""
    return apply(NOT_EQUAL, x, y, name=name)


@dispatched("binary")
def less(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x < y`` element by element, broadcast, as booleans."""
    return apply(LESS, x, y, name=name)


@dispatched("binary")
def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x <= y`` element by element, broadcast, as booleans."""
    return apply(LESS_EQUAL, x, y, name=name)


@dispatched("binary")
def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x > y`` element by element, broadcast, as booleans."""
    return apply(GREATER, x, y, name=name)


@dispatched("binary")
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x >= y`` element by element, broadcast, as booleans."""
    return apply(GREATER_EQUAL, x, y, name=name)


def approximate_equal(
    x: TensorLike, y: TensorLike, tolerance: float = 1e-05, name: str | None = None
) -> Tensor:
    """|x - y| < tolerance."""
    return apply(APPROXIMATE_EQUAL, x, y, tolerance=tolerance, name=name)


@dispatched("binary")
def logical_and(x: object, y: object, name: str | None = None) -> Tensor:
    """True where both booleans are True, broadcast."""
    return apply(LOGICAL_AND, x, y, name=name)


@dispatched("binary")
def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where at least one boolean is True, broadcast."""
    return apply(LOGICAL_OR, x, y, name=name)


@dispatched("unary")
def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """True where the boolean is False; also the operator ``~x``."""
    return apply(LOGICAL_NOT, x, name=name)


@dispatched("binary")
def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """(x or y) and not (x and y), four ops as in TensorFlow."""
    either = apply(LOGICAL_OR, x, y)
    both = apply(LOGICAL_AND, x, y)
    return apply(LOGICAL_AND, either, apply(LOGICAL_NOT, both), name=name)


@dispatched("unary")
def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """True where a floating number is NaN."""
    return apply(IS_NAN, x, name=name)


@dispatched("unary")
def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """True where a floating number is plus or minus infinity."""
    return apply(IS_INF, x, name=name)


@dispatched("unary")
def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """True where a floating number is neither NaN nor infinite."""
    return apply(IS_FINITE, x, name=name)


# traits ------------------------------------------------------------------------------------------

add_traits("Less", expression="{0} < {1}", fails="shapes", batching="elementwise")
add_traits("LessEqual", expression="{0} <= {1}", fails="shapes", batching="elementwise")
add_traits("Greater", expression="{0} > {1}", fails="shapes", batching="elementwise")
add_traits("GreaterEqual", expression="{0} >= {1}", fails="shapes", batching="elementwise")
add_traits("IsFinite IsInf IsNan", fails="never", batching="elementwise")
add_traits("Equal NotEqual LogicalAnd LogicalOr", fails="shapes", batching="elementwise")
