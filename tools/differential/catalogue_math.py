"""Calls of element-wise functions, casts, comparisons, reductions, segments and clipping."""

from __future__ import annotations

import numpy as np

from tools.differential.cases import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    Arguments,
    Source,
    dtype,
    op,
    py,
)


@op("abs", "negative", "sign", "square", "identity", "zeros_like", "ones_like", grad=True)
def unary_number(s: Source) -> Arguments:
    return [("", s.value(s.of(NUMBERS + INTS), s.dims()))]


@op(
    "exp",
    "expm1",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atan",
    "sigmoid",
    "rsqrt",
    "sqrt",
    "reciprocal",
    "math.erf",
    "math.erfc",
    "math.softplus",
    "nn.softsign",
    "nn.relu",
    "nn.relu6",
    "nn.elu",
    "nn.selu",
    "floor",
    "ceil",
    "round",
    "rint",
    "is_nan",
    "is_inf",
    "is_finite",
    "lgamma",
    "log_sigmoid",
    "nn.swish",
    "math.log",
    "bessel_i0",
    "bessel_i1e",
    grad=True,
)
def unary_float(s: Source) -> Arguments:
    name = s.of(FLOATS) if s.chance(0.8) else s.of(NUMBERS)
    return [("", s.value(name, s.dims(), *s.one((-3, 3), (0.1, 5))))]


@op("acos", "asin", "atanh", "digamma", grad=True)
def unary_unit(s: Source) -> Arguments:
    return [("", s.value(s.of(FLOATS + COMPLEX), s.dims(), -0.9, 0.9))]


@op("acosh", grad=True)
def unary_above_one(s: Source) -> Arguments:
    return [("", s.value(s.of(FLOATS), s.dims(), 1.1, 5))]


@op("real", "imag", "conj", "angle")
def unary_complex(s: Source) -> Arguments:
    return [("", s.value(s.of(COMPLEX + COMPLEX + NUMBERS), s.dims()))]


@op("complex")
def complex_of(s: Source) -> Arguments:
    name, shape = s.one("float32", "float64"), s.dims()
    return [("real", s.value(name, shape)), ("imag", s.value(name, s.broadcastable(shape)))]


@op("logical_not")
def logical_not(s: Source) -> Arguments:
    return [("x", s.value("bool", s.dims()))]


@op("logical_and", "logical_or", "logical_xor")
def logical(s: Source) -> Arguments:
    shape = s.dims()
    return [("x", s.value("bool", shape)), ("y", s.value("bool", s.broadcastable(shape)))]


def _pair(s: Source, names: list[str], low: float = -4, high: float = 4) -> Arguments:
    name, shape = s.of(names), s.dims()
    pair = [s.value(name, shape, low, high), s.value(name, s.broadcastable(shape), low, high)]
    s.rng.shuffle(pair)
    return [("x", pair[0]), ("y", pair[1])]


@op("add", "subtract", "multiply", "squared_difference", grad=True)
def binary_number(s: Source) -> Arguments:
    return _pair(s, NUMBERS + INTS)


@op("divide", "truediv", "realdiv", "div", "div_no_nan", "math.multiply_no_nan", grad=True)
def quotient(s: Source) -> Arguments:
    return _pair(s, NUMBERS + ["float32"] * 6)


@op("floordiv", "floormod", "mod", "truncatediv", "truncatemod", "floor_div")
def whole_quotient(s: Source) -> Arguments:
    name, shape = s.of(REALS), s.dims()
    y = s.value(name, s.broadcastable(shape), *s.one((1, 5), (1, 5), (-4, 4)))
    return [("x", s.value(name, shape, -9, 9)), ("y", y)]


@op("maximum", "minimum", grad=True)
def binary_real(s: Source) -> Arguments:
    return _pair(s, REALS)


@op("less", "less_equal", "greater", "greater_equal")
def compare(s: Source) -> Arguments:
    return _pair(s, REALS)


@op("equal", "not_equal")
def equal(s: Source) -> Arguments:
    return _pair(s, EVERY, 0, 2)


@op("pow", grad=True)
def power(s: Source) -> Arguments:
    return _pair(s, NUMBERS, 0, 3)


@op("atan2", "math.xdivy", "math.xlogy", "igamma", "igammac", "zeta", "polygamma", grad=True)
def binary_float(s: Source) -> Arguments:
    return [("", v) for _, v in _pair(s, FLOATS, 0.5, 4)]


@op("betainc", grad=True)
def betainc(s: Source) -> Arguments:
    name, shape = s.one("float32", "float64"), s.dims()
    return [
        ("a", s.value(name, shape, 0.5, 3)),
        ("b", s.value(name, shape, 0.5, 3)),
        ("x", s.value(name, shape, 0, 1)),
    ]


@op("bitwise.bitwise_and", "bitwise.bitwise_or", "bitwise.bitwise_xor")
def bitwise(s: Source) -> Arguments:
    return _pair(s, INTS, 0, 100)


@op("bitwise.left_shift", "bitwise.right_shift")
def shift(s: Source) -> Arguments:
    name, shape = s.of(INTS), s.dims()
    return [("x", s.value(name, shape, 0, 50)), ("y", s.value(name, s.broadcastable(shape), 0, 6))]


@op("bitwise.invert")
def invert(s: Source) -> Arguments:
    return [("x", s.value(s.of(INTS), s.dims(), 0, 99))]


@op(
    "method:__add__",
    "method:__mul__",
    "method:__sub__",
    "method:__truediv__",
    "method:__pow__",
    "method:__mod__",
    "method:__floordiv__",
    "method:__radd__",
    "method:__rsub__",
    "method:__lt__",
    "method:__ge__",
    "method:__matmul__",
    "method:__and__",
    positional=2,
)
def operators(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS + ["bool"]), s.dims()
    other = s.one(py(2), py(1.5), s.value(name, s.broadcastable(shape), 1, 4))
    return [
        ("", s.carried(s.array(name, shape, 1, 4), name, ["ph", "const", "const"])),
        ("", other),
    ]


@op("method:__neg__", "method:__abs__", "method:__invert__", positional=1)
def unary_operators(s: Source) -> Arguments:
    name = s.of(NUMBERS + ["bool"])
    return [("", s.carried(s.array(name, s.dims()), name, ["ph", "const"]))]


@op("cast", grad=True)
def cast(s: Source) -> Arguments:
    name = s.of([d for d in EVERY if d != "string"])
    low, high = s.one((0, 4), (-4, 4), (-300, 300))
    return [("x", s.value(name, s.dims(), low, high)), ("dtype", dtype(s.of(EVERY)))]


@op("saturate_cast")
def saturate_cast(s: Source) -> Arguments:
    return [
        ("value", s.value(s.reals(), s.dims(), *s.one((0, 4), (-500, 500)))),
        ("dtype", dtype(s.of(REALS))),
    ]


@op("to_float", "to_double", "to_int32", "to_int64", "to_bfloat16", "to_complex64")
def to_type(s: Source) -> Arguments:
    return [("x", s.value(s.of(NUMBERS), s.dims()))]


@op("bitcast")
def bitcast(s: Source) -> Arguments:
    name = s.of([d for d in EVERY if d not in ("string", "bool")])
    shape = [*s.dims(0, 2), s.one(1, 2, 4)]
    return [("input", s.value(name, shape)), ("type", dtype(s.of(EVERY)))]


def _axes(s: Source, rank: int) -> Arguments:
    how = s.int(0, 3)
    if how == 0 or rank == 0:
        return [] if s.chance(0.7) else [("axis", py(None))]
    if how == 1:
        return [("axis", s.ints(s.axis(rank), s.one("int32", "int64")))]
    axes = s.rng.sample(range(rank), s.int(0, rank))
    axes = [a - rank if s.chance(0.3) else a for a in axes]
    return [("axis", s.ints(axes) if axes else py([]))]


@op(
    "reduce_sum",
    "reduce_mean",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_logsumexp",
    "math.reduce_std",
    "math.reduce_variance",
    "math.reduce_euclidean_norm",
    grad=True,
)
def reduction(s: Source) -> Arguments:
    shape = s.dims()
    out: Arguments = [("input_tensor", s.value(s.of(NUMBERS + FLOATS + FLOATS), shape))]
    out += _axes(s, len(shape))
    if s.chance(0.5):
        out.append(("*keepdims", py(s.chance(0.5))))
    return out


@op("reduce_all", "reduce_any")
def bool_reduction(s: Source) -> Arguments:
    shape = s.dims()
    return [
        ("input_tensor", s.value("bool", shape)),
        *_axes(s, len(shape)),
        ("*keepdims", py(s.chance(0.5))),
    ]


@op("reduce_join")
def reduce_join(s: Source) -> Arguments:
    shape = s.dims()
    out: Arguments = [("inputs", s.value("string", shape)), *_axes(s, len(shape))]
    return [*out, ("*separator", py("-"))]


@op("argmax", "argmin")
def arg(s: Source) -> Arguments:
    shape = s.dims(1)
    out: Arguments = [("input", s.value(s.of(NUMBERS), shape))]
    if s.chance(0.8):
        out.append(("axis", s.ints(s.axis(len(shape)), s.one("int32", "int64"))))
    if s.chance(0.4):
        out.append(("*output_type", dtype(s.one("int32", "int64"))))
    return out


@op("cumsum", "cumprod", "math.cumulative_logsumexp", grad=True)
def scan(s: Source) -> Arguments:
    shape = s.dims(1)
    out: Arguments = [("x", s.value(s.of(NUMBERS), shape))]
    if s.chance(0.8):
        out.append(("axis", s.ints(s.axis(len(shape)))))
        out += [("exclusive", py(s.chance(0.5))), ("reverse", py(s.chance(0.5)))]
    return out


@op("count_nonzero")
def count_nonzero(s: Source) -> Arguments:
    shape = s.dims()
    return [("input_tensor", s.value(s.of(EVERY), shape, 0, 2)), *_axes(s, len(shape))]


def _segments(s: Source, n: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.sort(s.np.randint(0, 4, n))


@op("segment_sum", "segment_mean", "segment_max", "segment_min", "segment_prod", grad=True)
def segment(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    kind = s.one("int32", "int64")
    return [
        ("data", s.value(s.of(NUMBERS), shape)),
        ("segment_ids", s.carried(_segments(s, shape[0]).astype(kind), kind)),
    ]


@op(
    "unsorted_segment_sum",
    "unsorted_segment_mean",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    grad=True,
)
def unsorted_segment(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    ids = s.np.randint(-1, 4, shape[: s.int(1, len(shape))])
    kind = s.one("int32", "int64")
    return [
        ("data", s.value(s.of(NUMBERS), shape)),
        ("segment_ids", s.carried(ids.astype(kind), kind)),
        ("num_segments", s.ints(s.one(4, 5))),
    ]


@op("sparse.segment_sum", "sparse.segment_mean", "sparse.segment_sqrt_n", grad=True)
def sparse_segment(s: Source) -> Arguments:
    shape, n = s.dims(1, 3), s.int(0, 4)
    out: Arguments = [
        ("data", s.value(s.of(FLOATS + ["int32"]), shape)),
        ("indices", s.indices([n], shape[0], "int32")),
        ("segment_ids", s.carried(_segments(s, n).astype("int32"), "int32")),
    ]
    if s.chance(0.3):
        out.append(("*num_segments", py(5)))
    return out


@op("clip_by_value", grad=True)
def clip_by_value(s: Source) -> Arguments:
    name, shape = s.of(REALS), s.dims()
    low = s.one(py(0), s.value(name, [], 0, 1), s.value(name, s.broadcastable(shape), 0, 1))
    return [
        ("t", s.value(name, shape)),
        ("clip_value_min", low),
        ("clip_value_max", s.one(py(2), s.value(name, [], 2, 3))),
    ]


@op("clip_by_norm", grad=True)
def clip_by_norm(s: Source) -> Arguments:
    name, shape = s.of(FLOATS), s.dims()
    out: Arguments = [
        ("t", s.value(name, shape)),
        ("clip_norm", s.one(py(1.5), s.value(name, [], 0.5, 3))),
    ]
    if shape and s.chance(0.5):
        out.append(("axes", py([s.axis(len(shape))])))
    return out


@op("clip_by_average_norm", grad=True)
def clip_by_average_norm(s: Source) -> Arguments:
    return [("t", s.value(s.of(FLOATS), s.dims())), ("clip_norm", py(0.5))]


@op("clip_by_global_norm", "global_norm")
def clip_by_global_norm(s: Source) -> Arguments:
    name = s.of(FLOATS)
    tensors = {"k": "list", "v": [s.value(name, s.dims()) for _ in range(s.int(1, 3))]}
    return [("t_list", tensors)] if s.chance(0.3) else [("t_list", tensors), ("clip_norm", py(1.5))]


@op("add_n", "accumulate_n", grad=True)
def add_n(s: Source) -> Arguments:
    name, shape = s.of(NUMBERS), s.dims()
    return [("inputs", {"k": "list", "v": [s.value(name, shape) for _ in range(s.int(1, 3))]})]


@op("bincount")
def bincount(s: Source) -> Arguments:
    out: Arguments = [("arr", s.indices([s.size()], 5, "int32"))]
    if s.chance(0.3):
        out.append(("*weights", s.value("float32", [3])))
    if s.chance(0.3):
        out.append(("*minlength", py(3)))
    if s.chance(0.3):
        out.append(("*maxlength", py(4)))
    return out


@op("math.confusion_matrix")
def confusion_matrix(s: Source) -> Arguments:
    n = s.size()
    return [
        ("labels", s.indices([n], 3)),
        ("predictions", s.indices([n], 3)),
        ("num_classes", py(s.one(None, 3, 5))),
    ]


@op("histogram_fixed_width")
def histogram(s: Source) -> Arguments:
    return [
        ("values", s.value("float32", s.dims())),
        ("value_range", py([-2.0, 2.0])),
        ("nbins", py(5)),
    ]


@op("linspace")
def linspace(s: Source) -> Arguments:
    name = s.of(FLOATS)
    return [("start", s.value(name, [])), ("stop", s.value(name, [])), ("num", s.ints(s.int(1, 6)))]


@op("range")
def number_range(s: Source) -> Arguments:
    name = s.of(REALS)
    if s.chance(0.4):
        return [("start", py(s.int(0, 3))), ("limit", py(s.int(3, 9))), ("delta", py(s.one(1, 2)))]
    return [
        ("start", s.value(name, [], 0, 3)),
        ("limit", s.value(name, [], 3, 9)),
        ("delta", s.value(name, [], 1, 2)),
    ]


@op("norm", grad=True)
def norm(s: Source) -> Arguments:
    shape = s.dims(1)
    out: Arguments = [("tensor", s.value(s.of(FLOATS + COMPLEX), shape))]
    out.append(("ord", s.one(py("euclidean"), py(1), py(2), {"k": "float", "v": "inf"}, py(2.5))))
    if s.chance(0.7):
        out += [("axis", py(s.axis(len(shape)))), ("keepdims", py(s.chance(0.5)))]
    return out


@op("nn.moments", "nn.weighted_moments", grad=True)
def moments(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("x", s.value(s.of(FLOATS), shape)),
        ("axes", py([s.axis(len(shape))])),
        ("*keep_dims", py(s.chance(0.5))),
    ]


@op("invert_permutation")
def invert_permutation(s: Source) -> Arguments:
    kind = s.one("int32", "int64")
    return [("x", s.carried(s.np.permutation(s.size()).astype(kind), kind))]
