"""Operators with nothing beside the diagonal: Diag, Identity, ScaledIdentity, Zeros."""

from __future__ import annotations

from typing import Any

from headrace.core import dtypes
from headrace.core.annotations import DTypeLike
from headrace.core.infer import static_value as constant_value
from headrace.core.scopes import control_dependencies
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.linear_operators.operator_base import LinearOperator
from headrace.ops.linalg import diagonals
from headrace.ops.linalg.matmul import adjoint as adjoint_of

__all__ = [
    "LinearOperatorDiag",
    "LinearOperatorIdentity",
    "LinearOperatorScaledIdentity",
    "LinearOperatorZeros",
]


def _conjugate(x: Tensor) -> Tensor:
    return ops.conj(x) if x.dtype.is_complex else x


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix, given by the vector ``diag`` (``[..., N]``); it keeps no matrix.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        diag: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        self._diag = ops.convert_to_tensor(diag, name="diag")
        if self._diag.shape.ndims is not None and self._diag.shape.ndims < 1:
            raise ValueError("Argument diag must have at least 1 dimension.")
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(
            self._diag.dtype,
            [self._diag],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    @property
    def diag(self) -> Tensor:
        return self._diag

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._diag.shape
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = ops.shape(self._diag)
        return ops.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        diag = _conjugate(self._diag) if adjoint else self._diag
        return ops.expand_dims(diag, -1) * x

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        diag = _conjugate(self._diag) if adjoint else self._diag
        return rhs * ops.expand_dims(1.0 / diag, -1)

    def _determinant(self) -> Tensor:
        return ops.reduce_prod(self._diag, axis=[-1])

    def _log_abs_determinant(self) -> Tensor:
        total = ops.reduce_sum(ops.log(ops.abs(self._diag)), axis=[-1])
        return ops.cast(total, self.dtype) if self.dtype.is_complex else total

    def _to_dense(self) -> Tensor:
        return diagonals.matrix_diag(self._diag)

    def _diag_part(self) -> Tensor:
        return self._diag

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return diagonals.matrix_set_diag(x, diagonals.matrix_diag_part(x) + self._diag)

    def _adjoint(self) -> Any:
        return LinearOperatorDiag(_conjugate(self._diag), is_non_singular=self.is_non_singular)

    def _inverse(self) -> Any:
        return LinearOperatorDiag(
            1.0 / self._diag,
            is_non_singular=self.is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
        )

    def _cholesky(self) -> Any:
        return LinearOperatorDiag(
            ops.sqrt(self._diag), is_non_singular=True, is_positive_definite=True
        )

    def _times(self, other: object) -> Any:
        if isinstance(other, LinearOperatorDiag):
            return LinearOperatorDiag(self._diag * other.diag)
        return super()._times(other)

    def _assert_non_singular(self) -> Any:
        return ops.assert_less(
            ops.zeros([], self._diag.dtype.real_dtype),
            ops.abs(self._diag),
            message="Singular operator:  Diagonal contained zero values.",
        )

    def _assert_positive_definite(self) -> Any:
        return ops.assert_positive(
            ops.real(self._diag) if self.dtype.is_complex else self._diag,
            message="Not positive definite: diagonal has values <= 0.",
        )


_Hints = tuple[bool | None, bool | None, bool | None, bool | None]


class _OfSize(LinearOperator):
    """Operators that are given by their number of rows."""

    def __init__(
        self,
        num_rows: object,
        num_columns: object,
        batch_shape: object,
        dtype: object,
        hints: _Hints,
        parents: object,
        name: str,
    ) -> None:
        super().__init__(dtype, parents, *hints, name)
        self._num_rows = ops.convert_to_tensor(num_rows, dtypes.int32, name="num_rows")
        self._rows = constant_value(self._num_rows)
        if self._rows is not None and self._rows.ndim:
            raise ValueError("Argument num_rows must be a 0-D Tensor.")
        if self._rows is not None and self._rows < 0:
            raise ValueError("Argument num_rows must be non-negative.")
        self._num_columns = self._num_rows
        if num_columns is not None:
            self._num_columns = ops.convert_to_tensor(num_columns, dtypes.int32)
        self._batch = None
        if batch_shape is not None:
            self._batch = ops.convert_to_tensor(batch_shape, dtypes.int32, name="batch_shape_arg")

    def _shape(self) -> TensorShape:
        columns = constant_value(self._num_columns)
        matrix = TensorShape(
            [None if v is None else int(v) for v in (self._rows, columns)],
        )
        return self._batch_dims().concatenate(matrix)

    def _batch_dims(self) -> TensorShape:
        if self._batch is None:
            return TensorShape([])
        known = constant_value(self._batch)
        return TensorShape(None if known is None else known.tolist())

    def _shape_tensor(self) -> Tensor:
        matrix = ops.stack([self._num_rows, self._num_columns])
        return matrix if self._batch is None else ops.concat([self._batch, matrix], 0)

    def _check_at_run_time(self) -> None:
        """Later uses of the number of rows wait for a check of it."""
        checks = [
            ops.assert_rank(self._num_rows, 0, message="Argument num_rows must be a 0-D Tensor."),
            ops.assert_non_negative(
                self._num_rows, message="Argument num_rows must be non-negative."
            ),
        ]
        with control_dependencies(checks):
            self._num_rows = ops.identity(self._num_rows)

    def _over_batch(self, x: Tensor) -> Tensor:
        """``x`` with the batch dimensions of this operator."""
        if self._batch is None:
            return x
        zeros = ops.zeros(ops.concat([self._batch, [1, 1]], 0), dtype=x.dtype)
        return x + zeros


class LinearOperatorIdentity(_OfSize):
    """The operator of the identity matrix of ``num_rows`` rows; it keeps no matrix.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        num_rows: object,
        batch_shape: object = None,
        dtype: DTypeLike | None = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint, text in (
            (is_self_adjoint, "self adjoint"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
            (is_square, "square"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {text}.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(num_rows, None, batch_shape, dtype or dtypes.float32, hints, None, name)
        if assert_proper_shapes:
            self._check_at_run_time()

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._over_batch(adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _diag_part(self) -> Tensor:
        return ops.ones(self.shape_tensor()[:-1], dtype=self.dtype)

    def _determinant(self) -> Tensor:
        return ops.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return ops.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self) -> Tensor:
        size = ops.cast(self._num_rows, self.dtype)
        return size * ops.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        x = self._over_batch(x)
        return diagonals.matrix_set_diag(x, diagonals.matrix_diag_part(x) + 1)

    def _adjoint(self) -> Any:
        return self

    _inverse = _adjoint
    _cholesky = _adjoint

    def _times(self, other: object) -> Any:
        return other

    def _assert_non_singular(self) -> Any:
        return ops.no_op()

    _assert_positive_definite = _assert_non_singular
    _assert_self_adjoint = _assert_non_singular


class LinearOperatorScaledIdentity(_OfSize):
    """``multiplier`` (a batch of numbers) on the diagonal.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        num_rows: object,
        multiplier: object,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self._multiplier = ops.convert_to_tensor(multiplier, name="multiplier")
        if not self._multiplier.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(
            num_rows, None, None, self._multiplier.dtype, hints, [self._multiplier], name
        )
        if assert_proper_shapes:
            self._check_at_run_time()

    @property
    def multiplier(self) -> Tensor:
        return self._multiplier

    def _batch_dims(self) -> TensorShape:
        return self._multiplier.shape

    def _shape_tensor(self) -> Tensor:
        matrix = ops.stack([self._num_rows, self._num_rows])
        return ops.concat([ops.shape(self._multiplier), matrix], 0)

    def _as_matrix(self, adjoint: bool = False) -> Tensor:
        value = _conjugate(self._multiplier) if adjoint else self._multiplier
        return ops.expand_dims(ops.expand_dims(value, -1), -1)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return (adjoint_of(x) if adjoint_arg else x) * self._as_matrix(adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return (adjoint_of(rhs) if adjoint_arg else rhs) / self._as_matrix(adjoint)

    def _diag_part(self) -> Tensor:
        ones = ops.ones(ops.stack([self._num_rows]), dtype=self.dtype)
        return ops.expand_dims(self._multiplier, -1) * ones

    def _determinant(self) -> Tensor:
        return self._multiplier ** ops.cast(self._num_rows, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        size = ops.cast(self._num_rows, self.dtype.real_dtype)
        return size * ops.log(ops.abs(self._multiplier))

    def _trace(self) -> Tensor:
        return self._multiplier * ops.cast(self._num_rows, self.dtype)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        x = x + ops.zeros_like(self._as_matrix())
        value = ops.expand_dims(self._multiplier, -1)
        return diagonals.matrix_set_diag(x, diagonals.matrix_diag_part(x) + value)

    def _made(self, multiplier: object) -> Any:
        return LinearOperatorScaledIdentity(
            self._num_rows,
            multiplier,
            is_non_singular=self.is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
        )

    def _adjoint(self) -> Any:
        return self._made(_conjugate(self._multiplier))

    def _inverse(self) -> Any:
        return self._made(1.0 / self._multiplier)

    def _cholesky(self) -> Any:
        return self._made(ops.sqrt(self._multiplier))


class LinearOperatorZeros(_OfSize):
    """The operator of a matrix of zeros, ``num_rows`` by ``num_columns``; it keeps no matrix.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown); they are not checked.
    """

    def __init__(
        self,
        num_rows: object,
        num_columns: object = None,
        batch_shape: object = None,
        dtype: DTypeLike | None = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular or is_positive_definite:
            raise ValueError("A zeros operator is always singular and not positive-definite.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(
            num_rows, num_columns, batch_shape, dtype or dtypes.float32, hints, None, name
        )
        if assert_proper_shapes:
            self._check_at_run_time()

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        rows = self._num_columns if adjoint else self._num_rows
        shape = ops.concat([ops.shape(x)[:-2], [rows], ops.shape(x)[-1:]], 0)
        return self._over_batch(ops.zeros(shape, dtype=x.dtype))

    def _to_dense(self) -> Tensor:
        return ops.zeros(self.shape_tensor(), dtype=self.dtype)

    def _determinant(self) -> Tensor:
        return ops.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    _trace = _determinant

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self._over_batch(x)
