"""Samples of element-wise math, comparison, logic, casting, complex numbers, special functions,
bits and clipping.
"""

import numpy as np

from .base import Sample, boolean, c64, f32, f64, i32, i64, strings

NAN, INF = float("nan"), float("inf")


def pos(*shape, **kw):
    """Numbers away from 0, where logarithms and powers are smooth."""
    return f32(*shape, low=kw.pop("low", 0.3), high=kw.pop("high", 2.0), **kw)


def half(*shape, **kw):
    return f32(*shape, **kw).astype(np.float16)


def c128(*shape, **kw):
    return c64(*shape, **kw).astype(np.complex128)


def nonzero(*shape, **kw):
    x = i32(*shape, low=-9, high=10, **kw)
    return np.where(x == 0, 3, x).astype(np.int32)


SAMPLES = []


_DEFAULTS = {
    "Cast": dict(Truncate=False),
    "Equal": dict(incompatible_shape_error=True),
    "Complex": dict(Tout="complex64"),
    "NotEqual": dict(incompatible_shape_error=True),
    "ApproximateEqual": dict(tolerance=1e-5),
    "ComplexAbs": dict(Tout="float32"),
    "Real": dict(Tout="float32"),
    "Imag": dict(Tout="float32"),
    "Angle": dict(Tout="float32"),
}  # TensorFlow's low-level apply_op fills in nothing


def add(op, inputs, attrs=None, id=None, **kw):
    attrs = dict(_DEFAULTS.get(op, {}), **(attrs or {}))
    SAMPLES.append(Sample(op, inputs, attrs, id=op if id is None else "%s-%s" % (op, id), **kw))


# one input ----------------------------------------------------------------------------------------

_WIDE = {  # op: range of the inputs
    "Neg": (-2, 2),
    "Abs": (0.2, 2),
    "Reciprocal": (0.3, 2),
    "Inv": (0.3, 2),
    "Square": (-2, 2),
    "Sqrt": (0.3, 4),
    "Rsqrt": (0.3, 4),
    "Exp": (-2, 2),
    "Expm1": (-1, 1),
    "Log": (0.3, 4),
    "Log1p": (-0.5, 2),
    "Sin": (-3, 3),
    "Cos": (-3, 3),
    "Tan": (-1, 1),
    "Asin": (-0.8, 0.8),
    "Acos": (-0.8, 0.8),
    "Atan": (-3, 3),
    "Sinh": (-2, 2),
    "Cosh": (-2, 2),
    "Tanh": (-3, 3),
    "Asinh": (-3, 3),
    "Acosh": (1.3, 4),
    "Atanh": (-0.8, 0.8),
    "Sigmoid": (-5, 5),
    "Sign": (0.2, 2),
    "Erf": (-2, 2),
    "Erfc": (-2, 2),
    "Lgamma": (0.5, 4),
    "Digamma": (0.5, 4),
    "BesselI0e": (0.2, 3),
    "BesselI1e": (0.2, 3),
}
_COMPLEX = [
    "Neg",
    "Sign",
    "Reciprocal",
    "Inv",
    "Square",
    "Sqrt",
    "Rsqrt",
    "Exp",
    "Log",
    "Log1p",
    "Sin",
    "Cos",
    "Tan",
    "Sinh",
    "Cosh",
    "Tanh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Sigmoid",
]
_SIGMOID_WHY = "TF 1.15 is 4.7e-6 off the exact value here, Headrace 1e-7"

for _op in sorted(_WIDE):
    _low, _high = _WIDE[_op]
    _kw = dict(tol=1e-5, why=_SIGMOID_WHY) if _op == "Sigmoid" else {}
    add(_op, dict(x=f32(3, 4, low=_low, high=_high)), grad=["x"], **_kw)
    add(_op, dict(x=f64(5, low=_low, high=_high)), id="f64")
    add(_op, dict(x=f32(low=_low, high=_high)), id="scalar")
    add(_op, dict(x=f32(0, 3, low=_low, high=_high)), id="empty")
    add(_op, dict(x=half(4, low=_low, high=_high)), id="half")
for _op in _COMPLEX:  # TF gives Sign the gradient 0, which is not the derivative of x / |x|
    add(_op, dict(x=c64(2, 3)), id="complex", grad=[] if _op == "Sign" else ["x"])
for _op in ["Neg", "Abs", "Sign", "Square"]:
    add(_op, dict(x=i32(2, 3, low=-9, high=9)), id="int32")
    add(_op, dict(x=i64(4, low=-9, high=9)), id="int64")
add("Abs", dict(x=f32(3, 4, low=-2, high=-0.2)), id="negative", grad=["x"])
add("Sign", dict(x=np.array([-2.0, -0.0, 0.0, 5.0], np.float32)), id="zeros")
add("ComplexAbs", dict(x=c64(2, 3)), grad=["x"])
add("ComplexAbs", dict(x=c128(4)), dict(Tout="float64"), id="complex128")
for _op in ["Floor", "Ceil", "Rint", "Round"]:
    add(_op, dict(x=np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4999, 3.7, -3.7], np.float32)))
    add(_op, dict(x=f64(2, 3, low=-9, high=9)), id="f64")
for _op in ["Floor", "Ceil", "Round"]:
    add(_op, dict(x=half(5, low=-9, high=9)), id="half")
add("Round", dict(x=i32(3)), id="int32")
add(
    "Sigmoid",
    dict(x=np.array([-INF, -100, -30, 30, 100, INF, NAN], np.float32)),
    id="ends",
    golden=False,
    why="TF 1.15 gives 0 below -18",
    expect=[np.array([0, 3.783506e-44, 9.357623e-14, 1, 1, 1, NAN], np.float32)],
)

for _op in ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]:
    add(_op, dict(y=pos(3, 4), dy=f32(3, 4, salt=1)), grad=["y", "dy"])
    add(_op, dict(y=pos(salt=2), dy=f32(salt=1)), id="scalar")
    add(_op, dict(y=c64(5), dy=c64(5, salt=1)), id="complex", grad=["y", "dy"])
    add(_op, dict(y=half(4, low=0.3), dy=half(4, salt=1)), id="half")

# two inputs ---------------------------------------------------------------------------------------

_PAIRS = [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "Div",
    "RealDiv",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "Pow",
    "DivNoNan",
    "MulNoNan",
    "Xdivy",
    "Xlogy",
]
for _op in _PAIRS:
    add(_op, dict(x=pos(3, 4), y=pos(3, 4, salt=1)), grad=["x", "y"])
    add(_op, dict(x=pos(3, 1, 4), y=pos(2, 1, salt=1)), id="broadcast", grad=["x", "y"])
    add(_op, dict(x=pos(), y=pos(2, 3, salt=1)), id="scalar_left", grad=["x", "y"])
    add(_op, dict(x=pos(2, 3), y=pos(salt=1)), id="scalar_right", grad=["x", "y"])
    add(_op, dict(x=pos(0, 3), y=pos(1, 3, salt=1)), id="empty")
    add(_op, dict(x=pos(4).astype(np.float64), y=pos(4, salt=1).astype(np.float64)), id="f64")
    add(_op, dict(x=half(4, low=0.3), y=half(4, low=0.3, salt=1)), id="half")
for _op in [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "Div",
    "RealDiv",
    "SquaredDifference",
    "Pow",
    "DivNoNan",
    "Xdivy",
    "Xlogy",
]:
    _grad = ["x", "y"] if _op in ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Pow") else []
    add(_op, dict(x=c64(2, 3), y=c64(2, 3, salt=1)), id="complex", grad=_grad)
for _op in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"]:
    add(_op, dict(x=i32(2, 3, low=-9), y=i32(3, low=-9, salt=1)), id="int32")
    add(_op, dict(x=i64(4, low=-9), y=i64(4, low=-9, salt=1)), id="int64")
for _op in ["Add", "AddV2", "Sub", "Mul"]:
    add(_op, dict(x=np.array([250, 3], np.uint8), y=np.array([10, 5], np.uint8)), id="uint8_wraps")
    add(
        _op,
        dict(x=np.array([2147483647, 3], np.int32), y=np.array([10, 5], np.int32)),
        id="int32_wraps",
    )
add("Add", dict(x=strings([["a", "b"]]), y=strings([["c"], ["d"]])), id="string")
for _op in ["Div", "TruncateDiv", "FloorDiv", "FloorMod", "TruncateMod", "Mod"]:
    add(_op, dict(x=i32(4, 5, low=-20, high=20), y=nonzero(4, 5, salt=1)), id="int32")
    add(_op, dict(x=i64(4, 5, low=-20, high=20), y=np.int64(-3)), id="int64")
add("TruncateDiv", dict(x=f32(3), y=pos(3)))
add(
    "FloorDiv",
    dict(
        x=np.array([1.0, -7.0, 1.0, -1.0, 5.5], np.float32),
        y=np.array([0.1, 2, 0, 0, -2], np.float32),
    ),
)
add("Div", dict(x=np.array([200, 7], np.uint8), y=np.array([3, 2], np.uint8)), id="uint8")
add("Div", dict(x=np.array([-128, -7], np.int16), y=np.array([3, 2], np.int16)), id="int16")
_MOD_X = np.array([-1e-10, -1, 5.5, -5.5, 5.5, -5.5, 6, -6], np.float32)
_MOD_Y = np.array([1, INF, 2, 2, -2, -2, 3, 3], np.float32)
for _op in ["FloorMod", "TruncateMod", "Mod"]:
    add(_op, dict(x=_MOD_X, y=_MOD_Y))
    add(
        _op,
        dict(x=np.array([5.3, -5.2, 3.6], np.float32), y=np.array([1.7, 1.9, -1.3], np.float32)),
        id="smooth",
        grad=["x", "y"],
    )
add("Pow", dict(x=i32(4, low=-3, high=4), y=i32(4, low=0, high=5, salt=1)), id="int32")
add("Pow", dict(x=i64(4, low=-3, high=4), y=i64(low=2, high=3)), id="int64")
for _y in [1.0, 2.0, 3.0, 4.0, 0.5, -1.0, -2.0, 2.5]:
    add("Pow", dict(x=pos(5), y=np.float32(_y)), id="to_%g" % _y, grad=["x"])
add("Pow", dict(x=f32(5), y=np.float32(3)), id="negative_base", grad=["x"])
add(
    "Pow",
    dict(x=np.array([0, 0, 2, -2], np.float32), y=np.array([0, 2, 0, 2], np.float32)),
    id="zeros",
)
add("Maximum", dict(x=np.float32([1, 2, 3]), y=np.float32([1, 3, 2])), id="equal")
add("DivNoNan", dict(x=np.float32([1, NAN, 0, 4]), y=np.float32([0, 0, 0, 2])), id="zero")
add("MulNoNan", dict(x=np.float32([1, NAN, INF, 4]), y=np.float32([0, 0, 0, 2])), id="zero")
add("Xdivy", dict(x=np.float32([0, 0, 1, 4]), y=np.float32([0, NAN, 0, 2])), id="zero")
add("Xlogy", dict(x=np.float32([0, 0, 1, 4]), y=np.float32([0, NAN, 0, 2])), id="zero")
add("Xlogy", dict(x=np.float32(0), y=np.float32(0)), id="zero_scalar")
add("Atan2", dict(y=f32(3, 4), x=f32(4, salt=1)), grad=["y", "x"])
add("Atan2", dict(y=np.float32([0, 0, 1, -1]), x=np.float32([1, -1, 0, 0])), id="axes")
add("NextAfter", dict(x1=np.float32([1, 0, -1]), x2=np.float32([2, -1, -1])))
add("NextAfter", dict(x1=f64(3), x2=f64(3, salt=1)), id="f64", grad=["x1", "x2"])
add("AddN", dict(inputs=[f32(2, 3), f32(2, 3, salt=1), f32(2, 3, salt=2)]), grad=["inputs"])
add("AddN", dict(inputs=[f32(2, 3)]), id="one")
add("AddN", dict(inputs=[i64(3), i64(3, salt=1)]), id="int64")
add("AddN", dict(inputs=[f32(), f32(salt=1), f32(salt=3)]), id="scalar")
add(
    "AccumulateNV2",
    dict(inputs=[f32(2, 3), f32(2, 3, salt=1)]),
    dict(shape=[2, 3]),
    grad=["inputs"],
)
for _i, (_a, _b) in enumerate(
    [
        ([1, 3], [1, 1]),
        ([2, 3], [2, 3]),
        ([2, 3], [3]),
        ([2, 1], [1, 3]),
        ([], [2, 3]),
        ([1, 2, 1], [3, 1, 1, 1]),
        ([1, 1], [1]),
        ([0, 1], [1, 1]),
    ]
):
    add(
        "BroadcastGradientArgs",
        dict(s0=np.array(_a, np.int32), s1=np.array(_b, np.int32)),
        id=str(_i),
    )

# special functions --------------------------------------------------------------------------------

add("Lgamma", dict(x=np.float32([-0.5, -1.5, 0.0, 10.0])), id="negative")
for _op in ["Igamma", "Igammac"]:
    add(_op, dict(a=pos(3, 4), x=pos(3, 4, salt=1)), grad=["a", "x"])
    add(
        _op,
        dict(a=f64(3, 1, low=1, high=5), x=f64(2, low=1, high=5)),
        id="broadcast",
        grad=["a", "x"],
    )
    add(_op, dict(a=np.float32([0, -1, 2]), x=np.float32([1, 1, 0])), id="ends")
add("IgammaGradA", dict(a=f64(4, low=0.5, high=5), x=f64(4, low=0.5, high=5, salt=1)))
add(
    "IgammaGradA",
    dict(a=np.float64([1, 2, 0.1, 30, 5]), x=np.float64([0.5, 3, 1, 20, 100])),
    id="tails",
    tol=1e-9,
    why="a difference quotient: 1e-10 from TF where measured",
)
add("Zeta", dict(x=f32(3, 4, low=1.5, high=4), q=pos(4)), grad=["q"])
add("Zeta", dict(x=f64(3, low=1.5, high=4), q=f64(3, low=0.5, high=3)), id="f64")
add("Polygamma", dict(a=np.float32([1, 2, 3]), x=pos(4, 3)), grad=["x"])
add("Polygamma", dict(a=np.float64([0, 1, 1.5, -1]), x=f64(4, low=0.5, high=3)), id="orders")
add("Betainc", dict(a=pos(3, 4), b=pos(3, 4, salt=1), x=f32(3, 4, low=0.1, high=0.9)), grad=["x"])
add("Betainc", dict(a=pos(3, 4), b=np.float32(2), x=np.float32(0.3)), id="scalars", grad=["x"])

# comparison and logic -----------------------------------------------------------------------------

for _op in ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]:
    add(_op, dict(x=i32(3, 4, high=4), y=i32(4, high=4, salt=1)))
    add(_op, dict(x=np.float32([1, NAN, 2, INF]), y=np.float32([1, NAN, 3, INF])), id="float")
    add(_op, dict(x=i64(2, 1, high=3), y=np.int64(1)), id="int64")
    add(_op, dict(x=f32(), y=f32()), id="scalar")
    add(_op, dict(x=half(3), y=half(3)), id="half")
    add(_op, dict(x=np.array([1, 255], np.uint8), y=np.array([2, 4], np.uint8)), id="uint8")
for _op in ["Equal", "NotEqual"]:
    add(_op, dict(x=strings(["a", "b", "c"]), y=strings(["a", "x", "c"])), id="string")
    add(_op, dict(x=strings(["a", "b"]), y=strings("a")), id="string_scalar")
    add(_op, dict(x=boolean(4), y=boolean(4, salt=1)), id="bool")
    add(_op, dict(x=c64(3), y=c64(3)), id="complex")
    add(_op, dict(x=f32(2), y=f32(3)), dict(incompatible_shape_error=False), id="other_shape")
add("ApproximateEqual", dict(x=np.float32([1, 2]), y=np.float32([1.000001, 2.1])))
add(
    "ApproximateEqual",
    dict(x=np.float32([1, 2]), y=np.float32([1.000001, 2.1])),
    dict(tolerance=0.5),
    id="wide",
)
add("ApproximateEqual", dict(x=i32(3), y=i32(3, salt=1)), dict(tolerance=2.0), id="int32")
for _op in ["LogicalAnd", "LogicalOr"]:
    add(_op, dict(x=boolean(3, 4), y=boolean(4, salt=1)))
    add(_op, dict(x=boolean(), y=boolean(2, salt=1)), id="scalar")
add("LogicalNot", dict(x=boolean(3, 4)))
for _op in ["IsNan", "IsInf", "IsFinite"]:
    add(_op, dict(x=np.float32([1, NAN, INF, -INF])))
    add(_op, dict(x=np.float64([[1, NAN], [INF, -INF]])), id="f64")
    add(_op, dict(x=np.float16([1, NAN, INF, -INF])), id="half")
    add(_op, dict(x=np.float32(NAN)), id="scalar")

# types --------------------------------------------------------------------------------------------

_FROM = {
    "float32": np.float32([0, -1.7, 2.5, 100.9]),
    "float64": np.float64([0, -1.7, 2.5, 100.9]),
    "float16": np.float16([0, -1.7, 2.5, 100.9]),
    "int32": np.int32([0, -3, 70000, 2]),
    "int64": np.int64([0, -3, 5000000000, 2]),
    "uint8": np.uint8([0, 255, 7]),
    "int8": np.int8([0, -3, 7]),
    "int16": np.int16([0, -3, 7]),
    "bool": np.array([True, False]),
    "complex64": c64(3),
}
for _src in sorted(_FROM):
    for _dst in [
        "float32",
        "float64",
        "float16",
        "int32",
        "int64",
        "uint8",
        "bool",
        "complex64",
        "complex128",
    ]:
        _grad = ["x"] if (_src, _dst) in [("float32", "float32"), ("float32", "float64")] else []
        add("Cast", dict(x=_FROM[_src]), dict(DstT=_dst), id="%s_%s" % (_src, _dst), grad=_grad)
add("Cast", dict(x=np.float32([1e10, -1e10, NAN, 300.7, -1.5])), dict(DstT="int32"), id="range")
add("Cast", dict(x=np.float32([1e10, -1e10, NAN])), dict(DstT="int64"), id="range64")
add("Cast", dict(x=np.float32([0, NAN, 0.1])), dict(DstT="bool"), id="nan_bool")
add("Cast", dict(x=np.float32(2.7)), dict(DstT="int32"), id="scalar")
add(
    "Cast",
    dict(x=np.float64([1.00000011920929, 3.14159265])),
    dict(DstT="float32", Truncate=True),
    id="truncate",
)
add("Bitcast", dict(input=np.float32([1, 2])), dict(type="int32"))
add("Bitcast", dict(input=np.float32([1, 2])), dict(type="uint8"), id="narrower")
add("Bitcast", dict(input=np.uint8([[0, 0, 128, 63]])), dict(type="float32"), id="wider")
add("Bitcast", dict(input=np.float64(1)), dict(type="int32"), id="scalar")
add("Complex", dict(real=f32(2, 3), imag=f32(3, salt=1)), grad=["real", "imag"])
add("Complex", dict(real=f64(2), imag=f64(2, salt=1)), dict(Tout="complex128"), id="complex128")
add("Complex", dict(real=np.float32([1, INF]), imag=np.float32(NAN)), id="not_finite")
for _op in ["Real", "Imag", "Angle"]:
    add(_op, dict(input=c64(2, 3)), grad=["input"])
    add(_op, dict(input=c128(2)), dict(Tout="float64"), id="complex128")
    add(_op, dict(input=np.complex64(1 + 2j)), id="scalar")
add("Conj", dict(input=c64(2, 3)), grad=["input"])
add("Conj", dict(input=c128(3)), id="complex128")

# bits ---------------------------------------------------------------------------------------------

for _op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
    add(_op, dict(x=i32(3, 4, low=-99, high=99), y=i32(4, low=-99, high=99, salt=1)))
    add(_op, dict(x=np.uint8([255, 7]), y=np.uint8([16, 5])), id="uint8")
for _op in ["LeftShift", "RightShift"]:
    add(_op, dict(x=np.int32([1, -8, 100]), y=np.int32([3, 2, 4])))
    add(_op, dict(x=np.uint8([1, 200]), y=np.uint8([3, 2])), id="uint8")
    add(_op, dict(x=np.int32([1, 1, -8, -8]), y=np.int32([31, 32, -1, 40])), id="too_far")
add("Invert", dict(x=np.int32([0, -1, 77])))
add("Invert", dict(x=np.uint8([0, 77])), id="uint8")
add("PopulationCount", dict(x=np.int32([-1, 3, 0])))
add("PopulationCount", dict(x=np.uint8([255, 3])), id="uint8")
add("PopulationCount", dict(x=np.int64([-1, 3])), id="int64")

# bounds -------------------------------------------------------------------------------------------

_LOW, _HIGH = np.float32(-0.5), np.float32(0.5)
add(
    "ClipByValue",
    dict(t=f32(3, 4), clip_value_min=_LOW, clip_value_max=_HIGH),
    grad=["t", "clip_value_min", "clip_value_max"],
)
add(
    "ClipByValue",
    dict(t=f32(3), clip_value_min=f32(3, low=-0.5, high=0), clip_value_max=_HIGH),
    id="mixed",
)
add(
    "ClipByValue",
    dict(t=np.float32([1, 5]), clip_value_min=np.float32(3), clip_value_max=np.float32(2)),
    id="crossed",
)
add(
    "ClipByValue",
    dict(t=i32(3), clip_value_min=np.int32(2), clip_value_max=np.int32(5)),
    id="int32",
)
add("CheckNumerics", dict(tensor=f32(2, 3)), dict(message="checked"), grad=["tensor"])
