"""``tf.dynamic_partition`` and ``tf.dynamic_stitch``: rows distributed by number and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import (
    convert_to_tensor,
)
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.gathering import GATHER_V2
from headrace.ops.array.index_kernels import (
    partition_kernel,
    stitch_kernel,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike

__all__ = ["dynamic_partition", "dynamic_stitch", "parallel_dynamic_stitch"]


# partition and stitch ---------------------------------------------------------------------------


def _partition_shape(c: Inference) -> list[Shape]:
    data, partitions, n = c.shape(0), c.shape(1), c.attr("num_partitions")
    if data is None or partitions is None:
        return [None] * n
    if not shapes.compatible(data[: len(partitions)], partitions):
        raise ValueError(
            f"data.shape must start with partitions.shape: {shapes.show(data)} and "
            f"{shapes.show(partitions)}"
        )
    return [(None, *data[len(partitions) :])] * n


def _partition_grad(op: Operation, *grads: Tensor) -> list[Any]:
    """Number the rows, partition the numbers as the data was, and stitch the gradients back by
    number.
    """
    data, partitions = op.inputs
    n = op._attrs["num_partitions"]
    prefix = shape(partitions)
    count = apply_op("Size", partitions)
    numbers = apply_op("Reshape", apply_op("Range", const(0), count, const(1)), prefix)
    places = apply_list(DYNAMIC_PARTITION, numbers, partitions, num_partitions=n)
    given = [
        apply_op("ZerosLike", o) if g is None else convert_to_tensor(g)
        for g, o in zip(grads, op.outputs)
    ]
    whole = apply(DYNAMIC_STITCH, list(places), given)
    return [apply_op("Reshape", whole, shape(data)), None]


DYNAMIC_PARTITION = define(
    "DynamicPartition",
    "data: T, partitions: int32 -> outputs: num_partitions*T; num_partitions: int",
    shape=_partition_shape,
    kernel=partition_kernel,
    grad=_partition_grad,
    data_dependent_shape=True,
)


def _stitch_shape(c: Inference) -> list[Shape]:
    n = c.n_inputs // 2
    inner: Shape = None
    size: int | None = 0
    for i in range(n):
        index, data, value = c.shape(i), c.shape(n + i), c.value(i)
        if index is not None and data is not None:
            shapes.merge(index, data[: len(index)])
            inner = shapes.merge(inner, data[len(index) :])
        if value is None:
            size = None
        elif size is not None and value.size:
            size = max(size, int(value.max()) + 1)
    return [None if inner is None else (size, *inner)]


def _stitch_grad(op: Operation, grad: Tensor) -> list[Any]:
    n = op._attrs["N"]
    grads = [apply(GATHER_V2, grad, ix, const(0)) for ix in op.inputs[:n]]
    return [None] * n + grads


_STITCH = "indices: N*int32, data: N*T -> merged: T"
DYNAMIC_STITCH = define(
    "DynamicStitch",
    _STITCH,
    shape=_stitch_shape,
    kernel=stitch_kernel,
    grad=_stitch_grad,
    data_dependent_shape=True,
)
PARALLEL_DYNAMIC_STITCH = define(
    "ParallelDynamicStitch",
    _STITCH,
    shape=_stitch_shape,
    kernel=stitch_kernel,
    grad=_stitch_grad,
    data_dependent_shape=True,
)


@dispatched("dynamic_partition")
def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """A list of ``num_partitions`` tensors: row i of ``data`` goes into entry ``partitions[i]``.

    tf.dynamic_partition([10, 20, 30], [0, 1, 0], 2)        # [10, 30] and [20]
    """
    return apply_list(DYNAMIC_PARTITION, data, partitions, num_partitions=num_partitions, name=name)


def dynamic_stitch(
    indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """The inverse of ``dynamic_partition``: ``merged[indices[m][i]] = data[m][i]``.

    Later entries win where an index occurs twice.

        tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]])      # [10, 20, 30]
    """
    return apply(DYNAMIC_STITCH, list(indices), list(data), name=name)


def parallel_dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    return apply(PARALLEL_DYNAMIC_STITCH, list(indices), list(data), name=name)
