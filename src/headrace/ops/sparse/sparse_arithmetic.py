"""Functions of ``tf.sparse`` that compute: sums, softmax, reductions, extremes.

>>> tf.sparse_add(a, b); tf.sparse_reduce_sum(a, axis=1); tf.sparse_softmax(a)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_any, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.indexed_slices import SparseTensorValue
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, one_of
from headrace.ops.sparse import sparse_elementwise, sparse_reductions
from headrace.ops.sparse import sparse_ops as ops
from headrace.ops.sparse.sparse_tensor import SparseTensor, as_sparse_tensor

if TYPE_CHECKING:
    from headrace.core.annotations import SparseLike, TensorLike
    from headrace.core.opdef import OpDef

__all__ = [
    "sparse_add",
    "sparse_add_v2",
    "sparse_maximum",
    "sparse_minimum",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_softmax",
]


# arithmetic -------------------------------------------------------------------------------------


def sparse_add(
    a: TensorLike | SparseLike,
    b: TensorLike | SparseLike,
    threshold: object = None,
    thresh: object = None,
) -> Tensor | SparseTensor:
    """The sum of two tensors of which at least one is sparse.

    Small sums of two sparse ones may be dropped.
    """
    threshold = one_of("threshold", threshold, "thresh", thresh)
    if threshold is None:
        threshold = 0
    kinds = (SparseTensor, SparseTensorValue)
    if not isinstance(a, kinds) and not isinstance(b, kinds):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if isinstance(a, kinds) and isinstance(b, kinds):
        left, right = as_sparse_tensor(a), as_sparse_tensor(b)
        left.shape.assert_is_compatible_with(right.shape)
        limit = convert_to_tensor(threshold, left.dtype.real_dtype.base_dtype, "thresh")
        sizes = left.dense_shape, right.dense_shape
        return SparseTensor(
            *apply_many(
                ops.SPARSE_ADD,
                left.indices,
                left.values,
                sizes[0],
                right.indices,
                right.values,
                sizes[1],
                limit,
            )
        )
    sparse, dense = (a, b) if isinstance(a, kinds) else (b, a)
    sp = as_sparse_tensor(sparse)
    return apply(ops.SPARSE_DENSE_ADD, sp.indices, sp.values, sp.dense_shape, dense)


def sparse_add_v2(a: TensorLike, b: TensorLike, threshold: TensorLike = 0) -> Tensor | SparseTensor:
    return sparse_add(a, b, threshold)


def sparse_softmax(sp_input: SparseLike, name: str | None = None) -> SparseTensor:
    """Softmax over the entries of each row."""
    sp = as_sparse_tensor(sp_input)
    with name_scope(name, "SparseSoftmax", [sp.indices, sp.values]) as scope:
        values = apply(
            sparse_elementwise.SPARSE_SOFTMAX,
            sp.indices,
            sp.values,
            sp.dense_shape,
            name=scope + "SparseSoftmax/",
        )
    return SparseTensor(sp.indices, values, sp.dense_shape)


def _axes_or_all(sp: SparseTensor, axis: int | None) -> int | Tensor:
    if axis is not None:
        return axis
    rank = sp.shape.ndims
    return (
        const(range(rank))
        if rank is not None
        else apply_op("Range", const(0), apply_op("Size", sp.dense_shape), const(1))
    )


def _reduced(
    op: OpDef,
    sp_input: object,
    axis: object,
    keepdims: object,
    reduction_axes: object,
    keep_dims: object,
    name: str | None = None,
) -> Any:
    sp = as_sparse_tensor(sp_input)
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims) or False
    axes = _axes_or_all(sp, one_of("axis", axis, "reduction_axes", reduction_axes))
    return apply_any(op, sp.indices, sp.values, sp.dense_shape, axes, keep_dims=keep, name=name)


def _reduced_v2(
    what: str,
    output_is_sparse: bool,
    sp_input: object,
    axis: object,
    keepdims: object,
    name: str | None,
) -> Any:
    """TF 2's one function for dense and sparse results of a reduction (``SUM`` or ``MAX``)."""
    kind = f"SPARSE_REDUCE_{what}{'_SPARSE' if output_is_sparse else ''}"
    op: OpDef = getattr(sparse_reductions, kind)
    found = _reduced(op, sp_input, axis, keepdims, None, None, name)
    return SparseTensor(*found) if output_is_sparse else found


def sparse_reduce_sum(
    sp_input: SparseLike,
    axis: TensorLike | None = None,
    keepdims: object = None,
    reduction_axes: object = None,
    keep_dims: object = None,
) -> Tensor:
    """The sum of the entries along ``axis`` (None: of all), as a dense tensor.

    ``reduction_axes`` and ``keep_dims`` are old names.
    """
    found: Tensor = _reduced(
        sparse_reductions.SPARSE_REDUCE_SUM, sp_input, axis, keepdims, reduction_axes, keep_dims
    )
    return found


def sparse_reduce_max(
    sp_input: SparseLike,
    axis: object = None,
    keepdims: object = None,
    reduction_axes: object = None,
    keep_dims: object = None,
) -> Tensor:
    """The largest entry along ``axis`` (None: of all), as a dense tensor.

    Zeros that are not stored do not count.
    """
    found: Tensor = _reduced(
        sparse_reductions.SPARSE_REDUCE_MAX, sp_input, axis, keepdims, reduction_axes, keep_dims
    )
    return found


def sparse_reduce_sum_sparse(
    sp_input: SparseLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    reduction_axes: object = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """The sum of the entries along ``axis`` (None: of all), as a SparseTensor.

    The arguments are those of ``sparse_reduce_sum``.
    """
    return SparseTensor(
        *_reduced(
            sparse_reductions.SPARSE_REDUCE_SUM_SPARSE,
            sp_input,
            axis,
            keepdims,
            reduction_axes,
            keep_dims,
        )
    )


def sparse_reduce_max_sparse(
    sp_input: SparseLike,
    axis: TensorLike | None = None,
    keepdims: object = None,
    reduction_axes: TensorLike | None = None,
    keep_dims: object = None,
) -> SparseTensor:
    """The largest entry along ``axis`` (None: of all), as a SparseTensor.

    The arguments are those of ``sparse_reduce_max``.
    """
    return SparseTensor(
        *_reduced(
            sparse_reductions.SPARSE_REDUCE_MAX_SPARSE,
            sp_input,
            axis,
            keepdims,
            reduction_axes,
            keep_dims,
        )
    )


def sparse_reduce_max_v2(
    sp_input: SparseLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The largest entry along ``axis`` (None: of all), dense or sparse."""
    return _reduced_v2("MAX", output_is_sparse, sp_input, axis, keepdims, name)


def sparse_reduce_sum_v2(
    sp_input: SparseLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The sum of the entries along ``axis`` (None: of all), dense or sparse."""
    return _reduced_v2("SUM", output_is_sparse, sp_input, axis, keepdims, name)


def _extreme(op: OpDef, sp_a: object, sp_b: object, name: str | None) -> SparseTensor:
    a, b = as_sparse_tensor(sp_a), as_sparse_tensor(sp_b)
    indices, values = apply_many(
        op, a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=name
    )
    return SparseTensor(indices, values, a.dense_shape)


def sparse_maximum(sp_a: SparseLike, sp_b: SparseLike, name: str | None = None) -> SparseTensor:
    """The larger element of two sparse tensors of one shape; missing entries count as 0."""
    return _extreme(sparse_elementwise.SPARSE_SPARSE_MAXIMUM, sp_a, sp_b, name)


def sparse_minimum(sp_a: SparseLike, sp_b: SparseLike, name: str | None = None) -> SparseTensor:
    """The smaller element of two sparse tensors of one shape; missing entries count as 0."""
    return _extreme(sparse_elementwise.SPARSE_SPARSE_MINIMUM, sp_a, sp_b, name)
