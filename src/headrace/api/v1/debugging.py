"""``tf.debugging``: assertions and checks."""

# ruff: noqa: I001, A001, A004 (one line per module keeps these tables readable)
# fmt: off

from headrace.api.missing import module_getattr
from headrace.ops.clip import check_numerics, verify_tensor_all_finite as assert_all_finite
from headrace.ops.comparison import is_finite, is_inf, is_nan
from headrace.ops.selecting import is_non_decreasing, is_strictly_increasing

__all__ = [
    "assert_all_finite", "check_numerics", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_strictly_increasing",
]

__getattr__ = module_getattr("debugging", __name__)
