"""Fused cells: objects that run over a whole sequence, ``outputs, state = cell(inputs, …)``.

Inputs are time-major, (time, batch, depth), or a list of (batch, depth); outputs come in the same
form.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.scopes import name_scope
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell
from headrace.layers.rnn.dynamic_rnn import dynamic_rnn
from headrace.layers.rnn.static_rnn import static_rnn

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = [
    "CompiledWrapper",
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "LSTMBlockWrapper",
    "TimeReversedFusedRNN",
    "best_effort_input_batch_size",
]


def best_effort_input_batch_size(flat_input: Sequence[Tensor]) -> Any:
    """The batch size of time-major inputs: a number if one of them has it, else a tensor."""
    for tensor in flat_input:
        if tensor.shape.ndims is None:
            continue
        if tensor.shape.ndims < 2:
            raise ValueError(f"Expected input tensor {tensor} to have rank at least 2")
        size = dimension_value(tensor.shape[1])
        if size is not None:
            return size
    return ops.shape(flat_input[0])[1]


class FusedRNNCell(abc.ABC):
    """Base class of recurrent networks that hold the loop over time themselves."""

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: str | None = None,
    ) -> Any:
        """``(outputs, final state)``. Without ``initial_state`` it is zeros of ``dtype``."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell with the loop around it: ``dynamic_rnn`` or, by default, ``static_rnn``."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: Any = None,
    ) -> Any:
        is_list = isinstance(inputs, list)
        given: dict[str, Any] = {
            "sequence_length": sequence_length,
            "initial_state": initial_state,
            "dtype": dtype,
            "scope": scope,
        }
        if self._use_dynamic_rnn:
            stacked = ops.stack(inputs) if is_list else inputs
            outputs, state = dynamic_rnn(self._cell, stacked, time_major=True, **given)
            return (ops.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else ops.unstack(inputs)
        outputs, state = static_rnn(self._cell, steps, **given)
        return (outputs if is_list else ops.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell that runs from the end of each sequence to its beginning."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: Any = None,
    ) -> Any:
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(values: TensorLike, lengths: TensorLike | None) -> Any:
    if isinstance(values, list):
        return values[::-1]
    if lengths is None:
        return ops.reverse(values, [0])
    return ops.reverse_sequence(values, lengths, 0, 1)


class LSTMBlockWrapper(Layer):
    """Base class of LSTM layers over a whole sequence: lists, first states and lengths.

    A subclass has ``num_units`` and ``_call_cell(inputs, initial_cell_state, initial_output,
    dtype, sequence_length)``, which gives the cells and the outputs of all steps.
    """

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """Width of the output."""

    @abc.abstractmethod
    def _call_cell(
        self,
        inputs: TensorLike,
        initial_cell_state: object,
        initial_output: object,
        dtype: DType,
        sequence_length: object,
    ) -> Any:
        """``(cells, outputs)``, each (time, batch, num_units)."""

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> Any:
        """``(outputs, LSTMStateTuple)``; outputs are zero beyond ``sequence_length``."""
        is_list = isinstance(inputs, list)
        stacked = ops.stack(inputs) if is_list else inputs
        steps, rows, depth = (dimension_value(d) for d in stacked.shape.with_rank(3))
        if not depth:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {stacked.shape}")
        batch = ops.shape(stacked)[1] if rows is None else rows
        time = ops.shape(stacked)[0] if steps is None else steps
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zero = ops.zeros(ops.stack([batch, self.num_units]), dtype=dtype)
            initial_state = (zero, zero)
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        dtype = initial_state[0].dtype if dtype is None else dtype
        if sequence_length is not None:
            sequence_length = ops.convert_to_tensor(sequence_length)
        cell, output = initial_state
        cells, outputs = self._call_cell(stacked, cell, output, dtype, sequence_length)
        if sequence_length is None:
            final = LSTMStateTuple(cells[-1], outputs[-1])
        else:
            mask = ops.transpose(ops.sequence_mask(sequence_length, time, dtype=dtype), [1, 0])
            outputs = outputs * ops.tile(ops.expand_dims(mask, [-1]), [1, 1, self.num_units])
            pairs = zip(initial_state, (cells, outputs), strict=True)
            final = LSTMStateTuple(*(_at_lengths(*p, sequence_length, batch) for p in pairs))
        return (ops.unstack(outputs) if is_list else outputs), final


def _at_lengths(first: Any, values: Any, lengths: Tensor, batch: Any) -> Tensor:
    """Each row's value after ``lengths[row]`` steps; ``first`` is the value after none."""
    values = ops.concat([ops.expand_dims(first, [0]), values], 0)
    return ops.gather_nd(values, ops.stack([lengths, ops.range(batch)], axis=1))


class CompiledWrapper(RNNCell):
    """A cell that TensorFlow compiles with XLA. Headrace compiles every plan: the cell as it is."""

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__()
        self._cell = cell
        #: Whether XLA would also compile random ops; has no effect here.
        self.compile_stateful = compile_stateful

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with name_scope(f"{type(self).__name__}ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._cell(inputs, state, scope=scope)
