"""Segment reductions: rows of ``data`` with the same id are joined into one row of the output.

Sorted ids are cut into runs and reduced with ``ufunc.reduceat``; unsorted sums of many rows are the
product with a sparse 0/1 matrix (SciPy), which adds rows in place; everything else is ``ufunc.at``.

    tf.unsorted_segment_sum([[1., 2.], [3., 4.]], [1, 1], 3)  # [[0, 0], [4, 6], [0, 0]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import convert, dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.ops.math.segment_kernels import (
    segment_mean_kernel,
    sorted_kernel,
    sparse_grad_kernel,
    sparse_kernel,
    sparse_kernel_n,
    unsorted_kernel,
    unsorted_sum_kernel,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
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


#: The types of ``Maximum``.
_REAL = (
    dtypes.bfloat16,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
    dtypes.int32,
    dtypes.int64,
)

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

    def rows(self, params: TensorLike) -> Tensor:
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
        kernel=sparse_kernel(scale),
        grad=grad,
        data_dependent_shape=True,
    )
    sized = define(
        name + "WithNumSegments",
        _SPARSE_N.format(group),
        shape=_rows_given,
        kernel=sparse_kernel_n(scale),
        grad=grad,
        known_inputs=(3,),
        host_only=True,
    )
    return plain, sized


SEGMENT_SUM = _sorted("SegmentSum", sorted_kernel("add", 0), "number", _segment_sum_grad)
SEGMENT_MEAN = _sorted("SegmentMean", segment_mean_kernel, "number", _segment_mean_grad)
SEGMENT_PROD = _sorted("SegmentProd", sorted_kernel("multiply", 1), "number", _segment_prod_grad)
SEGMENT_MIN = _sorted("SegmentMin", sorted_kernel("minimum", 0), "real", _segment_extreme_grad)
SEGMENT_MAX = _sorted("SegmentMax", sorted_kernel("maximum", 0), "real", _segment_extreme_grad)
UNSORTED_SUM = _unsorted("UnsortedSegmentSum", unsorted_sum_kernel, "number", _unsorted_sum_grad)
UNSORTED_PROD = _unsorted(
    "UnsortedSegmentProd", unsorted_kernel("multiply", "one"), "number", _unsorted_prod_grad
)
UNSORTED_MIN = _unsorted(
    "UnsortedSegmentMin", unsorted_kernel("minimum", "max"), "real", _unsorted_extreme_grad
)
UNSORTED_MAX = _unsorted(
    "UnsortedSegmentMax", unsorted_kernel("maximum", "min"), "real", _unsorted_extreme_grad
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
        kernel=sparse_grad_kernel(_scale),
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


@dispatched("segment:sum")
def unsorted_segment_sum(
    data: Tensor, segment_ids: Tensor, num_segments: object, name: str | None = None
) -> Tensor:
    """Sums of the rows of ``data`` with equal ids; a missing id gives 0.

    ``segment_ids`` has the shape of the first dimensions of ``data``, in any order;
    ``num_segments`` is the number of rows of the result. Rows with negative ids are left out.

        tf.unsorted_segment_sum([1, 2, 3, 4], [0, 1, 0, -1], num_segments=2)  # [4, 2]
    """
    return apply(UNSORTED_SUM, data, segment_ids, num_segments, name=name)


@dispatched("segment:prod")
def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The product of the rows of ``data`` with equal ids; a missing id gives 1.

    ``segment_ids`` has the shape of the first dimensions of ``data``, in any order;
    ``num_segments`` is the number of rows of the result. Rows with negative ids are left out.
    """
    return apply(UNSORTED_PROD, data, segment_ids, num_segments, name=name)


@dispatched("segment:min")
def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The smallest element of the rows of ``data`` with equal ids.

    A missing id gives the largest number of the type. ``segment_ids`` has the shape of the first
    dimensions of ``data``, in any order; ``num_segments`` is the number of rows of the result. Rows
    with negative ids are left out.
    """
    return apply(UNSORTED_MIN, data, segment_ids, num_segments, name=name)


@dispatched("segment:max")
def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The largest element of the rows of ``data`` with equal ids.

    A missing id gives the smallest number of the type. ``segment_ids`` has the shape of the first
    dimensions of ``data``, in any order; ``num_segments`` is the number of rows of the result. Rows
    with negative ids are left out.

        tf.unsorted_segment_max([1, 5, 3], [0, 1, 0], num_segments=2)  # [3, 5]
    """
    return apply(UNSORTED_MAX, data, segment_ids, num_segments, name=name)


def _of_real_numbers(data: Tensor) -> None:
    """Which types a quotient of sums may have: TensorFlow finds out by Maximum."""
    if data.dtype.base_dtype not in _REAL:
        raise TypeError(
            f"Value passed to parameter 'x' has DataType {data.dtype.base_dtype.name} not in list "
            f"of allowed values: {', '.join(d.name for d in _REAL)}"
        )


def _segment_counts(data: Tensor, ids: Tensor, count: object) -> Tensor:
    """How many rows each segment has, at least one, ready to divide the sums by."""
    ones = apply_op("Cast", apply_op("OnesLike", ids), DstT=data.dtype.base_dtype)
    counts = unsorted_segment_sum(ones, ids, count)
    _of_real_numbers(data)
    return apply_op("Maximum", counts, 1)


@dispatched("segment:mean")
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The mean of the rows of ``data`` with equal ids; a missing id gives 0.

    ``segment_ids`` has the shape of the first dimensions of ``data``, in any order;
    ``num_segments`` is the number of rows of the result. Rows with negative ids are left out.
    """
    with name_scope(name, "UnsortedSegmentMean"):
        data, ids = convert.convert(data), convert.convert(segment_ids)
        counts = _segment_counts(data, ids, num_segments)
        total = unsorted_segment_sum(data, ids, num_segments)
        return total / _aligned(counts, total)


@dispatched("segment:sqrt_n")
def unsorted_segment_sqrt_n(
    data: Tensor, segment_ids: TensorLike, num_segments: int, name: str | None = None
) -> Tensor:
    """The sum of the rows of ``data`` with equal ids, divided by the square root of their number.

    ``segment_ids`` has the shape of the first dimensions of ``data``, in any order;
    ``num_segments`` is the number of rows of the result. Rows with negative ids are left out.
    """
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, ids = convert.convert(data), convert.convert(segment_ids)
        counts = _segment_counts(data, ids, num_segments)
        total = unsorted_segment_sum(data, ids, num_segments)
        return total / apply_op("Sqrt", _aligned(counts, total))


def _sparse_apply(
    ops: tuple[OpDef, OpDef],
    data: object,
    indices: object,
    ids: object,
    name: str | None,
    count: object,
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
    """The sum of the rows ``data[indices]`` with equal ids, without gathering them first.

    ``segment_ids`` is sorted and as long as ``indices``; with ``num_segments`` ids may be missing
    (they give 0).
    """
    return _sparse_apply(SPARSE_SUM, data, indices, segment_ids, name, num_segments)


def sparse_segment_mean(
    data: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    name: str | None = None,
    num_segments: object = None,
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
    num_segments: object = None,
) -> Tensor:
    """The sum of the rows ``data[indices]`` with equal ids over the root of their number.

    ``segment_ids`` is sorted; with ``num_segments`` ids may be missing (they give 0).
    """
    return _sparse_apply(SPARSE_SQRT_N, data, indices, segment_ids, name, num_segments)


def sparse_segment_sum_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: object = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_SUM, data, indices, segment_ids, name, num_segments)


def sparse_segment_mean_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: object = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_MEAN, data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n_v2(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: object = None,
    name: str | None = None,
) -> Tensor:
    return _sparse_apply(SPARSE_SQRT_N, data, indices, segment_ids, name, num_segments)
