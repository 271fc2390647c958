"""LSTM cells of ``tf.contrib.rnn`` with sharded weights, groups of units or coupled gates, and SRU.

Example: ``tf.nn.dynamic_rnn(GLSTMCell(8, number_of_groups=2), x, dtype=tf.float32)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.input_spec import InputSpec
from headrace.layers.rnn.cell_base import (
    BIAS,
    WEIGHTS,
    LayerRNNCell,
    LSTMStateTuple,
    RNNCell,
    UnitState,
    input_depth,
    width,
)
from headrace.layers.rnn.layer_norms import layer_norm_of_gate
from headrace.layers.rnn.linear_map import Linear
from headrace.layers.rnn.sharded_variables import concatenated_variable
from headrace.variables.initializers import constant_initializer, zeros_initializer
from headrace.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import Activation, InitializerLike, ReuseLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = ["CoupledInputForgetGateLSTMCell", "GLSTMCell", "SRUCell", "TimeFreqLSTMCell"]


def clipped(x: TensorLike, limit: float | None) -> Any:
    return x if limit is None else ops.clip_by_value(x, -limit, limit)


class CoupledInputForgetGateLSTMCell(RNNCell):
    """An LSTM whose input gate is one minus its forget gate.

    ``initializer`` is kept but not used, as in TF 1.15: give the variable scope an initializer.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = ops.tanh,
        reuse: ReuseLike = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift

    @property
    def state_size(self) -> Any:
        sizes = (self._num_units, self.output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def _normed(self, x: Tensor, scope: str) -> Tensor:
        if not self._layer_norm:
            return x
        return layer_norm_of_gate(x, scope, self._norm_gain, self._norm_shift)

    def _project(self, m: Tensor, kind: DType) -> Any:
        if self._num_proj is None:
            return m
        shape = [self._num_units, self._num_proj]
        weights = concatenated_variable("W_P", shape, kind, self._num_proj_shards)
        return clipped(ops.matmul(m, weights), self._proj_clip)

    def call(self, inputs: Tensor, state: Any) -> Any:
        n, out, kind = self._num_units, self.output_size, inputs.dtype
        if self._state_is_tuple:
            c, m = state
        else:
            c, m = ops.slice(state, [0, 0], [-1, n]), ops.slice(state, [0, n], [-1, out])
        shape = [width(inputs) + out, 3 * n]
        weights = concatenated_variable("W", shape, kind, self._num_unit_shards)
        bias = get_variable("B", shape=[3 * n], initializer=zeros_initializer(), dtype=kind)
        gates = ops.matmul(ops.concat([inputs, m], 1), weights)
        if not self._layer_norm:
            gates = ops.bias_add(gates, bias)
        j, f, o = ops.split(value=gates, num_or_size_splits=3, axis=1)
        j, f = self._normed(j, "transform"), self._normed(f, "forget")
        o = self._normed(o, "output")
        if self._use_peepholes:
            f_diag = get_variable("W_F_diag", shape=[n], dtype=kind)
            o_diag = get_variable("W_O_diag", shape=[n], dtype=kind)
            keep = ops.sigmoid(f + self._forget_bias + f_diag * c)
        else:
            keep = ops.sigmoid(f + self._forget_bias)
        new_c = self._normed(keep * c + (1 - keep) * self._activation(j), "state")
        if self._use_peepholes:
            o = o + o_diag * new_c
        new_m = self._project(ops.sigmoid(o) * self._activation(new_c), kind)
        new = (new_c, new_m)
        return new_m, LSTMStateTuple(*new) if self._state_is_tuple else ops.concat(new, 1)


class TimeFreqLSTMCell(RNNCell):
    """An LSTM that goes over a window of the features as well as over time.

    The input is cut into windows of ``feature_size`` columns, ``frequency_skip`` apart; the step
    for a window sees the state of the same window and the output of the window before. The state
    holds cell and output of each window in a row, so ``zero_state`` fits one window only: give an
    ``initial_state`` (batch, 2 * num_units * windows) for more, as in TF 1.15.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size = feature_size
        self._frequency_skip = frequency_skip

    @property
    def state_size(self) -> Any:
        return 2 * self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def _windows(self, inputs: Tensor) -> list[Any]:
        if self._feature_size is None:
            raise ValueError("TimeFreqLSTMCell needs feature_size, the width of a window.")
        columns = dimension_value(inputs.shape.with_rank(2)[-1])
        if columns is None:
            raise ValueError("Cannot infer input_size from static shape inference.")
        skip, size = self._frequency_skip, self._feature_size
        count = int((columns - size) / skip) + 1
        return [ops.slice(inputs, [0, k * skip], [-1, size]) for k in range(count)]

    def call(self, inputs: Tensor, state: Any) -> Any:
        n, kind = self._num_units, inputs.dtype
        windows = self._windows(inputs)
        depth = windows[0].shape.as_list()[1]
        shape = [depth + 2 * n, 4 * n]
        weights = concatenated_variable("W", shape, kind, self._num_unit_shards)
        bias = get_variable("B", shape=[4 * n], initializer=zeros_initializer(), dtype=kind)
        diagonals: list[Any] = [None] * 3
        if self._use_peepholes:
            names = ("W_F_diag", "W_I_diag", "W_O_diag")
            diagonals = [get_variable(name, shape=[n], dtype=kind) for name in names]
        batch = dimension_value(inputs.shape[0])
        below = ops.zeros([ops.shape(inputs)[0] if batch is None else batch, n], kind)
        outputs: Any = None
        states: Any = None
        for k, window in enumerate(windows):
            c = ops.slice(state, [0, 2 * k * n], [-1, n])
            m = ops.slice(state, [0, (2 * k + 1) * n], [-1, n])
            product = ops.matmul(ops.concat([window, m, below], 1), weights)
            c, below = self._step(ops.bias_add(product, bias), c, diagonals)
            states = ops.concat([c, below] if k == 0 else [states, c, below], 1)
            outputs = below if k == 0 else ops.concat([outputs, below], 1)
        return outputs, states

    def _step(self, gates: Tensor, c: Tensor, diagonals: list[Any]) -> tuple[Any, Any]:
        i, j, f, o = ops.split(value=gates, num_or_size_splits=4, axis=1)
        f_diag, i_diag, o_diag = diagonals
        forget = f + self._forget_bias
        if self._use_peepholes:
            kept = ops.sigmoid(forget + f_diag * c) * c
            new_c = kept + ops.sigmoid(i + i_diag * c) * ops.tanh(j)
        else:
            new_c = ops.sigmoid(forget) * c + ops.sigmoid(i) * ops.tanh(j)
        new_c = clipped(new_c, self._cell_clip)
        if self._use_peepholes:
            o = o + o_diag * new_c
        return new_c, ops.sigmoid(o) * ops.tanh(new_c)


class GLSTMCell(RNNCell):
    """An LSTM whose units are ``number_of_groups`` independent groups.

    Inputs and units are cut into the groups, each with weights of its own; all sizes must be
    multiples of ``number_of_groups``. ``num_proj`` maps the output to so many numbers,
    ``forget_bias`` is added to the forget gate (https://arxiv.org/abs/1703.10722).
    """

    def __init__(
        self,
        num_units: int,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Activation = ops.tanh,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups:
            raise ValueError("num_units must be divisible by number_of_groups")
        if num_proj and num_proj % number_of_groups:
            raise ValueError("num_proj must be divisible by number_of_groups")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._group_maps: list[Linear | None] = [None] * number_of_groups
        self._projection: Linear | None = None

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def _group_columns(self, x: Tensor, batch: Any, group: int, size: int) -> Tensor:
        name = f"GLSTM_group{group}_input_generation"
        return ops.slice(x, [0, group * size], [batch, size], name=name)

    def _group_gates(self, inputs: Any, m: Tensor, group: int) -> list[Any]:
        batch = dimension_value(inputs.shape[0]) or ops.shape(inputs)[0]
        in_size = inputs.shape.as_list()[1] // self._groups
        out_size = self.output_size // self._groups
        with variable_scope(f"group{group}"):
            columns = [
                self._group_columns(inputs, batch, group, in_size),
                self._group_columns(m, batch, group, out_size),
            ]
            joined = ops.concat(columns, axis=1)
            linear = self._group_maps[group]
            if linear is None:
                linear = Linear(joined, 4 * (self._num_units // self._groups), False)
                self._group_maps[group] = linear
            parts = ops.split(linear(joined), 4, 1)
        return list(parts)

    def call(self, inputs: Tensor, state: Any) -> Any:
        c, m = state
        columns = dimension_value(inputs.shape[1])
        if columns is None:
            raise ValueError("input size must be statically known")
        if columns % self._groups:
            raise ValueError(
                f"input size ({columns}) must be divisible by number_of_groups ({self._groups})"
            )
        kind = inputs.dtype
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            parts = [self._group_gates(inputs, m, group) for group in range(self._groups)]
            zero = [constant_initializer(0.0, dtype=kind) for _ in range(4)]
            biases = [
                get_variable(f"bias_{g}", [self._num_units], dtype=kind, initializer=start)
                for g, start in zip("ijfo", zero, strict=True)
            ]
            i, j, f, o = (
                ops.bias_add(ops.concat(list(gate), axis=1), bias)
                for gate, bias in zip(zip(*parts, strict=True), biases, strict=True)
            )
        new_c = ops.sigmoid(f + self._forget_bias) * c + ops.sigmoid(i) * ops.tanh(j)
        new_m = ops.sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                if self._projection is None:
                    self._projection = Linear(new_m, self._num_proj, False)
                new_m = self._projection(new_m)
        return new_m, LSTMStateTuple(new_c, new_m)


class SRUCell(UnitState, LayerRNNCell):
    """The simple recurrent unit: its gates see the input alone, not the state.

    So the products of all steps can be made at once (https://arxiv.org/abs/1709.02755).
    ``activation`` (tanh by default) is applied to the state; what remains of the output comes from
    the input.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: ReuseLike = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = num_units
        self._activation = activation or ops.tanh
        self.input_spec = InputSpec(ndim=2)

    def build(self, inputs_shape: TensorShape) -> None:
        n = self._num_units
        self._kernel = self.add_variable(WEIGHTS, shape=[input_depth(inputs_shape), 4 * n])
        self._bias = self.add_variable(BIAS, shape=[2 * n], initializer=zeros_initializer)
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        product = ops.matmul(inputs, self._kernel)
        candidate, f, r, passed = ops.split(value=product, num_or_size_splits=4, axis=1)
        gates = ops.sigmoid(ops.bias_add(ops.concat([f, r], 1), self._bias))
        f, r = ops.split(value=gates, num_or_size_splits=2, axis=1)
        c = f * state + (1.0 - f) * candidate
        return r * self._activation(c) + (1.0 - r) * passed, c
