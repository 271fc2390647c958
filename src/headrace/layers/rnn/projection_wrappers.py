"""Cells of contrib around cells.

Embeddings, projections, attention over the last states, highways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.scopes import device, name_scope
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import RNNCell, assert_like_rnncell
from headrace.layers.rnn.linear_map import Linear
from headrace.variables.initializers import constant_initializer, random_uniform_initializer
from headrace.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

if TYPE_CHECKING:
    from headrace.core.annotations import ReuseLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "AttentionCellWrapper",
    "EmbeddingWrapper",
    "HighwayWrapper",
    "InputProjectionWrapper",
    "OutputProjectionWrapper",
]


class _Around(RNNCell):
    """A cell around ``self._cell``."""

    _cell: Any

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: object, dtype: DType) -> Any:
        values = [batch_size] if isinstance(batch_size, Tensor) else []
        with name_scope(type(self).__name__ + "ZeroState", values=values):
            return self._cell.zero_state(batch_size, dtype)


class EmbeddingWrapper(_Around):
    """A cell whose inputs are ids, looked up in the variable ``embedding``.

    The variable is [``embedding_classes``, ``embedding_size``], by default uniform with variance 1.
    Over a whole sequence it is faster to look up all ids first with ``tf.nn.embedding_lookup``.
    """

    def __init__(
        self,
        cell: object,
        embedding_classes: int,
        embedding_size: int,
        initializer: object = None,
        reuse: object = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._cell = cell
        self._embedding_classes = embedding_classes
        self._embedding_size = embedding_size
        self._initializer = initializer

    def call(self, inputs: TensorLike, state: Any) -> Any:
        with device("/cpu:0"):
            root = math.sqrt(3)  # the numbers have variance 1
            initializer = self._initializer or get_variable_scope().initializer
            initializer = initializer or random_uniform_initializer(-root, root)
            kind = state[0].dtype if isinstance(state, tuple) else state.dtype
            embedding = get_variable(
                "embedding",
                [self._embedding_classes, self._embedding_size],
                initializer=initializer,
                dtype=kind,
            )
            embedded = ops.embedding_lookup(embedding, ops.reshape(inputs, [-1]))
            return self._cell(embedded, state)


class InputProjectionWrapper(_Around):
    """A cell with a linear map (and an activation) before it.

    Its variables map the inputs to ``num_proj`` numbers. ``input_size`` is not used, as in
    TensorFlow. Over a whole sequence one ``tf.layers.dense`` before the RNN is faster.
    """

    def __init__(
        self,
        cell: object,
        num_proj: int,
        activation: Callable[[Any], Any] | None = None,
        input_size: object = None,
        reuse: object = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        self._cell = cell
        self._num_proj = num_proj
        self._activation = activation
        self._linear: Linear | None = None

    def call(self, inputs: TensorLike, state: TensorLike) -> Any:
        if self._linear is None:
            self._linear = Linear(inputs, self._num_proj, True)
        projected = self._linear(inputs)
        if self._activation:
            projected = self._activation(projected)
        return self._cell(projected, state)


class OutputProjectionWrapper(_Around):
    """A cell with a linear map (and an activation) after it.

    Its variables map the cell's output to ``output_size`` numbers. Over a whole sequence one
    ``tf.layers.dense`` after the RNN is faster.
    """

    def __init__(
        self,
        cell: object,
        output_size: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: object = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._cell = cell
        self._output_size = output_size
        self._activation = activation
        self._linear: Linear | None = None

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: TensorLike, state: Any) -> Any:
        output, new_state = self._cell(inputs, state)
        if self._linear is None:
            self._linear = Linear(output, self._output_size, True)
        projected = self._linear(output)
        if self._activation:
            projected = self._activation(projected)
        return projected, new_state


class HighwayWrapper(_Around):
    """A cell whose outputs are mixed with its inputs by a carry gate, starting near the inputs or
    the outputs.
    """

    def __init__(
        self,
        cell: object,
        couple_carry_transform_gates: bool = True,
        carry_bias_init: float = 1.0,
    ) -> None:
        super().__init__()
        self._cell = cell
        self._couple_carry_transform_gates = couple_carry_transform_gates
        self._carry_bias_init = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        outputs, new_state = self._cell(inputs, state, scope=scope)
        nest.assert_same_structure(inputs, outputs)

        def check(x: Tensor, out: Tensor) -> None:
            x.shape.assert_is_compatible_with(out.shape)

        nest.map_structure(check, inputs, outputs)
        return nest.map_structure(self._highway, inputs, outputs), new_state

    def _highway(self, x: Any, out: TensorLike) -> Any:
        size = x.shape.with_rank(2).as_list()[1]
        carry = self._gate(x, "carry", size, self._carry_bias_init)
        if self._couple_carry_transform_gates:
            transform = 1 - carry
        else:
            transform = self._gate(x, "transform", size, -self._carry_bias_init)
        return x * carry + out * transform

    @staticmethod
    def _gate(x: TensorLike, name: str, size: int, bias: float) -> Tensor:
        weight = get_variable(f"{name}_w", [size, size])
        start = get_variable(f"{name}_b", [size], initializer=constant_initializer(bias))
        return ops.sigmoid(ops.xw_plus_b(x, weight, start))


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its own last ``attn_length`` states.

    The attention, ``attn_size`` numbers (default: the cell's output size), is joined to the inputs,
    which a linear map brings to ``input_size`` (default: their own). ``attn_vec_size`` is the width
    of the score. ``state_is_tuple=False`` joins the cell's state, the attention and the past into
    one tensor. From https://arxiv.org/abs/1601.06733.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                "State size is: "
                f"{cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._state_is_tuple = state_is_tuple
        self._cell = cell
        self._attn_size = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size = self._attn_size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._attn_length = attn_length
        self._linear1: Linear | None = None
        self._linear2: Linear | None = None
        self._linear3: Linear | None = None

    @property
    def state_size(self) -> Any:
        size = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return size if self._state_is_tuple else sum(list(size))

    @property
    def output_size(self) -> int:
        return self._attn_size

    def call(self, inputs: Any, state: Any) -> Any:
        if self._state_is_tuple:
            state, attns, attn_states = state
        else:
            size, whole = self._cell.state_size, state
            state = ops.slice(whole, [0, 0], [-1, size])
            attns = ops.slice(whole, [0, size], [-1, self._attn_size])
            rest = [-1, self._attn_size * self._attn_length]
            attn_states = ops.slice(whole, [0, size + self._attn_size], rest)
        attn_states = ops.reshape(attn_states, [-1, self._attn_length, self._attn_size])
        input_size = self._input_size or inputs.shape.as_list()[1]
        if self._linear1 is None:
            self._linear1 = Linear([inputs, attns], input_size, True)
        cell_output, new_state = self._cell(self._linear1([inputs, attns]), state)
        if self._state_is_tuple:
            joined = ops.concat(nest.flatten(new_state), 1)
        else:
            joined = new_state
        new_attns, new_attn_states = self._attention(joined, attn_states)
        with variable_scope("attn_output_projection"):
            if self._linear2 is None:
                self._linear2 = Linear([cell_output, new_attns], self._attn_size, True)
            output = self._linear2([cell_output, new_attns])
        new_attn_states = ops.concat([new_attn_states, ops.expand_dims(output, 1)], 1)
        flat = ops.reshape(new_attn_states, [-1, self._attn_length * self._attn_size])
        after = (new_state, new_attns, flat)
        return output, after if self._state_is_tuple else ops.concat(list(after), 1)

    def _attention(self, query: TensorLike, attn_states: TensorLike) -> tuple[Any, Any]:
        size, width = self._attn_size, self._attn_vec_size
        with variable_scope("attention"):
            k = get_variable("attn_w", [1, 1, size, width])
            v = get_variable("attn_v", [width])
            hidden = ops.reshape(attn_states, [-1, self._attn_length, 1, size])
            features = ops.conv2d(hidden, k, [1, 1, 1, 1], "SAME")
            if self._linear3 is None:
                self._linear3 = Linear(query, width, True)
            y = ops.reshape(self._linear3(query), [-1, 1, 1, width])
            weights = ops.softmax(ops.reduce_sum(v * ops.tanh(features + y), [2, 3]))
            d = ops.reduce_sum(ops.reshape(weights, [-1, self._attn_length, 1, 1]) * hidden, [1, 2])
            return ops.reshape(d, [-1, size]), ops.slice(attn_states, [0, 1, 0], [-1, -1, -1])
