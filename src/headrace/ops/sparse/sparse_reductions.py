"""Sums and largest values along axes of a sparse tensor, as a dense or a sparse result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.sparse.sparse_ops import _ENTRIES, coordinates, linear

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor

__all__: list[str] = []


def _axes_of(axes: Array | np.generic, rank: int) -> list[int]:
    found = axes.reshape(-1).tolist()
    for a in found:
        if not -rank <= a < rank:
            raise invalid(f"Invalid reduction dimension {a}, for input with {rank} dimensions.")
    return sorted({a % rank for a in found})


def _reduce(
    ufunc: Any, indices: Array, values: Array, dims: Array, axes: Array | np.generic
) -> tuple[list[int], list[int], Any, Any]:
    """(reduced axes, kept sizes, linear places in them, reduced values)."""
    if dims.ndim != 1:
        raise invalid(f"Expected input_shape to be a vector; got shape: {shapes.show(dims.shape)}")
    if axes.ndim > 1:
        raise invalid(
            "Expected reduction_axes to be a scalar or a vector; got shape: "
            f"{shapes.show(axes.shape)}"
        )
    size = dims.tolist()
    gone = _axes_of(axes, len(size))
    kept = [i for i in range(len(size)) if i not in gone]
    sizes = [size[i] for i in kept]
    linear(indices, size)
    found, inverse = np.unique(linear(indices[:, kept], sizes), return_inverse=True)
    if ufunc is np.add:
        out = np.zeros(found.size, values.dtype)
    else:
        low = np.iinfo(values.dtype).min if values.dtype.kind in "iu" else -np.inf
        out = np.full(found.size, low, values.dtype)
    ufunc.at(out, inverse, values)
    return gone, sizes, found, out


def _reduce_kernel(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace,
        indices: Array,
        values: Array,
        dims: Array,
        axes: Array,
        *,
        keep_dims: bool,
    ) -> Array:
        gone, sizes, found, reduced = _reduce(ufunc, indices, values, dims, axes)
        out = np.zeros(sizes, values.dtype)
        out.reshape(-1)[found] = reduced
        return (
            out.reshape([1 if i in gone else d for i, d in enumerate(dims.tolist())])
            if keep_dims
            else out
        )

    return kernel


def _reduce_sparse_kernel(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace,
        indices: Array,
        values: Array,
        dims: Array,
        axes: Array,
        *,
        keep_dims: bool,
    ) -> Any:
        gone, sizes, found, reduced = _reduce(ufunc, indices, values, dims, axes)
        if keep_dims:
            sizes = [1 if i in gone else d for i, d in enumerate(dims.tolist())]
        if not sizes:  # everything was reduced: one entry without coordinates, or none
            return np.zeros((len(reduced), 0), np.int64), reduced, np.zeros(0, np.int64)
        return coordinates(found, sizes), reduced, np.array(sizes, np.int64)

    return kernel


def _reduce_shape(c: Inference) -> list[Shape]:
    axes = c.value(3)
    dims = c.shape_value(2) if c.rank(2) == 1 else None  # TensorFlow asks for no rank here
    if dims is None or axes is None or axes.ndim > 1:
        return [None]
    gone = _axes_of(axes, len(dims))
    if c.attr("keep_dims"):
        return [tuple(1 if i in gone else d for i, d in enumerate(dims))]
    return [tuple(d for i, d in enumerate(dims) if i not in gone)]


def _reduce_sum_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Each entry gets the gradient of the cell that it was added to.

    Its coordinates with the reduced ones at 0.
    """
    indices, _, dims, axes = op.inputs
    rank = apply_op("Size", dims)
    axes = apply_op("FloorMod", apply_op("Add", apply_op("Reshape", axes, const([-1])), rank), rank)
    every = apply_op("Range", const(0), rank, const(1))
    ones = apply_op("Fill", shape(axes), const(1, dtypes.int64))
    kept = apply_op("DynamicStitch", [every, axes], [dims, ones])
    scale = apply_op("FloorDiv", dims, kept)
    whole = apply_op("Reshape", grad, kept)
    return [None, apply_op("GatherNd", whole, apply_op("FloorDiv", indices, scale)), None, None]


_REDUCE = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> "
_ONE, _THREE = "output: T", "output_indices: int64, output_values: T, output_shape: int64"
SPARSE_REDUCE_SUM = define(
    "SparseReduceSum",
    f"{_REDUCE}{_ONE}; keep_dims: bool=False, T: type(number)",
    shape=_reduce_shape,
    kernel=_reduce_kernel(np.add),
    grad=_reduce_sum_grad,
    known_inputs=(2, 3),
)
SPARSE_REDUCE_MAX = define(
    "SparseReduceMax",
    f"{_REDUCE}{_ONE}; keep_dims: bool=False, T: type(real)",
    shape=_reduce_shape,
    kernel=_reduce_kernel(np.maximum),
    grad=NO_GRADIENT_YET,
    known_inputs=(2, 3),
)
SPARSE_REDUCE_SUM_SPARSE = define(
    "SparseReduceSumSparse",
    f"{_REDUCE}{_THREE}; keep_dims: bool=False, T: type(number)",
    shape=lambda c: [_ENTRIES, (None,), (None,)],
    kernel=_reduce_sparse_kernel(np.add),
    grad=NO_GRADIENT_YET,
    data_dependent_shape=True,
)
SPARSE_REDUCE_MAX_SPARSE = define(
    "SparseReduceMaxSparse",
    f"{_REDUCE}{_THREE}; keep_dims: bool=False, T: type(real)",
    shape=lambda c: [_ENTRIES, (None,), (None,)],
    kernel=_reduce_sparse_kernel(np.maximum),
    grad=NO_GRADIENT_YET,
    data_dependent_shape=True,
)
