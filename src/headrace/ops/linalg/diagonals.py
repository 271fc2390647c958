"""Diagonals and bands of matrices: Diag, MatrixDiag, MatrixSetDiag, MatrixBandPart and their like.

tf.matrix_diag([1., 2.])  # [[1, 0], [0, 2]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.dtypes import int32, int64
from headrace.core.infer import Inference
from headrace.core.opdef import GROUPS, define
from headrace.core.shapes import Dim, Shape
from headrace.core.tensor import Operation

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
]

GROUPS["matmul"] = (GROUPS["inexact"] or frozenset()) | {int32, int64}


# kernels ----------------------------------------------------------------------------------------


def _diag_kernel(xp: ArrayNamespace, diagonal: Array) -> Array:
    if not diagonal.ndim:
        raise errors.InvalidArgumentError(None, None, "Input must be at least rank 1, got 0")
    return xp.diag(diagonal.reshape(-1)).reshape(diagonal.shape * 2)


def _diag_part_kernel(xp: ArrayNamespace, x: Array) -> Array:
    half = x.shape[: x.ndim // 2]
    if x.ndim % 2 or x.ndim == 0 or half != x.shape[x.ndim // 2 :]:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Input must have an even rank and equal halves of its shape, got "
            f"{shapes.show(x.shape)}",
        )
    n = math.prod(half)
    return xp.diagonal(x.reshape(n, n)).reshape(half)


def _diagonal_slots(x: Array) -> Array:
    """A writable view of the main diagonals of contiguous matrices."""
    rows, cols = x.shape[-2:]
    count = min(rows, cols)
    return x.reshape(*x.shape[:-2], rows * cols)[..., : (count - 1) * (cols + 1) + 1 : cols + 1]


def _at_least(x: Array, rank: int, what: str) -> None:
    if x.ndim < rank:
        shape = "vector" if rank == 1 else "matrix"
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{what} must be at least {rank}-dim, received shape: {list(x.shape)}: no {shape}",
        )


def _matrix_diag_kernel(xp: ArrayNamespace, diagonal: Array) -> Array:
    _at_least(diagonal, 1, "diagonal")
    n = diagonal.shape[-1]
    if xp.name != "numpy":
        return xp.where(xp.eye(n, dtype=bool), diagonal[..., None], xp.zeros((), diagonal.dtype))
    out = np.zeros((*diagonal.shape, n), diagonal.dtype)
    if out.size:
        _diagonal_slots(out)[...] = diagonal
    return out


def _matrix_diag_part_kernel(xp: ArrayNamespace, x: Array) -> Array:
    _at_least(x, 2, "input")
    return xp.diagonal(x, axis1=-2, axis2=-1)


def _matrix_set_diag_kernel(xp: ArrayNamespace, x: Array, diagonal: Array) -> Array:
    _at_least(x, 2, "input")
    _at_least(diagonal, 1, "diagonal")
    wanted = (*x.shape[:-2], min(x.shape[-2:]))
    if diagonal.shape != wanted:
        raise errors.InvalidArgumentError(
            None,
            None,
            "must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but "
            "received input shape: "
            f"{shapes.show(x.shape)} and diagonal shape: {shapes.show(diagonal.shape)}",
        )
    if xp.name != "numpy":
        i = np.arange(wanted[-1])
        return xp.index_set(x, (..., i, i), diagonal)
    out = np.array(x, order="C")
    if diagonal.size:
        _diagonal_slots(out)[...] = diagonal
    return out


def _band_kernel(xp: ArrayNamespace, x: Any, num_lower: Any, num_upper: Any) -> Array:
    if x.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"input must be at least 2-dim, received shape: {shapes.show(x.shape)}"
        )
    for what, number in (("num_lower", num_lower), ("num_upper", num_upper)):
        if np.ndim(number):
            raise errors.InvalidArgumentError(
                None, None, f"{what} must be scalar, got shape {shapes.show(np.shape(number))}"
            )
    rows, cols = x.shape[-2:]
    lower, upper = int(num_lower), int(num_upper)
    for name, size, what, number in (
        ("lower", rows, "rows", lower),
        ("upper", cols, "columns", upper),
    ):
        if number > size:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"num_{name} must be negative or less or equal to number of {what} "
                f"({size}) got: {number}",
            )
    below = np.arange(rows)[:, None] - np.arange(cols)
    inside = (below <= lower) if lower >= 0 else np.ones(below.shape, bool)
    if upper >= 0:
        inside &= below >= -upper
    return xp.where(inside, x, xp.zeros((), x.dtype))


# shapes -----------------------------------------------------------------------------------------


def _diag_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 1)
    return [None if shape is None else shape * 2]


def _diag_part_shape(c: Inference) -> list[Shape]:
    shape = c.shape(0)
    if shape is None:
        return [None]
    if not shape or len(shape) % 2:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(shape)}")
    half = len(shape) // 2
    return [tuple(_equal(a, b) for a, b in zip(shape[:half], shape[half:]))]


def _equal(a: Dim, b: Dim) -> Dim:
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return a if a is not None else b


def _matrix_diag_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 1)
    return [None if shape is None else (*shape, shape[-1])]


def _diagonal_of(shape: Shape) -> Shape:
    if shape is None:
        return None
    m, n = shape[-2:]
    return (*shape[:-2], None if m is None or n is None else min(m, n))


def _matrix_diag_part_shape(c: Inference) -> list[Shape]:
    return [_diagonal_of(c.require_rank_at_least(0, 2))]


def _set_diag_shape(c: Inference) -> list[Shape]:
    matrix, diagonal = c.require_rank_at_least(0, 2), c.require_rank_at_least(1, 1)
    wanted = _diagonal_of(matrix)
    if wanted is not None and diagonal is not None:
        if len(wanted) != len(diagonal):
            raise ValueError(f"Shape must be rank {len(wanted)} but is rank {len(diagonal)}")
        known = matrix is not None and None not in matrix  # then the run compares the batches
        for a, b in zip(wanted[-1:] if known else wanted, diagonal[-1:] if known else diagonal):
            _equal(a, b)
    if matrix is None and diagonal is not None:
        return [(*diagonal[:-1], None, None)]
    return [matrix]


# gradients --------------------------------------------------------------------------------------


def _matrix_diag_part_grad(op: Operation, g: Tensor) -> list[Any]:
    x = op._inputs[0]
    if x._shape is not None and x._shape[-1] is not None and x._shape[-1] == x._shape[-2]:
        return [apply_op("MatrixDiag", g)]
    return [apply_op("MatrixSetDiag", apply_op("ZerosLike", x), g)]


def _set_diag_grad(op: Operation, g: Tensor) -> list[Any]:
    return [
        apply_op("MatrixSetDiag", g, apply_op("ZerosLike", op._inputs[1])),
        apply_op("MatrixDiagPart", g),
    ]


def _band_grad(op: Operation, g: Tensor) -> list[Any]:
    return [apply_op("MatrixBandPart", g, op._inputs[1], op._inputs[2]), None, None]


# definitions ------------------------------------------------------------------------------------

DIAG = define(
    "Diag",
    "diagonal: T -> output: T; T: type(matmul)",
    shape=_diag_shape,
    kernel=_diag_kernel,
    grad=lambda op, g: [apply_op("DiagPart", g)],
)
DIAG_PART = define(
    "DiagPart",
    "input: T -> diagonal: T; T: type(matmul)",
    shape=_diag_part_shape,
    kernel=_diag_part_kernel,
    grad=lambda op, g: [apply_op("Diag", g)],
    view=True,
)
MATRIX_DIAG = define(
    "MatrixDiag",
    "diagonal: T -> output: T; T: type",
    shape=_matrix_diag_shape,
    kernel=_matrix_diag_kernel,
    grad=lambda op, g: [apply_op("MatrixDiagPart", g)],
)
MATRIX_DIAG_PART = define(
    "MatrixDiagPart",
    "input: T -> diagonal: T; T: type",
    shape=_matrix_diag_part_shape,
    kernel=_matrix_diag_part_kernel,
    grad=_matrix_diag_part_grad,
    view=True,
)
MATRIX_SET_DIAG = define(
    "MatrixSetDiag",
    "input: T, diagonal: T -> output: T; T: type",
    shape=_set_diag_shape,
    kernel=_matrix_set_diag_kernel,
    grad=_set_diag_grad,
)
MATRIX_BAND_PART = define(
    "MatrixBandPart",
    "input: T, num_lower: Tindex, num_upper: Tindex -> band: T; T: type, Tindex: type(index)=int64",
    shape=shape_fns.unchanged,
    kernel=_band_kernel,
    grad=_band_grad,
    known_inputs=(1, 2),
)


# what users call --------------------------------------------------------------------------------


def diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with ``diagonal`` on its diagonal."""
    return apply(DIAG, diagonal, name=name)


def diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of even rank [a, b, a, b] as [a, b]; the inverse of ``tf.diag``."""
    return apply(DIAG_PART, input, name=name)


def are_numbers(values: Sequence[object], numbers: Sequence[int]) -> bool:
    """Whether arguments are plain numbers that have the values of their defaults."""
    kinds = (int, float, np.integer, np.floating)
    return all(isinstance(v, kinds) and v == n for v, n in zip(values, numbers))


def padding_for(x: Tensor, padding_value: Any) -> Any:
    """A number that fills a tensor up: a truth value for bools."""
    if x._dtype._base is dtypes.bool and isinstance(padding_value, (int, float, np.number)):
        return bool(padding_value)
    return padding_value


def matrix_diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: TensorLike = 0,
    num_rows: TensorLike = -1,
    num_cols: TensorLike = -1,
    padding_value: TensorLike = 0,
) -> Tensor:
    """Matrices with ``diagonal`` [..., n] on diagonal ``k``, ``padding_value`` elsewhere.

    ``k`` is a number (0: the main diagonal, 1: the one above it) or a pair: the lowest and the
    highest of several diagonals, which are the rows of ``diagonal`` [..., number, n], the highest
    first, shorter ones filled up on the right. ``num_rows`` and ``num_cols`` make the matrices
    larger than they have to be.

        tf.linalg.diag([1, 2], k=1)                  # [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    if are_numbers((k, num_rows, num_cols, padding_value), (0, -1, -1, 0)):
        return apply(MATRIX_DIAG, diagonal, name=name or "diag")
    x = convert.convert_to_tensor(diagonal, name="diagonal")
    sizes = (k, num_rows, num_cols, padding_for(x, padding_value))
    return apply_op("MatrixDiagV2", x, *sizes, name=name or "diag")


def matrix_diag_part(
    input: TensorLike,
    name: str | None = "diag_part",
    k: TensorLike = 0,
    padding_value: TensorLike = 0,
) -> Tensor:
    """Diagonal ``k`` of the last two axes, or several: see ``matrix_diag``.

    Shorter ones of several diagonals are filled up with ``padding_value``.

        tf.linalg.diag_part([[1, 2], [3, 4]], k=(0, 1), padding_value=9)   # [[2, 9], [1, 4]]
    """
    if are_numbers((k, padding_value), (0, 0)):
        return apply(MATRIX_DIAG_PART, input, name=name or "diag_part")
    x = convert.convert_to_tensor(input, name="input")
    padding = padding_for(x, padding_value)
    return apply_op("MatrixDiagPartV2", x, k, padding, name=name or "diag_part")


def matrix_set_diag(
    input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: TensorLike = 0
) -> Tensor:
    """Matrices [..., m, n] with diagonal ``k``, or several (see ``matrix_diag``), replaced by
    ``diagonal``.
    """
    if are_numbers((k,), (0,)):
        return apply(MATRIX_SET_DIAG, input, diagonal, name=name or "set_diag")
    input = convert.convert_to_tensor(input, name="input")
    return apply_op("MatrixSetDiagV2", input, diagonal, k, name=name or "set_diag")


def matrix_band_part(
    input: TensorLike, num_lower: TensorLike, num_upper: TensorLike, name: str | None = None
) -> Tensor:
    """Everything outside of a band around the diagonal of the last two axes set to zero.

    ``num_lower`` diagonals below and ``num_upper`` above the main one are kept; a negative number
    keeps the whole triangle.

        tf.matrix_band_part(tf.ones([3, 3]), -1, 0)             # [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return apply(MATRIX_BAND_PART, input, num_lower, num_upper, name=name)
