"""Segment reductions: rows of ``data`` with the same id are joined into one row of the output.

Sorted ids are cut into runs and reduced with ``ufunc.reduceat``; unsorted sums of many rows are the
product with a sparse 0/1 matrix (SciPy), which adds rows in place; everything else is ``ufunc.at``.

    tf.unsorted_segment_sum([[1., 2.], [3., 4.]], [1, 1], 3)  # [[0, 0], [4, 6], [0, 0]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, shapes
from headrace.core.build import apply, apply_op
from headrace.core.dtypes import FROM_NUMPY
from headrace.core.infer import Inference
from headrace.core.opdef import OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.kernels.numpy.scatter_rows import join_rows_natively

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "sparse_segment_mean",
    "sparse_segment_mean_v2",
    "sparse_segment_sqrt_n",
    "sparse_segment_sqrt_n_v2",
    "sparse_segment_sum",
    "sparse_segment_sum_v2",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# sorted ids -------------------------------------------------------------------------------------


def _check_sorted(ids: Array, rows: int) -> None:
    if ids.ndim != 1 or ids.shape[0] != rows:
        raise _invalid("segment_ids should be the same size as dimension 0 of input.")
    _check_order(ids)


def _check_order(ids: Array) -> None:
    """TensorFlow walks through the runs of equal ids up to the first that is wrong.

    The last id gives the size.
    """
    if not ids.size:
        return
    if ids[-1] < 0:
        raise _invalid("segment ids must be >= 0")
    falls = ids[1:] < ids[:-1]
    if ids[0] >= 0 and not falls.any():
        return
    size = int(ids[-1]) + 1
    ends = np.append(np.flatnonzero(ids[1:] != ids[:-1]), ids.size - 1)
    for end in ends.tolist():
        if end < falls.size and falls[end]:
            raise _invalid("segment ids are not increasing")
        if not 0 <= ids[end] < size:
            raise _invalid(
                f"Segment id {ids[end]} out of range [0, {size}), possibly because "
                "'segment_ids' input is not sorted."
            )


def _runs(ids: Array) -> Array:
    """Where a new id starts, in sorted ids."""
    return np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))


def _reduce_runs(ufunc: Any, data: Array, ids: Array, count: int, fill: int) -> Array:
    out = np.full((count, *data.shape[1:]), fill, data.dtype)
    if data.shape[0]:
        starts = _runs(ids)
        out[ids[starts]] = ufunc.reduceat(data, starts, axis=0, dtype=data.dtype)
    return out


def _sorted_kernel(ufunc: str, fill: int) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Array, segment_ids: Array) -> Any:
        _check_sorted(segment_ids, data.shape[0])
        count = int(segment_ids[-1]) + 1 if data.shape[0] else 0
        return _reduce_runs(getattr(np, ufunc), data, segment_ids, count, fill)

    return kernel


def _segment_mean_kernel(xp: ArrayNamespace, data: Array, segment_ids: Array) -> Any:
    total = _sorted_kernel("add", 0)(xp, data, segment_ids)
    counts = np.maximum(np.bincount(segment_ids, minlength=total.shape[0]), 1)
    counts = counts.reshape((-1,) + (1,) * (data.ndim - 1))
    if data.dtype.kind in "iu":
        wide = total.astype(np.int64)
        return (np.sign(wide) * (np.abs(wide) // counts)).astype(data.dtype)
    return total / counts.astype(data.dtype)


# unsorted ids -----------------------------------------------------------------------------------

#: From this many elements on, summing rows through a sparse matrix pays (25 times faster than
#: ``np.add.at``).
_SPARSE_FROM = 1 << 14


def _row_sums(data: Array, ids: Array, count: int) -> Any:
    """Rows of a matrix added up by id."""
    if data.size >= _SPARSE_FROM:
        out = np.zeros((count, data.shape[1]), data.dtype)
        if join_rows_natively("add", out, ids, data):
            return out
    if (
        data.dtype.kind in "fc"
        and data.dtype.itemsize >= 4
        and data.size >= _SPARSE_FROM
        and data.shape[1] >= 4
    ):
        from scipy.sparse import csc_matrix

        ones = np.ones(ids.size, data.dtype)
        return csc_matrix((ones, ids, np.arange(ids.size + 1)), shape=(count, ids.size)) @ data
    return _rows_at(np.add, data, ids, count, 0)


def _rows_at(ufunc: Any, data: Array, ids: Array, count: int, fill: int | np.generic) -> Array:
    out = np.full((count, data.shape[1]), fill, data.dtype)
    ufunc.at(out, ids, data)
    return out


def _flat_rows(data: Array, ids: Array, count: int) -> tuple[Any, Any]:
    """``data`` as a matrix with one row per id; rows with a negative id are dropped."""
    if data.shape[: ids.ndim] != ids.shape:
        raise _invalid(
            f"data.shape = {shapes.show(data.shape)} does not start with "
            f"segment_ids.shape = {shapes.show(ids.shape)}"
        )
    flat = ids.reshape(-1)
    rows = data.reshape(flat.size, math.prod(data.shape[ids.ndim :]))
    if flat.size and flat.min() < 0:
        keep = flat >= 0
        rows, kept = rows[keep], flat[keep]
    else:
        kept = flat
    if kept.size and kept.max() >= count:
        at = int(np.flatnonzero(flat >= count)[0])
        where = ",".join(str(i) for i in np.unravel_index(at, ids.shape))
        raise _invalid(f"segment_ids[{where}] = {flat[at]} is out of range [0, {count})")
    return rows, kept


def _count(num_segments: Array | np.generic) -> int:
    count = int(num_segments)
    if count < 0:
        raise _invalid(f"Input num_segments == {count} must not be negative.")
    return count


def _unsorted_sum_kernel(
    xp: ArrayNamespace, data: Array, segment_ids: Array, num_segments: Array
) -> Any:
    count = _count(num_segments)
    if xp.name != "numpy":
        start = xp.zeros((count, *data.shape[segment_ids.ndim :]), data.dtype)
        return xp.index_add(start, _beyond(xp, segment_ids, count), data)
    rows, ids = _flat_rows(data, segment_ids, count)
    return _row_sums(rows, ids, count).reshape(count, *data.shape[segment_ids.ndim :])


def _beyond(xp: ArrayNamespace, ids: Array, count: int) -> Array:
    """Negative ids moved behind the end, where a traced scatter drops them."""
    return xp.where(ids < 0, count, ids)


def _unsorted_kernel(ufunc: str, fill: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Any, segment_ids: Array, num_segments: Array) -> Any:
        count = _count(num_segments)
        rows, ids = _flat_rows(data, segment_ids, count)
        out = _rows_at(getattr(np, ufunc), rows, ids, count, _limit(data.dtype, fill))
        return out.reshape(count, *data.shape[segment_ids.ndim :])

    return kernel


def _limit(dtype: np.dtype[Any], which: str) -> Any:
    if which == "one":
        return 1
    return getattr(FROM_NUMPY[dtype], which)


# gathered rows ----------------------------------------------------------------------------------


def _sparse_rows(data: Array, indices: Array, ids: Array) -> Array:
    """``data[indices]``, with the checks of the sparse segment ops."""
    if indices.shape != ids.shape or ids.ndim != 1:
        raise _invalid("segment_ids and indices should have same size.")
    _check_order(ids)
    bad = np.flatnonzero((indices < 0) | (indices >= data.shape[0]))
    if bad.size:
        raise _invalid(
            f"Bad: indices[{bad[0]}] == {indices[bad[0]]} out of range [0, {data.shape[0]})"
        )
    return data[indices]


def _divisors(ids: Array, count: int, scale: str, dtype: Any) -> Array:
    """What the sum of each segment is divided by."""
    counts = np.maximum(np.bincount(ids, minlength=count), 1).astype(dtype)
    return np.sqrt(counts) if scale == "sqrt" else counts


def _sparse_kernel(scale: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, data: Array, indices: Array, segment_ids: Array) -> Any:
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        return _sparse_segments(data, indices, segment_ids, count, scale)

    return kernel


def _sparse_kernel_n(scale: str) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace, data: Array, indices: Array, segment_ids: Array, num_segments: Array
    ) -> Any:
        count = _count(num_segments)
        if segment_ids.size and segment_ids[-1] >= count:
            raise _invalid("segment ids must be < num_segments")
        return _sparse_segments(data, indices, segment_ids, count, scale)

    return kernel


def _sparse_segments(data: Array, indices: Array, ids: Array, count: int, scale: str) -> Array:
    rows = _sparse_rows(data, indices, ids)
    total = _reduce_runs(np.add, rows, ids, count, 0)
    if not scale:
        return total
    return total / _divisors(ids, count, scale, data.dtype).reshape((-1,) + (1,) * (data.ndim - 1))


def _sparse_grad_kernel(scale: str) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace, grad: Array, indices: Array, segment_ids: Array, output_dim0: Array
    ) -> Any:
        rows = int(output_dim0)
        bad = np.flatnonzero((indices < 0) | (indices >= rows))
        if bad.size:
            raise _invalid(f"Index {indices[bad[0]]} out of range [0, {rows}).")
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        if count > grad.shape[0]:
            raise _invalid(
                f"Invalid number of segments: {count} by the ids, {grad.shape[0]} rows of "
                "the gradient"
            )
        bad = np.flatnonzero((segment_ids < 0) | (segment_ids >= grad.shape[0]))
        if bad.size:
            raise _invalid(f"Segment id {segment_ids[bad[0]]} out of range [0, {grad.shape[0]}).")
        divisors = _divisors(segment_ids, grad.shape[0], scale, grad.dtype)
        scaled = grad / divisors.reshape((-1,) + (1,) * (grad.ndim - 1))
        flat = scaled[segment_ids].reshape(segment_ids.size, math.prod(grad.shape[1:]))
        return _row_sums(flat, indices, rows).reshape(rows, *grad.shape[1:])

    return kernel


# shapes -----------------------------------------------------------------------------------------


def _rows_unknown(c: Inference) -> list[Shape]:
    """The first dimension depends on the ids."""
    data = c.require_rank_at_least(0, 1)
    for i in range(1, c.n_inputs):
        c.require_rank(i, 1)
    if c.n_inputs == 3:
        _same_length(c.shape(1), c.shape(2))
    return [None if data is None else (None, *data[1:])]


def _same_length(a: Shape, b: Shape) -> None:
    if a is not None and b is not None and None not in (a[0], b[0]) and a[0] != b[0]:
        raise ValueError(
            f"Dimension 0 in both shapes must be equal, but are {a[0]} and {b[0]}. "
            f"Shapes are {shapes.show(a)} and {shapes.show(b)}."
        )


def _size_input(c: Inference, i: int) -> int | None:
    """Input i read as the size of a dimension."""
    c.require_rank(i, 0)
    value = c.value(i)
    if value is None:
        return None
    if int(value) < 0:
        raise ValueError(
            f"Dimension size, given by scalar input {i}, must be non-negative but is {int(value)}"
        )
    return int(value)


def _rows_given(c: Inference) -> list[Shape]:
    """SparseSegment…WithNumSegments and …Grad: the last input is the number of rows."""
    data = c.require_rank_at_least(0, 1)
    _same_length(c.require_rank(1, 1), c.require_rank(2, 1))
    given = c.value(3)
    if given is not None and given.size == 1 and int(given.item()) < 0:
        raise ValueError("Cannot specify a negative value for num_segments")
    rows = _size_input(c, 3)
    return [None if data is None else (rows, *data[1:])]


def _unsorted_shape(c: Inference) -> list[Shape]:
    data, ids = c.shape(0), c.shape(1)
    rows = _size_input(c, 2)
    if data is None or ids is None:
        return [None]
    if len(data) < len(ids):
        raise ValueError(f"Shape must be at least rank {len(ids)} but is rank {len(data)}")
    for d, i in zip(data, ids):
        if d is not None and i is not None and d != i:
            raise ValueError(f"Dimensions must be equal, but are {d} and {i}")
    return [(rows, *data[len(ids) :])]


# gradients --------------------------------------------------------------------------------------


def _gather(params: TensorLike, indices: Tensor) -> Tensor:
    return apply_op("GatherV2", params, indices, 0)


def _segment_sum_grad(op: Operation, g: Tensor) -> list[Any]:
    return [_gather(g, op._inputs[1]), None]


def _segment_mean_grad(op: Operation, g: Tensor) -> list[Any]:
    ids = op._inputs[1]
    ones = apply_op("Cast", apply_op("OnesLike", ids), DstT=g.dtype)
    scaled = apply_op("RealDiv", g, _aligned(apply_op("SegmentSum", ones, ids), g))
    return [_gather(scaled, ids), None]


def _aligned(values: Tensor, rows: Tensor) -> Tensor:
    """Values for leading axes, with axes of length one added so that they broadcast against
    ``rows``.
    """
    have, want = values._shape, rows._shape
    if have is not None and want is not None:
        for _ in range(len(want) - len(have)):
            values = apply_op("ExpandDims", values, -1)
        return values
    missing = apply_op("Sub", apply_op("Rank", rows), apply_op("Rank", values))
    ones = apply_op("Fill", apply_op("Reshape", missing, [1]), 1)
    return apply_op("Reshape", values, apply_op("ConcatV2", [apply_op("Shape", values), ones], 0))


def _segment_extreme_grad(op: Operation, g: Tensor) -> list[Any]:
    """Equal elements of a segment share its gradient equally."""
    data, ids = op._inputs
    chosen = apply_op("Equal", data, _gather(op._outputs[0], ids))
    count = apply_op("SegmentSum", apply_op("Cast", chosen, DstT=g.dtype), ids)
    shared = _gather(apply_op("RealDiv", g, count), ids)
    return [apply_op("SelectV2", chosen, shared, apply_op("ZerosLike", data)), None]


class _Gatherer:
    """Rows by id; zeros for negative ids."""

    def __init__(self, ids: Tensor) -> None:
        self.clipped = apply_op("Maximum", ids, apply_op("ZerosLike", ids))
        self.positive = apply_op("GreaterEqual", ids, apply_op("ZerosLike", ids))

    def rows(self, params: TensorLike) -> Any:
        return _gather(params, self.clipped)

    def mask(self, rows: Tensor) -> Tensor:
        return _aligned(self.positive, rows)

    def rows_or_zero(self, params: Tensor) -> Tensor:
        rows = self.rows(params)
        return apply_op("SelectV2", self.mask(rows), rows, apply_op("ZerosLike", rows))


def _unsorted_sum_grad(op: Operation, g: Tensor) -> list[Any]:
    return [_Gatherer(op._inputs[1]).rows_or_zero(g), None, None]


def _unsorted_extreme_grad(op: Operation, g: Tensor) -> list[Any]:
    data, ids, count = op._inputs
    gatherer = _Gatherer(ids)
    chosen = apply_op("Equal", data, gatherer.rows_or_zero(op._outputs[0]))
    chosen = apply_op("LogicalAnd", chosen, gatherer.mask(data))
    number = apply_op("UnsortedSegmentSum", apply_op("Cast", chosen, DstT=g.dtype), ids, count)
    shared = gatherer.rows_or_zero(apply_op("RealDiv", g, number))
    return [apply_op("SelectV2", chosen, shared, apply_op("ZerosLike", shared)), None, None]


def _unsorted_prod_grad(op: Operation, g: Tensor) -> list[Any]:
    return [_prod_grad(op, g, op._inputs[2]), None, None]


def _segment_prod_grad(op: Operation, g: Tensor) -> list[Any]:
    return [_prod_grad(op, g, _first_dim(op._outputs[0])), None]


def _prod_grad(op: Operation, g: Tensor, count: Tensor) -> Tensor:
    """The product of a segment's other elements: by division, but apart where an element is zero.

    One zero in a segment: only that element has a gradient, the product of the others. More than
    one: none has.
    """
    data, ids = op._inputs[:2]
    gatherer = _Gatherer(ids)
    is_zero = apply_op("Equal", data, apply_op("ZerosLike", data))
    zeros = apply_op("UnsortedSegmentSum", apply_op("Cast", is_zero, DstT="int32"), ids, count)
    g = apply_op("SelectV2", apply_op("Greater", zeros, 1), apply_op("ZerosLike", g), g)
    without_zeros = apply_op("SelectV2", is_zero, apply_op("OnesLike", data), data)
    product = gatherer.rows(apply_op("UnsortedSegmentProd", without_zeros, ids, count))
    others = apply_op("RealDiv", gatherer.rows(op._outputs[0]), data)
    return gatherer.rows_or_zero(g) * apply_op("SelectV2", is_zero, product, others)


def _first_dim(x: Tensor) -> Any:
    if x._shape is not None and x._shape[0] is not None:
        return x._shape[0]
    return apply_op("Shape", x)[0]


def _sparse_sum_grad(op: Operation, g: Tensor) -> list[Any]:
    data, indices, ids = op._inputs[:3]
    grad = apply_op("UnsortedSegmentSum", _gather(g, ids), indices, _first_dim(data))
    return [grad] + [None] * (len(op._inputs) - 1)


def _sparse_scaled_grad(op_type: str) -> Callable[..., Any]:
    def grad(op: Operation, g: TensorLike) -> list[Any]:
        data, indices, ids = op._inputs[:3]
        return [apply_op(op_type, g, indices, ids, _first_dim(data))] + [None] * (
            len(op._inputs) - 1
        )

    return grad


def _sparse_grad_grad(op_type: str) -> Callable[..., Any]:
    """The gradient op is linear in its first input, and the forward op is its adjoint."""

    def grad(op: Operation, g: TensorLike) -> list[Any]:
        rows, indices, ids = op._inputs[:3]
        return [apply_op(op_type, g, indices, ids, _first_dim(rows)), None, None, None]

    return grad


# definitions ------------------------------------------------------------------------------------

_SORTED = "data: T, segment_ids: Tindices -> output: T; T: type({}), Tindices: type(index)"
_UNSORTED = (
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T; T: "
    "type({}), Tindices: type(index), "
    "Tnumsegments: type(index)=int32"
)
_SPARSE = (
    "data: T, indices: Tidx, segment_ids: int32 -> output: T; T: type({}), Tidx: type(index)=int32"
)
_SPARSE_N = (
    "data: T, indices: Tidx, segment_ids: int32, num_segments: Tnumsegments -> output: T; "
    "T: type({}), "
    "Tidx: type(index)=int32, Tnumsegments: type(index)=int32"
)
_SPARSE_GRAD = (
    "grad: T, indices: Tidx, segment_ids: int32, output_dim0: int32 -> output: T; T: type(float), "
    "Tidx: type(index)=int32"
)


def _sorted(name: str, kernel: Callable[..., Any], group: str, grad: Callable[..., Any]) -> OpDef:
    return define(
        name,
        _SORTED.format(group),
        shape=_rows_unknown,
        kernel=kernel,
        grad=grad,
        data_dependent_shape=True,
    )


def _unsorted(name: str, kernel: Callable[..., Any], group: str, grad: Callable[..., Any]) -> OpDef:
    return define(
        name,
        _UNSORTED.format(group),
        shape=_unsorted_shape,
        kernel=kernel,
        grad=grad,
        known_inputs=(2,),
        host_only=name != "UnsortedSegmentSum",
    )


def _sparse(name: str, scale: str, group: str, grad: Callable[..., Any]) -> tuple[OpDef, OpDef]:
    plain = define(
        name,
        _SPARSE.format(group),
        shape=_rows_unknown,
        kernel=_sparse_kernel(scale),
        grad=grad,
        data_dependent_shape=True,
    )
    sized = define(
        name + "WithNumSegments",
        _SPARSE_N.format(group),
        shape=_rows_given,
        kernel=_sparse_kernel_n(scale),
        grad=grad,
        known_inputs=(3,),
        host_only=True,
    )
    return plain, sized


SEGMENT_SUM = _sorted("SegmentSum", _sorted_kernel("add", 0), "number", _segment_sum_grad)
SEGMENT_MEAN = _sorted("SegmentMean", _segment_mean_kernel, "number", _segment_mean_grad)
SEGMENT_PROD = _sorted("SegmentProd", _sorted_kernel("multiply", 1), "number", _segment_prod_grad)
SEGMENT_MIN = _sorted("SegmentMin", _sorted_kernel("minimum", 0), "real", _segment_extreme_grad)
SEGMENT_MAX = _sorted("SegmentMax", _sorted_kernel("maximum", 0), "real", _segment_extreme_grad)
UNSORTED_SUM = _unsorted("UnsortedSegmentSum", _unsorted_sum_kernel, "number", _unsorted_sum_grad)
UNSORTED_PROD = _unsorted(
    "UnsortedSegmentProd", _unsorted_kernel("multiply", "one"), "number", _unsorted_prod_grad
)
UNSORTED_MIN = _unsorted(
    "UnsortedSegmentMin", _unsorted_kernel("minimum", "max"), "real", _unsorted_extreme_grad
)
UNSORTED_MAX = _unsorted(
    "UnsortedSegmentMax", _unsorted_kernel("maximum", "min"), "real", _unsorted_extreme_grad
)
SPARSE_SUM = _sparse("SparseSegmentSum", "", "real", _sparse_sum_grad)
SPARSE_MEAN = _sparse(
    "SparseSegmentMean", "mean", "float", _sparse_scaled_grad("SparseSegmentMeanGrad")
)
SPARSE_SQRT_N = _sparse(
    "SparseSegmentSqrtN", "sqrt", "float", _sparse_scaled_grad("SparseSegmentSqrtNGrad")
)
for _name, _scale in (("SparseSegmentMean", "mean"), ("SparseSegmentSqrtN", "sqrt")):
    define(
        _name + "Grad",
        _SPARSE_GRAD,
        shape=_rows_given,
        kernel=_sparse_grad_kernel(_scale),
        grad=_sparse_grad_grad(_name + "WithNumSegments"),
        known_inputs=(3,),
        host_only=True,
    )


# what users call --------------------------------------------------------------------------------


def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Sums of rows with equal ids: row i of the result is the sum of rows with id i.

    ``segment_ids`` is sorted and has one id per row; ids that are missing give 0.

        tf.segment_sum([[1, 2], [3, 4], [5, 6]], [0, 0, 1])     # [[4, 6], [5, 6]]
    """
    return apply(SEGMENT_SUM, data, segment_ids, name=name)


def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The mean of the rows with equal ids; ``segment_ids`` is sorted. Missing ids give 0."""
    return apply(SEGMENT_MEAN, data, segment_ids, name=name)


def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The product of the rows with equal ids; ``segment_ids`` is sorted. Missing ids give 1."""
    return apply(SEGMENT_PROD, data, segment_ids, name=name)


def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The smallest element of the rows with equal ids; ``segment_ids`` is sorted.

    Missing ids give 0.
    """
    return apply(SEGMENT_MIN, data, segment_ids, name=name)


def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The largest element of the rows with equal ids; ``segment_ids`` is sorted.

    Missing ids give 0.
    """
    return apply(SEGMENT_MAX, data, segment_ids, name=name)


def unsorted_segment_sum(
    data: Tensor, segment_ids: Tensor, num_segments: object, name: str | None = None
) -> Tensor:
    """Sums of rows by id, in any order; rows with a negative id are dropped."""
    return apply(UNSORTED_SUM, data, segment_ids, num_segments, name=name)


def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The product of the rows with equal ids, in any order; missing ids give 1.

    Rows with negative ids are left out.
    """
    return apply(UNSORTED_PROD, data, segment_ids, num_segments, name=name)


def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The smallest element of the rows with equal ids, in any order.

    Missing ids give the largest number of the type; rows with negative ids are left out.
    """
    return apply(UNSORTED_MIN, data, segment_ids, num_segments, name=name)


def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The largest element of the rows with equal ids, in any order.

    Missing ids give the smallest number of the type; rows with negative ids are left out.
    """
    return apply(UNSORTED_MAX, data, segment_ids, num_segments, name=name)


def _segment_counts(data: Tensor, ids: Tensor, count: object) -> Tensor:
    """How many rows each segment has, at least one, ready to divide the sums by."""
    ones = apply_op("Cast", apply_op("OnesLike", ids), DstT=data.dtype.base_dtype)
    return apply_op("Maximum", unsorted_segment_sum(ones, ids, count), 1)


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The mean of the rows with equal ids, in any order; missing ids give 0."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, ids = convert.convert(data), convert.convert(segment_ids)
        total = unsorted_segment_sum(data, ids, num_segments)
        return total / _aligned(_segment_counts(data, ids, num_segments), total)


def unsorted_segment_sqrt_n(
    data: Tensor, segment_ids: TensorLike, num_segments: int, name: str | None = None
) -> Tensor:
    """The sum of the rows with equal ids, divided by the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, ids = convert.convert(data), convert.convert(segment_ids)
        total = unsorted_segment_sum(data, ids, num_segments)
        counts = _aligned(_segment_counts(data, ids, num_segments), total)
        return total / apply_op("Sqrt", counts)


def _sparse_apply(
    ops: tuple[OpDef, OpDef],
    data: object,
    indices: object,
    ids: object,
    name: str | None,
    count: Any,
) -> Tensor:
    if count is None:
        return apply(ops[0], data, indices, ids, name=name)
    return apply(ops[1], data, indices, ids, count, name=name)


def sparse_segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """``segment_sum(tf.gather(data, indices), segment_ids)`` in one op."""
    return _sparse_apply(SPARSE_SUM, data, indices, segment_ids, name, num_segments)


def sparse_segment_mean(
    data: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    name: str | None = None,
    num_segments: Any = None,
) -> Tensor:
    """The mean of the rows ``data[indices]`` with equal ids, without gathering them first.

    ``segment_ids`` is sorted; with ``num_segments`` ids may be missing (they give 0).
    """
    return _sparse_apply(SPARSE_MEAN, data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: Any = None,
) -> Tensor:
    """The sum of the rows ``data[indices]`` with equal ids over the root of their number.

    ``segment_ids`` is sorted; with ``num_segments`` ids may be missing (they give 0).
    """
    return _sparse_apply(SPARSE_SQRT_N, data, indices, segment_ids, name, num_segments)


def sparse_segment_sum_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: Any = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_SUM, data, indices, segment_ids, name, num_segments)


def sparse_segment_mean_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: Any = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_MEAN, data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: Any = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_SQRT_N, data, indices, segment_ids, name, num_segments)
