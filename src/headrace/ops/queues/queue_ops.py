"""The ops of queues.

The value of a queue's handle is an array of rank 0 with its :class:`QueueResource`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.dtypes import int64
from headrace.core.infer import Inference
from headrace.core.opdef import KernelNode
from headrace.core.shapes import to_plain
from headrace.ops.queues.queue_resource import (
    FifoQueue,
    PaddingQueue,
    PriorityQueueResource,
    QueueResource,
    ShuffleQueue,
)
from headrace.ops.queues.waiting_resource import define_op

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.lower.session_state import RunContext

__all__ = [
    "DEQUEUE",
    "DEQUEUE_MANY",
    "DEQUEUE_UP_TO",
    "ENQUEUE",
    "ENQUEUE_MANY",
    "FIFO_QUEUE",
    "PADDING_QUEUE",
    "PRIORITY_QUEUE",
    "QUEUE_CLOSE",
    "QUEUE_IS_CLOSED",
    "QUEUE_SIZE",
    "SHUFFLE_QUEUE",
]

_NAMES = "container: str='', shared_name: str=''"


def _key(node: KernelNode) -> tuple[str, str]:
    return ("queue", f"{node.attrs['container']}/{node.attrs['shared_name'] or node.key}")


def _make_queue(node: KernelNode, rt: RunContext, kind: type[Any], **options: object) -> Array:
    """The queue in an array of rank 0, so that handles can be packed and gathered
    (``QueueBase.from_list``).
    """
    attrs = node.attrs
    name = attrs["shared_name"] or f"_0_{node.name}"
    types, shapes = list(attrs["component_types"]), [to_plain(s) for s in attrs["shapes"]]
    if kind is PriorityQueueResource:
        types, shapes = [int64, *types], [(), *shapes] if shapes else []
    handle = np.empty((), object)
    queue = rt.session_resource(
        _key(node), lambda: kind(name, types, shapes, attrs["capacity"], **options)
    )
    least = attrs.get("min_after_dequeue", 0)
    queue.check_shared(types, shapes, attrs["capacity"], least)
    handle[()] = queue
    return handle


def _fifo(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
    return _make_queue(node, rt, FifoQueue)


def _padding(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
    return _make_queue(node, rt, PaddingQueue)


def _priority(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
    return _make_queue(node, rt, PriorityQueueResource)


def _shuffle(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
    options = {k: node.attrs[k] for k in ("min_after_dequeue", "seed", "seed2")}
    return _make_queue(node, rt, ShuffleQueue, **options)


def _handle(c: Inference) -> list[Any]:
    return [()]


_QUEUE = "component_types: list(type), shapes: list(shape)=[], capacity: int=-1"
FIFO_QUEUE = define_op("FIFOQueueV2", f"-> handle: resource; {_QUEUE}, {_NAMES}", _fifo, _handle)
PADDING_QUEUE = define_op(
    "PaddingFIFOQueueV2", f"-> handle: resource; {_QUEUE}, {_NAMES}", _padding, _handle
)
PRIORITY_QUEUE = define_op(
    "PriorityQueueV2",
    "-> handle: resource; component_types: list(type)=[], shapes: list(shape), capacity: int=-1, "
    + _NAMES,
    _priority,
    _handle,
)
SHUFFLE_QUEUE = define_op(
    "RandomShuffleQueueV2",
    f"-> handle: resource; {_QUEUE}, min_after_dequeue: int=0, seed: int=0, seed2: int=0, {_NAMES}",
    _shuffle,
    _handle,
)


def _queue(handle: Array | QueueResource) -> QueueResource:
    """A handle's queue; Gather gives the queue without an array around it."""
    return handle.item() if isinstance(handle, np.ndarray) else handle


def _enqueue(xp: ArrayNamespace, handle: Array | QueueResource, *components: Array) -> tuple[()]:
    _queue(handle).enqueue(components)
    return ()


def _enqueue_many(xp: ArrayNamespace, handle: Array, *components: Array) -> tuple[()]:
    _queue(handle).enqueue_many(components)
    return ()


def _one_or_all(
    element: tuple[Any, ...],
) -> Array | np.generic | tuple[Array | np.generic, Array | np.generic]:
    return element if len(element) != 1 else element[0]


def _dequeue(xp: ArrayNamespace, handle: Array) -> Any:
    element = _queue(handle).dequeue()
    return _one_or_all(tuple([c if c.ndim or c.dtype == object else c[()] for c in element]))


def _dequeue_many(xp: ArrayNamespace, handle: Array, n: Array) -> Any:
    return _one_or_all(_queue(handle).dequeue_many(int(n)))


def _dequeue_up_to(xp: ArrayNamespace, handle: Array, n: Array) -> Any:
    return _one_or_all(_queue(handle).dequeue_many(int(n), up_to=True))


def _close(xp: ArrayNamespace, handle: Array, *, cancel_pending_enqueues: bool) -> tuple[()]:
    _queue(handle).close(cancel_pending_enqueues)
    return ()


def _no_outputs(c: Inference) -> list[Any]:
    return []


def _unknown(c: Inference) -> list[Any]:
    return [None] * len(c.attr("component_types"))


_IN = "handle: resource, components: *Tcomponents -> ; timeout_ms: int=-1"
_OUT = "-> components: *component_types; component_types: list(type), timeout_ms: int=-1"
ENQUEUE = define_op("QueueEnqueueV2", _IN, _enqueue, _no_outputs, blocking=True)
ENQUEUE_MANY = define_op("QueueEnqueueManyV2", _IN, _enqueue_many, _no_outputs, blocking=True)
DEQUEUE = define_op("QueueDequeueV2", f"handle: resource {_OUT}", _dequeue, _unknown, blocking=True)
DEQUEUE_MANY = define_op(
    "QueueDequeueManyV2", f"handle: resource, n: int32 {_OUT}", _dequeue_many, _unknown, True
)
DEQUEUE_UP_TO = define_op(
    "QueueDequeueUpToV2", f"handle: resource, n: int32 {_OUT}", _dequeue_up_to, _unknown, True
)
QUEUE_CLOSE = define_op(
    "QueueCloseV2", "handle: resource -> ; cancel_pending_enqueues: bool=False", _close, _no_outputs
)
QUEUE_IS_CLOSED = define_op(
    "QueueIsClosedV2",
    "handle: resource -> is_closed: bool",
    lambda xp, handle: np.bool_(_queue(handle).closed),
    _handle,
)
QUEUE_SIZE = define_op(
    "QueueSizeV2",
    "handle: resource -> size: int32",
    lambda xp, handle: np.int32(_queue(handle).size()),
    _handle,
)
