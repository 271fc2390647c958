"""Reading and writing by index: gather, scatter, masks. (partitioning.py, one_hot.py)

Indices are checked as TensorFlow's CPU kernels check them: below zero or past the end is an
InvalidArgumentError with the first offending index. The gradient of a gather is an IndexedSlices,
so that an embedding's update touches its rows only.

    >>> tf.gather(table, [2, 0]); tf.gather_nd(x, [[0, 1]]); tf.scatter_nd([[4], [1]], updates, [8])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import (
    convert_to_tensor,
    register_tensor_conversion_function,
)
from headrace.core.dispatch import dispatched
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.index_kernels import (
    gather_kernel,
    gather_nd_kernel,
    gather_v2_kernel,
    scatter_kernel,
    scatter_nd_kernel,
)
from headrace.ops.array.permutations import invert_permutation, unravel_index

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, ShapeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "batch_gather",
    "gather",
    "gather_nd",
    "gather_nd_v2",
    "gather_v2",
    "invert_permutation",
    "scatter_nd",
    "scatter_nd_non_aliasing_add",
    "tensor_scatter_add",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "unravel_index",
]


# Gather -----------------------------------------------------------------------------------------


def _gather_shape(c: Inference) -> list[Shape]:
    params, indices = c.require_rank_at_least(0, 1), c.shape(1)
    return [None if params is None or indices is None else indices + params[1:]]


def _gather_v2_shape(c: Inference) -> list[Shape]:
    params, indices, axis, batch = c.shape(0), c.shape(1), c.value(2), c.attr("batch_dims")
    c.require_rank(2, 0)
    if params is not None and axis is not None and not -len(params) <= axis.item() < len(params):
        least = axis.item() + 1 if axis.item() >= 0 else -axis.item()
        raise ValueError(f"Shape must be at least rank {least} but is rank {len(params)}")
    if params is None or indices is None:
        return [None]
    if axis is None:
        return [(None,) * (len(params) + len(indices) - 1 - batch)]
    at = axis.item() % len(params)
    if batch < 0:
        batch += len(indices)
    if batch < 0:
        raise ValueError(
            f"Subshape start out of bounds: {batch - len(indices)}, for shape with rank "
            f"{len(indices)}"
        )
    if batch > len(indices) or batch > at:
        raise ValueError(
            f"batch_dims = {batch} must be at most rank(indices) = {len(indices)} and axis = {at}"
        )
    return [params[:at] + indices[batch:] + params[at + 1 :]]


def _gather_rows(op: Operation, grad: IndexedSlices | Tensor) -> IndexedSlices:
    """The gradient of a gather along axis 0: the rows that were read."""
    params, indices = op.inputs[:2]
    known = shapes.known(params._shape)
    tail = None if params._shape is None else params._shape[1:]
    if tail is not None and None not in tail:
        rows = const([-1, *tail]) if 0 not in tail else None
    else:
        rows = None
    if rows is None:
        dims = shape(params)
        count = apply_op("ExpandDims", apply_op("Size", indices), const(0))
        rows = apply_op("ConcatV2", [count, dims[1:]], const(0))
    dense = const(known) if known is not None else shape(params)
    flat = indices if indices._rank() == 1 else apply_op("Reshape", indices, const([-1]))
    values = grad if indices._rank() == 1 else apply_op("Reshape", grad, rows)
    return IndexedSlices(convert_to_tensor(values), flat, dense)


def _gather_v2_grad(op: Operation, grad: IndexedSlices | Tensor) -> list[Any]:
    params, indices, axis = op.inputs
    batch, at = op._attrs["batch_dims"], static_value(axis)
    rank = params._rank()
    if (
        not batch
        and at is not None
        and (at.item() == 0 or (rank is not None and at.item() == -rank))
    ):
        return [_gather_rows(op, grad), None, None]
    count = indices._rank()
    if batch < 0:
        if count is None:
            raise ValueError(
                "The gradient of tf.gather with negative batch_dims needs indices of known rank."
            )
        batch += count
    ranks = None if rank is None or count is None or at is None else (rank, count, at.item() % rank)
    found = _gather_axis_grad(params, indices, grad, ranks or _fed_ranks(*op.inputs), batch)
    found.set_shape(params.shape)
    return [found, None, None]


def _fed_ranks(params: Tensor, indices: Tensor, axis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Ranks of params and indices, and the axis from 0 on, where they are known at the run only."""
    rank, count = apply_op("Rank", params), apply_op("Rank", indices)
    if axis._dtype is not dtypes.int32:
        axis = apply_op("Cast", axis, DstT=dtypes.int32)
    return rank, count, apply_op("FloorMod", axis, rank)


def _order(*ranges: tuple[Any, Any]) -> Tensor:
    """The numbers of the ranges, one after the other."""
    if any(isinstance(end, Tensor) for r in ranges for end in r):
        parts = [apply_op("Range", first, last, const(1)) for first, last in ranges]
        return apply_op("ConcatV2", parts, const(0))
    return const([i for first, last in ranges for i in range(first, last)])


def _gather_axis_grad(
    params: Tensor, indices: Tensor, grad: TensorLike, ranks: tuple[Any, Any, Any], batch: int
) -> Tensor:
    """Bring (batch…, gathered…) to the front, sum rows by flat index, and put the axis back in its
    place.

    grad is (batch…, outer…, gathered…, inner…), with b, o, g, i dimensions of each kind. ``ranks``
    are those of params and indices, and the axis: numbers or tensors.
    """
    rank, n_index, axis = ranks
    g = n_index - batch
    order = _order((0, batch), (axis, axis + g), (batch, axis), (axis + g, rank - 1 + g))
    moves = isinstance(axis, Tensor) or axis > batch
    moved = apply_op("Transpose", grad, order) if moves else grad
    dims = shape(params)
    size = dims[axis]
    ids = _flat_ids(indices, dims, size, batch)
    rest = apply_op("ConcatV2", [dims[batch:axis], dims[axis + 1 :]], const(0))
    total = apply_op("Prod", dims[:batch], const(0), keep_dims=False) * size if batch else size
    rows = apply_op(
        "Reshape",
        moved,
        apply_op(
            "ConcatV2", [apply_op("ExpandDims", apply_op("Size", ids), const(0)), rest], const(0)
        ),
    )
    summed = apply_op("UnsortedSegmentSum", rows, ids, total)
    lead = apply_op(
        "ConcatV2", [dims[:batch], apply_op("ExpandDims", size, const(0)), rest], const(0)
    )
    whole = apply_op("Reshape", summed, lead)  # (batch…, n, outer…, inner…)
    if not moves:
        return whole
    back = _order((0, batch), (batch + 1, axis + 1), (batch, batch + 1), (axis + 1, rank))
    return apply_op("Transpose", whole, back)


def _flat_ids(indices: Tensor, dims: Tensor, size: Tensor, batch: int) -> Tensor:
    if batch:
        indices = (
            apply_op("Cast", indices, DstT=dtypes.int32)
            if indices._dtype is not dtypes.int32
            else indices
        )
        count = apply_op("Prod", dims[:batch], const(0), keep_dims=False)
        start = apply_op("Mul", apply_op("Range", const(0), count, const(1)), size)
        grouped = apply_op("Reshape", indices, apply_op("Pack", [count, const(-1)]))
        indices = apply_op("Add", grouped, apply_op("ExpandDims", start, const(1)))
    return apply_op("Reshape", indices, const([-1]))


GATHER = define(
    "Gather",
    "params: Tparams, indices: Tindices -> output: Tparams; validate_indices: bool=True, "
    "Tindices: type(index)",
    shape=_gather_shape,
    kernel=gather_kernel,
    grad=lambda op, g: [_gather_rows(op, g), None],
    large_inputs=(0,),
)
GATHER_V2 = define(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams; batch_dims: "
    "int=0, Tindices: type(index), Taxis: type(index)",
    shape=_gather_v2_shape,
    kernel=gather_v2_kernel,
    grad=_gather_v2_grad,
    known_inputs=(2,),
    large_inputs=(0,),
)


@dispatched("gather")
def gather(
    params: TensorLike,
    indices: object,
    validate_indices: object = None,
    name: str | None = None,
    axis: object = None,
    batch_dims: int | None = 0,
) -> Tensor:
    """Slices of ``params`` at ``indices`` along an axis. A variable is read row by row.

    A negative ``batch_dims`` counts from the rank of ``indices``; without ``axis`` it is the axis,
    too.
    """
    del validate_indices  # always
    if axis is None:
        axis = batch_dims
        if axis is None:
            raise ValueError("gather needs an axis or batch_dims: both are None")
    batch_dims = 0 if batch_dims is None else batch_dims
    sparse_read: Callable[..., Tensor] | None = getattr(params, "sparse_read", None)
    if sparse_read is not None and not batch_dims and type(axis) is int and axis == 0:
        return sparse_read(indices, name=name)
    return apply(GATHER_V2, params, indices, axis, batch_dims=batch_dims, name=name)


def gather_v2(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: object = None,
    axis: AxisLike | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Slices of ``params`` along ``axis``, chosen by ``indices``; see ``tf.gather``.

    The first ``batch_dims`` dimensions of both are matched with each other; ``axis`` is then the
    first after them by default. An index outside of the dimension is an error whatever
    ``validate_indices`` says, as in TensorFlow.
    """
    return gather(params, indices, validate_indices, name, axis, batch_dims)


@dispatched("batch_gather")
def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """Gather along the last dimension of ``indices``, the ones before being batch dimensions."""
    indices = convert_to_tensor(indices, name="indices")
    rank = indices._rank()
    if rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    with name_scope(name, "BatchGather", [params, indices]):
        params = convert_to_tensor(params, name="params")
        if params._shape is not None and indices._shape is not None:
            shapes.merge(params._shape[: rank - 1], indices._shape[:-1])
        # TF computes indices into all batches' rows
        count_more(indices._op.graph, rank * rank + 14 * rank + 8)
        return gather(params, indices, batch_dims=rank - 1, axis=rank - 1, name="Reshape_3")


# GatherNd and scatters --------------------------------------------------------------------------


def _gather_nd_shape(c: Inference) -> list[Shape]:
    params, indices = c.shape(0), c.require_rank_at_least(1, 1)
    if params is None or indices is None or indices[-1] is None:
        return [None]
    if indices[-1] > len(params):
        raise ValueError(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{shapes.show(indices)} and params shape: {shapes.show(params)}"
        )
    return [indices[:-1] + params[indices[-1] :]]


def _gather_nd_grad(op: Operation, grad: Tensor) -> list[Any]:
    params, indices = op.inputs
    size = shape(params, out_type=indices._dtype)
    rank = indices._rank()
    if rank == 2 and shapes.ranked(indices._shape)[-1] == 1:
        flat = apply_op("Squeeze", indices, squeeze_dims=(-1,))
        return [IndexedSlices(convert_to_tensor(grad), flat, size), None]
    return [apply(SCATTER_ND, indices, grad, size), None]


GATHER_ND = define(
    "GatherNd",
    "params: Tparams, indices: Tindices -> output: Tparams; Tindices: type(index)",
    shape=_gather_nd_shape,
    kernel=gather_nd_kernel,
    grad=_gather_nd_grad,
    view=True,
)


@dispatched("gather_nd")
def gather_nd(
    params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: Any = 0
) -> Tensor:
    """``params[indices[i]]``: each index is a vector into the leading dimensions.

    ``indices`` is [..., depth]; the result is ``indices.shape[:-1] + params.shape[depth:]``. The
    first ``batch_dims`` dimensions of both are matched with each other. An index outside of
    ``params`` is an InvalidArgumentError.

        tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])  # [2, 3]
    """
    if isinstance(batch_dims, Tensor):
        known = static_value(batch_dims)
        if known is None:
            raise ValueError(
                "The batch_dims of tf.gather_nd must be known while the graph is built, "
                f"got {batch_dims}."
            )
        if known.size != 1:
            raise TypeError(f"The batch_dims of tf.gather_nd is one number, got {known}.")
        batch_dims = known.item()
    if batch_dims:
        result = _batch_gather_nd(params, indices, int(batch_dims), name)
        count_more(result._op.graph, 55 + int(batch_dims))  # TF reshapes with general shapes
        return result
    nd_read: Callable[..., Tensor] | None = getattr(params, "gather_nd", None)
    if nd_read is not None:
        return nd_read(indices, name=name)
    return apply(GATHER_ND, params, indices, name=name)


def _batch_gather_nd(params: Any, indices: TensorLike, batch: int, name: str | None) -> Tensor:
    """Put the batch position in front of every index."""
    with name_scope(name, "BatchGatherND", [params, indices]) as scope:
        params, indices = convert_to_tensor(params), convert_to_tensor(indices)
        rank = indices._rank()
        if rank is None or params._rank() is None:
            return _flat_batch_gather_nd(params, indices, batch, scope)
        if not 0 <= batch < min(rank, params._rank()):
            raise ValueError(
                f"batch_dims = {batch} must be less than rank(params) and rank(indices)"
            )
        dims: Any = shape(indices, out_type=indices._dtype)
        outer = dims[:-1]
        parts = []
        one, zero = const(1, indices._dtype), const(0, indices._dtype)
        for i in range(batch):
            numbers = apply_op("Range", zero, dims[i], one)
            line = apply_op(
                "Reshape", numbers, const([-1 if j == i else 1 for j in range(rank - 1)])
            )
            parts.append(apply_op("ExpandDims", apply_op("BroadcastTo", line, outer), const(-1)))
        full = apply_op("ConcatV2", [*parts, indices], const(-1))
        return apply(GATHER_ND, params, full, name=scope + "Reshape_3/")


def _flat_batch_gather_nd(params: Tensor, indices: Tensor, batch: int, scope: str) -> Tensor:
    """Where a rank is not known: the batch dimensions are made one, numbered, and taken apart."""
    dtype = indices._dtype
    dims: Any = shape(indices, out_type=dtype)
    inner: Any = shape(params, out_type=dtype)
    count = apply_op("Prod", dims[:batch], const([0]), keep_dims=True)
    flat = apply_op("Reshape", indices, apply_op("ConcatV2", [count, dims[batch:]], const(0)))
    rows = apply_op("Reshape", params, apply_op("ConcatV2", [count, inner[batch:]], const(0)))
    ones: Any = apply_op("ConcatV2", [dims[batch:-1], const([1], dtype)], const(0))
    line = apply_op("Range", const(0, dtype), apply_op("Squeeze", count), const(1, dtype))
    column = apply_op("ConcatV2", [count, apply_op("OnesLike", ones)], const(0))
    target = apply_op("ConcatV2", [count, ones], const(0))
    numbers = apply_op("BroadcastTo", apply_op("Reshape", line, column), target)
    found = apply(GATHER_ND, rows, apply_op("ConcatV2", [numbers, flat], const(-1)))
    rest: Any = shape(found, out_type=dtype)
    whole = apply_op("ConcatV2", [dims[:batch], rest[1:]], const(0))
    return apply_op("Reshape", found, whole, name=scope + "Reshape_3/")


def gather_nd_v2(
    params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None
) -> Tensor:
    """Slices of ``params`` chosen by the index vectors in ``indices``; see ``tf.gather_nd``.

    The result is ``indices.shape[:-1] + params.shape[depth:]`` for index vectors of ``depth``
    numbers; the first ``batch_dims`` dimensions of both are matched with each other.
    """
    return gather_nd(params, indices, name, batch_dims)


def _check_updates(indices: Shape, updates: Shape, target: Shape) -> None:
    """Nothing is compared while the length of an index vector is unknown, as in TensorFlow."""
    if indices is None or updates is None or (indices and indices[-1] is None):
        return
    outer = len(indices) - 1
    if not shapes.compatible(updates[:outer], indices[:-1]):
        raise ValueError(
            f"The outer {outer} dimensions of indices.shape={shapes.show(indices)} must "
            f"match the outer {outer} "
            f"dimensions of updates.shape={shapes.show(updates)}"
        )
    if target is None or indices[-1] is None:
        return
    want = indices[:-1] + target[indices[-1] :]
    if not shapes.compatible(updates, want):
        raise ValueError(
            f"The outer {len(indices) - 1} dimensions of "
            f"indices.shape={shapes.show(indices)} must match the outer "
            f"dimensions of updates.shape={shapes.show(updates)}, and the inner ones "
            f"those of shape={shapes.show(target)}"
        )


def _scatter_nd_shape(c: Inference) -> list[Shape]:
    target = c.shape_value(2)
    indices, updates = c.require_rank_at_least(0, 1), c.require_rank_at_least(1, 1)
    _check_not_empty(indices, updates, target)
    _check_updates(indices, updates, target)
    return [target]


def _check_not_empty(indices: Shape, updates: Shape, target: Shape) -> None:
    given = [shapes.num_elements(s) for s in (indices, updates)]
    if shapes.num_elements(target) == 0 and any(given):
        raise ValueError("Indices and updates specified for empty output shape")


def _tensor_scatter_shape(c: Inference) -> list[Shape]:
    target, indices = c.require_rank_at_least(0, 1), c.require_rank_at_least(1, 1)
    updates = c.require_rank_at_least(2, 1)
    _check_not_empty(indices, updates, target)
    _check_updates(indices, updates, target)
    return [target]


def _read(op: Operation, grad: Tensor) -> Tensor:
    return apply(GATHER_ND, grad, op.inputs[1])


def _update_grad(op: Operation, grad: Tensor) -> list[Any]:
    _, indices, updates = op.inputs
    kept = apply(TENSOR_SCATTER_UPDATE, grad, indices, apply_op("ZerosLike", updates))
    return [kept, None, _read(op, grad)]


_TENSOR_SCATTER = "tensor: T, indices: Tindices, updates: T -> output: T; Tindices: type(index)"
SCATTER_ND = define(
    "ScatterNd",
    "indices: Tindices, updates: T, shape: Tindices -> output: T; Tindices: type(index)",
    shape=_scatter_nd_shape,
    kernel=scatter_nd_kernel,
    grad=lambda op, g: [None, apply(GATHER_ND, g, op.inputs[0]), None],
    known_inputs=(2,),
)
TENSOR_SCATTER_UPDATE = define(
    "TensorScatterUpdate",
    _TENSOR_SCATTER,
    shape=_tensor_scatter_shape,
    kernel=scatter_kernel("update"),
    grad=_update_grad,
)
TENSOR_SCATTER_ADD = define(
    "TensorScatterAdd",
    _TENSOR_SCATTER,
    shape=_tensor_scatter_shape,
    kernel=scatter_kernel("add"),
    grad=lambda op, g: [g, None, _read(op, g)],
)
TENSOR_SCATTER_SUB = define(
    "TensorScatterSub",
    _TENSOR_SCATTER,
    shape=_tensor_scatter_shape,
    kernel=scatter_kernel("sub"),
    grad=lambda op, g: [g, None, apply_op("Neg", _read(op, g))],
)
SCATTER_ND_NON_ALIASING_ADD = define(
    "ScatterNdNonAliasingAdd",
    "input: T, indices: Tindices, updates: T -> output: T; Tindices: type(index)",
    shape=_tensor_scatter_shape,
    kernel=scatter_kernel("add"),
    grad=lambda op, g: [g, None, _read(op, g)],
)


def scatter_nd(
    indices: TensorLike, updates: TensorLike, shape: ShapeLike, name: str | None = None
) -> Tensor:
    """Zeros of ``shape`` with ``updates[i]`` added at ``indices[i]``; equal indices add up.

    The last axis of ``indices`` is a position (or the first part of one, then updates are slices).

        tf.scatter_nd([[1], [3], [1]], [10, 20, 30], [4])       # [0, 40, 0, 20]
    """
    return apply(SCATTER_ND, indices, updates, shape, name=name)


def tensor_scatter_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with the slices at ``indices`` replaced by ``updates``.

    The last dimension of ``indices`` is an index vector. Where one occurs twice the last update
    holds.

        tf.tensor_scatter_update([0, 0, 0], [[2], [0]], [7, 8])    # [8, 0, 7]
    """
    return apply(TENSOR_SCATTER_UPDATE, tensor, indices, updates, name=name)


def tensor_scatter_add(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` added at ``indices``; repeated indices add up.

    ``indices`` is [..., depth] and ``updates`` ``indices.shape[:-1] + tensor.shape[depth:]``.

        tf.tensor_scatter_add([1, 1, 1], [[0], [2], [0]], [1, 2, 3])  # [5, 1, 3]
    """
    return apply(TENSOR_SCATTER_ADD, tensor, indices, updates, name=name)


def tensor_scatter_sub(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` subtracted at ``indices``, repeated ones too.

    ``indices`` is [..., depth] and ``updates`` ``indices.shape[:-1] + tensor.shape[depth:]``.

        tf.tensor_scatter_sub([5, 5], [[0], [0]], [1, 2])  # [2, 5]
    """
    return apply(TENSOR_SCATTER_SUB, tensor, indices, updates, name=name)


def scatter_nd_non_aliasing_add(
    input: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    return apply(SCATTER_ND_NON_ALIASING_ADD, input, indices, updates, name=name)


# IndexedSlices as tensors -----------------------------------------------------------------------


def _slices_to_tensor(
    value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and dtype._base is not value.dtype._base:
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype "
            f"{value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {value}"
        )
    rows = value.dense_shape[0]
    return apply_op("UnsortedSegmentSum", value.values, value.indices, rows, name=name)


register_tensor_conversion_function(IndexedSlices, _slices_to_tensor)
