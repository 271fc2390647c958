"""Distributions made of other distributions: transformed, independent; and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
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
from headrace.ops.array.ranges import range as range_of
from headrace.ops.control.assertions import assert_non_negative
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.binary import maximum
from headrace.ops.math.comparison import less_equal
from headrace.ops.math.reductions import reduce_logsumexp, reduce_prod, reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import exp

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["Deterministic", "Independent", "TransformedDistribution", "checked_tolerance"]


def _vector(shape: TensorLike) -> Any:
    """A shape as numbers, or as a tensor if the graph does not know them."""
    if shape is None:
        return []
    given = convert_to_tensor(shape, dtypes.int32)
    known = static_value(given)
    return given if known is None else [int(n) for n in known]


def _is_given(shape: Any) -> bool:
    return not isinstance(shape, list) or bool(shape)


def _known(shape: Any) -> TensorShape:
    return TensorShape(shape if isinstance(shape, list) else None)


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
            self._override_batch: Any = _vector(batch_shape)
            self._override_event: Any = _vector(event_shape)
        for override, own in (
            (self._override_event, distribution.event_shape),
            (self._override_batch, distribution.batch_shape),
        ):
            if isinstance(override, list) and override and own.ndims not in (None, 0):
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
        given = _is_given(self._override_event)
        inner = _known(self._override_event) if given else self._distribution.event_shape
        return self._bijector.forward_event_shape(inner)

    def _event_shape_tensor(self) -> Tensor:
        inner = self._distribution.event_shape_tensor()
        if _is_given(self._override_event):  # of numbers: one of both is empty
            inner = concat([self._override_event, inner], 0)
        found: Tensor = self._bijector.forward_event_shape_tensor(inner)
        return found

    def _batch_shape(self) -> Any:
        given = _is_given(self._override_batch)
        return _known(self._override_batch) if given else self._distribution.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        inner = self._distribution.batch_shape_tensor()
        return concat([self._override_batch, inner], 0) if self._overrides_batch else inner

    @property
    def _overrides_batch(self) -> bool:
        return _is_given(self._override_batch)

    @property
    def _moves_event(self) -> bool:
        """Whether overriding events stand before the batch of the scalar distribution."""
        batch = self._distribution.batch_shape.ndims
        return _is_given(self._override_event) and not self._overrides_batch and batch != 0

    def _event_axes(self) -> Any:
        """How many axes the overriding event has."""
        given = self._override_event
        return len(given) if isinstance(given, list) else shape_of(given)[0]

    def _event_ndims(self) -> Any:
        known = self.event_shape.ndims
        return shape_of(self.event_shape_tensor())[0] if known is None else known

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self._drawn(n, seed)

    def _drawn(self, n: Any, seed: int | None, **condition: Any) -> Tensor:
        """Samples before the bijector."""
        if self._moves_event:
            first = concat([self._override_event, [n]], 0)
            drawn = self._distribution.sample(first, seed=seed, **condition)
            return self._moved(drawn, self._event_axes())
        inner = [v for v in (self._override_batch, self._override_event) if _is_given(v)]
        shape = concat([[n], *inner], 0) if inner else [n]
        return self._distribution.sample(shape, seed=seed, **condition)

    @staticmethod
    def _moved(x: Any, axes: Any) -> Tensor:
        """The first ``axes`` axes at the end."""
        from headrace.ops.array.array_shape import rank as rank_of
        from headrace.ops.array.array_shape import transpose

        rank = x.shape.ndims
        if rank is not None and isinstance(axes, int):
            return transpose(x, [*range(axes, rank), *range(axes)])
        order = concat([range_of(axes, rank_of(x)), range_of(0, axes)], 0)
        return transpose(x, order)

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
        ndims = self._event_ndims()
        jacobian = self._bijector.inverse_log_det_jacobian(y, event_ndims=ndims, **condition)
        if self._moves_event:
            rank = shape_of(shape_of(x))[0] if x.shape.ndims is None else x.shape.ndims
            x = self._moved(x, rank - self._event_axes())
        return x, jacobian

    def _log_prob(self, value: Tensor) -> Any:
        x, jacobian = self._base(value)
        if isinstance(x, tuple):  # both inverses of a bijector like AbsoluteValue
            both = [self._density(a, b) for a, b in zip(x, jacobian, strict=True)]
            return reduce_logsumexp(stack(both), 0)
        return self._density(x, jacobian)

    def _density(self, x: Tensor, jacobian: Any, **condition: Any) -> Any:
        found = self._distribution.log_prob(x, **condition)
        if _is_given(self._override_event):
            count = self._event_axes()
            ends = (0, count) if self._moves_event else (-count, 0)
            axes = list(range(*ends)) if isinstance(count, int) else range_of(*ends)
            found = reduce_sum(found, axes)
        return found + cast(jacobian, found.dtype)

    def _prob(self, value: Tensor) -> Tensor:
        return exp(self._log_prob(value))

    def _plain(self, what: str) -> None:
        if _is_given(self._override_event):
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

    def _log_survival_function(self, value: TensorLike) -> Any:
        self._plain("log_survival_function")
        return self._distribution.log_survival_function(self._bijector.inverse(value))

    def _quantile(self, value: Tensor) -> Any:
        self._plain("quantile")
        return self._bijector.forward(self._distribution.quantile(value))

    def _entropy(self) -> Any:
        if not self._bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        found = self._distribution.entropy()
        if _is_given(self._override_event):
            found *= cast(reduce_prod(self._override_event), found.dtype)
        if self._overrides_batch:
            found += 0.0 * ones(self._override_batch, self.dtype)
        shape = concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        point = 0.0 * ones(shape, self.dtype)
        ndims = self._event_ndims()
        jacobian = self._bijector.inverse_log_det_jacobian(point, event_ndims=ndims)
        return found - cast(jacobian, found.dtype)


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
        with name_scope(name) as name:
            # a number, or a tensor if the batch is not known before the graph runs
            self._axes: Any = self._count_axes(reinterpreted_batch_ndims)
        if batch is not None and self._axes > batch:
            raise ValueError(
                f"reinterpreted_batch_ndims({self._axes}) cannot exceed "
                f"distribution.batch_ndims({batch})"
            )
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

    def _count_axes(self, given: int | None) -> Any:
        if given is not None:
            return int(given)
        batch = self._distribution.batch_shape.ndims
        if batch is not None:
            return max(0, batch - 1)
        return maximum(0, shape_of(self._distribution.batch_shape_tensor())[0] - 1)

    @property
    def reinterpreted_batch_ndims(self) -> Any:
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
        if isinstance(self._axes, int):
            return reduce_sum(value, list(range(-self._axes, 0))) if self._axes else value
        return reduce_sum(value, range_of(-self._axes, 0))

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
    if not (a.event_shape.is_fully_defined() and b.event_shape.is_fully_defined()):
        raise NotImplementedError("KL of Independent needs event shapes that are known.")
    if a.event_shape != b.event_shape:
        raise ValueError("Event shapes do not match.")
    if a.distribution.event_shape != b.distribution.event_shape:
        raise NotImplementedError("KL of Independents with different event shapes inside.")
    return a._summed(kl_divergence(a.distribution, b.distribution, name=name))


def checked_tolerance(value: object, kind: DType, name: str, validate_args: bool) -> Tensor:
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
