"""Functions of ``tf.contrib.nn``."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops
from headrace.ops.nn.sampled_losses import _sampled_logits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike

__all__ = [
    "alpha_dropout",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "sampled_sparse_softmax_loss",
]

#: What a dropped unit becomes: the limit of SELU for large negative inputs.
_SELU_LIMIT = -1.7580993408473766


def alpha_dropout(
    x: Any,
    keep_prob: TensorLike,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Dropout for networks of SELU units: keeps their mean and variance."""
    with name_scope(name, "alpha_dropout", [x]):
        x = ops.convert_to_tensor(x, name="x")
        if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
            raise ValueError(
                "keep_prob must be a scalar tensor or a float in the range (0, 1], got "
                f"{float(keep_prob):g}"
            )
        keep = ops.convert_to_tensor(keep_prob, dtype=x.dtype, name="keep_prob")
        keep.shape.assert_has_rank(0)
        if ops.static_value(keep) == 1:
            return x
        shape = ops.shape(x) if noise_shape is None else noise_shape
        noise = ops.random_uniform(shape, seed=seed, dtype=x.dtype)
        kept = ops.cast(noise >= 1 - keep, x.dtype)
        mixed = x * kept + _SELU_LIMIT * (1 - kept)
        scale = (keep + keep * (1 - keep) * _SELU_LIMIT**2) ** -0.5
        return scale * mixed + -scale * _SELU_LIMIT * (1 - keep)


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: TensorLike, labels: TensorLike, dim: int = -1, name: str | None = None
) -> Any:
    """``tf.nn.softmax_cross_entropy_with_logits`` with the order of arguments of TF 0.x."""
    return ops.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: TensorLike, labels: TensorLike, name: str | None = None
) -> Any:
    """``tf.nn.sparse_softmax_cross_entropy_with_logits`` with TF 0.x's order of arguments."""
    return ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: TensorLike, targets: TensorLike, name: str | None = None
) -> Any:
    """``tf.nn.sigmoid_cross_entropy_with_logits`` with the order of arguments of TF 0.x."""
    return ops.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def sampled_sparse_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_sparse_softmax_loss",
) -> Any:
    """``tf.nn.sampled_softmax_loss`` for one true class a row, given as a number."""
    logits, _ = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        1,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name or "sampled_sparse_softmax_loss",
        None,
    )
    first = ops.squeeze(ops.zeros([ops.shape(logits)[0], 1], dtype=dtypes.int64))
    return ops.sparse_softmax_cross_entropy_with_logits(labels=first, logits=logits)
