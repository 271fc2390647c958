"""Distributions of real numbers with a location and a scale: Normal, Laplace, Logistic, Cauchy,
StudentT, HalfNormal, Uniform.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    ScalarDistribution,
    gen_new_seed,
)
from headrace.distributions.divergences import RegisterKL
from headrace.distributions.normal_functions import (
    log_cdf_laplace,
    log_ndtr,
    ndtr,
    ndtri,
)
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.broadcast_shapes import broadcast_dynamic_shape
from headrace.ops.array.filling import fill, ones, ones_like, zeros, zeros_like
from headrace.ops.array.joining import concat
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.assertions import assert_less, assert_positive
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.binary import squared_difference
from headrace.ops.math.comparison import greater, is_nan, less, logical_or
from headrace.ops.math.special import betainc, digamma, lbeta, lgamma
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import atan, exp, floor, log, log1p, rsqrt, sigmoid, sign, square, tan
from headrace.ops.nn.activations import softplus
from headrace.ops.random.gamma_poisson import random_gamma
from headrace.ops.random.random_ops import random_normal, random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike


__all__ = [
    "Cauchy",
    "Laplace",
    "LaplaceWithSoftplusScale",
    "Logistic",
    "Normal",
    "NormalWithSoftplusScale",
    "StudentT",
    "StudentTWithAbsDfSoftplusScale",
    "Uniform",
]


class _LocationScale(ScalarDistribution):
    """``loc + scale * X`` for a standard X."""

    _parameter_names = ("loc", "scale")
    _loc: Tensor
    _scale: Tensor

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
    ) -> None:
        given = {
            "loc": loc,
            "scale": scale,
            "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats,
            "name": name,
        }
        with name_scope(name, values=[loc, scale]) as name:
            checks = [assert_positive(scale)] if validate_args else []
            kept = self._keep(checks, loc=loc, scale=scale)
        super().__init__(
            kept[1].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, kept, name
        )

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _unit(self, n: Array, seed: int | None) -> Tensor:
        """Uniform numbers in (0, 1), never 0."""
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        return random_uniform(self._full_shape(n), least, 1.0, self.dtype, seed)


class Normal(_LocationScale):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``.

    ``loc`` and ``scale`` broadcast; each element is a distribution. ``validate_args`` checks that
    the scale is positive. Samples are ``loc + scale * noise``, so gradients flow through both.

        tf.distributions.Normal(0.0, 2.0).cdf([0.0])  # [0.5]
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_normal(self._full_shape(n), 0.0, 1.0, self.loc.dtype, seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, x: Tensor) -> Any:
        return -0.5 * square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + log(self.scale))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return log_ndtr(self._z(x))

    def _cdf(self, x: Tensor) -> Tensor:
        return ndtr(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return log_ndtr(-self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return ndtr(-self._z(x))

    def _quantile(self, p: Tensor) -> Tensor:
        inverse = ndtri(p)
        with name_scope("reconstruct", values=[inverse]):
            return inverse * self.scale + self.loc

    def _entropy(self) -> Tensor:
        return 0.5 * math.log(2.0 * math.pi * math.e) + log(self._stddev())

    def _mean(self) -> Tensor:
        return self.loc * ones_like(self.scale)

    def _stddev(self) -> Tensor:
        return self.scale * ones_like(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _z(self, x: Tensor) -> Tensor:
        with name_scope("standardize", values=[x]):
            return (x - self.loc) / self.scale


class NormalWithSoftplusScale(Normal):
    """Normal with ``softplus(scale)``."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        with name_scope(name, values=[scale]) as scope:
            positive = softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters.update(scale=scale, name=name)


@RegisterKL(Normal, Normal)
def _kl_normal_normal(a: Normal, b: Normal, name: str | None = None) -> Any:
    with name_scope(name, "kl_normal_normal", [a.loc, b.loc]):
        one, two, half = (constant(v, dtype=a.dtype) for v in (1, 2, 0.5))
        a_squared, b_squared = square(a.scale), square(b.scale)
        ratio = a_squared / b_squared
        distance = squared_difference(a.loc, b.loc) / (two * b_squared)
        return distance + half * (ratio - one - log(ratio))


class Laplace(_LocationScale):
    """The Laplace distribution: density exp(-|x - loc| / scale) / (2 scale).

    ``loc`` and ``scale`` broadcast; the deviation is ``sqrt(2) * scale``. ``validate_args`` checks
    that the scale is positive. Samples have gradients with respect to both.

        tf.distributions.Laplace(0.0, 1.0).prob(0.0)  # 0.5
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        kind = self.dtype.as_numpy_dtype
        least = np.nextafter(kind(-1.0), kind(0.0))
        u = random_uniform(self._full_shape(n), least, 1.0, self.dtype, seed)
        return self.loc - self.scale * sign(u) * log1p(-abs_of(u))

    def _log_prob(self, x: Tensor) -> Any:
        return -abs_of(self._z(x)) - (math.log(2.0) + log(self.scale))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return log_cdf_laplace(-self._z(x))

    def _cdf(self, x: Tensor) -> Any:
        z = self._z(x)
        return 0.5 + 0.5 * sign(z) * (1.0 - exp(-abs_of(z)))

    def _entropy(self) -> Tensor:
        return math.log(2.0) + 1.0 + log(self.scale + zeros_like(self.loc))

    def _mean(self) -> Tensor:
        return self.loc + zeros_like(self.scale)

    def _stddev(self) -> Tensor:
        return math.sqrt(2.0) * self.scale + zeros_like(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()


class LaplaceWithSoftplusScale(Laplace):
    """Laplace with ``softplus(scale)``."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:
        with name_scope(name, values=[loc, scale]) as scope:
            positive = softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters.update(scale=scale, name=name)


class Logistic(_LocationScale):
    """The logistic distribution: its cumulative distribution is a sigmoid."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Logistic",
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        u = self._unit(n, seed)
        return (log(u) - log1p(-1.0 * u)) * self.scale + self.loc

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -z - 2.0 * softplus(-z) - log(self.scale)

    def _log_cdf(self, x: Tensor) -> Tensor:
        return -softplus(-self._z(x))

    def _cdf(self, x: Tensor) -> Tensor:
        return sigmoid(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return -softplus(self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return sigmoid(-self._z(x))

    def _entropy(self) -> Tensor:
        return 2.0 + log(self.scale * ones_like(self.loc))

    def _mean(self) -> Tensor:
        return self.loc * ones_like(self.scale)

    def _stddev(self) -> Tensor:
        return self.scale * ones_like(self.loc) * math.pi / math.sqrt(3)

    def _mode(self) -> Tensor:
        return self._mean()


class Cauchy(_LocationScale):
    """The Cauchy distribution; it has no mean and no variance."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        p = random_uniform(self._full_shape(n), 0.0, 1.0, self.dtype, seed)
        return self._quantile(p)

    def _log_prob(self, x: Tensor) -> Tensor:
        return -log1p(square(self._z(x))) - (math.log(math.pi) + log(self.scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return atan(self._z(x)) / math.pi + 0.5

    def _log_cdf(self, x: Tensor) -> Tensor:
        return log1p(2 / math.pi * atan(self._z(x))) - math.log(2)

    def _quantile(self, p: Tensor) -> Tensor:
        return self.loc + self.scale * tan(math.pi * (p - 0.5))

    def _entropy(self) -> Tensor:
        return math.log(4 * math.pi) + log(self.scale * ones_like(self.loc))

    def _mode(self) -> Tensor:
        return self.loc * ones_like(self.scale)

    def _undefined(self, what: str) -> Tensor:
        if not self.allow_nan_stats:
            raise ValueError(f"`{what}` is undefined for Cauchy distribution.")
        return fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(np.nan))

    def _mean(self) -> Tensor:
        return self._undefined("mean")

    def _stddev(self) -> Tensor:
        return self._undefined("stddev")


class StudentT(ScalarDistribution):
    """Student's t distribution with ``df`` degrees of freedom, location and scale.

    The three broadcast. The mean is defined for ``df`` above 1 and the variance for ``df`` above 2
    (infinite between 1 and 2): elsewhere they are NaN, or an error with ``allow_nan_stats=False``.
    """

    _parameter_names = ("df", "loc", "scale")
    _df: Tensor
    _loc: Tensor
    _scale: Tensor

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[df, loc, scale]) as name:
            checks = [assert_positive(df)] if validate_args else []
            kept = self._keep(checks, df=df, loc=loc, scale=scale)
        super().__init__(
            kept[2].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, kept, name
        )

    @property
    def df(self) -> Tensor:
        return self._df

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _ones(self) -> Tensor:
        return ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        normal = random_normal(self._full_shape(n), dtype=self.dtype, seed=seed)
        df = self.df * self._ones()
        gamma = random_gamma([n], 0.5 * df, 0.5, self.dtype, gen_new_seed(seed, salt="student_t"))
        return normal * rsqrt(gamma / df) * self.scale + self.loc

    def _log_prob(self, x: Tensor) -> Any:
        y = (x - self.loc) / self.scale
        density = -0.5 * (self.df + 1.0) * log1p(y**2.0 / self.df)
        return density - (
            log(abs_of(self.scale))
            + 0.5 * log(self.df)
            + 0.5 * np.log(np.pi)
            + lgamma(0.5 * self.df)
            - lgamma(0.5 * (self.df + 1.0))
        )

    def _cdf(self, x: Tensor) -> Tensor:
        y = (x - self.loc) / abs_of(self.scale)
        x_t = self.df / (y**2.0 + self.df)
        below = 0.5 * betainc(0.5 * self.df, 0.5, x_t)
        return where_v2(less(y, 0.0), below, 1.0 - below)

    def _entropy(self) -> Tensor:
        v = self._ones()[..., None]
        beta = concat([v * self.df[..., None], v], -1) / 2.0
        slope = digamma(0.5 * (self.df + 1.0)) - digamma(0.5 * self.df)
        return (
            log(abs_of(self.scale))
            + 0.5 * log(self.df)
            + lbeta(beta)
            + 0.5 * (self.df + 1.0) * slope
        )

    def _where_defined(self, value: Tensor, what: str) -> Tensor:
        if self.allow_nan_stats:
            nan = fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(np.nan), name="nan")
            return where_v2(greater(self.df, self._ones()), value, nan)
        message = f"{what} not defined for components of df <= 1"
        check = assert_less(ones([], dtype=self.dtype), self.df, message=message)
        return with_dependencies([check], value)

    def _mean(self) -> Tensor:
        return self._where_defined(self.loc * self._ones(), "mean")

    def _variance(self) -> Tensor:
        below = where_v2(greater(self.df, 2.0), self.df - 2.0, ones_like(self.df))
        variance = self._ones() * square(self.scale) * self.df / below
        shape = self.batch_shape_tensor()
        infinite = fill(shape, self.dtype.as_numpy_dtype(np.inf), name="inf")
        two = fill(shape, self.dtype.as_numpy_dtype(2.0))
        return self._where_defined(where_v2(self.df > two, variance, infinite), "variance")

    def _mode(self) -> Tensor:
        return identity(self.loc)


class StudentTWithAbsDfSoftplusScale(StudentT):
    """StudentT with ``floor(abs(df))`` and ``softplus(scale)``."""

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:
        with name_scope(name, values=[df, scale]) as scope:
            whole, positive = floor(abs_of(df)), softplus(scale, name="softplus_scale")
            super().__init__(whole, loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters.update(df=df, scale=scale, name=name)


class Uniform(ScalarDistribution):
    """Numbers between ``low`` (included) and ``high``, all alike.

    Both broadcast; ``validate_args`` checks ``low < high``. The density is ``1 / (high - low)``
    inside and 0 outside.

        tf.distributions.Uniform(1.0, 3.0).prob([2.0, 4.0])  # [0.5, 0.0]
    """

    _parameter_names = ("low", "high")
    _low: Tensor
    _high: Tensor

    def __init__(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[low, high]) as name:
            message = "uniform not defined when low >= high."
            checks = [assert_less(low, high, message=message)] if validate_args else []
            kept = self._keep(checks, low=low, high=high)
        super().__init__(
            kept[0].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, kept, name
        )

    @property
    def low(self) -> Tensor:
        return self._low

    @property
    def high(self) -> Tensor:
        return self._high

    def range(self, name: str = "range") -> Tensor:
        """``high - low``."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_uniform(self._full_shape(n), dtype=self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _prob(self, x: Tensor) -> Tensor:
        wide = x * ones(self.batch_shape_tensor(), dtype=x.dtype)
        outside = logical_or(wide < self.low, wide >= self.high)
        inside = where_v2(outside, zeros_like(wide), ones_like(wide) / self.range())
        return where_v2(is_nan(wide), wide, inside)

    def _cdf(self, x: Tensor) -> Tensor:
        shape = broadcast_dynamic_shape(shape_of(x), self.batch_shape_tensor())
        none, all_of_it = zeros(shape, dtype=self.dtype), ones(shape, dtype=self.dtype)
        inner = where_v2(x < self.low, none, (x * all_of_it - self.low) / self.range())
        return where_v2(x >= self.high, all_of_it, inner)

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Any:
        return square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)
