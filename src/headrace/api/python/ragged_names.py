"""Names that TensorFlow's modules of ragged tensors have and its public namespaces have not.

ragged_math_ops.segment_sum(rows, [0, 0, 1], 2)
ragged_map_ops.map_fn(f, rows, dtype=RaggedTensorType(tf.int64, ragged_rank=1))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.core import nest
from headrace.ops.array.array_shape import squeeze_v2 as squeeze
from headrace.ops.array.joining import concat
from headrace.ops.array.padding import repeat
from headrace.ops.control import functional
from headrace.ops.math.segments import (
    unsorted_segment_max as segment_max,
)
from headrace.ops.math.segments import (
    unsorted_segment_mean as segment_mean,
)
from headrace.ops.math.segments import (
    unsorted_segment_min as segment_min,
)
from headrace.ops.math.segments import (
    unsorted_segment_prod as segment_prod,
)
from headrace.ops.math.segments import (
    unsorted_segment_sqrt_n as segment_sqrt_n,
)
from headrace.ops.math.segments import (
    unsorted_segment_sum as segment_sum,
)
from headrace.ops.ragged.ragged_map import RaggedTensorType
from headrace.ops.ragged.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
)
from headrace.ops.strings.string_ops import reduce_join_v2 as reduce_join

__all__ = [
    "RaggedTensorType",
    "concat",
    "from_sparse",
    "from_tensor",
    "is_ragged",
    "map_fn",
    "reduce_join",
    "repeat",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sqrt_n",
    "segment_sum",
    "squeeze",
    "to_sparse",
    "to_tensor",
]

from_sparse = RaggedTensor.from_sparse
from_tensor = RaggedTensor.from_tensor


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``tf.map_fn`` of rows; without ``dtype`` the results are dense, of the types of ``elems``."""
    if dtype is None:
        rows = nest.map_structure(convert_to_tensor_or_ragged_tensor, elems)
        elems, dtype = rows, nest.map_structure(lambda r: r.dtype, rows)
    options = (parallel_iterations, back_prop, swap_memory, infer_shape, name)
    return functional.map_fn(fn, elems, dtype, *options)


def to_tensor(rt_input: Any, default_value: object = None, name: str | None = None) -> Any:
    """A ragged tensor as a dense one; others as they are."""
    return rt_input.to_tensor(default_value, name) if is_ragged(rt_input) else rt_input


def to_sparse(rt_input: Any, name: str | None = None) -> Any:
    """A ragged tensor as a sparse one."""
    return rt_input.to_sparse(name)
