"""Partitioners: how a large variable is cut into shards.

>>> with tf.variable_scope("embedding", partitioner=fixed_size_partitioner(4)):
...     table = tf.get_variable("table", [100000, 64])  # a PartitionedVariable of four shards
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.shapes import TensorShape
from headrace.variables.partitioned_variable import PartitionedVariable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import InitializerLike, ReuseLike
    from headrace.core.dtypes import DType

__all__ = [
    "PartitionedVariable",
    "create_partitioned_variables",
    "fixed_size_partitioner",
    "min_max_variable_partitioner",
    "variable_axis_size_partitioner",
]

Partitioner = Callable[..., list[int]]


def _along(axis: int, rank: int, count: int) -> list[int]:
    return [count if i == axis % rank else 1 for i in range(rank)]


def _element_size(dtype: DType, bytes_per_string_element: int) -> int:
    dtype = dtypes.as_dtype(dtype).base_dtype
    return bytes_per_string_element if dtype is dtypes.string else dtype.size


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """A partitioner for ``get_variable``: shards of at most ``max_shard_bytes`` along ``axis``.

    Strings count as ``bytes_per_string_element``; there are at most ``max_shards``.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive. Currently: "
            f"max_shard_bytes={max_shard_bytes}, "
            f"bytes_per_string_element={bytes_per_string_element}"
        )
    if max_shards is not None and max_shards < 1:
        raise ValueError(f"max_shards must be positive. Currently: {max_shards}")

    def partitioner(shape: TensorShape, dtype: DType) -> list[int]:
        if not isinstance(shape, TensorShape):
            raise ValueError(f"shape is not a TensorShape: {shape}")
        if not shape.is_fully_defined():
            raise ValueError(f"shape is not fully defined: {shape}")
        dims: list[Any] = shape.as_list()
        others = math.prod(dims) / dims[axis] if dims[axis] else 0
        slice_bytes = others * _element_size(dtype, bytes_per_string_element)
        per_shard = (
            max(1, math.floor(max_shard_bytes / slice_bytes)) if slice_bytes else max(1, dims[axis])
        )
        shards = max(1, math.ceil(dims[axis] / per_shard))
        return _along(axis, len(dims), shards if max_shards is None else min(max_shards, shards))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """At most ``max_partitions`` shards, none smaller than ``min_slice_size`` bytes.

    For the ``partitioner`` of a variable scope: a function of shape and dtype. ``axis`` is the
    dimension that is cut, ``bytes_per_string_element`` the size a string counts.

        partitioner = tf.min_max_variable_partitioner(4, min_slice_size=16)
        partitioner(tf.TensorShape([8, 2]), tf.float32)  # [4, 1]
    """

    def partitioner(shape: TensorShape, dtype: DType) -> list[int]:
        if axis >= len(shape):
            raise ValueError(
                f"Can not partition variable along axis {axis} when shape is only {shape}"
            )
        dims: list[Any] = shape.as_list()
        total = math.prod(dims) * _element_size(dtype, bytes_per_string_element)
        wanted = math.ceil(total / min_slice_size)
        return _along(axis, len(dims), max(1, min(dims[axis], max_partitions, wanted)))

    return partitioner


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """``num_shards`` shards along ``axis`` (fewer if it is shorter)."""

    def partitioner(shape: TensorShape, **unused: object) -> list[int]:
        dims: list[Any] = shape.as_list()
        return _along(axis, len(dims), min(num_shards, dims[axis]))

    return partitioner


def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: InitializerLike,
    dtype: DType = dtypes.float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: ReuseLike = None,
) -> list[Any]:
    """A list of variables, the shards of one large variable of ``shape``: the pre-1.0 function.

    ``slicing`` has the number of shards of each dimension, at most one of them above 1.
    ``initializer`` is a value or a function of a shape. ``get_variable`` with a partitioner does
    more.
    """
    from headrace.variables.variable_scope import _get_partitioned_variable, variable_scope

    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a new Partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(f"A new Partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        made = _get_partitioned_variable(
            None,
            shape,
            dtype,
            initializer,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **unused: slicing,
        )
    return list(made)
