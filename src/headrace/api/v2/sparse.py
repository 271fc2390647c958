"""``tf.sparse``: sparse tensors, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.adapted import (
    sparse_concat as concat, sparse_reduce_max as reduce_max, sparse_reduce_sum as reduce_sum,
    sparse_segment_mean as segment_mean, sparse_segment_sqrt_n as segment_sqrt_n,
    sparse_segment_sum as segment_sum, sparse_split as split,
)
from headrace.ops.sparse.sparse_tensor import (
    sparse_eye as eye, sparse_from_dense as from_dense, sparse_map_values as map_values,
    sparse_tensor_dense_matmul as     sparse_dense_matmul, sparse_tensor_to_dense as to_dense,
    SparseTensor,
)
from headrace.ops.sparse.sparse_arranging import sparse_to_indicator as to_indicator
from headrace.ops.sparse.sparse_arranging import (
    sparse_expand_dims as expand_dims, sparse_fill_empty_rows as fill_empty_rows,
    sparse_mask as mask, sparse_reorder as reorder, sparse_reset_shape as reset_shape,
    sparse_reshape as reshape, sparse_retain as retain, sparse_slice as slice,
    sparse_transpose as transpose,
)  # fmt: skip
from headrace.ops.sparse.sparse_arithmetic import (
    sparse_add as add, sparse_maximum as maximum, sparse_minimum as minimum, sparse_softmax as
    softmax,
)  # fmt: skip

__all__ = [
    "add", "concat", "expand_dims", "eye", "fill_empty_rows", "from_dense", "map_values", "mask",
    "maximum", "minimum",
    "reduce_max", "reduce_sum", "reorder", "reset_shape", "reshape", "retain", "segment_mean",
    "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "SparseTensor",
    "split", "to_dense", "to_indicator", "transpose",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("sparse", __name__)
