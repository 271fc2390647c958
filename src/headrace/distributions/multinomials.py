"""Counts of several classes: ``Multinomial`` and ``DirichletMultinomial``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.discrete import LogitsDistribution
from headrace.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    gen_new_seed,
)
from headrace.distributions.logits import (
    check_counts,
    get_logits_and_probs,
    log_combinations,
)
from headrace.ops.array.array_shape import reshape, transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import identity
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones_like
from headrace.ops.array.joining import concat
from headrace.ops.array.one_hot import one_hot
from headrace.ops.control.assertions import assert_equal, assert_positive
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.control.functional import map_fn
from headrace.ops.linalg.diagonals import matrix_set_diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.special import lbeta
from headrace.ops.math.unary import log, sqrt
from headrace.ops.nn.activations import log_softmax
from headrace.ops.random.gamma_poisson import random_gamma
from headrace.ops.random.random_ops import multinomial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.shapes import TensorShape

__all__ = ["DirichletMultinomial", "Multinomial"]


class Multinomial(LogitsDistribution):
    """How often each class comes up in ``total_count`` draws.

    Give ``logits`` or ``probs``, [..., K]; samples are counts [..., K] that sum to ``total_count``,
    as floats. ``validate_args`` checks parameters and values, for example that counts are whole.

        tf.distributions.Multinomial(4.0, probs=[0.25, 0.75]).mean()  # [1.0, 3.0]
    """

    def __init__(
        self,
        total_count: object,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[total_count, logits, probs]) as name:
            count = convert_to_tensor(total_count, name="total_count")
            self._total_count = check_counts(count) if validate_args else count
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
            self._mean_val: Any = self._total_count[..., None] * self._probs
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

    def _batch_shape(self) -> Any:
        return self._mean_val.shape.with_rank_at_least(1)[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._mean_val)[:-1]

    def _event_shape(self) -> Any:
        return self._mean_val.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._mean_val)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        draws: Any = cast(self.total_count, dtypes.int32)
        k = self.event_shape_tensor()[0]
        draws = ones_like(self.logits[..., 0], dtype=draws.dtype) * draws
        logits = ones_like(draws[..., None], dtype=self.logits.dtype) * self.logits
        flat_logits, flat_draws = reshape(logits, [-1, k]), n * reshape(draws, [-1])

        def one(args: Sequence[Tensor]) -> Tensor:
            drawn = reshape(multinomial(args[0][None, ...], args[1], seed), [n, -1])
            return reduce_sum(one_hot(drawn, depth=k), axis=-2)

        found = map_fn(one, [flat_logits, flat_draws], dtype=self.dtype)
        shape = concat([[n], self.batch_shape_tensor(), [k]], 0)
        return reshape(transpose(found, [1, 0, 2]), shape)

    def _checked(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        counts = check_counts(counts)
        sums = assert_equal(
            self.total_count,
            reduce_sum(counts, -1),
            message="counts must sum to `self.total_count`",
        )
        return with_dependencies([sums], counts)

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._checked(counts)
        density = reduce_sum(counts * log_softmax(self.logits), -1)
        return density - -log_combinations(self.total_count, counts)

    def _mean(self) -> Tensor:
        return identity(self._mean_val)

    def _wide_probs(self) -> Tensor:
        return self.probs * ones_like(self.total_count)[..., None]

    def _variance(self) -> Any:
        return self._mean_val - self._mean_val * self._wide_probs()

    def _covariance(self) -> Tensor:
        products = matmul(self._mean_val[..., None], self._wide_probs()[..., None, :])
        return matrix_set_diag(-products, self._variance())


class DirichletMultinomial(Distribution):
    """A Multinomial whose probabilities are drawn from a Dirichlet distribution.

    ``total_count`` is a number of draws, ``concentration`` [..., K] positive; samples are counts
    [..., K] that sum to ``total_count``, as floats. ``validate_args`` checks parameters and values.

        tf.distributions.DirichletMultinomial(4.0, [1.0, 3.0]).mean()  # [1.0, 3.0]
    """

    def __init__(
        self,
        total_count: TensorLike,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[total_count, concentration]) as name:
            count = convert_to_tensor(total_count, name="total_count")
            self._total_count = check_counts(count) if validate_args else count
            tensor = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                message = "Concentration parameter must be positive."
                tensor = with_dependencies([assert_positive(tensor, message=message)], tensor)
            self._concentration = tensor
            self._total_concentration: Any = reduce_sum(tensor, -1)
        parents = [self._total_count, tensor]
        super().__init__(
            tensor.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, parents, name
        )

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def total_concentration(self) -> Any:
        """The sum over the last axis."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return self.total_concentration.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self.total_concentration)

    def _event_shape(self) -> TensorShape:
        return self.concentration.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self.concentration)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        draws = cast(self.total_count, dtypes.int32)
        k = self.event_shape_tensor()[0]
        gamma = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        other = gen_new_seed(seed, salt="dirichlet_multinomial")
        drawn = multinomial(reshape(log(gamma), [-1, k]), draws, seed=other)
        shape = concat([[n], self.batch_shape_tensor(), [k]], 0)
        return cast(reshape(reduce_sum(one_hot(drawn, depth=k), -2), shape), self.dtype)

    def _log_prob(self, counts: TensorLike) -> Tensor:
        if self.validate_args:
            counts = check_counts(counts)
            message = "counts last-dimension must sum to `self.total_count`"
            sums = assert_equal(self.total_count, reduce_sum(counts, -1), message=message)
            counts = with_dependencies([sums], convert_to_tensor(counts))
        ordered = lbeta(self.concentration + counts) - lbeta(self.concentration)
        return ordered + log_combinations(self.total_count, counts)

    def _mean(self) -> Any:
        return self.total_count * (self.concentration / self.total_concentration[..., None])

    def _scale_term(self) -> Any:
        c0 = self.total_concentration[..., None]
        return sqrt((1.0 + c0 / self.total_count) / (1.0 + c0))

    def _variance(self) -> Any:
        scale = self._scale_term()
        x = scale * self._mean()
        return x * (self.total_count * scale - x)

    def _covariance(self) -> Tensor:
        x = self._scale_term() * self._mean()
        return matrix_set_diag(-matmul(x[..., None], x[..., None, :]), self._variance())
