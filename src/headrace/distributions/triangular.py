"""Triangular matrices of vectors (``fill_triangular``) and weighted sums of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.ops.linalg.diagonals import matrix_band_part, matrix_diag_part, matrix_set_diag

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import AxisLike, TensorLike
    from headrace.core.tensor import Tensor


__all__ = [
    "fill_triangular",
    "fill_triangular_inverse",
    "matrix_diag_transform",
    "reduce_weighted_logsumexp",
]


def _rank(x: Tensor) -> int | Tensor:
    return x.shape.ndims if x.shape.ndims is not None else ops.rank(x)


def fill_triangular(x: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """Triangular matrices (…, n, n) of vectors (…, n(n+1)/2), filled in a clockwise spiral.

    ``fill_triangular([1, 2, 3, 4, 5, 6])`` is [[4, 0, 0], [6, 5, 0], [3, 2, 1]].
    """
    with name_scope(name, "fill_triangular", values=[x]):
        x = ops.convert_to_tensor(x, name="x")
        size = dimension_value(x.shape.with_rank_at_least(1)[-1])
        last = _rank(x) - 1
        if size is not None:
            n: Any = np.sqrt(0.25 + 2.0 * size) - 0.5
            if n != np.floor(n):
                raise ValueError(
                    f"Input right-most shape ({size}) does not correspond to a triangular matrix."
                )
            n = int(n)
            static = x.shape[:-1].concatenate([n, n])
        else:
            length = ops.cast(2 * ops.shape(x)[-1], dtypes.float32)
            n = ops.cast(ops.sqrt(0.25 + length), dtypes.int32)
            static = x.shape.with_rank_at_least(1)[:-1].concatenate([None, None])
        tail = x[..., n:]
        parts = [x, ops.reverse(tail, [last])] if upper else [tail, ops.reverse(x, [last])]
        if static.is_fully_defined():
            shape: Any = static.as_list()
        else:
            shape = ops.concat([ops.shape(x)[:-1], [n, n]], axis=0)
        square = ops.reshape(ops.concat(parts, axis=-1), shape)
        result = matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        result.set_shape(static)
        return result


def fill_triangular_inverse(x: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The vectors of which ``fill_triangular`` makes the matrices ``x``."""
    with name_scope(name, "fill_triangular_inverse", values=[x]):
        x = ops.convert_to_tensor(x, name="x")
        known = dimension_value(x.shape.with_rank_at_least(2)[-1])
        n: Any = ops.shape(x)[-1] if known is None else known
        size = (n * (n + 1)) // 2
        axes = _rank(x)
        if upper:
            first, rest = x[..., 0, :], x[..., 1:, :]
        else:
            first, rest = ops.reverse(x[..., -1, :], [axes - 2]), x[..., :-1, :]
        turned = ops.reverse(ops.reverse(rest, [axes - 1]), [axes - 2])
        shape = ops.concat([ops.shape(x)[:-2], [n * (n - 1)]], axis=0)
        flat = ops.reshape(rest + turned, shape)
        result = ops.concat([first, flat[..., : size - n]], axis=-1)
        result.set_shape(x.shape[:-2].concatenate([None if known is None else size]))
        return result


def matrix_diag_transform(
    matrix: TensorLike, transform: Callable[..., Any] | None = None, name: str | None = None
) -> Tensor:
    """``matrix`` with ``transform`` applied to its diagonals alone."""
    with name_scope(name, "matrix_diag_transform", [matrix]):
        matrix = ops.convert_to_tensor(matrix, name="matrix")
        if transform is None:
            return matrix
        return matrix_set_diag(matrix, transform(matrix_diag_part(matrix)))


def reduce_weighted_logsumexp(
    logx: Tensor,
    w: TensorLike | None = None,
    axis: AxisLike | None = None,
    keep_dims: bool = False,
    return_sign: bool = False,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """``log(abs(sum(w * exp(logx))))``, without overflow; with ``return_sign`` its sign too."""
    with name_scope(name, "reduce_weighted_logsumexp", [logx, w]):
        logx = ops.convert_to_tensor(logx, name="logx")
        if w is None:
            result = ops.reduce_logsumexp(logx, axis=axis, keepdims=keep_dims)
            return (result, ops.ones_like(result)) if return_sign else result
        w = ops.convert_to_tensor(w, dtype=logx.dtype, name="w")
        absolute = logx + ops.log(ops.abs(w))
        largest = ops.stop_gradient(ops.reduce_max(absolute, axis=axis, keepdims=True))
        largest = ops.where(ops.is_inf(largest), ops.zeros_like(largest), largest)
        total = ops.reduce_sum(
            ops.sign(w) * ops.exp(absolute - largest), axis=axis, keepdims=keep_dims
        )
        if not keep_dims:
            largest = ops.squeeze(largest, axis)
        result = largest + ops.log(ops.abs(total))
        return (result, ops.sign(total)) if return_sign else result
