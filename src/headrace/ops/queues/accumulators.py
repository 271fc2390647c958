"""``tf.ConditionalAccumulator`` and ``tf.SparseConditionalAccumulator``.

>>> sums = tf.ConditionalAccumulator(tf.float32, shape=[2])
>>> add, mean = sums.apply_grad([1.0, 2.0]), sums.take_grad(2)   # mean waits for two gradients
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_many, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.casting import cast
from headrace.ops.queues import accumulator_ops

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike
    from headrace.core.opdef import OpDef

__all__ = ["ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator"]


def _int64(value: TensorLike) -> Tensor:
    return cast(convert_to_tensor(value), dtypes.int64)


def _make(
    op: OpDef,
    dtype: DTypeLike,
    shape: ShapeLike | None,
    shared_name: str | None,
    reduction_type: str,
    name: str,
) -> Tensor:
    """The handle of a new accumulator."""
    return apply(
        op,
        dtype=as_dtype(dtype),
        shape=TensorShape(shape),
        shared_name=shared_name or "",
        reduction_type=reduction_type,
        name=name,
    )


class ConditionalAccumulatorBase:
    """What both kinds share: the handle, its name, the number of gradients, the step.

    Not made by itself: ``ConditionalAccumulator`` is for dense gradients,
    ``SparseConditionalAccumulator`` for IndexedSlices. ``accumulator_ref`` is the tensor that names
    it in a session.
    """

    _set_op = accumulator_ops.SET_STEP
    _number_op = accumulator_ops.NUM_ACCUMULATED

    def __init__(self, dtype: DTypeLike, shape: ShapeLike | None, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        return self._accumulator_ref

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients have come since the last was taken."""
        name = name or f"{self._name}_NumAccumulated"
        return apply(self._number_op, self._accumulator_ref, name=name)

    def set_global_step(self, new_global_step: TensorLike, name: str | None = None) -> Operation:
        """Gradients that were computed before ``new_global_step`` are dropped from now on."""
        return apply_operation(
            self._set_op, self._accumulator_ref, _int64(new_global_step), name=name
        )


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums gradients of several runs; ``take_grad(n)`` waits for ``n`` of them.

    ``reduction_type``: "MEAN" or "SUM". ``shape``: of every gradient, None if it is not known.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike | None = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make(accumulator_ops.ACCUMULATOR, dtype, shape, shared_name, reduction_type, name)
        super().__init__(dtype, shape, ref)

    def apply_grad(
        self, grad: TensorLike, local_step: TensorLike = 0, name: str | None = None
    ) -> Operation:
        """Add a gradient that was computed at ``local_step``; dropped if that is too old."""
        tensor: Any = convert_to_tensor(grad, self._dtype)
        tensor.shape.assert_is_compatible_with(self._shape)
        return apply_operation(
            accumulator_ops.APPLY, self._accumulator_ref, _int64(local_step), tensor, name=name
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> Tensor:
        """The mean of all gradients that have come, once there are ``num_required``."""
        out = apply(
            accumulator_ops.TAKE,
            self._accumulator_ref,
            num_required,
            dtype=self._dtype,
            name=name,
        )
        out.set_shape(self._shape)
        return out


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums gradients that are IndexedSlices, row by row, until enough have come.

    ``shape`` is that of the dense gradient; ``reduction_type`` is "MEAN" (the sum is divided by the
    number of gradients) or "SUM". Accumulators of one ``shared_name`` are one in a session.
    """

    _set_op = accumulator_ops.SPARSE_SET_STEP
    _number_op = accumulator_ops.SPARSE_NUM_ACCUMULATED

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike | None = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make(
            accumulator_ops.SPARSE_ACCUMULATOR, dtype, shape, shared_name, reduction_type, name
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: TensorLike = 0, name: str | None = None
    ) -> Operation:
        """Add a gradient; its ``dense_shape`` is checked if it has one."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: TensorLike,
        grad_values: TensorLike,
        grad_shape: TensorLike | None = None,
        local_step: TensorLike = 0,
        name: str | None = None,
    ) -> Operation:
        """Add rows ``grad_values`` at ``grad_indices`` of a gradient of ``grad_shape``."""
        shape = cast([] if grad_shape is None else grad_shape, dtypes.int64)
        return apply_operation(
            accumulator_ops.SPARSE_APPLY,
            self._accumulator_ref,
            _int64(local_step),
            cast(grad_indices, dtypes.int64),
            convert_to_tensor(grad_values, self._dtype),
            shape,
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> tuple[Tensor, ...]:
        """Indices, rows and shape of the mean, once there are ``num_required`` gradients."""
        return apply_many(
            accumulator_ops.SPARSE_TAKE,
            self._accumulator_ref,
            num_required,
            dtype=self._dtype,
            name=name,
        )

    def take_indexed_slices_grad(
        self, num_required: TensorLike, name: str | None = None
    ) -> IndexedSlices:
        """As ``take_grad``, as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
