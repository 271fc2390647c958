"""Sparse ops with one result per entry: arithmetic with dense tensors, softmax, extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.opdef import NO_GRADIENT_YET, define, lookup
from headrace.core.tensor import Operation
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.sparse.sparse_ops import _ENTRIES, coordinates, linear, shown
from headrace.ops.sparse.sparse_reductions import SPARSE_REDUCE_SUM

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor

__all__: list[str] = []


# softmax ----------------------------------------------------------------------------------------


def _softmax_kernel(xp: ArrayNamespace, indices: Array, values: Array, dims: Array) -> Any:
    """Over the entries of each row (all dimensions but the last)."""
    rows = linear(indices[:, :-1], dims.tolist()[:-1])
    _, row = np.unique(rows, return_inverse=True)
    top = np.full(row.max(initial=-1) + 1, -np.inf, values.dtype)
    np.maximum.at(top, row, values)
    powers = np.exp(values - top[row])
    sums = np.zeros_like(top)
    np.add.at(sums, row, powers)
    return powers / sums[row]


def _softmax_grad(op: Operation, grad: Tensor) -> list[Any]:
    """y * (g - sum of g*y over the row)."""
    indices, _, dims = op.inputs
    y = op.outputs[0]
    product = apply_op("Mul", y, grad)
    sums = apply(SPARSE_REDUCE_SUM, indices, product, dims, const([-1]), keep_dims=True)
    inner = apply(SPARSE_DENSE_CWISE_ADD, indices, grad, dims, apply_op("Neg", sums))
    return [None, apply_op("Mul", inner, y), None]


SPARSE_SOFTMAX = define(
    "SparseSoftmax",
    "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T; T: type(float)",
    shape=lambda c: [c.require_rank(1, 1)],
    kernel=_softmax_kernel,
    grad=_softmax_grad,
)


# element-wise with a dense tensor ---------------------------------------------------------------


def _at_entries(indices: Array, dims: Array, dense: Array) -> Array:
    """The elements of a dense tensor, broadcast to the sparse shape, at the sparse entries."""
    size = dims.tolist()
    if dense.ndim > len(size):
        raise invalid(
            f"Broadcasts only from dense to sparse: dense {shapes.show(dense.shape)}, "
            f"sparse {shown(size)}"
        )
    linear(indices, size)
    lead = len(size) - dense.ndim
    for d, s in zip(dense.shape, size[lead:]):
        if d not in (1, s):
            raise invalid(
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
                f"incompatible shapes: {shown(size)} vs. {shown(dense.shape)}"
            )
    index = tuple(indices[:, lead + i] if d != 1 else 0 for i, d in enumerate(dense.shape))
    return dense[index] if index else dense


def _cwise(op: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, indices: Array, values: Array, dims: Array, dense: Array) -> Any:
        if indices.ndim != 2:
            given = shapes.show(indices.shape)
            raise invalid(f"Input sp_indices should be a matrix but received shape: {given}")
        if values.ndim != 1 or dims.ndim != 1:
            given = f"{shapes.show(values.shape)} and {shapes.show(dims.shape)}"
            raise invalid(
                f"Inputs sp_values and sp_shape should be vectors but received shapes: {given}"
            )
        return op(xp, values, _at_entries(indices, dims, dense))

    return kernel


def _picked(op: Operation) -> Tensor:
    """The dense operand at the entries, as an expression that can be differentiated."""
    indices, _, dims, dense = op.inputs
    full = apply_op("BroadcastTo", dense, dims)
    return apply_op("GatherNd", full, indices)


def _scattered(op: Operation, values: Tensor) -> Tensor:
    """Gradients of entries summed into the shape of the dense operand."""
    indices, _, dims, dense = op.inputs
    full = apply_op("ScatterNd", indices, values, dims)
    size = shape(dense, out_type=dtypes.int64)
    _, axes = apply_many(lookup("BroadcastGradientArgs"), dims, size)
    return apply_op("Reshape", apply_op("Sum", full, axes, keep_dims=False), size)


def _mul_grad(op: Operation, grad: Tensor) -> list[Any]:
    values = op.inputs[1]
    return [
        None,
        apply_op("Mul", grad, _picked(op)),
        None,
        _scattered(op, apply_op("Mul", grad, values)),
    ]


def _div_grad(op: Operation, grad: Tensor) -> list[Any]:
    dense = _picked(op)
    first = apply_op("RealDiv", grad, dense)
    second = apply_op("Neg", apply_op("Mul", first, apply_op("RealDiv", op.inputs[1], dense)))
    return [None, first, None, _scattered(op, second)]


def _divide(xp: ArrayNamespace, a: Array, b: Array) -> Any:
    if a.dtype.kind in "iu":  # towards zero, as in C
        return (xp.sign(a) * xp.sign(b) * (xp.abs(a) // xp.abs(b))).astype(a.dtype)
    return a / b


def _check_pair(a: Sequence[Array], b: Sequence[Array]) -> None:
    """(indices, values, shape) of both."""
    for at, rank, what, kind in (
        (0, 2, "indices", "matrices"),
        (1, 1, "values", "vectors"),
        (2, 1, "shapes", "vectors"),
    ):
        if a[at].ndim != rank or b[at].ndim != rank:
            given = f"{shapes.show(a[at].shape)} and {shapes.show(b[at].shape)}"
            raise invalid(
                f"Inputs a_{what} and b_{what} should be {kind} but received shapes: {given}"
            )


_CWISE = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T; T: type(number)"
SPARSE_DENSE_CWISE_ADD = define(
    "SparseDenseCwiseAdd",
    _CWISE,
    shape=lambda c: [c.shape(1)],
    kernel=_cwise(lambda xp, a, b: a + b),
    grad=lambda op, g: [None, g, None, _scattered(op, g)],
)
SPARSE_DENSE_CWISE_MUL = define(
    "SparseDenseCwiseMul",
    _CWISE,
    shape=lambda c: [c.shape(1)],
    kernel=_cwise(lambda xp, a, b: a * b),
    grad=_mul_grad,
)
SPARSE_DENSE_CWISE_DIV = define(
    "SparseDenseCwiseDiv",
    _CWISE,
    shape=lambda c: [c.shape(1)],
    kernel=_cwise(_divide),
    grad=_div_grad,
)


def _extreme_kernel(name: str) -> Callable[..., Any]:
    def kernel(
        xp: ArrayNamespace, ai: Array, av: Array, adims: Array, bi: Array, bv: Array, bdims: Array
    ) -> Any:
        _check_pair((ai, av, adims), (bi, bv, bdims))
        dims = adims.tolist()
        if len(dims) != len(bdims):
            raise invalid(
                f"Operands do not have the same ranks: got {shown(adims)} and {shown(bdims)}"
            )
        if dims != bdims.tolist():
            raise invalid(f"Operands' shapes do not match: got {shown(adims)} and {shown(bdims)}")
        a, b = linear(ai, dims), linear(bi, dims)
        found = np.unique(np.concatenate([a, b]))
        left, right = np.zeros(found.size, av.dtype), np.zeros(found.size, av.dtype)
        left[np.searchsorted(found, a)] = av
        right[np.searchsorted(found, b)] = bv
        return coordinates(found, dims), getattr(xp, name)(left, right)

    return kernel


_EXTREME = (
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, "
    "b_shape: int64 -> "
    "output_indices: int64, output_values: T; T: type(real)"
)
SPARSE_SPARSE_MAXIMUM = define(
    "SparseSparseMaximum",
    _EXTREME,
    shape=shape_fns.ranked((2, 1, 1) * 2, lambda c: [_ENTRIES, (None,)]),
    kernel=_extreme_kernel("maximum"),
    grad=NO_GRADIENT_YET,
    data_dependent_shape=True,
)
SPARSE_SPARSE_MINIMUM = define(
    "SparseSparseMinimum",
    _EXTREME,
    shape=shape_fns.ranked((2, 1, 1) * 2, lambda c: [_ENTRIES, (None,)]),
    kernel=_extreme_kernel("minimum"),
    grad=NO_GRADIENT_YET,
    data_dependent_shape=True,
)
