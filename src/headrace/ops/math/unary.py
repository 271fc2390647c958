"""Element-wise functions of one tensor: ``tf.exp``, ``tf.sqrt``, ``tf.sigmoid`` and their like.

Most kernels are one NumPy ufunc. The constants in the others are integers: a Python float would
turn bfloat16 into float32. Derivatives that TensorFlow computes from the output have their own ops
(``TanhGrad(y, dy)``). Complex derivatives need the conjugate of ``y``: as in TensorFlow
``SqrtGrad``, ``RsqrtGrad`` and ``ReciprocalGrad`` take it themselves, ``TanhGrad`` and
``SigmoidGrad`` are given it.

    >>> y = tf.sigmoid(x, name="gate")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import GROUPS, NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.kernels.accel import ask
from headrace.ops.internal import gradient_helpers as gu
from headrace.ops.math.unary_gradients import (
    arc_slope,
    call_op,
    complex_abs_gradient,
    conjugate_input,
    conjugate_output,
    from_conjugate,
    from_output,
    reciprocal_grad_gradient,
    reciprocal_of,
    rsqrt_grad_gradient,
    sigmoid_grad_gradient,
    sqrt_grad_gradient,
    tanh_grad_gradient,
    times,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.opdef import _Marker
    from headrace.variables.variable import Variable

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "complex_abs",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "inv",
    "log",
    "log1p",
    "log_sigmoid",
    "neg",
    "negative",
    "reciprocal",
    "reciprocal_no_nan",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
]

GROUPS["complex"] = frozenset((dtypes.complex64, dtypes.complex128))
GROUPS["wide"] = frozenset((dtypes.float32, dtypes.float64))


# kernels ----------------------------------------------------------------------------------------


def apply_over(ufunc: Callable[..., Any], fresh: TensorLike) -> Any:
    """``ufunc(fresh)``, written over ``fresh`` where that is an array of our own making."""
    return ufunc(fresh, out=fresh) if type(fresh) is np.ndarray else ufunc(fresh)


def _conjugate(xp: ArrayNamespace, y: Array) -> Array:
    return xp.conjugate(y) if y.dtype.kind == "c" else y


def _one_minus(xp: ArrayNamespace, fresh: Array) -> Array:
    if type(fresh) is np.ndarray:
        return xp.subtract(1, fresh, out=fresh)
    return xp.subtract(1, fresh)


#: Elements from which the kernel library computes gradients of smooth functions.
_LIBRARY_FROM = 1 << 15


def _sigmoid(xp: ArrayNamespace, x: object) -> Any:
    # exp overflows to inf for very negative x, which gives the right 0; small results keep their
    # relative accuracy
    y = apply_over(xp.exp, xp.negative(x))
    y += 1
    return apply_over(xp.reciprocal, y)


def _rsqrt(xp: ArrayNamespace, x: Array) -> Any:
    return apply_over(xp.reciprocal, xp.sqrt(x))


def _round(xp: ArrayNamespace, x: Array) -> Array:
    return xp.positive(x) if x.dtype.kind in "iu" else xp.rint(x)


def _tanh_grad(xp: ArrayNamespace, y: Array, dy: Array) -> Array:
    if y.size >= _LIBRARY_FROM and xp.name == "numpy":
        result = ask("gradient", "TanhGrad", y, dy)
        if result is not None:
            return result
    t = _one_minus(xp, xp.square(y))
    t *= dy
    return t


def _sigmoid_grad(xp: ArrayNamespace, y: Array, dy: Array) -> Array:
    if y.size >= _LIBRARY_FROM and xp.name == "numpy":
        result = ask("gradient", "SigmoidGrad", y, dy)
        if result is not None:
            return result
    t = xp.subtract(1, y)
    t *= y
    t *= dy
    return t


def _zero_where(xp: ArrayNamespace, dy: Array, result: Array) -> Array:
    """TensorFlow's kernels give 0 where the gradient is 0, whatever the slope (infinite, NaN)."""
    zero = dy == 0
    if xp.name == "numpy" and not zero.any():
        return result
    chosen = xp.where(zero, result.dtype.type(0), result)
    return chosen if result.ndim or xp.name != "numpy" else chosen[()]


def _sqrt_grad(xp: ArrayNamespace, y: Array, dy: Array) -> Array:
    t = xp.divide(dy, _conjugate(xp, y))
    t /= 2
    return _zero_where(xp, dy, t)


def _rsqrt_grad(xp: ArrayNamespace, y: Array, dy: Array) -> Array:
    y = _conjugate(xp, y)
    t = xp.square(y)
    t *= y
    t *= dy
    t /= -2
    return _zero_where(xp, dy, t)


def _reciprocal_grad(xp: ArrayNamespace, y: Array, dy: Array) -> Array:
    t = xp.square(_conjugate(xp, y))
    t *= dy
    return _zero_where(xp, dy, apply_over(xp.negative, t))


# gradients --------------------------------------------------------------------------------------


def _sign(xp: ArrayNamespace, x: Array) -> Any:
    """(x > 0) - (x < 0): the sign of NaN is 0. For complex numbers x / |x|."""
    if x.dtype.kind == "c":
        return xp.sign(x)
    return xp.greater(x, 0).astype(x.dtype) - xp.less(x, 0).astype(x.dtype)


# definitions ------------------------------------------------------------------------------------


def _define(
    op_type: str, ufunc: str, grad: Callable[..., Any] | _Marker, types: str = "inexact"
) -> OpDef:
    return define(
        op_type,
        f"x: T -> y: T; T: type({types})",
        shape=shape_fns.unchanged,
        ufunc=ufunc,
        grad=grad,
        elementwise=True,
    )


def _define_kernel(
    op_type: str,
    kernel: Callable[..., Any],
    grad: Callable[..., Any] | _Marker,
    types: str = "inexact",
) -> OpDef:
    return define(
        op_type,
        f"x: T -> y: T; T: type({types})",
        shape=shape_fns.unchanged,
        kernel=kernel,
        grad=grad,
        elementwise=True,
    )


def _define_grad(op_type: str, kernel: Callable[..., Any], grad: Callable[..., Any]) -> OpDef:
    return define(
        op_type,
        "y: T, dy: T -> z: T; T: type(inexact)",
        shape=shape_fns.unchanged,
        kernel=_in_order(kernel),
        trusting=kernel,
        grad=grad,
        elementwise=True,
        same_shapes=True,
    )


def _in_order(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """TensorFlow's kernels of these do not look at the shape of dy: they walk both arrays in
    order. (Where dy has too few elements, TensorFlow reads on behind it.)
    """

    def walked(xp: ArrayNamespace, y: Array, dy: Array) -> Any:
        if y.shape != dy.shape:
            if dy.size < y.size:
                given = f"{shapes.show(dy.shape)} vs. {shapes.show(y.shape)}"
                raise errors.InvalidArgumentError(
                    None, None, f"dy must have as many elements as y: {given}"
                )
            dy = dy.reshape(-1)[: y.size].reshape(y.shape)
        return kernel(xp, y, dy)

    return walked


NEG = _define("Neg", "negative", lambda op, g: [gu.neg(g)], "number")
ABS = _define("Abs", "absolute", times(lambda op: call_op("Sign", op._inputs[0])), "real")
COMPLEX_ABS = define(
    "ComplexAbs",
    "x: T -> y: Tout; T: type(complex)=complex64, Tout: type(wide)=float32",
    shape=shape_fns.unchanged,
    ufunc="absolute",
    grad=complex_abs_gradient,
    elementwise=True,
)
SIGN = _define_kernel("Sign", _sign, lambda op, g: [gu.zeros_like(op._inputs[0])], "number")
RECIPROCAL = _define("Reciprocal", "reciprocal", from_output("ReciprocalGrad"))
INV = _define("Inv", "reciprocal", from_output("InvGrad"))
SQUARE = _define(
    "Square", "square", lambda op, g: [gu.mul(g, gu.mul(conjugate_input(op), 2))], "number"
)
SQRT = _define("Sqrt", "sqrt", from_output("SqrtGrad"))
RSQRT = _define_kernel("Rsqrt", _rsqrt, from_output("RsqrtGrad"))
EXP = _define("Exp", "exp", times(conjugate_output))
EXPM1 = _define("Expm1", "expm1", times(lambda op: call_op("Exp", conjugate_input(op))))
LOG = _define("Log", "log", times(lambda op: reciprocal_of(conjugate_input(op))))
LOG1P = _define("Log1p", "log1p", times(lambda op: reciprocal_of(gu.add(1, conjugate_input(op)))))
SIN = _define("Sin", "sin", times(lambda op: call_op("Cos", conjugate_input(op))))
COS = _define("Cos", "cos", lambda op, g: [gu.neg(gu.mul(g, call_op("Sin", conjugate_input(op))))])
TAN = _define(
    "Tan", "tan", times(lambda op: gu.square(reciprocal_of(call_op("Cos", conjugate_input(op)))))
)
ASIN = _define("Asin", "arcsin", times(arc_slope))
ACOS = _define("Acos", "arccos", lambda op, g: [gu.neg(gu.mul(g, arc_slope(op)))])
ATAN = _define(
    "Atan", "arctan", times(lambda op: reciprocal_of(gu.add(1, gu.square(conjugate_input(op)))))
)
SINH = _define("Sinh", "sinh", times(lambda op: call_op("Cosh", conjugate_input(op))))
COSH = _define("Cosh", "cosh", times(lambda op: call_op("Sinh", conjugate_input(op))))
TANH = _define("Tanh", "tanh", from_conjugate("TanhGrad"))
ASINH = _define(
    "Asinh", "arcsinh", lambda op, g: [gu.div(g, call_op("Cosh", conjugate_output(op)))]
)
ACOSH = _define(
    "Acosh", "arccosh", lambda op, g: [gu.div(g, call_op("Sinh", conjugate_output(op)))]
)
ATANH = _define(
    "Atanh", "arctanh", times(lambda op: reciprocal_of(gu.sub(1, gu.square(conjugate_input(op)))))
)
SIGMOID = _define_kernel("Sigmoid", _sigmoid, from_conjugate("SigmoidGrad"))
FLOOR = _define("Floor", "floor", NOT_DIFFERENTIABLE, "float")
CEIL = _define("Ceil", "ceil", NOT_DIFFERENTIABLE, "float")
RINT = _define("Rint", "rint", NOT_DIFFERENTIABLE, "float")
ROUND = _define_kernel("Round", _round, NOT_DIFFERENTIABLE, "number")

TANH_GRAD = _define_grad("TanhGrad", _tanh_grad, tanh_grad_gradient)
SIGMOID_GRAD = _define_grad("SigmoidGrad", _sigmoid_grad, sigmoid_grad_gradient)
SQRT_GRAD = _define_grad("SqrtGrad", _sqrt_grad, sqrt_grad_gradient)
RSQRT_GRAD = _define_grad("RsqrtGrad", _rsqrt_grad, rsqrt_grad_gradient)
RECIPROCAL_GRAD = _define_grad("ReciprocalGrad", _reciprocal_grad, reciprocal_grad_gradient)
INV_GRAD = _define_grad("InvGrad", _reciprocal_grad, reciprocal_grad_gradient)


# what users call --------------------------------------------------------------------------------


def is_sparse(x: object) -> bool:
    """Whether x is a SparseTensor (the class lives higher up)."""
    return (
        not isinstance(x, Tensor) and hasattr(x, "dense_shape") and not isinstance(x, IndexedSlices)
    )


def on_values(opdef: OpDef, x: Any, name: str | None) -> Any:
    """An op that maps 0 to 0 applies to the values of a SparseTensor."""
    if is_sparse(x):
        return type(x)(x.indices, apply(opdef, x.values, name=name), x.dense_shape)
    return apply(opdef, x, name=name)


@dispatched("unary")
def abs(x: object, name: str | None = None) -> Any:
    """The absolute value; of a complex tensor the modulus, as a real tensor."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, (complex, list, tuple)):
        x = convert_to_tensor(x, name="x")
        dtype = x.dtype
    if not getattr(dtype, "is_complex", getattr(dtype, "kind", "") == "c"):
        return on_values(ABS, x, name)
    return complex_abs(x, name)


def complex_abs(x: Any, name: str | None = None) -> Any:
    if is_sparse(x):
        return type(x)(x.indices, complex_abs(x.values, name), x.dense_shape)
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, name="x")
    return apply(COMPLEX_ABS, x, Tout=gu.real_dtype(x), name=name or "Abs")


@dispatched("unary")
def negative(x: object, name: str | None = None) -> Any:
    """Minus ``x``, element by element; also the operator ``-x``."""
    return on_values(NEG, x, name)


neg = negative  # before TF 1.0


@dispatched("unary")
def sign(x: TensorLike, name: str | None = None) -> Any:
    """-1, 0 or 1; for complex numbers x / |x|."""
    return on_values(SIGN, x, name)


@dispatched("unary")
def square(x: object, name: str | None = None) -> Any:
    """``x * x`` element by element."""
    return on_values(SQUARE, x, name)


@dispatched("unary")
def sqrt(x: TensorLike, name: str | None = None) -> Any:
    """The square root, element by element; NaN for negative numbers."""
    return on_values(SQRT, x, name)


@dispatched("unary")
def tanh(x: TensorLike, name: str | None = None) -> Any:
    """The hyperbolic tangent, element by element, between -1 and 1."""
    return on_values(TANH, x, name)


@dispatched("unary")
def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """``1 / (1 + exp(-x))`` element by element, between 0 and 1."""
    return apply(SIGMOID, x, name=name)


@dispatched("unary")
def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), without loss for large negative x."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        return apply(NEG, apply_op("Softplus", apply(NEG, x)), name=scope)


@dispatched("unary")
def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """``1 / x`` element by element."""
    return apply(RECIPROCAL, x, name=name)


inv = reciprocal  # before TF 1.0


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = convert_to_tensor(1, dtype=x.dtype.base_dtype, name="one")
        return apply_op("DivNoNan", one, x, name=scope)


@dispatched("unary")
def round(x: TensorLike, name: str | None = None) -> Tensor:
    """To the nearest integer, halves to the even one. Integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply(ROUND, x, name=name)


@dispatched("unary")
def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """``1 / sqrt(x)`` element by element."""
    return apply(RSQRT, x, name=name)


@dispatched("unary")
def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """e to the power ``x``, element by element."""
    return apply(EXP, x, name=name)


@dispatched("unary")
def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(x) - 1, accurate near 0."""
    return apply(EXPM1, x, name=name)


@dispatched("unary")
def log(x: Tensor | Variable, name: str | None = None) -> Tensor:
    """The natural logarithm, element by element; minus infinity of 0, NaN of negative numbers."""
    return apply(LOG, x, name=name)


@dispatched("unary")
def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """log(1 + x), accurate near 0."""
    return apply(LOG1P, x, name=name)


@dispatched("unary")
def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """The sine of angles in radians."""
    return apply(SIN, x, name=name)


@dispatched("unary")
def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """The cosine of angles in radians."""
    return apply(COS, x, name=name)


@dispatched("unary")
def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """The tangent of angles in radians."""
    return apply(TAN, x, name=name)


@dispatched("unary")
def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in [-π/2, π/2] with this sine; NaN outside of [-1, 1]."""
    return apply(ASIN, x, name=name)


@dispatched("unary")
def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in [0, π] with this cosine; NaN outside of [-1, 1]."""
    return apply(ACOS, x, name=name)


@dispatched("unary")
def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in [-π/2, π/2] with this tangent; ``tf.atan2`` knows the quadrant."""
    return apply(ATAN, x, name=name)


@dispatched("unary")
def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic sine, element by element."""
    return apply(SINH, x, name=name)


@dispatched("unary")
def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic cosine, element by element."""
    return apply(COSH, x, name=name)


@dispatched("unary")
def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return apply(ASINH, x, name=name)


@dispatched("unary")
def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""
    return apply(ACOSH, x, name=name)


@dispatched("unary")
def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside of [-1, 1]."""
    return apply(ATANH, x, name=name)


@dispatched("unary")
def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """The largest whole number that is not greater, as a floating number."""
    return apply(FLOOR, x, name=name)


@dispatched("unary")
def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """The smallest whole number that is not less, as a floating number."""
    return apply(CEIL, x, name=name)


@dispatched("unary")
def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """To the nearest integer, halves to the even one."""
    return apply(RINT, x, name=name)


# traits ------------------------------------------------------------------------------------------

add_traits(
    "Neg",
    expression="-{0}",
    into="np.negative({0}, out={out})",
    fails="never",
    batching="elementwise",
)
add_traits(
    "Square",
    expression="{0} * {0}",
    into="np.multiply({0}, {0}, out={out})",
    fails="never",
    batching="elementwise",
)
add_traits("Tanh", into="np.tanh({0}, out={out})", role="activation", fails="never", heavy=True)
add_traits("Exp", into="np.exp({0}, out={out})", fails="never", heavy=True)
add_traits("Log", into="np.log({0}, out={out})", fails="never", heavy=True)
add_traits("Sqrt", into="np.sqrt({0}, out={out})", fails="never", batching="elementwise")
add_traits("Sin", into="np.sin({0}, out={out})", fails="never", heavy=True)
add_traits("Cos", into="np.cos({0}, out={out})", fails="never", heavy=True)
add_traits("Abs", into="np.absolute({0}, out={out})", fails="never", batching="elementwise")
add_traits("Floor", into="np.floor({0}, out={out})", fails="never", batching="elementwise")
add_traits("Ceil", into="np.ceil({0}, out={out})", fails="never", batching="elementwise")
add_traits("Log1p", into="np.log1p({0}, out={out})", fails="never", heavy=True)
add_traits("Expm1", into="np.expm1({0}, out={out})", fails="never", heavy=True)
add_traits("Sigmoid", role="activation", fails="never", heavy=True)
add_traits("Rsqrt Reciprocal", fails="never")
add_traits("Exp Tanh Sqrt Rsqrt", in_composites=True)
add_traits("Sign Round Rint", fails="never", batching="elementwise")
add_traits("Tan Sinh Cosh", fails="never", heavy=True)
add_traits("Atan Asin Acos", heavy=True)
