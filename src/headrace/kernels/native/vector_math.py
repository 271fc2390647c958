"""exp, log, tanh and the others for values of the IR builder, without branches.

Each function takes a float32 or float64 value of any number of lanes and gives one of the same
type, within a few units in the last place (``tests/kernels/test_vector_math.py`` goes over all
exponents). NaN gives NaN, infinities, signed zeros and denormals are as in NumPy. A type that a
function is not in the table for is computed by NumPy, and element_rules.py says why.

The method is the usual one: an argument is reduced with fused products to an interval around 0, a
polynomial (least maximum error, fitted for this) does the rest, and the exponent goes back in
through the bits of the number.

    >>> y = MATH["Tanh"]["f32"](f, x)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Type, Value

__all__ = ["MATH", "ULPS", "erf", "exp", "expm1", "log", "log1p", "rsqrt", "sigmoid"]
__all__ += ["softplus", "tanh"]

_LN2_HIGH32, _LN2_LOW32 = 0.693359375, -2.12194440e-4
_LN2_HIGH64, _LN2_LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOG2E = 1.4426950408889634
_INF = math.inf

#: (e**r - 1 - r) / r**2 for |r| <= 0.35, highest power first.
_EXP32 = [0.0013951693, 0.008369591, 0.041666187, 0.16666514, 0.5]
_EXPM1_32 = [0.00019913240, 0.0013942098, 0.008333275, 0.041666340, 0.16666667, 0.5]
_EXP64 = [1 / math.factorial(n) for n in range(14, 1, -1)]
#: (log(1 + f) - f + f**2 / 2) / f**3 between sqrt(1/2) and sqrt(2).
_LOG32 = [
    0.069145694,
    -0.11789402,
    0.1187312,
    -0.12384427,
    0.14218649,
    -0.16669247,
    0.20002227,
    -0.24999987,
    0.3333331,
]
#: (log(1 + f) - 2 s) / s in powers of s**2, s = f / (2 + f).
_LOG64 = [
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
]
#: tanh(x) / x in powers of x**2 up to 9.02: a quotient, least relative error; the first coefficient
#: below is 1.
_TANH_ABOVE = [0.017159313, 26.518188, 4501.4443, 172373.89, 1288322.2]
_TANH_BELOW = [422.9685, 33330.285, 601814.4, 1288322.2]
#: (e - log(1 + e)) / e**2 between 0 and 1: a quotient, least relative error.
_LOG1P_ABOVE = [0.00036655267, 0.119159535, 0.53697157, 0.5]
_LOG1P_BELOW = [0.12956305, 0.8987275, 1.7406098, 1.0]
#: erf(x) / x - 1 in powers of x**2 below 0.93, and log(1 - erf(x)) above.
_ERF_SMALL = [
    8.345211e-05,
    -0.0008137434,
    0.005200634,
    -0.02685927,
    0.11283694,
    -0.37612635,
    0.12837917,
]
_ERF_LARGE = [
    -2.1162528e-05,
    0.00043522572,
    -0.0041746744,
    0.025128704,
    -0.10829406,
    -0.63333458,
    -1.1295209,
    0.00017588369,
]
_SIN = [(-1) ** (n // 2) / math.factorial(n) for n in (11, 9, 7, 5, 3)]
_COS = [(-1) ** (n // 2) / math.factorial(n) for n in (12, 10, 8, 6, 4, 2)]
#: pi / 2 in two parts, for arguments of float32 in float64.
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
#: Above it the reduction of sines loses bits: the C library computes them.
_LARGE_ANGLE = float(2**28)


def _is32(x: Value) -> bool:
    return x.type.element == "f32"


def _power_of_two(f: Function, n: Value) -> Value:
    """2**n for whole numbers (as floats) in the range of normal exponents.

    The number that is added leaves n in the low bits: a conversion to an integer that is defined
    for NaN, too, takes LLVM ten times as long.
    """
    bits, bias = (23, 127) if _is32(n) else (52, 1023)
    shifted = f.bits(n + float(3 << (bits - 1)))
    return f.from_bits((shifted << bits) + (bias << bits))


def _reduced(f: Function, x: Value) -> tuple[Value, Value]:
    """``x = n ln 2 + r`` with a whole n and |r| <= ln(2) / 2."""
    n = f.round(x * _LOG2E)
    high, low = (_LN2_HIGH32, _LN2_LOW32) if _is32(x) else (_LN2_HIGH64, _LN2_LOW64)
    return n, f.fma(n, -low, f.fma(n, -high, x))


def exp(f: Function, x: Value) -> Value:
    """e**x, 1 ulp."""
    low, high = (-104.0, 89.0) if _is32(x) else (-746.0, 710.0)
    n, r = _reduced(f, f.clamp(x, low, high))
    p = f.fma(r * r, f.polynomial(r, _EXP32 if _is32(x) else _EXP64), r) + 1.0
    half = f.floor(n * 0.5)
    return p * _power_of_two(f, half) * _power_of_two(f, n - half)


def expm1(f: Function, x: Value) -> Value:
    """e**x - 1, 1 ulp."""
    low, high = (-18.0, 89.0) if _is32(x) else (-38.0, 710.0)
    n, r = _reduced(f, f.clamp(x, low, high))
    p = f.fma(r * r, f.polynomial(r, _EXPM1_32 if _is32(x) else _EXP64), r)
    t = _power_of_two(f, n - 1.0)
    found = f.fma(t, p, t - 0.5) * 2.0
    return f.select(f.compare("eq", x, 0.0), x, found)


def log(f: Function, x: Value) -> Value:
    """The natural logarithm, 1 ulp; NaN below 0, minus infinity at 0."""
    f_part, exponent = _mantissa(f, x)
    found = _log_of(f, f_part, exponent)
    found = f.select(x < _INF, found, x)  # infinity and NaN as they are
    found = f.select(f.compare("eq", x, 0.0), -_INF, found)
    return f.select(x < 0.0, math.nan, found)


def _mantissa(f: Function, x: Value) -> tuple[Value, Value]:
    """``x = (1 + m) * 2**e`` with 1 + m between sqrt(1/2) and sqrt(2): m and e."""
    single = _is32(x)
    least, scale, shift = (2.0**-126, 2.0**23, 23) if single else (2.0**-1022, 2.0**52, 52)
    root, mask = (0x3F3504F3, 0x7FFFFF) if single else (0x3FE6A09E667F3BCD, (1 << 52) - 1)
    is_small = x < least
    bits = f.bits(f.select(is_small, x * scale, x)) - root
    m = f.from_bits((bits & mask) + root) - 1.0
    exponent = f.convert(bits >> shift, x.type.element)
    return m, exponent - f.select(is_small, f.like(float(shift), x), 0.0)


def _log_of(f: Function, m: Value, exponent: Value) -> Value:
    """``log(1 + m) + exponent * log(2)``."""
    half_square = m * m * 0.5
    if _is32(m):
        cube = m * m * m * f.polynomial(m, _LOG32)
        low = f.fma(exponent, _LN2_LOW32, cube)
        return f.fma(exponent, _LN2_HIGH32, m - (half_square - low))
    s = m / (m + 2.0)
    z = s * s
    rest = s * (half_square + z * f.polynomial(z, _LOG64))
    low = f.fma(exponent, _LN2_LOW64, rest)
    return f.fma(exponent, _LN2_HIGH64, -((half_square - low) - m))


def log1p(f: Function, x: Value) -> Value:
    """log(1 + x), 2 ulp."""
    u = x + 1.0
    # what the sum lost, whichever of both is larger
    lost = f.select(x < 1.0, x - (u - 1.0), 1.0 - (u - x))
    found = log(f, u) + lost / u
    tiny = f.abs(x) < (2.0**-25 if _is32(x) else 2.0**-54)
    found = f.select(tiny, x, found)
    found = f.select(f.compare("eq", x, _INF), x, found)
    return f.select(f.compare("eq", x, -1.0), -_INF, found)


def tanh(f: Function, x: Value) -> Value:
    """The hyperbolic tangent: of float64 ``(e**2x - 1) / (e**2x + 1)``."""
    if _is32(x):
        return _tanh32(f, x)
    e = expm1(f, f.abs(x) * -2.0)
    return f.copysign(-e / (e + 2.0), x)


def _tanh32(f: Function, x: Value) -> Value:
    """``x P(x**2) / Q(x**2)``, both of degree 4, 0.4 ulp from tanh if nothing were rounded.

    Q begins with 1, which saves a multiplication. Beyond 9.02 it is 1.
    """
    x = f.clamp(x, -9.02, 9.02)
    square = x * x
    below = square + _TANH_BELOW[0]
    for c in _TANH_BELOW[1:]:
        below = f.fma(below, square, c)
    return f.clamp(x * f.polynomial(square, _TANH_ABOVE) / below, -1.0, 1.0)


def sigmoid(f: Function, x: Value) -> Value:
    """1 / (1 + e**-x), 2.5 ulp."""
    e = exp(f, -f.abs(x))
    found = f.select(x < 0.0, e, 1.0) / (e + 1.0)
    return f.select(f.is_nan(x), x, found)


def _log1p_of_unit(f: Function, e: Value) -> Value:
    """log(1 + e) for e between 0 and 1: ``e - e**2 P(e) / Q(e)``."""
    lost = f.polynomial(e, _LOG1P_ABOVE) / f.polynomial(e, _LOG1P_BELOW)
    return f.fma(-(e * e), lost, e)


def softplus(f: Function, x: Value) -> Value:
    """log(1 + e**x), 2 ulp."""
    positive = f.select(x < 0.0, 0.0, x)
    e = exp(f, -f.abs(x))
    found = positive + (_log1p_of_unit(f, e) if _is32(x) else log1p(f, e))
    return f.select(f.is_nan(x), x, found)


def erf(f: Function, x: Value) -> Value:
    """The error function of float32, 2 ulp."""
    a = f.abs(x)
    near = f.fma(f.polynomial(x * x, _ERF_SMALL), x, x)
    far = 1.0 - exp(f, f.polynomial(f.clamp(a, 0.0, 4.0), _ERF_LARGE))
    return f.select(a > 0.93, f.copysign(far, x), near)


def rsqrt(f: Function, x: Value) -> Value:
    return 1.0 / f.sqrt(x)


def _sine(f: Function, x: Value, quarter: int, function: str) -> Value:
    """sin(x + quarter * pi / 2) of float32, computed in float64."""
    wide = f.convert(x, "f64")
    n = f.round(wide * (2 / math.pi))
    r = f.fma(n, -_HALF_PI_LOW, f.fma(n, -_HALF_PI, wide))
    turns = f.convert(f.bits(n + float(3 << 51)), "i32") + quarter  # (see _power_of_two)
    z = r * r
    sine = f.fma(r * z, f.polynomial(z, _SIN), r)
    cosine = f.fma(z, f.polynomial(z, _COS), 1.0)
    found = f.select(f.compare("eq", turns & 1, 0), sine, cosine)
    found = f.select(f.compare("eq", turns & 2, 0), found, -found)
    near = f.convert(found, "f32")
    if function == "sinf":
        near = f.select(f.compare("eq", x, 0.0), x, near)
    is_large = f.abs(x) > _LARGE_ANGLE  # NaN is not

    def far() -> Value:
        exact = f.each_lane(x, lambda v: f.call(function, Type("f32"), v))  # type: ignore[arg-type,return-value]
        return f.select(is_large, exact, near)

    return f.choose(f.any(is_large), far, near)


def sin(f: Function, x: Value) -> Value:
    """The sine of float32, 1 ulp; large angles are the C library's."""
    return _sine(f, x, 0, "sinf")


def cos(f: Function, x: Value) -> Value:
    """The cosine of float32, 1 ulp; large angles are the C library's."""
    return _sine(f, x, 1, "cosf")


def power(f: Function, x: Value, y: Value) -> Value:
    """x**y of float32 through float64, 1 ulp, with C's special cases."""
    a = f.convert(f.abs(x), "f64")
    m, exponent = _mantissa(f, a)
    product = f.convert(y, "f64") * _log_of(f, m, exponent)
    zero, infinite = f.compare("eq", a, 0.0), f.compare("eq", a, _INF)
    signed = f.convert(y, "f64")
    product = f.select(zero, signed * -_INF, f.select(infinite, signed * _INF, product))
    found = f.convert(exp(f, product), "f32")
    whole = f.compare("eq", f.round(y), y)
    half = y * 0.5
    odd = whole & f.compare("ne", f.round(half), half) & (f.abs(y) < 2.0**24)
    negative = f.bits(x) < 0
    found = f.select(negative & odd, -found, found)
    found = f.select((x < 0.0) & ~whole & (x > -_INF), math.nan, found)
    found = f.select(f.is_nan(x) | f.is_nan(y), math.nan, found)
    is_minus_one = f.compare("eq", x, -1.0) & f.compare("eq", f.abs(y), _INF)
    is_one = f.compare("eq", x, 1.0) | f.compare("eq", y, 0.0) | is_minus_one
    return f.select(is_one, 1.0, found)


Unary = Callable[[Function, Value], Value]
#: Functions of one value by op and element type.
MATH: dict[str, dict[str, Unary]] = {
    "Exp": {"f32": exp, "f64": exp},
    "Expm1": {"f32": expm1, "f64": expm1},
    "Log": {"f32": log, "f64": log},
    "Log1p": {"f32": log1p, "f64": log1p},
    "Tanh": {"f32": tanh, "f64": tanh},
    "Sigmoid": {"f32": sigmoid, "f64": sigmoid},
    "Softplus": {"f32": softplus, "f64": softplus},
    "Erf": {"f32": erf},
    "Sin": {"f32": sin},
    "Cos": {"f32": cos},
}
#: Largest errors in units of the last place by function and element type, where they are not 2.
#:
#: - tanh of float32 is a quotient of polynomials, whose roundings add up where the result is close
#:   to 1 (3e-7 at most; units of the last place are half as large below 1). TensorFlow 1.15's, a
#:   quotient as well, is off by 6.6 units. The form with e**2x, 2.75 units, takes twice the time.
#: - The others are quotients that round three times (e**x, the sum, the division), each up to a
#:   unit where the result is just below a power of two; a second branch for small arguments would
#:   cost half as much again.
ULPS: dict[Unary, dict[str, float]] = {
    tanh: {"f32": 5.25, "f64": 2.75},
    sigmoid: {"f32": 2.75, "f64": 2.75},
}
