"""The base class of distributions.

A distribution has a *batch shape* (independent distributions with their own parameters) and an
*event shape* (one draw). A subclass defines ``_sample_n``, ``_log_prob`` and statistics as far as
they exist; the public methods open name scopes, convert arguments and fall back from one
statistic to another (``prob`` to ``exp(log_prob)``).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor, is_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.distributions import divergences
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.broadcast_shapes import broadcast_dynamic_shape, broadcast_static_shape
from headrace.ops.array.joining import concat
from headrace.ops.control.assertions import assert_same_float_dtype
from headrace.ops.math.comparison import equal
from headrace.ops.math.reductions import reduce_prod
from headrace.ops.math.unary import exp, log, log1p, sqrt, square

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ShapeLike, TensorLike

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Distribution",
    "ReparameterizationType",
    "ScalarDistribution",
    "gen_new_seed",
]


class ReparameterizationType:
    """Whether gradients flow through samples to the parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameteriation Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """Another seed that follows from ``seed`` and ``salt``."""
    if seed is None:
        return None
    digest = hashlib.md5((str(seed) + salt).encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


class Distribution:
    """See the module's text. Arguments are for subclasses.

    ``parameters``: what the constructor was given, for :meth:`copy`. ``graph_parents``: tensors
    that everything here is made of. ``name`` ending in "/" is a scope that exists already.
    """

    def __init__(
        self,
        dtype: object,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> None:
        parents = list(graph_parents or [])
        for i, parent in enumerate(parents):
            if parent is None or not is_tensor(parent):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent}.")
        if not name or not name.endswith("/"):
            with name_scope(name or type(self).__name__) as name:
                pass
        self._dtype = dtypes.as_dtype(dtype) if dtype is not None else None
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = {
            k: v for k, v in (parameters or {}).items() if k != "self" and not k.startswith("__")
        }
        self._graph_parents = parents
        self._name = name

    # what it is ---------------------------------------------------------------------------------
    @property
    def name(self) -> str | None:
        """The scope of all operations that this object makes, with "/" at its end."""
        return self._name

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor was given."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether a statistic that does not exist is NaN (else an error)."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    def copy(self, **override_parameters_kwargs: object) -> Any:
        """The same distribution with some parameters changed."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(
        cls, sample_shape: Any, name: str = "DistributionParamShapes"
    ) -> dict[str, Tensor]:
        """Shapes of parameters, by name, for samples of a shape."""
        with name_scope(name, values=[sample_shape]):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: ShapeLike) -> dict[str, TensorShape]:
        """:meth:`param_shapes` as TensorShapes."""
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        found = {}
        for name, shape in cls.param_shapes(sample_shape).items():
            known = static_value(shape)
            if known is None:
                raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
            found[name] = TensorShape(known)
        return found

    @staticmethod
    def _param_shapes(sample_shape: TensorLike) -> dict[str, Tensor]:
        raise NotImplementedError("_param_shapes not implemented")

    def __str__(self) -> str:
        batch, event = self.batch_shape, self.event_shape
        return (
            f'tfp.distributions.{type(self).__name__}("{self.name}"'
            + (f", batch_shape={batch}" if batch.ndims is not None else "")
            + (f", event_shape={event}" if event.ndims is not None else "")
            + f", dtype={self.dtype.name})"
        )

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} '{self.name}' "
            f"batch_shape={self.batch_shape} event_shape={self.event_shape} "
            f"dtype={self.dtype.name}>"
        )

    # shapes -------------------------------------------------------------------------------------
    @property
    def batch_shape(self) -> TensorShape:
        return TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        return TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The batch shape, as a vector."""
        with self._name_scope(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtypes.int32, "batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The event shape, as a vector."""
        with self._name_scope(name):
            known = self.event_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtypes.int32, "event_shape")
            return self._event_shape_tensor()

    def _batch_shape(self) -> Any:
        return None

    def _event_shape(self) -> Any:
        return None

    def _batch_shape_tensor(self) -> Tensor:
        raise self._lacks("batch_shape_tensor")

    def _event_shape_tensor(self) -> Tensor:
        raise self._lacks("event_shape_tensor")

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether an event is one number."""
        with self._name_scope(name):
            return convert_to_tensor(
                _has_no_dimensions(self.event_shape, self.event_shape_tensor),
                name="is_scalar_event",
            )

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether there is one distribution."""
        with self._name_scope(name):
            return convert_to_tensor(
                _has_no_dimensions(self.batch_shape, self.batch_shape_tensor),
                name="is_scalar_batch",
            )

    # samples ------------------------------------------------------------------------------------
    def sample(
        self, sample_shape: TensorLike = (), seed: int | None = None, name: str = "sample"
    ) -> Tensor:
        """Draws, of shape ``sample_shape + batch_shape + event_shape``."""
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: TensorLike, seed: int | None, name: str) -> Tensor:
        with self._name_scope(name, [sample_shape]):
            shape = convert_to_tensor(sample_shape, dtypes.int32, "sample_shape")
            shape, number = self._expand_sample_shape_to_vector(shape, "sample_shape")
            samples = self._sample_n(number, seed)
            return self._finish_sample(samples, shape)

    def _finish_sample(self, samples: Tensor, shape: ShapeLike) -> Tensor:
        inner = shape_of(samples)[1:]
        samples = reshape(samples, concat([shape, inner], 0))
        return self._set_sample_static_shape(samples, shape)

    def _sample_n(self, n: object, seed: int | None = None) -> Tensor:
        raise self._lacks("sample_n")

    def _expand_sample_shape_to_vector(self, x: Tensor, name: str) -> tuple[Any, Any]:
        """The shape as a vector, and how many samples it stands for."""
        known = static_value(x)
        number = reduce_prod(x) if known is None else np.prod(known, dtype=np.int32)
        ndims = x.shape.ndims
        if ndims is None:
            x = reshape(x, [-1])  # a number or a vector, known when it runs
        elif ndims == 0:
            if known is None:
                x = reshape(x, [1])
            else:
                x = convert_to_tensor(np.array([known], np.int32), name=name)
        elif ndims != 1:
            raise ValueError("Input is neither scalar nor vector.")
        return x, number

    def _set_sample_static_shape(self, x: Tensor, sample_shape: Any) -> Tensor:
        sample = TensorShape(static_value(sample_shape))
        batch, event = self.batch_shape, self.event_shape
        if sample.ndims is None and sample_shape.shape.is_fully_defined():
            sample = TensorShape([None] * sample_shape.shape.as_list()[0])
        whole = sample.concatenate(batch).concatenate(event)
        if whole.ndims is None and x.shape.ndims is not None and event.ndims is not None:
            whole = TensorShape([None] * (x.shape.ndims - event.ndims)).concatenate(event)
        if whole.ndims is not None:
            x.set_shape(whole)
        return x

    # densities ----------------------------------------------------------------------------------
    def log_prob(self, value: TensorLike, name: str = "log_prob") -> Any:
        """The logarithm of the density (mass) at ``value``."""
        return self._of_value(value, name, self._log_prob, lambda x: log(self._prob(x)))

    def prob(self, value: TensorLike, name: str = "prob") -> Any:
        """The density (mass) at ``value``."""
        return self._of_value(value, name, self._prob, lambda x: exp(self._log_prob(x)))

    def log_cdf(self, value: TensorLike, name: str = "log_cdf") -> Any:
        """The logarithm of P(X <= value)."""
        return self._of_value(value, name, self._log_cdf, lambda x: log(self._cdf(x)))

    def cdf(self, value: TensorLike, name: str = "cdf") -> Any:
        """P(X <= value)."""
        return self._of_value(value, name, self._cdf, lambda x: exp(self._log_cdf(x)))

    def log_survival_function(self, value: TensorLike, name: str = "log_survival_function") -> Any:
        """The logarithm of P(X > value)."""
        return self._of_value(
            value, name, self._log_survival_function, lambda x: log1p(-self.cdf(x))
        )

    def survival_function(self, value: TensorLike, name: str = "survival_function") -> Any:
        """P(X > value)."""
        return self._of_value(value, name, self._survival_function, lambda x: 1.0 - self.cdf(x))

    def quantile(self, value: TensorLike, name: str = "quantile") -> Any:
        """The x with P(X <= x) = value."""
        return self._of_value(value, name, self._quantile, None)

    def _of_value(
        self,
        value: TensorLike,
        name: str,
        first: Callable[[Any], Any],
        second: Callable[[Any], Any] | None,
    ) -> Any:
        with self._name_scope(name, [value]):
            value = convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            return _first_defined(
                lambda: first(value), None if second is None else lambda: second(value)
            )

    # statistics ---------------------------------------------------------------------------------
    def entropy(self, name: str = "entropy") -> Tensor:
        with self._name_scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Tensor:
        with self._name_scope(name):
            return self._mean()

    def mode(self, name: str = "mode") -> Tensor:
        with self._name_scope(name):
            return self._mode()

    def variance(self, name: str = "variance") -> Any:
        with self._name_scope(name):
            return _first_defined(self._variance, lambda: square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Any:
        with self._name_scope(name):
            return _first_defined(self._stddev, lambda: sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Tensor:
        with self._name_scope(name):
            return self._covariance()

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """The mean of ``-other.log_prob`` under this distribution."""
        with self._name_scope(name):
            return divergences.cross_entropy(self, other, self.allow_nan_stats)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence from this distribution to ``other``."""
        with self._name_scope(name):
            return divergences.kl_divergence(self, other, self.allow_nan_stats)

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    def _log_prob(self, value: Tensor) -> Tensor:
        raise self._lacks("log_prob")

    def _prob(self, value: Tensor) -> Tensor:
        raise self._lacks("prob")

    def _log_cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("log_cdf")

    def _cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("cdf")

    def _log_survival_function(self, value: Tensor) -> Tensor:
        raise self._lacks("log_survival_function")

    def _survival_function(self, value: Tensor) -> Tensor:
        raise self._lacks("survival_function")

    def _quantile(self, value: Tensor) -> Tensor:
        raise self._lacks("quantile")

    def _entropy(self) -> Tensor:
        raise self._lacks("entropy")

    def _mean(self) -> Tensor:
        raise self._lacks("mean")

    def _mode(self) -> Tensor:
        raise self._lacks("mode")

    def _variance(self) -> Tensor:
        raise self._lacks("variance")

    def _stddev(self) -> Tensor:
        raise self._lacks("stddev")

    def _covariance(self) -> Tensor:
        raise self._lacks("covariance")

    @contextlib.contextmanager
    def _name_scope(self, name: str, values: Sequence[Any] = ()) -> Iterator[str]:
        with (
            name_scope(self.name),
            name_scope(name, values=[*values, *self._graph_parents]) as scope,
        ):
            yield scope


class ScalarDistribution(Distribution):
    """A distribution of numbers, whose batch shape is that of its parameters, broadcast."""

    #: Names of the parameters, which are attributes with a leading underscore.
    _parameter_names: tuple[str, ...] = ()

    def _keep(self, checks: Sequence[Any], **parameters: object) -> list[Tensor]:
        """Set ``_name`` for each parameter: the identity of its tensor, after the checks."""
        with control_dependencies(list(checks)):
            kept = [identity(value, name=name) for name, value in parameters.items()]
            for name, tensor in zip(parameters, kept, strict=True):
                setattr(self, f"_{name}", tensor)
            assert_same_float_dtype(kept)
        return kept

    @classmethod
    def _param_shapes(cls, sample_shape: TensorLike) -> dict[str, Tensor]:
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return dict.fromkeys(cls._parameter_names, shape)

    def _tensors(self) -> list[Tensor]:
        return [getattr(self, f"_{name}") for name in self._parameter_names]

    def _batch_shape(self) -> TensorShape:
        first, *rest = self._tensors()
        found = first.shape
        for tensor in rest:
            found = broadcast_static_shape(found, tensor.shape)
        return found

    def _batch_shape_tensor(self) -> Tensor:
        *rest, last = [shape_of(t) for t in self._tensors()]
        for shape in reversed(rest):
            last = broadcast_dynamic_shape(shape, last)
        return last

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Tensor:
        return constant([], dtype=dtypes.int32)

    def _full_shape(self, n: Array) -> Tensor:
        """The shape of ``n`` samples."""
        return concat([[n], self.batch_shape_tensor()], 0)


def _first_defined(first: Callable[[], Any], second: Callable[[], Any] | None) -> Any:
    try:
        return first()
    except NotImplementedError as original:
        if second is None:
            raise
        try:
            return second()
        except NotImplementedError:
            raise original from None


def _has_no_dimensions(static: TensorShape, dynamic: Callable[[], Any]) -> Any:
    if static.ndims is not None:
        return static.ndims == 0
    shape = dynamic()
    if shape.shape.is_fully_defined():
        return shape.shape.as_list() == [0]
    return equal(shape_of(shape)[0], 0)
