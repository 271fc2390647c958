"""Arithmetic of indices: inverse permutations, and coordinates of flat indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.build import apply
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.index_kernels import invert_kernel, unravel_kernel

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["invert_permutation", "unravel_index"]

INVERT_PERMUTATION = define(
    "InvertPermutation",
    "x: T -> y: T; T: type(index)=int32",
    shape=lambda c: [c.require_rank(0, 1)],
    kernel=invert_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of a permutation of 0 … n - 1: ``y[x[i]] = i``."""
    return apply(INVERT_PERMUTATION, x, name=name)


def _unravel_shape(c: Inference) -> list[Shape]:
    indices, dims = c.shape(0), c.require_rank(1, 1)
    count = None if dims is None or len(dims) != 1 else dims[0]
    if indices is None:
        return [None]
    return [(count,) if not indices else (count, *indices)]


UNRAVEL_INDEX = define(
    "UnravelIndex",
    "indices: Tidx, dims: Tidx -> output: Tidx; Tidx: type(index)=int32",
    shape=_unravel_shape,
    kernel=unravel_kernel,
    grad=NOT_DIFFERENTIABLE,
)


def unravel_index(indices: TensorLike, dims: TensorLike, name: str | None = None) -> Tensor:
    """Flat indices into a tensor of shape ``dims`` as coordinates, one row per dimension.

    tf.unravel_index([5], [2, 3])  # [[1], [2]]
    """
    return apply(UNRAVEL_INDEX, indices, dims, name=name)
