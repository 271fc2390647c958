"""Linear-chain conditional random fields: scores, the partition function, decoding
(``tf.contrib.crf``).

Unary potentials are (batch, time, tags), transitions (tags, tags), sequence lengths (batch).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.core import dtypes
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import RNNCell
from headrace.layers.rnn.dynamic_rnn import dynamic_rnn
from headrace.layers.smart_cond import smart_cond
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "CrfDecodeBackwardRnnCell",
    "CrfDecodeForwardRnnCell",
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]

T = TypeVar("T")


def _for_length(inputs: Tensor, single: Callable[[], T], many: Callable[[], T]) -> T:
    """Sequences of one step have no transitions."""
    steps = dimension_value(inputs.shape[1]) or ops.shape(inputs)[1]
    return smart_cond(ops.equal(steps, 1), single, many)


def _less_one(lengths: Any) -> Tensor:
    return ops.maximum(ops.constant(0, dtype=lengths.dtype), lengths - 1)


def _zero_if_empty(lengths: TensorLike, values: TensorLike) -> Tensor:
    return ops.where(ops.less_equal(lengths, 0), ops.zeros_like(values), values)


def crf_sequence_score(
    inputs: Tensor, tag_indices: object, sequence_lengths: TensorLike, transition_params: TensorLike
) -> Tensor:
    """The unnormalized score of each row's tags: unary and transition scores, added up.

    ``inputs`` is [batch, steps, tags], ``tag_indices`` [batch, steps], ``sequence_lengths`` [batch]
    and ``transition_params`` [tags, tags]; the result is [batch]. Minus ``crf_log_norm`` it is the
    log likelihood (``crf_log_likelihood``).
    """
    tag_indices = ops.convert_to_tensor(tag_indices)
    sequence_lengths = ops.convert_to_tensor(sequence_lengths)

    def single() -> Tensor:
        batch = ops.shape(inputs, out_type=tag_indices.dtype)[0]
        rows = ops.reshape(ops.range(batch, dtype=tag_indices.dtype), [-1, 1])
        where = ops.concat([rows, tag_indices], axis=1)
        return _zero_if_empty(sequence_lengths, ops.gather_nd(ops.squeeze(inputs, [1]), where))

    def many() -> Tensor:
        unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
        return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)

    return _for_length(inputs, single, many)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: TensorLike, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The log sum of the scores of all sequences whose tags ``tag_bitmap`` allows.

    ``inputs`` is [batch, steps, tags] and ``tag_bitmap`` bools of the same shape; the result is
    [batch]. With one allowed tag at each step it is ``crf_sequence_score``.
    """

    def filtered() -> Tensor:
        return ops.where(tag_bitmap, inputs, ops.fill(ops.shape(inputs), float("-inf")))

    return _for_length(
        inputs,
        lambda: ops.reduce_logsumexp(filtered(), axis=[1, 2], keepdims=False),
        lambda: crf_log_norm(filtered(), sequence_lengths, transition_params),
    )


def crf_log_norm(
    inputs: Tensor, sequence_lengths: TensorLike, transition_params: Tensor | Variable
) -> Tensor:
    """The logarithm of the partition function of a linear chain, one number for each sequence.

    ``inputs`` is [batch, steps, tags], ``sequence_lengths`` [batch], ``transition_params`` [tags,
    tags]. It is the log sum of the exponentials of the scores of all sequences of tags; a sequence
    of length 0 gives 0.
    """
    sequence_lengths = ops.convert_to_tensor(sequence_lengths)
    first = ops.squeeze(ops.slice(inputs, [0, 0, 0], [-1, 1, -1]), [1])

    def single() -> Tensor:
        return _zero_if_empty(sequence_lengths, ops.reduce_logsumexp(first, [1]))

    def many() -> Tensor:
        rest = ops.slice(inputs, [0, 1, 0], [-1, -1, -1])
        cell = CrfForwardRnnCell(transition_params)
        _, alphas = dynamic_rnn(
            cell,
            rest,
            sequence_length=_less_one(sequence_lengths),
            initial_state=first,
            dtype=dtypes.float32,
        )
        return _zero_if_empty(sequence_lengths, ops.reduce_logsumexp(alphas, [1]))

    return _for_length(inputs, single, many)


def crf_log_likelihood(
    inputs: Tensor,
    tag_indices: TensorLike,
    sequence_lengths: TensorLike,
    transition_params: Any = None,
) -> tuple[Any, Any]:
    """``(log_likelihood, transition_params)`` of tag sequences in a linear-chain CRF.

    ``inputs`` are scores [batch, length, tags], ``tag_indices`` [batch, length],
    ``sequence_lengths`` [batch]. Without ``transition_params`` the variable ``transitions`` [tags,
    tags] is made.
    """
    tags = dimension_value(inputs.shape[2])
    if transition_params is None:
        transition_params = get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(inputs, sequence_lengths, transition_params)
    return score - norm, transition_params


def crf_unary_score(
    tag_indices: Tensor, sequence_lengths: TensorLike, inputs: TensorLike
) -> Tensor:
    """The sum of the potentials of each row's tags.

    ``tag_indices`` is [batch, steps], ``sequence_lengths`` [batch], ``inputs`` [batch, steps,
    tags]; the result is [batch]. Steps after the end of a sequence do not count.
    """
    batch, steps, tags = (ops.shape(inputs)[i] for i in range(3))
    flat = ops.reshape(inputs, [-1])
    offsets = ops.expand_dims(ops.range(batch) * steps * tags, 1)
    offsets = offsets + ops.expand_dims(ops.range(steps) * tags, 0)
    if tag_indices.dtype == dtypes.int64:
        offsets = ops.cast(offsets, dtypes.int64)
    where = ops.reshape(offsets + tag_indices, [-1])
    scores = ops.reshape(ops.gather(flat, where), [batch, steps])
    return ops.reduce_sum(scores * _mask(sequence_lengths, tag_indices), 1)


def _mask(lengths: Any, tag_indices: Any) -> Tensor:
    return ops.sequence_mask(lengths, maxlen=ops.shape(tag_indices)[1], dtype=dtypes.float32)


def crf_binary_score(
    tag_indices: TensorLike, sequence_lengths: object, transition_params: Any
) -> Tensor:
    """The sum of the transitions between each row's tags.

    ``tag_indices`` is [batch, steps], ``sequence_lengths`` [batch], ``transition_params`` [tags,
    tags]: element [i, j] is the score of tag j after tag i. The result is [batch].
    """
    tags: Any = dimension_value(transition_params.shape[0])
    count = ops.shape(tag_indices)[1] - 1
    start = ops.slice(tag_indices, [0, 0], ops.stack([-1, count]))
    end = ops.slice(tag_indices, [0, 1], ops.stack([-1, count]))
    flat = ops.reshape(transition_params, [-1])
    scores = ops.gather(flat, start * tags + end)
    mask = ops.slice(_mask(sequence_lengths, tag_indices), [0, 1], [-1, -1])
    return ops.reduce_sum(scores * mask, 1)


class _ChainCell(RNNCell):
    """A cell over tags without variables."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transition_params = ops.expand_dims(transition_params, 0)
        self._num_tags = dimension_value(transition_params.shape[0])

    @property
    def state_size(self) -> Any:
        return self._num_tags

    @property
    def output_size(self) -> Any:
        return self._num_tags


class CrfForwardRnnCell(_ChainCell):
    """The forward algorithm: its state is the log sum over all prefixes, per last tag."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        scores = ops.expand_dims(state, 2) + self._transition_params
        alphas = inputs + ops.reduce_logsumexp(scores, [1])
        return alphas, alphas


class CrfDecodeForwardRnnCell(_ChainCell):
    """Viterbi's algorithm forward: outputs are back pointers, the state the best scores."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        scores = ops.expand_dims(state, 2) + self._transition_params
        best = inputs + ops.reduce_max(scores, [1])
        return ops.cast(ops.argmax(scores, 1), dtypes.int32), best


class CrfDecodeBackwardRnnCell(RNNCell):
    """Viterbi's algorithm backward: follows the back pointers."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> Any:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        tags = ops.squeeze(state, axis=[1])
        rows = ops.range(ops.shape(inputs)[0])
        found = ops.gather_nd(inputs, ops.stack([rows, tags], axis=1))
        new = ops.expand_dims(found, axis=-1)
        return new, new


def crf_decode(
    potentials: Tensor, transition_params: Tensor | Variable, sequence_length: Tensor
) -> tuple[Any, Any]:
    """``(tags, best_score)`` of the best sequence of each row, as tensors.

    ``potentials`` is [batch, steps, tags], ``transition_params`` [tags, tags] and
    ``sequence_length`` [batch]. ``tags`` is int32 [batch, steps], ``best_score`` [batch]. Steps
    after the end of a sequence have the tag 0.

        scores = tf.constant([[[1.0, 0.0], [0.0, 2.0]]])
        tf.contrib.crf.crf_decode(scores, tf.zeros([2, 2]), tf.constant([2]))  # ([[0, 1]], [3.0])
    """
    sequence_length = ops.convert_to_tensor(sequence_length)

    def single() -> tuple[Tensor, Tensor]:
        squeezed = ops.squeeze(potentials, [1])
        tags = ops.expand_dims(ops.argmax(squeezed, axis=1), 1)
        return ops.cast(tags, dtypes.int32), ops.reduce_max(squeezed, axis=1)

    def many() -> tuple[Tensor, Tensor]:
        first = ops.squeeze(ops.slice(potentials, [0, 0, 0], [-1, 1, -1]), axis=[1])
        rest = ops.slice(potentials, [0, 1, 0], [-1, -1, -1])
        lengths = _less_one(sequence_length)
        pointers, last = dynamic_rnn(
            CrfDecodeForwardRnnCell(transition_params), rest, lengths, first, dtype=dtypes.int32
        )
        pointers = ops.reverse_sequence(pointers, lengths, seq_axis=1)
        start = ops.expand_dims(ops.cast(ops.argmax(last, axis=1), dtypes.int32), axis=-1)
        cell = CrfDecodeBackwardRnnCell(dimension_value(potentials.shape[2]) or 0)
        tags, _ = dynamic_rnn(cell, pointers, lengths, start, dtype=dtypes.int32)
        tags = ops.concat([start, ops.squeeze(tags, axis=[2])], axis=1)
        tags = ops.reverse_sequence(tags, sequence_length, seq_axis=1)
        return tags, ops.reduce_max(last, axis=1)

    return _for_length(potentials, single, many)


def viterbi_decode(score: Any, transition_params: object) -> tuple[list[Any], Any]:
    """The best tags of one sequence of arrays (time, tags), outside of the graph."""
    best, came_from = score[0], []
    for row in score[1:]:
        reached = best[:, None] + transition_params  # (tag before, tag)
        came_from.append(reached.argmax(0).astype(np.int32))
        best = (row + reached.max(0)).astype(score.dtype)
    path = [best.argmax()]
    for before in came_from[::-1]:
        path.insert(0, before[path[0]])
    return path, best.max()
