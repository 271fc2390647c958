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
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    ScalarDistribution,
)
from headrace.distributions.divergences import RegisterKL
from headrace.distributions.logits import check_counts
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.filling import fill, ones
from headrace.ops.array.joining import concat
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.assertions import (
    assert_less,
    assert_positive,
    assert_same_float_dtype,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.binary import xlogy
from headrace.ops.math.comparison import equal, logical_and
from headrace.ops.math.special import digamma, igamma, igammac, lgamma
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp, floor, log, sqrt, square
from headrace.ops.nn.activations import softplus
from headrace.ops.random.gamma_poisson import random_gamma, random_poisson
from headrace.ops.random.random_ops import random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike

__all__ = [
    "Chi2",
    "Chi2WithAbsDf",
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
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
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
    """The gamma distribution: density proportional to x^(concentration-1) exp(-rate x).

    ``concentration`` and ``rate`` are positive and broadcast; the mean is ``concentration / rate``.
    ``validate_args`` checks parameters and values at run time; ``allow_nan_stats=False`` makes an
    undefined mode an error instead of NaN. Samples have gradients with respect to both.

        tf.distributions.Gamma(3.0, 2.0).mean()  # 1.5
    """

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
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

    def _entropy(self) -> Tensor:
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
        concentration: TensorLike,
        rate: TensorLike,
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
        concentration: TensorLike,
        rate: TensorLike,
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

    def _entropy(self) -> Tensor:
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
        concentration: TensorLike,
        rate: TensorLike,
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
    """The exponential distribution: density ``rate * exp(-rate * x)`` for ``x > 0``.

    ``rate`` is positive, of any shape: each element is a distribution, whose mean is ``1 / rate``.
    ``validate_args`` checks parameters and values at run time.

        tf.distributions.Exponential(2.0).mean()  # 0.5
    """

    def __init__(
        self,
        rate: TensorLike,
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

    def _sample_n(self, n: object, seed: int | None = None) -> Tensor:
        shape = concat([[n], shape_of(self.rate)], 0)
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        return -log(random_uniform(shape, least, 1.0, self.dtype, seed)) / self.rate


class ExponentialWithSoftplusRate(Exponential):
    """Exponential with ``softplus(rate)``."""

    def __init__(
        self,
        rate: TensorLike,
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
        df: TensorLike,
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
        df: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Chi2WithAbsDf",
    ) -> None:
        with name_scope(name, values=[df]) as scope:
            whole = floor(abs_of(df, name="abs_df"), name="floor_abs_df")
            super().__init__(whole, validate_args, allow_nan_stats, scope)
        self._parameters.update(df=df, name=name)


class Poisson(ScalarDistribution):
    """Counts with a rate, given as it is or by its logarithm.

    ``interpolate_nondiscrete``: the density between whole numbers is interpolated (else 0).
    """

    _parameter_names = ("rate",)

    def __init__(
        self,
        rate: object = None,
        log_rate: object = None,
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
            x = check_counts(x)
        density = self._log_rate * x - lgamma(1.0 + x)
        if not self.interpolate_nondiscrete:
            whole = logical_and(x >= 0.0, equal(floor(x), x))
            density = where_v2(whole, density, constant_like(-np.inf, self.dtype))
        return density - self.rate

    def _cdf(self, x: Tensor) -> Tensor:
        if self.validate_args:
            x = check_counts(x)
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
