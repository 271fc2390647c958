"""Inner names of ``tensorflow.contrib.seq2seq.python.ops`` that programs import, with TensorFlow's
arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.layers.seq2seq import attention_mechanisms as _attention
from headrace.layers.seq2seq import helpers as _helpers
from headrace.layers.seq2seq.attention_mechanisms import (
    BaseAttentionMechanism as _BaseAttentionMechanism,
)
from headrace.layers.seq2seq.attention_wrapper import _compute_attention
from headrace.layers.seq2seq.helpers import _unstacked as _unstack_ta
from headrace.ops.array.casting import cast

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "_BaseAttentionMechanism", "_bahdanau_score", "_compute_attention", "_luong_score",
    "_maybe_mask_score", "_prepare_memory", "_unstack_ta", "bernoulli_sample", "categorical_sample",
]  # fmt: skip

_luong_score = _attention._luong_score


def _bahdanau_score(
    processed_query: Any,
    keys: TensorLike,
    attention_v: Any,
    attention_g: Any = None,
    attention_b: Any = None,
) -> Tensor:
    return _attention._bahdanau_score(processed_query, keys, attention_v, attention_g, attention_b)


def _prepare_memory(
    memory: object,
    memory_sequence_length: TensorLike | None = None,
    memory_mask: object = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    if memory_mask is not None:
        raise NotImplementedError("Headrace masks a memory by lengths, not by memory_mask")
    return _attention._prepare_memory(memory, memory_sequence_length, check_inner_dims_defined)


def _maybe_mask_score(
    score: Tensor,
    memory_sequence_length: TensorLike | None = None,
    memory_mask: object = None,
    score_mask_value: object = None,
) -> Any:
    if memory_mask is not None:
        raise NotImplementedError("Headrace masks scores by lengths, not by memory_mask")
    return _attention._masked_score(score, memory_sequence_length, score_mask_value)


def categorical_sample(
    logits: object, dtype: DTypeLike = dtypes.int32, sample_shape: Any = (), seed: int | None = None
) -> Tensor:
    """One draw per row of logits."""
    if tuple(sample_shape) != ():
        raise NotImplementedError("Headrace draws one sample per row here")
    return cast(_helpers._categorical(logits, seed), dtype)


def bernoulli_sample(
    probs: TensorLike | None = None,
    logits: Any = None,
    dtype: DTypeLike = dtypes.int32,
    sample_shape: object = (),
    seed: int | None = None,
) -> Tensor:
    """Draws with a probability, or with logits, of shape ``sample_shape + shape``."""
    from headrace.layers import layer_ops as ops

    chance = ops.convert_to_tensor(ops.sigmoid(logits) if probs is None else probs)
    front = ops.convert_to_tensor(sample_shape, dtypes.int32)
    shape = ops.concat([ops.reshape(front, [-1]), ops.shape(chance)], 0)
    noise = ops.random_uniform(shape, seed=seed, dtype=chance.dtype)
    return cast(ops.less(noise, chance), dtype)
