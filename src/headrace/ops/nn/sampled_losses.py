"""Losses over sampled classes: ``tf.nn.nce_loss`` and ``tf.nn.sampled_softmax_loss``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.nn.candidate_sampling import (
    compute_accidental_hits,
    log_uniform_candidate_sampler,
)
from headrace.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from headrace.ops.nn.embedding import _parts, embedding_lookup
from headrace.ops.nn.nn_common import (
    add,
    cast,
    div,
    expand,
    mul,
    ones_like,
    reshape,
    shape_of,
    sub,
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["nce_loss", "nce_loss_v2", "sampled_softmax_loss", "sampled_softmax_loss_v2"]


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: object = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: a sigmoid for the true classes and for ``num_sampled`` others.

    ``weights`` is [classes, dim], ``biases`` [classes], ``labels`` [batch, num_true], ``inputs``
    [batch, dim]. The loss has one element per row. Classes are sampled log-uniformly by default, so
    sort them by falling frequency.

    ``num_classes`` is their number. ``sampled_values`` is what a ``tf.nn.…_candidate_sampler``
    gave, if another one is wanted; ``remove_accidental_hits`` drops samples that are true classes;
    ``partition_strategy`` ("mod" or "div") says how ``weights`` given in several parts are divided.
    """
    before = ops_counted(get_default_graph())
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        None,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    total = _sum_rows(losses)
    if num_true == 1 and sampled_values is None and not remove_accidental_hits:
        count_as(total._op.graph, before, 109 + _is_cast(labels))
    return total


def _is_cast(labels: object) -> bool:
    return getattr(labels, "dtype", None) != dtypes.int64


def nce_loss_v2(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """``tf.nn.nce_loss`` with parts of ``weights`` cut as "div" does.

    ``weights`` is [classes, size] or a list of parts, ``biases`` [classes], ``labels`` int64
    [batch, num_true], ``inputs`` [batch, size]; the result is [batch]. ``sampled_values`` (default:
    log-uniform, for classes in order of frequency) are the classes drawn.
    """
    return nce_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
    )


def sampled_softmax_loss(
    weights: object,
    biases: object,
    labels: object,
    inputs: object,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: object = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: object = None,
) -> Tensor:
    """A softmax over the true and ``num_sampled`` other classes, for training with many classes.

    ``weights`` is [classes, dim], ``biases`` [classes], ``labels`` [batch, num_true] of class
    numbers, ``inputs`` [batch, dim]. The loss has one element per row. ``remove_accidental_hits``
    drops samples that are true classes. For evaluation compute the full softmax.

    ``num_classes`` is their number. ``sampled_values`` is what a ``tf.nn.…_candidate_sampler``
    gave, if another one is wanted; ``partition_strategy`` ("mod" or "div") says how ``weights``
    given in several parts are divided.
    """
    before = ops_counted(get_default_graph())
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = apply_op("StopGradient", targets, name="labels_stop_gradient")
    loss = softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)
    if num_true == 1 and sampled_values is None and remove_accidental_hits:
        count_as(loss._op.graph, before, 140 + _is_cast(labels))
    return loss


def sampled_softmax_loss_v2(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = True,
    seed: TensorLike | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """``tf.nn.sampled_softmax_loss`` with parts of ``weights`` cut as "div" does.

    ``weights`` is [classes, size] or a list of parts, ``biases`` [classes], ``labels`` int64
    [batch, num_true], ``inputs`` [batch, size]; the result is [batch]. ``seed`` is for the default
    ``sampled_values``. It is for training: evaluate with the whole softmax.
    """
    return sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
        seed,
    )


def _sum_rows(x: Tensor) -> Tensor:
    """Sums of the rows of a matrix, as a product with ones."""
    if x._shape is not None and x._shape[1] is not None:
        ones = convert_to_tensor(np.ones((x._shape[1], 1), x._dtype._base.np_dtype), name="ones")
    else:
        columns = apply_op("Slice", shape_of(x), [1], [1])
        ones = apply_op(
            "Fill", apply_op("ConcatV2", [columns, [1]], 0), convert_to_tensor(1, x._dtype._base)
        )
    return reshape(apply_op("MatMul", x, ones), [-1])


def _sampled_logits(
    weights: object,
    biases: object,
    labels: object,
    inputs: object,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_hits: bool,
    strategy: str,
    name: str,
    seed: object,
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes, then of the sampled ones, corrected by their expected counts.

    And their labels.
    """
    parts = _parts(weights)
    with name_scope(name, "compute_sampled_logits", [*parts, biases, inputs, labels]):
        inputs = convert_to_tensor(inputs)
        labels = cast(labels, dtypes.int64)
        flat = reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, True, num_classes, seed
            )
        sampled, true_count, sampled_count = (apply_op("StopGradient", s) for s in sampled_values)
        sampled = cast(sampled, dtypes.int64)
        every = apply_op("ConcatV2", [flat, sampled], 0)
        rows = cast(embedding_lookup(parts, every, strategy), inputs._dtype)
        offsets = cast(embedding_lookup(biases, every, strategy), inputs._dtype)
        n = shape_of(flat)
        true_logits = _true_logits(inputs, rows, offsets, n, num_true)
        sampled_logits = _other_logits(inputs, rows, offsets, n)
        if remove_hits:
            sampled_logits = _without_hits(sampled_logits, labels, sampled, num_true)
        true_logits = sub(true_logits, cast(apply_op("Log", true_count), inputs._dtype))
        sampled_logits = sub(sampled_logits, cast(apply_op("Log", sampled_count), inputs._dtype))
        targets = [div(ones_like(true_logits), float(num_true)), zeros_like(sampled_logits)]
        both = apply_op("ConcatV2", [true_logits, sampled_logits], 1)
        return both, apply_op("ConcatV2", targets, 1)


def _true_logits(inputs: Tensor, rows: Tensor, offsets: Tensor, n: Tensor, num_true: int) -> Tensor:
    """Each input with the rows of its own classes."""
    own = apply_op("Slice", rows, [0, 0], apply_op("ConcatV2", [n, [-1]], 0))
    width = apply_op("Slice", shape_of(own), [1], [1])
    own = reshape(own, apply_op("ConcatV2", [[-1, num_true], width], 0))
    dots = mul(expand(inputs, 1), own)
    flat = reshape(dots, apply_op("ConcatV2", [[-1], width], 0))
    logits = reshape(_sum_rows(flat), [-1, num_true])
    return add(logits, reshape(apply_op("Slice", offsets, [0], n), [-1, num_true]))


def _other_logits(inputs: Tensor, rows: Tensor, offsets: Tensor, n: Tensor) -> Tensor:
    """All inputs with the sampled rows."""
    others = apply_op("Slice", rows, apply_op("ConcatV2", [n, [0]], 0), [-1, -1])
    logits = apply_op("MatMul", inputs, others, transpose_b=True)
    return add(logits, apply_op("Slice", offsets, n, [-1]))


def _without_hits(logits: Tensor, labels: Tensor, sampled: Tensor, num_true: int) -> Tensor:
    """Sampled classes that are true classes of a row get a logit of minus infinity, almost."""
    rows, places, values = compute_accidental_hits(labels, sampled, num_true)
    where = apply_op("Pack", [cast(rows, dtypes.int64), places], axis=1)
    shape = cast(shape_of(logits), dtypes.int64)
    return add(logits, apply_op("ScatterNd", where, cast(values, logits._dtype), shape))
