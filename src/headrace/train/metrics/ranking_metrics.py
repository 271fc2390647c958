"""``tf.metrics``: precision, recall and average precision of the top k predictions.

Labels are class numbers, dense (batch, labels) or sparse; several labels per row make them sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import control_dependencies, name_scope
from headrace.ops.array.array_shape import expand_dims, rank, reshape, size
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import fill, ones_like, zeros_like
from headrace.ops.array.joining import concat
from headrace.ops.array.padding import tile
from headrace.ops.array.selecting import top_k, where_v2
from headrace.ops.array.slicing import slice as slice_of
from headrace.ops.control.control_flow import cond
from headrace.ops.math.binary import add, div, div_no_nan, minimum, multiply
from headrace.ops.math.comparison import equal, greater_equal
from headrace.ops.math.cumulative import cumsum
from headrace.ops.math.reductions import reduce_max, reduce_sum
from headrace.ops.nn.weights_broadcasting import assert_broadcastable, broadcast_weights
from headrace.ops.sparse.set_ops import set_difference, set_intersection, set_size
from headrace.ops.sparse.sparse_arranging import sparse_concat, sparse_reshape, sparse_retain
from headrace.ops.sparse.sparse_tensor import (
    SparseTensor,
    SparseTensorValue,
    convert_to_tensor_or_sparse_tensor,
)
from headrace.ops.state.ref_state import assign_add
from headrace.train.metrics.metric_parts import Metric, metric_variable, refuse_eager, registered

if TYPE_CHECKING:
    from headrace.core.annotations import Array, SparseLike, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "average_precision_at_k",
    "precision_at_k",
    "precision_at_top_k",
    "recall_at_k",
    "recall_at_top_k",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
]


def _at_k(name: str, k: int | None = None, class_id: int | None = None) -> str:
    name = f"{name}_at_k" if k is None else f"{name}_at_{k}"
    return name if class_id is None else f"{name}_class{class_id}"


def _expand_labels(labels: SparseTensor | Tensor, predictions: Tensor) -> Any:
    """Labels with a last dimension: one label per row becomes a set of one."""
    with name_scope(None, "expand_labels", (labels, predictions)) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            longer = concat((labels.dense_shape, (1,)), 0)
            if labels.shape.ndims is not None and predictions.shape.ndims is not None:
                narrow = predictions.shape.ndims == labels.shape.ndims + 1
                return sparse_reshape(labels, longer, name=scope) if narrow else labels
            return cond(
                equal(rank(predictions), size(labels.dense_shape) + 1),
                lambda: sparse_reshape(labels, longer, name=scope),
                lambda: labels,
            )
        ranks = labels.shape.ndims, predictions.shape.ndims
        if ranks[0] is not None and ranks[1] is not None:
            if ranks[0] == ranks[1]:
                return labels
            if ranks[1] == ranks[0] + 1:
                return expand_dims(labels, -1, name=scope)
            raise ValueError(
                f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}."
            )
        return cond(
            equal(rank(predictions), rank(labels) + 1),
            lambda: expand_dims(labels, -1, name=scope),
            lambda: labels,
        )


def _select_class(ids: object, class_id: int) -> SparseTensor:
    """Only the ids of one class."""
    ids = convert_to_tensor_or_sparse_tensor(ids)
    if isinstance(ids, SparseTensor):
        return sparse_retain(ids, equal(ids.values, class_id))
    dims = shape_of(ids, out_type=dtypes.int64)
    ones = concat((dims[:-1], cast([1], dtypes.int64)), 0)
    wanted = fill(ones, cast(class_id, dtypes.int64))
    found = set_intersection(wanted, ids)
    return SparseTensor(found.indices, found.values, dims)


def _counted(found: SparseTensor, weights: Array | None) -> Tensor:
    """Set sizes as floating point numbers, weighted."""
    number = cast(set_size(found), dtypes.float64)
    if weights is None:
        return number
    with control_dependencies((assert_broadcastable(weights, number),)):
        return multiply(number, cast(weights, dtypes.float64))


def _number(
    kind: str,
    labels: Any,
    predictions: Any,
    class_id: int | None,
    weights: Array | None,
    name: str | None = None,
) -> Tensor:
    """Per row: how many of the predictions are labels ("true_positives"), and so on."""
    with name_scope(name, kind, (predictions, labels, weights)):
        if class_id is not None:
            labels = _select_class(labels, class_id)
            predictions = _select_class(predictions, class_id)
        if kind == "true_positives":
            found = set_intersection(predictions, labels)
        else:
            found = set_difference(predictions, labels, aminusb=kind == "false_positives")
        return _counted(found, weights)


def _streaming(
    kind: str,
    labels: SparseTensor | Tensor,
    predictions: TensorLike,
    k: int | None,
    class_id: int | None,
    weights: Any,
) -> tuple[Any, Any]:
    """The variable that counts ``kind`` over batches, and its update."""
    scope_name = _at_k(kind.removesuffix("s"), k, class_id)
    with name_scope(None, scope_name, (predictions, labels, weights)) as scope:
        number = _number(kind, labels, predictions, class_id, weights)
        batch = cast(reduce_sum(number), dtypes.float64)
        variable = metric_variable([], dtypes.float64, name=scope)
        return variable, assign_add(variable, batch, name="update")


def _share_at_top_k(
    what: str,
    other: str,
    labels: Any,
    predictions_idx: Any,
    k: int | None,
    class_id: int | None,
    weights: TensorLike | None,
    ours: object,
    theirs: Any,
    name: str | None,
) -> Metric:
    names = (predictions_idx, labels, weights)
    with name_scope(name, _at_k(what, k, class_id), names) as scope:
        labels = _expand_labels(labels, predictions_idx)
        top = cast(predictions_idx, dtypes.int64)
        right, more_right = _streaming("true_positives", labels, top, k, class_id, weights)
        wrong, more_wrong = _streaming(other, labels, top, k, class_id, weights)
        value = div(right, add(right, wrong), name=scope)
        update = div(more_right, add(more_right, more_wrong), name="update")
        return registered(value, update, ours, theirs)


def recall_at_top_k(
    labels: TensorLike | SparseLike,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of labels that are among the predicted classes ``predictions_idx``.

    ``labels`` are class numbers [..., true classes] (int64, dense or sparse), ``predictions_idx``
    class numbers [..., k]. ``class_id`` restricts the count to one class. ``k`` is used for the
    name only. Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the
    result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    return _share_at_top_k(
        "recall",
        "false_negatives",
        labels,
        predictions_idx,
        k,
        class_id,
        weights,
        metrics_collections,
        updates_collections,
        name,
    )


def recall_at_k(
    labels: TensorLike | SparseLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of labels that are among the ``k`` classes with the highest predictions.

    ``labels`` are class numbers [..., true classes] (int64, dense or sparse), ``predictions``
    scores [..., classes]. ``class_id`` restricts the count to one class. Returns ``(value,
    update_op)``: run ``update_op`` with every batch; ``value`` is the result over all batches so
    far. The totals are local variables: run ``tf.local_variables_initializer()`` first.
    ``metrics_collections`` and ``updates_collections`` name collections to which ``value`` and
    ``update_op`` are added.
    """
    refuse_eager("tf.metrics.recall_at_k")
    with name_scope(name, _at_k("recall", k, class_id), (predictions, labels, weights)) as scope:
        _, top = top_k(predictions, k)
        return recall_at_top_k(
            labels, top, k, class_id, weights, metrics_collections, updates_collections, scope
        )


def precision_at_top_k(
    labels: Any,
    predictions_idx: Tensor,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of the predicted classes ``predictions_idx`` that are labels.

    ``labels`` are class numbers [..., true classes] (int64, dense or sparse), ``predictions_idx``
    class numbers [..., k]. ``class_id`` restricts the count to one class. ``k`` is used for the
    name only. Returns ``(value, update_op)``: run ``update_op`` with every batch; ``value`` is the
    result over all batches so far. The totals are local variables: run
    ``tf.local_variables_initializer()`` first. ``metrics_collections`` and ``updates_collections``
    name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.precision_at_top_k")
    return _share_at_top_k(
        "precision",
        "false_positives",
        labels,
        predictions_idx,
        k,
        class_id,
        weights,
        metrics_collections,
        updates_collections,
        name,
    )


def precision_at_k(
    labels: TensorLike | SparseLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of the ``k`` classes with the highest predictions that are labels.

    ``labels`` are class numbers [..., true classes] (int64, dense or sparse), ``predictions``
    scores [..., classes]. ``class_id`` restricts the count to one class. Returns ``(value,
    update_op)``: run ``update_op`` with every batch; ``value`` is the result over all batches so
    far. The totals are local variables: run ``tf.local_variables_initializer()`` first.
    ``metrics_collections`` and ``updates_collections`` name collections to which ``value`` and
    ``update_op`` are added.
    """
    refuse_eager("tf.metrics.sparse_precision_at_k")
    with name_scope(name, _at_k("precision", k, class_id), (predictions, labels, weights)) as scope:
        _, top = top_k(predictions, k)
        return precision_at_top_k(
            labels, top, k, class_id, weights, metrics_collections, updates_collections, scope
        )


def sparse_precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The older name of :func:`precision_at_k`.

    ``labels`` are class numbers, ``predictions`` scores of classes; ``class_id`` counts one class
    only. The result is a value and an operation that updates it.
    """
    return precision_at_k(
        labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


# average precision ------------------------------------------------------------------------------


def _repeat_last(tensor: Tensor | SparseTensor, multiple: int, name: str) -> Tensor | SparseTensor:
    """``tensor`` with a new dimension of ``multiple`` copies before the last one."""
    with name_scope(name, "expand_and_tile", (tensor,)) as scope:
        tensor = convert_to_tensor_or_sparse_tensor(tensor)
        if isinstance(tensor, SparseTensor):
            at = reshape(size(tensor.dense_shape) - 1, [1])
            start, end = (
                slice_of(tensor.dense_shape, [0], at),
                slice_of(tensor.dense_shape, at, [-1]),
            )
            dims = concat((start, [1], end), 0, name="expanded_shape")
            rows = sparse_reshape(tensor, dims, name="expand")
            return rows if multiple == 1 else sparse_concat(-2, [rows] * multiple, name=scope)
        expanded = expand_dims(tensor, -2, name="expand")
        if multiple == 1:
            return expanded
        ones = ones_like(shape_of(tensor))
        times = concat((ones[:-1], (multiple,), ones[-1:]), 0, name="multiples")
        return tile(expanded, times, name=scope)


def _number_relevant(labels: SparseTensor | Tensor, k: int) -> Tensor:
    with name_scope(None, "num_relevant", (labels,)) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            return minimum(set_size(labels), k, name=scope)
        valid = where_v2(greater_equal(labels, 0), ones_like(labels), zeros_like(labels))
        return minimum(reduce_sum(valid, axis=-1), k, name=scope)


def _average_precision(labels: SparseTensor | Tensor, predictions_idx: Tensor) -> Tensor:
    """Per row: the mean, over the relevant predictions, of the precision up to each."""
    with name_scope(None, "average_precision", (predictions_idx, labels)) as scope:
        top = cast(predictions_idx, dtypes.int64, name="predictions_idx")
        if top.shape.ndims == 0:
            raise ValueError("The rank of predictions_idx must be at least 1.")
        k = top.shape.as_list()[-1]
        if k is None:
            raise ValueError("The last dimension of predictions_idx must be set.")
        labels = _expand_labels(labels, top)
        per_k = expand_dims(top, -1, name="predictions_idx_per_k")
        labels_per_k = _repeat_last(labels, k, "labels_per_k")
        relevant = _number("true_positives", labels_per_k, per_k, None, None, "relevant_per_k")
        right = cumsum(relevant, axis=-1, name="tp_per_k")
        retrieved = cumsum(ones_like(relevant), axis=-1, name="retrieved_per_k")
        right, retrieved = cast(right, dtypes.float64), cast(retrieved, dtypes.float64)
        precision = div(right, retrieved, name="precision_per_k")
        relevant = cast(relevant, dtypes.float64)
        gained = multiply(precision, relevant, name="relevant_precision_per_k")
        total = reduce_sum(gained, axis=(-1,), name="precision_sum")
        return div(total, cast(_number_relevant(labels, k), dtypes.float64), name=scope)


def _summed(kind: str, average: Tensor, batch: Callable[..., Any]) -> tuple[Any, Any]:
    """The variable ``max`` or ``total``, and its update by ``batch()``."""
    with name_scope(None, kind, (average,)) as scope:
        variable = metric_variable([], dtypes.float64, name=scope)
        return variable, assign_add(variable, batch(), name="update")


def _streaming_average_precision(
    labels: Any,
    predictions_idx: Tensor,
    weights: Any = None,
    metrics_collections: object = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    names = (predictions_idx, labels, weights)
    with name_scope(name, "average_precision_at_top_k", names) as scope:
        average = _average_precision(labels, predictions_idx)
        if weights is not None:
            weights = broadcast_weights(cast(weights, dtypes.float64), average)
            average = multiply(average, weights)

        def batch_max() -> Tensor:
            if weights is None:
                return cast(size(average, name="batch_max"), dtypes.float64)
            return reduce_sum(weights, name="batch_max")

        most, more_most = _summed("max", average, batch_max)
        total, more_total = _summed(
            "total", average, lambda: reduce_sum(average, name="batch_total")
        )
        value = div_no_nan(total, most, name="mean")
        update = div_no_nan(more_total, more_most, name=scope)
        return registered(value, update, metrics_collections, updates_collections)


def _in_range(labels: Any, classes: Tensor) -> Any:
    """Labels, with -1 for classes that do not exist."""

    def cleaned(values: TensorLike) -> Tensor:
        return where_v2(greater_equal(values, classes), -1 * ones_like(values), values)

    if isinstance(labels, (SparseTensor, SparseTensorValue)):
        values = labels.values
        too_large = greater_equal(reduce_max(values), classes)
        kept = cond(too_large, lambda: cleaned(values), lambda: values)
        return SparseTensor(labels.indices, kept, labels.dense_shape)
    return cond(greater_equal(reduce_max(labels), classes), lambda: cleaned(labels), lambda: labels)


def average_precision_at_k(
    labels: TensorLike | SparseLike,
    predictions: TensorLike,
    k: int,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean over rows of the average precision of the ``k`` classes with the highest
    predictions.

    ``labels`` are class numbers [..., true classes] (int64, dense or sparse), ``predictions``
    scores [..., classes]. ``weights`` has one number a row. Returns ``(value, update_op)``: run
    ``update_op`` with every batch; ``value`` is the result over all batches so far. The totals are
    local variables: run ``tf.local_variables_initializer()`` first. ``metrics_collections`` and
    ``updates_collections`` name collections to which ``value`` and ``update_op`` are added.
    """
    refuse_eager("tf.metrics.sparse_average_precision_at_k")
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    names = (predictions, labels, weights)
    with name_scope(name, _at_k("average_precision", k), names) as scope:
        _, top = top_k(predictions, k)
        labels = _in_range(labels, cast(shape_of(predictions)[-1], dtypes.int64))
        return _streaming_average_precision(
            labels, top, weights, metrics_collections, updates_collections, scope
        )


def sparse_average_precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The older name of :func:`average_precision_at_k`.

    ``labels`` are class numbers, ``predictions`` scores of classes; the result is a value and an
    operation that updates it.
    """
    return average_precision_at_k(
        labels, predictions, k, weights, metrics_collections, updates_collections, name
    )
