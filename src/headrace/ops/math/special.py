"""Special functions: error function, gamma family, zeta, incomplete beta, Bessel.

SciPy computes them in float32 and float64; half and bfloat16 go through float32.

    >>> p = 0.5 * tf.erfc(-x / np.sqrt(2))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.ops.internal import gradient_helpers as gu
from headrace.ops.math.unary import on_values

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.opdef import _Marker
    from headrace.core.tensor import Tensor

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf",
    "erfc",
    "igamma",
    "igammac",
    "lbeta",
    "lgamma",
    "polygamma",
    "zeta",
]


# kernels ----------------------------------------------------------------------------------------


def _special(function: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, x: Array) -> Any:
        f = getattr(xp, function)
        if x.dtype.itemsize > 2:
            return f(x)
        return f(x.astype(np.float32)).astype(x.dtype)

    return kernel


def _digamma(xp: ArrayNamespace, x: Array) -> Array:
    """TensorFlow's digamma: infinite at its poles, 0, -1, -2, ..."""
    y = _special("digamma")(xp, x)
    return xp.where((x <= 0) & (x == xp.floor(x)), x.dtype.type("inf"), y)


def _lgamma(xp: ArrayNamespace, x: Array) -> Array:
    """Infinite at -inf too, as at the poles."""
    y = _special("gammaln")(xp, x)
    return xp.where(xp.isinf(x), x.dtype.type("inf"), y)


def _igamma(xp: ArrayNamespace, a: Array, x: Array) -> Array:
    value = xp.where(a > 0, xp.gammainc(a, x), x.dtype.type("nan"))
    return xp.where(x == 0, x.dtype.type(0), value)


def _igammac(xp: ArrayNamespace, a: Array, x: Array) -> Array:
    return xp.where(a > 0, xp.gammaincc(a, x), x.dtype.type("nan"))


#: Central differences of order 8: weights of f(a + kh) - f(a - kh), k = 1...4.
_STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def _igamma_grad_a(xp: Any, a: Array, x: Any) -> Any:
    """dP(a, x)/da.

    There is no closed form. P and Q = 1 - P are smooth in a, so a difference of high order in
    float64 is good to about ten digits; the smaller of the two is taken, so that nothing cancels in
    the tails.
    """
    dtype = x.dtype
    a, x = xp.asarray(a, np.float64), xp.asarray(x, np.float64)
    h = xp.minimum(a / 8, 0.02 * xp.maximum(1.0, xp.sqrt(a)))
    by_p, by_q = 0.0, 0.0
    for k, weight in enumerate(_STENCIL, 1):
        high, low = a + k * h, a - k * h
        by_p = by_p + weight * (xp.gammainc(high, x) - xp.gammainc(low, x))
        by_q = by_q - weight * (xp.gammaincc(high, x) - xp.gammaincc(low, x))
    return (xp.where(x < a, by_p, by_q) / h).astype(dtype)


def _polygamma(xp: ArrayNamespace, a: Array, x: Array) -> Array:
    """(-1)^(a+1) a! zeta(a+1, x); digamma for a = 0, NaN where a is not a natural number."""
    n = xp.asarray(a)
    factorial = xp.exp(xp.gammaln(n + 1))
    odd = xp.fmod(n, 2) == 1
    value = xp.where(odd, factorial, -factorial) * xp.zeta(n + 1, x)
    value = xp.where(n == 0, _digamma(xp, x), value)
    return xp.where((n >= 0) & (n == xp.floor(n)), value, value.dtype.type("nan"))


def _betainc(xp: ArrayNamespace, a: Array, b: Array, x: Array) -> Array:
    """TensorFlow has no answer for parameters that are not positive and finite."""
    wide = [(name, t.shape) for name, t in (("a", a), ("b", b), ("x", x)) if t.ndim]
    for name, shape in wide[1:]:
        if shape != wide[0][1]:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Shapes of {wide[0][0]} and {name} are inconsistent: "
                f"{shapes.show(wide[0][1])} vs. {shapes.show(shape)}",
            )
    inside = (a > 0) & (b > 0) & xp.isfinite(a) & xp.isfinite(b)
    return xp.where(inside, xp.betainc(a, b, x), np.nan).astype(x.dtype)


def _betainc_shape(c: Inference) -> list[Shape]:
    """Scalars, and otherwise one shape."""
    out: Shape = ()
    for shape in c.shapes():
        if shape == ():
            continue
        if out == ():
            out = shape
        elif out is None or shape is None:
            out = out if shape is None else shape
        elif len(out) != len(shape):
            raise ValueError(f"Shapes must be equal rank, but are {len(out)} and {len(shape)}")
        else:
            out = shapes.merge(out, shape)
    return [out if all(s is not None for s in c.shapes()) or out != () else None]


# gradients --------------------------------------------------------------------------------------


def _call(op_type: str, *inputs: float | Tensor) -> Tensor:
    return apply_op(op_type, *inputs)


def _gaussian(x: Tensor) -> Any:
    """2 / sqrt(pi) exp(-x^2)."""
    return gu.mul(_call("Exp", gu.neg(gu.square(x))), 2 / math.sqrt(math.pi))


def _erf_grad(op: Operation, g: Tensor) -> list[Any]:
    return [gu.mul(g, _gaussian(op._inputs[0]))]


def _erfc_grad(op: Operation, g: Tensor) -> list[Any]:
    return [gu.neg(gu.mul(g, _gaussian(op._inputs[0])))]


def _lgamma_grad(op: Operation, g: Tensor) -> list[Any]:
    return [gu.mul(g, _call("Digamma", op._inputs[0]))]


def _digamma_grad(op: Operation, g: Tensor) -> list[Any]:
    x = op._inputs[0]
    one = convert_to_tensor(1, dtype=x.dtype.base_dtype)
    return [gu.mul(g, _call("Polygamma", one, x))]


def _bessel_i0e_grad(op: Operation, g: Tensor) -> list[Any]:
    x = op._inputs[0]
    slope = gu.sub(_call("BesselI1e", x), gu.mul(_call("Sign", x), op._outputs[0]))
    return [gu.mul(g, slope)]


def _bessel_i1e_grad(op: Operation, g: Tensor) -> list[Any]:
    # i0e - y (sign x + 1/x), which is 1/2 at 0
    x, y = op._inputs[0], op._outputs[0]
    ones = _call("OnesLike", x)
    away = _call("Greater", _call("Abs", x), float(np.finfo(np.float32).eps))
    safe = gu.select(away, x, ones)
    slope = gu.sub(
        _call("BesselI0e", safe), gu.mul(y, gu.add(_call("Sign", safe), _call("Reciprocal", safe)))
    )
    return [gu.mul(g, gu.select(away, slope, gu.mul(ones, 0.5)))]


def _igamma_partials(op: Operation) -> tuple[Any, Any]:
    a, x = op._inputs
    by_a = _call("IgammaGradA", a, x)
    log_by_x = gu.sub(gu.add(gu.neg(x), gu.mul(gu.sub(a, 1), _call("Log", x))), _call("Lgamma", a))
    return by_a, _call("Exp", log_by_x)


def _igamma_grad(op: Operation, g: Tensor) -> list[Any]:
    by_a, by_x = _igamma_partials(op)
    return gu.unbroadcast(op, gu.mul(by_a, g), gu.mul(by_x, g))


def _igammac_grad(op: Operation, g: Tensor) -> list[Any]:
    return [gu.neg(d) for d in _igamma_grad(op, g)]


def _zeta_grad(op: Operation, g: Tensor) -> list[Any]:
    x, q = op._inputs
    by_q = gu.mul(gu.neg(x), _call("Zeta", gu.add(x, 1), q))
    return gu.unbroadcast(op, None, gu.mul(by_q, g))


def _polygamma_grad(op: Operation, g: Tensor) -> list[Any]:
    n, x = op._inputs
    return gu.unbroadcast(op, None, gu.mul(_call("Polygamma", gu.add(n, 1), x), g))


def _betainc_grad(op: Operation, g: Tensor) -> list[Any]:
    """By x only, as TensorFlow: x^(a-1) (1-x)^(b-1) / B(a, b)."""
    a, b, x = op._inputs
    log_beta = gu.sub(gu.add(_call("Lgamma", a), _call("Lgamma", b)), _call("Lgamma", gu.add(a, b)))
    powers = gu.add(
        gu.mul(gu.sub(b, 1), _call("Log1p", gu.neg(x))), gu.mul(gu.sub(a, 1), _call("Log", x))
    )
    slope = gu.mul(_call("Exp", gu.sub(powers, log_beta)), g)
    return [None, None, gu.reduce_to(x, op._outputs[0], slope, None)[0]]


# definitions ------------------------------------------------------------------------------------


def _define(op_type: str, kernel: str | Callable[..., Any], grad: Callable[..., Any]) -> OpDef:
    return define(
        op_type,
        "x: T -> y: T; T: type(float)",
        shape=shape_fns.unchanged,
        kernel=_special(kernel) if isinstance(kernel, str) else kernel,
        grad=grad,
        elementwise=True,
    )


def _define_pair(
    op_type: str, inputs: str, kernel: Callable[..., Any], grad: Callable[..., Any] | _Marker
) -> OpDef:
    return define(
        op_type,
        f"{inputs} -> z: T; T: type(wide)",
        shape=shape_fns.broadcast,
        kernel=kernel,
        grad=grad,
        elementwise=True,
    )


ERF = _define("Erf", "erf", _erf_grad)
ERFC = _define("Erfc", "erfc", _erfc_grad)
LGAMMA = _define("Lgamma", _lgamma, _lgamma_grad)
DIGAMMA = _define("Digamma", _digamma, _digamma_grad)
BESSEL_I0E = _define("BesselI0e", "i0e", _bessel_i0e_grad)
BESSEL_I1E = _define("BesselI1e", "i1e", _bessel_i1e_grad)
IGAMMA = _define_pair("Igamma", "a: T, x: T", _igamma, _igamma_grad)
IGAMMAC = _define_pair("Igammac", "a: T, x: T", _igammac, _igammac_grad)
IGAMMA_GRAD_A = _define_pair("IgammaGradA", "a: T, x: T", _igamma_grad_a, NO_GRADIENT_YET)
ZETA = _define_pair("Zeta", "x: T, q: T", lambda xp, x, q: xp.zeta(x, q), _zeta_grad)
POLYGAMMA = _define_pair("Polygamma", "a: T, x: T", _polygamma, _polygamma_grad)
BETAINC = define(
    "Betainc",
    "a: T, b: T, x: T -> z: T; T: type(wide)",
    shape=_betainc_shape,
    kernel=_betainc,
    grad=_betainc_grad,
    elementwise=True,
)


# what users call --------------------------------------------------------------------------------


@dispatched("unary")
def erf(x: TensorLike, name: str | None = None) -> Any:
    """The Gauss error function, element by element, between -1 and 1."""
    return on_values(ERF, x, name)


@dispatched("unary")
def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """``1 - erf(x)``, accurate for large ``x``."""
    return apply(ERFC, x, name=name)


@dispatched("unary")
def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    return apply(LGAMMA, x, name=name)


@dispatched("unary")
def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of ``lgamma``, element by element."""
    return apply(DIGAMMA, x, name=name)


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of order ``a`` of digamma at ``x``, element by element."""
    return apply(POLYGAMMA, a, x, name=name)


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function: the sum of ``(q + n) ** -x`` over ``n = 0, 1, 2, ...``."""
    return apply(ZETA, x, q, name=name)


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The lower regularized incomplete gamma function P(a, x)."""
    return apply(IGAMMA, a, x, name=name)


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The upper regularized incomplete gamma function, 1 - P(a, x)."""
    return apply(IGAMMAC, a, x, name=name)


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized incomplete beta integral of ``x`` in [0, 1] for ``a``, ``b`` above 0.

    All have one shape, or are scalars. It is the cumulative distribution of Beta(a, b).

        tf.math.betainc(1.0, 1.0, 0.25)  # 0.25
    """
    return apply(BETAINC, a, b, x, name=name)


def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 0."""
    return apply(BESSEL_I0E, x, name=name)


def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 1."""
    return apply(BESSEL_I1E, x, name=name)


def _unscaled(scaled: OpDef, default_name: str, x: TensorLike, name: str | None) -> Tensor:
    with name_scope(name, default_name, [x]):
        x = convert_to_tensor(x, name="x")
        return apply_op("Mul", _call("Exp", _call("Abs", x)), apply(scaled, x), name="mul")


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _unscaled(BESSEL_I0E, "bessel_i0", x, name)


def bessel_i1(x: Tensor, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return _unscaled(BESSEL_I1E, "bessel_i1", x, name)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """log |Beta(x)| along the last axis."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        last = np.array([-1], np.int32)
        log_product = apply_op("Sum", apply(LGAMMA, x), last, keep_dims=False)
        log_total = apply(LGAMMA, apply_op("Sum", x, last, keep_dims=False))
        return apply_op("Sub", log_product, log_total, name="sub")


# traits ------------------------------------------------------------------------------------------

add_traits("Erf", fails="never", heavy=True, in_composites=True)
add_traits("Erfc", heavy=True)
