"""Cross entropies and the small losses of ``tf.nn``.

The softmax cross entropies are fused as in TensorFlow: one op gives the loss and, as its second
output, the derivative of the loss by the logits, which the gradient function multiplies with.

    >>> loss = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, infer, shapes
from headrace.core.build import apply_many, apply_op, named_result
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.accel import ask
from headrace.ops.nn.activations import shifted
from headrace.ops.nn.nn_common import (
    add,
    cast,
    cond_where,
    deprecated,
    div,
    expand_last,
    mul,
    neg,
    ones_like,
    reduce_sum,
    reshape,
    scalar_const,
    shape_of,
    sub,
    transpose,
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "l2_loss",
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "sigmoid_cross_entropy_with_logits_v2",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "weighted_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits_v2",
    "zero_fraction",
]

Grads = list[Any]

# softmax cross entropy --------------------------------------------------------------------------


def exp_sums(xp: ArrayNamespace, features: Array) -> tuple[Any, Any, Any]:
    """Logits minus their maximum, their exponentials, and the sums of those."""
    d = shifted(xp, features)
    e = xp.exp(d)
    if xp.name == "numpy":
        return d, e, np.add.reduce(e, -1, None, None, True)  # type: ignore[call-overload]
    return d, e, e.sum(-1, keepdims=True)


def _xent_kernel(xp: ArrayNamespace, features: Array, labels: Array) -> tuple[Any, Any]:
    if features.ndim != 2 or labels.ndim != 2:
        if max(features.ndim, labels.ndim) != 2 or not features.ndim or not labels.ndim:
            raise errors.InvalidArgumentError(
                None,
                None,
                "logits and labels must be either 2-dimensional, or broadcasted to be "
                f"2-dimensional: {shapes.show(features.shape)} and {shapes.show(labels.shape)}",
            )
        if features.ndim == 1:
            features = features.reshape(1, -1)
        else:
            labels = labels.reshape(1, -1)
    if any(a != b and 1 not in (a, b) for a, b in zip(features.shape, labels.shape)):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"logits and labels must be broadcastable: logits_size={shapes.show(features.shape)} "
            f"labels_size={shapes.show(labels.shape)}",
        )
    if features.size >= _LIBRARY_FROM and xp.name == "numpy" and features.shape == labels.shape:
        found = _library_xent(features, labels)
        if found is not None:
            return found
    d, e, total = exp_sums(xp, features)
    loss = (labels * (xp.log(total) - d)).sum(-1)
    if xp.name == "numpy" and e.shape == labels.shape and e.dtype == features.dtype:
        e /= total
        e -= labels
        return loss, e
    return loss.astype(features.dtype), (e / total - labels).astype(features.dtype)


#: Elements from which a cross entropy is the kernel library's.
_LIBRARY_FROM = 1 << 14


def _library_xent(features: Array, labels: Array) -> tuple[Any, Any] | None:
    logs = ask("log_softmax", features)
    backprop = None if logs is None else ask("softmax", features)
    if logs is None or backprop is None:
        return None
    loss = np.einsum("ij,ij->i", labels, logs)
    np.negative(loss, out=loss)
    backprop -= labels
    return loss, backprop


def _xent_shape(c: infer.Inference) -> list[shapes.Shape]:
    matrix = (None, None)  # also what is of unknown rank
    features, labels = (matrix if s is None else s for s in (c.shape(0), c.shape(1)))
    both = shapes.broadcast(features, labels)
    assert both is not None
    if len(both) != 2:
        raise ValueError(f"Shape must be broadcasted with rank 2, but is rank {len(both)}")
    return [both[:1], both]


def _xent_grad(op: Operation, g: Tensor, g_backprop: Tensor | None) -> Grads:
    logits = op._inputs[0]
    by_logits, by_labels = None, None
    if g is not None:
        column = expand_last(g)
        by_logits = mul(column, op._outputs[1])
        by_labels = mul(column, neg(apply_op("LogSoftmax", logits)))
    if g_backprop is not None:
        curved = through_softmax(logits, g_backprop)
        by_logits = curved if by_logits is None else add(by_logits, curved)
        by_labels = neg(g_backprop) if by_labels is None else sub(by_labels, g_backprop)
    return [_unbroadcast(by_logits, logits), _unbroadcast(by_labels, op._inputs[1])]


def through_softmax(logits: Tensor, g: Tensor) -> Tensor:
    """The gradient of softmax(logits): (g - sum(g * softmax)) * softmax."""
    y = apply_op("Softmax", logits)
    return mul(sub(g, reduce_sum(mul(g, y), [-1], keepdims=True)), y)


def _unbroadcast(grad: Tensor | None, x: Tensor) -> Tensor | None:
    """Sum over the dimensions of size 1 that were broadcast."""
    if grad is None or x._shape is None or x._shape == grad._shape or grad._shape is None:
        return grad
    axes = [i for i, (d, full) in enumerate(zip(x._shape, grad._shape)) if d == 1 and full != 1]
    return reduce_sum(grad, axes, keepdims=True) if axes else grad


XENT = define(
    "SoftmaxCrossEntropyWithLogits",
    "features: T, labels: T -> loss: T, backprop: T; T: type(float)",
    shape=_xent_shape,
    kernel=_xent_kernel,
    grad=_xent_grad,
    dense=True,
    role="cross entropy",
)


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """``sum(t ** 2) / 2`` as a scalar: the usual weight decay term."""
    return apply_op("L2Loss", t, name=name)


# what users call --------------------------------------------------------------------------------


def ensure_named(function: str, sentinel: object, labels: object, logits: object) -> None:
    if sentinel is not None:
        raise ValueError(
            f"Only call `{function}` with named arguments (labels=..., logits=..., ...)"
        )
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits(
    _sentinel: TensorLike | None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """The softmax cross entropy of each row: ``-sum(labels * log_softmax(logits))``.

    ``labels`` and ``logits`` are [..., classes] and must be given by name; labels are
    probabilities. The result has one element a row. Gradients do not flow into the labels; those of
    ``softmax_cross_entropy_with_logits_v2`` do. ``dim`` is the old name of ``axis``, the axis of
    classes.
    """
    if axis is not None:
        dim = axis
    ensure_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = apply_op("StopGradient", labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, axis=dim, name=scope)


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike,
    logits: object,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """The cross entropy of each row between ``labels`` and the softmax of ``logits``.

    Both are [..., classes] along ``axis``; labels are probabilities (one-hot or soft) and get a
    gradient, which ``tf.stop_gradient`` keeps away. Give logits, not probabilities: the softmax is
    computed inside, without overflow.
    """
    axis = deprecated("axis", axis, "dim", dim)
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        half = logits._dtype._base in (dtypes.float16, dtypes.bfloat16)
        precise = cast(logits, dtypes.float32) if half else logits
        labels = cast(convert_to_tensor(labels, name="labels"), precise._dtype)
        if axis is not None and axis != -1:
            precise, labels = _to_end(precise, axis), _to_end(labels, axis)
        cost = _rowwise_xent(precise, labels, scope)
        return cast(cost, logits._dtype) if half else cost


def _to_end(x: Tensor, axis: int) -> Tensor:
    if x._shape is None:
        raise ValueError(f"The rank of {x} must be known for a cross entropy over axis {axis}.")
    rank = len(x._shape)
    order = [i for i in range(rank) if i != axis % rank]
    return transpose(x, [*order, axis % rank])


#: TF always flattens to matrices, by shapes that it computes in the graph.
_XENT_OPS = 31


def _rowwise_xent(logits: Tensor, labels: Tensor, name: str) -> Tensor:
    """Flattened to matrices where they are not; the cost has the outer shape again."""
    if (
        logits._shape is not None
        and labels._shape is not None
        and len(logits._shape) == len(labels._shape) == 2
    ):
        count_more(logits._op.graph, _XENT_OPS - 1)
        cost: Tensor = apply_many(XENT, logits, labels, name=name)[0]
        cost._op._reshaped_in_tf = True
        return named_result(cost, f"{name.rstrip('/')}/Reshape_2/")
    before = ops_counted(logits._op.graph)
    outer = _outer_shape(logits)
    cost = apply_many(XENT, as_matrix(logits), as_matrix(labels), name=name)[0]
    result = reshape(cost, outer)
    count_as(logits._op.graph, before, _XENT_OPS)
    if logits._shape is not None:
        result.set_shape(logits._shape[:-1])
    return result


def _outer_shape(x: Tensor) -> Array | Tensor:
    if x._shape is not None and None not in x._shape[:-1]:
        return np.array(x._shape[:-1], np.int32)
    rank = apply_op("Rank", x)
    return apply_op("Slice", shape_of(x), [0], expand_last(sub(rank, 1)))


def as_matrix(x: Tensor) -> Tensor:
    if x._shape == ():
        raise IndexError("softmax cross entropy needs logits and labels of rank 1 or more")
    last = x._shape[-1] if x._shape else None
    if last is not None:
        return reshape(x, [-1, last])
    tail = apply_op("Slice", shape_of(x), expand_last(sub(apply_op("Rank", x), 1)), [1])
    return reshape(x, apply_op("ConcatV2", [[-1], tail], 0))


def _same_shape(logits: Tensor, labels: Tensor, names: str) -> None:
    try:
        shapes.merge(labels._shape, logits._shape)
    except ValueError:
        raise ValueError(
            f"{names} must have the same shape ({logits.shape} vs {labels.shape})"
        ) from None


def sigmoid_cross_entropy_with_logits(
    _sentinel: object = None, labels: object = None, logits: object = None, name: str | None = None
) -> Tensor:
    """max(x, 0) - x * z + log(1 + exp(-|x|)) per element, x the logits and z the labels.

    For labels that are independent of each other: 0, 1 or probabilities, of the shape and type of
    ``logits``. Both are given by name, as ``_sentinel`` enforces. The result has their shape.

        labels, logits = [1.0, 0.0], [0.0, 0.0]
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)  # [0.69315, 0.69315]
    """
    ensure_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _same_shape(logits, labels, "logits and labels")
        zeros = zeros_like(logits)
        positive = apply_op("GreaterEqual", logits, zeros)
        relu_logits = cond_where(positive, logits, zeros)
        neg_abs = cond_where(positive, neg(logits), logits)
        tail = apply_op("Log1p", apply_op("Exp", neg_abs))
        return apply_op("Add", sub(relu_logits, mul(logits, labels)), tail, name=scope)


def sigmoid_cross_entropy_with_logits_v2(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The loss of independent yes-or-no labels; arguments by position.

    See ``tf.nn.sigmoid_cross_entropy_with_logits``.
    """
    return sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> Tensor:
    """The sigmoid cross entropy, with the part of positive labels times ``pos_weight``.

    A weight above 1 makes missed positives dearer. ``labels`` (``targets`` is the old name) has the
    shape and the type of ``logits``.
    """
    labels = deprecated("labels", labels, "targets", targets)
    return weighted_cross_entropy_with_logits_v2(labels, logits, pos_weight, name)


def weighted_cross_entropy_with_logits_v2(
    labels: TensorLike, logits: object, pos_weight: object, name: str | None = None
) -> Tensor:
    """As ``sigmoid_cross_entropy_with_logits``, positive labels weighted.

    ``pos_weight`` above 1 makes missed positives more expensive.
    """
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _same_shape(logits, labels, "logits and labels")
        log_weight = add(1.0, mul(_minus_one(pos_weight, labels), labels))
        if not isinstance(pos_weight, Tensor):
            count_more(logits._op.graph, -2)  # TF subtracts one from the number
        tail = apply_op("Log1p", apply_op("Exp", neg(apply_op("Abs", logits))))
        both = add(tail, apply_op("Relu", neg(logits)))
        return apply_op("Add", mul(sub(1.0, labels), logits), mul(log_weight, both), name=scope)


def _minus_one(value: object, like: Tensor) -> Tensor:
    return sub(convert_to_tensor(value, like._dtype._base), 1.0)


def log_poisson_loss(
    targets: TensorLike,
    log_input: TensorLike,
    compute_full_loss: bool = False,
    name: str | None = None,
) -> Tensor:
    """The negative log likelihood of Poisson counts: ``exp(log_input) - targets * log_input``.

    ``compute_full_loss`` adds Stirling's approximation of ``log(targets!)`` where targets exceed 1.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        _same_shape(log_input, targets, "log_input and targets")
        result = sub(apply_op("Exp", log_input), mul(log_input, targets))
        if compute_full_loss:
            result = add(result, _stirling(targets))
        return result


def _stirling(z: Tensor) -> Tensor:
    """z log z - z + log(2 pi z) / 2, and 0 from 0 to 1."""
    half_log = mul(scalar_const(0.5, z), apply_op("Log", mul(scalar_const(2 * math.pi, z), z)))
    value = add(sub(mul(z, apply_op("Log", z)), z), half_log)
    zeros, ones = zeros_like(z), ones_like(z)
    small = apply_op(
        "LogicalAnd", apply_op("GreaterEqual", z, zeros), apply_op("LessEqual", z, ones)
    )
    return cond_where(small, zeros, value)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The fraction of zeros, as float32."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        count_more(value._op.graph, 15)  # TF branches on the size
        size = apply_op("Size", value, out_type=dtypes.int64)
        zero = False if value._dtype._base is dtypes.bool else 0
        nonzero = cast(apply_op("NotEqual", value, scalar_const(zero, value)), dtypes.int64)
        zeros = sub(size, reduce_sum(nonzero))
        fraction = div(cast(zeros, dtypes.float32), cast(size, dtypes.float32))
        return apply_op("Identity", fraction, name="fraction")
