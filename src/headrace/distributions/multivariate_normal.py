"""Normal vectors: ``loc + scale @ z`` with independent standard normal ``z``.

The scale is a diagonal or a lower triangular matrix; both offer the few operations that the
distribution needs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from headrace.distributions.divergences import RegisterKL
from headrace.ops.array.array_shape import matrix_transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.broadcast_shapes import broadcast_static_shape
from headrace.ops.array.filling import ones, ones_like, zeros_like
from headrace.ops.array.joining import concat
from headrace.ops.control.assertions import (
    assert_equal,
    assert_non_negative,
    assert_none_equal,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.decompositions import cholesky
from headrace.ops.linalg.diagonals import (
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
)
from headrace.ops.linalg.matmul import matmul
from headrace.ops.linalg.solving import matrix_triangular_solve
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp, log, sqrt, square
from headrace.ops.nn.activations import softplus
from headrace.ops.random.random_ops import random_normal

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "MultivariateNormalBase",
    "MultivariateNormalDiag",
    "MultivariateNormalDiagWithSoftplusScale",
    "MultivariateNormalFullCovariance",
    "MultivariateNormalTriL",
    "Triangle",
    "diagonal_scale",
]


class _Diagonal:
    """A diagonal matrix, by its diagonal."""

    def __init__(self, diag: Tensor) -> None:
        self.diag = diag

    @property
    def shape(self) -> TensorShape:
        return self.diag.shape.concatenate(self.diag.shape[-1:])

    dtype = property(lambda self: self.diag.dtype)

    def diag_part(self) -> Tensor:
        return self.diag

    def to_dense(self) -> Tensor:
        return matrix_diag(self.diag)

    def matvec(self, x: TensorLike) -> Tensor:
        return self.diag * x

    def solvevec(self, x: TensorLike) -> Any:
        return x / self.diag

    def solve_matrix(self, dense: Tensor, right: Tensor) -> Tensor:
        """``right`` divided by the matrix, which ``dense`` is written out."""
        return matrix_triangular_solve(dense, right)

    def log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(abs_of(self.diag)), -1)

    def variance(self) -> Any:
        return square(self.diag)

    def stddev(self) -> Any:
        return abs_of(self.diag)

    def covariance(self) -> Tensor:
        return matrix_diag(square(self.diag))


class Triangle:
    """A lower triangular matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    shape = property(lambda self: self.matrix.shape)
    dtype = property(lambda self: self.matrix.dtype)

    def diag_part(self) -> Tensor:
        return matrix_diag_part(self.matrix)

    def to_dense(self) -> Any:
        return self.matrix

    def _matrix_for(self, x: Tensor) -> Any:
        """The matrix with the leading axes of ``x``."""
        return self.matrix * ones_like(x[..., None])

    def matvec(self, x: Tensor) -> Tensor:
        return matmul(self._matrix_for(x), x[..., None])[..., 0]

    def solvevec(self, x: Tensor) -> Tensor:
        return matrix_triangular_solve(self._matrix_for(x), x[..., None])[..., 0]

    def solve_matrix(self, dense: Tensor, right: Tensor) -> Tensor:
        """``right`` divided by the matrix, which ``dense`` is written out."""
        return matrix_triangular_solve(dense, right)

    def log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(abs_of(self.diag_part())), -1)

    def covariance(self) -> Tensor:
        return matmul(self.matrix, self.matrix, transpose_b=True)

    def variance(self) -> Tensor:
        return matrix_diag_part(self.covariance())

    def stddev(self) -> Any:
        return sqrt(self.variance())


class MultivariateNormalBase(Distribution):
    """``scale`` is one of the classes above, ``loc`` a tensor or None (zero)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool,
        allow_nan_stats: bool,
        given: dict[str, Any],
        name: str,
    ) -> None:
        self._loc, self._scale = loc, scale
        parents = [scale.to_dense() if isinstance(scale, Triangle) else scale.diag]
        parents += [] if loc is None else [loc]
        super().__init__(
            scale.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            parents,
            name,
        )

    @property
    def loc(self) -> Any:
        """The mean, or None for zero."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The matrix that standard normal vectors are multiplied with."""
        return self._scale

    def _center(self) -> Tensor:
        diag = self.scale.diag_part()
        return zeros_like(diag) if self._loc is None else self._loc

    def _vector_shape(self) -> TensorShape:
        """Batch and event shape, as far as known."""
        diag = self.scale.shape[:-1]
        return diag if self._loc is None else broadcast_static_shape(diag, self._loc.shape)

    def _batch_shape(self) -> TensorShape:
        return self._vector_shape()[:-1]

    def _event_shape(self) -> TensorShape:
        return self._vector_shape()[-1:]

    def _dynamic(self) -> Tensor:
        return shape_of(self.scale.diag_part() + self._center())

    def _batch_shape_tensor(self) -> Tensor:
        return self._dynamic()[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return self._dynamic()[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        drawn = random_normal(shape, dtype=self.dtype, seed=seed)
        if self.validate_args:
            diag = self.scale.diag_part()
            message = "Singular operator: the diagonal of the scale has zeros"
            check = assert_none_equal(diag, zeros_like(diag), message=message)
            drawn = with_dependencies([check], drawn)
        return self.scale.matvec(drawn) + self._center()

    def _log_prob(self, x: TensorLike) -> Any:
        z = self.scale.solvevec(x - self._center())
        normal = reduce_sum(-0.5 * square(z) - 0.5 * math.log(2.0 * math.pi), -1)
        return normal - self.scale.log_abs_determinant()

    def _prob(self, x: Tensor) -> Tensor:
        return exp(self._log_prob(x))

    def _entropy(self) -> Any:
        one = ones(concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0), self.dtype)
        each = reduce_sum(one * (0.5 * math.log(2.0 * math.pi * math.e)), -1)
        return each + self.scale.log_abs_determinant()

    def _mean(self) -> Tensor:
        return self._center() + zeros_like(self.scale.diag_part())

    def _mode(self) -> Tensor:
        return self._mean()

    def _variance(self) -> Any:
        return self.scale.variance()

    def _stddev(self) -> Any:
        return self.scale.stddev()

    def _covariance(self) -> Any:
        return self.scale.covariance()


@RegisterKL(MultivariateNormalBase, MultivariateNormalBase)
def _kl_normal(
    a: MultivariateNormalBase, b: MultivariateNormalBase, name: str | None = None
) -> Any:
    with name_scope(name, "kl_mvn", values=[*a._graph_parents, *b._graph_parents]):
        shift = b.scale.solvevec(b._center() - a._center())
        if isinstance(a.scale, _Diagonal) and isinstance(b.scale, _Diagonal):
            ratio = reduce_sum(square(a.scale.diag / b.scale.diag), -1)
        else:
            left = b.scale.to_dense() + zeros_like(a.scale.to_dense())
            right = a.scale.to_dense() + zeros_like(left)
            ratio = reduce_sum(square(b.scale.solve_matrix(left, right)), [-2, -1])
        size = reduce_sum(ones_like(shift), -1)
        determinants = b.scale.log_abs_determinant() - a.scale.log_abs_determinant()
        return determinants + 0.5 * (-size + ratio + reduce_sum(square(shift), -1))


def diagonal_scale(
    loc: TensorLike,
    scale_diag: TensorLike | None,
    multiplier: TensorLike | None,
    validate_args: bool,
) -> tuple[Any, _Diagonal]:
    if loc is None and scale_diag is None:
        raise ValueError("Must specify at least one of loc and scale_diag.")
    loc = None if loc is None else convert_to_tensor(loc, name="loc")
    dtype = loc.dtype if loc is not None else None
    if scale_diag is not None:
        diag = convert_to_tensor(scale_diag, dtype, "scale_diag")
        if diag.shape.ndims == 0:
            raise ValueError("scale_diag must have at least 1 dimension")
        if multiplier is not None:
            diag += convert_to_tensor(multiplier, diag.dtype, "scale_identity_multiplier")[
                ..., None
            ]
    else:
        one = 1.0 if multiplier is None else multiplier
        tensor = convert_to_tensor(one, dtype, "scale_identity_multiplier")
        if validate_args:
            tensor = with_dependencies([assert_non_negative(tensor)], tensor)
        diag = tensor[..., None] * ones(shape_of(loc)[-1:], tensor.dtype)
    return loc, _Diagonal(diag)


class MultivariateNormalDiag(MultivariateNormalBase):
    """Independent normal variables with standard deviations ``scale_diag`` (plus
    ``scale_identity_multiplier``).
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        given = dict(locals())
        values = [loc, scale_diag, scale_identity_multiplier]
        with name_scope(name, values=values) as name:
            loc, scale = diagonal_scale(loc, scale_diag, scale_identity_multiplier, validate_args)
        super().__init__(loc, scale, validate_args, allow_nan_stats, given, name)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """MultivariateNormalDiag with ``softplus(scale_diag)``."""

    def __init__(
        self,
        loc: TensorLike,
        scale_diag: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[scale_diag]) as scope:
            super().__init__(
                loc,
                softplus(scale_diag),
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                name=scope,
            )
        del given["self"], given["__class__"]
        self._parameters = given


class MultivariateNormalTriL(MultivariateNormalBase):
    """Normal vectors with a lower triangular scale."""

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[loc, scale_tril]) as name:
            scale: Any
            if loc is None and scale_tril is None:
                raise ValueError("Must specify one or both of `loc`, `scale_tril`.")
            if scale_tril is None:
                loc, scale = diagonal_scale(loc, None, None, validate_args)
            else:
                matrix: Any = convert_to_tensor(scale_tril, name="scale_tril")
                matrix = matrix_set_diag(matrix_band_part(matrix, -1, 0), matrix_diag_part(matrix))
                loc = None if loc is None else convert_to_tensor(loc, matrix.dtype, "loc")
                scale = Triangle(matrix)
        super().__init__(loc, scale, validate_args, allow_nan_stats, given, name)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """Normal vectors with a covariance matrix."""

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[loc, covariance_matrix]) as scope:
            factor = None
            if covariance_matrix is not None:
                matrix = convert_to_tensor(
                    covariance_matrix, preferred_dtype=dtypes.float32, name="covariance_matrix"
                )
                if validate_args:
                    turned = matrix_transpose(matrix)
                    check = assert_equal(matrix, turned, message="Matrix was not symmetric.")
                    matrix = with_dependencies([check], matrix)
                factor = cholesky(matrix)
            super().__init__(loc, factor, validate_args, allow_nan_stats, scope)
        del given["self"], given["__class__"]
        self._parameters = given
