"""The normal distribution's functions: its cumulative distribution, logarithm and inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant
from headrace.ops.array.filling import fill, zeros_like
from headrace.ops.array.selecting import where_v2
from headrace.ops.math.binary import maximum, minimum
from headrace.ops.math.comparison import greater, less
from headrace.ops.math.special import erf, erfc
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp, log, log1p, sqrt, square

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["erfinv", "log_cdf_laplace", "log_ndtr", "ndtr", "ndtri"]

#: Where the logarithm's asymptotic series takes over, and where log(1 - x) = -x does.
_SEGMENTS = {np.float32: (-10.0, 5.0), np.float64: (-20.0, 8.0)}

# Rational approximations of the inverse (Cephes' ndtri), lowest power first.
_P0 = (-1.2391658386738125, 13.931260938727968, -56.67628574690703, 98.00107541859997,
       -59.96335010141079)  # fmt: skip
_Q0 = (-1.1833162112133, 15.90562251262117, -82.03722561683334, 200.26021238006066,
       -225.46268785411937, 86.36024213908905, 4.676279128988815, 1.9544885833814176,
       1.0)  # fmt: skip
_P1 = (-8.574567851546854e-4, -3.504246268278482e-2, -1.402560791713545e-1, 2.1866330685079025,
       14.684956192885803, 44.08050738932008, 57.16281922464213, 31.525109459989388,
       4.0554489230596245)  # fmt: skip
_Q1 = (-9.332594808954574e-4, -3.808064076915783e-2, -1.4218292285478779e-1, 2.504649462083094,
       15.04253856929075, 41.3172038254672, 45.39076351288792, 15.779988325646675,
       1.0)  # fmt: skip
_P2 = (6.239745391849833e-9, 2.6580697468673755e-6, 3.0158155350823543e-4, 1.2371663481782003e-2,
       2.0148538954917908e-1, 1.3330346081580755, 3.9388102529247444, 6.915228890689842,
       3.2377489177694603)  # fmt: skip
_Q2 = (6.790194080099813e-9, 2.8924786474538068e-6, 3.2801446468212774e-4, 1.3420400608854318e-2,
       2.1623699359449663e-1, 1.3770209948908132, 3.6798356385616087, 6.02427039364742,
       1.0)  # fmt: skip


def _checked(x: TensorLike, name: str) -> Tensor:
    x = convert_to_tensor(x, name=name)
    if x.dtype.as_numpy_dtype not in _SEGMENTS:
        raise TypeError(
            f"{name}.dtype={x.dtype} is not handled, see docstring for supported types."
        )
    return x


def ndtr(x: TensorLike, name: str = "ndtr") -> Tensor:
    """P(X <= x) of the standard normal distribution; float32 or float64."""
    with name_scope(name, values=[x]):
        return _ndtr(_checked(x, "x"))


def _ndtr(x: Tensor) -> Tensor:
    half_sqrt_2 = constant(0.5 * np.sqrt(2.0), dtype=x.dtype, name="half_sqrt_2")
    w = x * half_sqrt_2
    z = abs_of(w)
    tail = where_v2(greater(w, 0.0), 2.0 - erfc(z), erfc(z))
    return 0.5 * where_v2(less(z, half_sqrt_2), 1.0 + erf(w), tail)


def ndtri(p: TensorLike, name: str = "ndtri") -> Tensor:
    """The inverse of :func:`ndtr`."""
    with name_scope(name, values=[p]):
        return _ndtri(_checked(p, "p"))


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    kind = x.dtype.as_numpy_dtype
    value = zeros_like(x)
    for c in reversed(coefficients):
        value = kind(c) + value * x
    return value


def _ndtri(p: Tensor) -> Tensor:
    kind = p.dtype.as_numpy_dtype
    smaller = where_v2(p > -np.expm1(-2.0), 1.0 - p, p)
    safe = where_v2(smaller <= 0.0, fill(shape_of(p), kind(0.5)), smaller)
    w = safe - 0.5
    ww = square(w)
    middle = w + w * ww * (_polynomial(ww, _P0) / _polynomial(ww, _Q0))
    middle *= -np.sqrt(2.0 * np.pi)
    z = sqrt(-2.0 * log(safe))
    first = z - log(z) / z
    inverse = 1.0 / z
    far = first - _polynomial(inverse, _P2) / _polynomial(inverse, _Q2) / z
    near = first - _polynomial(inverse, _P1) / _polynomial(inverse, _Q1) / z
    x = where_v2(safe > np.exp(-2.0), middle, where_v2(z >= 8.0, far, near))
    x = where_v2(p > 1.0 - np.exp(-2.0), x, -x)
    infinity = fill(shape_of(p), constant(np.inf, dtype=p.dtype))
    return where_v2(p <= 0.0, -infinity, where_v2(p >= 1.0, infinity, x))


def log_ndtr(x: TensorLike, series_order: int = 3, name: str = "log_ndtr") -> Tensor:
    """The logarithm of :func:`ndtr`, exact far below zero by a series of ``series_order`` terms."""
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        limit = "non-negative" if series_order < 0 else "<= 30"
        raise ValueError(f"series_order must be {limit}.")
    with name_scope(name, values=[x]):
        x = _checked(x, "x")
        kind = x.dtype.as_numpy_dtype
        lower, upper = (kind(s) for s in _SEGMENTS[kind])
        inner = log(_ndtr(maximum(x, lower)))
        below = _log_ndtr_lower(minimum(x, lower), series_order)
        return where_v2(greater(x, upper), -_ndtr(-x), where_v2(greater(x, lower), inner, below))


def _log_ndtr_lower(x: Tensor, series_order: int) -> Any:
    scale = -0.5 * square(x) - log(-x) - 0.5 * np.log(2.0 * np.pi)
    return scale + log(_asymptotic_series(x, series_order))


def _asymptotic_series(x: Tensor, series_order: int) -> Any:
    kind = x.dtype.as_numpy_dtype
    if series_order <= 0:
        return kind(1)
    x_2 = square(x)
    even, odd, power = zeros_like(x), zeros_like(x), x_2
    for n in range(1, series_order + 1):
        term = kind(np.prod(np.arange(2 * n - 1, 1, -2))) / power
        if n % 2:
            odd += term
        else:
            even += term
        power *= x_2
    return 1.0 + even - odd


def erfinv(x: TensorLike, name: str = "erfinv") -> Any:
    """The inverse of ``tf.erf``."""
    with name_scope(name, values=[x]):
        return ndtri((_checked(x, "x") + 1.0) / 2.0) / np.sqrt(2)


def log_cdf_laplace(x: TensorLike, name: str = "log_cdf_laplace") -> Tensor:
    """The logarithm of P(X <= x) of the standard Laplace distribution."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        upper = log1p(-0.5 * exp(-abs_of(x)))
        return where_v2(x < 0.0, -np.log(2.0) + x, upper)
