"""Inner names of ``tensorflow.python.ops.metrics_impl`` that packages call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.scopes import add_to_collections
from headrace.ops.array.basic import identity
from headrace.ops.math.binary import div_no_nan
from headrace.train.metrics.confusion_counts import COUNTS, confusion_at_thresholds
from headrace.train.metrics.metric_parts import align as _remove_squeezable_dimensions
from headrace.train.metrics.metric_parts import metric_variable
from headrace.train.metrics.ranking_metrics import (
    _streaming_average_precision as _streaming_sparse_average_precision_at_top_k,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "_aggregate_variable", "_confusion_matrix_at_thresholds", "_remove_squeezable_dimensions",
    "_safe_scalar_div", "_streaming_sparse_average_precision_at_top_k", "metric_variable",
]  # fmt: skip


def _aggregate_variable(v: Tensor, collections: Sequence[str] | None) -> Tensor:
    """The variable's value, in the collections: there is one replica."""
    value = identity(v)
    if collections:
        add_to_collections(collections, value)
    return value


def _confusion_matrix_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Any,
    weights: TensorLike | None = None,
    includes: Any = None,
) -> tuple[dict[str, Variable], dict[str, Tensor]]:
    """Variables and updates of the counts that ``includes`` names (all by default)."""
    return confusion_at_thresholds(
        labels, predictions, thresholds, weights, tuple(COUNTS) if includes is None else includes
    )


def _safe_scalar_div(numerator: Tensor, denominator: Tensor, name: str) -> Tensor:
    """The quotient; 0 for a denominator of 0."""
    return div_no_nan(numerator, denominator, name=name)
