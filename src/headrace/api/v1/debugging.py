"""``tf.debugging``: assertions and checks."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.control.assertions import (
    Assert, assert_equal, assert_greater, assert_greater_equal, assert_integer, assert_less,
    assert_less_equal, assert_near, assert_negative, assert_non_negative, assert_non_positive,
    assert_none_equal, assert_positive, assert_proper_iterable, assert_rank,
    assert_rank_at_least, assert_rank_in, assert_same_float_dtype, assert_scalar, assert_type,
    is_numeric_tensor,
)
from headrace.ops.control.shape_assertions import assert_shapes
from headrace.ops.math.clip import check_numerics, verify_tensor_all_finite as assert_all_finite
from headrace.ops.math.comparison import is_finite, is_inf, is_nan
from headrace.ops.array.sorting import (is_non_decreasing, is_strictly_increasing)

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type",
    "check_numerics", "is_finite", "is_inf", "is_nan", "is_non_decreasing", "is_numeric_tensor",
    "is_strictly_increasing",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("debugging", __name__)
