"""One step of a beam search: scores of all continuations, and the best of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape, dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.seq2seq.attention_wrapper import AttentionWrapperState
from headrace.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.layers.seq2seq.beam_search import BeamSearchDecoderState

__all__ = ["beam_search_step", "get_attention_probs"]


def beam_search_step(
    time: TensorLike,
    logits: Tensor,
    next_cell_state: object,
    beam_state: BeamSearchDecoderState,
    batch_size: Tensor,
    beam_width: int,
    end_token: Tensor,
    length_penalty_weight: TensorLike,
    coverage_penalty_weight: float,
    output_class: type[Any],
) -> tuple[Any, Any]:
    """``(output, next_state)``; logits are (batch, beam, vocabulary)."""
    static_batch = _static_size(batch_size)
    not_finished = ops.logical_not(beam_state.finished)
    step_probs = _mask_probs(ops.log_softmax(logits), end_token, beam_state.finished)
    total_probs = ops.expand_dims(beam_state.log_probs, 2) + step_probs
    vocabulary = dimension_value(logits.shape[-1]) or ops.shape(logits)[-1]
    ends = ops.fill([batch_size, beam_width], end_token)
    lengths = _lengths_with_word(ends, vocabulary, not_finished, beam_state.lengths)
    accumulated = get_attention_probs(next_cell_state, coverage_penalty_weight)
    if accumulated is not None:
        accumulated *= ops.expand_dims(ops.cast(not_finished, dtypes.float32), 2)
        accumulated = beam_state.accumulated_attention_probs + accumulated
    penalties = (length_penalty_weight, coverage_penalty_weight)
    scores = _scores(total_probs, lengths, *penalties, beam_state.finished, accumulated)
    flat = ops.reshape(scores, [batch_size, -1])
    width = ops.convert_to_tensor(beam_width, dtype=dtypes.int32, name="beam_width")
    next_scores, words = ops.top_k(flat, k=width)
    for chosen in (next_scores, words):
        chosen.set_shape([static_batch, beam_width])

    def gathered(
        indices: Tensor, source: Tensor, size: object, shape: object, name: str | None = None
    ) -> Tensor:
        return _gather(indices, source, batch_size, size, shape, static_batch, name)

    next_probs = gathered(words, total_probs, beam_width * vocabulary, [-1], "next_beam_probs")
    word_ids = ops.cast(ops.mod(words, vocabulary, name="next_beam_word_ids"), dtypes.int32)
    parents = ops.cast(words / vocabulary, dtypes.int32, name="next_beam_parent_ids")
    was_finished = gathered(parents, beam_state.finished, beam_width, [-1])
    ended = ops.equal(word_ids, end_token)
    finished = ops.logical_or(was_finished, ended, name="next_beam_finished")
    next_lengths = gathered(parents, beam_state.lengths, beam_width, [-1])
    next_lengths += ops.cast(ops.logical_not(was_finished), dtypes.int64)
    rows = [batch_size * beam_width, -1]
    if accumulated is not None:
        accumulated = gathered(parents, accumulated, beam_width, rows)

    state = type(beam_state)(
        log_probs=next_probs,
        lengths=next_lengths,
        finished=finished,
        accumulated_attention_probs=() if accumulated is None else accumulated,
        cell_state=nest.map_structure(
            lambda part: gathered(parents, part, beam_width, rows) if _has_beams(part) else part,
            next_cell_state,
        ),
    )
    return output_class(next_scores, word_ids, parents), state


def _static_size(size: Tensor) -> int | None:
    known = ops.static_value(size)
    return None if known is None else int(known)


def _has_beams(part: Tensor | TensorArray) -> bool:
    """Whether a part of a cell's state has a row for each beam."""
    if isinstance(part, TensorArray):
        return False
    if part.shape.ndims is None:
        raise ValueError(f"Expected tensor ({part}) to have known rank, but ndims == None.")
    return bool(part.shape.ndims >= 2)


def _lengths_with_word(
    ends: Tensor, vocabulary: Tensor | int, not_finished: Tensor, lengths: Tensor
) -> Tensor:
    """The length of each beam with each next word: one more, but for finished beams and ends."""
    added = ops.one_hot(
        indices=ends,
        depth=vocabulary,
        on_value=ops.constant(0, dtypes.int64),
        off_value=ops.constant(1, dtypes.int64),
        dtype=dtypes.int64,
    )
    added = added * ops.expand_dims(ops.cast(not_finished, dtypes.int64), 2)
    longer: Tensor = added + ops.expand_dims(lengths, 2)
    return longer


def get_attention_probs(cell_state: object, coverage_penalty_weight: TensorLike) -> Any:
    """The attention of a state's attentional cells (their mean); None without a coverage
    penalty.
    """
    if isinstance(coverage_penalty_weight, (int, float)) and coverage_penalty_weight == 0.0:
        return None
    found = []
    if isinstance(cell_state, AttentionWrapperState):
        found = [_mean(cell_state.alignments)]
    elif isinstance(cell_state, tuple):
        found = [_mean(s.alignments) for s in cell_state if isinstance(s, AttentionWrapperState)]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
    return found[0] if len(found) == 1 else _mean(tuple(found))


def _mean(probs: TensorLike) -> Any:
    if not isinstance(probs, tuple):
        return probs
    return ops.reduce_mean(ops.concat([ops.expand_dims(p, -1) for p in probs], -1), -1)


def _scores(
    log_probs: Tensor,
    lengths: Tensor,
    length_weight: TensorLike,
    coverage_weight: TensorLike,
    finished: TensorLike,
    accumulated: TensorLike,
) -> Any:
    scores = log_probs / ops.cast(_length_penalty(lengths, length_weight), log_probs.dtype)
    weight = ops.convert_to_tensor(coverage_weight, name="coverage_penalty_weight")
    if weight.shape.ndims != 0:
        raise ValueError(
            f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}"
        )
    if ops.static_value(weight) == 0.0:
        return scores
    if accumulated is None:
        raise ValueError(
            "accumulated_attention_probs can be None only if coverage penalty is disabled."
        )
    accumulated = ops.where(ops.equal(accumulated, 0.0), ops.ones_like(accumulated), accumulated)
    penalty = ops.reduce_sum(ops.log(ops.minimum(accumulated, 1.0)), 2)
    penalty = penalty * ops.cast(finished, dtypes.float32) * weight
    return scores + ops.expand_dims(penalty, 2)


def _length_penalty(lengths: TensorLike, factor: object) -> Any:
    factor = ops.convert_to_tensor(factor, name="penalty_factor")
    factor.set_shape(())
    known = ops.static_value(factor)
    if known is not None and known == 0:
        return 1.0
    return ops.div((5.0 + ops.cast(lengths, dtypes.float32)) ** factor, (5.0 + 1.0) ** factor)


def _mask_probs(probs: Tensor, end_token: TensorLike, finished: Tensor) -> Tensor:
    """A finished beam goes on with the end token alone, at no cost."""
    vocabulary = ops.shape(probs)[2]
    row = ops.one_hot(
        end_token,
        vocabulary,
        dtype=probs.dtype,
        on_value=ops.convert_to_tensor(0.0, dtype=probs.dtype),
        off_value=probs.dtype.min,
    )
    rows = ops.tile(ops.reshape(row, [1, 1, -1]), ops.concat([ops.shape(finished), [1]], 0))
    mask = ops.tile(ops.expand_dims(finished, 2), [1, 1, vocabulary])
    return ops.where(mask, rows, probs)


def _gather(
    indices: Any,
    source: Any,
    batch_size: TensorLike,
    size: Any,
    shape: Any,
    static_batch: int | None,
    name: str | None,
) -> Tensor:
    """Rows of ``source`` by beam, within each row of the batch."""
    with name_scope(name, "tensor_gather_helper"):
        first = ops.expand_dims(ops.range(batch_size) * size, 1)
        flat = ops.reshape(indices + first, [-1])
        output = ops.gather(ops.reshape(source, shape), flat)
        rank = 1 + len(shape)
        known = TensorShape([static_batch]).concatenate(source.shape[1:rank])
        output = ops.reshape(output, ops.shape(source)[:rank], name="output")
        output.set_shape(known)
        return output
