"""``tf.metrics``: means over batches, and errors and accuracies that are means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import control_dependencies
from headrace.ops.array.array_shape import reshape, size
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones, ones_like, zeros_like
from headrace.ops.array.ranges import confusion_matrix
from headrace.ops.array.selecting import where
from headrace.ops.linalg.diagonals import diag_part
from headrace.ops.math.binary import (
    div,
    div_no_nan,
    maximum,
    multiply,
    squared_difference,
    subtract,
)
from headrace.ops.math.comparison import equal, greater, less, not_equal
from headrace.ops.math.reductions import reduce_mean, reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import sqrt
from headrace.ops.nn.weights_broadcasting import broadcast_weights, remove_squeezable_dimensions
from headrace.ops.state.ref_scatter import scatter_add
from headrace.ops.state.ref_state import assign_add
from headrace.train.metrics.metric_parts import (
    Metric,
    align,
    metric_variable,
    refuse_eager,
    registered,
)
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "root_mean_squared_error",
]


def _weighted(values: Tensor, weights: TensorLike) -> tuple[Any, Any]:
    """Values times weights, and the weights in the shape of the values."""
    values, _, weights = align(values, None, weights)
    weights = broadcast_weights(cast(weights, dtypes.float32), values)
    return multiply(values, weights), weights


def _ratio(total: Tensor | Variable, count: Tensor | Variable, name: str | None) -> Tensor:
    return div_no_nan(total, maximum(count, 0), name=name)


def mean(
    values: TensorLike,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The streaming (weighted) mean of all elements of ``values``.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``weights`` is broadcast to ``values``.

        mean, update = tf.metrics.mean(loss)
        sess.run(tf.local_variables_initializer())
        for batch in batches:
            sess.run(update, {x: batch})
        print(sess.run(mean))
    """
    refuse_eager("tf.metrics.mean")
    with variable_scope(name, "mean", (values, weights)):
        values = cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, name="total")
        count = metric_variable([], dtypes.float32, name="count")
        if weights is None:
            number = cast(size(values), dtypes.float32)
        else:
            values, weights = _weighted(values, weights)
            number = reduce_sum(weights)
        new_total = assign_add(total, reduce_sum(values))
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = _ratio(total, count, "value")
        update = _ratio(new_total, new_count, "update_op")
        return registered(value, update, metrics_collections, updates_collections)


def mean_tensor(
    values: TensorLike,
    weights: Tensor | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming (weighted) mean of each element of ``values`` over the batches.

    The result has the shape of ``values``, which must be known. Returns ``(value, update_op)``: run
    ``update_op`` with every batch; ``value`` is the result over all batches so far. The totals are
    local variables: run ``tf.local_variables_initializer()`` first. ``metrics_collections`` and
    ``updates_collections`` name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.mean_tensor")
    with variable_scope(name, "mean", (values, weights)):
        values = cast(values, dtypes.float32)
        total = metric_variable(values.shape, dtypes.float32, name="total_tensor")
        count = metric_variable(values.shape, dtypes.float32, name="count_tensor")
        number = ones_like(values)
        if weights is not None:
            values, weights = _weighted(values, weights)
            number = multiply(number, weights)
        new_total = assign_add(total, values)
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = _ratio(total, count, "value")
        update = _ratio(new_total, new_count, "update_op")
        return registered(value, update, metrics_collections, updates_collections)


def accuracy(
    labels: Tensor,
    predictions: Tensor,
    weights: Tensor | None = None,
    metrics_collections: TensorLike | None = None,
    updates_collections: TensorLike | None = None,
    name: str | None = None,
) -> Metric:
    """How often predictions equal labels: (value, update operation).

    Run ``tf.local_variables_initializer()`` first, the update with every batch; the value is the
    share over all batches so far.

    ``labels`` and ``predictions`` have one shape and one type; ``weights`` is broadcast to it, and
    0 leaves an element out. ``metrics_collections`` and ``updates_collections`` name collections to
    which the value and the update are added.
    """
    refuse_eager("tf.metrics.accuracy")
    predictions, labels, weights = align(predictions, labels, weights)
    predictions.shape.assert_is_compatible_with(labels.shape)
    if labels.dtype != predictions.dtype:
        predictions = cast(predictions, labels.dtype)
    correct = cast(equal(predictions, labels), dtypes.float32)
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_absolute_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The streaming mean of ``|predictions - labels|``.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``labels`` and ``predictions`` have one shape; ``weights`` is
    broadcast to it, and 0 leaves an element out.
    """
    refuse_eager("tf.metrics.mean_absolute_error")
    predictions, labels, weights = align(predictions, labels, weights)
    error = abs_of(predictions - labels)
    name = name or "mean_absolute_error"
    return mean(error, weights, metrics_collections, updates_collections, name)


def mean_cosine_distance(
    labels: Tensor,
    predictions: Tensor,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """One minus the streaming mean of the cosine similarity along ``dim``.

    Both inputs have unit length along ``dim``; they are not normalized here. Returns ``(value,
    update_op)``: run ``update_op`` with every batch; ``value`` is the result over all batches so
    far. The totals are local variables: run ``tf.local_variables_initializer()`` first.
    ``metrics_collections`` and ``updates_collections`` name collections to which ``value`` and
    ``update_op`` are added.
    """
    refuse_eager("tf.metrics.mean_cosine_distance")
    predictions, labels, weights = align(predictions, labels, weights)
    products = reduce_sum(multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    value, update = subtract(1.0, value), subtract(1.0, update)
    return registered(value, update, metrics_collections, updates_collections)


def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming mean of ``|labels - predictions| / normalizer``; elements whose ``normalizer``
    is 0 count as 0.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``labels`` and ``predictions`` have one shape; ``weights`` is
    broadcast to it, and 0 leaves an element out.
    """
    refuse_eager("tf.metrics.mean_relative_error")
    predictions, labels, weights = align(predictions, labels, weights)
    predictions, normalizer = remove_squeezable_dimensions(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    is_zero = equal(normalizer, 0.0)
    error = where(is_zero, zeros_like(labels), div(abs_of(labels - predictions), normalizer))
    name = name or "mean_relative_error"
    return mean(error, weights, metrics_collections, updates_collections, name)


def mean_squared_error(
    labels: Tensor,
    predictions: TensorLike,
    weights: object = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming mean of ``(predictions - labels) ** 2``.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``labels`` and ``predictions`` have one shape; ``weights`` is
    broadcast to it, and 0 leaves an element out.
    """
    refuse_eager("tf.metrics.mean_squared_error")
    predictions, labels, weights = align(predictions, labels, weights)
    error = squared_difference(labels, predictions)
    name = name or "mean_squared_error"
    return mean(error, weights, metrics_collections, updates_collections, name)


def root_mean_squared_error(
    labels: Tensor,
    predictions: Tensor,
    weights: Tensor | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The square root of the streaming mean of ``(predictions - labels) ** 2``.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``labels`` and ``predictions`` have one shape; ``weights`` is
    broadcast to it, and 0 leaves an element out.
    """
    refuse_eager("tf.metrics.root_mean_squared_error")
    predictions, labels, weights = align(predictions, labels, weights)
    name = name or "root_mean_squared_error"
    value, update = mean_squared_error(labels, predictions, weights, None, None, name)
    return registered(sqrt(value), sqrt(update), metrics_collections, updates_collections)


def percentage_below(
    values: TensorLike,
    threshold: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The streaming share of ``values`` below ``threshold``, from 0 to 1.

    Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the result over
    all batches so far. The totals are local variables: run ``tf.local_variables_initializer()``
    first. ``metrics_collections`` and ``updates_collections`` name collections to which ``value``
    and ``update_op`` are added. ``weights`` is broadcast to ``values``.
    """
    refuse_eager("tf.metrics.percentage_below")
    below = cast(less(values, threshold), dtypes.float32)
    name = name or "percentage_below_threshold"
    return mean(below, weights, metrics_collections, updates_collections, name)


def _flat(tensor: Any) -> Tensor:
    return reshape(tensor, [-1]) if tensor.shape.ndims > 1 else tensor


def mean_per_class_accuracy(
    labels: Tensor,
    predictions: Tensor,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of the accuracy in each class.

    ``labels`` and ``predictions`` are class numbers below ``num_classes``. ``update_op`` gives the
    accuracy per class [num_classes]. Returns ``(value, update_op)``: run ``update_op`` with every
    batch; ``value`` is the result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.mean_per_class_accuracy")
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels, predictions = _flat(cast(labels, dtypes.int64)), _flat(predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], dtypes.float32, name="total")
        count = metric_variable([num_classes], dtypes.float32, name="count")
        seen = ones([size(labels)], dtypes.float32)
        if labels.dtype != predictions.dtype:
            predictions = cast(predictions, labels.dtype)
        correct = cast(equal(predictions, labels), dtypes.float32)
        if weights is not None:
            weights = cast(_flat(weights), dtypes.float32)
            correct *= weights
            seen *= weights
        new_total = scatter_add(total, labels, seen)
        new_count = scatter_add(count, labels, correct)
        value = reduce_mean(_ratio(count, total, None), name="mean_accuracy")
        update = _ratio(new_count, new_total, "update_op")
        return registered(value, update, metrics_collections, updates_collections)


def _streaming_confusion_matrix(
    labels: TensorLike, predictions: TensorLike, num_classes: int, weights: TensorLike | None
) -> tuple[Any, Any]:
    """The variable with the confusion matrix so far (row: label), and its update."""
    total = metric_variable(
        [num_classes, num_classes], dtypes.float64, name="total_confusion_matrix"
    )
    predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
    number = cast(num_classes, dtypes.int64)
    predictions, labels = _flat(predictions), _flat(labels)
    weights = None if weights is None else _flat(weights)
    batch = confusion_matrix(labels, predictions, number, weights=weights, dtype=dtypes.float64)
    return total, assign_add(total, batch)


def mean_iou(
    labels: Tensor,
    predictions: Tensor,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | str | None = None,
    updates_collections: Sequence[str] | str | None = None,
    name: str | None = None,
) -> Metric:
    """Streaming intersection over union, averaged over ``num_classes`` classes: (value, update).

    Run the update for every batch, then the value. Classes that occur in neither labels nor
    predictions do not count. The update gives the confusion matrix. Its local variable needs
    ``tf.local_variables_initializer()``.

    ``metrics_collections`` and ``updates_collections`` name collections to which the value and the
    update are added.
    """
    refuse_eager("tf.metrics.mean_iou")
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions.shape.assert_is_compatible_with(labels.shape)
        total, update = _streaming_confusion_matrix(labels, predictions, num_classes, weights)
        by_column = cast(reduce_sum(total, 0), dtypes.float32)
        by_row = cast(reduce_sum(total, 1), dtypes.float32)
        both = cast(diag_part(total), dtypes.float32)
        union = by_column + by_row - both
        valid = reduce_sum(cast(not_equal(union, 0), dtypes.float32))
        union = where(greater(union, 0), union, ones_like(union))
        ratio = div(both, union)
        value = where(greater(valid, 0), reduce_sum(ratio, name="mean_iou") / valid, 0)
        return registered(value, update, metrics_collections, updates_collections)
