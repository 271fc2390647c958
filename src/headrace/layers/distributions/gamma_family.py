"""Distributions made of gamma variables: Gamma, InverseGamma, Chi2, Exponential, Beta, Dirichlet,
Poisson.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.layers.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ScalarDistribution,
    gen_new_seed,
)
from headrace.layers.distributions.divergences import RegisterKL
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import fill, ones, ones_like
from headrace.ops.array.joining import concat
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.assertions import (
    assert_less,
    assert_near,
    assert_non_negative,
    assert_positive,
    assert_rank_at_least,
    assert_same_float_dtype,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_set_diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.math.binary import xlogy
from headrace.ops.math.comparison import equal, logical_and
from headrace.ops.math.reductions import reduce_all, reduce_sum
from headrace.ops.math.special import betainc, digamma, igamma, igammac, lbeta, lgamma
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp, floor, log, log1p, rsqrt, sqrt, square
from headrace.ops.nn.activations import softplus
from headrace.ops.random.gamma_poisson import random_gamma, random_poisson
from headrace.ops.random.random_ops import random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.shapes import TensorShape

__all__ = [
    "Beta",
    "BetaWithSoftplusConcentration",
    "Chi2",
    "Chi2WithAbsDf",
    "Dirichlet",
    "Exponential",
    "ExponentialWithSoftplusRate",
    "Gamma",
    "GammaWithSoftplusConcentrationRate",
    "InverseGamma",
    "InverseGammaWithSoftplusConcentrationRate",
    "Poisson",
]


class _ConcentrationRate(ScalarDistribution):
    """Parameters ``concentration`` and ``rate``, both positive."""

    _parameter_names = ("concentration", "rate")
    _concentration: Tensor
    _rate: Tensor

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool, allow_nan_stats: bool, name: str
    ) -> None:
        given = {
            "concentration": concentration,
            "rate": rate,
            "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats,
            "name": name,
        }
        with name_scope(name, values=[concentration, rate]) as name:
            positive = [concentration, rate] if validate_args else []
            checks = [assert_positive(v) for v in positive]
            kept = self._keep(checks, concentration=concentration, rate=rate)
        super().__init__(
            kept[0].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, kept, name
        )

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def rate(self) -> Tensor:
        return self._rate

    def _checked(self, x: Tensor) -> Tensor:
        assert_same_float_dtype([x], dtype=self.dtype)
        return with_dependencies([assert_positive(x)], x) if self.validate_args else x

    def _defined_above(
        self, least: float, value: Tensor, what: str, missing: float = np.nan
    ) -> Tensor:
        """``value`` where the concentration exceeds ``least``; NaN or an error elsewhere."""
        if self.allow_nan_stats:
            kind = self.dtype.as_numpy_dtype
            nan = fill(self.batch_shape_tensor(), kind(missing), name="nan")
            return where_v2(self.concentration > least, value, nan)
        message = f"{what} not defined when any concentration <= {least:g}"
        bound = constant_like(least, self.dtype)
        check = assert_less(bound, self.concentration, message=message)
        return with_dependencies([check], value)


def constant_like(value: float, dtype: DTypeLike) -> Tensor:
    """A scalar of a type."""
    return convert_to_tensor(value, dtype)


class Gamma(_ConcentrationRate):
    """The gamma distribution: density proportional to x^(concentration-1) exp(-rate x)."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        super().__init__(concentration, rate, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return random_gamma([n], self.concentration, self.rate, self.dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._checked(x)
        density = xlogy(self.concentration - 1.0, x) - self.rate * x
        return density - (lgamma(self.concentration) - self.concentration * log(self.rate))

    def _cdf(self, x: Tensor) -> Tensor:
        return igamma(self.concentration, self.rate * self._checked(x))

    def _entropy(self) -> Any:
        c = self.concentration
        return c - log(self.rate) + lgamma(c) + (1.0 - c) * digamma(c)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self.concentration / square(self.rate)

    def _stddev(self) -> Any:
        return sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        return self._defined_above(1.0, (self.concentration - 1.0) / self.rate, "mode")


class GammaWithSoftplusConcentrationRate(Gamma):
    """Gamma with ``softplus`` of both parameters."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:
        with name_scope(name, values=[concentration, rate]) as scope:
            c = softplus(concentration, name="softplus_concentration")
            r = softplus(rate, name="softplus_rate")
            super().__init__(c, r, validate_args, allow_nan_stats, scope)
        self._parameters.update(concentration=concentration, rate=rate, name=name)


@RegisterKL(Gamma, Gamma)
def _kl_gamma_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    values = [a.concentration, a.rate, b.concentration, b.rate]
    with name_scope(name, "kl_gamma_gamma", values=values):
        return (
            (a.concentration - b.concentration) * digamma(a.concentration)
            + lgamma(b.concentration)
            - lgamma(a.concentration)
            + b.concentration * log(a.rate)
            - b.concentration * log(b.rate)
            + a.concentration * (b.rate / a.rate - 1.0)
        )


class InverseGamma(_ConcentrationRate):
    """One over a gamma variable."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ) -> None:
        super().__init__(concentration, rate, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return 1.0 / random_gamma([n], self.concentration, self.rate, self.dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._checked(x)
        density = -(1.0 + self.concentration) * log(x) - self.rate / x
        return density - (lgamma(self.concentration) - self.concentration * log(self.rate))

    def _cdf(self, x: Tensor) -> Tensor:
        return igammac(self.concentration, self.rate / self._checked(x))

    def _entropy(self) -> Any:
        c = self.concentration
        return c + log(self.rate) + lgamma(c) - (1.0 + c) * digamma(c)

    def _mean(self) -> Tensor:
        return self._defined_above(1.0, self.rate / (self.concentration - 1.0), "mean")

    def _variance(self) -> Tensor:
        c = self.concentration
        value = square(self.rate) / square(c - 1.0) / (c - 2.0)
        return self._defined_above(2.0, value, "variance")

    def _mode(self) -> Tensor:
        return self.rate / (1.0 + self.concentration)


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):
    """InverseGamma with ``softplus`` of both parameters."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGammaWithSoftplusConcentrationRate",
    ) -> None:
        with name_scope(name, values=[concentration, rate]) as scope:
            c = softplus(concentration, name="softplus_concentration")
            r = softplus(rate, name="softplus_rate")
            super().__init__(c, r, validate_args, allow_nan_stats, scope)
        self._parameters.update(concentration=concentration, rate=rate, name=name)


class Exponential(Gamma):
    """The exponential distribution with a rate."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        with name_scope(name, values=[rate]) as scope:
            given = convert_to_tensor(rate, name="rate")
        one = ones([], dtype=given.dtype)
        super().__init__(one, given, validate_args, allow_nan_stats, scope)
        self._graph_parents.append(self._rate)
        self._parameters.update(rate=rate, name=name)
        del self._parameters["concentration"]

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        return {"rate": convert_to_tensor(sample_shape, dtypes.int32)}

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return self._log_prob(value) - log(self.rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = concat([[n], shape_of(self.rate)], 0)
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        return -log(random_uniform(shape, least, 1.0, self.dtype, seed)) / self.rate


class ExponentialWithSoftplusRate(Exponential):
    """Exponential with ``softplus(rate)``."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:
        with name_scope(name, values=[rate]) as scope:
            positive = softplus(rate, name="softplus_rate")
            super().__init__(positive, validate_args, allow_nan_stats, scope)
        self._parameters.update(rate=rate, name=name)


class Chi2(Gamma):
    """The chi-squared distribution with ``df`` degrees of freedom."""

    def __init__(
        self,
        df: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Chi2",
    ) -> None:
        with name_scope(name, values=[df]) as scope:
            checks = [assert_positive(df)] if validate_args else []
            tensor = convert_to_tensor(df, name="df")
            self._df = with_dependencies(checks, tensor) if checks else tensor
        half = 0.5 * self._df
        rate = convert_to_tensor(0.5, self._df.dtype)
        super().__init__(half, rate, validate_args, allow_nan_stats, scope)
        self._parameters = {
            "df": df,
            "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats,
            "name": name,
        }

    @property
    def df(self) -> Tensor:
        return self._df

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        return {"df": convert_to_tensor(sample_shape, dtypes.int32)}


class Chi2WithAbsDf(Chi2):
    """Chi2 with ``floor(abs(df))``."""

    def __init__(
        self,
        df: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Chi2WithAbsDf",
    ) -> None:
        with name_scope(name, values=[df]) as scope:
            whole = floor(abs_of(df, name="abs_df"), name="floor_abs_df")
            super().__init__(whole, validate_args, allow_nan_stats, scope)
        self._parameters.update(df=df, name=name)


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

    def _batch_shape(self) -> Any:
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

    def _entropy(self) -> Any:
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


def _positive(value: Any, name: str, validate_args: bool) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    if not validate_args:
        return tensor
    return with_dependencies([assert_positive(tensor, message=_POSITIVE)], tensor)


class BetaWithSoftplusConcentration(Beta):
    """Beta with ``softplus`` of both parameters."""

    def __init__(
        self,
        concentration1: Any,
        concentration0: Any,
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
    """Vectors of positive numbers that sum to one."""

    def __init__(
        self,
        concentration: Any,
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

    def _event_shape(self) -> Any:
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

    def _entropy(self) -> Any:
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


class Poisson(ScalarDistribution):
    """Counts with a rate, given as it is or by its logarithm.

    ``interpolate_nondiscrete``: the density between whole numbers is interpolated (else 0).
    """

    _parameter_names = ("rate",)

    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        interpolate_nondiscrete: bool = True,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[rate]) as name:
            if (rate is None) == (log_rate is None):
                raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
            if log_rate is None:
                rate = convert_to_tensor(rate, name="rate")
                checks = [assert_positive(rate)] if validate_args else []
                rate = with_dependencies(checks, rate) if checks else rate
                log_rate = log(rate, name="log_rate")
            else:
                log_rate = convert_to_tensor(log_rate, name="log_rate")
                rate = exp(log_rate, name="rate")
            self._rate, self._log_rate = rate, log_rate
        self._interpolate_nondiscrete = interpolate_nondiscrete
        super().__init__(
            rate.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, [rate], name
        )

    @property
    def rate(self) -> Any:
        return self._rate

    @property
    def log_rate(self) -> Any:
        return self._log_rate

    @property
    def interpolate_nondiscrete(self) -> bool:
        return self._interpolate_nondiscrete

    def _log_prob(self, x: Tensor) -> Any:
        if self.validate_args:
            x = with_dependencies([assert_non_negative(x)], x)
        density = self._log_rate * x - lgamma(1.0 + x)
        if not self.interpolate_nondiscrete:
            whole = logical_and(x >= 0.0, equal(floor(x), x))
            density = where_v2(whole, density, constant_like(-np.inf, self.dtype))
        return density - self.rate

    def _cdf(self, x: Tensor) -> Tensor:
        safe = x if self.interpolate_nondiscrete else floor(x)
        found = igammac(1.0 + where_v2(safe < 0, 0.0 * safe, safe), self.rate)
        return where_v2(x < 0.0, 0.0 * found, found)

    def _mean(self) -> Any:
        return self.rate * 1.0

    def _variance(self) -> Any:
        return self.rate * 1.0

    def _mode(self) -> Tensor:
        return floor(self.rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return random_poisson(self.rate, [n], dtype=self.dtype, seed=seed)


@RegisterKL(Poisson, Poisson)
def _kl_poisson(a: Poisson, b: Poisson, name: str | None = None) -> Any:
    with name_scope(name, "kl_poisson_poisson", values=[a.rate, b.rate]):
        return a.rate * (a.log_rate - b.log_rate) - (a.rate - b.rate)
