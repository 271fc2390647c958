"""Losses over lists of logits, and models with buckets of lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops
from headrace.variables.variable_scope import get_variable_scope, variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.tensor import Tensor


__all__ = ["list_sequence_loss", "model_with_buckets", "sequence_loss_by_example"]


def sequence_loss_by_example(
    logits: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Weighted cross entropy per row of lists of logits (batch, classes), targets (batch) and
    weights (batch).
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        parts = []
        for logit, target, weight in zip(logits, targets, weights):
            if softmax_loss_function is None:
                target = ops.reshape(target, [-1])
                loss = ops.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            parts.append(loss * weight)
        total = ops.add_n(parts)
        if average_across_timesteps:
            total = total / (ops.add_n(weights) + 1e-12)  # for rows without a weight
    return total


def list_sequence_loss(
    logits: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of ``sequence_loss_by_example`` over the batch, or its mean.

    ``logits``, ``targets`` and ``weights`` are lists with a tensor for each step: [batch, classes],
    int32 [batch] and float [batch]. ``average_across_timesteps`` divides a row's sum by its
    weights, ``average_across_batch`` the total by the batch size. ``softmax_loss_function(labels=…,
    logits=…)`` stands in for the cross entropy.
    """
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        rows = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        cost = ops.reduce_sum(rows)
        if not average_across_batch:
            return cost
        return cost / ops.cast(ops.shape(targets[0])[0], cost.dtype)


def model_with_buckets(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    buckets: Sequence[Any],
    seq2seq: Callable[..., Any],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """``(outputs, losses)`` of ``seq2seq(encoder_inputs, decoder_inputs)`` for each pair of
    lengths in ``buckets``.
    """
    encoder, decoder = buckets[-1]
    for what, values, need in (
        ("encoder_inputs", encoder_inputs, encoder),
        ("targets", targets, decoder),
        ("weights", weights, decoder),
    ):
        if len(values) < need:
            raise ValueError(
                f"Length of {what} ({len(values)}) must be at least that of last bucket ({need})."
            )
    loss_of = sequence_loss_by_example if per_example_loss else list_sequence_loss
    losses, outputs = [], []
    inputs = [*encoder_inputs, *decoder_inputs, *targets, *weights]
    with name_scope(name, "model_with_buckets", inputs):
        for j, (first, second) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if j > 0 else None):
                made, _ = seq2seq(encoder_inputs[:first], decoder_inputs[:second])
                outputs.append(made)
                losses.append(
                    loss_of(
                        made,
                        targets[:second],
                        weights[:second],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses
