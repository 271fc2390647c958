"""``tf.contrib.training.bucket``: elements go by kind into queues, batches come from one kind.

>>> lengths, batch = bucket_by_sequence_length(n, [words], 32, [10, 20, 40], dynamic_pad=True)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.ops.array.basic import no_op
from headrace.ops.array.casting import cast
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.control_flow import cond, smart_cond
from headrace.ops.control.dependencies import group
from headrace.ops.math.comparison import equal, less, less_equal, logical_and
from headrace.ops.math.reductions import reduce_min
from headrace.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from headrace.train.input_queues.batches import (
    _as_given,
    _as_list,
    _keep_input,
    _shapes,
    _sparse_again,
    _tensors,
)
from headrace.train.input_queues.queue_runner import QueueRunner, add_queue_runner
from headrace.train.summaries.summary_functions import scalar

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation, Tensor

__all__ = ["bucket", "bucket_by_sequence_length"]

_CLOSED = (errors.OutOfRangeError, errors.CancelledError)


def _sizes(batch_size: TensorLike, num_buckets: int) -> list[Any]:
    """Each bucket's batch size, as a number where it is known."""
    if isinstance(batch_size, (list, tuple)):
        if len(batch_size) != num_buckets:
            raise ValueError("If batch_size is a list it must have num_buckets elements")
        given = list(batch_size)
    else:
        given = [batch_size] * num_buckets
    tensors = [convert_to_tensor(s, dtype=dtypes.int32, name="batch_size") for s in given]
    known = [static_value(t) for t in tensors]
    return [t if k is None else int(k) for t, k in zip(tensors, known, strict=True)]


def _add_runners(
    queues: list[QueueBase], top: QueueBase, to_top: list[Any], fill: Sequence[Any]
) -> None:
    def closed(cancel: bool) -> Operation:
        return group(*[q.close(cancel_pending_enqueues=cancel) for q in queues])

    end, cancel = top.close(), top.close(cancel_pending_enqueues=True)
    add_queue_runner(QueueRunner(queues[0], to_top, end, cancel, _CLOSED))
    add_queue_runner(QueueRunner(top, fill, closed(False), closed(True), _CLOSED))


def bucket(
    tensors: Any,
    which_bucket: TensorLike,
    batch_size: TensorLike,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, ...]:
    """Batches of elements of one bucket: (which bucket, the tensors of the batch).

    ``which_bucket`` is an int32 scalar for the element ``tensors``; ``batch_size`` a number or one
    for each bucket. Queue runners fill the queues, as with ``tf.train.batch``.
    """
    per_bucket = isinstance(batch_size, (list, tuple))
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(capacities) != num_buckets:
        raise ValueError(
            f"The list bucket_capacities ({bucket_capacities}) must have exactly num_buckets "
            f"({num_buckets}) elements."
        )
    elements = _as_list(tensors)
    with name_scope(name, "bucket", elements):
        if not elements:
            raise ValueError("Expected at least one tensor in bucket().")
        (given,) = _tensors([elements], enqueue_many=False)
        keep = _keep_input(keep_input, enqueue_many=False)
        sizes = _sizes(batch_size, num_buckets)
        types = [t.dtype.base_dtype for t in given]
        known = _shapes([given], shapes, enqueue_many=False)
        which = convert_to_tensor(which_bucket, dtype=dtypes.int32, name="which_bucket")
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues: list[QueueBase] = []
        for i, room in enumerate(capacities):
            shared = None if shared_name is None else f"{shared_name}_{i}"
            queues.append(kind(room, types, known, shared_name=shared, name=f"bucket_queue_{i}"))
        fixed = not (allow_smaller_final_batch or per_bucket) and isinstance(sizes[-1], int)
        rows = TensorShape([sizes[-1] if fixed else None])
        top = PaddingFIFOQueue(
            capacity,
            [dtypes.int32, *types],
            [TensorShape([]), *(rows.concatenate(s) for s in queues[0].shapes)],
            shared_name=shared_name,
            name="top_queue",
        )
        fill = smart_cond(keep, lambda: _enqueue_by_kind(queues, which, given), no_op)
        _add_runners(queues, top, _moves(queues, top, sizes, allow_smaller_final_batch),
                     [fill] * num_threads)  # fmt: skip
        for queue in queues:
            scalar(f"bucket/{queue.name}/size", cast(top.size(), dtypes.float32))
        full = cast(top.size(), dtypes.float32) * (1.0 / capacity)
        scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", full)
        number, *taken = top.dequeue(name="dequeue_top")
        batch = _sparse_again(taken, [elements], enqueue_many=False)
        batch = batch if isinstance(batch, list) else [batch]
        return number, _as_given(tensors, batch[0] if len(batch) == 1 else batch)


def _enqueue_by_kind(queues: list[QueueBase], which: Tensor, given: list[Any]) -> Operation:
    adds = [
        cond(equal(which, i), functools.partial(queue.enqueue, given), no_op)
        for i, queue in enumerate(queues)
    ]
    return group(*adds, name="group_enqueues")


def _moves(queues: list[QueueBase], top: QueueBase, sizes: list[Any], smaller: bool) -> list[Any]:
    """Operations that take a batch of a bucket to the queue of batches."""
    moves = []
    for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        batch = take(size, name=f"read_bucket_{i}")
        batch = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        number = convert_to_tensor(i, dtype=dtypes.int32)
        moves.append(top.enqueue([number, *batch], name=f"enqueue_from_bucket_{i}"))
    return moves


def bucket_by_sequence_length(
    input_length: TensorLike,
    tensors: Any,
    batch_size: TensorLike,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, ...]:
    """Batches of elements of like length: (their lengths, the tensors of the batch).

    ``bucket_boundaries`` [10, 20] makes three buckets: below 10, below 20, the others.
    """
    elements = _as_list(tensors)
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(
            f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}"
        )
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in itertools.pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}"
            )
    with name_scope(name, "bucket_by_sequence_length", [input_length, *elements]):
        length = convert_to_tensor(input_length, dtype=dtypes.int32, name="input_length")
        limits = np.iinfo(np.int32)
        inside = logical_and(
            less_equal([limits.min, *bucket_boundaries], length),
            less(length, [*bucket_boundaries, limits.max]),
        )
        _, found = bucket(
            tensors=[length, *elements],
            which_bucket=cast(reduce_min(where_v2(inside)), dtypes.int32),
            batch_size=batch_size,
            num_buckets=len(bucket_boundaries) + 1,
            num_threads=num_threads,
            capacity=capacity,
            bucket_capacities=bucket_capacities,
            shapes=None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad=dynamic_pad,
            allow_smaller_final_batch=allow_smaller_final_batch,
            keep_input=keep_input,
            shared_name=shared_name,
        )
        return found[0], _as_given(tensors, found[1:])
