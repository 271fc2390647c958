"""``tf.nn.raw_rnn``.

A loop in which a function decides the next input, the state and when a row ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.scopes import colocate_with
from headrace.core.shapes import TensorShape, dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import assert_like_rnncell, concat_shapes
from headrace.layers.rnn.dynamic_rnn import static_shape_of
from headrace.layers.rnn.rnn_step import cache_variables
from headrace.ops.control.tensor_array import TensorArray
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell
    from headrace.variables.scope_state import VariableScope

__all__ = ["raw_rnn"]


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: VariableScope | str | None = None,
) -> tuple[Any, Any, Any]:
    """``(emit_ta, final_state, final_loop_state)`` of a loop that ``loop_fn`` controls.

    ``loop_fn(time, cell_output, cell_state, loop_state)`` gives ``(finished, next_input,
    next_state, emit_output, next_loop_state)``; at time 0 the last three arguments are None and
    ``emit_output`` gives the structure of what is emitted.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        time = ops.constant(0, dtype=dtypes.int32)
        finished, next_input, initial_state, emit, first_loop_state = loop_fn(
            time, None, None, None
        )
        loop_state = first_loop_state
        if loop_state is None:
            loop_state = ops.constant(0, dtype=dtypes.int32)
        batch_size, static_batch = _batch_size(nest.flatten(next_input))
        nest.assert_same_structure(initial_state, cell.state_size)
        state = nest.map_structure(ops.convert_to_tensor, initial_state)
        structure, sizes, kinds = _emitted(cell, emit, nest.flatten(state)[0].dtype)
        arrays = [
            TensorArray(
                kind,
                size=0,
                dynamic_size=True,
                name=f"rnn_output_{i}",
                element_shape=TensorShape([static_batch]).concatenate(static_shape_of(size)),
            )
            for i, (size, kind) in enumerate(zip(sizes, kinds))
        ]
        emit_ta = nest.pack_sequence_as(structure, arrays)
        zeros = [ops.zeros(concat_shapes(batch_size, s), k) for s, k in zip(sizes, kinds)]
        zero_emit = nest.pack_sequence_as(structure, zeros)

        returned = ops.while_loop(
            lambda _, finished, *rest: ops.logical_not(ops.reduce_all(finished)),
            _raw_step(cell, loop_fn, zero_emit),
            loop_vars=[time, finished, next_input, emit_ta, state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        emit_ta, final_state, final_loop_state = returned[-3:]
        return emit_ta, final_state, None if first_loop_state is None else final_loop_state


def _raw_step(cell: RNNCell, loop_fn: Callable[..., Any], zero_emit: Any) -> Callable[..., Any]:
    """The body of the loop: the cell, then ``loop_fn``; finished rows emit zeros."""

    def body(
        time: Tensor,
        finished: Tensor,
        current: TensorLike,
        emit_ta: TensorArray,
        state: LSTMStateTuple,
        loop_state: Tensor,
    ) -> tuple[Any, ...]:
        output, cell_state = cell(current, state)
        nest.assert_same_structure(state, cell_state)
        nest.assert_same_structure(cell.output_size, output)
        next_time = time + 1
        now_finished, following, next_state, emitted, next_loop_state = loop_fn(
            next_time, output, cell_state, loop_state
        )
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(current, following)
        nest.assert_same_structure(emit_ta, emitted)
        if next_loop_state is None:
            next_loop_state = loop_state
        emitted = _copied(finished, zero_emit, emitted)
        next_state = _copied(finished, state, next_state)
        emit_ta = nest.map_structure(lambda ta, out: ta.write(time, out), emit_ta, emitted)
        finished = ops.logical_or(finished, now_finished)
        return next_time, finished, following, emit_ta, next_state, next_loop_state

    return body


def _batch_size(flat_input: list[Any]) -> tuple[Any, Any]:
    """The batch size as a number or tensor, and as a number or None."""
    known = flat_input[0].shape.with_rank_at_least(1)[0]
    for each in flat_input:
        known.merge_with(each.shape[0])
    size = dimension_value(known)
    return (ops.shape(flat_input[0])[0] if size is None else size), size


def _emitted(cell: RNNCell, emit: object, default: DType) -> tuple[Any, list[Any], list[Any]]:
    """Structure, sizes and types of what is emitted; without an example, the cell's output."""
    if emit is None:
        sizes = nest.flatten(cell.output_size)
        return cell.output_size, sizes, [default] * len(sizes)
    flat = nest.flatten(emit)
    sizes = [e.shape if e.shape.is_fully_defined() else ops.shape(e) for e in flat]
    return emit, sizes, [e.dtype for e in flat]


def _copied(finished: Tensor, current: TensorLike, candidate: TensorLike) -> Any:
    """``candidate`` where rows go on, ``current`` where they are finished."""

    def copy(old: Tensor, new: Tensor) -> Tensor:
        if isinstance(old, TensorArray) or old.shape.ndims == 0:
            return new
        with colocate_with(new):
            return ops.where(finished, old, new)

    return nest.map_structure(copy, current, candidate)
