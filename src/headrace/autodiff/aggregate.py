"""Adding up gradients, dense and sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.shapes import known, num_elements
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["as_dense", "is_trainable", "no_dims", "total", "variable_dtype", "zeros_like"]

#: A gradient: a tensor, or the rows of one that differ from zero.
Grad = Tensor | IndexedSlices

_TRAINABLE = frozenset(
    [
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.bfloat16,
        dtypes.complex64,
        dtypes.complex128,
    ]
)


def is_trainable(tensor: Tensor) -> bool:
    """Whether a tensor can have a gradient.

    Floating types, and handles of variables of such types.
    """
    if tensor._dtype is dtypes.resource:
        return variable_dtype(tensor) in _TRAINABLE
    return tensor._dtype._base in _TRAINABLE


def variable_dtype(handle: Tensor) -> Any:
    """The type of the variable behind a resource handle; None if it is something else."""
    op = handle._op
    while op._role != "handle":
        if not op._inputs:
            return None
        op = op._inputs[0]._op
    return op._attrs["dtype"]


def total(grads: list[Grad]) -> Grad:
    """The sum of several gradients of one tensor."""
    if len(grads) == 1:
        return grads[0]
    slices = [g for g in grads if isinstance(g, IndexedSlices)]
    if len(slices) == len(grads):
        values = apply_op("ConcatV2", [g.values for g in slices], 0)
        indices = apply_op("ConcatV2", [_common_index(g, slices) for g in slices], 0)
        return IndexedSlices(values, indices, slices[0].dense_shape)
    return apply_op("AddN", [as_dense(g) for g in grads])


def _common_index(g: IndexedSlices, grads: list[IndexedSlices]) -> Tensor:
    if all(o.indices.dtype is g.indices.dtype for o in grads):
        return g.indices
    if g.indices.dtype is dtypes.int64:
        return g.indices
    return apply_op("Cast", g.indices, DstT=dtypes.int64)


def as_dense(grad: Grad) -> Tensor:
    """A gradient as one tensor."""
    if not isinstance(grad, IndexedSlices):
        return grad
    if grad.dense_shape is None:
        raise ValueError(
            f"A sparse gradient without a known dense shape cannot be made dense: {grad}. "
            "Give its dense_shape."
        )
    rows = apply_op(
        "StridedSlice",
        grad.dense_shape,
        [0],
        [1],
        [1],
        begin_mask=0,
        end_mask=0,
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=1,
    )
    out: Tensor = apply_op("UnsortedSegmentSum", grad.values, grad.indices, rows)
    shape = static_value(grad.dense_shape)
    if shape is not None:
        out.set_shape([int(d) for d in shape])
    return out


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros in the shape of a tensor, a constant where the shape is known and small."""
    shape = known(tensor._shape)
    size = num_elements(tensor._shape)
    if shape is not None and size is not None:
        return apply_op("Fill", list(shape) if shape else no_dims(), _zero(tensor))
    return apply_op("ZerosLike", tensor)


def no_dims() -> Array:
    """The shape of a scalar, as something an op takes for a shape."""
    import numpy as np

    return np.zeros(0, np.int32)


def _zero(tensor: Tensor) -> Array:
    import numpy as np

    return np.zeros((), tensor._dtype._base.np_dtype)
