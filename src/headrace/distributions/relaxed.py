"""Relaxed (continuous) versions of discrete distributions: Gumbel-softmax and its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.distributions import bijectors as bijectors_module
from headrace.distributions.discrete import _OverClasses
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
)
from headrace.distributions.location_scale import Logistic
from headrace.distributions.logits import get_logits_and_probs
from headrace.distributions.transformed_families import TransformedDistribution
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones, ones_like
from headrace.ops.array.joining import concat
from headrace.ops.control.assertions import assert_positive
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.special import lgamma
from headrace.ops.math.unary import log
from headrace.ops.nn.activations import log_softmax
from headrace.ops.random.random_ops import random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = ["ExpRelaxedOneHotCategorical", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def _above_zero(temperature: Any, kind: Any, validate_args: bool) -> Any:
    found = convert_to_tensor(temperature, kind, "temperature")
    return with_dependencies([assert_positive(found)], found) if validate_args else found


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that approach a Bernoulli variable as the temperature falls."""

    def __init__(
        self,
        temperature: Any,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[logits, probs, temperature]) as scope:
            self._temperature = _above_zero(temperature, None, validate_args)
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args
            )
            base = Logistic(
                self._logits / self._temperature,
                1.0 / self._temperature,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                name=f"{name}/Logistic",
            )
        super().__init__(base, bijectors_module.Sigmoid(validate_args=validate_args), name=scope)
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}

    @property
    def temperature(self) -> Any:
        return self._temperature

    @property
    def logits(self) -> Any:
        return self._logits

    @property
    def probs(self) -> Any:
        return self._probs


class ExpRelaxedOneHotCategorical(_OverClasses):
    """Logarithms of :class:`RelaxedOneHotCategorical`."""

    def __init__(
        self,
        temperature: Any,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[logits, probs, temperature]) as name:
            self._keep_classes(logits, probs, validate_args, name)
            self._temperature = _above_zero(temperature, self._logits.dtype, validate_args)
        super().__init__(
            dtype or self._logits.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            [self._logits, self._probs, self._temperature],
            name,
        )

    @property
    def temperature(self) -> Any:
        return self._temperature

    def _event_shape(self) -> TensorShape:
        return self.logits.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self.logits)[-1:]

    def _entropy(self) -> Tensor:
        raise self._lacks("entropy")

    def _column(self) -> Any:
        """A temperature for each row of classes."""
        return reshape(self._temperature, [-1, 1])

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = concat([[n], shape_of(self.logits)], 0)
        logits = reshape(self.logits * ones(shape, dtype=self.dtype), [-1, self.event_size])
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = random_uniform(shape_of(logits), least, 1.0, self.dtype, seed)
        gumbel = -log(-log(drawn))
        return reshape(log_softmax((gumbel + logits) / self._column()), shape)

    def _log_prob(self, x: Tensor) -> Tensor:
        logits = ones_like(x, dtype=self.logits.dtype) * self.logits
        x = ones_like(logits, dtype=x.dtype) * x
        k = cast(self.event_size, x.dtype)
        normal = lgamma(k) + (k - 1.0) * log(self._temperature)
        size = shape_of(x)
        rows = reshape(logits, [-1, self.event_size])
        rows -= reshape(x, [-1, self.event_size]) * self._column()
        return normal + reshape(reduce_sum(log_softmax(rows), -1), size[:-1])


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of positive numbers that sum to one and approach one-hot vectors as the temperature
    falls (Concrete, Gumbel-softmax).
    """

    def __init__(
        self,
        temperature: Any,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        base = ExpRelaxedOneHotCategorical(
            temperature, logits, probs, dtype, validate_args, allow_nan_stats
        )
        super().__init__(base, bijectors_module.Exp(), name=name)
