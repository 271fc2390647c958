"""Choosing between datasets, and between elements, at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.specs import TensorSpec
from headrace.data.api import structure
from headrace.data.functions.user_functions import call_with

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.data.api.dataset import DatasetV2
    from headrace.data.api.dataset_v1 import DatasetV1

__all__ = ["choose_from_datasets", "rejection_resample", "sample_from_datasets"]


def choose_from_datasets(
    datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Any:
    """Elements in the order that the numbers of ``choice_dataset`` give.

    ``choice_dataset`` has scalar int64 indices into ``datasets``; a choice of a dataset that has
    ended is passed over, or ends the result with ``stop_on_empty_dataset``.

        both = [tf.data.Dataset.from_tensors(0).repeat(), tf.data.Dataset.from_tensors(1).repeat()]
        choice = tf.data.Dataset.range(2).repeat(2)
        tf.data.experimental.choose_from_datasets(both, choice)
    """
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    spec = choice_dataset.element_spec
    if not isinstance(spec, TensorSpec) or spec.dtype is not dtypes.int64 or spec.shape.rank != 0:
        raise TypeError(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar "
            "`tf.int64` tensors but are "
            f"{choice_dataset.element_spec}."
        )
    return _directed(choice_dataset, datasets, stop_on_empty_dataset)


def _directed(selector: DatasetV1 | DatasetV2, datasets: Sequence[Any], stop_on_empty: bool) -> Any:
    first = datasets[0]
    spec = first.element_spec
    for other in datasets[1:]:
        if structure.types_of(other.element_spec) != structure.types_of(spec):
            raise TypeError(
                f"Elements of all datasets must have the same types: {spec} and "
                f"{other.element_spec}"
            )
        spec = nest.map_structure(
            lambda a, b: a.most_specific_common_supertype([b]),
            spec,
            other.element_spec,
            check_types=False,
        )
    variant = apply_op(
        "_StoppingInterleaveDataset" if stop_on_empty else "DirectedInterleaveDataset",
        selector._variant_tensor,
        [d._variant_tensor for d in datasets],
        output_types=structure.component_types(spec),
        output_shapes=structure.component_shapes(spec),
    )
    return first._new(variant, spec, *datasets[1:])


def sample_from_datasets(
    datasets: Sequence[Any],
    weights: TensorLike | None = None,
    seed: TensorLike | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
) -> Any:
    """Elements of datasets that are drawn with probabilities ``weights`` (or a dataset of them).

    Without ``weights`` all are as likely. A dataset that has ended is not drawn again, or ends the
    result with ``stop_on_empty_dataset``. ``seed`` repeats the choices;
    ``rerandomize_each_iteration`` makes each iteration draw others.
    """
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    base = datasets[0]._base
    if isinstance(weights, (list, tuple, np.ndarray)) and not base._own_seeds:
        datasets, weights = _likely(datasets, weights)
    if len(datasets) == 1:
        return datasets[0]
    seeds = base.random(seed, rerandomize_each_iteration).batch(2)
    if weights is not None and isinstance(weights, base):
        pairs = base.zip((seeds, weights))
        selector = pairs.map(lambda s, w: _draw(_log(w), s))
        return _directed(selector, datasets, stop_on_empty_dataset)
    if weights is None:
        weights = np.full(len(datasets), 1.0 / len(datasets), np.float32)
    weights = convert_to_tensor(weights, name="weights")
    if weights.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            "Invalid `weights`. `weights` must be a floating-point tensor or a dataset of "
            "them, but is "
            f"{weights.dtype}."
        )
    if weights.shape.rank == 1 and weights.shape.as_list()[0] not in (None, len(datasets)):
        raise ValueError(
            "`weights` must be a vector of length `len(datasets)`: there are "
            f"{len(datasets)} datasets and {weights.shape.as_list()[0]} weights."
        )
    logits = _log(weights)
    drawn = seeds.map(lambda s: _draw(logits, s))
    return _directed(drawn, datasets, stop_on_empty_dataset)


def _likely(datasets: Sequence[Any], weights: Any) -> tuple[Sequence[Any], Any]:
    """Those with a weight, as TensorFlow 2 does (1.15 draws among all of them)."""
    if len(datasets) != len(weights):
        return datasets, weights
    kept = [(d, w) for d, w in zip(datasets, weights) if w != 0]
    if not kept:
        return datasets[:1], weights[:1]
    return [d for d, _ in kept], [w for _, w in kept]


def _log(weights: Tensor) -> Tensor:
    return apply_op("ExpandDims", apply_op("Log", weights), 0)


def _draw(logits: Tensor, seed: Tensor) -> Tensor:
    drawn = apply_op("StatelessMultinomial", logits, 1, seed, output_dtype=dtypes.int64)
    return apply_op("Squeeze", drawn, squeeze_dims=[0, 1])


def rejection_resample(
    dataset: Any,
    class_func: Callable[..., Any],
    target_dist: TensorLike,
    initial_dist: TensorLike | None = None,
    seed: Any = None,
) -> Any:
    """(class, element) pairs, accepted with the probability that turns the initial distribution
    into the target's.

    Without ``initial_dist`` it is estimated from the elements that went by.
    """
    from headrace.ops.random.random_ops import random_uniform

    target = convert_to_tensor(target_dist, name="target_dist")
    known: Any = None
    if initial_dist is not None:
        known = _accepted(
            target, convert_to_tensor(initial_dist, target.dtype, name="initial_dist")
        )

    def with_class(*element: Tensor) -> tuple[Any, Tensor | tuple[Tensor, ...]]:
        value = element[0] if len(element) == 1 else element
        return call_with(class_func, value), value

    def kept(chances: TensorLike, label: TensorLike) -> Tensor:
        chance = apply_op("GatherV2", chances, label, 0)
        return apply_op("Less", random_uniform([], seed=seed, dtype=target.dtype), chance)

    pairs = dataset.map(with_class)
    if known is not None:
        return pairs.filter(lambda label, _: kept(known, label))
    counted = pairs.scan(*_counting(target))
    chosen = counted.filter(lambda chances, label, _: kept(chances, label))
    return chosen.map(lambda chances, label, value: (label, value))


def _accepted(target: TensorLike, initial: Tensor) -> Tensor:
    """How likely an element of each class is kept."""
    ratios = apply_op("DivNoNan", target, initial)
    return apply_op("DivNoNan", ratios, apply_op("Max", ratios, [0], keep_dims=False))


#: Elements of every class that are taken for seen before the first.
_SEEN_BEFORE = 10


def _counting(target: Any) -> tuple[Any, Any]:
    """The state and the function of a scan that puts the chances before (class, element)."""
    n = target.shape.as_list()[0] if target.shape.rank else None
    if n is None:
        raise ValueError("rejection_resample needs to know the number of classes of `target_dist`.")

    def count(seen: object, element: Any) -> Any:
        label = element[0]
        hot = apply_op("OneHot", label, n, np.int64(1), np.int64(0), axis=-1)
        seen = apply_op("AddV2", seen, hot)
        share = apply_op("Cast", seen, DstT=target.dtype)
        share = apply_op("RealDiv", share, apply_op("Sum", share, [0], keep_dims=False))
        return seen, (_accepted(target, share), *element)

    return np.full(n, _SEEN_BEFORE, np.int64), count
