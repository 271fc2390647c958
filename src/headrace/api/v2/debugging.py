"""``tf.debugging``: assertions and checks, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.adapted import (
    assert_all_finite, assert_none_equal, assert_scalar,
)
from headrace.ops.control.shape_assertions import assert_shapes
from headrace.ops.control.assertions import (
    Assert, assert_equal_v2 as assert_equal, assert_greater_equal_v2 as assert_greater_equal,
    assert_greater_v2 as assert_greater, assert_integer_v2 as assert_integer,
    assert_less_equal_v2 as assert_less_equal, assert_less_v2 as assert_less,
    assert_near_v2 as assert_near, assert_negative_v2 as assert_negative,
    assert_non_negative_v2 as assert_non_negative, assert_non_positive_v2 as assert_non_positive,
    assert_positive_v2 as assert_positive, assert_proper_iterable,
    assert_rank_at_least_v2 as assert_rank_at_least, assert_rank_in_v2 as assert_rank_in,
    assert_rank_v2 as assert_rank, assert_same_float_dtype, assert_type_v2 as assert_type,
    is_numeric_tensor,
)
from headrace.ops.math.clip import check_numerics

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics",
    "is_numeric_tensor",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("debugging", __name__)
