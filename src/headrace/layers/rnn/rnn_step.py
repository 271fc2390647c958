"""One step of a loop over a sequence, with lengths: finished rows give zeros and keep their
state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.graph import get_default_graph
from headrace.core.scopes import colocate_with
from headrace.layers import layer_ops as ops
from headrace.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import LSTMStateTuple
    from headrace.variables.scope_state import VariableScope

__all__ = ["cache_variables", "infer_state_dtype", "initial_state_of", "rnn_step"]


def cache_variables(scope: VariableScope) -> None:
    """Read each variable once per run where it is used, unless the loop is inside another loop."""
    graph = get_default_graph()
    if graph._is_eager or scope.caching_device is not None:
        return
    context = graph._get_control_flow_context()
    while context is not None:
        if hasattr(context, "loop_vars") or "While" in type(context).__name__:
            return
        context = context.outer_context
    scope.set_caching_device(lambda op: op.device)


def initial_state_of(
    cell: Any, initial_state: object, batch_size: TensorLike, dtype: DTypeLike | None, missing: str
) -> Any:
    """The given state or the cell's own first state."""
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError(missing)
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def infer_state_dtype(explicit_dtype: object, state: Any) -> Any:
    """The type of outputs: the given one, or the one that all parts of the state have."""
    if explicit_dtype is not None:
        return explicit_dtype
    if not nest.is_nested(state):
        return state.dtype
    kinds = [part.dtype for part in nest.flatten(state)]
    if not kinds:
        raise ValueError("Unable to infer dtype from empty state.")
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single "
            "representative dtype."
        )
    return kinds[0]


def rnn_step(
    time: Any,
    sequence_length: TensorLike,
    min_sequence_length: Any,
    max_sequence_length: Tensor,
    zero_output: TensorLike,
    state: LSTMStateTuple | Tensor,
    call_cell: Callable[[], Any],
    skip_conditionals: bool = False,
) -> tuple[Any, Any]:
    """(output, state) of one step, for rows of different lengths.

    Three cases: all rows are finished (zeros, the old state), none is (the cell's results), some
    are (row by row). ``skip_conditionals`` takes the third at once, which loops do.
    """
    flat_state, flat_zero = nest.flatten(state), nest.flatten(zero_output)
    finished = time >= sequence_length

    def copy_one(old: Tensor, new: Tensor) -> Tensor:
        if isinstance(old, TensorArray) or old.shape.ndims == 0:
            return new
        with colocate_with(new):
            return ops.where(finished, old, new)

    def called() -> tuple[list[Any], list[Any]]:
        new_output, new_state = call_cell()
        nest.assert_same_structure(zero_output, new_output)
        nest.assert_same_structure(state, new_state)
        new_state = nest.flatten(new_state)
        return nest.flatten(new_output), new_state

    def copied(new_output: list[Any], new_state: list[Any]) -> list[Any]:
        outputs = [copy_one(zero, new) for zero, new in zip(flat_zero, new_output)]
        return outputs + [copy_one(old, new) for old, new in zip(flat_state, new_state)]

    def some() -> Any:
        new_output, new_state = called()
        return ops.cond(
            time < min_sequence_length,
            lambda: new_output + new_state,
            lambda: copied(new_output, new_state),
        )

    if skip_conditionals:
        results = copied(*called())
    else:
        results = ops.cond(time >= max_sequence_length, lambda: flat_zero + flat_state, some)
    output, after = results[: len(flat_zero)], results[len(flat_zero) :]
    for part, zero in zip(output, flat_zero):
        part.set_shape(zero.shape)
    for part, old in zip(after, flat_state):
        if not isinstance(part, TensorArray):
            part.set_shape(old.shape)
    return nest.pack_sequence_as(zero_output, output), nest.pack_sequence_as(state, after)
