"""``WishartCholesky`` and ``WishartFull``: distributions of covariance matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    gen_new_seed,
)
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import assert_equal, assert_less_equal, assert_positive
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.decompositions import cholesky
from headrace.ops.linalg.diagonals import matrix_band_part, matrix_diag_part, matrix_set_diag
from headrace.ops.linalg.solving import matrix_triangular_solve
from headrace.ops.math.special import digamma, lgamma
from headrace.ops.random.gamma_poisson import random_gamma

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["WishartCholesky", "WishartFull"]


class _Wishart(Distribution):
    """Sums of ``df`` outer products of normal vectors; ``low`` is the scale's Cholesky factor."""

    def _build(
        self,
        df: Any,
        low: Any,
        matrices: bool,
        validate_args: bool,
        allow_nan_stats: bool,
        given: dict[str, Any],
        name: str,
    ) -> None:
        self._cholesky = matrices
        self._low: Any = low
        rank = low.shape.ndims
        known = None if rank is None else low.shape.as_list()[-1]
        with name_scope("init", values=[df]):
            self._size: Any = ops.cast(ops.shape(low)[-1] if known is None else known, low.dtype)
            given_df: Any = convert_to_tensor(df, low.dtype, "df")
            text = "Degrees of freedom (df) cannot be less than dimension of scale matrix."
            static = static_value(given_df)
            if known is not None and static is not None and (static < known).any():
                raise ValueError(f"{text} df = {static}, dimension = {known}")
            checks = []
            if validate_args:
                checks.append(assert_less_equal(self._size, given_df, message=text))
                shape = ops.shape(low)
                text = "scale must be square"
                square = assert_equal(shape[-2], shape[-1], message=text)
                self._low = low = with_dependencies([square], low)
            self._df: Any = with_dependencies(checks, given_df) if checks else given_df
        Distribution.__init__(
            self,
            low.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            [self._df, low],
            name,
        )

    @property
    def df(self) -> Any:
        """Degrees of freedom."""
        return self._df

    @property
    def dimension(self) -> Any:
        """Rows of the matrices."""
        return self._size

    @property
    def cholesky_input_output_matrices(self) -> bool:
        """Whether values and samples are Cholesky factors."""
        return self._cholesky

    @property
    def scale_operator(self) -> Any:
        """The Cholesky factor of the scale, as a linear operator."""
        from headrace.linear_operators.dense_operators import LinearOperatorLowerTriangular

        return LinearOperatorLowerTriangular(
            self._low, is_non_singular=True, is_positive_definite=True, is_square=True
        )

    def scale(self) -> Tensor:
        """The scale matrix."""
        return self._low if self._cholesky else self._square()

    def _square(self) -> Tensor:
        return ops.matmul(self._low, self._low, transpose_b=True)

    def _batch_shape(self) -> Any:
        return self._low.shape[:-2]

    def _batch_shape_tensor(self) -> Tensor:
        return ops.shape(self._low)[:-2]

    def _event_shape(self) -> Any:
        return self._low.shape[-2:]

    def _event_shape_tensor(self) -> Tensor:
        return ops.shape(self._low)[-2:]

    def _sequence(self, a: Any) -> Any:
        """a - i / 2 for the rows i."""
        count = ops.cast(self._size, "int32")
        end = 0.5 - 0.5 * self._size
        return ops.lin_space(ops.zeros([], self.dtype), end, count) + a[..., None]

    def _log_det_scale(self) -> Tensor:
        return ops.reduce_sum(ops.log(ops.abs(matrix_diag_part(self._low))), -1)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        batch, event = self.batch_shape_tensor(), self.event_shape_tensor()
        shape = ops.concat([[n], batch, event], 0)
        normal = ops.random_normal(shape, dtype=self.dtype, seed=seed)
        wide = self._df * ops.ones(batch, self.dtype)
        squares = random_gamma(
            [n],
            self._sequence(0.5 * wide),
            0.5,
            self.dtype,
            gen_new_seed(seed, "wishart"),
        )
        x: Tensor = matrix_set_diag(matrix_band_part(normal, -1, 0), ops.sqrt(squares))
        x = ops.matmul(self._low * ops.ones_like(x), x)
        return x if self._cholesky else ops.matmul(x, x, adjoint_b=True)

    def _log_prob(self, x: Tensor) -> Any:
        root = x if self._cholesky else cholesky(x)
        solved = matrix_triangular_solve(self._low * ops.ones_like(root), root)
        trace = ops.reduce_sum(ops.square(solved), [-2, -1])
        half = ops.reduce_sum(ops.log(matrix_diag_part(root)), -1)
        return (self._df - self._size - 1.0) * half - 0.5 * trace - self.log_normalization()

    def log_normalization(self, name: str = "log_normalization") -> Any:
        """The logarithm of what the density is divided by."""
        with self._name_scope(name):
            half = 0.5 * self._df
            return (
                self._df * self._log_det_scale()
                + half * self._size * math.log(2.0)
                + self._multi_lgamma(half)
            )

    def mean_log_det(self, name: str = "mean_log_det") -> Any:
        """The mean of the logarithm of the determinant."""
        with self._name_scope(name):
            return (
                self._multi_digamma(0.5 * self._df)
                + self._size * math.log(2.0)
                + 2 * self._log_det_scale()
            )

    def _multi_lgamma(self, a: object) -> Any:
        p = self._size
        total = ops.reduce_sum(lgamma(self._sequence(a)), -1)
        return 0.25 * p * (p - 1.0) * math.log(math.pi) + total

    def _multi_digamma(self, a: object) -> Tensor:
        return ops.reduce_sum(digamma(self._sequence(a)), -1)

    def _entropy(self) -> Any:
        more, half = 0.5 * self._size + 0.5, 0.5 * self._df
        return (
            self._size * (half + more * math.log(2.0))
            + 2 * more * self._log_det_scale()
            + self._multi_lgamma(half)
            + (more - half) * self._multi_digamma(half)
        )

    def _mean(self) -> Any:
        if self._cholesky:
            return ops.sqrt(self._df) * self._low
        return self._df * self._square()

    def _variance(self) -> Tensor:
        x = ops.sqrt(self._df) * self._square()
        d: Any = matrix_diag_part(x)
        v = ops.square(x) + ops.matmul(d[..., None], d[..., None], adjoint_b=True)
        return cholesky(v) if self._cholesky else v

    def _stddev(self) -> Tensor:
        if self._cholesky:
            raise ValueError(
                "Computing std. dev. when is cholesky_input_output_matrices=True "
                "does not make sense."
            )
        return cholesky(self.variance())

    def _mode(self) -> Any:
        s = self._df - self._size - 1.0
        s = ops.where_v2(s < 0.0, ops.constant(float("nan"), dtype=self.dtype), s)
        if self._cholesky:
            return ops.sqrt(s) * self._low
        return s * self._square()


class WishartCholesky(_Wishart):
    """Given the Cholesky factor of the scale."""

    def __init__(
        self,
        df: TensorLike,
        scale: TensorLike,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartCholesky",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[scale]) as name:
            low: Any = convert_to_tensor(scale)
            if validate_args:
                size = ops.shape(low)
                diagonal = matrix_diag_part(low)
                checks = [
                    assert_positive(diagonal, message="scale must be positive definite"),
                    assert_equal(size[-1], size[-2], message="scale must be square"),
                ]
                low = with_dependencies(checks, low)
            self._build(
                df, low, cholesky_input_output_matrices, validate_args, allow_nan_stats, given, name
            )


class WishartFull(_Wishart):
    """Given the scale matrix."""

    def __init__(
        self,
        df: TensorLike,
        scale: TensorLike,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartFull",
    ) -> None:
        given = dict(locals())
        with name_scope(name) as name:
            matrix: Any = convert_to_tensor(scale)
            checks = []
            if validate_args:
                text = "scale must be symmetric"
                turned = ops.matrix_transpose(matrix)
                checks.append(assert_equal(matrix, turned, message=text))
            with control_dependencies(checks):
                low: Any = cholesky(matrix)
            self._build(
                df, low, cholesky_input_output_matrices, validate_args, allow_nan_stats, given, name
            )
