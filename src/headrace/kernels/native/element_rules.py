"""What element-wise ops do to one element, by op: the native counterpart of their kernels.

A rule is a function of the IR builder, the op's input values and its attributes. It computes what
the op's NumPy kernel computes, in the same order of roundings, so that results differ only where a
transcendental function does (vector_math.py). Values of float16 and bfloat16 come as float32; what
a member gives is rounded to its type before the next one reads it.

``refusal(op, elements, attributes)`` says why an op has no native code for some types.

    >>> RULES["SquaredDifference"].write(f, [x, y], {})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.kernels.native import vector_math as vm
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value

__all__ = ["RULES", "Rule", "cast", "refusal"]

Attributes = Mapping[str, Any]
Write = Callable[[Function, Sequence[Value], Attributes], Value]

FLOAT = frozenset(["f32", "f64", "f16", "bf16"])
INTEGER = frozenset(f"{s}{b}" for s in "iu" for b in (8, 16, 32, 64))
SIGNED = frozenset(e for e in INTEGER if e[0] == "i")
BOOL = frozenset(["bool"])
REAL = FLOAT | INTEGER
ANY = REAL | BOOL
_HALF = frozenset(["f16", "bf16"])

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


_NO_CODE = "there is no native code for this type"


class Rule(NamedTuple):
    """``types`` are those of all inputs but conditions; ``cost`` counts elementary operations."""

    write: Write
    types: frozenset[str] = FLOAT
    cost: int = 1
    why_not: str = _NO_CODE


RULES: dict[str, Rule] = {}


def refusal(op: str, elements: Sequence[str], attributes: Attributes) -> str:
    """Why an op has no native code for inputs of these element types; empty if it has."""
    rule = RULES.get(op)
    if rule is None:
        return f"{op} has no native code"
    if op in ("Select", "SelectV2"):
        elements = elements[1:]
    for element in elements:
        if element not in rule.types:
            return f"{op} of {element}: {rule.why_not}"
    if op == "Cast" and attributes.get("Truncate"):
        return "Cast with Truncate has no native code"
    if op == "Cast" and elements[0] == "f64" and attributes["DstT"] in _HALF:
        return "Cast of f64 to 16 bits would round twice"
    return ""


def _rule(
    *ops: str, types: frozenset[str] = FLOAT, cost: int = 1, why_not: str = _NO_CODE
) -> Callable[[Write], Write]:
    def register(write: Write) -> Write:
        for op in ops:
            RULES[op] = Rule(write, types, cost, why_not)
        return write

    return register


# arithmetic -------------------------------------------------------------------------------------

_NO_DIVISION = "integer division checks its divisor"


def _simple(ops: str, write: Callable[[Function, Any], Value], types: frozenset[str]) -> None:
    for op in ops.split():
        RULES[op] = Rule(lambda f, v, a: write(f, v), types)


_simple("Add AddV2 BiasAdd", lambda f, v: v[0] + v[1], REAL)
_simple("Sub", lambda f, v: v[0] - v[1], REAL)
_simple("Mul", lambda f, v: v[0] * v[1], REAL)
_simple("Neg", lambda f, v: -v[0], REAL)
_simple("Square", lambda f, v: v[0] * v[0], REAL)
_simple("Identity StopGradient PreventGradient", lambda f, v: v[0], ANY)
_simple("Maximum", lambda f, v: f.maximum(v[0], v[1]), REAL)
_simple("Minimum", lambda f, v: f.minimum(v[0], v[1]), REAL)
_simple("Abs", lambda f, v: f.abs(v[0]), FLOAT | SIGNED)
_simple("Floor", lambda f, v: f.floor(v[0]), FLOAT)
_simple("Ceil", lambda f, v: f.ceil(v[0]), FLOAT)
_simple("Rint Round", lambda f, v: f.round(v[0]), FLOAT)
_simple("IsNan", lambda f, v: f.is_nan(v[0]), FLOAT)
_simple("IsInf", lambda f, v: f.compare("eq", f.abs(v[0]), math.inf), FLOAT)
_simple("IsFinite", lambda f, v: f.abs(v[0]) < math.inf, FLOAT)
_simple("Less", lambda f, v: v[0] < v[1], REAL)
_simple("LessEqual", lambda f, v: v[0] <= v[1], REAL)
_simple("Greater", lambda f, v: v[0] > v[1], REAL)
_simple("GreaterEqual", lambda f, v: v[0] >= v[1], REAL)
_simple("Equal", lambda f, v: f.compare("eq", v[0], v[1]), ANY)
_simple("NotEqual", lambda f, v: f.compare("ne", v[0], v[1]), ANY)
_simple("LogicalAnd", lambda f, v: v[0] & v[1], BOOL)
_simple("LogicalOr", lambda f, v: v[0] | v[1], BOOL)
_simple("LogicalNot Invert", lambda f, v: ~v[0], BOOL | INTEGER)
_simple("BitwiseAnd", lambda f, v: v[0] & v[1], INTEGER)
_simple("BitwiseOr", lambda f, v: v[0] | v[1], INTEGER)
_simple("BitwiseXor", lambda f, v: v[0] ^ v[1], INTEGER)
_simple("Select SelectV2", lambda f, v: f.select(v[0], v[1], v[2]), ANY)
_simple("ZerosLike", lambda f, v: f.like(0, v[0]), ANY)
_simple("OnesLike", lambda f, v: f.like(1, v[0]), ANY)


@_rule("Sign", types=REAL)
def _sign(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    (x,) = v
    return f.select(x > 0, f.like(1, x), 0) - f.select(x < 0, f.like(1, x), 0)


@_rule("RealDiv", "Div", "TruncateDiv", cost=3, why_not=_NO_DIVISION)
def _divide(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] / v[1]


@_rule("FloorDiv", types=FLOAT - _HALF, cost=4, why_not="integers and 16 bits divide otherwise")
def _floor_divide(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.floor(v[0] / v[1])


@_rule("Reciprocal", "Inv", cost=3)
def _reciprocal(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return 1.0 / v[0]


@_rule("DivNoNan", cost=4)
def _div_no_nan(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.select(f.compare("eq", v[1], 0.0), 0.0, v[0] / v[1])


@_rule("MulNoNan", cost=2)
def _mul_no_nan(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.select(f.compare("eq", v[1], 0.0), 0.0, v[0] * v[1])


@_rule("Xdivy", cost=4)
def _xdivy(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.select(f.compare("eq", v[0], 0.0), 0.0, v[0] / v[1])


@_rule("Xlogy", cost=16)
def _xlogy(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.select(f.compare("eq", v[0], 0.0), 0.0, v[0] * vm.log(f, v[1]))


@_rule("SquaredDifference", types=REAL)
def _squared_difference(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    d = v[0] - v[1]
    return d * d


@_rule("AddN", "AccumulateNV2", types=REAL)
def _add_n(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    total = v[0]
    for other in v[1:]:
        total = total + other
    return total


@_rule("ClipByValue", types=REAL, cost=2)
def _clip(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return f.maximum(f.minimum(v[0], v[2]), v[1])


@_rule("Cast", types=ANY)
def _cast(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return cast(f, v[0], a["DstT"])


def cast(f: Function, x: Value, element: str) -> Value:
    """NumPy's ``astype`` on x86: a float beyond an integer type's range gives its lowest number."""
    if not x.type.is_float or element in FLOAT or element == "bool":
        return f.convert(x, element)
    wide = "i64" if element in ("i64", "u32") else "i32"
    bound = 2.0 ** (63 if wide == "i64" else 31)
    inside = (x >= -bound) & (x < bound)
    whole = f.to_integer(f.select(inside, x, -bound), wide)
    return f.convert(whole, element)


# roots, powers, transcendental functions --------------------------------------------------------

_simple("Sqrt", lambda f, v: f.sqrt(v[0]), FLOAT)
_simple("Rsqrt", lambda f, v: vm.rsqrt(f, v[0]), FLOAT)


def _math(op: str, cost: int = 16, why_not: str = _NO_CODE) -> None:
    table = vm.MATH[op]
    types = frozenset(table) | (_HALF if "f32" in table else frozenset())
    RULES[op] = Rule(lambda f, v, a: table[v[0].type.element](f, v[0]), types, cost, why_not)


_TURNS = "angles of float64 need a reduction of more than two parts"
_math("Exp", 12)
_math("Expm1")
_math("Log", 14)
_math("Log1p")
_math("Tanh", 12)
_math("Sigmoid", 14)
_math("Softplus", 30)
_math("Erf", why_not="no polynomial within 2 ulp of float64 is written")
_math("Sin", 25, _TURNS)
_math("Cos", 25, _TURNS)


@_rule(
    "Pow",
    types=frozenset(["f32", "f16", "bf16"]),
    cost=40,
    why_not="powers of float64 need logarithms of more than 53 bits",
)
def _pow(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    """Exponents that the kernel treats apart (2, 0.5, -1 …) give the same within 1 ulp."""
    return vm.power(f, v[0], v[1])


# activations and gradients ----------------------------------------------------------------------


@_rule("Relu", types=REAL)
def _relu(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    (x,) = v
    return f.select(x < 0, f.like(0, x), x)  # -0 and NaN stay


@_rule("Relu6", types=REAL, cost=2)
def _relu6(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    x = _relu(f, v, a)
    return f.select(x > 6, f.like(6, x), x)


def _as_number(f: Function, condition: Value, like: Value) -> Value:
    """A truth value as a number."""
    return f.select(condition, f.like(1, like), 0)


@_rule("ReluGrad", types=REAL)
def _relu_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] * _as_number(f, v[1] > 0, v[0])


@_rule("Relu6Grad", types=REAL, cost=2)
def _relu6_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] * _as_number(f, (v[1] > 0) & (v[1] < 6), v[0])


@_rule("LeakyRelu", cost=2)
def _leaky_relu(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    x, alpha = v[0], a["alpha"]
    if alpha != 0 and alpha <= 1:
        return f.maximum(x, x * alpha)
    return f.select(x > 0, x, x * alpha)


@_rule("LeakyReluGrad", cost=2)
def _leaky_relu_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    g, x, alpha = v[0], v[1], a["alpha"]
    if not 0 <= alpha < 1:
        return f.select(x > 0, g, g * alpha)
    return g * f.select(x > 0, f.like(1, x), alpha)


def _below_zero(f: Function, x: Value) -> Value:
    return f.minimum(x, 0.0)


@_rule("Elu", cost=14)
def _elu(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    (x,) = v
    return f.maximum(x, 0.0) + vm.expm1(f, _below_zero(f, x))


@_rule("EluGrad", cost=2)
def _elu_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] * (_below_zero(f, v[1]) + 1.0)


@_rule("Selu", cost=15)
def _selu(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    (x,) = v
    below = vm.expm1(f, _below_zero(f, x)) * SELU_SCALE_ALPHA
    return f.maximum(x, 0.0) * SELU_SCALE + below


@_rule("SeluGrad", cost=4)
def _selu_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    g, y = v
    jump = _as_number(f, y < 0, y) * (SELU_SCALE_ALPHA - SELU_SCALE)
    return g * (_below_zero(f, y) + jump + SELU_SCALE)


@_rule("SoftplusGrad", cost=16)
def _softplus_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] / (vm.exp(f, -v[1]) + 1.0)


@_rule("Softsign", cost=4)
def _softsign(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    return v[0] / (f.abs(v[0]) + 1.0)


@_rule("SoftsignGrad", cost=4)
def _softsign_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    size = f.abs(v[1]) + 1.0
    return v[0] / (size * size)


@_rule("TanhGrad", cost=3)
def _tanh_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    y, dy = v
    return (1.0 - y * y) * dy


@_rule("SigmoidGrad", cost=3)
def _sigmoid_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    y, dy = v
    return (1.0 - y) * y * dy


def _zero_where(f: Function, dy: Value, found: Value) -> Value:
    return f.select(f.compare("eq", dy, 0.0), 0.0, found)


@_rule("SqrtGrad", cost=4)
def _sqrt_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    y, dy = v
    return _zero_where(f, dy, dy / y / 2.0)


@_rule("RsqrtGrad", cost=5)
def _rsqrt_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    y, dy = v
    return _zero_where(f, dy, y * y * y * dy / -2.0)


@_rule("ReciprocalGrad", "InvGrad", cost=3)
def _reciprocal_grad(f: Function, v: Sequence[Value], a: Attributes) -> Value:
    y, dy = v
    return _zero_where(f, dy, -(y * y * dy))
