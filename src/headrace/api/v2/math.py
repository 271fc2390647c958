"""``tf.math``: mathematics, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.array.casting import angle, conj, imag, real
from headrace.ops.math.comparison import (
    equal, greater, greater_equal, is_finite, is_inf, is_nan, less, less_equal, logical_and,
    logical_not, logical_or, logical_xor, not_equal,
)
from headrace.ops.array.gathering import invert_permutation
from headrace.ops.math.binary import (
    add, atan2, div_no_nan as divide_no_nan, divide, floordiv, floormod, floormod as mod,
    maximum, minimum, multiply, multiply_no_nan, nextafter, polyval, pow,
    scalar_mul_v2 as scalar_mul, squared_difference, subtract, truediv, xdivy, xlogy,
)
from headrace.ops.math.add_n import accumulate_n, add_n
from headrace.ops.math.unary import (
    abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, exp, expm1, floor, log, log1p,
    log_sigmoid, negative, reciprocal, reciprocal_no_nan, rint, round, rsqrt, sigmoid, sign, sin,
    sinh, sqrt, square, tan, tanh,
)
from headrace.ops.nn.activations import (
    log_softmax_v2 as log_softmax, softmax_v2 as softmax, softplus, softsign,
)
from headrace.ops.nn.cross_entropy import zero_fraction
from headrace.ops.nn.normalization import l2_normalize_v2 as l2_normalize
from headrace.ops.array.ranges import bincount, confusion_matrix_v2 as confusion_matrix
from headrace.ops.math.reductions import (
    count_nonzero_v2 as count_nonzero, reduce_all, reduce_any, reduce_euclidean_norm,
    reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_std, reduce_sum,
    reduce_variance,
)
from headrace.ops.math.arg_reductions import argmax_v2 as argmax, argmin_v2 as argmin
from headrace.ops.math.cumulative import cumprod, cumsum, cumulative_logsumexp
from headrace.ops.math.segments import (
    segment_max, segment_mean, segment_min, segment_prod, segment_sum, unsorted_segment_max,
    unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from headrace.ops.array.selecting import (in_top_k_v2 as in_top_k, top_k)
from headrace.ops.array.sorting import (is_non_decreasing, is_strictly_increasing)
from headrace.ops.math.special import (
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, betainc, digamma, erf, erfc, igamma, igammac,
    lbeta, lgamma, polygamma, zeta,
)

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "argmax", "argmin", "asin",
    "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e",
    "betainc", "bincount", "ceil", "confusion_matrix", "conj", "cos", "cosh", "count_nonzero",
    "cumprod", "cumsum", "cumulative_logsumexp", "digamma", "divide", "divide_no_nan", "equal",
    "erf", "erfc", "exp", "expm1", "floor", "floordiv", "floormod", "greater", "greater_equal",
    "igamma", "igammac", "imag", "in_top_k", "invert_permutation", "is_finite", "is_inf", "is_nan",
    "is_non_decreasing", "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal",
    "lgamma", "log", "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan",
    "negative", "nextafter", "not_equal", "polygamma", "polyval", "pow", "real", "reciprocal",
    "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax",
    "softplus", "softsign", "sqrt", "square", "squared_difference", "subtract", "tan", "tanh",
    "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlogy",
    "zero_fraction", "zeta",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("math", __name__)
