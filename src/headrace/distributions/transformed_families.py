"""Distributions made of other distributions: transformed, independent; and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.distributions import bijectors as bijectors_module
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    ScalarDistribution,
)
from headrace.distributions.divergences import RegisterKL, kl_divergence
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones
from headrace.ops.array.joining import concat, stack
from headrace.ops.control.assertions import assert_non_negative
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.comparison import less_equal
from headrace.ops.math.reductions import reduce_logsumexp, reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = ["Deterministic", "Independent", "TransformedDistribution"]


def _vector(shape: TensorLike) -> list[int]:
    if shape is None:
        return []
    known = static_value(convert_to_tensor(shape, dtypes.int32))
    if known is None:
        raise ValueError("batch_shape and event_shape must be known when the graph is built")
    return [int(n) for n in known]


class TransformedDistribution(Distribution):
    """``bijector(x)`` for x of ``distribution``.

    ``batch_shape`` and ``event_shape`` (known numbers) replace those of a scalar distribution.
    """

    def __init__(
        self,
        distribution: Distribution,
        bijector: Any = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        given = dict(locals())
        prefix = "" if bijector is None else bijector.name
        name = name or prefix + (distribution.name or "")
        with name_scope(name, values=[event_shape, batch_shape]) as name:
            if bijector is None:
                bijector = bijectors_module.Identity(validate_args=validate_args)
            self._override_batch, self._override_event = _vector(batch_shape), _vector(event_shape)
        if self._override_event and distribution.event_shape.ndims != 0:
            raise ValueError("base distribution not scalar")
        if self._override_batch and distribution.batch_shape.ndims != 0:
            raise ValueError("base distribution not scalar")
        self._distribution, self._bijector = distribution, bijector
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            given,
            [*distribution._graph_parents, *bijector.graph_parents],
            name,
        )

    @property
    def distribution(self) -> Distribution:
        return self._distribution

    @property
    def bijector(self) -> Any:
        return self._bijector

    def _event_shape(self) -> Any:
        inner = self._override_event or self._distribution.event_shape
        return self._bijector.forward_event_shape(inner)

    def _event_shape_tensor(self) -> Tensor:
        return self._distribution.event_shape_tensor()

    def _batch_shape(self) -> Any:
        return self._override_batch or self._distribution.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._distribution.batch_shape_tensor()

    @property
    def _moves_event(self) -> bool:
        """Whether overriding events stand before the batch of the scalar distribution."""
        batch = self._distribution.batch_shape.ndims
        return bool(self._override_event) and not self._override_batch and batch != 0

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self._drawn(n, seed)

    def _drawn(self, n: Any, seed: int | None, **condition: Any) -> Tensor:
        """Samples before the bijector."""
        if self._moves_event:
            drawn = self._distribution.sample([*self._override_event, n], seed=seed, **condition)
            return self._moved(drawn, len(self._override_event))
        inner = [*self._override_batch, *self._override_event]
        shape = concat([[n], inner], 0) if inner else [n]
        return self._distribution.sample(shape, seed=seed, **condition)

    @staticmethod
    def _moved(x: Any, axes: int) -> Tensor:
        """The first ``axes`` axes at the end."""
        from headrace.ops.array.array_shape import transpose

        rank = x.shape.ndims
        return transpose(x, [*range(axes, rank), *range(axes)])

    def _call_sample_n(self, sample_shape: TensorLike, seed: int | None, name: str) -> Tensor:
        with self._name_scope(name, [sample_shape]):
            shape = convert_to_tensor(sample_shape, dtypes.int32, "sample_shape")
            shape, number = self._expand_sample_shape_to_vector(shape, "sample_shape")
            x = self._sample_n(number, seed)
            x = reshape(x, concat([shape, shape_of(x)[1:]], 0))
            y = self._bijector.forward(x)
            return self._set_sample_static_shape(y, shape)

    def _base(self, y: TensorLike, **condition: object) -> tuple[Any, Any]:
        """What the distribution is asked for, and the logarithm of the inverse's derivative."""
        x = self._bijector.inverse(y, **condition)
        ndims = self.event_shape.ndims or 0
        jacobian = self._bijector.inverse_log_det_jacobian(y, event_ndims=ndims, **condition)
        if self._moves_event:
            rank = x.shape.ndims
            x = self._moved(x, rank - len(self._override_event))
        return x, jacobian

    def _log_prob(self, value: Tensor) -> Any:
        x, jacobian = self._base(value)
        if isinstance(x, tuple):  # both inverses of a bijector like AbsoluteValue
            both = [self._density(a, b) for a, b in zip(x, jacobian, strict=True)]
            return reduce_logsumexp(stack(both), 0)
        return self._density(x, jacobian)

    def _density(self, x: Tensor, jacobian: Any, **condition: Any) -> Any:
        found = self._distribution.log_prob(x, **condition)
        if self._override_event:
            count = len(self._override_event)
            axes = range(count) if self._moves_event else range(-count, 0)
            found = reduce_sum(found, list(axes))
        return found + cast(jacobian, found.dtype)

    def _prob(self, value: Tensor) -> Tensor:
        return exp(self._log_prob(value))

    def _plain(self, what: str) -> None:
        if self._override_event:
            raise NotImplementedError(f"{what} is not implemented when overriding event_shape")

    def _log_cdf(self, value: TensorLike) -> Any:
        self._plain("log_cdf")
        return self._distribution.log_cdf(self._bijector.inverse(value))

    def _cdf(self, value: TensorLike) -> Any:
        self._plain("cdf")
        return self._distribution.cdf(self._bijector.inverse(value))

    def _survival_function(self, value: TensorLike) -> Any:
        self._plain("survival_function")
        return self._distribution.survival_function(self._bijector.inverse(value))

    def _quantile(self, value: Tensor) -> Any:
        self._plain("quantile")
        return self._bijector.forward(self._distribution.quantile(value))

    def _entropy(self) -> Any:
        if not self._bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        found = self._distribution.entropy()
        if self._override_event:
            found *= float(np.prod(self._override_event))
        if self._override_batch:
            found += 0.0 * ones(self._override_batch, self.dtype)
        shape = concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        point = 0.0 * ones(shape, self.dtype)
        ndims = self.event_shape.ndims or 0
        return found - self._bijector.inverse_log_det_jacobian(point, event_ndims=ndims)


class Independent(Distribution):
    """The last ``reinterpreted_batch_ndims`` batch axes (by default all but the first) as parts of
    the event.
    """

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        given = dict(locals())
        name = name or f"Independent{distribution.name}"
        self._distribution = distribution
        batch = distribution.batch_shape.ndims
        if reinterpreted_batch_ndims is None:
            if batch is None:
                raise ValueError("reinterpreted_batch_ndims must be given for an unknown batch")
            reinterpreted_batch_ndims = max(0, batch - 1)
        if batch is not None and reinterpreted_batch_ndims > batch:
            raise ValueError(
                f"reinterpreted_batch_ndims({reinterpreted_batch_ndims}) cannot exceed "
                f"distribution.batch_ndims({batch})"
            )
        self._axes = int(reinterpreted_batch_ndims)
        with name_scope(name) as name:
            pass
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            given,
            distribution._graph_parents,
            name,
        )

    @property
    def distribution(self) -> Distribution:
        return self._distribution

    @property
    def reinterpreted_batch_ndims(self) -> int:
        return self._axes

    def _batch_shape(self) -> TensorShape:
        whole = self._distribution.batch_shape
        return whole if whole.ndims is None else whole[: whole.ndims - self._axes]

    def _batch_shape_tensor(self) -> Tensor:
        whole = self._distribution.batch_shape_tensor()
        return whole[: shape_of(whole)[0] - self._axes]

    def _event_shape(self) -> Any:
        whole = self._distribution.batch_shape
        if whole.ndims is None:
            return None
        return whole[whole.ndims - self._axes :].concatenate(self._distribution.event_shape)

    def _event_shape_tensor(self) -> Tensor:
        whole = self._distribution.batch_shape_tensor()
        inner = whole[shape_of(whole)[0] - self._axes :]
        return concat([inner, self._distribution.event_shape_tensor()], 0)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self._distribution.sample([n], seed=seed)

    def _summed(self, value: Tensor) -> Tensor:
        return reduce_sum(value, list(range(-self._axes, 0))) if self._axes else value

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._summed(self._distribution.log_prob(x))

    def _entropy(self) -> Tensor:
        return self._summed(self._distribution.entropy())

    def _mean(self) -> Tensor:
        return self._distribution.mean()

    def _variance(self) -> Any:
        return self._distribution.variance()

    def _stddev(self) -> Any:
        return self._distribution.stddev()

    def _mode(self) -> Tensor:
        return self._distribution.mode()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    if a._axes != b._axes or a.distribution.event_shape.ndims != b.distribution.event_shape.ndims:
        raise ValueError("Event shapes do not match.")
    return a._summed(kl_divergence(a.distribution, b.distribution, name=name))


def _checked_tolerance(value: object, kind: DType, name: str, validate_args: bool) -> Tensor:
    found = convert_to_tensor(value, kind, name)
    if not validate_args:
        return found
    check = assert_non_negative(found, message="Argument 'tol' must be non-negative")
    return with_dependencies([check], found)


class Deterministic(ScalarDistribution):
    """Always ``loc``; values within ``atol + rtol * |loc|`` of it count as equal."""

    _parameter_names = ("loc",)

    def __init__(
        self,
        loc: TensorLike,
        atol: Any = None,
        rtol: object = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[loc, atol, rtol]) as name:
            self._loc = convert_to_tensor(loc, name="loc")
            kind = self._loc.dtype
            self._atol, self._rtol = (
                _checked_tolerance(0 if v is None else v, kind, n, validate_args)
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

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def atol(self) -> Tensor:
        return self._atol

    @property
    def rtol(self) -> Tensor:
        return self._rtol

    def _slack(self) -> Any:
        return self.atol + self.rtol * abs_of(self.loc)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return self.loc * ones(shape, dtype=self.dtype)

    def _prob(self, x: TensorLike) -> Tensor:
        return cast(less_equal(abs_of(x - self.loc), self._slack()), self.dtype)

    def _cdf(self, x: TensorLike) -> Any:
        return cast(x >= self.loc - self._slack(), self.dtype)

    def _entropy(self) -> Tensor:
        return 0.0 * ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _mean(self) -> Tensor:
        return self.loc * 1

    def _variance(self) -> Tensor:
        return self.loc * 0

    def _mode(self) -> Tensor:
        return self._mean()
