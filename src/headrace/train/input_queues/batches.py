"""``tf.train.batch`` and ``shuffle_batch``: batches of what threads produce one by one.

>>> images, labels = tf.train.shuffle_batch(
...     [image, label], batch_size=32, capacity=2000, min_after_dequeue=1000)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import no_op
from headrace.ops.array.casting import cast
from headrace.ops.array.partitioning import dynamic_partition
from headrace.ops.control.control_flow import cond
from headrace.ops.io.sparse_rows import (
    deserialize_many_sparse,
    serialize_many_sparse,
    serialize_sparse,
)
from headrace.ops.math.binary import maximum
from headrace.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.train.input_queues.producers import fullness_summary
from headrace.train.input_queues.queue_runner import QueueRunner, add_queue_runner

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
]


def _as_list(tensors: Any) -> list[Any]:
    if isinstance(tensors, dict):
        return [tensors[k] for k in sorted(tensors, key=str)]
    return list(tensors) if isinstance(tensors, (list, tuple)) else tensors


def _as_lists(tensors_list: Sequence[Any]) -> list[list[Any]]:
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    if isinstance(tensors_list[0], dict):
        keys = set(tensors_list[0])
        if any(set(tensors) != keys for tensors in tensors_list[1:]):
            raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [_as_list(tensors) for tensors in tensors_list]


def _as_given(
    original: Sequence[Tensor] | Mapping[str, Any], dequeued: Tensor | Sequence[Tensor]
) -> dict[Any, Any] | Tensor | Sequence[Tensor]:
    """The batches in the structure of the tensors: a dictionary gives a dictionary."""
    if not isinstance(original, dict):
        return dequeued
    values = [dequeued] if len(original) == 1 else dequeued
    return dict(zip(sorted(original, key=str), values))


def _tensors(lists: list[Any], enqueue_many: bool) -> list[list[Tensor]]:
    """What goes into the queue: sparse tensors as strings."""
    if not lists[0]:
        raise ValueError("Expected at least one tensor in batch().")
    return [[_for_queue(t, enqueue_many) for t in tensors] for tensors in lists]


def _for_queue(tensor: object, enqueue_many: bool) -> Tensor:
    if not isinstance(tensor, SparseTensor):
        return convert_to_tensor(tensor)
    return serialize_many_sparse(tensor) if enqueue_many else serialize_sparse(tensor)


def _sparse_again(dequeued: object, lists: list[Any], enqueue_many: bool) -> Any:
    """The batches, with sparse ones where the elements are sparse."""
    columns = list(zip(*lists, strict=True))
    if not any(isinstance(c[0], SparseTensor) for c in columns):
        return dequeued
    taken = dequeued if isinstance(dequeued, (list, tuple)) else [dequeued]
    found: list[Any] = []
    for batch_of, column in zip(taken, columns, strict=True):
        if not isinstance(column[0], SparseTensor):
            found.append(batch_of)
            continue
        ranks = {t.shape.ndims for t in column}
        rank = ranks.pop() if len(ranks) == 1 else None
        if rank is not None and not enqueue_many:
            rank += 1
        found.append(deserialize_many_sparse(batch_of, column[0].dtype, rank))
    return found[0] if len(found) == 1 else found


def _check_sparse(lists: list[Any], enqueue_many: bool, keep: Tensor) -> None:
    for column in zip(*lists, strict=True):
        sparse = [isinstance(t, SparseTensor) for t in column]
        if any(sparse) and not all(sparse):
            raise TypeError("Inconsistent sparse and dense tensors in tensors_list.")
        if any(sparse) and enqueue_many and keep.get_shape().ndims == 1:
            raise NotImplementedError(
                "a vector `keep_input` for sparse tensors is not in Headrace: use "
                "tf.sparse.retain before"
            )


def _keep_input(keep_input: TensorLike, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input)
    rank = keep.get_shape().ndims
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _types(lists: list[list[Tensor]]) -> list[Any]:
    types = [t.dtype.base_dtype for t in lists[0]]
    for tensors in lists[1:]:
        other = [t.dtype.base_dtype for t in tensors]
        if other != types:
            ours, theirs = (", ".join(t.name for t in ts) for ts in (types, other))
            raise TypeError(f"Expected types to be consistent: {ours} vs. {theirs}.")
    return types


def _shapes(lists: list[list[Tensor]], shapes: object, enqueue_many: bool) -> Any:
    if shapes is not None:
        return shapes
    merged = []
    for column in zip(*lists):
        for tensor in column:
            if tensor.get_shape().ndims is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
        known = [t.get_shape() for t in column]
        if enqueue_many:
            known = [s.with_rank_at_least(1)[1:] for s in known]
        for other in known[1:]:
            known[0].merge_with(other)  # ValueError if they do not fit
        merged.append(known[0])
    return merged


def _enqueue_op(queue: QueueBase, tensors: list[Tensor], enqueue_many: bool, keep: Tensor) -> Any:
    add = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.get_shape().ndims == 1:
        chosen = cast(keep, dtypes.int32)
        return add([dynamic_partition(t, chosen, num_partitions=2)[1] for t in tensors])
    known = static_value(keep)
    if known is not None:
        return add(tensors) if known else no_op()
    return cond(keep, lambda: add(tensors), no_op)


def _batched(
    name: str | None,
    scope_name: str,
    original: Any,
    lists: list[Any],
    batch_size: Any,
    keep_input: Any,
    *,
    threads: int = 1,
    capacity: int,
    min_after_dequeue: int | None = None,
    seed: int | None = None,
    enqueue_many: bool,
    shapes: object,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool,
    shared_name: str | None,
) -> Any:
    """The queue, its runner, its summary, and the batches.

    ``min_after_dequeue`` makes it a shuffling one.
    """
    if get_default_graph()._is_eager:
        raise ValueError(
            "Input pipelines based on Queues are not supported when eager execution is "
            "enabled. Please use tf.data "
            "to ingest data into your model instead."
        )
    values = [t for tensors in lists for t in tensors]
    with name_scope(name, scope_name, [*values, keep_input]) as scope:
        if min_after_dequeue is not None and capacity <= min_after_dequeue:
            raise ValueError(
                f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}."
            )
        keep = _keep_input(keep_input, enqueue_many)
        _check_sparse(lists, enqueue_many, keep)
        tensors = _tensors(lists, enqueue_many)
        types, known = _types(tensors), _shapes(tensors, shapes, enqueue_many)
        queue = _queue(capacity, min_after_dequeue, seed, types, known, dynamic_pad, shared_name)
        ops = [_enqueue_op(queue, ts, enqueue_many, keep) for ts in tensors]
        add_queue_runner(QueueRunner(queue, ops * threads))
        _summarize(queue, capacity, min_after_dequeue)
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        taken = _sparse_again(take(batch_size, name=scope), lists, enqueue_many)
        return _as_given(original, taken)


def _queue(
    capacity: int,
    min_after_dequeue: int | None,
    seed: int | None,
    types: list[Any],
    shapes: list[TensorShape],
    dynamic_pad: bool,
    shared_name: str | None,
) -> QueueBase:
    if min_after_dequeue is not None:
        return RandomShuffleQueue(
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed,
            dtypes=types,
            shapes=shapes,
            shared_name=shared_name,
        )
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return kind(capacity=capacity, dtypes=types, shapes=shapes, shared_name=shared_name)


def _summarize(queue: QueueBase, capacity: int, least: int | None) -> None:
    if least is None:
        fullness_summary(
            f"fraction_of_{capacity}_full", cast(queue.size(), dtypes.float32) * (1.0 / capacity)
        )
        return
    over = capacity - least
    full = cast(maximum(0, queue.size() - least), dtypes.float32) * (1.0 / over)
    fullness_summary(f"fraction_over_{least}_of_{over}_full", full)


def maybe_batch(
    tensors: object,
    keep_input: TensorLike,
    batch_size: TensorLike,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.train.batch`` of those elements for which ``keep_input`` is true.

    With ``enqueue_many``, ``keep_input`` may be a vector with a bool for each element.
    ``num_threads`` threads compute the tensors. ``batch_size`` elements make a batch; the queue
    keeps ``capacity``. With ``enqueue_many`` the tensors are batches themselves. ``shapes`` are the
    elements' static shapes if they are not known. With ``allow_smaller_final_batch`` the last batch
    may be smaller, otherwise its elements are lost. Start the threads with
    ``tf.train.start_queue_runners``.
    """
    return _batched(
        name,
        "batch",
        tensors,
        [_as_list(tensors)],
        batch_size,
        keep_input,
        threads=num_threads,
        capacity=capacity,
        enqueue_many=enqueue_many,
        shapes=shapes,
        dynamic_pad=dynamic_pad,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
    )


def batch(
    tensors: Any,
    batch_size: TensorLike,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of ``tensors`` (a list or a dictionary) in the order in which threads produce them.

    ``enqueue_many``: the tensors are batches themselves. ``dynamic_pad``: dimensions may differ;
    shorter ones are padded.

    ``num_threads`` threads compute the tensors. ``batch_size`` elements make a batch; the queue
    keeps ``capacity``. With ``enqueue_many`` the tensors are batches themselves. ``shapes`` are the
    elements' static shapes if they are not known. With ``allow_smaller_final_batch`` the last batch
    may be smaller, otherwise its elements are lost. Start the threads with
    ``tf.train.start_queue_runners``.
    """
    return maybe_batch(
        tensors,
        True,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: object,
    batch_size: TensorLike,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.train.batch_join`` of those elements for which ``keep_input`` is true.

    ``batch_size`` elements make a batch; the queue keeps ``capacity``. With ``enqueue_many`` the
    tensors are batches themselves. ``shapes`` are the elements' static shapes if they are not
    known. With ``allow_smaller_final_batch`` the last batch may be smaller, otherwise its elements
    are lost. Start the threads with ``tf.train.start_queue_runners``.
    """
    lists = _as_lists(tensors_list)
    return _batched(
        name,
        "batch_join",
        tensors_list[0],
        lists,
        batch_size,
        keep_input,
        capacity=capacity,
        enqueue_many=enqueue_many,
        shapes=shapes,
        dynamic_pad=dynamic_pad,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: TensorLike,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of what several lists of tensors produce, with a thread for each list of
    ``tensors_list``.

    ``dynamic_pad``: dimensions may differ; shorter ones are padded. ``batch_size`` elements make a
    batch; the queue keeps ``capacity``. With ``enqueue_many`` the tensors are batches themselves.
    ``shapes`` are the elements' static shapes if they are not known. With
    ``allow_smaller_final_batch`` the last batch may be smaller, otherwise its elements are lost.
    Start the threads with ``tf.train.start_queue_runners``.
    """
    return maybe_batch_join(
        tensors_list,
        True,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: object,
    batch_size: object,
    capacity: int,
    min_after_dequeue: int,
    keep_input: object,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.train.shuffle_batch`` of those elements for which ``keep_input`` is true.

    ``num_threads`` threads compute the tensors. ``batch_size`` elements make a batch; the queue
    keeps ``capacity``. With ``enqueue_many`` the tensors are batches themselves. ``shapes`` are the
    elements' static shapes if they are not known. With ``allow_smaller_final_batch`` the last batch
    may be smaller, otherwise its elements are lost. Start the threads with
    ``tf.train.start_queue_runners``. At least ``min_after_dequeue`` elements stay in the queue to
    be mixed.
    """
    return _batched(
        name,
        "shuffle_batch",
        tensors,
        [_as_list(tensors)],
        batch_size,
        keep_input,
        threads=num_threads,
        capacity=capacity,
        min_after_dequeue=min_after_dequeue,
        seed=seed,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
    )


def shuffle_batch(
    tensors: TensorLike,
    batch_size: TensorLike,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches in a random order: each element is drawn from at least ``min_after_dequeue`` others.

    ``num_threads`` threads compute the tensors. ``batch_size`` elements make a batch; the queue
    keeps ``capacity``. With ``enqueue_many`` the tensors are batches themselves. ``shapes`` are the
    elements' static shapes if they are not known. With ``allow_smaller_final_batch`` the last batch
    may be smaller, otherwise its elements are lost. Start the threads with
    ``tf.train.start_queue_runners``.
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.train.shuffle_batch_join`` of those elements for which ``keep_input`` is true.

    ``batch_size`` elements make a batch; the queue keeps ``capacity``. With ``enqueue_many`` the
    tensors are batches themselves. ``shapes`` are the elements' static shapes if they are not
    known. With ``allow_smaller_final_batch`` the last batch may be smaller, otherwise its elements
    are lost. Start the threads with ``tf.train.start_queue_runners``. At least
    ``min_after_dequeue`` elements stay in the queue to be mixed.
    """
    lists = _as_lists(tensors_list)
    return _batched(
        name,
        "shuffle_batch_join",
        tensors_list[0],
        lists,
        batch_size,
        keep_input,
        capacity=capacity,
        min_after_dequeue=min_after_dequeue,
        seed=seed,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
    )


def shuffle_batch_join(
    tensors_list: object,
    batch_size: object,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: object = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Shuffled batches of what several lists of tensors produce, with a thread for each list of
    ``tensors_list``.

    ``batch_size`` elements make a batch; the queue keeps ``capacity``. With ``enqueue_many`` the
    tensors are batches themselves. ``shapes`` are the elements' static shapes if they are not
    known. With ``allow_smaller_final_batch`` the last batch may be smaller, otherwise its elements
    are lost. Start the threads with ``tf.train.start_queue_runners``. At least
    ``min_after_dequeue`` elements stay in the queue to be mixed.
    """
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )
