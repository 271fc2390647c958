"""Element-wise functions of two tensors, with broadcasting: ``tf.add``, ``tf.pow``,
``tf.floordiv``.

Integers follow C: division by zero is an error where the graph runs, ``Div`` truncates,
``FloorDiv`` does not. Floating point ``FloorDiv`` is ``floor(x / y)``, which is not always Python's
``//``.

    >>> scaled = tf.multiply(x, 2.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert, convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import GROUPS, NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.internal import gradient_helpers as gu
from headrace.ops.math.binary_gradients import (
    add_grad,
    atan2_grad,
    choice_grad,
    floor_mod_grad,
    mul_grad,
    mul_no_nan_grad,
    next_after_grad,
    pow_grad,
    quotient_grad,
    squared_difference_grad,
    sub_grad,
    truncated_mod_grad,
    xdivy_grad,
    xlogy_grad,
)
from headrace.ops.math.unary import apply_over

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.opdef import _Marker

__all__ = [
    "add",
    "atan2",
    "div",
    "div_no_nan",
    "divide",
    "divide_no_nan",
    "floor_div",
    "floordiv",
    "floormod",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "multiply",
    "multiply_no_nan",
    "nextafter",
    "polyval",
    "pow",
    "realdiv",
    "scalar_mul",
    "scalar_mul_v2",
    "squared_difference",
    "sub",
    "subtract",
    "truediv",
    "truncatediv",
    "truncatemod",
    "xdivy",
    "xlogy",
]

_NUMBERS = GROUPS["number"] or frozenset()
GROUPS["summable"] = _NUMBERS | {dtypes.string}  # Add joins strings
GROUPS["addn"] = _NUMBERS | {dtypes.variant}


# kernels ----------------------------------------------------------------------------------------


def _add(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The sum; strings are joined.

    Of two scalar strings NumPy makes plain bytes, which is no array.
    """
    out = xp.add(x, y)
    return np.asarray(out, object) if isinstance(out, bytes) else out


def _check_divisor(xp: ArrayNamespace, x: Array, y: Array) -> None:
    if xp.name == "numpy" and not y.all() and np.size(x):
        raise errors.InvalidArgumentError(None, None, "Integer division by zero")


def _truncated_div(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Division; of integers toward zero, as in C."""
    kind = x.dtype.kind
    if kind not in "iu":
        return xp.divide(x, y)
    _check_divisor(xp, x, y)
    quotient = xp.floor_divide(x, y)
    if kind == "i":  # the floor is one too low where the signs differ and something is left over
        quotient = quotient + ((xp.bitwise_xor(x, y) < 0) & (xp.multiply(quotient, y) != x))
    return quotient


def _floor_div(xp: ArrayNamespace, x: Array, y: Array) -> Any:
    if x.dtype.kind not in "iu":
        return apply_over(xp.floor, xp.divide(x, y))
    _check_divisor(xp, x, y)
    return xp.floor_divide(x, y)


def _floor_mod(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The remainder with the sign of y."""
    if x.dtype.kind in "iu":
        _check_divisor(xp, x, y)
        return xp.remainder(x, y)
    r = xp.fmod(x, y)  # np.remainder gives the same five times slower
    return xp.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


def _truncated_mod(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The remainder with the sign of x."""
    if x.dtype.kind in "iu":
        _check_divisor(xp, x, y)
    return xp.fmod(x, y)


def _reported_as_internal(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """TensorFlow has no error of its own for a zero divisor of these ops."""

    def checked(xp: ArrayNamespace, x: Array, y: Array) -> Any:
        try:
            return kernel(xp, x, y)
        except errors.InvalidArgumentError:
            raise errors.InternalError(
                None,
                None,
                "Unexpected error in binary operator (only integer div and mod should have "
                "errors): a divisor is zero",
            ) from None

    return checked


def _pow(xp: ArrayNamespace, x: Array, y: Array) -> Any:
    kind = x.dtype.kind
    if kind in "iu":
        if xp.name == "numpy" and kind == "i" and (y < 0).any():
            raise errors.InvalidArgumentError(
                None, None, "Integers to negative integer powers are not allowed"
            )
    elif y.ndim == 0 and xp.name == "numpy":
        special = _POWERS.get(y.item())
        if special is not None:  # up to a hundred times faster than np.power
            return special(x)
    return xp.power(x, y)


def _cube(x: Array | np.generic) -> Array | np.generic:
    out = np.square(x)
    out *= x
    return out


_POWERS: dict[Any, Callable[[Any], Any]] = {
    1.0: np.positive,
    2.0: np.square,
    3.0: _cube,
    4.0: lambda x: apply_over(np.square, np.square(x)),
    0.5: np.sqrt,
    -1.0: np.reciprocal,
    -2.0: lambda x: apply_over(np.reciprocal, np.square(x)),
}


def _squared_difference(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    d = xp.subtract(x, y)
    return xp.multiply(d, xp.conjugate(d)) if d.dtype.kind == "c" else apply_over(xp.square, d)


def _zero_where(xp: ArrayNamespace, where: Array, value: Array) -> Array:
    """``value``, freshly made, with 0 at the places in ``where``."""
    if type(value) is not np.ndarray:
        return xp.where(where, value.dtype.type(0), value)
    np.copyto(value, 0, where=where)
    return value


def _div_no_nan(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    return _zero_where(xp, y == 0, xp.divide(x, y))


def _mul_no_nan(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    return _zero_where(xp, y == 0, xp.multiply(x, y))


def _xdivy(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    return _zero_where(xp, x == 0, xp.divide(x, y))


def _xlogy(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    return _zero_where(xp, x == 0, xp.multiply(x, xp.log(y)))


# definitions ------------------------------------------------------------------------------------


def _define(
    op_type: str,
    types: str,
    grad: Callable[..., Any] | _Marker,
    ufunc: str | None = None,
    kernel: Callable[..., Any] | None = None,
) -> OpDef:
    return define(
        op_type,
        f"x: T, y: T -> z: T; T: type({types})",
        shape=shape_fns.broadcast,
        kernel=kernel,
        grad=grad,
        ufunc=ufunc,
        elementwise=True,
    )


ADD = _define("Add", "summable", add_grad, kernel=_add)
ADD_V2 = _define("AddV2", "number", add_grad, "add")
SUB = _define("Sub", "number", sub_grad, "subtract")
MUL = _define("Mul", "number", mul_grad, "multiply")
REAL_DIV = _define("RealDiv", "inexact", quotient_grad("RealDiv"), "divide")
DIV = _define("Div", "number", quotient_grad("Div"), kernel=_truncated_div)
TRUNCATE_DIV = _define(
    "TruncateDiv", "number", NOT_DIFFERENTIABLE, kernel=_reported_as_internal(_truncated_div)
)
FLOOR_DIV = _define("FloorDiv", "real", NOT_DIFFERENTIABLE, kernel=_floor_div)
FLOOR_MOD = _define("FloorMod", "real", floor_mod_grad, kernel=_floor_mod)
TRUNCATE_MOD = _define(
    "TruncateMod", "real", truncated_mod_grad, kernel=_reported_as_internal(_truncated_mod)
)
MOD = _define("Mod", "real", truncated_mod_grad, kernel=_truncated_mod)
POW = _define("Pow", "number", pow_grad, kernel=_pow)
MAXIMUM = _define("Maximum", "real", choice_grad("GreaterEqual"), "maximum")
MINIMUM = _define("Minimum", "real", choice_grad("LessEqual"), "minimum")
SQUARED_DIFFERENCE = _define(
    "SquaredDifference", "number", squared_difference_grad, kernel=_squared_difference
)
DIV_NO_NAN = _define("DivNoNan", "inexact", quotient_grad("DivNoNan"), kernel=_div_no_nan)
MUL_NO_NAN = _define("MulNoNan", "inexact", mul_no_nan_grad, kernel=_mul_no_nan)
XDIVY = _define("Xdivy", "inexact", xdivy_grad, kernel=_xdivy)
XLOGY = _define("Xlogy", "inexact", xlogy_grad, kernel=_xlogy)
ATAN2 = define(
    "Atan2",
    "y: T, x: T -> z: T; T: type(float)",
    shape=shape_fns.broadcast,
    ufunc="arctan2",
    grad=atan2_grad,
    elementwise=True,
)
NEXT_AFTER = define(
    "NextAfter",
    "x1: T, x2: T -> output: T; T: type(wide)=float32",
    shape=shape_fns.broadcast,
    ufunc="nextafter",
    grad=next_after_grad,
    elementwise=True,
)


# what users call --------------------------------------------------------------------------------


@dispatched("binary")
def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x + y`` element by element, broadcast; strings are joined."""
    return apply(ADD, x, y, name=name)


@dispatched("binary")
def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x - y`` element by element, broadcast; what ``x - y`` of tensors calls."""
    return apply(SUB, x, y, name=name)


@dispatched("binary")
def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x * y`` element by element, broadcast; ``tf.matmul`` is the matrix product."""
    return apply(MUL, x, y, name=name)


sub, mul = subtract, multiply  # before TF 1.0


def _converted_pair(x: object, y: object) -> tuple[Tensor, Tensor]:
    """Both as tensors; a plain number takes x's type."""
    x = convert_to_tensor(x, name="x")
    y = convert(y, None, "y", x.dtype.base_dtype)
    if x.dtype.base_dtype is not y.dtype.base_dtype:
        raise TypeError(
            f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}. Convert "
            "one with tf.cast."
        )
    return x, y


_TRUE_QUOTIENT = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
}


@dispatched("binary")
def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Division as in Python 3: small integers give float32, int32 and int64 give float64.

    Each argument is converted by itself: ``tf.truediv(float64_tensor, 2.0)`` is a TypeError,
    ``float64_tensor / 2.0`` is not.
    """
    with name_scope(name, "truediv", [x, y]) as scope:
        x, y = convert_to_tensor(x, name="x"), convert_to_tensor(y, name="y")
        return true_quotient(x, y, scope)


def true_quotient(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y`` of the operator: a plain number takes the type of the tensor beside it."""
    if isinstance(x, Tensor) and x._dtype._kind in "fc":
        return apply(REAL_DIV, x, y, name=name or "truediv")
    with name_scope(name, "truediv", [x, y]) as scope:
        x, y = _converted_pair(x, y)
        base = x._dtype._base
        if base._kind not in "fc":
            if base not in _TRUE_QUOTIENT:
                names = ", ".join(sorted(d.name for d in _TRUE_QUOTIENT))
                raise TypeError(
                    f"Invalid dtype {base!r} in __truediv__. Expected a float, a complex "
                    f"type or one of {names}."
                )
            x, y = (apply_op("Cast", t, DstT=_TRUE_QUOTIENT[base]) for t in (x, y))
        return apply(REAL_DIV, x, y, name=scope)


@dispatched("binary")
def div(x: object, y: object, name: str | None = None) -> Tensor:
    """Division as in Python 2: of integers with rounding down."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert(y, x.dtype.base_dtype, "y")
        return apply(REAL_DIV if x._dtype._kind in "fc" else FLOOR_DIV, x, y, name=scope)


@dispatched("binary")
def divide(x: Tensor, y: Tensor, name: str | None = None) -> Tensor | float:
    """``x / y``, as Python would have it: two plain numbers give a plain number."""
    return x / y if name is None else true_quotient(x, y, name)


@dispatched("binary")
def realdiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The quotient of numbers; that of integers is cut off, and -1 where the divisor is 0.

    (TensorFlow 1.15 computes quotients of integers with XLA.)
    """
    x = convert(x)
    kind = x._dtype._base
    if not kind.is_integer or (isinstance(y, Tensor) and y._dtype._base is not kind):
        return apply(REAL_DIV, x, y, name=name)
    y = convert(y, kind)
    nothing = apply_op("Equal", y, convert(0, kind))
    quotient = apply(TRUNCATE_DIV, x, apply_op("SelectV2", nothing, apply_op("OnesLike", y), y))
    most = convert(-1 if kind.min < 0 else kind.max, kind)
    return apply_op("SelectV2", nothing, most, quotient, name=name or "RealDiv")


@dispatched("binary")
def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y`` rounded down, element by element; the type stays that of ``x``.

    As Python's ``//``: towards minus infinity for negative quotients.
    """
    return apply(FLOOR_DIV, x, y, name=name or "floordiv")


def floor_div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y`` rounded down, element by element; see ``tf.floordiv``."""
    return apply(FLOOR_DIV, x, y, name=name)


@dispatched("binary")
def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y`` of integers without its fraction: -7 by 2 is -3 (``floordiv``: -4)."""
    return apply(TRUNCATE_DIV, x, y, name=name)


@dispatched("binary")
def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The remainder with the sign of y, as Python's ``%``."""
    return apply(FLOOR_MOD, x, y, name=name)


mod = floormod


@dispatched("binary")
def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The remainder of ``truncatediv``, with the sign of ``x``: -7 by 2 leaves -1."""
    return apply(TRUNCATE_MOD, x, y, name=name)


@dispatched("binary")
def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y``, and 0 where ``y`` is 0; gradients are 0 there too."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype=x.dtype.base_dtype, name="y")
        return apply(DIV_NO_NAN, x, y, name=scope)


divide_no_nan = div_no_nan


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, even if x is infinite or NaN."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype=x.dtype.base_dtype, name="y")
        return apply(MUL_NO_NAN, x, y, name=scope)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y``, and 0 where ``x`` is 0, even if ``y`` is 0 too."""
    return apply(XDIVY, x, y, name=name)


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x * log(y)``, and 0 where ``x`` is 0, even if ``y`` is 0 too."""
    return apply(XLOGY, x, y, name=name)


@dispatched("binary")
def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x`` to the power ``y``, element by element, broadcast.

    A negative integer exponent of an integer is an error.
    """
    return apply(POW, x, y, name=name)


@dispatched("binary")
def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The larger of ``x`` and ``y``, element by element, broadcast; NaN if either is NaN."""
    return apply(MAXIMUM, x, y, name=name)


@dispatched("binary")
def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The smaller of ``x`` and ``y``, element by element, broadcast; NaN if either is NaN."""
    return apply(MINIMUM, x, y, name=name)


@dispatched("binary")
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``(x - y) * (x - y)`` element by element, broadcast."""
    return apply(SQUARED_DIFFERENCE, x, y, name=name)


@dispatched("binary")
def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The angle of the point (x, y) in (-π, π]; ``y`` comes first."""
    return apply(ATAN2, y, x, name=name)


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The floating point number next to x1 in the direction of x2."""
    return apply(NEXT_AFTER, x1, x2, name=name)


def scalar_mul(
    scalar: float | Tensor, x: IndexedSlices | Tensor, name: str | None = None
) -> IndexedSlices | Tensor:
    """A scalar times a tensor or IndexedSlices, which stay IndexedSlices."""
    scalar = convert(scalar, x.dtype.base_dtype, "scalar")
    if scalar._shape != ():
        raise ValueError(f"Only scalar multiply works, got shape {scalar.get_shape()}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(apply(MUL, scalar, x.values, name=name), x.indices, x.dense_shape)
    return apply(MUL, scalar, x, name=name)


scalar_mul_v2 = scalar_mul


def polyval(coeffs: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial with the given coefficients, the highest power first, at x."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
    with name_scope(name, "polyval", [x, *coeffs]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return gu.zeros_like(x)
        total = convert_to_tensor(coeffs[0], name="coeff_0")
        for i, coefficient in enumerate(coeffs[1:]):
            term = convert_to_tensor(coefficient, name=f"coeff_{i + 1}")
            total = apply(ADD_V2, term, apply(MUL, total, x, name="mul"), name="add")
        return total


# traits ------------------------------------------------------------------------------------------

add_traits(
    "Add AddV2",
    role="+",
    expression="{0} + {1}",
    into="np.add({0}, {1}, out={out})",
    neutral=(-0.0, False),
    fails="shapes",
    batching="elementwise",
)
add_traits(
    "Maximum", into="np.maximum({0}, {1}, out={out})", fails="shapes", batching="elementwise"
)
add_traits(
    "Minimum", into="np.minimum({0}, {1}, out={out})", fails="shapes", batching="elementwise"
)
add_traits("Div TruncateDiv", neutral=(1.0, True))
add_traits("Xlogy", heavy=True)
add_traits("Pow", neutral=(1.0, True), heavy=True, in_composites=True)
add_traits("SquaredDifference", fails="shapes", batching="elementwise")
add_traits("FloorDiv FloorMod", batching="elementwise")
add_traits(
    "Sub",
    role="-",
    expression="{0} - {1}",
    into="np.subtract({0}, {1}, out={out})",
    neutral=(0.0, True),
    fails="shapes",
    batching="elementwise",
)
add_traits(
    "Mul",
    role="*",
    expression="{0} * {1}",
    into="np.multiply({0}, {1}, out={out})",
    neutral=(1.0, False),
    fails="shapes",
    batching="elementwise",
)
add_traits(
    "RealDiv",
    role="/",
    expression="{0} / {1}",
    into="np.divide({0}, {1}, out={out})",
    neutral=(1.0, True),
    fails="shapes",
    batching="elementwise",
)
