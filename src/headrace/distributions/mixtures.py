"""Mixtures of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.distributions.discrete import Categorical
from headrace.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    gen_new_seed,
)
from headrace.ops.array.array_shape import expand_dims, reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.gathering import gather
from headrace.ops.array.joining import concat, stack
from headrace.ops.array.one_hot import one_hot
from headrace.ops.array.partitioning import dynamic_partition, dynamic_stitch
from headrace.ops.array.ranges import range as range_of
from headrace.ops.math.reductions import reduce_logsumexp, reduce_prod, reduce_sum
from headrace.ops.math.unary import exp, square
from headrace.ops.nn.activations import log_softmax

if TYPE_CHECKING:
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = ["Mixture", "MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of the distributions in the last batch axis of ``components_distribution``."""

    def __init__(
        self,
        mixture_distribution: Categorical,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        given = dict(locals())
        with name_scope(name) as name:
            self._mixture_distribution = mixture_distribution
            self._components_distribution = components_distribution
        super().__init__(
            components_distribution.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            [*mixture_distribution._graph_parents, *components_distribution._graph_parents],
            name,
        )

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def components_distribution(self) -> Distribution:
        return self._components_distribution

    @property
    def _event_axes(self) -> int:
        return self._components_distribution.event_shape.ndims or 0

    def _batch_shape(self) -> TensorShape:
        return self._components_distribution.batch_shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return self._components_distribution.batch_shape_tensor()[:-1]

    def _event_shape(self) -> TensorShape:
        return self._components_distribution.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._components_distribution.event_shape_tensor()

    def _with_axis(self, x: Tensor) -> Tensor:
        """``x`` with an axis for the components before the event's."""
        return expand_dims(x, -1 - self._event_axes)

    def _mask_axes(self, mask: Tensor) -> Tensor:
        for _ in range(self._event_axes):
            mask = mask[..., None]
        return mask

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = self._components_distribution.sample([n], seed=gen_new_seed(seed, "components"))
        classes = self._mixture_distribution.sample([n], seed=seed)
        depth = self._mixture_distribution.event_size
        mask = one_hot(classes, depth, dtype=drawn.dtype)
        own = self._mixture_distribution.batch_shape.ndims
        for _ in range((self.batch_shape.ndims or 0) if own == 0 else 0):
            mask = expand_dims(mask, 1)  # one choice for all of a batch
        axis = -1 - self._event_axes
        return reduce_sum(drawn * self._mask_axes(mask), axis)

    def _log_prob(self, x: Tensor) -> Tensor:
        each = self._components_distribution.log_prob(self._with_axis(x))
        return reduce_logsumexp(each + log_softmax(self._mixture_distribution.logits), axis=-1)

    def _log_cdf(self, x: Tensor) -> Tensor:
        each = self._components_distribution.log_cdf(self._with_axis(x))
        return reduce_logsumexp(each + log_softmax(self._mixture_distribution.logits), axis=-1)

    def _cdf(self, x: Tensor) -> Tensor:
        each = self._components_distribution.cdf(self._with_axis(x))
        return reduce_sum(each * self._mixture_distribution.probs, axis=-1)

    def _averaged(self, value: Tensor) -> Tensor:
        weights = self._mask_axes(self._mixture_distribution.probs)
        return reduce_sum(weights * value, -1 - self._event_axes)

    def _mean(self) -> Tensor:
        return self._averaged(self._components_distribution.mean())

    def _variance(self) -> Tensor:
        components = self._components_distribution
        distance = square(components.mean() - self._with_axis(self._mean()))
        return self._averaged(components.variance()) + self._averaged(distance)

    def _covariance(self) -> Tensor:
        """Of vectors: the mean covariance, and that of the means."""
        if self.event_shape.ndims != 1:
            raise NotImplementedError("covariance is implemented only when event_ndims is 1.")
        components = self._components_distribution
        away: Any = components.mean() - self._with_axis(self._mean())
        weights: Any = self._mixture_distribution.probs[..., None, None]
        each: Any = components.covariance() + away[..., None] * away[..., None, :]
        return reduce_sum(weights * each, -3)


class Mixture(Distribution):
    """A mixture of any distributions with equal shapes: ``cat`` chooses among ``components``.

    ``use_static_graph`` decides which seeds samples are drawn with, as in TensorFlow.
    """

    def __init__(
        self,
        cat: Categorical,
        components: Sequence[Distribution],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        given = dict(locals())
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        for component in components:
            if not isinstance(component, Distribution):
                raise TypeError(
                    "all entries in components must be Distribution instances, "
                    f"but saw: {component}"
                )
        if len({c.dtype for c in components}) > 1:
            raise TypeError("All components must have the same dtype")
        _check_shapes(cat, components)
        self._cat, self._components = cat, list(components)
        self._use_static_graph = use_static_graph
        with name_scope(name) as name:
            pass
        parents = [*cat._graph_parents, *(p for c in components for p in c._graph_parents)]
        super().__init__(
            components[0].dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            given,
            parents,
            name,
        )

    @property
    def cat(self) -> Categorical:
        return self._cat

    @property
    def components(self) -> list[Distribution]:
        return self._components

    @property
    def num_components(self) -> int:
        return len(self._components)

    def _batch_shape(self) -> TensorShape:
        return self._cat.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._cat.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._components[0].event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._components[0].event_shape_tensor()

    def _weights(self) -> list[Any]:
        probs = self._cat.probs
        found = [probs[..., i] for i in range(self.num_components)]
        for _ in range(self.event_shape.ndims or 0):
            found = [f[..., None] for f in found]
        return found

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        classes = self._cat.sample([n], seed=seed)
        seeds = []
        for _ in self._components:
            seed = gen_new_seed(seed, "mixture")
            seeds.append(seed)
        if not self._use_static_graph:
            return self._sample_where_needed(classes, seeds)
        pairs = zip(self._components, seeds, strict=True)
        drawn = [component.sample([n], seed=seed) for component, seed in pairs]
        mask: Any = one_hot(classes, self.num_components, axis=0, dtype=self.dtype)
        for _ in range(self.event_shape.ndims or 0):
            mask = mask[..., None]
        return reduce_sum(stack(drawn, 0) * mask, 0)

    def _sample_where_needed(self, classes: Tensor, seeds: list[int | None]) -> Tensor:
        """Each component draws as often as it was chosen."""
        size, event = shape_of(classes), self.event_shape_tensor()
        batch = reduce_prod(size[1:])
        flat = reshape(classes, [-1])
        numbers: Any = range_of(0, reduce_prod(size))
        places = dynamic_partition(numbers, flat, self.num_components)
        drawn = []
        for component, seed, chosen in zip(self._components, seeds, places, strict=True):
            count: Any = shape_of(chosen)[0]
            rows = reshape(component.sample(count, seed=seed), concat([[-1], event], 0))
            drawn.append(gather(rows, range_of(0, count) * batch + chosen % batch))
        return reshape(dynamic_stitch(places, drawn), concat([size, event], 0))

    def _log_cdf(self, x: Tensor) -> Tensor:
        weights = log_softmax(self._cat.logits)
        each = [c.log_cdf(x) + weights[..., i] for i, c in enumerate(self._components)]
        return reduce_logsumexp(stack(each, 0), axis=0)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = convert_to_tensor(x, name="x")
        weights = log_softmax(self._cat.logits)
        each = [c.log_prob(x) + weights[..., i] for i, c in enumerate(self._components)]
        return reduce_logsumexp(stack(each, 0), axis=0)

    def _prob(self, x: Tensor) -> Tensor:
        return exp(self._log_prob(x))

    def _mean(self) -> Any:
        pairs = zip(self._weights(), self._components, strict=True)
        return sum(w * c.mean() for w, c in pairs)

    def _variance(self) -> Any:
        mean = self._mean()
        pairs = zip(self._weights(), self._components, strict=True)
        return sum(w * (c.variance() + square(c.mean() - mean)) for w, c in pairs)

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Any:
        """The components' mean entropy: a mixture's own is at least that."""
        with self._name_scope(name):
            probs = self._cat.probs
            return sum(probs[..., i] * c.entropy() for i, c in enumerate(self._components))


def _check_shapes(cat: Categorical, components: Sequence[Distribution]) -> None:
    """Refuse components whose number or static shapes do not fit."""
    classes = static_value(cat.event_size)
    if classes is None:
        raise ValueError("Could not infer number of classes from cat and unable to check it.")
    if int(classes) != len(components):
        raise ValueError(f"cat.num_classes != len(components): {classes} vs. {len(components)}")
    batch, event = cat.batch_shape, components[0].event_shape
    for component in components:
        batch = batch.merge_with(component.batch_shape)
        event = event.merge_with(component.event_shape)
