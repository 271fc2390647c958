"""``tf.contrib.cudnn_rnn`` on the CPU: whole recurrent layers with all weights in one flat
variable.

The variable ``opaque_kernel`` has cuDNN's order: for every layer and direction the input matrices
of all gates (units, inputs), then the recurrent ones (units, units); after all matrices the biases,
twice per gate. LSTM gates are i, f, g, o; GRU gates r, u, c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from headrace.core import dtypes
from headrace.core.shapes import TensorShape, dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.input_spec import InputSpec
from headrace.layers.rnn.basic_cells import GRUCell
from headrace.layers.rnn.block_cells import LSTMBlockCell
from headrace.layers.rnn.cell_base import LSTMStateTuple, input_depth
from headrace.layers.rnn.dynamic_rnn import dynamic_rnn
from headrace.variables.initializers import constant_initializer, glorot_uniform_initializer
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnLSTM",
    "CudnnRNNRelu",
    "CudnnRNNTanh",
]

UNIDIRECTIONAL, BIDIRECTIONAL = "unidirectional", "bidirectional"


class _GateCell:
    """One step with given matrices.

    ``w`` and ``r`` are lists per gate, already transposed and joined.
    """

    def __init__(self, kind: _CudnnRNN, kernel: Any, recurrent: Any, bias: Any, own: Any) -> None:
        self._kind, self._kernel, self._recurrent = kind, kernel, recurrent
        self._bias, self._own = bias, own
        n = kind.num_units
        self.output_size = n
        self.state_size = LSTMStateTuple(n, n) if kind._is_lstm else n

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        raise NotImplementedError

    def __call__(self, inputs: Any, state: Tensor, scope: Any = None) -> Any:
        return self._kind._step(self, inputs, state)


class _CudnnRNN(Layer):
    """What all kinds have in common."""

    _num_gates: ClassVar[int]
    _is_lstm: ClassVar[bool] = False

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = UNIDIRECTIONAL,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        if input_mode not in ("linear_input", "auto_select"):
            raise ValueError(
                "Headrace's cudnn_rnn supports input_mode 'linear_input' (and "
                f"'auto_select', the same), not {input_mode!r}"
            )
        if direction not in (UNIDIRECTIONAL, BIDIRECTIONAL):
            raise ValueError(
                f"direction must be one of {UNIDIRECTIONAL}, {BIDIRECTIONAL}, not {direction!r}"
            )
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}")
        self._num_layers = num_layers
        self._num_units = num_units
        self._input_mode = input_mode
        self._direction = direction
        self._dropout = dropout
        self._seed = seed
        self._input_size: int | None = None
        self.kernel_initializer = kernel_initializer or glorot_uniform_initializer(seed, dtype)
        self.bias_initializer = bias_initializer or constant_initializer(0.0, dtype=dtype)
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_layers(self) -> int:
        return self._num_layers

    @property
    def num_units(self) -> int:
        return self._num_units

    @property
    def num_dirs(self) -> int:
        return 2 if self._direction == BIDIRECTIONAL else 1

    @property
    def direction(self) -> str:
        return self._direction

    @property
    def input_size(self) -> int:
        if self._input_size is None:
            raise ValueError("'input_size' is unknown since layer has not been built.")
        return self._input_size

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of all matrices, in the order of the flat variable."""
        n, gates = self._num_units, self._num_gates
        shapes: list[tuple[int, int]] = []
        for layer in range(self._num_layers):
            inputs = self.input_size if layer == 0 else n * self.num_dirs
            shapes += ([(n, inputs)] * gates + [(n, n)] * gates) * self.num_dirs
        return shapes

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        count = self._num_layers * self.num_dirs * self._num_gates * 2
        return [[self._num_units]] * count

    def state_shape(self, batch_size: TensorLike) -> tuple[list[Any], list[Any]] | tuple[list[Any]]:
        shape = [self._num_layers * self.num_dirs, batch_size, self._num_units]
        return (shape, shape) if self._is_lstm else (shape,)

    def build(self, input_shape: Any) -> None:
        size = dimension_value(TensorShape(input_shape).with_rank(3)[-1])
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        self._input_size = size
        self.input_spec = InputSpec(ndim=3, axes={-1: size})
        kind = dtypes.as_dtype(self.dtype or dtypes.float32)

        def start(*_: Any, **__: Any) -> Tensor:
            parts = [
                self.kernel_initializer(shape, dtype=kind) for shape in self.canonical_weight_shapes
            ]
            parts += [
                self.bias_initializer(shape, dtype=kind) for shape in self.canonical_bias_shapes
            ]
            return ops.concat([ops.reshape(part, [-1]) for part in parts], 0)

        count = sum(a * b for a, b in self.canonical_weight_shapes)
        count += self._num_units * len(self.canonical_bias_shapes)
        self.kernel = get_variable("opaque_kernel", [count], dtype=kind, initializer=start)
        self._trainable_weights.append(self.kernel)
        self.built = True

    @property
    def trainable_weights(self) -> list[Any]:
        return list(self._trainable_weights) if self.trainable else []

    def _cells(self) -> list[_GateCell]:
        """A cell per layer and direction, cut from the flat variable."""
        n, gates, at = self._num_units, self._num_gates, 0
        matrices = []
        for rows, columns in self.canonical_weight_shapes:
            part = ops.slice(self.kernel, [at], [rows * columns])
            matrices.append(ops.transpose(ops.reshape(part, [rows, columns])))
            at += rows * columns
        cells = []
        for k in range(self._num_layers * self.num_dirs):
            own = matrices[k * 2 * gates : (k + 1) * 2 * gates]
            first = ops.slice(self.kernel, [at + 2 * k * gates * n], [gates * n])
            second = ops.slice(self.kernel, [at + (2 * k + 1) * gates * n], [gates * n])
            kernel, recurrent = ops.concat(own[:gates], 1), ops.concat(own[gates:], 1)
            cells.append(_GateCell(self, kernel, recurrent, first, second))
        return cells

    def call(
        self,
        inputs: Tensor,
        initial_state: Any = None,
        sequence_lengths: Tensor | None = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[Any, Any]:
        """``(outputs, states)``.

        Inputs are (time, batch, size), states (layers * directions, batch, units).
        """
        x = inputs if time_major else ops.transpose(inputs, [1, 0, 2])
        kind = x.dtype
        rows = dimension_value(x.shape[1])
        batch = ops.shape(x)[1] if rows is None else rows
        count = self._num_layers * self.num_dirs
        if initial_state is None:
            zero = ops.zeros([count, batch, self._num_units], kind)
            initial_state = (zero, zero) if self._is_lstm else (zero,)
        parts = [ops.unstack(s, num=count) for s in initial_state]
        finals: list[Any] = []
        cells = self._cells()
        for layer in range(self._num_layers):
            if layer and training and self._dropout > 0:
                x = ops.dropout(x, rate=self._dropout, seed=self._seed)
            outputs = []
            for side in range(self.num_dirs):
                k = layer * self.num_dirs + side
                out, final = self._run(cells[k], x, [p[k] for p in parts], sequence_lengths, side)
                outputs.append(out)
                finals.append(final)
            x = outputs[0] if len(outputs) == 1 else ops.concat(outputs, 2)
        if self._is_lstm:
            states: Any = (ops.stack([f.h for f in finals]), ops.stack([f.c for f in finals]))
        else:
            states = (ops.stack(finals),)
        return (x if time_major else ops.transpose(x, [1, 0, 2])), states

    def _run(
        self,
        cell: _GateCell,
        x: Tensor,
        first: list[Any],
        lengths: TensorLike | None,
        backward: int,
    ) -> tuple[Tensor, Tensor | LSTMStateTuple]:
        def turned(value: TensorLike) -> Any:
            if not backward:
                return value
            if lengths is None:
                return ops.reverse(value, axis=[0])
            return ops.reverse_sequence(value, lengths, seq_axis=0, batch_axis=1)

        state = LSTMStateTuple(c=first[1], h=first[0]) if self._is_lstm else first[0]
        out, final = dynamic_rnn(cell, turned(x), lengths, state, dtype=x.dtype, time_major=True)
        return turned(out), final

    def _step(self, cell: _GateCell, inputs: Tensor, state: Any) -> Any:
        raise NotImplementedError


class CudnnLSTM(_CudnnRNN):
    """LSTM layers over ``[time, batch, depth]``; the state is ``(h, c)``; computed on the CPU.

    ``direction`` is "unidirectional" or "bidirectional" (outputs joined), ``dropout`` a share of
    the inputs of every layer but the first, dropped while ``training``; ``input_mode`` is
    "linear_input". A call returns the outputs [time, batch, units] and the state [layers, batch,
    units].

        lstm = tf.contrib.cudnn_rnn.CudnnLSTM(2, 4)
        outputs, (h, c) = lstm(tf.ones([5, 2, 3]))
    """

    _num_gates = 4
    _is_lstm = True

    def _step(self, cell: _GateCell, inputs: Tensor, state: Any) -> Any:
        c, h = state
        kernel = ops.concat([cell._kernel, cell._recurrent], 0)
        gates = ops.matmul(ops.concat([inputs, h], 1), kernel)
        gates = ops.bias_add(gates, cell._bias + cell._own)
        i, f, g, o = ops.split(value=gates, num_or_size_splits=4, axis=1)
        new_c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        new_h = ops.sigmoid(o) * ops.tanh(new_c)
        return new_h, LSTMStateTuple(new_c, new_h)


class CudnnGRU(_CudnnRNN):
    """GRU layers with the reset gate after the product; the state is ``(h,)``.

    ``num_layers`` layers of ``num_units`` over [time, batch, depth], computed on the CPU.
    ``direction`` is "unidirectional" or "bidirectional", ``dropout`` a share between layers,
    ``input_mode`` "linear_input". All weights are in the variable ``opaque_kernel``, in cuDNN's
    order.
    """

    _num_gates = 3

    def _step(self, cell: _GateCell, inputs: Tensor, state: Any) -> Any:
        n = self._num_units
        x = ops.bias_add(ops.matmul(inputs, cell._kernel), cell._bias)
        h = ops.bias_add(ops.matmul(state, cell._recurrent), cell._own)
        gates = ops.sigmoid(x[:, : 2 * n] + h[:, : 2 * n])
        r, u = ops.split(value=gates, num_or_size_splits=2, axis=1)
        candidate = ops.tanh(x[:, 2 * n :] + r * h[:, 2 * n :])
        new = (1 - u) * candidate + u * state
        return new, new


class _Plain(_CudnnRNN):
    _num_gates = 1
    _activation: ClassVar[str]

    def _step(self, cell: _GateCell, inputs: Tensor, state: Any) -> Any:
        total = ops.matmul(inputs, cell._kernel) + ops.matmul(state, cell._recurrent)
        new = getattr(ops, self._activation)(ops.bias_add(total, cell._bias + cell._own))
        return new, new


class CudnnRNNTanh(_Plain):
    """Plain recurrent layers with tanh, over ``[time, batch, depth]``; computed on the CPU.

    The arguments are ``CudnnLSTM``'s; the state is ``(h,)``.
    """

    _activation = "tanh"


class CudnnRNNRelu(_Plain):
    """Plain recurrent layers with relu, over ``[time, batch, depth]``; computed on the CPU.

    The arguments are ``CudnnLSTM``'s; the state is ``(h,)``.
    """

    _activation = "relu"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """A cell that computes what a layer of CudnnLSTM does."""

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(num_units, 0, None, False, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """A cell that computes what a layer of CudnnGRU does: the reset gate comes after the
    product.
    """

    def __init__(
        self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None
    ) -> None:
        super().__init__(num_units, None, reuse, kernel_initializer)

    def build(self, inputs_shape: TensorShape) -> None:
        n, depth = self._num_units, input_depth(inputs_shape)
        kernel = self._kernel_initializer
        self._gate_kernel = self.add_variable(
            "gates/kernel", shape=[depth + n, 2 * n], initializer=kernel
        )
        self._gate_bias = self.add_variable(
            "gates/bias", shape=[2 * n], initializer=constant_initializer(1.0)
        )
        self._candidate_input_kernel = self.add_variable(
            "candidate/input_projection/kernel", shape=[depth, n], initializer=kernel
        )
        self._candidate_hidden_kernel = self.add_variable(
            "candidate/hidden_projection/kernel", shape=[n, n], initializer=kernel
        )
        self._candidate_input_bias = self.add_variable(
            "candidate/input_projection/bias", shape=[n], initializer=constant_initializer(0.0)
        )
        self._candidate_hidden_bias = self.add_variable(
            "candidate/hidden_projection/bias", shape=[n], initializer=constant_initializer(0.0)
        )
        self.built = True

    def call(self, inputs: TensorLike, state: TensorLike) -> Any:
        gates = ops.matmul(ops.concat([inputs, state], 1), self._gate_kernel)
        value = ops.sigmoid(ops.bias_add(gates, self._gate_bias))
        r, u = ops.split(value=value, num_or_size_splits=2, axis=1)
        x = ops.bias_add(
            ops.matmul(inputs, self._candidate_input_kernel), self._candidate_input_bias
        )
        h = ops.bias_add(
            ops.matmul(state, self._candidate_hidden_kernel), self._candidate_hidden_bias
        )
        new = (1 - u) * self._activation(x + r * h) + u * state
        return new, new
