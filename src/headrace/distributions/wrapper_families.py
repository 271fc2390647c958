"""Distributions around others: ``Autoregressive``, ``ConditionalDistribution``,
``ConditionalTransformedDistribution``; and ``VectorDeterministic``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    gen_new_seed,
)
from headrace.distributions.transformed_families import (
    TransformedDistribution,
    checked_tolerance,
)
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.dependencies import with_dependencies

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "Autoregressive",
    "ConditionalDistribution",
    "ConditionalTransformedDistribution",
    "VectorDeterministic",
]


class Autoregressive(Distribution):
    """Events drawn element by element: ``distribution_fn`` of what was drawn so far gives the
    distribution of the whole, of which the next element is taken.
    """

    def __init__(
        self,
        distribution_fn: Callable[..., Distribution],
        sample0: Any = None,
        num_steps: int | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Autoregressive",
    ) -> None:
        given = dict(locals())
        with name_scope(name) as name:
            self._distribution_fn, self._sample0 = distribution_fn, sample0
            first = distribution_fn() if sample0 is None else distribution_fn(sample0)
            self._distribution0 = first
            if num_steps is None:
                num_steps = first.event_shape.num_elements()
                if num_steps is None:
                    raise ValueError(
                        "distribution_fn must generate a distribution with fully known "
                        "`event_shape`."
                    )
            if num_steps < 1:
                raise ValueError(f"num_steps ({num_steps}) must be at least 1.")
            self._num_steps = num_steps
        super().__init__(
            first.dtype,
            first.reparameterization_type,
            validate_args,
            allow_nan_stats,
            given,
            first._graph_parents,
            name,
        )

    distribution_fn = property(lambda self: self._distribution_fn)
    sample0 = property(lambda self: self._sample0)
    num_steps = property(lambda self: self._num_steps)
    distribution0 = property(lambda self: self._distribution0)

    def _batch_shape(self) -> TensorShape:
        return self._distribution0.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self._distribution0.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._distribution0.event_shape

    def _event_shape_tensor(self) -> Any:
        return self._distribution0.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        if seed is None:
            seed = gen_new_seed(int(np.random.randint(2**32 - 1)), "autoregressive")
        drawn: Any = self._distribution0.sample(n, seed=seed)
        for _ in range(self._num_steps):
            drawn = self._distribution_fn(drawn).sample(seed=seed)
        return drawn

    def _log_prob(self, value: Any) -> Any:
        return self._distribution_fn(value).log_prob(value)

    def _prob(self, value: Any) -> Any:
        return self._distribution_fn(value).prob(value)


class ConditionalDistribution(Distribution):
    """A distribution whose methods take keyword arguments besides."""

    def _with(self, value: Any, name: str, pairs: list[Callable[[Any], Any]]) -> Any:
        first, second = pairs
        return self._of_value(value, name, first, second)

    def sample(
        self,
        sample_shape: TensorLike = (),
        seed: int | None = None,
        name: str = "sample",
        **condition: Any,
    ) -> Any:
        with self._name_scope(name, [sample_shape]):
            shape = convert_to_tensor(sample_shape, dtypes.int32, "sample_shape")
            shape, number = self._expand_sample_shape_to_vector(shape, "sample_shape")
            return self._finish_sample(self._sample_n(number, seed, **condition), shape)

    def log_prob(self, value: TensorLike, name: str = "log_prob", **condition: Any) -> Any:
        return self._with(value, name, [
            lambda x: self._log_prob(x, **condition),
            lambda x: ops.log(self._prob(x, **condition)),
        ])  # fmt: skip

    def prob(self, value: TensorLike, name: str = "prob", **condition: Any) -> Any:
        return self._with(value, name, [
            lambda x: self._prob(x, **condition),
            lambda x: ops.exp(self._log_prob(x, **condition)),
        ])  # fmt: skip

    def log_cdf(self, value: TensorLike, name: str = "log_cdf", **condition: Any) -> Any:
        return self._with(value, name, [
            lambda x: self._log_cdf(x, **condition),
            lambda x: ops.log(self._cdf(x, **condition)),
        ])  # fmt: skip

    def cdf(self, value: TensorLike, name: str = "cdf", **condition: Any) -> Any:
        return self._with(value, name, [
            lambda x: self._cdf(x, **condition),
            lambda x: ops.exp(self._log_cdf(x, **condition)),
        ])  # fmt: skip

    def log_survival_function(
        self, value: TensorLike, name: str = "log_survival_function", **condition: Any
    ) -> Any:
        return self._with(value, name, [
            lambda x: self._log_survival_function(x, **condition),
            lambda x: ops.log1p(-self.cdf(x, **condition)),
        ])  # fmt: skip

    def survival_function(
        self, value: TensorLike, name: str = "survival_function", **condition: Any
    ) -> Any:
        return self._with(value, name, [
            lambda x: self._survival_function(x, **condition),
            lambda x: 1.0 - self.cdf(x, **condition),
        ])  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None = None, **condition: Any) -> Any:
        raise self._lacks("sample_n")

    def _log_prob(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("log_prob")

    def _prob(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("prob")

    def _log_cdf(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("log_cdf")

    def _cdf(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("cdf")

    def _log_survival_function(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("log_survival_function")

    def _survival_function(self, value: Any, **condition: Any) -> Any:
        raise self._lacks("survival_function")


_Condition = Mapping[str, Any] | None


class ConditionalTransformedDistribution(ConditionalDistribution, TransformedDistribution):
    """`TransformedDistribution` with ``bijector_kwargs`` and ``distribution_kwargs``."""

    def sample(
        self,
        sample_shape: TensorLike = (),
        seed: int | None = None,
        name: str = "sample",
        bijector_kwargs: _Condition = None,
        distribution_kwargs: _Condition = None,
        **condition: Any,
    ) -> Any:
        with self._name_scope(name, [sample_shape]):
            if condition:
                raise TypeError(f"sample() got unexpected keyword arguments: {sorted(condition)}")
            shape = convert_to_tensor(sample_shape, dtypes.int32, "sample_shape")
            shape, number = self._expand_sample_shape_to_vector(shape, "sample_shape")
            x = self._drawn(number, seed, **(distribution_kwargs or {}))
            x = ops.reshape(x, ops.concat([shape, ops.shape(x)[1:]], 0))
            y = self._bijector.forward(x, **(bijector_kwargs or {}))
            return self._set_sample_static_shape(y, shape)

    def _log_prob(
        self,
        value: Any,
        bijector_kwargs: _Condition = None,
        distribution_kwargs: _Condition = None,
        **condition: Any,
    ) -> Any:
        x, jacobian = self._base(value, **(bijector_kwargs or {}))
        return self._density(x, jacobian, **(distribution_kwargs or {}))

    def _prob(self, value: Any, **condition: Any) -> Any:
        return ops.exp(self._log_prob(value, **condition))

    def _of_base(self, method: str, y: Any, condition: dict[str, Any]) -> Any:
        self._plain(method)
        x = self._bijector.inverse(y, **(condition.get("bijector_kwargs") or {}))
        own = condition.get("distribution_kwargs") or {}
        return getattr(self._distribution, method)(x, **own)

    def _log_cdf(self, value: Any, **condition: Any) -> Any:
        return self._of_base("log_cdf", value, condition)

    def _cdf(self, value: Any, **condition: Any) -> Any:
        return self._of_base("cdf", value, condition)

    def _log_survival_function(self, value: Any, **condition: Any) -> Any:
        return self._of_base("log_survival_function", value, condition)

    def _survival_function(self, value: Any, **condition: Any) -> Any:
        return self._of_base("survival_function", value, condition)


class VectorDeterministic(Distribution):
    """Always the vector ``loc``; see `Deterministic`."""

    def __init__(
        self,
        loc: TensorLike,
        atol: TensorLike | None = None,
        rtol: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDeterministic",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[loc, atol, rtol]) as name:
            self._loc: Any = convert_to_tensor(loc, name="loc")
            kind = self._loc.dtype
            if self._loc.shape.ndims == 0:
                raise ValueError("Argument loc must be at least rank 1.")
            self._atol: Any
            self._rtol: Any
            self._atol, self._rtol = (
                checked_tolerance(0 if v is None else v, kind, n, validate_args)
                for v, n in ((atol, "atol"), (rtol, "rtol"))
            )
        super().__init__(
            kind,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            [self._loc, self._atol, self._rtol],
            name,
        )

    loc = property(lambda self: self._loc)
    atol = property(lambda self: self._atol)
    rtol = property(lambda self: self._rtol)

    def _batch_shape(self) -> Any:
        return self._loc.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return ops.shape(self._loc)[:-1]

    def _event_shape(self) -> Any:
        return self._loc.shape[-1:]

    def _event_shape_tensor(self) -> Any:
        return ops.shape(self._loc)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = ops.concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return self._loc * ops.ones(shape, dtype=self.dtype)

    def _prob(self, x: Any) -> Any:
        if self.validate_args:
            if x.shape.ndims == 0:
                raise ValueError("x must have rank at least 1")
            message = "Argument loc not defined in the same space R^k as argument x"
            same = assert_equal(ops.shape(x)[-1], ops.shape(self._loc)[-1], message=message)
            x = with_dependencies([same], x)
        slack = self._atol + self._rtol * ops.abs(self._loc)
        return ops.cast(ops.reduce_all(ops.abs(x - self._loc) <= slack, -1), self.dtype)

    def _entropy(self) -> Any:
        return 0.0 * ops.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _mean(self) -> Any:
        return ops.identity(self._loc)

    def _variance(self) -> Any:
        return ops.zeros_like(self._loc)

    def _mode(self) -> Any:
        return self.mean()
