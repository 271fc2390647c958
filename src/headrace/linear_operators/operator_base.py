"""The base of linear operators: a (batch of) matrix that is applied, solved and measured.

A kind of operator gives its shape, ``_matmul`` and usually ``_to_dense``; everything else is
computed from the dense matrix unless the kind knows better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.ops.linalg import decompositions, diagonals, solving
from headrace.ops.linalg.matmul import adjoint as adjoint_of
from headrace.ops.linalg.norms import eye

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["LinearOperator", "broadcast_matrices", "is_operator"]


def is_operator(value: object) -> bool:
    return isinstance(value, LinearOperator)


def broadcast_matrices(a: Any, b: Any) -> tuple[Any, Any]:
    """Both with the batch dimensions of both."""
    if a.shape[:-2].is_fully_defined() and a.shape[:-2] == b.shape[:-2]:
        return a, b
    batch = ops.broadcast_dynamic_shape(ops.shape(a)[:-2], ops.shape(b)[:-2])
    made = []
    for t in (a, b):
        made.append(ops.broadcast_to(t, ops.concat([batch, ops.shape(t)[-2:]], 0)))
    return made[0], made[1]


def _implied(kind: str, hint: bool | None, implied: str) -> bool:
    """True, for a hint that follows from another one; an error if the caller denies it."""
    if hint is False:
        raise ValueError(f"A {kind} matrix is always {implied}.")
    return True


class LinearOperator:
    """A batch of matrices that can be applied and solved without being stored.

    ``is_non_singular``, ``is_self_adjoint``, ``is_positive_definite`` and ``is_square`` are hints
    (True, False, or None for unknown). Hints are not checked: the caller vouches for them.

    ``graph_parents`` are the tensors that the operator is made of. Subclasses define ``_matmul``,
    ``_shape`` and ``_shape_tensor``.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            is_non_singular = _implied("positive definite", is_non_singular, "non-singular")
        for kind, hint in (("non-singular", is_non_singular), ("self-adjoint", is_self_adjoint)):
            if hint:
                is_square = _implied(kind, is_square, "square")
        self._is_square_set_or_implied_by_hints = is_square
        self._graph_parents = list(graph_parents or [])
        self._dtype = dtypes.as_dtype(dtype).base_dtype if dtype else None
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._name = name or type(self).__name__

    # what it is ---------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def name(self) -> str:
        return self._name

    @property
    def graph_parents(self) -> list[Any]:
        return self._graph_parents

    @property
    def is_non_singular(self) -> bool | None:
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        by_shape = None
        rows, columns = self.range_dimension.value, self.domain_dimension.value
        if rows is not None and columns is not None:
            by_shape = rows == columns
        hint = self._is_square_set_or_implied_by_hints
        if by_shape is not None and hint is not None and by_shape != hint:
            raise ValueError("User provided hint for is_square conflicted with the static shape.")
        return by_shape if hint is None else hint

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def shape(self) -> TensorShape:
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        return self.shape.ndims

    @property
    def domain_dimension(self) -> Any:
        return self.shape[-1] if self.shape.ndims is not None else TensorShape([None])[0]

    @property
    def range_dimension(self) -> Any:
        return self.shape[-2] if self.shape.ndims is not None else TensorShape([None])[0]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape as a tensor."""
        with self._scope(name):
            if self.shape.is_fully_defined():
                return ops.convert_to_tensor(self.shape.as_list(), dtype=dtypes.int32, name="shape")
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape without the matrix's two dimensions, as a tensor."""
        with self._scope(name):
            return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The rank as a tensor."""
        with self._scope(name):
            return ops.size(self.shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns as a tensor."""
        with self._scope(name):
            return self.shape_tensor()[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows as a tensor."""
        with self._scope(name):
            return self.shape_tensor()[-2]

    def _scope(self, name: str) -> Any:
        return name_scope(f"{self._name}/{name}")

    # applying -----------------------------------------------------------------------------------

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return ops.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """The product with a (batch of) matrix, or with another operator."""
        if is_operator(x):
            left: Any = self.adjoint() if adjoint else self
            right: Any = x.adjoint() if adjoint_arg else x
            self._check_sizes(left.domain_dimension, right.range_dimension)
            return left._times(right)
        with self._scope(name):
            given = ops.convert_to_tensor(x, name="x")
            self._check_dtype(given)
            rows = self.range_dimension if adjoint else self.domain_dimension
            self._check_sizes(rows, given.shape[-1 if adjoint_arg else -2])
            return self._matmul(given, adjoint, adjoint_arg)

    __matmul__ = matmul

    def _times(self, other: object) -> Any:
        from headrace.linear_operators.composed_operators import LinearOperatorComposition

        return LinearOperatorComposition([self, other])

    def _check_dtype(self, x: Tensor) -> None:
        if self.dtype != x.dtype:
            raise TypeError(f"Input argument has dtype {x.dtype}, this operator {self.dtype}.")

    @staticmethod
    def _check_sizes(own: Any, other: Any) -> None:
        if None not in (own.value, other.value) and own.value != other.value:
            raise ValueError(f"Dimensions {own} and {other} are not compatible")

    def matvec(self, x: Tensor, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with a (batch of) vector."""
        with self._scope(name):
            given = ops.expand_dims(ops.convert_to_tensor(x, name="x"), -1)
            return ops.squeeze(self.matmul(given, adjoint=adjoint), axis=-1)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        matrix, rhs = broadcast_matrices(self.to_dense(), rhs)
        if self._can_use_cholesky():
            return solving.cholesky_solve(decompositions.cholesky(matrix), rhs)
        return solving.matrix_solve(matrix, rhs, adjoint=adjoint)

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """X with ``self @ X = rhs``; of another operator: the product with the inverse."""
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        if self.is_square is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to not be square."
            )
        if is_operator(rhs):
            left: Any = self.adjoint() if adjoint else self
            return left.inverse().matmul(rhs.adjoint() if adjoint_arg else rhs)
        with self._scope(name):
            given = ops.convert_to_tensor(rhs, name="rhs")
            self._check_dtype(given)
            rows = self.domain_dimension if adjoint else self.range_dimension
            self._check_sizes(rows, given.shape[-1 if adjoint_arg else -2])
            return self._solve(given, adjoint, adjoint_arg)

    def solvevec(self, rhs: Tensor, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The same for a vector."""
        with self._scope(name):
            given = ops.expand_dims(ops.convert_to_tensor(rhs, name="rhs"), -1)
            return ops.squeeze(self.solve(given, adjoint=adjoint), axis=-1)

    # measuring ----------------------------------------------------------------------------------

    def _square_only(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} not implemented for an operator that is not square.")

    def _determinant(self) -> Tensor:
        if self._can_use_cholesky():
            return ops.exp(self.log_abs_determinant())
        return decompositions.matrix_determinant(self.to_dense())

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant of each matrix."""
        self._square_only("Determinant")
        with self._scope(name):
            return self._determinant()

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            diag = diagonals.matrix_diag_part(decompositions.cholesky(self.to_dense()))
            return 2 * ops.reduce_sum(ops.log(diag), axis=[-1])
        return decompositions.slogdet(self.to_dense())[1]

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the determinant's absolute value."""
        self._square_only("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def _to_dense(self) -> Tensor:
        batch = self.batch_shape
        shape = batch.as_list() if batch.is_fully_defined() else self.batch_shape_tensor()
        columns = self.domain_dimension.value
        if columns is None:
            columns = self.domain_dimension_tensor()
        return self._matmul(
            eye(num_rows=columns, batch_shape=shape, dtype=self.dtype), False, False
        )

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix itself."""
        with self._scope(name):
            return self._to_dense()

    def _diag_part(self) -> Tensor:
        return diagonals.matrix_diag_part(self.to_dense())

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal."""
        with self._scope(name):
            return self._diag_part()

    def _trace(self) -> Tensor:
        return ops.reduce_sum(self.diag_part(), axis=-1)

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the main diagonal."""
        with self._scope(name):
            return self._trace()

    def add_to_tensor(self, x: Tensor, name: str = "add_to_tensor") -> Tensor:
        """The sum with a (batch of) matrix."""
        with self._scope(name):
            given = ops.convert_to_tensor(x, name="x")
            self._check_dtype(given)
            return self._add_to_tensor(given)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self.to_dense() + x

    # other operators ----------------------------------------------------------------------------

    def _adjoint(self) -> Any:
        from headrace.linear_operators.composed_operators import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self)

    def adjoint(self, name: str = "adjoint") -> Any:
        """The conjugate transpose, as an operator."""
        if self.is_self_adjoint is True:
            return self
        with self._scope(name):
            return self._adjoint()

    @property
    def H(self) -> Any:
        return self.adjoint()

    def _inverse(self) -> Any:
        from headrace.linear_operators.composed_operators import LinearOperatorInversion

        return LinearOperatorInversion(self)

    def inverse(self, name: str = "inverse") -> Any:
        """The inverse, as an operator."""
        if self.is_square is False:
            raise ValueError(
                "Cannot get the Inverse: This operator represents a non square matrix."
            )
        if self.is_non_singular is False:
            raise ValueError("Cannot get the Inverse: This operator represents a singular matrix.")
        with self._scope(name):
            return self._inverse()

    def _cholesky(self) -> Any:
        from headrace.linear_operators.dense_operators import LinearOperatorLowerTriangular

        return LinearOperatorLowerTriangular(
            decompositions.cholesky(self.to_dense()), is_non_singular=True
        )

    def cholesky(self, name: str = "cholesky") -> Any:
        """The Cholesky factor, as an operator."""
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        with self._scope(name):
            return self._cholesky()

    # checks -------------------------------------------------------------------------------------

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails if a matrix is singular."""
        with self._scope(name):
            return self._assert_non_singular()

    def _assert_non_singular(self) -> Any:
        values: Any = decompositions.svd(self.to_dense(), compute_uv=False)
        ratio = values[..., -1] / values[..., 0]
        return ops.assert_less(
            ops.constant(1e-6, ratio.dtype), ratio, message="Singular matrix encountered"
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails if a matrix is not positive definite."""
        with self._scope(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self) -> Tensor:
        return decompositions.cholesky(self.to_dense())

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails if a matrix differs from its adjoint."""
        with self._scope(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self) -> Any:
        dense = self.to_dense()
        return ops.assert_equal(
            dense, adjoint_of(dense), message="Matrix was not equal to its adjoint."
        )


def as_matrix(value: TensorLike, name: str) -> Tensor:
    """A tensor, or a variable as it is."""
    made: Tensor = ops.convert_to_tensor(value, name=name)
    return made
