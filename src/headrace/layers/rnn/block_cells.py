"""LSTMBlockCell and its relatives: TF's fused kernels, here the same arithmetic as an LSTMCell,
which the engine fuses.

Variables have the fused cells' names and layouts, so checkpoints fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.graph import get_default_graph
from headrace.core.seeds import count_as, ops_counted
from headrace.core.shapes import TensorShape, dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.input_spec import InputSpec
from headrace.layers.rnn.cell_base import LayerRNNCell, LSTMStateTuple, LSTMUnitState
from headrace.layers.rnn.dynamic_rnn import dynamic_rnn
from headrace.variables.initializers import constant_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ReuseLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cudnn_layers import CudnnCompatibleLSTMCell

__all__ = ["GRUBlockCell", "GRUBlockCellV2", "LSTMBlockCell", "LSTMBlockFusedCell"]


class _Step:
    """One step of an LSTM with given variables, as a cell for ``dynamic_rnn``."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        n = layer._num_units
        self.state_size = LSTMStateTuple(n, n)
        self.output_size = n

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        raise NotImplementedError

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        layer = self._layer
        c, h = state
        gates = ops.matmul(ops.concat([inputs, h], 1), layer._kernel)
        i, j, f, o = ops.split(value=ops.bias_add(gates, layer._bias), num_or_size_splits=4, axis=1)
        f = f + layer._forget_bias
        if layer._use_peephole:
            i, f = i + layer._w_i_diag * c, f + layer._w_f_diag * c
        new_c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(j)
        if layer._cell_clip > 0:
            # the gradient of TF's kernel does not see the clipping
            clipped = ops.clip_by_value(new_c, -layer._cell_clip, layer._cell_clip)
            new_c = new_c + ops.stop_gradient(clipped - new_c)
        if layer._use_peephole:
            o = o + layer._w_o_diag * new_c
        new_h = ops.sigmoid(o) * ops.tanh(new_c)
        return new_h, LSTMStateTuple(new_c, new_h)


def _add_variables(
    layer: CudnnCompatibleLSTMCell | LSTMBlockCell | LSTMBlockFusedCell, depth: int
) -> None:
    n = layer._num_units
    layer._kernel = layer.add_variable("kernel", [depth + n, n * 4])
    layer._bias = layer.add_variable("bias", [n * 4], initializer=constant_initializer(0.0))
    if layer._use_peephole:
        layer._w_i_diag = layer.add_variable("w_i_diag", [n])
        layer._w_f_diag = layer.add_variable("w_f_diag", [n])
        layer._w_o_diag = layer.add_variable("w_o_diag", [n])
    layer.built = True


class LSTMBlockCell(LSTMUnitState, LayerRNNCell):
    """An LSTM with optional peepholes and clipping of the cell.

    ``forget_bias`` is added to the forget gate before the sigmoid. ``cell_clip`` limits the
    absolute value of the cell, ``use_peephole`` lets the gates see the cell. The variables are
    ``kernel`` and ``bias``, as of ``BasicLSTMCell``; the state is an ``LSTMStateTuple``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: DTypeLike | None = None,
        reuse: ReuseLike = None,
        name: str | None = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._use_peephole = use_peephole
        self._cell_clip = cell_clip if cell_clip is not None else -1
        self.input_spec = InputSpec(ndim=2)

    def build(self, inputs_shape: TensorShape) -> None:
        depth = dimension_value(TensorShape(inputs_shape)[1])
        if not depth:
            raise ValueError(f"Expecting inputs_shape[1] to be set: {inputs_shape}")
        _add_variables(self, depth)

    def call(self, inputs: TensorLike, state: Any) -> Any:
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        before = ops_counted(get_default_graph())
        result = _Step(self)(inputs, state)
        # TF has one operation, and zeros for peepholes that are not there
        count_as(get_default_graph(), before, 1 if self._use_peephole else 2)
        return result


class LSTMBlockFusedCell(Layer):
    """A whole LSTM layer over inputs (time, batch, depth) or a list of (batch, depth).

    ``outputs, state = cell(inputs, initial_state=None, dtype=..., sequence_length=None)``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: DTypeLike | None = None,
        name: str | None = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._use_peephole = use_peephole
        self._cell_clip = cell_clip if cell_clip is not None else -1

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        depth = dimension_value(TensorShape(shape)[-1])
        if not depth:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {shape}")
        _add_variables(self, depth)

    def call(
        self,
        inputs: Tensor,
        initial_state: Any = None,
        dtype: DType | None = None,
        sequence_length: TensorLike | None = None,
    ) -> Any:
        is_list = isinstance(inputs, list)
        stacked = ops.stack(inputs) if is_list else inputs
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            rows = dimension_value(stacked.shape.with_rank(3)[1])
            batch = ops.shape(stacked)[1] if rows is None else rows
            zero = ops.zeros(ops.stack([batch, self._num_units]), dtype=dtype)
            initial_state = (zero, zero)
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        first = LSTMStateTuple(*initial_state)
        for part in first:
            part.set_shape([None, self._num_units])
        before = ops_counted(get_default_graph())
        outputs, state = dynamic_rnn(
            _Step(self),
            stacked,
            sequence_length,
            first,
            dtype=dtype or first.c.dtype,
            time_major=True,
        )
        if not is_list:  # TF has one operation for all steps
            made = ops_counted(get_default_graph()) - before
            fewer = 87 if sequence_length is None else 80
            count_as(get_default_graph(), before, made - fewer)
        return (ops.unstack(outputs) if is_list else outputs), state


class GRUBlockCell(LayerRNNCell):
    """A GRU with the variables of TensorFlow's fused GRU op (``gates`` and ``candidate``).

    ``num_units`` is the size of the state; ``cell_size`` is its older name, and one of both is
    needed. The formula is ``GRUCell``'s with tanh; TensorFlow computes it in one operation,
    Headrace fuses the steps. Kernel and bias are those of TensorFlow's checkpoints.
    """

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: ReuseLike = None,
        name: str | None = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._cell_size = num_units if cell_size is None else cell_size
        self.input_spec = InputSpec(ndim=2)

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")

    @property
    def state_size(self) -> Any:
        return self._cell_size

    @property
    def output_size(self) -> Any:
        return self._cell_size

    def build(self, input_shape: Any) -> None:
        depth, n = dimension_value(TensorShape(input_shape)[1]), self._cell_size
        if depth is None or n is None:
            raise ValueError(f"Expecting input_shape[1] to be set: {input_shape}")
        gate_kernel, gate_bias, kernel, bias = self._names
        self._gate_kernel = self.add_variable(gate_kernel, [depth + n, n * 2])
        self._gate_bias = self.add_variable(
            gate_bias, [n * 2], initializer=constant_initializer(1.0)
        )
        self._candidate_kernel = self.add_variable(kernel, [depth + n, n])
        self._candidate_bias = self.add_variable(bias, [n], initializer=constant_initializer(0.0))
        self.built = True

    def call(self, inputs: TensorLike, state: TensorLike) -> Any:
        gates = ops.matmul(ops.concat([inputs, state], 1), self._gate_kernel)
        value = ops.sigmoid(ops.bias_add(gates, self._gate_bias))
        r, u = ops.split(value=value, num_or_size_splits=2, axis=1)
        candidate = ops.matmul(ops.concat([inputs, r * state], 1), self._candidate_kernel)
        c = ops.tanh(ops.bias_add(candidate, self._candidate_bias))
        new = u * state + (1 - u) * c
        return new, new


class GRUBlockCellV2(GRUBlockCell):
    """GRUBlockCell with GRUCell's names of variables (those that GRUBlockCell has today).

    The arguments are ``GRUBlockCell``'s. A checkpoint of either cell and of ``GRUCell`` fits.
    """
