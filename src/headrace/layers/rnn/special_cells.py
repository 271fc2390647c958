"""More cells of ``tf.contrib.rnn``: phased LSTMs and convolutional LSTMs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.shapes import TensorShape
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import LSTMStateTuple, LSTMUnitState, RNNCell
from headrace.layers.rnn.linear_map import Linear
from headrace.variables.initializers import constant_initializer, random_uniform_initializer
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import Activation, DTypeLike, ShapeLike
    from headrace.core.tensor import Tensor
    from headrace.variables.scope_state import VariableScope

__all__ = ["Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell", "PhasedLSTMCell"]


def _random_exp(minval: float, maxval: float) -> Any:
    """Numbers whose logarithm is uniform."""

    def initializer(
        shape: ShapeLike, dtype: DTypeLike = dtypes.float32, partition_info: Any = None
    ) -> Tensor:
        low, high = math.log(minval), math.log(maxval)
        return ops.exp(ops.random_uniform(shape, low, high, dtype))

    return initializer


class PhasedLSTMCell(LSTMUnitState, RNNCell):
    """An LSTM whose units are open in phases of their own; its inputs are ``(times, features)``.

    ``times`` is [batch, 1]. A unit is open for ``ratio_on`` of its period, which is drawn between
    ``period_init_min`` and ``period_init_max`` (on a scale of logarithms) and learned; when closed
    only ``leak`` of an update passes (https://arxiv.org/abs/1610.09513).
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._period_init_min = period_init_min
        self._period_init_max = period_init_max
        self._maps: dict[str, Linear] = {}

    def _mapped(self, scope: str, args: list[Any], size: int, activation: Activation) -> Tensor:
        with variable_scope(scope):
            if scope not in self._maps:
                self._maps[scope] = Linear(args, size, True)
            return activation(self._maps[scope](args))

    def call(self, inputs: Tensor, state: Any) -> Any:
        n = self._num_units
        c, h = state
        time, x = inputs
        peep = [c] if self._use_peepholes else []
        gates = self._mapped("mask_gates", [x, h, *peep], 2 * n, ops.sigmoid)
        input_gate, forget_gate = ops.split(value=gates, num_or_size_splits=2, axis=1)
        candidate = self._mapped("new_input", [x, h], n, ops.tanh)
        new_c = c * forget_gate + input_gate * candidate
        peep = [new_c] if self._use_peepholes else []
        output_gate = self._mapped("output_gate", [x, h, *peep], n, ops.sigmoid)
        new_h = ops.tanh(new_c) * output_gate
        k = self._openness(time)
        new_c = k * new_c + (1 - k) * c
        new_h = k * new_h + (1 - k) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Tensor) -> Tensor:
        n = self._num_units
        start = _random_exp(self._period_init_min, self._period_init_max)
        period = get_variable("period", [n], initializer=start)
        phase = get_variable(
            "phase", [n], initializer=random_uniform_initializer(0.0, period.initial_value)
        )
        ratio_on = get_variable(
            "ratio_on",
            [n],
            initializer=constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        kind = time.dtype
        whole = ops.cast(period, kind)
        shifted = time - ops.cast(phase, kind)
        rest = ops.stop_gradient(ops.mod(shifted, whole) - shifted) + shifted
        ratio = ops.cast(rest / whole, dtypes.float32)
        up = 2 * ratio / ratio_on
        k = ops.where(ratio < ratio_on, 2 - up, self._leak * ratio)
        return ops.where(ratio < 0.5 * ratio_on, up, k)


class ConvLSTMCell(RNNCell):
    """An LSTM whose products are convolutions over ``conv_ndims`` dimensions of its inputs.

    ``input_shape`` is the shape of one input without the batch: [rows, columns, channels] for
    ``conv_ndims`` 2. ``kernel_shape`` has the size of the filter in each dimension.
    ``skip_connection`` joins the inputs to the output. ``initializers`` is not used, as in
    TensorFlow. The classes ``Conv1DLSTMCell``, ``Conv2DLSTMCell`` and ``Conv3DLSTMCell`` fix
    ``conv_ndims``.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Any,
        output_channels: int,
        kernel_shape: Any,
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str | None = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._conv_ndims = conv_ndims
        self._input_shape = list(input_shape)
        self._output_channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._forget_bias = forget_bias
        self._skip_connection = skip_connection

    @property
    def state_size(self) -> Any:
        size = TensorShape([*self._input_shape[:-1], self._output_channels])
        return LSTMStateTuple(size, size)

    @property
    def output_size(self) -> TensorShape:
        channels = self._output_channels
        channels += self._input_shape[-1] if self._skip_connection else 0
        return TensorShape([*self._input_shape[:-1], channels])

    def _convolved(self, args: list[Any]) -> Tensor:
        rank, features = len(args[0].shape), 4 * self._output_channels
        depth = sum(a.shape.as_list()[-1] for a in args)
        kernel = get_variable("kernel", [*self._kernel_shape, depth, features], dtype=args[0].dtype)
        joined = ops.concat(args, rank - 1)
        if rank == 3:
            result = ops.conv1d(joined, kernel, 1, "SAME")
        else:
            function = ops.conv2d if rank == 4 else ops.conv3d
            result = function(joined, kernel, [1] * rank, "SAME")
        if not self._use_bias:
            return result
        start = constant_initializer(0.0, dtype=args[0].dtype)
        return result + get_variable("biases", [features], dtype=args[0].dtype, initializer=start)

    def call(self, inputs: Tensor, state: Any, scope: VariableScope | str | None = None) -> Any:
        cell, hidden = state
        gates = self._convolved([inputs, hidden])
        i, j, f, o = ops.split(value=gates, num_or_size_splits=4, axis=self._conv_ndims + 1)
        new_cell = ops.sigmoid(f + self._forget_bias) * cell
        new_cell = new_cell + ops.sigmoid(i) * ops.tanh(j)
        output = ops.tanh(new_cell) * ops.sigmoid(o)
        if self._skip_connection:
            output = ops.concat([output, inputs], axis=-1)
        return output, LSTMStateTuple(new_cell, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """A convolutional LSTM over sequences: ``input_shape`` is [length, channels]."""

    def __init__(self, name: str | None = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """A convolutional LSTM over images: ``input_shape`` is [height, width, channels]."""

    def __init__(self, name: str | None = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """A convolutional LSTM over volumes: ``input_shape`` is [depth, height, width, channels]."""

    def __init__(self, name: str | None = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
