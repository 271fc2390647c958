"""Cells of ``tf.contrib.rnn``.

Layer normalization, NAS, update gates, intersections, independent recurrences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.annotations import DTypeLike
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.input_spec import InputSpec
from headrace.layers.rnn.cell_base import (
    BIAS,
    WEIGHTS,
    LayerRNNCell,
    LSTMStateTuple,
    LSTMUnitState,
    RNNCell,
    UnitState,
    input_depth,
    width,
)
from headrace.layers.rnn.layer_norms import layer_norm_of_gate
from headrace.layers.rnn.linear_map import Linear
from headrace.variables.initializers import (
    constant_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from headrace.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Activation, InitializerLike, ReuseLike, TensorLike
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = [
    "IndRNNCell",
    "IndyGRUCell",
    "IndyLSTMCell",
    "IntersectionRNNCell",
    "LayerNormBasicLSTMCell",
    "NASCell",
    "UGRNNCell",
]


class LayerNormBasicLSTMCell(LSTMUnitState, RNNCell):
    """An LSTM with layer normalization of its gates and its cell, and dropout of its candidates.

    ``norm_gain`` and ``norm_shift`` are the initial scale and offset of the normalizations;
    ``layer_norm=False`` leaves them out. ``dropout_keep_prob`` is a number or a tensor: what share
    of the candidates is kept (https://arxiv.org/abs/1603.05118). ``input_size`` is not used, as in
    TensorFlow.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: object = None,
        activation: Activation = ops.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: float = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._activation = activation
        self._forget_bias = forget_bias
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift

    def _norm(self, x: Tensor, scope: str) -> Tensor:
        return layer_norm_of_gate(x, scope, self._norm_gain, self._norm_shift)

    def _gates(self, args: Tensor) -> Tensor:
        out = 4 * self._num_units
        weights = get_variable(WEIGHTS, [dimension_value(args.shape[-1]), out], dtype=args.dtype)
        result = ops.matmul(args, weights)
        if self._layer_norm:
            return result
        return ops.bias_add(result, get_variable(BIAS, [out], dtype=args.dtype))

    def call(self, inputs: Tensor, state: Any) -> Any:
        c, h = state
        args = ops.concat([inputs, h], 1)
        i, j, f, o = ops.split(value=self._gates(args), num_or_size_splits=4, axis=1)
        if self._layer_norm:
            i, j = self._norm(i, "input"), self._norm(j, "transform")
            f, o = self._norm(f, "forget"), self._norm(o, "output")
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = ops.dropout(g, self._keep_prob, seed=self._seed)
        new_c = c * ops.sigmoid(f + self._forget_bias) + ops.sigmoid(i) * g
        if self._layer_norm:
            new_c = self._norm(new_c, "state")
        new_h = self._activation(new_c) * ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class NASCell(LayerRNNCell):
    """The cell that neural architecture search found.

    From https://arxiv.org/abs/1611.01578. ``num_proj`` maps the output to so many numbers,
    ``use_bias`` adds a bias to the gates. The state is an ``LSTMStateTuple``.
    """

    _BASE = 8

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, inputs_shape: TensorShape) -> None:
        n = self._BASE * self._num_units
        self.recurrent_kernel = self.add_variable("recurrent_kernel", [self.output_size, n])
        self.kernel = self.add_variable("kernel", [input_depth(inputs_shape), n])
        if self._use_bias:
            self.bias = self.add_variable("bias", shape=[n], initializer=zeros_initializer)
        if self._num_proj is not None:
            self.projection_weights = self.add_variable(
                "projection_weights", [self._num_units, self._num_proj]
            )
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        sigmoid, tanh, relu = ops.sigmoid, ops.tanh, ops.relu
        c, m = state
        recurrent = ops.matmul(m, self.recurrent_kernel)
        given = ops.matmul(inputs, self.kernel)
        if self._use_bias:
            recurrent = ops.bias_add(recurrent, self.bias)
        ms = ops.split(value=recurrent, num_or_size_splits=self._BASE, axis=1)
        xs = ops.split(value=given, num_or_size_splits=self._BASE, axis=1)
        first = [
            sigmoid(xs[0] + ms[0]),
            relu(xs[1] + ms[1]),
            sigmoid(xs[2] + ms[2]),
            relu(xs[3] * ms[3]),
            tanh(xs[4] + ms[4]),
            sigmoid(xs[5] + ms[5]),
            tanh(xs[6] + ms[6]),
            sigmoid(xs[7] + ms[7]),
        ]
        second = [
            tanh(first[0] * first[1]),
            tanh(first[2] + first[3]),
            tanh(first[4] * first[5]),
            sigmoid(first[6] + first[7]),
        ]
        new_c = tanh(second[0] + c) * second[1]
        new_m = tanh(new_c * tanh(second[2] + second[3]))
        if self._num_proj is not None:
            new_m = ops.matmul(new_m, self.projection_weights)
        return new_m, LSTMStateTuple(new_c, new_m)


class UGRNNCell(UnitState, RNNCell):
    """An update gate between the state and a candidate.

    ``forget_bias`` is added to the gate before the sigmoid; ``activation`` is that of the
    candidate. State and output are the same tensor (https://arxiv.org/abs/1611.09913).
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Activation = ops.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation
        self._linear: Linear | None = None

    def call(self, inputs: Tensor, state: TensorLike) -> Any:
        width(inputs)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            joined = ops.concat([inputs, state], 1)
            if self._linear is None:
                self._linear = Linear(joined, 2 * self._num_units, True)
            gate, candidate = ops.split(value=self._linear(joined), num_or_size_splits=2, axis=1)
            c = self._activation(candidate)
            g = ops.sigmoid(gate + self._forget_bias)
            new = g * state + (1.0 - g) * c
        return new, new


class IntersectionRNNCell(UnitState, RNNCell):
    """Two gates: between state and candidate, and between input and output.

    The output gate mixes the input with ``y_activation`` of a linear map, so inputs must have
    ``num_units`` columns; ``num_in_proj`` (equal to ``num_units``) projects others first.
    ``forget_bias`` is added to both gates before the sigmoid. From
    https://arxiv.org/abs/1611.09913.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: InitializerLike | None = None,
        forget_bias: float = 1.0,
        y_activation: Activation = ops.relu,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._num_input_proj = num_in_proj
        self._y_activation = y_activation
        self._linear1: Linear | None = None
        self._linear2: Linear | None = None

    def call(self, inputs: Tensor, state: Tensor) -> Any:
        n = self._num_units
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if width(inputs) != n:
                if not self._num_input_proj:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To "
                        "fix, num_in_proj should be set "
                        "to num_units at cell init."
                    )
                with variable_scope("in_projection"):
                    if self._linear1 is None:
                        self._linear1 = Linear(inputs, n, True)
                    inputs = self._linear1(inputs)
            joined = ops.concat([inputs, state], 1)
            if self._linear2 is None:
                self._linear2 = Linear(joined, 4 * n, True)
            gates = self._linear2(joined)
            gh, h, gy, y = (gates[:, k * n : (k + 1) * n] for k in range(4))
            h, y = ops.tanh(h), self._y_activation(y)
            gh = ops.sigmoid(gh + self._forget_bias)
            gy = ops.sigmoid(gy + self._forget_bias)
            return gy * inputs + (1.0 - gy) * y, gh * state + (1.0 - gh) * h


class _Independent(UnitState, LayerRNNCell):
    """Cells whose units see of the state their own entry alone."""

    def __init__(
        self, num_units: int, activation: Any, reuse: ReuseLike, name: Any, dtype: Any
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation or ops.tanh

    def _recurrent(self, name: str, size: int) -> Any:
        start = random_uniform_initializer(minval=-1, maxval=1, dtype=self.dtype or dtypes.float32)
        return self.add_variable(name, shape=[1, size], initializer=start)

    def _own_bias(self, name: str, size: int, initializer: InitializerLike) -> Any:
        return self.add_variable(name, shape=[size], initializer=initializer)

    def _zeros(self) -> Any:
        return zeros_initializer(dtype=self.dtype or dtypes.float32)


class IndRNNCell(_Independent):
    """``activation(inputs · w + state * u + b)``.

    ``u`` is a vector: a unit sees only its own state (https://arxiv.org/abs/1803.04831).
    ``activation`` is a function or its name, tanh by default.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: ReuseLike = None,
        name: Any = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)

    def build(self, inputs_shape: TensorShape) -> None:
        n = self._num_units
        self._kernel_w = self.add_variable(f"{WEIGHTS}_w", shape=[input_depth(inputs_shape), n])
        self._kernel_u = self._recurrent(f"{WEIGHTS}_u", n)
        self._bias = self._own_bias(BIAS, n, self._zeros())
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        gates = ops.matmul(inputs, self._kernel_w) + state * self._kernel_u
        output = self._activation(ops.bias_add(gates, self._bias))
        return output, output


class IndyGRUCell(_Independent):
    """A GRU whose units see only their own state: recurrent weights are vectors.

    ``activation`` is a function or its name, tanh by default; ``kernel_initializer`` is for the
    weights and ``bias_initializer`` for the biases (default: 1 for the gates, 0 for the candidate).
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: ReuseLike = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, inputs_shape: TensorShape) -> None:
        n, depth = self._num_units, input_depth(inputs_shape)
        kernel, bias = self._kernel_initializer, self._bias_initializer
        one = constant_initializer(1.0, dtype=self.dtype or dtypes.float32)
        self._gate_kernel_w = self.add_variable(
            f"gates/{WEIGHTS}_w", shape=[depth, 2 * n], initializer=kernel
        )
        self._gate_kernel_u = self._recurrent(f"gates/{WEIGHTS}_u", 2 * n)
        self._gate_bias = self._own_bias(f"gates/{BIAS}", 2 * n, one if bias is None else bias)
        self._candidate_kernel_w = self.add_variable(
            f"candidate/{WEIGHTS}", shape=[depth, n], initializer=kernel
        )
        self._candidate_kernel_u = self._recurrent(f"candidate/{WEIGHTS}_u", n)
        self._candidate_bias = self._own_bias(
            f"candidate/{BIAS}", n, self._zeros() if bias is None else bias
        )
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        twice = ops.tile(state, [1, 2])
        gates = ops.matmul(inputs, self._gate_kernel_w) + twice * self._gate_kernel_u
        value = ops.sigmoid(ops.bias_add(gates, self._gate_bias))
        r, u = ops.split(value=value, num_or_size_splits=2, axis=1)
        reset = r * state
        candidate = ops.matmul(inputs, self._candidate_kernel_w) + reset * self._candidate_kernel_u
        c = self._activation(ops.bias_add(candidate, self._candidate_bias))
        new = u * state + (1 - u) * c
        return new, new


class IndyLSTMCell(_Independent):
    """An LSTM whose units see only their own state: recurrent weights are vectors.

    ``forget_bias`` is added to the forget gate before the sigmoid. ``activation`` is a function or
    its name, tanh by default. The state is an ``LSTMStateTuple``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Activation | None = None,
        reuse: Any = None,
        kernel_initializer: object = None,
        bias_initializer: InitializerLike | None = None,
        name: Any = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)
        self._forget_bias = forget_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, inputs_shape: TensorShape) -> None:
        n, bias = self._num_units, self._bias_initializer
        self._kernel_w = self.add_variable(
            f"{WEIGHTS}_w",
            shape=[input_depth(inputs_shape), 4 * n],
            initializer=self._kernel_initializer,
        )
        self._kernel_u = self._recurrent(f"{WEIGHTS}_u", 4 * n)
        self._bias = self._own_bias(BIAS, 4 * n, self._zeros() if bias is None else bias)
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        one = ops.constant(1, dtype=dtypes.int32)
        c, h = state
        gates = ops.matmul(inputs, self._kernel_w) + ops.tile(h, [1, 4]) * self._kernel_u
        gates = ops.bias_add(gates, self._bias)
        i, j, f, o = ops.split(value=gates, num_or_size_splits=4, axis=one)
        forget = ops.constant(self._forget_bias, dtype=f.dtype)
        kept = ops.multiply(c, ops.sigmoid(ops.add(f, forget)))
        new_c = ops.add(kept, ops.multiply(ops.sigmoid(i), self._activation(j)))
        new_h = ops.multiply(self._activation(new_c), ops.sigmoid(o))
        return new_h, LSTMStateTuple(new_c, new_h)
