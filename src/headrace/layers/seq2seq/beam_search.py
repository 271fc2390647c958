"""Beam search: the decoder that keeps the ``beam_width`` best sequences of each row.

Tensors of a state are (batch, beam, …) between steps; the cell sees (batch * beam, …).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape, as_shape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.rnn.cell_base import assert_like_rnncell
from headrace.layers.seq2seq.beam_step import beam_search_step, get_attention_probs
from headrace.layers.seq2seq.decoder import Decoder, rnn_output_size
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.nn.gather_tree import gather_tree

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.layers.dense import Dense

__all__ = [
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
    "gather_tree_from_array",
    "tile_batch",
]


class BeamSearchDecoderState(NamedTuple):
    """A beam search between two steps: the cell's state, log probabilities, lengths, finished.

    ``log_probs``, ``lengths`` and ``finished`` are [batch, beam], and so begins the shape of
    everything in ``cell_state``. ``accumulated_attention_probs`` is for the coverage penalty,
    ``()`` without.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """One step of a beam search: scores, predicted ids and parents of the beams.

    ``scores`` (float), ``predicted_ids`` and ``parent_ids`` (int32) are [batch, beam];
    ``parent_ids`` says from which beam of the step before each one continues.
    """

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Whole sequences, best first, and the outputs of the steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: TensorLike, multiplier: int, name: str | None = None) -> Any:
    """Each row of (nested) tensors (batch, …) ``multiplier`` times, one after another."""
    with name_scope(name, "tile_batch", nest.flatten(t)):
        return nest.map_structure(lambda x: _tiled(x, multiplier), t)


def _tiled(t: Tensor, multiplier: int) -> Tensor:
    t = ops.convert_to_tensor(t, name="t")
    shape = ops.shape(t)
    if t.shape.ndims is None or t.shape.ndims < 1:
        raise ValueError("t must have statically known rank")
    times = [1] * (t.shape.ndims + 1)
    times[1] = multiplier
    known = dimension_value(t.shape[0])
    tiled = ops.tile(ops.expand_dims(t, 1), times)
    tiled = ops.reshape(tiled, ops.concat(([shape[0] * multiplier], shape[1:]), 0))
    batch = None if known is None else known * multiplier
    tiled.set_shape(TensorShape([batch]).concatenate(t.shape[1:]))
    return tiled


def gather_tree_from_array(t: TensorLike, parent_ids: Any, sequence_length: TensorLike) -> Tensor:
    """A stacked TensorArray (time, batch, beam, …) in the order of the final sequences.

    ``parent_ids`` is [time, batch, beam], ``sequence_length`` [batch, beam]. Used on the alignments
    of an attention, which are stored in the order of the beams at each step.
    """
    known = parent_ids.shape.as_list()
    sizes = ops.shape(parent_ids)
    time, batch, beam = (known[i] or sizes[i] for i in range(3))
    beam_ids = ops.expand_dims(ops.expand_dims(ops.range(beam), 0), 0)
    beam_ids = ops.tile(beam_ids, [time, batch, 1])
    longest = ops.cast(ops.reduce_max(sequence_length, axis=1), dtypes.int32)
    ordered = gather_tree(beam_ids, parent_ids, longest, beam + 1)
    inside = ops.transpose(ops.sequence_mask(sequence_length, maxlen=time), perm=[2, 0, 1])
    ordered = ops.where(inside, x=ordered, y=beam_ids)
    times = ops.tile(ops.reshape(ops.range(time), [-1, 1, 1]), [1, batch, beam])
    rows = ops.tile(ops.reshape(ops.range(batch), [-1, 1, 1]), [1, time, beam])
    rows = ops.transpose(rows, perm=[1, 0, 2])
    shape = ops.shape(t)
    flat = ops.reshape(t, [time, batch, beam, -1])
    return ops.reshape(ops.gather_nd(flat, ops.stack([times, rows, ordered], -1)), shape)


def _check_rank(t: Tensor) -> None:
    if t.shape.ndims is None:
        raise ValueError(f"Expected tensor ({t}) to have known rank, but ndims == None.")


def _int32_tensor(value: object, name: str, rank: int, kind: str) -> Tensor:
    """Token ids as int32, refused unless they have this rank."""
    tensor: Tensor = ops.convert_to_tensor(value, dtype=dtypes.int32, name=name)
    if tensor.shape.ndims != rank:
        raise ValueError(f"{name} must be {kind}")
    return tensor


def _only_first_beam_runs(batch_size: Tensor, beam_width: int) -> Tensor:
    """Which beams are finished at the start: all but the first, as all of them would be equal."""
    first = ops.zeros([batch_size], dtype=dtypes.int32)
    finished: Tensor = ops.one_hot(first, beam_width, False, True, dtype=dtypes.bool)
    return finished


class BeamSearchDecoder(Decoder):
    """Decodes with beam search; the cell's memory and state must be tiled with :func:`tile_batch`.

    ``embedding`` is a tensor or a function of ids; ``initial_state`` has (batch * beam_width) rows.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: object,
        end_token: object,
        initial_state: Any,
        beam_width: int,
        output_layer: Dense | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        assert_like_rnncell("cell", cell)
        if not isinstance(output_layer, Layer | None):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._output_layer = cell, output_layer
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        is_function = callable(embedding)
        self._embedding_fn = embedding if is_function else partial(ops.embedding_lookup, embedding)
        tokens = _int32_tensor(start_tokens, "start_tokens", 1, "a vector")
        self._end_token = _int32_tensor(end_token, "end_token", 0, "a scalar")
        self._batch_size = ops.size(start_tokens)
        self._initial_cell_state = nest.map_structure(
            self._split_if_batched, initial_state, cell.state_size
        )
        self._start_tokens = ops.tile(ops.expand_dims(tokens, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(self._start_tokens)
        self._finished = _only_first_beam_runs(self._batch_size, beam_width)

    @property
    def batch_size(self) -> Tensor:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """Beams change places, so a step says itself which are finished."""
        return True

    @property
    def output_size(self) -> Any:
        beams = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> Any:
        kind = nest.flatten(self._initial_cell_state)[0].dtype
        size = rnn_output_size(self._cell, self._output_layer)
        scores = nest.map_structure(lambda _: kind, size)
        return BeamSearchDecoderOutput(scores, dtypes.int32, dtypes.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, ...]:
        kind = nest.flatten(self._initial_cell_state)[0].dtype
        log_probs = ops.one_hot(
            ops.zeros([self._batch_size], dtype=dtypes.int32),
            depth=self._beam_width,
            on_value=ops.convert_to_tensor(0.0, dtype=kind),
            off_value=ops.convert_to_tensor(-np.inf, dtype=kind),
            dtype=kind,
        )
        attention = get_attention_probs(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=self._finished,
            lengths=ops.zeros([self._batch_size, self._beam_width], dtype=dtypes.int64),
            accumulated_attention_probs=() if attention is None else attention,
        )
        return self._finished, self._start_inputs, state

    def finalize(
        self, outputs: Any, final_state: Any, sequence_lengths: TensorLike
    ) -> tuple[FinalBeamSearchDecoderOutput, Any]:
        longest = ops.cast(ops.reduce_max(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(
            outputs.predicted_ids, outputs.parent_ids, longest, end_token=self._end_token
        )
        if self._reorder_tensor_arrays:
            state = nest.map_structure(
                lambda t: self._sorted_array(t, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def step(self, time: Tensor, inputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            inputs = nest.map_structure(lambda x: self._merge(x, x.shape[2:]), inputs)
            cell_state = nest.map_structure(
                self._merge_if_split, state.cell_state, self._cell.state_size
            )
            outputs, next_state = self._cell(inputs, cell_state)
            outputs = nest.map_structure(lambda x: self._split(x, x.shape[1:]), outputs)
            next_state = nest.map_structure(
                self._split_if_batched, next_state, self._cell.state_size
            )
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            output, after = beam_search_step(
                time,
                outputs,
                next_state,
                state,
                self._batch_size,
                self._beam_width,
                self._end_token,
                self._length_penalty_weight,
                self._coverage_penalty_weight,
                BeamSearchDecoderOutput,
            )
            following = ops.cond(
                ops.reduce_all(after.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(output.predicted_ids),
            )
        return output, after, following, after.finished

    # (batch, beam, …) and (batch * beam, …) ------------------------------------------------------
    def _static_batch(self) -> int | None:
        known = ops.static_value(self._batch_size)
        return None if known is None else int(known)

    def _merge(self, t: Tensor, size: int | TensorShape) -> Tensor:
        sizes = ops.shape(t)
        batch = self._static_batch()
        merged = ops.reshape(t, ops.concat(([self._batch_size * self._beam_width], sizes[2:]), 0))
        whole = None if batch is None else batch * self._beam_width
        merged.set_shape(TensorShape([whole]).concatenate(_static(size)))
        return merged

    def _split(self, t: Tensor, size: int | TensorShape) -> Tensor:
        sizes = ops.shape(t)
        split = ops.reshape(t, ops.concat(([self._batch_size, self._beam_width], sizes[1:]), 0))
        want = TensorShape([self._static_batch(), self._beam_width]).concatenate(_static(size))
        if not split.shape.is_compatible_with(want):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  "
                "The reshaped tensor has shape: "
                f"{split.shape}.  We expected it to have shape (batch_size, beam_width, "
                f"depth) == {want}.  Perhaps you "
                "forgot to create a zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        split.set_shape(want)
        return split

    def _split_if_batched(self, t: Any, size: Any) -> Any:
        if isinstance(t, TensorArray):
            return t
        _check_rank(t)
        return self._split(t, size) if t.shape.ndims >= 1 else t

    def _merge_if_split(self, t: Any, size: Any) -> Any:
        if isinstance(t, TensorArray):
            return t
        _check_rank(t)
        return self._merge(t, size) if t.shape.ndims >= 2 else t

    def _sorted_array(self, t: TensorLike, parent_ids: TensorLike, lengths: TensorLike) -> Any:
        """A TensorArray of the cell's state, stacked in the order of the final sequences.

        Others stay.
        """
        if not isinstance(t, TensorArray):
            return t
        shape = getattr(t, "element_shape", None)
        shape = t._element_shape[0] if shape is None else shape
        shape = as_shape(shape)
        if shape.ndims is None or shape.ndims < 1:
            return t
        batch, sizes = self._static_batch(), shape.as_list()
        if batch is not None and sizes[0] is not None:
            merged = sizes[0] == batch * self._beam_width
            split = sizes[0] == batch and len(sizes) > 1 and sizes[1] == self._beam_width
            if not merged and not split:
                return t
        stacked = t.stack()
        have = ops.shape(stacked)
        whole = ops.equal(have[1], self._batch_size * self._beam_width)
        if shape.ndims > 1:
            apart = ops.logical_and(
                ops.equal(have[1], self._batch_size), ops.equal(have[2], self._beam_width)
            )
            whole = ops.logical_or(whole, apart)
        text = (
            "TensorArray reordering expects elements to be reshapable to [batch_size, "
            "beam_size, -1]. Consider setting "
            "reorder_tensor_arrays to False."
        )
        with control_dependencies([ops.Assert(whole, [text])]):
            return gather_tree_from_array(stacked, parent_ids, lengths)


def _static(size: int | TensorShape) -> TensorShape:
    if isinstance(size, Tensor):
        known = ops.static_value(size)
        return as_shape(None if known is None else known.tolist())
    return TensorShape(size) if not isinstance(size, int) else TensorShape([size])
