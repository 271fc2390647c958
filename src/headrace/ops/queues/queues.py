"""``tf.FIFOQueue`` and its like: queues as a program sees them.

>>> queue = tf.FIFOQueue(10, tf.float32, shapes=())
>>> put, get = queue.enqueue_many([[1.0, 2.0]]), queue.dequeue()
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_list, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import get_seed
from headrace.core.shapes import Dimension, TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.gathering import gather
from headrace.ops.array.joining import stack
from headrace.ops.queues import queue_ops

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


def _type_list(given: object) -> list[DType]:
    return [as_dtype(t) for t in (given if isinstance(given, (list, tuple)) else [given])]


def _shape_list(
    given: object, types: list[DType], unknown_dim: bool = False, unknown_rank: bool = False
) -> list[TensorShape] | None:
    """Shapes, one for each component; a single shape may come without a list around it."""
    if given is None:
        return None
    if isinstance(given, TensorShape):
        given = [given]
    if not isinstance(given, (tuple, list)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.")
    if all(s is None or isinstance(s, (int, Dimension)) for s in given):  # one shape
        given = [given]
    shapes = [TensorShape(s) for s in given]
    if not unknown_dim and any(not s.is_fully_defined() for s in shapes):
        raise ValueError(f"All shapes must be fully defined: {shapes}")
    if not unknown_rank and any(s.dims is None for s in shapes):
        raise ValueError(f"All shapes must have a defined rank: {shapes}")
    return shapes


def _name_list(given: object, types: list[DType]) -> list[str] | None:
    if given is None:
        return None
    if not isinstance(given, (list, tuple)):
        given = [given]
    if len(given) != len(types):
        raise ValueError("List of names must have the same length as the list of dtypes")
    return list(given)


def _common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.ndims is None or b.ndims is None or a.ndims != b.ndims:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())])


class QueueBase:
    """A queue of elements, each a tuple of tensors of ``dtypes``, or a dictionary if the
    components have ``names``.
    """

    def __init__(
        self,
        dtypes: list[DType],
        shapes: Sequence[ShapeLike | None] | None,
        names: list[str] | None,
        queue_ref: Tensor,
    ) -> None:
        self._dtypes = dtypes
        if shapes is not None and len(shapes) != len(dtypes):
            raise ValueError("Queue shapes must have the same length as dtypes")
        if names is not None and len(names) != len(dtypes):
            raise ValueError("Queue names must have the same length as dtypes")
        known = [None] * len(dtypes) if shapes is None else shapes
        self._shapes = [TensorShape(s) for s in known]
        self._names = names
        self._queue_ref = queue_ref
        self._name = self.name.split("/")[-1]

    @staticmethod
    def from_list(index: TensorLike, queues: list[QueueBase]) -> QueueBase:
        """The queue at ``index`` (which may be a tensor) of queues with the same components."""
        if (
            not queues
            or not isinstance(queues, list)
            or not all(isinstance(q, QueueBase) for q in queues)
        ):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if not all(first.dtypes == q.dtypes for q in queues[1:]):
            raise TypeError("Queues do not have matching component dtypes.")
        if not all(first.names == q.names for q in queues[1:]):
            raise TypeError("Queues do not have matching component names.")
        shapes = [functools.reduce(_common_shape, s) for s in zip(*[q.shapes for q in queues])]
        chosen = gather(stack([q.queue_ref for q in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    @property
    def queue_ref(self) -> Tensor:
        return self._queue_ref

    @property
    def name(self) -> str:
        if self._queue_ref._op.graph._is_eager:
            return self._queue_ref._op.graph.get_name_scope() or type(self).__name__
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    def _components(self, vals: object) -> list[Tensor]:
        if isinstance(vals, dict):
            given: Sequence[object] = self._in_order_of_names(vals)
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        else:
            given = vals if isinstance(vals, (list, tuple)) else [vals]
        return [
            convert_to_tensor(val, dtype=dtype, name=f"component_{i}")
            for i, (val, dtype) in enumerate(zip(given, self._dtypes))
        ]

    def _in_order_of_names(self, vals: dict[str, object]) -> list[object]:
        """The values of a dictionary; its keys must be the queue's names."""
        if not self._names:
            raise ValueError("Queue must have names to enqueue a dictionary")
        wanted, given = sorted(self._names, key=str), sorted(vals, key=str)
        if wanted != given:
            raise ValueError(
                "Keys in dictionary to enqueue do not match names of Queue.  Dictionary: "
                f"({given}), Queue: ({wanted})"
            )
        return [vals[name] for name in self._names]

    @staticmethod
    def _scope_values(
        vals: float | Tensor | Sequence[str | Tensor | Sequence[Any]] | Mapping[str, Any],
    ) -> Sequence[Any]:
        if isinstance(vals, (list, tuple)):
            return vals
        return list(vals.values()) if isinstance(vals, dict) else [vals]

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """The op that adds one element.

        A tensor, a tuple of tensors, or a dictionary. It waits for room.
        """
        with name_scope(name, f"{self._name}_enqueue", self._scope_values(vals)) as scope:
            components = self._components(vals)
            for value, shape in zip(components, self._shapes):
                value.get_shape().assert_is_compatible_with(shape)
            return apply_operation(queue_ops.ENQUEUE, self._queue_ref, components, name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """The op that adds an element for each slice along the first dimension."""
        with name_scope(name, f"{self._name}_EnqueueMany", self._scope_values(vals)) as scope:
            components = self._components(vals)
            batch = Dimension(None)
            for value, shape in zip(components, self._shapes):
                given = value.get_shape().with_rank_at_least(1)
                batch = batch.merge_with(given.dims[0] if given.dims is not None else None)
                given[1:].assert_is_compatible_with(shape)
            return apply_operation(queue_ops.ENQUEUE_MANY, self._queue_ref, components, name=scope)

    def _dequeued(self, tensors: Sequence[Tensor], leading: list[Any]) -> Any:
        for output, shape in zip(tensors, self._shapes):
            output.set_shape(TensorShape(leading).concatenate(shape))
        if self._names:
            return dict(zip(self._names, tensors))
        return tensors[0] if len(tensors) == 1 else list(tensors)

    def dequeue(self, name: str | None = None) -> Any:
        """One element: a tensor, a list of tensors, or a dictionary."""
        found = apply_list(
            queue_ops.DEQUEUE,
            self._queue_ref,
            component_types=self._dtypes,
            name=name or f"{self._name}_Dequeue",
        )
        return self._dequeued(found, [])

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Any:
        """``n`` elements as batches; OutOfRangeError if the queue is closed and has fewer."""
        found = apply_list(
            queue_ops.DEQUEUE_MANY,
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueMany",
        )
        known: Any = static_value(n) if isinstance(n, Tensor) else n
        return self._dequeued(found, [None if known is None else int(known)])

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Any:
        """``n`` elements as batches; fewer if the queue is closed and has no more."""
        found = apply_list(
            queue_ops.DEQUEUE_UP_TO,
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueUpTo",
        )
        return self._dequeued(found, [None])

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The op after which nothing can be added; what is in can still be taken out."""
        return apply_operation(
            queue_ops.QUEUE_CLOSE,
            self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        return apply(
            queue_ops.QUEUE_IS_CLOSED, self._queue_ref, name=name or f"{self._name}_Is_Closed"
        )

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are in."""
        return apply(queue_ops.QUEUE_SIZE, self._queue_ref, name=name or f"{self._name}_Size")


_numbers = itertools.count()


def _shared_name(given: str | None) -> str:
    """The name by which operations share a queue; eager queues are one object each."""
    if given or not get_default_graph()._is_eager:
        return given or ""
    return f"anonymous_queue_{next(_numbers)}"


class RandomShuffleQueue(QueueBase):
    """A queue that gives out one of its elements at random.

    ``min_after_dequeue`` elements stay in the queue until it is closed, so that they are mixed;
    ``capacity`` elements fit. ``dtypes`` has a type for each component, ``shapes`` the static
    shapes (needed for ``dequeue_many``); with ``names``, elements are dictionaries. Queues of one
    ``shared_name`` are one queue in a session.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: object,
        shapes: object = None,
        names: object = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types = _type_list(dtypes)
        known, labels = _shape_list(shapes, types), _name_list(names, types)
        seed1, seed2 = get_seed(seed)
        if seed1 is None and seed2 is None:
            seed1, seed2 = 0, 0
        elif seed is None and shared_name is not None:
            # a shared queue has the same order in whichever place of a graph it is made
            text = f"{seed1}{shared_name}".encode()
            seed2 = int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF
        ref = apply(
            queue_ops.SHUFFLE_QUEUE,
            component_types=types,
            shapes=known or [],
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1,
            seed2=seed2,
            shared_name=_shared_name(shared_name),
            name=name,
        )
        super().__init__(types, known, labels, ref)


class FIFOQueue(QueueBase):
    """A queue that gives elements in the order in which they came.

    ``enqueue`` waits while there are ``capacity`` elements, ``dequeue`` while there are none. After
    ``close`` a dequeue from an empty queue is an OutOfRangeError.

    ``dtypes`` has a type for each component, ``shapes`` the static shapes (needed for
    ``dequeue_many``); with ``names``, elements are dictionaries. Queues of one ``shared_name`` are
    one queue in a session.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: object,
        shapes: object = None,
        names: object = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types = _type_list(dtypes)
        known, labels = _shape_list(shapes, types), _name_list(names, types)
        ref = apply(
            queue_ops.FIFO_QUEUE,
            component_types=types,
            shapes=known or [],
            capacity=capacity,
            shared_name=_shared_name(shared_name),
            name=name,
        )
        super().__init__(types, known, labels, ref)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose elements may differ in size: ``shapes`` may have unknown dimensions.

    ``dequeue_many`` pads each component with zeros to the largest of the batch. ``capacity`` is the
    number of elements that fit; more wait. ``dtypes`` has a type for each component, ``shapes`` the
    static shapes (needed for ``dequeue_many``); with ``names``, elements are dictionaries. Queues
    of one ``shared_name`` are one queue in a session.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: object,
        shapes: object,
        names: object = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types = _type_list(dtypes)
        if shapes is None:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        known, labels = _shape_list(shapes, types, unknown_dim=True), _name_list(names, types)
        if known is None or len(known) != len(types):
            n = 0 if known is None else len(known)
            raise ValueError(
                f"Shapes must be provided for all components, but received {n} shapes and "
                f"{len(types)} dtypes."
            )
        ref = apply(
            queue_ops.PADDING_QUEUE,
            component_types=types,
            shapes=known,
            capacity=capacity,
            shared_name=_shared_name(shared_name),
            name=name,
        )
        super().__init__(types, known, labels, ref)


class PriorityQueue(QueueBase):
    """A queue that gives out the element with the smallest priority first.

    The first component of an element is its priority, an int64 scalar that is not among ``types``
    and ``shapes``. ``capacity`` is the number of elements that fit. With ``names``, elements are
    dictionaries. Queues of one ``shared_name`` are one queue in a session.
    """

    def __init__(
        self,
        capacity: int,
        types: object,
        shapes: TensorLike | None = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        given = _type_list(types)
        known = _shape_list(shapes, given)
        ref = apply(
            queue_ops.PRIORITY_QUEUE,
            component_types=given,
            shapes=known or [],
            capacity=capacity,
            shared_name=_shared_name(shared_name),
            name=name,
        )
        all_shapes = [TensorShape([]), *known] if known else None
        super().__init__([dtypes.int64, *given], all_shapes, names, ref)
