"""Two networks over a sequence, one from each end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import assert_like_rnncell
from headrace.layers.rnn.dynamic_rnn import dynamic_rnn
from headrace.layers.rnn.static_rnn import reverse_seq, static_rnn
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import RNNCell
    from headrace.variables.scope_state import VariableScope

__all__ = [
    "bidirectional_dynamic_rnn",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
]


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state_fw: object = None,
    initial_state_bw: object = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | None = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """``((outputs_fw, outputs_bw), (state_fw, state_bw))`` of two ``dynamic_rnn``, the second over
    reversed inputs.
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_in_time(x: TensorLike) -> Tensor:
        if sequence_length is None:
            return ops.reverse(x, axis=[time_axis])
        return ops.reverse_sequence(
            input=x, seq_lengths=sequence_length, seq_axis=time_axis, batch_axis=batch_axis
        )

    def run(cell: RNNCell, x: Tensor, state: Any, opened: Any) -> Any:
        return dynamic_rnn(
            cell,
            x,
            sequence_length,
            state,
            dtype,
            parallel_iterations,
            swap_memory,
            time_major,
            scope=opened,
        )

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as opened:
            output_fw, state_fw = run(cell_fw, inputs, initial_state_fw, opened)
        with variable_scope("bw") as opened:
            backward = nest.map_structure(reversed_in_time, inputs)
            outputs, state_bw = run(cell_bw, backward, initial_state_bw, opened)
    output_bw = nest.map_structure(reversed_in_time, outputs)
    return (output_fw, output_bw), (state_fw, state_bw)


def static_bidirectional_rnn(
    cell_fw: object,
    cell_bw: object,
    inputs: object,
    initial_state_fw: object = None,
    initial_state_bw: object = None,
    dtype: DType | None = None,
    sequence_length: object = None,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any, Any]:
    """``(outputs, state_fw, state_bw)`` of two ``static_rnn``.

    Each output is the two, concatenated.
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as opened:
            output_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=opened
            )
        with variable_scope("bw") as opened:
            backward = reverse_seq(inputs, sequence_length)
            outputs, state_bw = static_rnn(
                cell_bw, backward, initial_state_bw, dtype, sequence_length, scope=opened
            )
    output_bw = reverse_seq(outputs, sequence_length)
    pairs = zip(nest.flatten(output_fw), nest.flatten(output_bw))
    joined = [ops.concat([fw, bw], 1) for fw, bw in pairs]
    return nest.pack_sequence_as(output_fw, joined), state_fw, state_bw


def _check_stack(cells_fw: object, cells_bw: object, states_fw: object, states_bw: object) -> None:
    for cells, way in ((cells_fw, "fw"), (cells_bw, "bw")):
        if cells is None:
            raise ValueError(f"Must specify at least one {way} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{way} must be a list of RNNCells (one per layer).")
    assert isinstance(cells_fw, list)
    assert isinstance(cells_bw, list)
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for states, cells, name in ((states_fw, cells_fw, "fw"), (states_bw, cells_bw, "bw")):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells)):
            raise ValueError(
                f"initial_states_{name} must be a list of state tensors (one per layer)."
            )


def stack_bidirectional_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: TensorLike,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: DType | None = None,
    sequence_length: TensorLike | None = None,
    scope: VariableScope | str | None = None,
) -> tuple[Any, Any, Any]:
    """Layers of ``static_bidirectional_rnn``, each over the joined outputs of the one before.

    ``inputs`` is a list of tensors [batch, size], one for each step; the other arguments and the
    result are those of ``stack_bidirectional_dynamic_rnn``, with a list of outputs.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw, before = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope(f"cell_{i}") as opened:
                before, state_fw, state_bw = static_bidirectional_rnn(
                    fw,
                    bw,
                    before,
                    initial_states_fw and initial_states_fw[i],
                    initial_states_bw and initial_states_bw[i],
                    dtype,
                    sequence_length,
                    opened,
                )
                states_fw.append(state_fw)
                states_bw.append(state_bw)
    return before, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: TensorLike,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: VariableScope | str | None = None,
    swap_memory: bool = False,
) -> tuple[Any, Any, Any]:
    """Layers of ``bidirectional_dynamic_rnn``, each over the joined outputs of the one before.

    ``cells_fw`` and ``cells_bw`` have a cell for each layer, ``initial_states_fw`` and
    ``initial_states_bw`` a state for each. ``inputs`` is [batch, time, size], or [time, batch,
    size] with ``time_major``. Returns the joined outputs of the last layer and the tuples of last
    states, forwards and backwards.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw, before = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            first_fw = initial_states_fw[i] if initial_states_fw else None
            first_bw = initial_states_bw[i] if initial_states_bw else None
            with variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    before,
                    sequence_length,
                    first_fw,
                    first_bw,
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                before = ops.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return before, tuple(states_fw), tuple(states_bw)
