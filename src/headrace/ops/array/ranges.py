"""Number sequences, counts and buckets: Range, LinSpace, Bincount, HistogramFixedWidth, Bucketize,
Cross.

tf.range(3, 18, 3)  # [3, 6, 9, 12, 15]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import GROUPS, NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "bincount",
    "bucketize",
    "confusion_matrix",
    "confusion_matrix_v2",
    "cross",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "lin_space",
    "linspace",
    "linspace_v2",
    "range",
]

GROUPS["sequence"] = frozenset(
    [dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64]
)
GROUPS["wide_float"] = frozenset([dtypes.bfloat16, dtypes.float32, dtypes.float64])
GROUPS["countable"] = frozenset([dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64])

_py_range = range


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# sequences --------------------------------------------------------------------------------------


def _range_length(start: Any, limit: Any, delta: Any) -> int:
    """ValueError for a sequence that never arrives."""
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if delta > 0 and start > limit:
        raise ValueError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if delta < 0 and start < limit:
        raise ValueError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(start, int):
        return int(-((start - limit) // delta))
    length = float(abs((limit - start) / delta))
    if not math.isfinite(length):
        raise ValueError(f"Requires a finite number of elements: {start}/{limit}/{delta}")
    return math.ceil(length)


def _bounds(start: Any, limit: Any, delta: Any) -> tuple[Any, Any, Any]:
    """Integers as Python ints, floats in their own precision."""
    if start.dtype.kind in "iu":
        return int(start), int(limit), int(delta)
    return start[()], limit[()], delta[()]


def _range_kernel(xp: ArrayNamespace, start: Array, limit: Array, delta: Array) -> Array:
    first, last, step = _bounds(start, limit, delta)
    try:
        n = _range_length(first, last, step)
    except ValueError as error:
        raise _invalid(str(error)) from None
    dtype = start.dtype
    if dtype.kind in "iu":
        return xp.arange(first, last, step, dtype)
    out = np.full(n, step, dtype)  # running sums, so that rounding is as in TensorFlow
    out[:1] = first
    return np.add.accumulate(out, dtype=dtype)


def _range_shape(c: Inference) -> list[Shape]:
    for i in _py_range(3):
        c.require_rank(i, 0)
    values = [c.value(i) for i in _py_range(3)]
    if any(v is None for v in values):
        return [(None,)]
    if any(np.isnan(v).any() for v in values if v is not None):
        return [(None,)]  # (refused when it runs)
    if not all(np.isfinite(v).all() for v in values if v is not None):
        shown = "/".join(str(v) for v in values)
        raise ValueError(f"Dimension must be >= 0: a range needs finite numbers, got {shown}")
    return [(_range_length(*_bounds(*values)),)]


def _linspace_kernel(xp: ArrayNamespace, start: Array, stop: Array, num: Array) -> Any:
    n = int(num)
    if n <= 0:
        raise _invalid(f"Requires num > 0: {n}")
    dtype = start.dtype
    if n == 1:
        return xp.reshape(start, (1,)).copy()
    step = (stop - start) / dtype.type(n - 1)
    out = (start + step * np.arange(n).astype(dtype)).astype(dtype)
    out[0], out[-1] = start, stop  # whatever the rounding of the step, or where it is no number
    return out


def _linspace_shape(c: Inference) -> list[Shape]:
    for i in _py_range(3):
        c.require_rank(i, 0)
    num = c.value(2)
    if num is None:
        return [(None,)]
    if int(num) <= 0:
        raise ValueError(f"Requires num > 0: {int(num)}")
    return [(int(num),)]


RANGE = define(
    "Range",
    "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx; Tidx: type(sequence)=int32",
    shape=_range_shape,
    kernel=_range_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0, 1, 2),
    dense=True,
    static_value=True,
)
LINSPACE = define(
    "LinSpace",
    "start: T, stop: T, num: Tidx -> output: T; T: type(wide_float), Tidx: type(index)=int32",
    shape=_linspace_shape,
    kernel=_linspace_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(2,),
)


# counts -----------------------------------------------------------------------------------------


def _bincount_kernel(xp: ArrayNamespace, arr: Array, size: Array, weights: Array) -> Array:
    n = int(size)
    if n < 0:
        raise _invalid(f"size ({n}) must be non-negative")
    flat = arr.reshape(-1)
    if flat.size and flat.min() < 0:
        raise _invalid("Input arr must be non-negative!")
    if weights.size == 0:
        return np.bincount(flat[flat < n], minlength=n).astype(weights.dtype)
    if weights.shape != arr.shape:
        raise _invalid(
            "If weights are passed, they must have the same shape "
            f"({shapes.show(weights.shape)}) as arr "
            f"({shapes.show(arr.shape)})"
        )
    inside = flat < n
    return np.bincount(flat[inside], weights.reshape(-1)[inside], n).astype(weights.dtype)


def _count_shape(i: int) -> Callable[..., Any]:
    def rule(c: Inference) -> list[Shape]:
        c.require_rank(i, 0)
        size = c.value(i)
        if size is None:
            return [(None,)]
        if int(size) < 0:
            raise ValueError(f"size ({int(size)}) must be non-negative")
        return [(int(size),)]

    return rule


def _histogram_shape(c: Inference) -> list[Shape]:
    shapes.merge(c.shape(1), (2,))
    c.require_rank(2, 0)
    bins = c.value(2)
    if bins is not None and int(bins) <= 0:
        raise ValueError(f"Requires nbins > 0, got {int(bins)}")
    return [(None,) if bins is None else (int(bins),)]


def _histogram_kernel(
    xp: ArrayNamespace, values: Array, value_range: Array, nbins: Array, *, dtype: DType
) -> Array:
    n, (low, high) = int(nbins), value_range.tolist()
    if n <= 0:
        raise _invalid(f"nbins should be a positive number, but got '{n}'")
    if low >= high:
        raise _invalid(
            "value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{low:g}, {high:g}]'"
        )
    step = (high - low) / n
    bins = (np.maximum(values, value_range[0]) - value_range[0]) / step
    index = np.minimum(bins, n - 1).astype(np.int64).reshape(-1)
    return np.bincount(index, minlength=n).astype(dtype.np_dtype)


def _bucketize_kernel(xp: ArrayNamespace, x: Array, *, boundaries: Sequence[float]) -> Array:
    edges = np.asarray(boundaries, np.float32)
    if (edges[1:] < edges[:-1]).any():
        raise _invalid("Expected sorted boundaries")
    return xp.searchsorted(edges, x, side="right").astype(np.int32)


def _cross_kernel(xp: ArrayNamespace, a: Array, b: Array) -> Any:
    if a.shape != b.shape or a.ndim == 0 or a.shape[-1] != 3:
        raise _invalid(
            "inputs must be of one shape with 3 elements in the last axis: "
            f"{shapes.show(a.shape)}, {shapes.show(b.shape)}"
        )
    i, j = [1, 2, 0], [2, 0, 1]
    return a[..., i] * b[..., j] - a[..., j] * b[..., i]


def _cross_shape(c: Inference) -> list[Shape]:
    for i in (0, 1):
        shape = c.require_rank_at_least(i, 1)
        if shape is not None and shape[-1] not in (3, None):
            raise ValueError(f"Dimension must be 3 but is {shape[-1]}")
    return [shapes.merge(c.shape(0), c.shape(1))]


def _cross_grad(op: Operation, g: Tensor) -> list[Any]:
    u, v = op._inputs
    return [apply_op("Cross", v, g), apply_op("Cross", g, u)]


BINCOUNT = define(
    "Bincount",
    "arr: int32, size: int32, weights: T -> bins: T; T: type(countable)",
    shape=_count_shape(1),
    kernel=_bincount_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
    host_only=True,
)
HISTOGRAM_FIXED_WIDTH = define(
    "HistogramFixedWidth",
    "values: T, value_range: T, nbins: int32 -> out: dtype; T: type(countable), dtype: "
    "type(index)=int32",
    shape=_histogram_shape,
    kernel=_histogram_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(2,),
    host_only=True,
)
BUCKETIZE = define(
    "Bucketize",
    "input: T -> output: int32; T: type(countable), boundaries: list(float)",
    shape=shape_fns.unchanged,
    kernel=_bucketize_kernel,
    grad=NOT_DIFFERENTIABLE,
)
CROSS = define(
    "Cross",
    "a: T, b: T -> product: T; T: type(real)",
    shape=_cross_shape,
    kernel=_cross_kernel,
    grad=_cross_grad,
)


# what users call --------------------------------------------------------------------------------

_SEQUENCE_ORDER = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def range(
    start: Any,
    limit: Any = None,
    delta: TensorLike = 1,
    dtype: DType | None = None,
    name: str | None = "range",
) -> Tensor:
    """Numbers from ``start`` (0, if only a limit is given) up to, without, ``limit``.

    ``delta`` may be negative. The type is the widest of the arguments' (int32, int64, float32,
    float64) unless ``dtype`` says it.

        tf.range(5, 0, -2)  # [5, 3, 1]
    """
    if limit is None:
        start, limit = 0, start
    plain = type(start) is int and type(delta) is int and dtype is None
    if plain and all(map(_is_int32, (start, limit, delta))):
        return apply(RANGE, start, limit, delta, name=name)
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        parts = [
            convert.convert(
                v, None if dtype is None or isinstance(v, Tensor) else dtypes.as_dtype(dtype), n
            )
            for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if dtype is not None:
            wanted = dtypes.as_dtype(dtype)
        else:
            kinds = [p._dtype._base for p in parts]
            unknown = [k for k in kinds if k not in _SEQUENCE_ORDER]
            if unknown:
                # TensorFlow's class here
                raise AssertionError(
                    f"tf.range has no arguments of type {unknown[0].name}: cast them to int32"
                )
            wanted = max(kinds, key=_SEQUENCE_ORDER.index)
        parts = [p if p._dtype._base is wanted else apply_op("Cast", p, DstT=wanted) for p in parts]
        return apply(RANGE, *parts, name=scope)


def _is_int32(value: TensorLike) -> bool:
    if isinstance(value, Tensor):
        return value._dtype is dtypes.int32
    return type(value) is int and -(2**31) <= value < 2**31


def linspace(
    start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None
) -> Tensor:
    """``num`` numbers in equal steps from ``start`` to ``stop``, both included.

    tf.lin_space(0.0, 1.0, 3)                               # [0.0, 0.5, 1.0]
    """
    return apply(LINSPACE, start, stop, num, name=name)


lin_space = linspace


def linspace_v2(
    start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None, axis: int = 0
) -> Tensor:
    """``num`` evenly spaced values; between tensors along a new axis. Integers give float64.

    Both ends are among the values. Where ``start`` and ``stop`` are tensors of one shape, ``axis``
    is where the new axis stands. TF 1 takes only scalars and floats.
    """
    start = convert.convert_to_tensor(start)
    stop = convert.convert_to_tensor(stop, start.dtype.base_dtype)
    if start.dtype.is_integer:
        start, stop = (apply_op("Cast", t, DstT=dtypes.float64) for t in (start, stop))
    if start._shape == () and stop._shape == ():
        return linspace(start, stop, num, name)
    with name_scope(name, "linspace", [start, stop]):
        return _between(start, stop, convert.convert(num, dtypes.int32), axis)


def _between(start: Any, stop: object, num: object, axis: int) -> Tensor:
    """Steps from ``start``, and at the end ``stop`` itself, which they would miss by a rounding."""
    zeros = apply_op("ZerosLike", apply_op("Sub", stop, start))
    start, stop = apply_op("AddV2", start, zeros), apply_op("AddV2", stop, zeros)
    steps = apply_op("Sub", num, np.int32(1))
    divisor = apply_op("Cast", apply_op("Maximum", steps, np.int32(1)), DstT=start._dtype)
    delta = apply_op("RealDiv", apply_op("Sub", stop, start), divisor)
    rank = len(start._shape)
    at = axis + rank + 1 if axis < 0 else axis
    counts = apply_op("Range", np.int32(0), steps, np.int32(1))
    counts = apply_op(
        "Reshape", apply_op("Cast", counts, DstT=start._dtype), [1] * at + [-1] + [1] * (rank - at)
    )
    first, delta, last = (apply_op("ExpandDims", t, np.int32(at)) for t in (start, delta, stop))
    single = apply_op("Equal", num, np.int32(1))
    last = apply_op("SelectV2", single, first, last)
    inner = apply_op("AddV2", first, apply_op("Mul", delta, counts))
    return apply_op("ConcatV2", [inner, last], np.int32(at))


def bincount(
    arr: Tensor,
    weights: TensorLike | None = None,
    minlength: int | None = None,
    maxlength: object = None,
    dtype: DType = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each integer from 0 on occurs in ``arr``, or the sum of its ``weights``.

    The result is a vector as long as the largest integer plus one, at least ``minlength``, at most
    ``maxlength`` (larger integers are not counted).

        tf.bincount([1, 1, 3])                                  # [0, 2, 0, 1]
    """
    with name_scope(name, "bincount"):
        arr = convert.convert(arr, dtypes.int32, "arr")
        size = _bincount_size(arr)
        if minlength is not None:
            size = apply_op("Maximum", convert.convert(minlength, dtypes.int32, "minlength"), size)
        if maxlength is not None:
            size = apply_op("Minimum", convert.convert(maxlength, dtypes.int32, "maxlength"), size)
        if weights is not None:  # the same sum, by an op that has a gradient
            return apply_op("UnsortedSegmentSum", weights, arr, size)
        nothing = np.zeros(0, dtypes.as_dtype(dtype).np_dtype)
        return apply(BINCOUNT, arr, size, nothing)


def _bincount_size(arr: Tensor) -> Tensor:
    """The largest integer plus one; 0 for an empty input."""
    some = apply_op("Cast", apply_op("Greater", apply_op("Size", arr), 0), DstT=dtypes.int32)
    flat = apply_op("Reshape", arr, [-1])
    return some * (apply_op("Max", flat, [0]) + 1)


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts of ``values`` in ``nbins`` bins of equal width over ``value_range`` = [low, high].

    What lies outside is counted in the first or last bin. The result is [nbins] of ``dtype``.

        tf.histogram_fixed_width([-1.0, 0.0, 1.5, 9.0], [0.0, 5.0], nbins=5)  # [2, 1, 0, 0, 1]
    """
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        values = apply_op("Reshape", convert.convert(values), [-1])
        return apply(HISTOGRAM_FIXED_WIDTH, values, value_range, nbins, dtype=dtype, name=scope)


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The number of the bin each value falls into: int32, as in TensorFlow, where ``dtype`` must be
    int32 or int64 and has no other effect.

    ``value_range`` is [low, high], divided into ``nbins`` bins of equal width; what lies outside
    falls into the first or last one.
    """
    if dtypes.as_dtype(dtype) not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"dtype must be int32 or int64, not {dtypes.as_dtype(dtype).name}")
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        x = convert.convert(values, name="values")
        kind = x._dtype._base
        ends = convert.convert(value_range, kind, "value_range")
        bins = convert.convert(nbins, dtypes.int32, "nbins")
        scaled = apply_op("RealDiv", x - ends[0], ends[1] - ends[0])
        index = apply_op("Floor", apply_op("Cast", bins, DstT=kind) * scaled)
        top = apply_op("Cast", bins - 1, DstT=kind)
        inside = apply_op("Minimum", apply_op("Maximum", index, apply_op("ZerosLike", index)), top)
        return apply_op("Cast", inside, DstT=dtypes.int32, name="Reshape_1")


def bucketize(input: TensorLike, boundaries: TensorLike, name: str | None = None) -> Tensor:
    """The number of boundaries at or below each value."""
    return apply(BUCKETIZE, input, boundaries=boundaries, name=name)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors of three elements along the last dimension."""
    return apply(CROSS, a, b, name=name)


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """How often each class (row) was predicted as each class (column).

    Without ``num_classes`` it is one more than the largest number that occurs.
    """
    return confusion_matrix_v2(labels, predictions, num_classes, weights, dtype, name)


def confusion_matrix_v2(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each class (row) was predicted as each class (column), [classes, classes].

    Without ``num_classes`` it is one more than the largest label or prediction. ``weights`` counts
    each example with its weight.
    """
    with name_scope(name, "confusion_matrix", [labels, predictions]):
        columns = [_class_indices(labels, "labels"), _class_indices(predictions, "predictions")]
        if num_classes is None:
            tops = [apply_op("Max", c, [0]) for c in columns]
            size = apply_op("Maximum", *tops) + 1
        else:
            size = convert.convert(num_classes)
            size = (
                apply_op("Cast", size, DstT=dtypes.int64)
                if size._dtype._base is not dtypes.int64
                else size
            )
        kind = dtypes.as_dtype(dtype)
        if weights is None:
            values = apply_op("Cast", apply_op("OnesLike", columns[1]), DstT=kind)
        else:
            factors = convert.convert(weights)
            columns[1].shape.assert_is_compatible_with(factors.shape)
            values = apply_op("Cast", factors, DstT=kind)
        indices = apply_op("Pack", columns, axis=1)
        dims = apply_op("Pack", [size, size])
        # TF checks that no class is negative and none too large, and adds through a sparse tensor
        counted = _CHECKS_OF_CLASSES if num_classes is None else _CHECKS_OF_CLASSES + 48
        count_more(dims._op.graph, counted if weights is None else counted - 1)
        zeros = apply_op("Fill", dims, np.zeros((), kind.np_dtype), name="zeros")
        return apply_op(
            "SparseTensorDenseAdd", indices, values, dims, zeros, name="SparseTensorDenseAdd"
        )


#: Operations that TF makes in addition for a confusion matrix.
_CHECKS_OF_CLASSES = 46


def _class_indices(value: TensorLike, name: str) -> Tensor:
    """Class numbers as an int64 vector."""
    x = convert.convert(value, name=name)
    if x._shape is not None and len(x._shape) == 2 and x._shape[1] == 1:
        x = apply_op("Squeeze", x, squeeze_dims=[-1])
    return x if x._dtype._base is dtypes.int64 else apply_op("Cast", x, DstT=dtypes.int64)
