"""The Beta and Dirichlet distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    ScalarDistribution,
    gen_new_seed,
)
from headrace.distributions.divergences import RegisterKL
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import fill, ones, ones_like
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.assertions import (
    assert_less,
    assert_near,
    assert_positive,
    assert_rank_at_least,
    assert_same_float_dtype,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_set_diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.math.binary import xlogy
from headrace.ops.math.comparison import logical_and
from headrace.ops.math.reductions import reduce_all, reduce_sum
from headrace.ops.math.special import betainc, digamma, lbeta, lgamma
from headrace.ops.math.unary import log1p, rsqrt
from headrace.ops.nn.activations import softplus
from headrace.ops.random.gamma_poisson import random_gamma

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.shapes import TensorShape

__all__ = ["Beta", "BetaWithSoftplusConcentration", "Dirichlet"]


_POSITIVE = "Concentration parameter must be positive."


class Beta(ScalarDistribution):
    """The beta distribution: density proportional to x^(concentration1-1) (1-x)^(concentration0-1)
    between 0 and 1.
    """

    _parameter_names = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[concentration1, concentration0]) as name:
            self._concentration1 = _positive(concentration1, "concentration1", validate_args)
            self._concentration0 = _positive(concentration0, "concentration0", validate_args)
            assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total_concentration = self._concentration1 + self._concentration0
        parents = [self._concentration1, self._concentration0, self._total_concentration]
        dtype = parents[2].dtype
        super().__init__(
            dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, parents, name
        )

    @property
    def concentration1(self) -> Tensor:
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        return self._concentration0

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both."""
        return self._total_concentration

    def _batch_shape(self) -> TensorShape:
        return self.total_concentration.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self.total_concentration)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        one = ones_like(self.total_concentration, dtype=self.dtype) * self.concentration1
        other = ones_like(self.total_concentration, dtype=self.dtype) * self.concentration0
        first = random_gamma([n], one, dtype=self.dtype, seed=seed)
        second = random_gamma([n], other, dtype=self.dtype, seed=gen_new_seed(seed, "beta"))
        return first / (first + second)

    def _log_normalization(self) -> Tensor:
        total = lgamma(self.total_concentration)
        return lgamma(self.concentration1) + lgamma(self.concentration0) - total

    def _log_prob(self, x: Tensor) -> Tensor:
        if self.validate_args:
            one = ones([], self.dtype)
            above = assert_positive(x, message="sample must be positive")
            below = assert_less(x, one, message="sample must be less than `1`.")
            x = with_dependencies([above, below], x)
        density = xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * log1p(-x)
        return density - self._log_normalization()

    def _cdf(self, x: Tensor) -> Tensor:
        return betainc(self.concentration1, self.concentration0, x)

    def _entropy(self) -> Tensor:
        return (
            self._log_normalization()
            - (self.concentration1 - 1.0) * digamma(self.concentration1)
            - (self.concentration0 - 1.0) * digamma(self.concentration0)
            + (self.total_concentration - 2.0) * digamma(self.total_concentration)
        )

    def _mean(self) -> Tensor:
        return self._concentration1 / self._total_concentration

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        if self.allow_nan_stats:
            kind = self.dtype.as_numpy_dtype
            nan = fill(self.batch_shape_tensor(), kind(np.nan), name="nan")
            defined = logical_and(self.concentration1 > 1.0, self.concentration0 > 1.0)
            return where_v2(defined, mode, nan)
        one = ones([], dtype=self.dtype)
        checks = [
            assert_less(one, c, message=f"Mode undefined for {n} <= 1.")
            for n, c in zip(self._parameter_names, self._tensors(), strict=True)
        ]
        return with_dependencies(checks, mode)


def _positive(value: TensorLike, name: str, validate_args: bool) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    if not validate_args:
        return tensor
    return with_dependencies([assert_positive(tensor, message=_POSITIVE)], tensor)


class BetaWithSoftplusConcentration(Beta):
    """Beta with ``softplus`` of both parameters."""

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BetaWithSoftplusConcentration",
    ) -> None:
        with name_scope(name, values=[concentration1, concentration0]) as scope:
            c1 = softplus(concentration1, name="softplus_concentration1")
            c0 = softplus(concentration0, name="softplus_concentration0")
            super().__init__(c1, c0, validate_args, allow_nan_stats, scope)
        self._parameters.update(
            concentration1=concentration1, concentration0=concentration0, name=name
        )


@RegisterKL(Beta, Beta)
def _kl_beta_beta(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    values = [*a._graph_parents, *b._graph_parents]
    with name_scope(name, "kl_beta_beta", values=values):
        return (
            b._log_normalization()
            - a._log_normalization()
            - digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )


class Dirichlet(Distribution):
    """Vectors of positive numbers that sum to one.

    ``concentration`` is [..., K], positive; the leading axes are independent distributions. A
    sample has the shape ``sample_shape + concentration.shape``. ``validate_args`` checks parameters
    and values at run time; ``allow_nan_stats=False`` makes an undefined mode an error instead of
    NaN.

        tf.distributions.Dirichlet([1.0, 3.0]).mean()  # [0.25, 0.75]
    """

    def __init__(
        self,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[concentration]) as name:
            self._concentration = self._checked_concentration(concentration, validate_args)
            self._total_concentration = reduce_sum(self._concentration, -1)
        parents = [self._concentration, self._total_concentration]
        super().__init__(
            parents[0].dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            parents,
            name,
        )

    @staticmethod
    def _checked_concentration(concentration: TensorLike, validate_args: bool) -> Tensor:
        tensor = convert_to_tensor(concentration, name="concentration")
        if not validate_args:
            return tensor
        rank = assert_rank_at_least(
            tensor, 1, message="Concentration parameter must have >=1 dimensions."
        )
        two = assert_less(
            1, shape_of(tensor)[-1], message="Concentration parameter must have event_size >= 2."
        )
        return with_dependencies([assert_positive(tensor, message=_POSITIVE), rank, two], tensor)

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """The sum over the last axis."""
        return self._total_concentration

    def _batch_shape(self) -> TensorShape:
        return self.total_concentration.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self.total_concentration)

    def _event_shape(self) -> TensorShape:
        return self.concentration.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self.concentration)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: TensorLike) -> Tensor:
        if self.validate_args:
            positive = assert_positive(x, message="samples must be positive")
            sums = assert_near(
                ones([], dtype=self.dtype),
                reduce_sum(x, -1),
                message="sample last-dimension must sum to `1`",
            )
            x = with_dependencies([positive, sums], convert_to_tensor(x))
        return reduce_sum(xlogy(self.concentration - 1.0, x), -1) - lbeta(self.concentration)

    def _entropy(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        inner = reduce_sum((self.concentration - 1.0) * digamma(self.concentration), axis=-1)
        total = self.total_concentration
        return lbeta(self.concentration) + (total - k) * digamma(total) - inner

    def _mean(self) -> Tensor:
        return self.concentration / self.total_concentration[..., None]

    def _scale_term(self) -> Tensor:
        return rsqrt(1.0 + self.total_concentration[..., None])

    def _variance(self) -> Tensor:
        scale = self._scale_term()
        x = scale * self._mean()
        return x * (scale - x)

    def _covariance(self) -> Tensor:
        x = self._scale_term() * self._mean()
        return matrix_set_diag(-matmul(x[..., None], x[..., None, :]), self._variance())

    def _mode(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        mode = (self.concentration - 1.0) / (self.total_concentration[..., None] - k)
        if self.allow_nan_stats:
            nan = fill(shape_of(mode), self.dtype.as_numpy_dtype(np.nan), name="nan")
            defined = reduce_all(self.concentration > 1.0, axis=-1, keepdims=True)
            return where_v2(defined, mode, nan)
        check = assert_less(
            ones([], self.dtype),
            self.concentration,
            message="Mode undefined when any concentration <= 1",
        )
        return with_dependencies([check], mode)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_dirichlet_dirichlet", values=[a.concentration, b.concentration]):
        total = digamma(reduce_sum(a.concentration, axis=-1, keepdims=True))
        slope = digamma(a.concentration) - total
        inner = reduce_sum((a.concentration - b.concentration) * slope, axis=-1)
        return inner - lbeta(a.concentration) + lbeta(b.concentration)
