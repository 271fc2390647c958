"""Matrices with three diagonals: ``tf.linalg.tridiagonal_solve`` and ``tridiagonal_matmul``.

Diagonals come as "compact" (a tensor [..., 3, n]: above, main, below), as "sequence" (those three,
each [..., n]) or as the "matrix" itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Shape, merge
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import expand_dims, matrix_transpose, squeeze
from headrace.ops.array.casting import conj
from headrace.ops.array.filling import zeros_like
from headrace.ops.array.joining import concat, stack
from headrace.ops.array.padding import pad
from headrace.ops.linalg.diagonals import matrix_diag_part
from headrace.ops.math.reductions import reduce_sum

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["tridiagonal_matmul", "tridiagonal_solve"]


def _solve_shape(c: Inference) -> list[Shape]:
    c.require_rank_at_least(0, 2)
    right = c.require_rank_at_least(1, 2)
    left = c.shape(0)
    if left is None or right is None:
        return [right]
    rows = merge((left[-1],), (right[-2],))
    outer = merge(left[:-2], right[:-2]) or ()
    return [(*outer, *(rows or (None,)), right[-1])]


def _solve_kernel(
    xp: ArrayNamespace, diagonals: Array, rhs: Array, *, partial_pivoting: bool
) -> Array:
    """Gauss elimination; with partial pivoting a row may be exchanged with the next one."""
    above, main, below = (diagonals[..., i, :].copy() for i in range(3))
    x = rhs.copy()
    n = main.shape[-1]
    if n == 0:
        return x
    second = np.zeros_like(above)  # the diagonal that exchanged rows fill
    if n:
        above[..., -1], below[..., 0] = 0, 0
    for i in range(n - 1):
        if partial_pivoting:
            swap = np.abs(main[..., i]) < np.abs(below[..., i + 1])
            _exchange(swap, i, above, main, below, second, x)
        if not main[..., i].all():
            _singular(partial_pivoting)
        factor = below[..., i + 1] / main[..., i]
        main[..., i + 1] -= factor * above[..., i]
        above[..., i + 1] -= factor * second[..., i]
        x[..., i + 1, :] -= factor[..., None] * x[..., i, :]
    if not main[..., -1].all():
        _singular(partial_pivoting)
    for i in range(n - 1, -1, -1):
        if i + 1 < n:
            x[..., i, :] -= above[..., i, None] * x[..., i + 1, :]
        if i + 2 < n:
            x[..., i, :] -= second[..., i, None] * x[..., i + 2, :]
        x[..., i, :] /= main[..., i, None]
    return x


def _exchange(
    swap: Array, i: int, above: Array, main: Array, below: Array, second: Array, x: Array
) -> None:
    """Rows i and i + 1 change places where ``swap`` says so (before row i is eliminated)."""
    if not swap.any():
        return
    row = [main[..., i].copy(), above[..., i].copy(), x[..., i, :].copy()]
    main[..., i] = np.where(swap, below[..., i + 1], row[0])
    above[..., i] = np.where(swap, main[..., i + 1], row[1])
    second[..., i] = np.where(swap, above[..., i + 1], second[..., i])
    x[..., i, :] = np.where(swap[..., None], x[..., i + 1, :], row[2])
    below[..., i + 1] = np.where(swap, row[0], below[..., i + 1])
    main[..., i + 1] = np.where(swap, row[1], main[..., i + 1])
    above[..., i + 1] = np.where(swap, 0, above[..., i + 1])
    x[..., i + 1, :] = np.where(swap[..., None], row[2], x[..., i + 1, :])


def _singular(partial_pivoting: bool) -> None:
    if partial_pivoting:
        raise errors.InvalidArgumentError(None, None, "The matrix is not invertible.")
    raise errors.InvalidArgumentError(
        None, None, "The first element of diagonal is zero, or a pivot is; use partial pivoting."
    )


def _transposed(diagonals: Any) -> Tensor:
    """The diagonals of the transposed matrix."""
    nothing = zeros_like(diagonals[..., 0, :1])
    above = concat([diagonals[..., 2, 1:], nothing], -1)
    below = concat([nothing, diagonals[..., 0, :-1]], -1)
    return stack([above, diagonals[..., 1, :], below], -2)


def _left(x: Any) -> Tensor:
    """Rows moved up by one."""
    return concat([x[..., 1:, :], zeros_like(x[..., :1, :])], -2)


def _right(x: Any) -> Tensor:
    """Rows moved down by one."""
    return concat([zeros_like(x[..., :1, :]), x[..., :-1, :]], -2)


def _solve_grad(op: Operation, g: Tensor) -> list[Any]:
    x: Any = op._outputs[0]
    flag = op._attrs["partial_pivoting"]
    turned = _transposed(conj(op._inputs[0]))
    rhs: Any = apply_op("TridiagonalSolve", turned, g, partial_pivoting=flag)
    bar = conj(x)
    parts = [reduce_sum(rhs * moved, -1) for moved in (_left(bar), bar, _right(bar))]
    return [-stack(parts, -2), rhs]


def _matmul_grad(op: Operation, g: Any) -> list[Any]:
    above, main, below, rhs = op._inputs
    bar: Any = conj(rhs)
    up, middle, down = (matrix_transpose(conj(d)) for d in (above, main, below))
    grads = [expand_dims(reduce_sum(moved * g, -1), -2) for moved in (_left(bar), bar, _right(bar))]
    return [*grads, _right(up * g) + middle * g + _left(down * g)]


def _matmul_kernel(
    xp: ArrayNamespace, above: Array, main: Array, below: Array, rhs: Array
) -> Array:
    out = np.swapaxes(main, -1, -2) * rhs
    out[..., :-1, :] += np.swapaxes(above, -1, -2)[..., :-1, :] * rhs[..., 1:, :]
    out[..., 1:, :] += np.swapaxes(below, -1, -2)[..., 1:, :] * rhs[..., :-1, :]
    return out


TRIDIAGONAL_SOLVE = define(
    "TridiagonalSolve",
    "diagonals: T, rhs: T -> output: T; partial_pivoting: bool=True, T: type(inexact)",
    shape=_solve_shape,
    kernel=_solve_kernel,
    grad=_solve_grad,
    host_only=True,
)

TRIDIAGONAL_MATMUL = define(
    "TridiagonalMatMul",
    "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T; T: type(inexact)",
    shape=lambda c: [c.shape(3)],
    kernel=_matmul_kernel,
    grad=_matmul_grad,
    host_only=True,
)


def _of_matrix(matrix: Any) -> list[Any]:
    """The diagonals of a whole matrix, each as long as the main one."""
    rows, columns = matrix.shape.as_list()[-2:]
    if not rows or not columns:
        raise ValueError('The size of the matrix needs to be known for diagonals_format="matrix"')
    if rows != columns:
        raise ValueError(
            f"Expected last two dimensions of diagonals to be same, got {columns} and {rows}"
        )
    nothing = zeros_like(matrix[..., 0, :1])
    above = concat([matrix_diag_part(matrix[..., :-1, 1:]), nothing], -1)
    below = concat([nothing, matrix_diag_part(matrix[..., 1:, :-1])], -1)
    return [above, matrix_diag_part(matrix), below]


def _filled(diagonal: Any, length: int | None, what: str, padding: list[int]) -> Any:
    """A diagonal that may be given without its unused element."""
    n = diagonal.shape.as_list()[-1]
    if not n or n == length:
        return diagonal
    if length is not None and n == length - 1:
        return pad(diagonal, [[0, 0]] * (diagonal.shape.ndims - 1) + [padding])
    raise ValueError(f"Expected {what} to be have length {length} or {(length or 0) - 1}, got {n}.")


def _three(diagonals: object) -> list[Tensor]:
    if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    return [convert_to_tensor(d) for d in diagonals]


def _compact(diagonals: object, diagonals_format: str) -> Tensor:
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals)
    if diagonals_format == "matrix":
        return stack(_of_matrix(convert_to_tensor(diagonals)), -2)
    if diagonals_format != "sequence":
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    above, main, below = _three(diagonals)
    for other in (below, above):
        if not other.shape[:-1].is_compatible_with(main.shape[:-1]):
            raise ValueError(
                "Tensors representing the three diagonals must have the same shape,"
                f"except for the last dimension, got {below.shape}, {main.shape}, {above.shape}"
            )
    n = main.shape.as_list()[-1]
    below, above = (
        _filled(below, n, "subdiagonal", [1, 0]),
        _filled(above, n, "superdiagonal", [0, 1]),
    )
    return stack([above, main, below], -2)


def _check_solve(diagonals: Tensor, rhs: Tensor) -> None:
    left, right = diagonals.shape, rhs.shape
    rank = left.ndims or 0
    if rank < 2:
        raise ValueError(f"Expected diagonals to have rank at least 2, got {rank}")
    if right.ndims not in (rank, rank - 1):
        raise ValueError(f"Expected the rank of rhs to be {rank - 1} or {rank}, got {right.ndims}")
    if left.as_list()[-2] not in (None, 3):
        raise ValueError(f"Expected 3 diagonals got {left[-2]}")
    outer = right[: rank - 2]
    if not left[:-2].is_compatible_with(outer):
        raise ValueError(f"Batch shapes {left[:-2]} and {outer} are incompatible")


def tridiagonal_solve(
    diagonals: TensorLike | Sequence[TensorLike],
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """``x`` with ``matrix @ x = rhs`` for a matrix with three diagonals; ``rhs`` is [..., n] or
    [..., n, k].

    ``diagonals_format`` "compact" takes ``diagonals`` as [..., 3, n] (superdiagonal, diagonal,
    subdiagonal; the last element of the first and the first of the last do not count), "sequence"
    as a list of the three, "matrix" as [..., n, n]. ``transpose_rhs`` and ``conjugate_rhs`` take
    the (conjugate) transpose of ``rhs``; ``partial_pivoting=False`` is faster and may be unstable.
    """
    parts = _compact(diagonals, diagonals_format)
    right: Any = convert_to_tensor(rhs)
    _check_solve(parts, right)
    vector = right.shape.ndims != parts.shape.ndims
    if vector:
        right = expand_dims(conj(right) if conjugate_rhs else right, -1)
    elif transpose_rhs:
        right = matrix_transpose(right, conjugate=conjugate_rhs)
    elif conjugate_rhs:
        right = conj(right)
    given, wanted = parts.shape.as_list()[-1], right.shape.as_list()[-2]
    if given and wanted and given != wanted:
        raise ValueError(
            "Expected number of left-hand sided and right-hand sides to be equal, got "
            f"{given} and {wanted}"
        )
    x = apply(TRIDIAGONAL_SOLVE, parts, right, partial_pivoting=partial_pivoting, name=name)
    if vector:
        return squeeze(x, -1)
    return matrix_transpose(x) if transpose_rhs else x


def tridiagonal_matmul(
    diagonals: TensorLike | Sequence[TensorLike],
    rhs: TensorLike,
    diagonals_format: str = "compact",
    name: str | None = None,
) -> Tensor:
    """``matrix @ rhs`` for a matrix with three diagonals and ``rhs`` of shape [..., n, k].

    ``diagonals_format`` "compact" takes ``diagonals`` as [..., 3, n] (superdiagonal, diagonal,
    subdiagonal; the last element of the first and the first of the last do not count), "sequence"
    as a list of the three, "matrix" as [..., n, n].
    """
    if diagonals_format == "compact":
        whole: Any = convert_to_tensor(diagonals)
        parts = [whole[..., i, :] for i in range(3)]
    elif diagonals_format == "sequence":
        parts = _three(diagonals)
    elif diagonals_format == "matrix":
        parts = _of_matrix(convert_to_tensor(diagonals))
    else:
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    lines = [expand_dims(d, -2) for d in parts]
    return apply(TRIDIAGONAL_MATMUL, *lines, rhs, name=name)
