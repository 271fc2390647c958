"""Decoders over lists of inputs: plain, with embeddings, with attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.linear_map import Linear
from headrace.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell
    from headrace.variables.scope_state import VariableScope

__all__ = [
    "attention_decoder",
    "check_projection",
    "embedding_attention_decoder",
    "embedding_rnn_decoder",
    "extract_argmax_and_embed",
    "rnn_decoder",
]


def extract_argmax_and_embed(
    embedding: TensorLike, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, Any], Any]:
    """A loop function: the embedding of the largest output is the next input."""

    def loop_function(before: Tensor, _: int) -> Tensor:
        if output_projection is not None:
            before = ops.xw_plus_b(before, output_projection[0], output_projection[1])
        embedded = ops.embedding_lookup(embedding, ops.argmax(before, 1))
        return embedded if update_embedding else ops.stop_gradient(embedded)

    return loop_function


def check_projection(output_projection: Any, num_symbols: int, dtype: DType) -> None:
    if output_projection is None:
        return
    weights = ops.convert_to_tensor(output_projection[0], dtype=dtype)
    weights.shape.assert_is_compatible_with([None, num_symbols])
    biases = ops.convert_to_tensor(output_projection[1], dtype=dtype)
    biases.shape.assert_is_compatible_with([num_symbols])


def rnn_decoder(
    decoder_inputs: Any,
    initial_state: Tensor,
    cell: Any,
    loop_function: Callable[[Any, Any], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """``(outputs, state)`` over a list of inputs.

    ``loop_function(previous_output, i)`` replaces all but the first.
    """
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, before = initial_state, [], None
        for i, x in enumerate(decoder_inputs):
            if loop_function is not None and before is not None:
                with variable_scope("loop_function", reuse=True):
                    x = loop_function(before, i)
            if i > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(x, state)
            outputs.append(output)
            if loop_function is not None:
                before = output
    return outputs, state


def embedding_rnn_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    cell: object,
    num_symbols: int,
    embedding_size: int,
    output_projection: object = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """``rnn_decoder`` over ids; with ``feed_previous`` only the first one is used.

    ``decoder_inputs`` is a list of int32 [batch] ids below ``num_symbols``; they are looked up in
    the variable "embedding" [``num_symbols``, ``embedding_size``]. With ``feed_previous`` the next
    input is the embedding of the largest output, mapped by ``output_projection`` (a pair of weights
    and biases) first; ``update_embedding_for_previous=False`` keeps gradients from that embedding.
    Returns the list of outputs and the last state.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as opened:
        check_projection(output_projection, num_symbols, opened.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = extract_argmax_and_embed(
                embedding, output_projection, update_embedding_for_previous
            )
        inputs = (ops.embedding_lookup(embedding, i) for i in decoder_inputs)
        return rnn_decoder(inputs, initial_state, cell, loop)


def attention_decoder(
    decoder_inputs: Sequence[Tensor],
    initial_state: object,
    attention_states: Tensor,
    cell: RNNCell,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, Any], Any] | None = None,
    dtype: DType | None = None,
    scope: str | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """A decoder that attends to ``attention_states`` (batch, length, size) at each step.

    ``decoder_inputs`` is a list with a tensor [batch, size] for each step. At each step the input
    joined with the last attention goes through a linear map into ``cell``, and the output joined
    with the new attention through one to ``output_size`` (default: the cell's). ``num_heads``
    attentions are read. ``loop_function(previous output, step)`` makes the next input in place of
    the given one. ``initial_state_attention`` begins with the attention of ``initial_state``
    instead of zeros. Returns the list of outputs and the last state.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    _, length, size = attention_states.shape.as_list()
    if size is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    with variable_scope(scope or "attention_decoder", dtype=dtype) as opened:
        kind = opened.dtype
        batch_size = ops.shape(decoder_inputs[0])[0]
        attend = _Attention(attention_states, length, size, num_heads, kind)
        zeros_shape = ops.stack([batch_size, size])
        attentions = [ops.zeros(zeros_shape, dtype=kind) for _ in range(num_heads)]
        for each in attentions:
            each.set_shape([None, size])
        if initial_state_attention:
            attentions = attend(initial_state)
        state, outputs, before = initial_state, [], None
        for i, x in enumerate(decoder_inputs):
            if i > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and before is not None:
                with variable_scope("loop_function", reuse=True):
                    x = loop_function(before, i)
            width = x.shape.with_rank(2).as_list()[1]
            if width is None:
                raise ValueError(f"Could not infer input size from input: {x.name}")
            parts = [ops.cast(e, kind) for e in [x, *attentions]]
            cell_output, state = cell(Linear(parts, width, True)(parts), state)
            if i == 0 and initial_state_attention:
                with variable_scope(get_variable_scope(), reuse=True):
                    attentions = attend(state)
            else:
                attentions = attend(state)
            with variable_scope("AttnOutputProjection"):
                parts = [ops.cast(cell_output, kind), *attentions]
                wanted = cell.output_size if output_size is None else output_size
                output = Linear(parts, wanted, True)(parts)
            if loop_function is not None:
                before = output
            outputs.append(output)
    return outputs, state


class _Attention:
    """Bahdanau's attention with several heads, its keys made by a 1x1 convolution."""

    def __init__(self, states: Any, length: int | None, size: int, heads: int, dtype: Any) -> None:
        self._length: Any = ops.shape(states)[1] if length is None else length
        self._size, self._dtype = size, dtype
        self._hidden = ops.reshape(states, [-1, self._length, 1, size])
        self._features, self._v = [], []
        for head in range(heads):
            k = get_variable(f"AttnW_{head}", [1, 1, size, size], dtype=dtype)
            self._features.append(ops.conv2d(self._hidden, k, [1, 1, 1, 1], "SAME"))
            self._v.append(get_variable(f"AttnV_{head}", [size], dtype=dtype))

    def __call__(self, query: Any) -> list[Any]:
        if nest.is_nested(query):
            query = ops.concat(nest.flatten(query), 1)
        found = []
        for head, (v, features) in enumerate(zip(self._v, self._features)):
            with variable_scope(f"Attention_{head}"):
                y = Linear(query, self._size, True)(query)
                y = ops.cast(ops.reshape(y, [-1, 1, 1, self._size]), self._dtype)
                s = ops.reduce_sum(v * ops.tanh(features + y), [2, 3])
                weights = ops.cast(ops.softmax(ops.cast(s, dtypes.float32)), self._dtype)
                wide = ops.reshape(weights, [-1, self._length, 1, 1])
                d = ops.reduce_sum(wide * self._hidden, [1, 2])
                found.append(ops.reshape(d, [-1, self._size]))
        return found


def embedding_attention_decoder(
    decoder_inputs: Sequence[TensorLike],
    initial_state: LSTMStateTuple,
    attention_states: Tensor,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: DType | None = None,
    scope: str | VariableScope | None = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """``attention_decoder`` over ids: embeds each input and, with ``feed_previous``, the likeliest
    output.
    """
    if output_projection is not None:
        biases = ops.convert_to_tensor(output_projection[1], dtype=dtype)
        biases.shape.assert_is_compatible_with([num_symbols])
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = extract_argmax_and_embed(
                embedding, output_projection, update_embedding_for_previous
            )
        inputs = [ops.embedding_lookup(embedding, i) for i in decoder_inputs]
        return attention_decoder(
            inputs,
            initial_state,
            attention_states,
            cell,
            cell.output_size if output_size is None else output_size,
            num_heads,
            loop,
            initial_state_attention=initial_state_attention,
        )
