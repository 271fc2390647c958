"""The absolute value of a normal variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    ScalarDistribution,
)
from headrace.distributions.divergences import RegisterKL
from headrace.distributions.normal_functions import (
    erfinv,
)
from headrace.ops.array.filling import ones_like, zeros, zeros_like
from headrace.ops.array.selecting import where_v2
from headrace.ops.control.assertions import assert_positive
from headrace.ops.math.special import erf
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp, log, square
from headrace.ops.random.random_ops import random_normal

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["HalfNormal"]


class HalfNormal(ScalarDistribution):
    """The absolute value of a normal variable with mean 0 and standard deviation ``scale``."""

    _parameter_names = ("scale",)
    _scale: Tensor

    def __init__(
        self,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "HalfNormal",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[scale]) as name:
            kept = self._keep([assert_positive(scale)] if validate_args else [], scale=scale)
        super().__init__(
            kept[0].dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, kept, name
        )

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return abs_of(random_normal(self._full_shape(n), 0.0, 1.0, self.dtype, seed) * self.scale)

    def _prob(self, x: Tensor) -> Any:
        height = np.sqrt(2 / np.pi) / self.scale
        density = height * exp(-0.5 * (x / self.scale) ** 2)
        return density * convert_to_tensor(where_v2(x >= 0, ones_like(density), 0.0))

    def _cdf(self, x: Tensor) -> Tensor:
        inside = erf(abs_of(x) / self.scale / np.sqrt(2.0))
        return where_v2(x < 0, zeros_like(inside), inside)

    def _entropy(self) -> Tensor:
        return 0.5 * log(np.pi * self.scale**2.0 / 2.0) + 0.5

    def _mean(self) -> Any:
        return self.scale * np.sqrt(2.0) / np.sqrt(np.pi)

    def _quantile(self, p: Tensor) -> Any:
        return np.sqrt(2.0) * self.scale * erfinv(p)

    def _mode(self) -> Tensor:
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _variance(self) -> Tensor:
        return self.scale**2.0 * (1.0 - 2.0 / np.pi)


@RegisterKL(HalfNormal, HalfNormal)
def _kl_half_normal(a: HalfNormal, b: HalfNormal, name: str | None = None) -> Any:
    with name_scope(name, "kl_half_normal_half_normal", [a.scale, b.scale]):
        ratio = square(a.scale / b.scale)
        return log(b.scale) - log(a.scale) + 0.5 * (ratio - 1.0)
