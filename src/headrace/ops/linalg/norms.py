"""Norms, identity matrices, traces: what is built from the other linear algebra ops.

tf.norm(x, axis=-1)
tf.eye(3, batch_shape=[2])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert, dtypes
from headrace.core.build import apply_op
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Dimension, TensorShape
from headrace.core.tensor import Tensor
from headrace.ops.array.filling import ones, zeros
from headrace.ops.linalg.contraction import einsum, tensordot
from headrace.ops.math import reductions

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, DTypeLike, ShapeLike, TensorLike

__all__ = ["einsum", "eye", "norm", "normalize", "tensordot", "trace"]


# norms ------------------------------------------------------------------------------------------


def norm(
    tensor: TensorLike,
    ord: TensorLike = "euclidean",
    axis: TensorLike | None = None,
    keepdims: object = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors along one ``axis`` (None: of all elements), or of matrices along a pair
    of axes.

    ``ord`` is "euclidean", "fro", 1, 2, ``np.inf`` or a number above 0. ``keepdims`` keeps the
    reduced axes with length 1; ``keep_dims`` is its old name.

        tf.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)               # [5.0, 10.0]
    """
    keep = bool(reductions.one_of("keepdims", keepdims, "keep_dims", keep_dims))
    axes = _norm_axes(axis)
    matrix = isinstance(axes, tuple)
    _check_order(ord, matrix)
    with name_scope(name, "norm", [tensor]):
        x = convert.convert(tensor)
        out = _matrix_norm(x, ord, axes) if matrix else _vector_norm(x, ord, axes)
        return out if keep else _without_axes(out, axes)


def _norm_axes(axis: object) -> Any:
    """None, an int, or a pair for a matrix norm."""
    if isinstance(axis, np.ndarray):
        axis = axis.tolist()
    if axis is None or isinstance(axis, (int, np.integer)):
        return axis
    if isinstance(axis, Tensor):
        return axis
    listed = list(axis) if isinstance(axis, (list, tuple)) else []
    whole = all(isinstance(a, (int, np.integer)) for a in listed)
    if not whole or len(listed) != 2 or listed[0] == listed[1]:
        raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
    return tuple(int(a) for a in listed)


def _check_order(ord: Any, matrix: bool) -> None:
    if matrix:
        allowed: list[Any] = ["euclidean", "fro", 1, 2, np.inf]
        if ord not in allowed:
            raise ValueError(f"'ord' must be a supported matrix norm in {allowed}, got {ord}")
    elif ord not in ("euclidean", 1, 2, np.inf) and (
        isinstance(ord, str) or (np.isreal(ord) and ord <= 0)
    ):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")


def _frobenius(x: Tensor, axes: object) -> Tensor:
    squares = x * apply_op("Conj", x) if x._dtype._kind == "c" else x * x
    return apply_op("Sqrt", reductions.reduce_sum(squares, axes, True))


def _absolute(x: Tensor) -> Tensor:
    if x._dtype._kind == "c":
        return apply_op("ComplexAbs", x, Tout=x._dtype._base.real_dtype)
    return apply_op("Abs", x)


def _vector_norm(x: Tensor, ord: Any, axis: object) -> Tensor:
    if ord in ("euclidean", 2):
        return _frobenius(x, axis)
    size = _absolute(x)
    if ord == 1:
        return reductions.reduce_sum(size, axis, True)
    if ord == np.inf:
        return reductions.reduce_max(size, axis, True)
    total = reductions.reduce_sum(apply_op("Pow", size, ord), axis, True)
    return apply_op("Pow", total, 1.0 / ord)


def _matrix_norm(x: Tensor, ord: object, axes: tuple[int, int]) -> Tensor:
    if ord in ("euclidean", "fro"):
        return _frobenius(x, list(axes))
    if ord == 2:
        return _largest_singular_value(x, axes)
    down, across = (axes[1], axes[0]) if ord == np.inf else axes
    return reductions.reduce_max(reductions.reduce_sum(_absolute(x), down, True), across, True)


def _largest_singular_value(x: Tensor, axes: tuple[int, int]) -> Tensor:
    if x._shape is None:
        raise ValueError("The matrix norm with ord=2 needs a tensor of known rank.")
    rank = len(x._shape)
    last = [a % rank for a in axes]
    order = [i for i in range(rank) if i not in last] + last
    from headrace.ops.linalg.decompositions import svd

    values = svd(apply_op("Transpose", x, order), compute_uv=False)
    top = reductions.reduce_max(values, -1)
    for a in sorted(last):
        top = apply_op("ExpandDims", top, a)
    return top


def _without_axes(x: Tensor, axes: int | Sequence[int] | None) -> Tensor:
    if axes is None:
        return apply_op("Squeeze", x, squeeze_dims=[])
    return apply_op("Squeeze", x, squeeze_dims=[axes] if isinstance(axes, int) else list(axes))


def normalize(
    tensor: TensorLike,
    ord: str = "euclidean",
    axis: AxisLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The tensor divided by its norm, and the norm (with axes kept).

    ``ord`` and ``axis`` are as in ``tf.norm``: "euclidean", 1, 2, ``np.inf`` … over an axis, a pair
    of axes (matrix norms) or everything (None). A zero vector gives NaN.

        tf.linalg.normalize([3.0, 4.0])  # ([0.6, 0.8], [5.0])
    """
    with name_scope(name, "normalize", [tensor]):
        x = convert.convert(tensor)
        size = norm(x, ord, axis, True)
        kind = x._dtype._base
        divisor = size if size._dtype._base is kind else apply_op("Cast", size, DstT=kind)
        return apply_op("RealDiv", x, divisor, name="truediv"), size


# matrices ---------------------------------------------------------------------------------------


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Sums of the main diagonals of the last two axes."""
    with name_scope(name, "Trace", [x]) as scope:
        x = convert.convert(x, name="x")
        return reductions.reduce_sum(apply_op("MatrixDiagPart", x), [-1], name=scope)


def eye(
    num_rows: TensorLike,
    num_columns: object = None,
    batch_shape: ShapeLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices [*batch_shape, num_rows, num_columns], square unless ``num_columns`` is
    given.

        tf.eye(2)                                               # [[1, 0], [0, 1]]
    """
    kind = dtypes.as_dtype(dtype)
    with name_scope(
        name, "eye", [x for x in (num_rows, num_columns, batch_shape) if isinstance(x, Tensor)]
    ):
        square = num_columns is None
        sizes = [num_rows] if square else [num_rows, num_columns]
        whole = all(isinstance(n, (int, np.integer, Dimension)) for n in sizes)
        if not whole and not any(isinstance(n, Tensor) for n in sizes):
            raise TypeError("num_rows and num_columns must be positive integer values.")
        rows = _size(num_rows)
        columns = rows if square else _size(num_columns)
        batch = _sizes([] if batch_shape is None else batch_shape)
        length = rows if square else _smaller(rows, columns)
        if square and isinstance(length, Tensor) and isinstance(batch, list):
            count_more(
                length._op.graph, 4
            )  # TF takes the minimum of rows and columns and joins the sizes
        diagonal = ones(_joined(batch, [length]), kind)
        if square:
            return apply_op("MatrixDiag", diagonal, name="diag")
        return apply_op(
            "MatrixSetDiag", zeros(_joined(batch, [rows, columns]), kind), diagonal, name="set_diag"
        )


def _size(value: object) -> int | Tensor:
    """An int, or a scalar int32 tensor."""
    if isinstance(value, Dimension):
        value = value.value
    if isinstance(value, (int, np.integer)):
        return int(value)
    return convert.convert(value, dtypes.int32)


def _sizes(value: object) -> Any:
    """A list of ints, or a vector."""
    if isinstance(value, TensorShape):
        return value.as_list()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)) and not any(isinstance(v, Tensor) for v in value):
        return [_size(v) for v in value]
    return convert.convert(value, dtypes.int32)


def _smaller(a: object, b: object) -> int | Tensor:
    return (
        min(a, b)
        if isinstance(a, int) and isinstance(b, int)
        else apply_op("Minimum", a, b, T=dtypes.int32)
    )


def _joined(batch: Sequence[int], last: list[Any]) -> Tensor | list[int]:
    if isinstance(batch, list):
        whole = batch + last
        return whole if all(isinstance(v, int) for v in whole) else apply_op("Pack", whole)
    return apply_op("ConcatV2", [batch, apply_op("Pack", last)], 0)
