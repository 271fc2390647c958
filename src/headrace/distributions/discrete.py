"""Distributions of outcomes: Bernoulli, Categorical, OneHotCategorical, Binomial, Geometric,
Multinomial, DirichletMultinomial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.shapes import dimension_value
from headrace.core.tensor import Tensor
from headrace.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
)
from headrace.distributions.divergences import RegisterKL
from headrace.distributions.logits import (
    check_counts,
    get_logits_and_probs,
)
from headrace.ops.array.array_shape import rank, reshape, transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones, ones_like, zeros_like
from headrace.ops.array.joining import concat
from headrace.ops.array.masking import sequence_mask
from headrace.ops.array.one_hot import one_hot
from headrace.ops.array.selecting import where
from headrace.ops.control.assertions import assert_less, assert_less_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_set_diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.math.arg_reductions import argmax
from headrace.ops.math.comparison import less
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.special import betainc, lgamma
from headrace.ops.math.unary import exp, expm1, floor, log, log1p, sigmoid
from headrace.ops.nn.activations import log_softmax, softmax, softplus
from headrace.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from headrace.ops.nn.sparse_cross_entropy import sparse_softmax_cross_entropy_with_logits
from headrace.ops.random.random_ops import multinomial, random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.shapes import TensorShape

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "OneHotCategorical"]


class LogitsDistribution(Distribution):
    """Has ``logits`` and ``probs``, one made from the other."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        """Log-odds (of one outcome) or unnormalised log-probabilities (of several)."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._probs


class _Scalars(LogitsDistribution):
    """Events are numbers; the batch is that of the logits."""

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._logits)

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Tensor:
        return constant([], dtype=dtypes.int32)


class Bernoulli(_Scalars):
    """0 or 1, with a probability of 1 (``probs``) or its log-odds (``logits``).

    Give one of both, of any shape: each element is a distribution. ``dtype`` is the type of
    samples. ``validate_args`` checks parameters and values at run time.

        tf.distributions.Bernoulli(probs=0.25).prob([0, 1])  # [0.75, 0.25]
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        given = dict(locals())
        with name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=name
            )
        parents = [self._logits, self._probs]
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, parents, name
        )

    @staticmethod
    def _param_shapes(sample_shape: TensorLike) -> dict[str, Tensor]:
        return {"logits": convert_to_tensor(sample_shape, dtypes.int32)}

    def _sample_n(self, n: object, seed: int | None = None) -> Tensor:
        shape = concat([[n], self.batch_shape_tensor()], 0)
        drawn = random_uniform(shape, seed=seed, dtype=self.probs.dtype)
        return cast(less(drawn, self.probs), self.dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        event = cast(event, self.logits.dtype)
        logits = self.logits
        known = event.shape.is_fully_defined() and logits.shape.is_fully_defined()
        if not (known and event.shape.as_list() == logits.shape.as_list()):
            logits, event = ones_like(event) * logits, ones_like(logits) * event
        return -sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Tensor:
        return -self.logits * (sigmoid(self.logits) - 1) + softplus(-self.logits)

    def _mean(self) -> Tensor:
        return identity(self.probs)

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return cast(self.probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_bernoulli_bernoulli", values=[a.logits, b.logits]):
        none = softplus(-b.logits) - softplus(-a.logits)
        one = softplus(b.logits) - softplus(a.logits)
        return sigmoid(a.logits) * none + sigmoid(-a.logits) * one


class _OverClasses(LogitsDistribution):
    """Logits with one entry per class in their last axis."""

    def _keep_classes(
        self, logits: TensorLike | None, probs: TensorLike | None, validate_args: bool, name: str
    ) -> None:
        self._logits, self._probs = get_logits_and_probs(
            logits, probs, multidimensional=True, validate_args=validate_args, name=name
        )
        static = self._logits.shape.with_rank_at_least(1)
        if static.ndims is not None:
            self._batch_rank = convert_to_tensor(static.ndims - 1, dtypes.int32, "batch_rank")
        else:
            with name_scope("batch_rank"):
                self._batch_rank = rank(self._logits) - 1
        shape = shape_of(self._logits, name="logits_shape")
        classes = dimension_value(static[-1]) if static.ndims is not None else None
        if classes is not None:
            self._event_size = convert_to_tensor(classes, dtypes.int32, "event_size")
        else:
            with name_scope("event_size"):
                self._event_size = shape[self._batch_rank]
        if static[:-1].is_fully_defined():
            self._batch_shape_val = constant(
                static[:-1].as_list(), dtype=dtypes.int32, name="batch_shape"
            )
        else:
            with name_scope("batch_shape"):
                self._batch_shape_val = shape[:-1]

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return self._event_size

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return identity(self._batch_shape_val)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self.logits) * self.probs, axis=-1)

    def _flat_logits(self) -> Tensor:
        if self.logits.shape.ndims == 2:
            return self.logits
        return reshape(self.logits, [-1, self.event_size])


class _OneClass(_OverClasses):
    """A sample is one of the classes."""

    def __init__(
        self,
        logits: TensorLike | None,
        probs: TensorLike | None,
        dtype: DTypeLike,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[logits, probs]) as name:
            self._keep_classes(logits, probs, validate_args, name)
        parents = [self._logits, self._probs]
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, parents, name
        )


class Categorical(_OneClass):
    """One of K classes as an integer, with ``logits`` or ``probs`` along the last axis.

    Give one of both, [..., K]; the leading axes are independent distributions. ``logits`` need not
    be normalized. ``dtype`` is the type of samples, ``validate_args`` checks parameters and values.

        tf.distributions.Categorical(probs=[0.1, 0.9]).mode()  # 1
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        super().__init__(logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Tensor:
        return constant([], dtype=dtypes.int32)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        kind = dtypes.int64 if self.dtype.size > 4 else dtypes.int32
        draws = multinomial(self._flat_logits(), n, seed=seed, output_dtype=kind)
        shape = concat([[n], self.batch_shape_tensor()], 0)
        return cast(reshape(transpose(draws), shape), self.dtype)

    def _aligned(self, k: Tensor, parameters: Tensor) -> tuple[Any, Any]:
        """Classes and parameters, broadcast against each other."""
        if k.dtype.is_floating:
            k = cast(k, dtypes.int32)
        elif not k.dtype.is_integer:
            raise TypeError(f"`value` should have integer `dtype` or `self.dtype` ({self.dtype})")
        batch = parameters.shape[:-1]
        known = batch.is_fully_defined() and k.shape.is_fully_defined()
        if not known or batch.as_list() != k.shape.as_list():
            parameters *= ones_like(k[..., None], dtype=parameters.dtype)
            k *= ones(shape_of(parameters)[:-1], dtype=k.dtype)
            if parameters.shape.ndims is not None:
                k.set_shape(parameters.shape[:-1])
        return k, parameters

    def _cdf(self, k: Tensor) -> Tensor:
        k, probs = self._aligned(convert_to_tensor(k, name="k"), self.probs)
        flat = reshape(probs, (-1, self._event_size))
        mask = sequence_mask(reshape(k, [-1]), self._event_size)
        return reshape(reduce_sum(where(mask, flat, zeros_like(flat)), axis=-1), shape_of(k))

    def _log_prob(self, k: Tensor) -> Tensor:
        k, logits = self._aligned(convert_to_tensor(k, name="k"), self.logits)
        return -sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _mode(self) -> Tensor:
        best = cast(argmax(self.logits, axis=self._batch_rank), self.dtype)
        best.set_shape(self.batch_shape)
        return best


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical", values=[a.logits, b.logits]):
        difference = log_softmax(a.logits) - log_softmax(b.logits)
        return reduce_sum(softmax(a.logits) * difference, axis=-1)


class OneHotCategorical(_OneClass):
    """A class, as a vector with one 1."""

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        super().__init__(logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _event_shape(self) -> TensorShape:
        return self.logits.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self.logits)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = concat([[n], shape_of(self.logits)], 0)
        draws = transpose(multinomial(self._flat_logits(), n, seed=seed))
        return reshape(one_hot(draws, self.event_size, dtype=self.dtype), shape)

    def _log_prob(self, x: Tensor) -> Tensor:
        logits = ones_like(x, dtype=self.logits.dtype) * self.logits
        x = ones_like(logits, dtype=x.dtype) * x
        shape = shape_of(reduce_sum(logits, -1))
        flat = [reshape(v, [-1, self.event_size]) for v in (cast(x, logits.dtype), logits)]
        found = softmax_cross_entropy_with_logits(labels=flat[0], logits=flat[1])
        return reshape(-found, shape)

    def _mode(self) -> Tensor:
        best = argmax(self.logits, axis=self._batch_rank)
        found = one_hot(best, self.event_size, dtype=self.dtype)
        found.set_shape(self.logits.shape)
        return found

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _covariance(self) -> Tensor:
        p = self.probs
        return matrix_set_diag(-matmul(p[..., None], p[..., None, :]), self._variance())


RegisterKL(OneHotCategorical, OneHotCategorical)(_kl_categorical)


class Binomial(_Scalars):
    """How many of ``total_count`` trials succeed."""

    def __init__(
        self,
        total_count: object,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[total_count, logits, probs]) as name:
            count = convert_to_tensor(total_count, name="total_count")
            self._total_count = check_counts(count) if validate_args else count
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=name
            )
        parents = [self._total_count, self._logits, self._probs]
        super().__init__(
            self._probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            parents,
            name,
        )

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    def _batch_shape(self) -> TensorShape:
        return (self.total_count + self.probs).shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self.total_count + self.probs)

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._checked(counts)
        density = counts * log(self.probs) + (self.total_count - counts) * log1p(-self.probs)
        normal = (
            lgamma(1.0 + self.total_count - counts)
            + lgamma(1.0 + counts)
            - lgamma(1.0 + self.total_count)
        )
        return density - normal

    def _checked(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        counts = check_counts(counts)
        message = "counts are not less than or equal to n."
        checks = [assert_less_equal(counts, self.total_count, message=message)]
        found: Tensor = with_dependencies(checks, counts)
        return found

    def _cdf(self, counts: Tensor) -> Tensor:
        counts = self._checked(counts)
        probs = self.probs
        if not probs.shape.is_compatible_with(counts.shape):
            probs += zeros_like(counts)
            counts += zeros_like(probs)
        full = less(counts, self.total_count)
        safe = where(full, counts, zeros_like(counts))
        inner = betainc(a=self.total_count - safe, b=1.0 + safe, x=1.0 - probs)
        return where(full, inner, ones_like(inner))

    def _mean(self) -> Tensor:
        return self.total_count * self.probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return floor((1.0 + self.total_count) * self.probs)


class Geometric(_Scalars):
    """How many trials fail before the first succeeds."""

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[logits, probs]) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=name
            )
        parents = [self._logits, self._probs]
        super().__init__(
            self._probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            parents,
            name,
        )

    def _sample_n(self, n: object, seed: int | None = None) -> Tensor:
        shape = concat([[n], shape_of(self._probs)], 0)
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = random_uniform(shape, least, 1.0, self.dtype, seed)
        return floor(log(drawn) / log1p(-self.probs))

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            counts = check_counts(counts)
        counts *= ones_like(self.probs)
        probs = self.probs * ones_like(counts)
        safe = where(counts > 0.0, probs, zeros_like(probs))
        return counts * log1p(-safe) + log(probs)

    def _cdf(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            counts = check_counts(counts)
        counts *= ones_like(self.probs)
        inner = -expm1((floor(counts) + 1.0) * log1p(-self.probs))
        return where(counts < 0.0, zeros_like(inner), inner)

    def _entropy(self) -> Tensor:
        probs = self.probs
        if self.validate_args:
            message = "Entropy is undefined when logits = inf or probs = 1."
            probs = with_dependencies(
                [assert_less(probs, constant(1.0, probs.dtype), message=message)], probs
            )
        return (-self.logits * (sigmoid(self.logits) - 1) + softplus(-self.logits)) / probs

    def _mean(self) -> Tensor:
        return exp(-self._logits)

    def _variance(self) -> Tensor:
        return self._mean() / self.probs

    def _mode(self) -> Tensor:
        return zeros_like(self.probs)
