"""``tf.contrib.seq2seq.sequence_loss``: cross entropy of sequences with weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["sequence_loss"]


def sequence_loss(
    logits: Tensor,
    targets: Tensor,
    weights: Tensor,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Weighted cross entropy of logits (batch, time, classes) and targets (batch, time).

    Averages divide by the sum of the weights, sums by the number of weights that are not zero; with
    neither for an axis, the result has that axis.
    """
    for tensor, rank, text in (
        (logits, 3, "Logits must be a [batch_size x sequence_length x logits] tensor"),
        (targets, 2, "Targets must be a [batch_size x sequence_length] tensor"),
        (weights, 2, "Weights must be a [batch_size x sequence_length] tensor"),
    ):
        if len(tensor.shape) != rank:
            raise ValueError(text)
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError(
            "average_across_timesteps and sum_over_timesteps cannot be set to True at same time."
        )
    if average_across_batch and sum_over_batch:
        raise ValueError(
            "average_across_batch and sum_over_batch cannot be set to True at same time."
        )
    loss = softmax_loss_function or ops.sparse_softmax_cross_entropy_with_logits
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = ops.shape(logits)[2]
        flat = ops.reshape(logits, [-1, classes])
        crossent = loss(labels=ops.reshape(targets, [-1]), logits=flat)
        crossent = crossent * ops.reshape(weights, [-1])
        averaged, summed = average_across_timesteps, sum_over_timesteps
        if averaged and average_across_batch:
            return ops.div_no_nan(ops.reduce_sum(crossent), ops.reduce_sum(weights))
        if summed and sum_over_batch:
            count = ops.cast(ops.count_nonzero(weights), crossent.dtype)
            return ops.div_no_nan(ops.reduce_sum(crossent), count)
        crossent = ops.reshape(crossent, ops.shape(logits)[0:2])
        if averaged or average_across_batch:
            axis = [0] if average_across_batch else [1]
            total = ops.reduce_sum(weights, axis=axis)
            return ops.div_no_nan(ops.reduce_sum(crossent, axis=axis), total)
        if summed or sum_over_batch:
            axis = [0] if sum_over_batch else [1]
            count = ops.cast(ops.count_nonzero(weights, axis=axis), crossent.dtype)
            return ops.div_no_nan(ops.reduce_sum(crossent, axis=axis), count)
        return crossent
