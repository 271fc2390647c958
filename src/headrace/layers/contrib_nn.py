"""Functions of ``tf.contrib.nn``."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops
from headrace.ops.array.selecting import top_k
from headrace.ops.nn.candidate_sampling import learned_unigram_candidate_sampler
from headrace.ops.nn.sampled_losses import _sampled_logits, sampled_softmax_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike

__all__ = [
    "alpha_dropout",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "rank_sampled_softmax_loss",
    "sampled_sparse_softmax_loss",
    "scaled_softplus",
]

#: What a dropped unit becomes: the limit of SELU for large negative inputs.
_SELU_LIMIT = -1.7580993408473766


def alpha_dropout(
    x: object,
    keep_prob: TensorLike,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Dropout for networks of SELU units: keeps their mean and variance.

    Elements are kept with probability ``keep_prob``; the others become SELU's least value (-1.758),
    and an affine map restores mean and variance. ``noise_shape`` has 1 where one decision holds
    along an axis; ``seed`` makes decisions repeatable. With ``keep_prob`` 1 the result is ``x``.
    """
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
    """``tf.nn.softmax_cross_entropy_with_logits`` with the order of arguments of TF 0.x.

    ``logits`` and ``labels`` (probabilities) have one shape; ``dim`` is the axis of the classes.
    The result has the shape without that axis.
    """
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
    """``tf.nn.sampled_softmax_loss`` for one true class a row, given as a number.

    ``labels`` is [batch]; the other arguments and the result, [batch], are those of
    ``tf.nn.sampled_softmax_loss``. It is for training: evaluate with the whole softmax.
    """
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


def _resampled(
    weights: Any, biases: Any, inputs: Any, values: Any, count: int, heat: Any, strategy: str
) -> tuple[Any, Any, Any]:
    """Those of the sampled classes whose logits are the greatest over the whole batch."""
    classes, true_expected, expected = (ops.stop_gradient(v) for v in values)
    classes = ops.cast(classes, dtypes.int64)
    rows = ops.embedding_lookup(weights, classes, partition_strategy=strategy)
    logits = ops.reduce_logsumexp(ops.matmul(rows, inputs / heat, transpose_b=True), 1)
    shift = ops.embedding_lookup(biases, classes, partition_strategy=strategy)
    logits += ops.reshape(shift, [-1]) / heat
    best = top_k(logits, k=count, sorted=False)[1]
    return ops.gather(classes, best), true_expected, ops.gather(expected, best)


def rank_sampled_softmax_loss(
    weights: object,
    biases: object,
    labels: TensorLike,
    inputs: object,
    num_sampled: int,
    num_resampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Sequence[TensorLike] | None,
    resampling_temperature: TensorLike,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None = None,
) -> Any:
    """``tf.nn.sampled_softmax_loss`` with the ``num_resampled`` classes that matter most of
    ``num_sampled`` that are drawn.
    """
    if num_sampled > num_classes:
        raise ValueError(
            f"num_sampled ({num_sampled}) cannot be greater than num_classes ({num_classes})"
        )
    if num_sampled <= num_resampled:
        raise ValueError(
            f"num_resampled ({num_resampled}) must be less than num_sampled ({num_sampled})"
        )
    if partition_strategy not in ("div", "mod"):
        raise ValueError(f"unsupported partition_strategy ({partition_strategy})")
    values = [weights, biases, labels, inputs, resampling_temperature]
    with name_scope(name, "rank_sampled_softmax_loss", values) as name:
        drawn: Any = sampled_values
        if not drawn:
            drawn = learned_unigram_candidate_sampler(
                labels, num_true, num_sampled, True, num_classes
            )
        kept = _resampled(
            weights,
            biases,
            inputs,
            drawn,
            num_resampled,
            resampling_temperature,
            partition_strategy,
        )
        return sampled_softmax_loss(
            weights=weights,
            biases=biases,
            labels=labels,
            inputs=inputs,
            num_sampled=num_resampled,
            num_classes=num_classes,
            num_true=num_true,
            sampled_values=kept,
            remove_accidental_hits=remove_accidental_hits,
            partition_strategy=partition_strategy,
            name=name,
        )


def scaled_softplus(
    x: TensorLike, alpha: TensorLike, clip: TensorLike | None = None, name: str | None = None
) -> Any:
    """``alpha * softplus(x / alpha)``, not greater than ``clip``.

    ``alpha`` (positive) and ``clip`` are numbers or tensors that broadcast with ``x``. The smaller
    ``alpha`` is, the nearer is the result to ``relu``.
    """
    with name_scope(name, "scaled_softplus", [x, alpha] + ([] if clip is None else [clip])):
        given: Any = ops.convert_to_tensor(x, name="x")
        scale: Any = ops.convert_to_tensor(alpha, dtype=given.dtype, name="alpha")
        y = scale * ops.softplus(given / scale)
        if clip is None:
            return y
        return ops.minimum(y, ops.convert_to_tensor(clip, dtype=given.dtype, name="clip"))
