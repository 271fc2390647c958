"""Inner names of ``tensorflow.python.ops.array_ops`` that packages call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.ops.array.array_shape import rank, shape, size

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["rank_internal", "shape_internal", "size_internal"]


def shape_internal(
    input: TensorLike,
    name: str | None = None,
    optimize: bool = True,
    out_type: DType = dtypes.int32,
) -> Tensor:
    """The shape; ``optimize=False`` makes an operation where a constant would do."""
    return shape(input, name, out_type) if optimize else _made("Shape", input, name, out_type)


def size_internal(
    input: TensorLike,
    name: str | None = None,
    optimize: bool = True,
    out_type: DType = dtypes.int32,
) -> Tensor:
    """The number of elements; ``optimize`` as in :func:`shape_internal`."""
    return size(input, name, out_type) if optimize else _made("Size", input, name, out_type)


def rank_internal(input: TensorLike, name: str | None = None, optimize: bool = True) -> Tensor:
    """The number of dimensions; ``optimize`` as in :func:`shape_internal`."""
    return rank(input, name) if optimize else apply_op("Rank", input, name=name)


def _made(op: str, value: TensorLike, name: str | None, out_type: DTypeLike) -> Tensor:
    return apply_op(op, value, out_type=out_type, name=name)
