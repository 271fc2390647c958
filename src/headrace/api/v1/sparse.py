"""``tf.sparse``: sparse tensors."""

# ruff: noqa: I001, A001, A004 (one line per module keeps these tables readable)
# fmt: off

from headrace.api.missing import module_getattr
from headrace.ops.segments import (
    sparse_segment_mean as segment_mean, sparse_segment_sqrt_n as segment_sqrt_n,
    sparse_segment_sum as segment_sum,
)

__all__ = [
    "segment_mean", "segment_sqrt_n", "segment_sum",
]

__getattr__ = module_getattr("sparse", __name__)
