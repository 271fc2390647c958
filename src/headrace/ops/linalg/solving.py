"""Solutions of linear equations: MatrixSolve, MatrixTriangularSolve, MatrixSolveLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import convert
from headrace.core.build import apply, apply_op
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.linalg import decomposition_kernels as kernels
from headrace.ops.linalg.decompositions import _band, _eye_like
from headrace.ops.linalg.matmul import matmul, matrix_transpose

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["cholesky_solve", "matrix_solve", "matrix_solve_ls", "matrix_triangular_solve"]


def _solve_grad(op: Operation, g: Tensor) -> list[Any]:
    a, x = op._inputs[0], op._outputs[0]
    flip = op._attrs["adjoint"]
    grad_b = apply_op("MatrixSolve", a, g, adjoint=not flip)
    grad_a = matmul(x, grad_b, adjoint_b=True) if flip else matmul(grad_b, x, adjoint_b=True)
    return [-grad_a, grad_b]


def _triangular_solve_grad(op: Operation, g: Tensor) -> list[Any]:
    a, x = op._inputs[0], op._outputs[0]
    flip, lower = op._attrs["adjoint"], op._attrs["lower"]
    grad_b = apply_op("MatrixTriangularSolve", a, g, lower=lower, adjoint=not flip)
    grad_a = -(matmul(x, grad_b, adjoint_b=True) if flip else matmul(grad_b, x, adjoint_b=True))
    return [_band(grad_a, -1, 0) if lower else _band(grad_a, 0, -1), grad_b]


def _least_squares_grad(op: Operation, g: Tensor) -> list[Any]:
    a = op._inputs[0]
    if not op._attrs["fast"]:
        raise ValueError("Gradient not defined for fast=False")
    if a._shape is None or a._shape[-2] is None or a._shape[-1] is None:
        raise NotImplementedError("The gradient of matrix_solve_ls needs a matrix of known shape.")
    if a._shape[-2] >= a._shape[-1]:
        return [*_tall_least_squares_grad(op, g), None]
    return [*_wide_least_squares_grad(op, g), None]


def _gram_factor(op: Operation, tall: bool) -> Tensor:
    """Cholesky factor of a^H a + weight I (or of a a^H + weight I)."""
    a, _, weight = op._inputs
    gram = matmul(a, a, adjoint_a=tall, adjoint_b=not tall)
    eye = _eye_like(gram)
    return apply_op("Cholesky", gram + apply_op("Cast", weight, DstT=a._dtype._base) * eye)


def _cholesky_solve(low: TensorLike, rhs: TensorLike) -> Tensor:
    half = apply_op("MatrixTriangularSolve", low, rhs, lower=True, adjoint=False)
    return apply_op("MatrixTriangularSolve", low, half, lower=True, adjoint=True)


def _tall_least_squares_grad(op: Operation, g: Tensor) -> tuple[Any, Any]:
    """x = (a^H a + w)^-1 a^H b."""
    a, b, x = op._inputs[0], op._inputs[1], op._outputs[0]
    z = _cholesky_solve(_gram_factor(op, True), g)
    xz = matmul(x, z, adjoint_b=True)
    return matmul(b, z, adjoint_b=True) - matmul(a, xz + matrix_transpose(xz)), matmul(a, z)


def _wide_least_squares_grad(op: Operation, g: Tensor) -> tuple[Any, Any]:
    """x = a^H (a a^H + w)^-1 b."""
    a, b = op._inputs[:2]
    factor = _gram_factor(op, False)
    grad_b = _cholesky_solve(factor, matmul(a, g))
    inner = _cholesky_solve(factor, b)
    through = matmul(grad_b, matmul(inner, a, adjoint_a=True))
    direct = matmul(inner, g - matmul(a, grad_b, adjoint_a=True), adjoint_b=True)
    return direct - through, grad_b


MATRIX_SOLVE = define(
    "MatrixSolve",
    "matrix: T, rhs: T -> output: T; adjoint: bool=False, T: type(matrix)",
    shape=kernels.solve_shape,
    kernel=kernels.solve_kernel,
    grad=_solve_grad,
)

MATRIX_TRIANGULAR_SOLVE = define(
    "MatrixTriangularSolve",
    "matrix: T, rhs: T -> output: T; lower: bool=True, adjoint: bool=False, T: type(matrix)",
    shape=kernels.solve_shape,
    kernel=kernels.triangular_solve_kernel,
    grad=_triangular_solve_grad,
)

MATRIX_SOLVE_LS = define(
    "MatrixSolveLs",
    "matrix: T, rhs: T, l2_regularizer: float64 -> output: T; T: type(matrix), fast: bool=True",
    shape=kernels.least_squares_shape,
    kernel=kernels.least_squares_kernel,
    grad=_least_squares_grad,
    known_inputs=(2,),
)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Solves ``a x = rhs``, given the Cholesky factor of ``a``."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        return _cholesky_solve(chol, rhs)


def matrix_solve(
    matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """``x`` with ``matrix @ x = rhs``, for square matrices [..., n, n] and [..., n, k].

    ``adjoint=True`` solves with the conjugate transpose. A singular matrix is an error.
    """
    return apply(MATRIX_SOLVE, matrix, rhs, adjoint=adjoint, name=name)


def matrix_triangular_solve(
    matrix: TensorLike,
    rhs: TensorLike,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> Tensor:
    """``x`` with ``matrix @ x = rhs`` by substitution; the other triangle is not read.

    ``lower=False`` reads the upper triangle.
    """
    return apply(MATRIX_TRIANGULAR_SOLVE, matrix, rhs, lower=lower, adjoint=adjoint, name=name)


def matrix_solve_ls(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: TensorLike = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The least-squares solution x [..., n, k] of ``matrix @ x = rhs``.

    ``matrix`` is [..., m, n], ``rhs`` [..., m, k]; ``l2_regularizer`` times the squared norm of x
    is added to the squared error. ``fast=False`` uses a complete orthogonal decomposition, for
    matrices without full rank (it takes no regularizer).
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]) as scope:
        matrix = convert.convert(matrix, name="matrix")
        rhs = convert.convert(rhs, name="rhs")
        known = matrix._shape is not None and None not in matrix._shape[-2:]
        # TF solves the normal equations by operations of their own, in branches where it does not
        # know which are smaller
        last = (
            "MatrixSolveLs/"
            if not fast
            else "cholesky_solve/MatrixTriangularSolve_1/"
            if known
            else "cond/Merge/"
        )
        return apply(MATRIX_SOLVE_LS, matrix, rhs, l2_regularizer, fast=fast, name=scope + last)
