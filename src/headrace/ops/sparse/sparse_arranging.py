"""SparseTensors reordered, reshaped, sliced, joined and split.

>>> tf.sparse_concat(0, [a, b])
>>> tf.sparse_reorder(tf.sparse_transpose(a))
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_any, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.indexed_slices import IndexedSlices, SparseTensorValue
from headrace.core.infer import partial_shape, static_value
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.seeds import count_more, counted_with
from headrace.core.shapes import known_dims
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, one_of, shape
from headrace.ops.sparse import sparse_arranging_ops as ops
from headrace.ops.sparse.sparse_tensor import SparseTensor, as_sparse_tensor, sparse_tensor_to_dense

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, ShapeLike, SparseLike, TensorLike

__all__ = [
    "sparse_concat",
    "sparse_concat_v2",
    "sparse_expand_dims",
    "sparse_fill_empty_rows",
    "sparse_mask",
    "sparse_merge",
    "sparse_reorder",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_retain",
    "sparse_slice",
    "sparse_split",
    "sparse_split_v2",
    "sparse_to_indicator",
    "sparse_transpose",
]


@counted_with(1)  # TF copies the shape
def sparse_reorder(sp_input: SparseLike, name: str | None = None) -> SparseTensor:
    """The same entries in row-major order of their coordinates, which most functions expect."""
    sp = as_sparse_tensor(sp_input)
    indices, values = apply_many(
        ops.SPARSE_REORDER, sp.indices, sp.values, sp.dense_shape, name=name
    )
    return SparseTensor(indices, values, sp.dense_shape)


def sparse_reshape(sp_input: SparseLike, shape: ShapeLike, name: str | None = None) -> SparseTensor:
    """The same entries in another dense shape; one dimension may be -1."""
    sp = as_sparse_tensor(sp_input)
    wanted = convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int64)
    if wanted._dtype._base is not dtypes.int64:
        wanted = apply_op("Cast", wanted, DstT=dtypes.int64)
    _check_elements(sp, wanted)
    indices, size = apply_many(ops.SPARSE_RESHAPE, sp.indices, sp.dense_shape, wanted, name=name)
    # TF copies the values, makes a given list twice and compares known sizes
    given = not isinstance(shape, Tensor) or shape.op.type == "Const"
    known = given and sp.shape.is_fully_defined() and static_value(wanted) is not None
    more = 1 + (not isinstance(shape, Tensor)) + known
    count_more(indices._op.graph, more)
    return SparseTensor(indices, sp.values, size)


def _check_elements(sp: SparseTensor, wanted: Tensor) -> None:
    """Refuse a reshape whose sizes are known and differ."""
    have, want = sp.shape.num_elements(), static_value(wanted)
    if have is None or want is None:
        return
    inferred = int((want == -1).sum())
    if inferred > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {want.tolist()}")
    if inferred:
        rest = int(want[want != -1].prod(dtype=np.int64))
        if not rest or have % rest:
            raise ValueError(
                f"Cannot reshape a tensor with {have} elements to shape {want.tolist()}."
            )
        return
    if (want < 0).any():
        return
    count = int(want.prod(dtype=np.int64))
    if count != have:
        raise ValueError(
            f"Cannot reshape a tensor with {have} elements to shape {want.tolist()} "
            f"({count} elements)."
        )


def sparse_slice(
    sp_input: SparseLike, start: TensorLike, size: TensorLike, name: str | None = None
) -> SparseTensor:
    """The block of ``size`` elements from ``start`` on; entries outside of it are left out.

    ``start`` and ``size`` have a number for each dimension. The result has the shape ``size``, cut
    at the end of the input.
    """
    sp = as_sparse_tensor(sp_input)
    bounds = [convert_to_tensor(v, dtypes.int64) for v in (start, size)]
    with name_scope(name, "SparseSlice", [sp]) as scope:
        return SparseTensor(
            *apply_many(
                ops.SPARSE_SLICE, sp.indices, sp.values, sp.dense_shape, *bounds, name=scope
            )
        )


def sparse_transpose(
    sp_input: SparseLike, perm: object = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor with its dimensions permuted; without ``perm`` reversed."""
    sp = as_sparse_tensor(sp_input)
    with name_scope(name, "SparseTranspose", [sp]):
        if perm is None:
            rank = sp.shape.ndims
            if rank is not None:
                perm = const(range(rank - 1, -1, -1))
            else:
                last = apply_op("Rank", sp.values) * 0 + apply_op("Size", sp.dense_shape) - 1
                perm = apply_op("Range", last, const(-1), const(-1))
        axes = static_value(perm) if isinstance(perm, Tensor) else np.asarray(perm)
        known = static_value(sp.dense_shape)
        if axes is not None and known is not None:
            if not axes.ndim:
                raise TypeError("iteration over a 0-d array: perm must be a list of axes")
            if len(axes) < len(known):
                raise ValueError(f"Dimensions {len(axes)} and {len(known)} are not compatible")
            if len(axes) > len(known):
                raise IndexError(f"perm has {len(axes)} axes, the tensor has {len(known)}")
        indices = apply_op("GatherV2", sp.indices, perm, const(1))
        size = apply_op("GatherV2", sp.dense_shape, perm, const(0))
        return sparse_reorder(SparseTensor(indices, sp.values, size))


def sparse_expand_dims(
    sp_input: SparseLike, axis: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor with a dimension of size 1 inserted at ``axis`` (the end by default)."""
    sp = as_sparse_tensor(sp_input)
    rank = sp.shape.ndims
    if rank is None:
        raise ValueError("sparse_expand_dims needs a SparseTensor of known rank")
    at = -1 if axis is None else axis
    at = at + rank + 1 if at < 0 else at
    with name_scope(name, "expand_dims", [sp]):
        indices = sp.indices
        size = sp.dense_shape
        column = apply_op("ZerosLike", indices[:, :1])
        coordinates = apply_op(
            "ConcatV2", [indices[:, :at], column, indices[:, at:]], const(1), name="concat"
        )
        dims = apply_op(
            "ConcatV2", [size[:at], const([1], dtypes.int64), size[at:]], const(0), name="concat"
        )
        return SparseTensor(coordinates, sp.values, dims)


def sparse_reset_shape(sp_input: SparseLike, new_shape: ShapeLike | None = None) -> SparseTensor:
    """The same entries in a larger dense shape, or in the smallest that holds them."""
    sp = as_sparse_tensor(sp_input)
    if new_shape is None:
        top = apply_op("Max", sp.indices, const([0]), keep_dims=False)
        size = apply_op(
            "Maximum", apply_op("Add", top, const(1, dtypes.int64)), const(0, dtypes.int64)
        )
    else:
        size = convert_to_tensor(new_shape)
        if size._dtype._base is not dtypes.int64:
            size = apply_op("Cast", size, DstT=dtypes.int64)
        have, want = partial_shape(sp.dense_shape), partial_shape(size)
        if have is not None and want is not None:
            if len(have) != len(want):
                raise ValueError(f"new_shape must have rank {len(have)}, has rank {len(want)}")
            if any(h is not None and w is not None and h > w for h, w in zip(have, want)):
                raise ValueError(
                    "Requested new_shape should have dimension sizes >= sp_input.shape. "
                    f"Found new_shape {want}, "
                    f"sp_input.shape {have}."
                )
        if have is None or want is None or None in have or None in want:
            size = _checked_size(sp.dense_shape, size)
    return SparseTensor(sp.indices, sp.values, size)


def _checked_size(have: Tensor, want: Tensor) -> Tensor:
    """``want``, if it has the length of ``have`` and is nowhere less."""
    from headrace.ops.control.assertions import assert_equal, assert_less_equal

    with control_dependencies([assert_equal(apply_op("Shape", have), apply_op("Shape", want))]):
        want = apply_op("Identity", want)
    with control_dependencies([assert_less_equal(have, want)]):
        return apply_op("Identity", want)


@counted_with(1)  # TF copies the shape
def sparse_retain(sp_input: SparseLike, to_retain: TensorLike) -> SparseTensor:
    """Only the entries whose flag in ``to_retain`` is True."""
    sp = as_sparse_tensor(sp_input)
    keep = convert_to_tensor(to_retain)
    known_dims(sp.values.shape.with_rank(1))[0].merge_with(known_dims(keep.shape.with_rank(1))[0])
    places = apply_op("Reshape", apply_op("Where", keep), const([-1]))
    indices = apply_op("GatherV2", sp.indices, places, const(0))
    return SparseTensor(indices, apply_op("GatherV2", sp.values, places, const(0)), sp.dense_shape)


def sparse_mask(a: Any, mask_indices: object, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the rows in ``mask_indices``."""
    with name_scope(name, "sparse_mask", [a.values, mask_indices]) as scope:
        _, places = apply_many(lookup("ListDiff"), a.indices, mask_indices)
        values = apply_op("GatherV2", a.values, places, const(0), name=scope)
        return IndexedSlices(
            values, apply_op("GatherV2", a.indices, places, const(0)), a.dense_shape
        )


def sparse_merge(
    sp_ids: Any,
    sp_values: SparseLike,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Feature ids and feature values, as a tensor indexed by id.

    ``sp_ids`` and ``sp_values`` have the same indices [..., position]; the result has the value at
    [..., id] and the shape [..., ``vocab_size``]. ``sp_ids`` may be a list of k tensors with k
    vocabulary sizes. ``already_sorted`` leaves out the sorting of ids.
    """
    many = isinstance(sp_ids, (list, tuple)) and not isinstance(sp_ids, SparseTensorValue)
    groups = [as_sparse_tensor(s) for s in (sp_ids if many else [sp_ids])]
    sizes = list(vocab_size) if many else [vocab_size]
    for size in sizes:
        if not isinstance(size, (Tensor, numbers.Integral)):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(size)}")
    if len(groups) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    values = as_sparse_tensor(sp_values)
    with name_scope(name, "SparseMerge", [values]):
        columns = [
            apply_op("Cast", s.values, DstT=dtypes.int64)
            if s.dtype.base_dtype is not dtypes.int64
            else s.values
            for s in groups
        ]
        wide = [apply_op("ExpandDims", c, const(1)) for c in columns]
        first = groups[0].indices
        outer = groups[0].dense_shape[:-1]
        indices = apply_op("ConcatV2", [first[:, :-1], *wide], const(1), name="concat")
        dims = apply_op(
            "ConcatV2", [outer, convert_to_tensor(sizes, dtypes.int64)], const(0), name="concat"
        )
        merged = SparseTensor(indices, values.values, dims)
        if already_sorted:
            return merged
        ordered = sparse_reorder(merged)
        return SparseTensor(ordered.indices, ordered.values, dims)


def sparse_concat(
    axis: Any,
    sp_inputs: Any,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """One after the other along ``axis``; optionally the other dimensions grow to the largest.

    ``sp_inputs`` is a list of sparse tensors of one rank; other dimensions than ``axis`` must match
    unless ``expand_nonconcat_dims`` (older: ``expand_nonconcat_dim``) is true. ``concat_dim`` is
    the older name of ``axis``.
    """
    axis = one_of("axis", axis, "concat_dim", concat_dim)
    items = [as_sparse_tensor(s) for s in sp_inputs]
    if len(items) == 1:
        return items[0]
    with name_scope(name, "SparseConcat", [s.values for s in items]) as scope:
        sizes: list[Any] = [s.dense_shape for s in items]
        if not (expand_nonconcat_dims or expand_nonconcat_dim):
            _check_concat_axis(sizes, axis)
        else:
            top = apply_op("Max", apply_op("Pack", sizes), const([0]), keep_dims=False)
            sizes = [_only_axis(s, top, axis) for s in sizes]
        found = apply_many(
            ops.SPARSE_CONCAT,
            [s.indices for s in items],
            [s.values for s in items],
            sizes,
            concat_dim=axis,
            name=scope,
        )
        return SparseTensor(*found)


def _check_concat_axis(sizes: list[Tensor], axis: int) -> None:
    """Sizes that are all known are added when the graph is built; others when it is run."""
    known = [static_value(s) for s in sizes]
    rank = None if known[0] is None or any(k is None for k in known) else len(known[0])
    if rank is not None and not -rank <= axis < rank:
        raise IndexError(f"index {axis} is out of bounds for axis 0 with size {rank}")


def _only_axis(size: Tensor, top: Any, axis: int) -> Tensor:
    """``top`` with the entry at ``axis`` from ``size``."""
    tail = [] if axis == -1 else [top[axis + 1 :]]
    middle = size[axis:] if axis == -1 else size[axis : axis + 1]
    return apply_op("ConcatV2", [top[:axis], middle, *tail], const(0))


def sparse_concat_v2(
    axis: AxisLike,
    sp_inputs: SparseLike,
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    return sparse_concat(axis, sp_inputs, name, expand_nonconcat_dims)


def sparse_split(
    keyword_required: object = None,
    sp_input: SparseLike | None = None,
    num_split: int | None = None,
    axis: AxisLike | None = None,
    name: str | None = None,
    split_dim: object = None,
) -> list[SparseTensor]:
    """Cut along ``axis`` into ``num_split`` parts, as even as possible.

    Given by name: ``sp_input``, ``num_split`` and ``axis`` (older: ``split_dim``), as
    ``keyword_required`` enforces. The first parts are larger by one where the size is no multiple.
    The result is a list.
    """
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    if sp_input is None or num_split is None:
        raise ValueError("sp_input and num_split are required")
    axis = one_of("axis", axis, "split_dim", split_dim)
    if axis is None:
        raise ValueError("axis is required")
    sp = as_sparse_tensor(sp_input)
    at = convert_to_tensor(axis, dtypes.int64)
    value = static_value(at)
    if value is not None and value.item() < 0 and sp.shape.ndims is not None:
        at = const(value.item() + sp.shape.ndims, dtypes.int64)
    found = apply_any(
        ops.SPARSE_SPLIT, at, sp.indices, sp.values, sp.dense_shape, num_split=num_split, name=name
    )
    return [SparseTensor(*parts) for parts in zip(*found)]


def sparse_split_v2(
    sp_input: SparseLike, num_split: int, axis: AxisLike, name: str | None = None
) -> list[SparseTensor]:
    return sparse_split(sp_input=sp_input, num_split=num_split, axis=axis, name=name)


def sparse_fill_empty_rows(
    sp_input: SparseLike, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """One entry ``default_value`` in every row that has none, and which rows these are."""
    sp = as_sparse_tensor(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp]):
        default = convert_to_tensor(default_value, sp.dtype.base_dtype)
        indices, values, empty, _ = apply_many(
            ops.SPARSE_FILL_EMPTY_ROWS, sp.indices, sp.values, sp.dense_shape, default
        )
        return SparseTensor(indices, values, sp.dense_shape), empty


def sparse_to_indicator(
    sp_input: SparseLike, vocab_size: TensorLike, name: str | None = None
) -> Tensor:
    """A dense bool tensor that is True at the values (ids) of each row."""
    sp = as_sparse_tensor(sp_input)
    with name_scope(name, "SparseToIndicator", [sp]) as scope:
        ones = apply_op("Fill", shape(sp.values), convert_to_tensor(True))
        merged = sparse_merge(sp, SparseTensor(sp.indices, ones, sp.dense_shape), vocab_size)
        return sparse_tensor_to_dense(merged, False, validate_indices=False, name=scope)
