"""``Barrier`` of ``tensorflow.python.ops.data_flow_ops``: joins parts of elements by their keys.

>>> barrier = Barrier([tf.float32, tf.int32], shapes=[(), ()])
>>> first = barrier.insert_many(0, [b"a", b"b"], [1.0, 2.0])
>>> second = barrier.insert_many(1, [b"b"], [3])      # b is complete now
>>> indices, keys, values = barrier.take_many(1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core.build import apply, apply_list, apply_operation
from headrace.core.dtypes import DType, as_dtype
from headrace.core.infer import static_value
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.queues import barrier_ops

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["Barrier"]


class BarrierTakeMany(NamedTuple):
    """What ``take_many`` gives."""

    indices: Tensor
    keys: Tensor
    values: list[Tensor]


class Barrier:
    """Elements of components of ``types`` (and ``shapes``), given out when they are complete."""

    def __init__(
        self,
        types: Any,
        shapes: Any = None,
        shared_name: str | None = None,
        name: str = "barrier",
    ) -> None:
        given = types if isinstance(types, (list, tuple)) else [types]
        self._types: list[DType] = [as_dtype(t) for t in given]
        if shapes is None:
            self._shapes = [TensorShape(None) for _ in self._types]
        else:
            one = isinstance(shapes, TensorShape) or all(isinstance(s, int) for s in shapes)
            listed = [shapes] if one and len(self._types) == 1 else shapes
            self._shapes = [TensorShape(s) for s in listed]
            for i, shape in enumerate(self._shapes):
                if shape.num_elements() == 0:
                    raise ValueError(
                        "Empty tensors are not supported, but received "
                        f"shape '{shape}' at index {i}"
                    )
        self._barrier_ref = apply(
            barrier_ops.BARRIER,
            component_types=self._types,
            shapes=self._shapes,
            shared_name=shared_name or "",
            name=name,
        )
        self._name = self._barrier_ref.op.name.split("/")[-1]

    @property
    def barrier_ref(self) -> Tensor:
        return self._barrier_ref

    @property
    def name(self) -> str:
        return self._barrier_ref.op.name

    def insert_many(
        self, component_index: int, keys: TensorLike, values: TensorLike, name: str | None = None
    ) -> Operation:
        """Set one component of the elements with ``keys``; row i of ``values`` is of key i."""
        return apply_operation(
            barrier_ops.BARRIER_INSERT,
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            name=name or f"{self._name}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: TensorLike,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> BarrierTakeMany:
        """``num_elements`` complete elements as batches; waits for them.

        ``allow_small_batch``: the rest of a closed barrier may be fewer. ``timeout``: kept in the
        graph; TensorFlow's kernel refuses any, and so does this.
        """
        if timeout is not None and timeout != -1:
            raise NotImplementedError("Timeout not supported yet.")
        taken: Any = apply_list(
            barrier_ops.BARRIER_TAKE,
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        indices, keys, values = taken
        known = None if allow_small_batch else static_value(indices.op.inputs[1])
        rows = TensorShape([None if known is None else int(known)])
        indices.set_shape(rows)
        keys.set_shape(rows)
        for output, shape in zip(values, self._shapes):
            output.set_shape(rows.concatenate(shape))
        return BarrierTakeMany(indices, keys, values)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """No new keys from now on."""
        return apply_operation(
            barrier_ops.BARRIER_CLOSE,
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete."""
        name = name or f"{self._name}_BarrierReadySize"
        return apply(barrier_ops.BARRIER_READY_SIZE, self._barrier_ref, name=name)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack a component."""
        name = name or f"{self._name}_BarrierIncompleteSize"
        return apply(barrier_ops.BARRIER_INCOMPLETE_SIZE, self._barrier_ref, name=name)
