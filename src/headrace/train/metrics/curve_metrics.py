"""``tf.metrics``: areas under curves and points on them, from confusion counts at many
thresholds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones_like
from headrace.ops.array.selecting import where
from headrace.ops.math.arg_reductions import argmax, argmin
from headrace.ops.math.binary import div, div_no_nan, maximum, minimum, multiply
from headrace.ops.math.comparison import equal, logical_and
from headrace.ops.math.cumulative import cumsum
from headrace.ops.math.reductions import reduce_min, reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import log
from headrace.train.metrics.confusion_counts import confusion_at_thresholds
from headrace.train.metrics.metric_parts import Metric, refuse_eager, registered
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = ["auc", "sensitivity_at_specificity", "specificity_at_sensitivity"]

_EPSILON = 1e-7


def _spread(number: int, last: float = 1.0 + _EPSILON) -> list[float]:
    """Thresholds spread evenly over [0, 1], the ends moved so that no prediction lies on them."""
    inner = [(i + 1) * 1.0 / (number - 1) for i in range(number - 2)]
    return [0.0 - _EPSILON, *inner, last]


def _careful_pr_area(tp: Tensor | Variable, fp: Tensor | Variable, fn: Tensor | Variable) -> Tensor:
    """The area below the precision-recall curve, with precision interpolated between thresholds."""
    gained = tp[:-1] - tp[1:]
    positive = tp + fp
    before, after = positive[:-1], positive[1:]
    slope = div_no_nan(gained, maximum(before - after, 0), name="prec_slope")
    intercept = tp[1:] - multiply(slope, after)
    both = logical_and(before > 0, after > 0)
    ratio = div_no_nan(before, maximum(after, 0), name="recall_relative_ratio")
    ratio = where(both, ratio, ones_like(after))
    steps = div_no_nan(
        slope * (gained + intercept * log(ratio)),
        maximum(tp[1:] + fn[1:], 0),
        name="pr_auc_increment",
    )
    return reduce_sum(steps, name="interpolate_pr_auc")


def _area(counts: dict[str, Any], curve: str, method: str, name: str) -> Tensor:
    tp, fn, tn, fp = (counts[k] for k in ("tp", "fn", "tn", "fp"))
    if curve == "PR" and method == "careful_interpolation":
        return _careful_pr_area(tp, fp, fn)
    epsilon = 1e-6
    recall = div(tp + epsilon, tp + fn + epsilon)
    if curve == "ROC":
        x, y = div(fp, fp + tn + epsilon), recall
    else:
        x, y = recall, div(tp + epsilon, tp + fp + epsilon)
    width, left, right = x[:-1] - x[1:], y[:-1], y[1:]
    if method in ("trapezoidal", "careful_interpolation"):
        height = (left + right) / 2.0
    elif method == "minoring":
        height = minimum(left, right)
    elif method == "majoring":
        height = maximum(left, right)
    else:
        raise ValueError(f"Invalid summation_method: {method}")
    return reduce_sum(multiply(width, height), name=name)


def auc(
    labels: Tensor,
    predictions: Tensor,
    weights: Tensor | None = None,
    num_thresholds: int = 200,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under the ROC or precision-recall ("PR") curve of predictions in [0, 1].

    ``summation_method``: "trapezoidal", "careful_interpolation" (better for "PR"), "minoring" or
    "majoring".

    ``num_thresholds`` thresholds between 0 and 1 approximate the curve; ``thresholds`` gives them
    explicitly. Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the
    result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.auc")
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
        if thresholds is None:
            limits = _spread(num_thresholds)
        else:
            limits = [0.0 - _EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
        if curve == "PR" and summation_method == "trapezoidal":
            logging.getLogger("tensorflow").warning(
                "Trapezoidal rule is known to produce incorrect PR-AUCs; "
                'please switch to "careful_interpolation" instead.'
            )
        values, updates = confusion_at_thresholds(labels, predictions, limits, weights)
        value = _area(values, curve, summation_method, "value")
        update = _area(updates, curve, summation_method, "update_op")
        return registered(value, update, metrics_collections, updates_collections)


def sensitivity_at_specificity(
    labels: Tensor,
    predictions: Tensor,
    specificity: float,
    weights: Tensor | None = None,
    num_thresholds: int = 200,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The sensitivity (true positive rate) at the threshold whose specificity is nearest to
    ``specificity``.

    ``num_thresholds`` thresholds between 0 and 1 are tried; ``predictions`` lie in [0, 1],
    ``labels`` are bools. Returns ``(value, update_op)``: run ``update_op`` with every batch;
    ``value`` is the result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.sensitivity_at_specificity")
    if specificity < 0 or specificity > 1:
        raise ValueError("`specificity` must be in the range [0, 1].")

    def point(counts: dict[str, Any], part: str) -> Tensor:
        tp, fn, tn, fp = (counts[k] for k in ("tp", "fn", "tn", "fp"))
        specificities = div(tn, tn + fp + _EPSILON)
        nearest = argmin(abs_of(specificities - specificity), 0)
        nearest = cast(nearest, dtypes.int32)
        return div(tp[nearest], tp[nearest] + fn[nearest] + _EPSILON, part)

    scope = variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights))
    with scope:
        counts = confusion_at_thresholds(labels, predictions, _spread(num_thresholds), weights)
        return _at_point(counts, point, metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: Tensor,
    predictions: Tensor,
    sensitivity: float,
    weights: Tensor | None = None,
    num_thresholds: int = 200,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The specificity (true negative rate) at the last threshold whose sensitivity is nearest to
    ``sensitivity``.

    ``num_thresholds`` thresholds between 0 and 1 are tried; ``predictions`` lie in [0, 1],
    ``labels`` are bools. Returns ``(value, update_op)``: run ``update_op`` with every batch;
    ``value`` is the result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.specificity_at_sensitivity")
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")

    def point(counts: dict[str, Any], part: str) -> Tensor:
        tp, fn, tn, fp = (counts[k] for k in ("tp", "fn", "tn", "fp"))
        sensitivities = div(tp, tp + fn + _EPSILON)
        smallest = reduce_min(abs_of(sensitivities - sensitivity))
        at_smallest = equal(abs_of(sensitivities - sensitivity), smallest)
        last = argmax(cumsum(cast(at_smallest, dtypes.int64)), 0)
        last = cast(last, dtypes.int32)
        return div(tn[last], tn[last] + fp[last] + _EPSILON, part)

    scope = variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights))
    with scope:
        limits = _spread(num_thresholds, last=1.0 - _EPSILON)
        counts = confusion_at_thresholds(labels, predictions, limits, weights)
        return _at_point(counts, point, metrics_collections, updates_collections)


def _at_point(
    counts: tuple[dict[str, Any], dict[str, Any]],
    point: Callable[[dict[str, Any], str], Tensor],
    metrics_collections: Sequence[str] | str | None,
    updates_collections: Sequence[str] | str | None,
) -> Metric:
    """The metric that ``point`` computes of the counts so far and of those after an update."""
    values, updates = counts
    value, update = point(values, "value"), point(updates, "update_op")
    return registered(value, update, metrics_collections, updates_collections)
