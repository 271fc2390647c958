"""Operators that are given by numbers of a whole matrix: FullMatrix, LowerTriangular, Householder,
Toeplitz.
"""

from __future__ import annotations

from typing import Any

from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.linear_operators.operator_base import LinearOperator, broadcast_matrices
from headrace.ops.linalg import diagonals, solving
from headrace.ops.linalg.matmul import adjoint as adjoint_of

__all__ = [
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorLowerTriangular",
    "LinearOperatorToeplitz",
]


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of any dense matrix ``[..., M, N]``; products and solves cost what the matrix's
    do.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        matrix: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = ops.convert_to_tensor(matrix, name="matrix")
        if self._matrix.shape.ndims is not None and self._matrix.shape.ndims < 2:
            raise ValueError(
                f"Argument matrix must have at least 2 dimensions.  Found: {self._matrix}"
            )
        super().__init__(
            self._matrix.dtype,
            [self._matrix],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
        )

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return ops.shape(self._matrix)

    def _to_dense(self) -> Tensor:
        return self._matrix

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return ops.matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of ``tril``; what is above the diagonal does not count.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        tril: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError(
                f"Only square lower triangular operators supported at this time. {name}"
            )
        given = ops.convert_to_tensor(tril, name="tril")
        if given.shape.ndims is not None and given.shape.ndims < 2:
            raise ValueError("Argument tril must have at least 2 dimensions.")
        self._tril = diagonals.matrix_band_part(given, -1, 0)
        self._diag = diagonals.matrix_diag_part(given)
        super().__init__(
            given.dtype,
            [given],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _shape_tensor(self) -> Tensor:
        return ops.shape(self._tril)

    def _to_dense(self) -> Tensor:
        return self._tril

    def _diag_part(self) -> Tensor:
        return self._diag

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        matrix, rhs = broadcast_matrices(self._tril, rhs)
        return solving.matrix_triangular_solve(matrix, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return ops.reduce_prod(self._diag, axis=[-1])

    def _log_abs_determinant(self) -> Tensor:
        return ops.reduce_sum(ops.log(ops.abs(self._diag)), axis=[-1])

    def _assert_non_singular(self) -> Any:
        return ops.assert_less(
            ops.zeros([], self._diag.dtype.real_dtype),
            ops.abs(self._diag),
            message="Singular operator:  Diagonal contained zero values.",
        )


class LinearOperatorHouseholder(LinearOperator):
    """The reflection I - 2 v vᴴ of the unit vector along ``reflection_axis``.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        reflection_axis: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        self._axis = ops.convert_to_tensor(reflection_axis, name="reflection_axis")
        for given, wanted, text in (
            (is_self_adjoint, True, "A Householder operator is always self adjoint."),
            (
                is_positive_definite,
                False,
                "A Householder operator is always non-positive definite.",
            ),
            (is_square, True, "A Householder operator is always square."),
            (is_non_singular, True, "A Householder operator is always non-singular."),
        ):
            if given is not None and given is not wanted:
                raise ValueError(text)
        super().__init__(self._axis.dtype, [self._axis], is_non_singular, True, False, True, name)

    @property
    def reflection_axis(self) -> Tensor:
        return self._axis

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._axis.shape
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = ops.shape(self._axis)
        return ops.concat([shape, shape[-1:]], 0)

    def _unit(self) -> Tensor:
        return ops.expand_dims(ops.l2_normalize(self._axis, axis=-1), -1)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        unit = self._unit()
        along = ops.matmul(unit, x, adjoint_a=True)
        return x - 2 * unit * along

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _diag_part(self) -> Tensor:
        unit = ops.l2_normalize(self._axis, axis=-1)
        return 1.0 - 2 * unit * ops.conj(unit)

    def _determinant(self) -> Tensor:
        return -ops.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return ops.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self) -> Any:
        size = ops.cast(self.domain_dimension_tensor(), self.dtype)
        return (size - 2) * ops.ones(self.batch_shape_tensor(), dtype=self.dtype)


class LinearOperatorToeplitz(LinearOperator):
    """Constant along diagonals: first column ``col``, first row ``row``.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        col: object,
        row: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        self._row = ops.convert_to_tensor(row, name="row")
        self._col = ops.convert_to_tensor(col, name="col")
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        super().__init__(
            self._row.dtype,
            [self._row, self._col],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    @property
    def col(self) -> Tensor:
        return self._col

    @property
    def row(self) -> Tensor:
        return self._row

    def _shape(self) -> TensorShape:
        shape = ops.broadcast_static_shape(self._row.shape, self._col.shape)
        joined: TensorShape = shape.concatenate(shape[-1:])
        return joined

    def _shape_tensor(self) -> Tensor:
        shape = ops.broadcast_dynamic_shape(ops.shape(self._row), ops.shape(self._col))
        return ops.concat([shape, shape[-1:]], 0)

    def _to_dense(self) -> Tensor:
        """Element (i, j) is number n - 1 + i - j of [reversed row, column without its first]."""
        shape = self.shape_tensor()[:-1]
        row, col = (ops.broadcast_to(t, shape) for t in (self._row, self._col))
        line = ops.concat([ops.reverse(row, [-1]), col[..., 1:]], -1)
        size = shape[-1]
        at = ops.range(size)
        places = size - 1 + at[:, None] - at[None, :]
        dense = ops.gather(line, places, axis=-1)
        diag = ops.broadcast_to(col[..., :1], shape)
        return diagonals.matrix_set_diag(dense, diag)

    def _diag_part(self) -> Tensor:
        return ops.broadcast_to(self._col[..., :1], self.shape_tensor()[:-1])
