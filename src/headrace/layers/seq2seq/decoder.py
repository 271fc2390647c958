"""``dynamic_decode``: a decoder in a while loop until every row is finished."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes, nest
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.rnn.cell_base import assert_like_rnncell, zero_state_tensors
from headrace.layers.rnn.dynamic_rnn import transpose_batch_time
from headrace.layers.rnn.rnn_step import cache_variables
from headrace.layers.seq2seq.helpers import Helper
from headrace.ops.control.tensor_array import TensorArray
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell
    from headrace.layers.seq2seq.attention_wrapper import AttentionWrapperState
    from headrace.layers.seq2seq.beam_search import BeamSearchDecoder, BeamSearchDecoderOutput

__all__ = ["BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode", "rnn_output_size"]


class Decoder:
    """Base of decoders: ``initialize`` and ``step`` define a loop over time."""

    @property
    def batch_size(self) -> Any:
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """A structure of sizes."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """A structure of types, as ``output_size``."""
        raise NotImplementedError

    def initialize(self, name: str | None = None) -> Any:
        """``(finished, initial_inputs, initial_state)``."""
        raise NotImplementedError

    def step(self, time: Tensor, inputs: TensorLike, state: Any, name: str | None = None) -> Any:
        """``(outputs, next_state, next_inputs, finished)``."""
        raise NotImplementedError

    def finalize(self, outputs: object, final_state: object, sequence_lengths: TensorLike) -> Any:
        """What to make of all outputs at the end; optional."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether ``finished`` of a step says it all; otherwise a finished row stays finished."""
        return False


def dynamic_decode(
    decoder: BasicDecoder | BeamSearchDecoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: str | None = None,
    **kwargs: object,
) -> tuple[Any, Any, Any]:
    """``(final_outputs, final_state, final_sequence_lengths)`` of a decoder.

    ``impute_finished`` gives zeros past a row's end and keeps its state. ``maximum_iterations``
    bounds the loop.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    if kwargs:
        raise TypeError(
            f"dynamic_decode takes {', '.join(sorted(kwargs))} with Keras-style decoders "
            "alone, which Headrace does not have"
        )
    with variable_scope(scope, "decoder") as opened:
        cache_variables(opened)
        limit = None if maximum_iterations is None else _iteration_limit(maximum_iterations)
        first = decoder.initialize()
        outputs, final_state, final_lengths = _decode(
            decoder,
            first,
            limit,
            impute_finished,
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        with contextlib.suppress(NotImplementedError):
            outputs, final_state = decoder.finalize(outputs, final_state, final_lengths)
        if not output_time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
    return outputs, final_state, final_lengths


def _iteration_limit(maximum_iterations: TensorLike) -> Tensor:
    limit: Tensor = ops.convert_to_tensor(
        maximum_iterations, dtype=dtypes.int32, name="maximum_iterations"
    )
    if limit.shape.ndims != 0:
        raise ValueError("maximum_iterations must be a scalar")
    return limit


def _decode(
    decoder: Decoder, first: Any, limit: Tensor | None, impute_finished: bool, **options: Any
) -> tuple[Any, Any, Any]:
    """(outputs, state, lengths) of the loop that starts with what ``initialize`` gave."""
    finished, inputs, state = first
    zeros = nest.map_structure(
        lambda size, kind: zero_state_tensors(size, decoder.batch_size, kind),
        decoder.output_size,
        decoder.output_dtype,
    )
    if limit is not None:
        finished = ops.logical_or(finished, limit <= 0)
    lengths = ops.zeros_like(finished, dtype=dtypes.int32)
    time = ops.constant(0, dtype=dtypes.int32)

    def array(size: int | TensorShape, kind: DType) -> Any:
        shape = _element_shape(decoder.batch_size, size)
        return TensorArray(kind, size=0, dynamic_size=True, element_shape=shape)

    arrays = nest.map_structure(array, decoder.output_size, decoder.output_dtype)
    _, arrays, state, _, _, lengths = ops.while_loop(
        lambda time, arrays, state, inputs, finished, _: ops.logical_not(ops.reduce_all(finished)),
        _decoding_step(decoder, zeros if impute_finished else None),
        loop_vars=(time, arrays, state, inputs, finished, lengths),
        maximum_iterations=limit,
        **options,
    )
    return nest.map_structure(lambda ta: ta.stack(), arrays), state, lengths


def _decoding_step(decoder: Decoder, zeros: Any) -> Callable[..., tuple[Any, ...]]:
    """The body of the loop; with ``zeros``, finished rows give those and keep their state."""

    def body(
        time: Tensor,
        arrays: BeamSearchDecoderOutput | BasicDecoderOutput,
        state: object,
        inputs: Tensor,
        finished: Tensor,
        lengths: Tensor,
    ) -> tuple[Any, ...]:
        outputs, next_state, next_inputs, now_finished = decoder.step(time, inputs, state)
        if not decoder.tracks_own_finished:
            now_finished = ops.logical_or(now_finished, finished)
        steps = ops.fill(ops.shape(lengths), time + 1)
        next_lengths = ops.where(ops.logical_not(finished), steps, lengths)
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(arrays, outputs)
        nest.assert_same_structure(inputs, next_inputs)
        if zeros is not None:
            outputs = nest.map_structure(
                lambda out, zero: ops.where(finished, zero, out), outputs, zeros
            )
            next_state = nest.map_structure(
                lambda new, old: _kept(finished, new, old), next_state, state
            )
        arrays = nest.map_structure(lambda ta, out: ta.write(time, out), arrays, outputs)
        return time + 1, arrays, next_state, next_inputs, now_finished, next_lengths

    return body


def _element_shape(batch_size: Tensor, size: int | TensorShape) -> TensorShape | None:
    if not isinstance(size, TensorShape) or size.ndims == 0:
        return None
    known = ops.static_value(ops.convert_to_tensor(batch_size, name="batch_size"))
    return TensorShape([None if known is None else int(known)]).concatenate(size)


def _kept(finished: Tensor, new: Tensor, old: Tensor) -> Tensor:
    if isinstance(old, TensorArray):
        return new
    new.set_shape(old.shape)
    return new if new.shape.ndims == 0 else ops.where(finished, old, new)


class BasicDecoderOutput(NamedTuple):
    """What a step gives: the cell's output (after the output layer) and the sampled ids."""

    rnn_output: Any
    sample_id: Any


def rnn_output_size(cell: RNNCell, output_layer: Any) -> Any:
    """The size of a cell's output after a layer."""
    if output_layer is None:
        return cell.output_size
    wide = nest.map_structure(lambda s: TensorShape([None]).concatenate(s), cell.output_size)
    return nest.map_structure(lambda s: s[1:], output_layer.compute_output_shape(wide))


class BasicDecoder(Decoder):
    """A decoder of a ``cell`` whose inputs and samples a ``helper`` provides; for
    ``dynamic_decode``.

    ``initial_state`` is the cell's first state; ``output_layer`` (a Dense) turns the cell's output
    into logits before sampling.

        helper = tf.contrib.seq2seq.TrainingHelper(embedded, lengths)
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, state, output_layer)
        outputs, state, _ = tf.contrib.seq2seq.dynamic_decode(decoder)
    """

    def __init__(
        self,
        cell: Any,
        helper: Any,
        initial_state: AttentionWrapperState | LSTMStateTuple | Tensor,
        output_layer: Any = None,
    ) -> None:
        assert_like_rnncell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if output_layer is not None and not isinstance(output_layer, Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        size = rnn_output_size(self._cell, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        kind = nest.flatten(self._initial_state)[0].dtype
        size = rnn_output_size(self._cell, self._output_layer)
        return BasicDecoderOutput(
            nest.map_structure(lambda _: kind, size), self._helper.sample_ids_dtype
        )

    def initialize(self, name: str | None = None) -> Any:
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Tensor, inputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "BasicDecoderStep", nest.flatten((time, inputs, state))):
            outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=outputs, state=cell_state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), next_state, next_inputs, finished
