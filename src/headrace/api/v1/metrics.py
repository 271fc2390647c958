"""``tf.metrics``: streaming metrics."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.train.metrics.confusion_counts import (
    false_negatives, false_negatives_at_thresholds, false_positives, false_positives_at_thresholds,
    precision, precision_at_thresholds, recall, recall_at_thresholds, true_negatives,
    true_negatives_at_thresholds, true_positives, true_positives_at_thresholds,
)
from headrace.train.metrics.curve_metrics import (
    auc, sensitivity_at_specificity, specificity_at_sensitivity,
)
from headrace.train.metrics.mean_metrics import (
    accuracy, mean, mean_absolute_error, mean_cosine_distance, mean_iou, mean_per_class_accuracy,
    mean_relative_error, mean_squared_error, mean_tensor, percentage_below,
    root_mean_squared_error,
)
from headrace.train.metrics.ranking_metrics import (
    average_precision_at_k, precision_at_k, precision_at_top_k, recall_at_k, recall_at_top_k,
    sparse_average_precision_at_k, sparse_precision_at_k,
)

__all__ = [
    "accuracy", "auc", "average_precision_at_k", "false_negatives",
    "false_negatives_at_thresholds", "false_positives", "false_positives_at_thresholds", "mean",
    "mean_absolute_error", "mean_cosine_distance", "mean_iou", "mean_per_class_accuracy",
    "mean_relative_error", "mean_squared_error", "mean_tensor", "percentage_below", "precision",
    "precision_at_k", "precision_at_thresholds", "precision_at_top_k", "recall", "recall_at_k",
    "recall_at_thresholds", "recall_at_top_k", "root_mean_squared_error",
    "sensitivity_at_specificity", "sparse_average_precision_at_k", "sparse_precision_at_k",
    "specificity_at_sensitivity", "true_negatives", "true_negatives_at_thresholds",
    "true_positives", "true_positives_at_thresholds",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("metrics", __name__)
