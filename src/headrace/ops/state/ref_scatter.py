"""Scatter ops on reference variables: ScatterUpdate, ScatterAdd, ScatterNdUpdate and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.state import state_kernels as kernels
from headrace.ops.state.ref_state import (
    _WRITES,
    _require_variable,
    check_scatter_nd_shapes,
    check_scatter_shapes,
    is_ref,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.variables.variable import Variable

__all__ = [
    "batch_scatter_update",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
]


def _scatter_shape(c: Inference) -> list[Shape]:
    check_scatter_shapes(c.shape(0), c.shape(1), c.shape(2))
    return [c.shape(0)]


def _scatter_nd_shape(c: Inference) -> list[Shape]:
    check_scatter_nd_shapes(c.shape(0), c.shape(1), c.shape(2))
    return [c.shape(0)]


def _define_scatter(name: str, how: str, types: str, locking: bool) -> OpDef:
    return define(
        name,
        "ref: &T, indices: Tindices, updates: T -> output_ref: &T; "
        f"T: {types}, Tindices: type(index), use_locking: bool={locking}",
        shape=_scatter_shape,
        kernel=kernels.scatter_kernel(how),
        inplace=kernels.scatter_inplace(how),
        **_WRITES,
    )


def _define_scatter_nd(name: str, how: str, types: str, locking: bool) -> OpDef:
    return define(
        name,
        "ref: &T, indices: Tindices, updates: T -> output_ref: &T; "
        f"T: {types}, Tindices: type(index), use_locking: bool={locking}",
        shape=_scatter_nd_shape,
        kernel=kernels.scatter_nd_kernel(how),
        inplace=kernels.scatter_nd_inplace(how),
        **_WRITES,
    )


SCATTER_UPDATE = _define_scatter("ScatterUpdate", "update", "type", True)

SCATTER_ADD = _define_scatter("ScatterAdd", "add", "type(number)", False)

SCATTER_SUB = _define_scatter("ScatterSub", "sub", "type(number)", False)

SCATTER_MUL = _define_scatter("ScatterMul", "mul", "type(number)", False)

SCATTER_DIV = _define_scatter("ScatterDiv", "div", "type(number)", False)

SCATTER_MIN = _define_scatter("ScatterMin", "min", "type(real)", False)

SCATTER_MAX = _define_scatter("ScatterMax", "max", "type(real)", False)

SCATTER_ND_UPDATE = _define_scatter_nd("ScatterNdUpdate", "update", "type", True)

SCATTER_ND_ADD = _define_scatter_nd("ScatterNdAdd", "add", "type(number)", False)

SCATTER_ND_SUB = _define_scatter_nd("ScatterNdSub", "sub", "type(number)", False)


def _scatter(
    ref_op: OpDef,
    resource_op: str,
    ref: Any,
    indices: TensorLike,
    updates: Any,
    use_locking: bool,
    name: str | None,
) -> Any:
    if is_ref(ref):
        return apply(ref_op, ref, indices, updates, use_locking=use_locking, name=name)
    _require_variable(ref, ref_op.name)
    return ref._scatter(resource_op, indices, updates, name)


def scatter_update(
    ref: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    use_locking: bool = True,
    name: str | None = None,
) -> Any:
    """``ref[indices[i]] = updates[i]``; of equal indices the last wins.

    The arguments and the result are those of ``tf.scatter_div``.
    """
    return _scatter(
        SCATTER_UPDATE, "ResourceScatterUpdate", ref, indices, updates, use_locking, name
    )


def scatter_add(
    ref: TensorLike,
    indices: TensorLike,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Add to rows of a variable: ``ref[indices[i]] += updates[i]``; equal indices add up.

    ``updates`` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar. The result is the
    variable after the update.
    """
    return _scatter(SCATTER_ADD, "ResourceScatterAdd", ref, indices, updates, use_locking, name)


def scatter_sub(
    ref: Variable,
    indices: Tensor,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Subtract from rows of a variable: ``ref[indices[i]] -= updates[i]``.

    A row that is named twice loses both. The arguments and the result are those of
    ``tf.scatter_div``.

        v = tf.Variable([1.0, 2.0])
        with tf.Session() as session:
            session.run(v.initializer)
            session.run(tf.scatter_sub(v, [1], [0.5]))
    """
    return _scatter(SCATTER_SUB, "ResourceScatterSub", ref, indices, updates, use_locking, name)


def scatter_mul(
    ref: Variable,
    indices: Tensor,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Multiply rows of a variable: ``ref[indices[i]] *= updates[i]``.

    A row that is named twice is multiplied twice. The arguments and the result are those of
    ``tf.scatter_div``.
    """
    return _scatter(SCATTER_MUL, "ResourceScatterMul", ref, indices, updates, use_locking, name)


def scatter_div(
    ref: Variable,
    indices: Tensor,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Divide rows of a variable: ``ref[indices[i]] /= updates[i]``.

    ``indices`` has any shape, ``updates`` is ``indices.shape + ref.shape[1:]`` or a scalar; a row
    that is named twice is divided twice. ``use_locking`` makes no difference: an update is whole in
    any case. Returns the variable after the update.
    """
    return _scatter(SCATTER_DIV, "ResourceScatterDiv", ref, indices, updates, use_locking, name)


def scatter_min(
    ref: Variable,
    indices: Tensor,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Lower rows of a variable: ``ref[indices[i]] = min(ref[indices[i]], updates[i])``.

    The arguments and the result are those of ``tf.scatter_div``.
    """
    return _scatter(SCATTER_MIN, "ResourceScatterMin", ref, indices, updates, use_locking, name)


def scatter_max(
    ref: Variable,
    indices: Tensor,
    updates: Tensor,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Raise rows of a variable: ``ref[indices[i]] = max(ref[indices[i]], updates[i])``.

    The arguments and the result are those of ``tf.scatter_div``.
    """
    return _scatter(SCATTER_MAX, "ResourceScatterMax", ref, indices, updates, use_locking, name)


def scatter_nd_update(
    ref: TensorLike,
    indices: Tensor,
    updates: TensorLike,
    use_locking: bool = True,
    name: str | None = None,
) -> Any:
    """Set elements or slices of a variable: ``ref[tuple(indices[i])] = updates[i]``.

    Of equal indices the last one wins. The arguments and the result are those of
    ``tf.scatter_nd_add``.
    """
    return _scatter(
        SCATTER_ND_UPDATE, "ResourceScatterNdUpdate", ref, indices, updates, use_locking, name
    )


def scatter_nd_add(
    ref: Variable,
    indices: TensorLike,
    updates: TensorLike,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Add to elements or slices of a variable: ``ref[tuple(indices[i])] += updates[i]``.

    ``indices`` is [..., depth] and ``updates`` ``indices.shape[:-1] + ref.shape[depth:]``; what is
    named twice is added twice. ``use_locking`` makes no difference. Returns the variable after the
    update.
    """
    return _scatter(
        SCATTER_ND_ADD, "ResourceScatterNdAdd", ref, indices, updates, use_locking, name
    )


def scatter_nd_sub(
    ref: Variable,
    indices: TensorLike,
    updates: TensorLike,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Subtract from elements or slices of a variable: ``ref[tuple(indices[i])] -= updates[i]``.

    The arguments and the result are those of ``tf.scatter_nd_add``.
    """
    return _scatter(
        SCATTER_ND_SUB, "ResourceScatterNdSub", ref, indices, updates, use_locking, name
    )


def batch_scatter_update(
    ref: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    use_locking: bool = True,
    name: str | None = None,
) -> Any:
    """``ref[i, .., indices[i, .., j]] = updates[i, .., j]``.

    A scatter along the last dimension of ``indices``.
    """
    with name_scope(name, "BatchScatterUpdate", [indices, updates]):
        indices = convert_to_tensor(indices, name="indices")
        rank = indices._rank()
        if rank is None:
            raise ValueError("batch_scatter_update does not allow indices with unknown rank.")
        points = apply_op("ExpandDims", indices, -1)
        parts = [_batch_numbers(indices, points, axis) for axis in range(rank - 1)]
        final = apply_op("ConcatV2", [*parts, points], -1, name="concat") if parts else points
        return scatter_nd_update(ref, final, updates, use_locking=use_locking)


def _batch_numbers(indices: Tensor, points: Tensor, axis: int) -> Tensor:
    """0, 1, 2, … along ``axis``, in the shape of ``points``."""
    rank = len(indices._shape or ())
    size = apply_op(
        "StridedSlice", apply_op("Shape", indices), [axis], [axis + 1], [1], shrink_axis_mask=1
    )
    numbers = apply_op("Range", 0, size, 1)
    dims = [size if i == axis else 1 for i in range(rank + 1)]
    column = apply_op("Reshape", numbers, apply_op("Pack", dims))
    if column.dtype is not points.dtype:
        column = apply_op("Cast", column, DstT=points.dtype)
    return apply_op("BroadcastTo", column, apply_op("Shape", points))
