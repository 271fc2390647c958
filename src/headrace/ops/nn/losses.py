"""``tf.losses``: losses with weights and reductions, which are added to the collection of losses.

>>> loss = mean_squared_error(labels, predictions)
>>> total = get_total_loss()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, infer, shapes
from headrace.core.build import apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.nn import cross_entropy as nn_losses
from headrace.ops.nn.loss_collections import (
    add_loss,
    get_losses,
    get_regularization_loss,
    get_regularization_losses,
    get_total_loss,
)
from headrace.ops.nn.nn_common import (
    add,
    cast,
    cond_where,
    deprecated,
    div,
    mul,
    neg,
    ones_like,
    rank_of,
    reduce_sum,
    scalar_const,
    shape_of,
    squeeze,
    sub,
    zeros_like,
)
from headrace.ops.nn.sparse_cross_entropy import sparse_softmax_cross_entropy_with_logits

if TYPE_CHECKING:
    from headrace.core.annotations import Array, AxisLike, TensorLike
    from headrace.core.tensor import Operation

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """How losses per element become one number.

    The default SUM_BY_NONZERO_WEIGHTS divides the sum by the number of elements whose weight is not
    0; NONE keeps every element.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS
_LOSSES = GraphKeys.LOSSES

# weights ----------------------------------------------------------------------------------------

_NOT_BROADCASTABLE = "weights can not be broadcast to values."


def _check_broadcastable(weights: Tensor, values: Tensor) -> Operation | None:
    """Weights are a scalar, or have the rank of the values and the same or unit dimensions.

    An op if not known yet.
    """
    have, want = weights._shape, values._shape
    if have == ():
        return None
    if have is not None and want is not None:
        text = f" values.shape={values.shape}. weights.shape={weights.shape}."
        if len(have) != len(want):
            raise ValueError(
                f"{_NOT_BROADCASTABLE} values.rank={len(want)}. weights.rank={len(have)}.{text}"
            )
        for i, (h, w) in enumerate(zip(have, want)):
            if h not in (None, 1) and w is not None and h != w:
                raise ValueError(f"{_NOT_BROADCASTABLE} Mismatch at dim {i}.{text}")
        if None not in have and None not in want:
            return None
    return _broadcastable_when_run(weights, values)


def _broadcastable_when_run(weights: Tensor, values: Tensor) -> Operation:
    """Checks that weights are a scalar, or of the values' rank with the same or unit sizes."""
    have, want = shape_of(weights), shape_of(values)
    ranks = apply_op("Size", have), apply_op("Size", want)
    is_scalar = apply_op("Equal", ranks[0], 0)
    count = apply_op("ExpandDims", apply_op("Minimum", *ranks), 0)
    sizes = apply_op("Slice", have, [0], count)
    fits = apply_op(
        "LogicalOr",
        apply_op("Equal", sizes, apply_op("Slice", want, [0], count)),
        apply_op("Equal", sizes, 1),
    )
    all_fit = apply_op("All", fits, [0], keep_dims=False)
    same_rank = apply_op("Equal", *ranks)
    valid = apply_op("LogicalOr", is_scalar, apply_op("LogicalAnd", same_rank, all_fit))
    data: list[Any] = [_NOT_BROADCASTABLE, "weights.shape=", weights.name, have]
    data += ["values.shape=", values.name, want, "is_scalar=", is_scalar]
    return apply_operation(
        lookup("Assert"),
        valid,
        [convert_to_tensor(d) for d in data],
        summarize=3,
        name="assert_broadcastable",
    )


def _ops_to_check(weights: Tensor, values: Tensor) -> int:
    """How many operations TF makes to see that weights can be broadcast."""
    known = weights._shape == () or None not in (
        shapes.known(weights._shape),
        shapes.known(values._shape),
    )
    return 5 if known else 63


def _num_elements(losses: Tensor) -> Tensor:
    with name_scope(None, "num_elements", [losses]) as scope:
        return cast(apply_op("Size", losses, name=scope), losses._dtype)


def _num_present(losses: Tensor, weights: float | Tensor, per_batch: bool = False) -> Tensor:
    """How many losses have a weight that is not zero."""
    if isinstance(weights, float) and weights != 0.0:
        return _num_elements(losses)
    with name_scope(None, "num_present", [losses]) as scope:
        weights = cast(weights, dtypes.float32)
        is_zero = apply_op("Equal", weights, 0.0)
        present = cond_where(is_zero, zeros_like(weights), ones_like(weights))
        if weights._shape is None or weights._shape != losses._shape:
            present = mul(present, ones_like(losses))
        if not per_batch:
            return reduce_sum(present, name=scope)
        return reduce_sum(present, _all_but_first(present), keepdims=True, name=scope)


def _all_but_first(x: Tensor) -> Tensor | Array:
    rank = rank_of(x)
    if rank is not None:
        return np.arange(1, max(rank, 1), dtype=np.int32)
    return apply_op("Range", 1, apply_op("Rank", x), 1)


def _safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    return apply_op("DivNoNan", reduce_sum(losses), count, name="value")


def compute_weighted_loss(
    losses: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """``losses * weights``, reduced to a scalar and added to ``loss_collection``.

    ``weights`` broadcasts (a scalar, or one number per row). ``reduction`` is one of
    ``tf.losses.Reduction``; the default divides the sum by the number of elements whose weight is
    not zero, ``NONE`` gives the elements. ``tf.losses.get_total_loss()`` adds up the collection.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses]):
        losses = convert_to_tensor(losses)
        weights_tensor = convert_to_tensor(weights, name="weights")
        before = ops_counted(losses._op.graph)
        check = _check_broadcastable(weights_tensor, losses)
        count_as(losses._op.graph, before, _ops_to_check(weights_tensor, losses))
        if not isinstance(weights, Tensor) and weights_tensor._shape == ():
            count_more(losses._op.graph, 1)  # TF makes a tensor of the number twice
        with control_dependencies([] if check is None else [check]):
            kind = losses._dtype._base
            losses = cast(losses, dtypes.float32)
            weights = cast(weights_tensor, dtypes.float32)
            loss = cast(_reduced(losses, weights, reduction), kind)
            add_loss(loss, loss_collection)
            return loss


def _reduced(losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    weighted = mul(losses, weights, name="Mul")
    if reduction == Reduction.NONE:
        return weighted
    loss = reduce_sum(weighted)
    if reduction == Reduction.MEAN:
        return _safe_mean(loss, reduce_sum(mul(ones_like(losses), weights)))
    if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        before = ops_counted(losses._op.graph)
        present = _num_present(losses, _plain_if_one(weights))
        same = weights._shape == losses._shape and shapes.known(losses._shape) is not None
        count_as(losses._op.graph, before, 9 if same else 13 + _ops_to_check(weights, losses))
        return _safe_mean(loss, present)
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return _safe_mean(loss, _num_elements(losses))
    return loss


def _plain_if_one(weights: Tensor) -> float | Tensor:
    """A constant scalar weight as a number.

    Then every loss is present, and nothing has to be counted.
    """
    known = infer.static_value(weights) if weights._shape == () else None
    return float(known) if known is not None and float(known) != 0.0 else weights


# losses -----------------------------------------------------------------------------------------


def _pair(labels: object, predictions: object, name: str = "predictions") -> None:
    if labels is None:
        raise ValueError("labels must not be None.")
    if predictions is None:
        raise ValueError(f"{name} must not be None.")


def _floats(labels: object, predictions: object) -> tuple[Tensor, Tensor]:
    """Both as float32, of one shape."""
    predictions, labels = cast(predictions, dtypes.float32), cast(labels, dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The mean of ``|predictions - labels|``, weighted; added to the collection LOSSES.

    ``weights`` broadcasts against the predictions; ``reduction`` as in ``compute_weighted_loss``.
    """
    _pair(labels, predictions)
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = apply_op("Abs", sub(predictions, labels, name="Sub"))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The loss ``(predictions - labels) ** 2``.

    ``weights`` is a scalar or broadcast to the labels; 0 leaves an element out of the mean.
    ``loss_collection`` and ``reduction``: see ``compute_weighted_loss``.
    """
    _pair(labels, predictions)
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = apply_op("SquaredDifference", predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: object,
    predictions: object,
    axis: TensorLike | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
    dim: AxisLike | None = None,
) -> Tensor:
    """The loss ``1 - sum(labels * predictions, axis)`` of inputs with unit length along ``axis``.

    ``dim`` is the old name of ``axis``.
    """
    axis = deprecated("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _pair(labels, predictions)
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = sub(1.0, reduce_sum(mul(predictions, labels), [axis], keepdims=True))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The loss ``relu(1 - y * logits)``, where y is -1 or 1 for ``labels`` 0 or 1.

    ``labels`` and ``logits`` have one shape. ``weights`` is one number or broadcasts with them; the
    loss is added to ``loss_collection``. ``reduction`` is one of ``tf.losses.Reduction``, by
    default the sum over the number of weights that are not zero.

        tf.losses.hinge_loss([1.0, 0.0], [0.5, -2.0])  # 0.25
    """
    _pair(labels, logits, "logits")
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope:
        labels, logits = _floats(labels, logits)
        ones = ones_like(labels)
        signs = sub(mul(2.0, labels), ones)
        losses = apply_op("Relu", sub(ones, mul(signs, logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    delta: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """Half the squared error up to ``delta``; beyond, ``delta * (|error| - delta / 2)``.

    ``labels`` and ``predictions`` have one shape; ``weights``, ``loss_collection`` and
    ``reduction`` are as in ``tf.losses.hinge_loss``.

        tf.losses.huber_loss([0.0, 0.0], [0.5, 2.0])  # 0.8125
    """
    _pair(labels, predictions)
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        error = apply_op("Abs", sub(predictions, labels, name="Sub"))
        quadratic = apply_op("Minimum", error, delta)
        linear = sub(error, quadratic)
        losses = add(mul(scalar_const(0.5, error), mul(quadratic, quadratic)), mul(linear, delta))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The loss ``-labels * log(p + epsilon) - (1 - labels) * log(1 - p + epsilon)``, p being
    ``predictions``.
    """
    _pair(labels, predictions)
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        hit = neg(mul(labels, apply_op("Log", add(predictions, epsilon))))
        miss = mul(sub(1.0, labels), apply_op("Log", add(sub(1.0, predictions), epsilon)))
        return compute_weighted_loss(sub(hit, miss), weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
) -> Tensor:
    """Squared differences between the errors of all pairs in a row, averaged.

    ``labels`` and ``predictions`` are [batch, …]: an error that is the same for a whole row costs
    nothing. ``weights`` is one number, or has one for each row. The loss is added to
    ``loss_collection``.
    """
    _pair(labels, predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        weights = cast(weights, dtypes.float32)
        labels, predictions = _floats(labels, predictions)
        check = _check_broadcastable(weights, labels)
        with control_dependencies([] if check is None else [check]):
            loss = _pairwise(sub(predictions, labels), weights)
            count_more(loss._op.graph, 17)  # TF counts present elements with general shapes
            add_loss(loss, loss_collection)
            return loss


def _pairwise(errors: Tensor, weights: Tensor) -> Tensor:
    axes = _all_but_first(errors)
    squares = reduce_sum(apply_op("Square", errors), axes, keepdims=True)
    sums = apply_op("Square", reduce_sum(errors, axes, keepdims=True))
    present = _num_present(errors, weights, per_batch=True)
    others = sub(present, 1.0)
    first = mul(2.0, apply_op("DivNoNan", squares, apply_op("Maximum", others, 0.0)))
    second = mul(2.0, apply_op("DivNoNan", sums, apply_op("Maximum", mul(present, others), 0.0)))
    loss = reduce_sum(mul(sub(first, second), weights))
    some = apply_op("Greater", reduce_sum(present), 0.0)
    return cond_where(some, loss, zeros_like(loss), name="value_2")


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The sigmoid cross entropy of every class by itself (several may be true).

    ``multi_class_labels`` (0 or 1) and ``logits`` are [batch, classes]. ``label_smoothing`` s makes
    labels ``labels * (1 - s) + s / 2``. ``loss_collection`` and ``reduction``: see
    ``compute_weighted_loss``.
    """
    if multi_class_labels is None:
        raise ValueError("multi_class_labels must not be None.")
    _pair(multi_class_labels, logits, "logits")
    with name_scope(
        scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]
    ) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits._dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = add(mul(labels, 1 - label_smoothing), 0.5 * label_smoothing)
        losses = nn_losses.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The softmax cross entropy with one-hot labels.

    ``onehot_labels`` and ``logits`` are [batch, classes]. ``label_smoothing`` s makes labels
    ``labels * (1 - s) + s / classes``. ``weights`` is a scalar or one number a row.
    ``loss_collection`` and ``reduction``: see ``compute_weighted_loss``.
    """
    if onehot_labels is None:
        raise ValueError("onehot_labels must not be None.")
    _pair(onehot_labels, logits, "logits")
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits._dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = _last_dimension(labels, logits)
            # TF slices the shape with three constants and casts the number
            count_more(logits._op.graph, -1 if infer.static_value(classes) is None else 5)
            labels = add(mul(labels, 1.0 - label_smoothing), div(label_smoothing, classes))
        labels = apply_op("StopGradient", labels, name="labels_stop_gradient")
        losses = nn_losses.softmax_cross_entropy_with_logits_v2(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def _last_dimension(x: Tensor, like: Tensor) -> Tensor:
    if x._shape is not None and x._shape[-1] is not None:
        return scalar_const(x._shape[-1], like)
    shape = apply_op("Shape", x)
    return cast(apply_op("GatherV2", shape, sub(apply_op("Size", shape), 1), 0), like._dtype)


def sparse_softmax_cross_entropy(
    labels: Tensor,
    logits: object,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = _LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The softmax cross entropy with class numbers as labels.

    ``labels`` is [batch] (a last dimension of 1 is dropped), ``logits`` [batch, classes].
    ``loss_collection`` and ``reduction``: see ``compute_weighted_loss``.
    """
    _pair(labels, logits, "logits")
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        labels, logits, weights = _squeezed(labels, logits, convert_to_tensor(weights))
        losses = sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def _ends_in_one(x: Tensor) -> bool:
    """Whether the last dimension of a tensor of known rank may be 1."""
    return shapes.compatible(shapes.ranked(x._shape)[-1:], (1,))


def _squeezed(labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Labels have one dimension less than logits; a trailing 1 too many is dropped on either
    side.
    """
    have, want = rank_of(labels), rank_of(logits)
    if have is not None and want is not None:
        if want - have == 2 and _ends_in_one(logits):
            logits = squeeze(logits, [-1])
        elif want == have:  # an error where the last dimension is not 1
            labels = squeeze(labels, [-1])
    else:
        surplus = sub(apply_op("Rank", logits), apply_op("Rank", labels))
        if want is None or _ends_in_one(logits):
            logits = _squeeze_where(apply_op("Equal", surplus, 2), logits)
        if have is None or _ends_in_one(labels):
            labels = _squeeze_where(apply_op("Equal", surplus, 0), labels)
    if isinstance(weights, (int, float)):
        return labels, logits, weights
    weights = convert_to_tensor(weights)
    own, rank = rank_of(weights), rank_of(labels)
    if own == 0:
        return labels, logits, weights
    if own is not None and rank is not None:
        if own - rank == 1:
            weights = squeeze(weights, [-1])
    elif own is None or shapes.compatible(weights._shape[-1:], (1,)):
        surplus = sub(apply_op("Rank", weights), apply_op("Rank", labels))
        weights = _squeeze_where(apply_op("Equal", surplus, 1), weights)
    return labels, logits, weights


def _squeeze_where(condition: Tensor, x: Tensor) -> Tensor:
    """Without the last dimension if a condition holds that is known when it runs."""
    from headrace.ops.control.control_flow import (
        cond,  # a loss of known ranks needs no control flow
    )

    return cond(condition, lambda: squeeze(x, [-1]), lambda: x)
