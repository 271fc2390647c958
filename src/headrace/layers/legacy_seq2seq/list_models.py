"""Whole models over lists of inputs: an encoder and a decoder.

``feed_previous`` may be a bool or a bool tensor; with a tensor both decoders are built and share
their variables.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.layers import layer_ops as ops
from headrace.layers.legacy_seq2seq.list_decoders import (
    check_projection,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    extract_argmax_and_embed,
    rnn_decoder,
)
from headrace.layers.rnn.cell_base import RNNCell
from headrace.layers.rnn.projection_wrappers import EmbeddingWrapper, OutputProjectionWrapper
from headrace.layers.rnn.static_rnn import static_rnn
from headrace.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import LSTMStateTuple
    from headrace.variables.scope_state import VariableScope

__all__ = [
    "basic_rnn_seq2seq",
    "embedding_attention_seq2seq",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "one2many_rnn_seq2seq",
    "tied_rnn_seq2seq",
]


def basic_rnn_seq2seq(
    encoder_inputs: TensorLike,
    decoder_inputs: TensorLike,
    cell: object,
    dtype: DTypeLike = dtypes.float32,
    scope: VariableScope | str | None = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder with two copies of ``cell``.

    ``encoder_inputs`` and ``decoder_inputs`` are lists of tensors [batch, size]. The decoder begins
    with the encoder's last state; the encoder's outputs are not used. Returns the list of the
    decoder's outputs, [batch, ``cell.output_size``], and its last state.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: TensorLike,
    decoder_inputs: TensorLike,
    cell: object,
    loop_function: Callable[[Any, Any], Any] | None = None,
    dtype: DTypeLike = dtypes.float32,
    scope: object = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder with the same variables.

    ``encoder_inputs`` and ``decoder_inputs`` are lists of tensors [batch, size] of one size.
    ``loop_function(previous output, step)`` makes the decoder's next input. Returns the list of the
    decoder's outputs and its last state.
    """
    with variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope=name)


def _either(
    feed_previous: TensorLike,
    build: Callable[[bool], tuple[list[Any], Any]],
    count: int,
    like: TensorLike,
) -> tuple[list[Any], Any]:
    """``build(feed_previous)``, or both under a ``cond``; ``like`` has the structure of the
    state.
    """
    if isinstance(feed_previous, bool):
        return build(feed_previous)

    def branch(feed: bool) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=None if feed else True):
            outputs, state = build(feed)
            return [*outputs, *nest.flatten(state)]

    results = ops.cond(feed_previous, lambda: branch(True), lambda: branch(False))
    return list(results[:count]), nest.pack_sequence_as(like, list(results[count:]))


def embedding_rnn_seq2seq(
    encoder_inputs: TensorLike,
    decoder_inputs: Sequence[TensorLike],
    cell: object,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: object = None,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """Encoder and decoder over ids, each with its own embedding.

    As ``embedding_attention_seq2seq`` without the attention: the decoder sees only the encoder's
    last state. Inputs are lists of int32 [batch]; outputs are logits [batch,
    ``num_decoder_symbols``] without an ``output_projection``.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as opened:
        if dtype is not None:
            opened.set_dtype(dtype)
        kind = opened.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=kind)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def build(feed: bool) -> tuple[list[Tensor], Tensor]:
            return embedding_rnn_decoder(
                decoder_inputs,
                state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection,
                feed,
                update_embedding_for_previous=isinstance(feed_previous, bool),
            )

        return _either(feed_previous, build, len(decoder_inputs), state)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike],
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: object = None,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: VariableScope | str | None = None,
) -> tuple[list[Any], Any]:
    """Encoder and decoder over ids with one embedding and one set of variables.

    Both sides have the same ``num_symbols`` ids. Inputs are lists of int32 [batch]; outputs are
    logits [batch, ``num_decoder_symbols``] (default ``num_symbols``) without an
    ``output_projection``. ``feed_previous`` is as in ``embedding_attention_seq2seq``.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as opened:
        kind = opened.dtype
        check_projection(output_projection, num_symbols, kind)
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=kind)
        encoded = [ops.embedding_lookup(embedding, x) for x in encoder_inputs]
        decoded = [ops.embedding_lookup(embedding, x) for x in decoder_inputs]
        if output_projection is None:
            symbols = num_symbols if num_decoder_symbols is None else num_decoder_symbols
            cell = OutputProjectionWrapper(cell, symbols)
        known = isinstance(feed_previous, bool)

        def build(feed: bool) -> tuple[list[Tensor], Tensor]:
            loop = None
            if feed:
                loop = extract_argmax_and_embed(embedding, output_projection, known)
            return tied_rnn_seq2seq(encoded, decoded, cell, loop, dtype=kind)

        return _either(feed_previous, build, len(decoder_inputs), cell.state_size)


def embedding_attention_seq2seq(
    encoder_inputs: TensorLike,
    decoder_inputs: Sequence[TensorLike],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: object = None,
    feed_previous: TensorLike = False,
    dtype: DTypeLike | None = None,
    scope: VariableScope | str | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Encoder and attention decoder over lists of ids; returns the outputs and the last state.

    The inputs are lists of int32 [batch]. The encoder runs a copy of ``cell`` over embeddings of
    ``num_encoder_symbols``; the decoder attends to all of its outputs. Without
    ``output_projection`` (a pair of weights and biases) outputs are logits [batch,
    ``num_decoder_symbols``], otherwise the cell's outputs. ``feed_previous``, a bool or a bool
    tensor, feeds the largest output back instead of ``decoder_inputs``. ``num_heads`` and
    ``initial_state_attention`` are as in ``attention_decoder``.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as opened:
        kind = opened.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(encoder, encoder_inputs, dtype=kind)
        tops = [ops.reshape(e, [-1, 1, cell.output_size]) for e in outputs]
        attention_states = ops.concat(tops, 1)
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols
        known = isinstance(feed_previous, bool)

        def build(feed: bool) -> tuple[list[Tensor], LSTMStateTuple]:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                attention_states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                output_size,
                output_projection,
                feed,
                update_embedding_for_previous=known,
                initial_state_attention=initial_state_attention,
            )

        return _either(feed_previous, build, len(decoder_inputs), state)


def one2many_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs_dict: dict[Any, Any],
    enc_cell: object,
    dec_cells_dict: dict[Any, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: dict[Any, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: DType | None = None,
    scope: VariableScope | str | None = None,
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """One encoder and several decoders: the arguments of decoders are dicts by decoder name.

    ``decoder_inputs_dict`` has lists of int32 [batch], ``dec_cells_dict`` cells and
    ``num_decoder_symbols_dict`` numbers of ids. ``feed_previous`` is as in
    ``embedding_attention_seq2seq``. Returns two dicts by decoder name: lists of logits, and last
    states.
    """
    if not isinstance(enc_cell, RNNCell):
        raise TypeError(f"enc_cell is not an RNNCell: {type(enc_cell)}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decodre_inputs_dict")
    for cell in dec_cells_dict.values():
        if not isinstance(cell, RNNCell):
            raise TypeError(f"dec_cell is not an RNNCell: {type(cell)}")
    outputs, states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                decoder = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def build(
                    feed: bool, inputs: Tensor = inputs, cell: RNNCell = decoder, n: int = symbols
                ) -> Any:
                    return embedding_rnn_decoder(
                        inputs, state, cell, n, embedding_size, feed_previous=feed
                    )

                outputs[name], states[name] = _either(feed_previous, build, len(inputs), state)
    return outputs, states
