"""``tf.metrics``.

Counts of true and false positives and negatives, at one threshold or many, and ratios of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace.core import dtypes
from headrace.core.scopes import control_dependencies
from headrace.ops.array.array_shape import expand_dims, rank, reshape, transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.casting import cast
from headrace.ops.array.joining import stack
from headrace.ops.array.padding import tile
from headrace.ops.array.selecting import where
from headrace.ops.control.assertions import (
    assert_greater_equal,
    assert_less_equal,
    assert_rank_in,
    assert_type,
)
from headrace.ops.math.binary import div, multiply
from headrace.ops.math.comparison import equal, greater, logical_and, logical_not
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.nn.weights_broadcasting import broadcast_weights
from headrace.ops.state.ref_state import assign_add
from headrace.train.metrics.metric_parts import (
    Metric,
    align,
    align_bool,
    metric_variable,
    refuse_eager,
    registered,
)
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "COUNTS",
    "confusion_at_thresholds",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
]

#: Count -> (the variable's name, whether the label is positive, whether the prediction is), in the
#: order of creation.
COUNTS = {
    "tp": ("true_positives", True, True),
    "fn": ("false_negatives", True, False),
    "tn": ("true_negatives", False, False),
    "fp": ("false_positives", False, True),
}

#: What the docstrings of the metrics below have in common.
_STREAMING = """

    ``labels`` and ``predictions`` have one shape, to which ``weights`` is broadcast. Returns
    ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over all
    batches so far. The counts are local variables: run ``tf.local_variables_initializer()`` first.
    ``metrics_collections`` and ``updates_collections`` name collections to which ``value`` and
    ``update_op`` are added.
    """


def _count(
    kind: str,
    labels: Any,
    predictions: TensorLike,
    weights: TensorLike | None,
    ours: object,
    theirs: Any,
    name: str | None,
) -> Metric:
    variable_name, label, prediction = COUNTS[kind]
    refuse_eager(f"tf.metrics.{variable_name}")
    with variable_scope(name, variable_name, (predictions, labels, weights)):
        predictions, labels, weights = align_bool(predictions, labels, weights)
        found = logical_and(equal(labels, label), equal(predictions, prediction))
        assert_type(found, dtypes.bool)
        count = metric_variable([], dtypes.float32, name="count")
        values = cast(found, dtypes.float32)
        if weights is not None:
            with control_dependencies((assert_rank_in(weights, (0, rank(values))),)):
                values = multiply(values, cast(weights, dtypes.float32))
        value = identity(count)
        update = assign_add(count, reduce_sum(values))
        return registered(value, update, ours, theirs)


class _Counter(Protocol):
    """The signature of a metric of labels and predictions."""

    def __call__(
        self,
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric: ...


def _counter(kind: str, doc: str) -> _Counter:
    def counter(
        labels: TensorLike,
        predictions: TensorLike,
        weights: TensorLike | None = None,
        metrics_collections: str | Sequence[str] | None = None,
        updates_collections: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> Metric:
        return _count(
            kind, labels, predictions, weights, metrics_collections, updates_collections, name
        )

    counter.__name__ = counter.__qualname__ = COUNTS[kind][0]
    counter.__doc__ = doc + _STREAMING
    return counter


true_positives = _counter(
    "tp", "The (weighted) number of positive labels that were predicted positive."
)
false_negatives = _counter(
    "fn", "The (weighted) number of positive labels that were predicted negative."
)
true_negatives = _counter(
    "tn", "The (weighted) number of negative labels that were predicted negative."
)
false_positives = _counter(
    "fp", "The (weighted) number of negative labels that were predicted positive."
)


def _share(part: Tensor, rest: Tensor, name: str) -> Tensor:
    return where(greater(part + rest, 0), div(part, part + rest), 0, name)


def _ratio(title: str, other: _Counter, doc: str) -> _Counter:
    """True positives among these and what ``other`` counts."""

    def ratio(
        labels: Tensor,
        predictions: TensorLike,
        weights: TensorLike | None = None,
        metrics_collections: str | Sequence[str] | None = None,
        updates_collections: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> Metric:
        # TensorFlow's text says it twice for recall
        twice = " is not supported" if title == "recall" else ""
        refuse_eager(f"tf.metrics.{title}{twice}")
        with variable_scope(name, title, (predictions, labels, weights)):
            predictions, labels, weights = align_bool(predictions, labels, weights)
            right, more_right = true_positives(labels, predictions, weights)
            rest, more_rest = other(labels, predictions, weights)
            value = _share(right, rest, "value")
            update = _share(more_right, more_rest, "update_op")
            return registered(value, update, metrics_collections, updates_collections)

    ratio.__name__ = ratio.__qualname__ = title
    ratio.__doc__ = doc + _STREAMING
    return ratio


precision = _ratio(
    "precision", false_positives, "True positives among all that was predicted positive."
)
recall = _ratio("recall", false_negatives, "True positives among all positive labels.")


# many thresholds --------------------------------------------------------------------------------


def confusion_at_thresholds(
    labels: TensorLike,
    predictions: Any,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    includes: Sequence[str] = tuple(COUNTS),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables (one number per threshold) and updates by count: "tp", "fn", "tn", "fp"."""
    for key in includes:
        if key not in COUNTS:
            raise ValueError(f"Invalid key: {key}.")
    low, high = cast(0.0, predictions.dtype), cast(1.0, predictions.dtype)
    message = "predictions must be in [0, 1]"
    checks = [
        assert_greater_equal(predictions, low, message=message),
        assert_less_equal(predictions, high, message=message),
    ]
    with control_dependencies(checks):
        predictions = cast(predictions, dtypes.float32)
        predictions, labels, weights = align(predictions, cast(labels, dtypes.bool), weights)
    number = len(thresholds)
    column = reshape(predictions, [-1, 1])
    row = reshape(cast(labels, dtypes.bool), [1, -1])
    length: Any = column.shape.as_list()[0]
    if length is None:
        length = shape_of(column)[0]
    limits = tile(expand_dims(constant(thresholds), [1]), stack([1, length]))
    predicted = greater(tile(transpose(column), [number, 1]), limits)
    predicted_not = logical_not(predicted) if {"fn", "tn"} & set(includes) else None
    label = tile(row, [number, 1])
    label_not = logical_not(label) if {"fp", "tn"} & set(includes) else None
    if weights is not None:
        weights = broadcast_weights(cast(weights, dtypes.float32), predictions)
        weights = tile(reshape(weights, [1, -1]), [number, 1])
        limits.shape.assert_is_compatible_with(weights.shape)
    values: dict[str, Any] = {}
    updates: dict[str, Any] = {}
    for key, (name, positive, said) in COUNTS.items():
        if key not in includes:
            continue
        values[key] = metric_variable([number], dtypes.float32, name=name)
        pair = (label if positive else label_not, predicted if said else predicted_not)
        found = cast(logical_and(*pair), dtypes.float32)
        if weights is not None:
            found *= weights
        updates[key] = assign_add(values[key], reduce_sum(found, 1))
    return values, updates


def _count_at(
    kind: str,
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None,
    ours: object,
    theirs: Any,
    name: str | None,
) -> Metric:
    variable_name = COUNTS[kind][0]
    refuse_eager(f"tf.metrics.{variable_name}_at_thresholds")
    with variable_scope(name, variable_name, (predictions, labels, weights)):
        values, updates = confusion_at_thresholds(labels, predictions, thresholds, weights, (kind,))
        return registered(identity(values[kind]), updates[kind], ours, theirs)


class _CounterAt(Protocol):
    """The signature of a metric per threshold."""

    def __call__(
        self,
        labels: Any,
        predictions: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric: ...


def _counter_at(kind: str) -> _CounterAt:
    def counter(
        labels: TensorLike,
        predictions: TensorLike,
        thresholds: Sequence[float],
        weights: TensorLike | None = None,
        metrics_collections: str | Sequence[str] | None = None,
        updates_collections: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> Metric:
        return _count_at(
            kind,
            labels,
            predictions,
            thresholds,
            weights,
            metrics_collections,
            updates_collections,
            name,
        )

    counter.__name__ = counter.__qualname__ = f"{COUNTS[kind][0]}_at_thresholds"
    counter.__doc__ = (
        f":func:`{COUNTS[kind][0]}` for each of ``thresholds`` in [0, 1], in one vector.\n\n"
        "    A prediction counts as positive above the threshold." + _STREAMING
    )
    return counter


true_positives_at_thresholds = _counter_at("tp")
false_negatives_at_thresholds = _counter_at("fn")
true_negatives_at_thresholds = _counter_at("tn")
false_positives_at_thresholds = _counter_at("fp")


def _ratio_at(
    what: str,
    other: str,
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None,
    ours: object,
    theirs: Any,
    name: str | None,
) -> Metric:
    """True positives over true positives and another count, per threshold."""
    refuse_eager(f"tf.metrics.{what}_at_thresholds")
    with variable_scope(name, f"{what}_at_thresholds", (predictions, labels, weights)):
        kinds = ("tp", other)
        values, updates = confusion_at_thresholds(labels, predictions, thresholds, weights, kinds)

        def ratio(counts: dict[str, Any], part: str) -> Tensor:
            right = counts["tp"]
            return div(right, 1e-7 + right + counts[other], name=f"{what}_{part}")

        return registered(ratio(values, "value"), ratio(updates, "update_op"), ours, theirs)


def precision_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming precision for each of ``thresholds`` in [0, 1], in one vector.

    A prediction counts as positive above the threshold. Returns ``(value, update_op)``: run
    ``update_op`` with every batch; ``value`` is the result over all batches so far. The totals are
    local variables: run ``tf.local_variables_initializer()`` first. ``metrics_collections`` and
    ``updates_collections`` name collections to which ``value`` and ``update_op`` are added.
    ``labels`` and ``predictions`` have one shape; ``weights`` is broadcast to it, and 0 leaves an
    element out.
    """
    return _ratio_at(
        "precision",
        "fp",
        labels,
        predictions,
        thresholds,
        weights,
        metrics_collections,
        updates_collections,
        name,
    )


def recall_at_thresholds(
    labels: Tensor,
    predictions: Tensor,
    thresholds: Sequence[float],
    weights: Tensor | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming recall for each of ``thresholds`` in [0, 1], in one vector.

    A prediction counts as positive above the threshold. Returns ``(value, update_op)``: run
    ``update_op`` with every batch; ``value`` is the result over all batches so far. The totals are
    local variables: run ``tf.local_variables_initializer()`` first. ``metrics_collections`` and
    ``updates_collections`` name collections to which ``value`` and ``update_op`` are added.
    ``labels`` and ``predictions`` have one shape; ``weights`` is broadcast to it, and 0 leaves an
    element out.
    """
    return _ratio_at(
        "recall",
        "fn",
        labels,
        predictions,
        thresholds,
        weights,
        metrics_collections,
        updates_collections,
        name,
    )
