"""What streaming metrics share: their variables, the alignment of labels, predictions and weights,
and collections.

A metric is a pair: the value so far (read from local variables) and the operation that takes
another batch in.

>>> accuracy, update = tf.metrics.accuracy(labels, predictions)
>>> sess.run(tf.local_variables_initializer()); sess.run(update, feed); sess.run(accuracy)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collections
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import expand_dims, rank, squeeze
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import zeros
from headrace.ops.control.control_flow import cond
from headrace.ops.math.comparison import equal
from headrace.ops.nn.weights_broadcasting import remove_squeezable_dimensions
from headrace.variables.variable import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike

__all__ = ["Metric", "align", "align_bool", "metric_variable", "refuse_eager", "registered"]

#: The value so far, and the operation that takes a batch in and gives the value after it.
Metric = tuple[Tensor, Any]


def metric_variable(
    shape: ShapeLike, dtype: DTypeLike, validate_shape: bool = True, name: str | None = None
) -> Variable:
    """A zero variable in the collections of local and of metric variables."""
    return Variable(
        lambda: zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
        name=name,
    )


def refuse_eager(metric: str) -> None:
    if get_default_graph()._is_eager:
        raise RuntimeError(f"{metric} is not supported when eager execution is enabled.")


def registered(
    value: Tensor,
    update: Tensor,
    metrics_collections: object,
    updates_collections: TensorLike | None,
) -> Metric:
    """The pair, after adding its parts to the collections that the caller asked for."""
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def align(predictions: object, labels: object, weights: object) -> tuple[Tensor, Any, Any]:
    """Predictions, labels and weights with ranks that go together; labels and weights may be
    None.
    """
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    return predictions, labels, _align_weights(predictions, weights)


def _align_weights(predictions: Tensor, weights: Tensor) -> Tensor:
    have, want = weights.shape.ndims, predictions.shape.ndims
    if have == 0:
        return weights
    if have is not None and want is not None:
        if have - want == 1:
            return squeeze(weights, [-1])
        return expand_dims(weights, [-1]) if want - have == 1 else weights
    weights_rank = rank(weights)
    difference: Any = weights_rank - rank(predictions)
    last_is_one = have is None or weights.shape[-1:].is_compatible_with([1])

    def narrow() -> Tensor:
        return squeeze(weights, [-1]) if last_is_one else weights

    def widen() -> Tensor:
        is_narrow = equal(difference, -1)
        return cond(is_narrow, lambda: expand_dims(weights, [-1]), lambda: weights)

    def adjust() -> Tensor:
        return cond(equal(difference, 1), narrow, widen)

    return cond(equal(weights_rank, 0), lambda: weights, adjust)


def align_bool(
    predictions: TensorLike, labels: Tensor, weights: TensorLike | None
) -> tuple[Tensor, Any, Any]:
    """As :func:`align`, with predictions and labels as booleans."""
    predictions = cast(predictions, dtypes.bool)
    return align(predictions, cast(labels, dtypes.bool), weights)
