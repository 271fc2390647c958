"""``NegativeBinomial`` and ``QuantizedDistribution``: distributions of whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.distributions.discrete import LogitsDistribution
from headrace.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    gen_new_seed,
)
from headrace.distributions.logits import get_logits_and_probs
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    assert_equal,
    assert_less,
    assert_non_negative,
    assert_positive,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.special import betainc, lgamma
from headrace.ops.random.gamma_poisson import random_gamma, random_poisson

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["NegativeBinomial", "QuantizedDistribution"]


class NegativeBinomial(LogitsDistribution):
    """How many successes come before ``total_count`` failures."""

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NegativeBinomial",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[total_count, logits, probs]) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=name
            )
            count = convert_to_tensor(total_count, self._probs.dtype)
            with control_dependencies([assert_positive(count)] if validate_args else []):
                self._total_count: Any = ops.identity(count)
        super().__init__(
            self._probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            [self._total_count, self._probs, self._logits],
            name,
        )

    @property
    def total_count(self) -> Any:
        """The number of failures."""
        return self._total_count

    def _batch_shape(self) -> TensorShape:
        return ops.broadcast_static_shape(self._total_count.shape, self._probs.shape)

    def _batch_shape_tensor(self) -> Tensor:
        return ops.broadcast_dynamic_shape(ops.shape(self._total_count), ops.shape(self._probs))

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        rate = random_gamma(
            [n], self._total_count, ops.exp(-ops.identity(self._logits)), self.dtype, seed
        )
        return random_poisson(rate, [], dtype=self.dtype, seed=gen_new_seed(seed, "negative_binom"))

    def _cdf(self, x: Tensor) -> Tensor:
        return betainc(self._total_count, 1.0 + self._checked_whole(x), ops.sigmoid(-self._odds()))

    def _odds(self) -> Tensor:
        return self._logits

    def _checked_whole(self, x: Tensor) -> Tensor:
        if not self.validate_args:
            return x
        return with_dependencies([assert_non_negative(x), assert_equal(x, ops.floor(x))], x)

    def _log_prob(self, x: Tensor) -> Any:
        n, odds = self._total_count, self._odds()
        x = self._checked_whole(x)
        plain = -n * ops.softplus(odds) - x * ops.softplus(-odds)
        return plain - (-lgamma(n + x) + lgamma(1.0 + x) + lgamma(n))

    def _mean(self) -> Tensor:
        found: Tensor = self._total_count * ops.exp(self._odds())
        return found

    def _mode(self) -> Tensor:
        n = self._total_count
        less = ops.where_v2(n > 1.0, n - 1.0, ops.zeros_like(n))
        return ops.floor(less * ops.exp(self._odds()))

    def _variance(self) -> Tensor:
        found: Tensor = self._mean() / ops.sigmoid(-self._odds())
        return found


def _difference(big: Any, small: Any) -> Any:
    """log(exp(big) - exp(small))."""
    return big + ops.log1p(-ops.exp(small - big))


class QuantizedDistribution(Distribution):
    """``ceil(x)`` of another distribution, held between ``low`` and ``high``."""

    def __init__(
        self,
        distribution: Distribution,
        low: TensorLike | None = None,
        high: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        given = dict(locals())
        self._dist = distribution
        values = [*distribution.parameters.values(), low, high]
        with name_scope(name, values=values) as name:
            kind = distribution.dtype
            ends: list[Any] = [
                None if v is None else convert_to_tensor(v, name=n, preferred_dtype=kind)
                for v, n in ((low, "low"), (high, "high"))
            ]
            for end in ends:
                if end is not None and end.dtype.base_dtype != kind.base_dtype:
                    raise ValueError(
                        f"Tensor {end} must be of the same type ({kind.name}) as the distribution"
                    )
            checks = []
            if validate_args and None not in (low, high):
                text = "low must be strictly less than high."
                checks.append(assert_less(ends[0], ends[1], message=text))
            self._validate_args = validate_args
            with control_dependencies(checks):
                self._low, self._high = (None if e is None else self._integer(e) for e in ends)
        super().__init__(
            kind,
            NOT_REPARAMETERIZED,
            validate_args,
            distribution.allow_nan_stats,
            given,
            [*distribution._graph_parents, *(e for e in (self._low, self._high) if e is not None)],
            name,
        )

    @property
    def distribution(self) -> Distribution:
        """The one whose numbers are rounded."""
        return self._dist

    low = property(lambda self: self._low)
    high = property(lambda self: self._high)

    def _batch_shape(self) -> TensorShape:
        return self._dist.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._dist.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._dist.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._dist.event_shape_tensor()

    def _integer(self, value: Tensor) -> Tensor:
        with name_scope("check_integer", values=[value]):
            if not self._validate_args:
                return value
            text = "value has non-integer components."
            return with_dependencies([assert_equal(value, ops.floor(value), message=text)], value)

    def _sample_n(self, n: object, seed: int | None = None) -> Tensor:
        with name_scope("transform"):
            drawn: Any = self._dist.sample(ops.convert_to_tensor(n, name="n"), seed=seed)
            found, one = ops.ceil(drawn), ops.ones_like(drawn)
            if self._low is not None:
                found = ops.where(found < self._low, self._low * one, found)
            if self._high is not None:
                found = ops.where(found > self._high, self._high * one, found)
            return found

    def _between(self, found: Any, j: Any, below: float, above: float) -> Any:
        """``found`` where ``j`` is between the ends, else the numbers for outside."""
        j = j + ops.zeros_like(found)
        if self._low is not None:
            found = ops.where(j < self._low, below * ops.ones_like(found), found)
        if self._high is not None:
            found = ops.where(j >= self._high, above * ops.ones_like(found), found)
        return found

    def _cdf(self, y: Tensor) -> Any:
        j = ops.floor(y)
        return self._between(self._dist.cdf(j), j, 0.0, 1.0)

    def _log_cdf(self, y: Tensor) -> Any:
        j = ops.floor(y)
        return self._between(self._dist.log_cdf(j), j, -np.inf, 0.0)

    def _survival_function(self, y: Tensor) -> Any:
        j = ops.ceil(y)
        return self._between(self._dist.survival_function(j), j, 1.0, 0.0)

    def _log_survival_function(self, y: Tensor) -> Any:
        j = ops.ceil(y)
        return self._between(self._dist.log_survival_function(j), j, 0.0, -np.inf)

    def _log_prob(self, y: Tensor) -> Any:
        y = self._integer(y)
        try:
            above, above_less = self.log_survival_function(y), self.log_survival_function(y - 1)
        except NotImplementedError:
            return _difference(self.log_cdf(y), self.log_cdf(y - 1))
        upto, upto_less = self.log_cdf(y), self.log_cdf(y - 1)
        right = above < upto  # the tail on the right is the smaller one
        return _difference(ops.where(right, above_less, upto), ops.where(right, above, upto_less))

    def _prob(self, y: Tensor) -> Any:
        y = self._integer(y)
        try:
            above, above_less = self.survival_function(y), self.survival_function(y - 1)
        except NotImplementedError:
            return self.cdf(y) - self.cdf(y - 1)
        upto, upto_less = self.cdf(y), self.cdf(y - 1)
        return ops.where(above < upto, above_less - above, upto - upto_less)
