"""GridLSTMCell: an LSTM over frequencies and one over time, side by side; also bidirectional.

At each step the input's columns are cut into windows ("frequencies"). For each window there are two
LSTMs: one whose cell comes from the window before (``freq``), one whose cell comes from the step
before (``time``); both see the same joined input.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import RNNCell
from headrace.layers.rnn.sharded_cells import clipped
from headrace.layers.rnn.sharded_variables import concatenated_variable
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import InitializerLike, ReuseLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["BidirectionalGridLSTMCell", "GridLSTMCell"]


class _Weights(NamedTuple):
    """The variables of one of the two LSTMs; ``diagonals`` are peepholes by gate and source."""

    kernel: Any
    bias: Any
    diagonals: dict[str, Any]


def _tuple_type(name: str, prefixes: Sequence[str], blocks: Sequence[int]) -> type[Any]:
    """A named tuple with fields ``<prefix>_f00_b00_c``, ``…_m`` for every window of every block."""
    fields = [
        f"{prefix}_f{window:02d}_b{block:02d}_{part}"
        for prefix in prefixes
        for block, windows in enumerate(blocks)
        for window in range(windows)
        for part in "cm"
    ]
    return collections.namedtuple(name, fields)


class GridLSTMCell(RNNCell):
    """See the module. ``num_frequency_blocks`` says how many windows there are; with
    ``start_freqindex_list`` and ``end_freqindex_list`` it has one entry for each range of columns.

    ``initializer`` is kept but not used, as in TF 1.15: give the variable scope an initializer.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._shared = share_time_frequency_weights
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size = feature_size
        self._frequency_skip = frequency_skip
        self._blocks = [int(windows) for windows in num_frequency_blocks]
        self._starts = start_freqindex_list
        self._ends = end_freqindex_list
        self._coupled = couple_input_forget_gates
        self._state_is_tuple = state_is_tuple
        self._state_tuple_type: Any = None
        if state_is_tuple:
            self._state_tuple_type = _tuple_type("GridLSTMStateTuple", ["state"], self._blocks)

    @property
    def state_size(self) -> Any:
        if self._state_tuple_type is None:
            return 2 * self._num_units * sum(self._blocks)
        return self._state_tuple_type(*[self._num_units] * len(self._state_tuple_type._fields))

    @property
    def output_size(self) -> int:
        return 2 * self._num_units * sum(self._blocks)

    @property
    def state_tuple_type(self) -> Any:
        """The named tuple of states; None if states are joined."""
        return self._state_tuple_type

    def call(self, inputs: Tensor, state: Any) -> Any:
        batch = dimension_value(inputs.shape[0]) or ops.shape(inputs)[0]
        outputs, states = self._all_blocks(self._windows(inputs), state, batch, "state")
        joined = self._state_tuple_type(*states) if self._state_is_tuple else ops.concat(states, 1)
        return ops.concat(outputs, 1), joined

    def _all_blocks(
        self, blocks: list[list[Any]], state: TensorLike, batch: object, prefix: str
    ) -> tuple[list[Any], list[Any]]:
        outputs: list[Any] = []
        states: list[Any] = []
        for k, windows in enumerate(blocks):
            more_outputs, more_states = self._block(windows, k, state, batch, prefix)
            outputs += more_outputs
            states += more_states
        return outputs, states

    def _variables(self, block: int, depth: int, kind: DType) -> tuple[_Weights, _Weights]:
        n, gates = self._num_units, 3 if self._coupled else 4
        ways = "f" if self._shared else "ft"
        products = {}
        for way in ways:
            shape = [depth + 2 * n, gates * n]
            kernel = concatenated_variable(f"W_{way}_{block}", shape, kind, self._num_unit_shards)
            bias = get_variable(
                f"B_{way}_{block}", shape=[gates * n], initializer=zeros_initializer(), dtype=kind
            )
            products[way] = (kernel, bias)
        diagonals: dict[str, dict[str, Any]] = {way: {} for way in ways}
        if self._use_peepholes:
            for way in ways:
                for gate in "IO" if self._coupled else "FIO":
                    for source in "ft":
                        name = f"W_{gate}_diag_{'freq' if way == 'f' else 'time'}{source}_{block}"
                        diagonals[way][gate + source] = get_variable(name, shape=[n], dtype=kind)
        freq, *time = (_Weights(*products[way], diagonals[way]) for way in ways)
        return freq, time[0] if time else freq

    def _block(
        self, windows: list[Any], block: int, state: TensorLike, batch: object, prefix: str
    ) -> tuple[list[Any], list[Any]]:
        n, kind = self._num_units, windows[0].dtype
        freq, time = self._variables(block, windows[0].shape.as_list()[1], kind)
        m_below, c_below = ops.zeros([batch, n], kind), ops.zeros([batch, n], kind)
        outputs, states = [], []
        for k, window in enumerate(windows):
            c, m = self._state_of(state, prefix, k, block)
            joined = ops.concat([window, m, m_below], 1)
            cells = (c_below, c)
            gates = self._gates(joined, freq)
            time_gates = gates if time is freq else self._gates(joined, time)
            c_below = self._new_cell(gates, freq, cells, c_below)
            c_time = self._new_cell(time_gates, time, cells, c)
            m_below = self._output(gates["o"], freq, (c_below, c_time), c_below)
            m_time = self._output(time_gates["o"], time, (c_below, c_time), c_time)
            states += [c_time, m_time]
            outputs += [m_time, m_below]
        return outputs, states

    def _state_of(self, state: TensorLike, prefix: str, window: int, block: int) -> tuple[Any, Any]:
        if self._state_is_tuple:
            field = f"{prefix}_f{window:02d}_b{block:02d}"
            return getattr(state, f"{field}_c"), getattr(state, f"{field}_m")
        n = self._num_units
        c = ops.slice(state, [0, 2 * window * n], [-1, n])
        return c, ops.slice(state, [0, (2 * window + 1) * n], [-1, n])

    def _gates(self, joined: Tensor, weights: _Weights) -> dict[str, Any]:
        names = "ijo" if self._coupled else "ijfo"
        product = ops.bias_add(ops.matmul(joined, weights.kernel), weights.bias)
        parts = ops.split(value=product, num_or_size_splits=len(names), axis=1)
        return dict(zip(names, parts, strict=True))

    def _activated(
        self, gate: Tensor, name: str, weights: _Weights, cells: tuple[Any, Any]
    ) -> Tensor:
        if self._use_peepholes:
            for source, cell in zip("ft", cells, strict=True):
                gate = gate + weights.diagonals[name + source] * cell
        return ops.sigmoid(gate)

    def _new_cell(
        self, gates: dict[str, Any], weights: _Weights, cells: tuple[Any, Any], own: Tensor
    ) -> Any:
        enter = self._activated(gates["i"], "I", weights, cells)
        if self._coupled:
            keep = 1.0 - enter
        else:
            keep = self._activated(gates["f"] + self._forget_bias, "F", weights, cells)
        return clipped(keep * own + enter * ops.tanh(gates["j"]), self._cell_clip)

    def _output(self, gate: Tensor, weights: _Weights, cells: tuple[Any, Any], own: Tensor) -> Any:
        return self._activated(gate, "O", weights, cells) * ops.tanh(own)

    def _windows(self, inputs: Tensor, offset: int = 0) -> list[list[Any]]:
        """Windows of every block; an ``offset`` moves them over the padded input."""
        columns = dimension_value(inputs.shape.with_rank(2)[-1])
        if columns is None:
            raise ValueError("Cannot infer input_size from static shape inference.")
        if self._feature_size is None or self._frequency_skip is None:
            raise ValueError("GridLSTMCell needs feature_size and frequency_skip.")
        ranges = self._ranges(columns)
        if offset:
            room = [0, 0, max(-offset, 0), max(offset, 0)]
            room_tensor = ops.constant(room, shape=[2, 2], dtype=dtypes.int32)
            inputs, offset = ops.pad(inputs, room_tensor, "CONSTANT"), max(offset, 0)
        found = []
        for block, (start, end) in enumerate(ranges):
            count = int((end - start - self._feature_size) / self._frequency_skip) + 1
            if count != self._blocks[block]:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {self._blocks[block]} but gets "
                    f"{count}, please check the input size and filter config are correct."
                )
            firsts = [start + offset + k * self._frequency_skip for k in range(count)]
            found.append([ops.slice(inputs, [0, k], [-1, self._feature_size]) for k in firsts])
        return found

    def _ranges(self, columns: int) -> list[tuple[int, int]]:
        if not self._starts:
            if len(self._blocks) != 1:
                raise ValueError(
                    f"Length of num_frequency_blocks is not 1, but instead is {len(self._blocks)}"
                )
            return [(0, columns)]
        ends = self._ends or []
        if len(self._starts) != len(ends):
            raise ValueError(
                "Length of start and end freqindex_list does not match "
                f"{len(self._starts)} {len(ends)}"
            )
        if len(self._blocks) != len(self._starts):
            raise ValueError(
                "Length of num_frequency_blocks is not equal to start_freqindex_list "
                f"{len(self._blocks)} {len(self._starts)}"
            )
        return list(zip(self._starts, ends, strict=True))


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A grid that goes up the frequencies and one that goes down; their outputs are joined.

    ``backward_slice_offset`` moves the windows of the grid that goes down.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: ReuseLike = None,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes,
            share_time_frequency_weights,
            cell_clip,
            initializer,
            num_unit_shards,
            forget_bias,
            feature_size,
            frequency_skip,
            num_frequency_blocks,
            start_freqindex_list,
            end_freqindex_list,
            couple_input_forget_gates,
            True,
            reuse,
        )
        self._backward_offset = int(backward_slice_offset)
        self._state_tuple_type = _tuple_type(
            "BidirectionalGridLSTMStateTuple", ["fwd_state", "bwd_state"], self._blocks
        )

    @property
    def output_size(self) -> int:
        return 4 * self._num_units * sum(self._blocks)

    def call(self, inputs: Tensor, state: Any) -> Any:
        batch = dimension_value(inputs.shape[0]) or ops.shape(inputs)[0]
        forward = backward = self._windows(inputs)
        if self._backward_offset:
            backward = self._windows(inputs, self._backward_offset)
        with variable_scope("fwd"):
            outputs, states = self._all_blocks(forward, state, batch, "fwd_state")
        with variable_scope("bwd"):
            reverse = [windows[::-1] for windows in backward]
            more_outputs, more_states = self._all_blocks(reverse, state, batch, "bwd_state")
        joined = self._state_tuple_type(*states, *more_states)
        return ops.concat([*outputs, *more_outputs], 1), joined
