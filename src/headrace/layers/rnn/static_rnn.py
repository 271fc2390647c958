"""``tf.nn.static_rnn``: a cell unrolled over a list of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.scopes import control_dependencies
from headrace.core.shapes import TensorShape, dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import assert_like_rnncell, concat_shapes
from headrace.layers.rnn.rnn_step import (
    cache_variables,
    infer_state_dtype,
    initial_state_of,
    rnn_step,
)
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.layers.rnn.cell_base import RNNCell
    from headrace.variables.scope_state import VariableScope

__all__ = ["reverse_seq", "static_rnn", "static_state_saving_rnn"]


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Run ``cell`` over a list of inputs (batch, …), one operation per step; ``(outputs,
    final_state)``.

    With ``sequence_length`` outputs past a row's end are zero and its state stays.
    """
    assert_like_rnncell("cell", cell)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs = []
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        first = inputs
        while nest.is_nested(first):
            first = first[0]
        fixed = _fixed_batch_size(first, nest.flatten(inputs))
        batch_size = fixed or ops.shape(first)[0]
        state = initial_state_of(
            cell,
            initial_state,
            batch_size,
            dtype,
            "If no initial_state is provided, dtype must be specified",
        )
        lengths: tuple[Any, ...] = ()
        if sequence_length is not None:
            lengths = _lengths(
                cell, sequence_length, batch_size, fixed, infer_state_dtype(dtype, state)
            )
        for time, x in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            if lengths:
                sequence, shortest, longest, zero = lengths
                step = _call(cell, x, state)
                output, state = rnn_step(time, sequence, shortest, longest, zero, state, step)
            else:
                output, state = cell(x, state)
            outputs.append(output)
    return outputs, state


def _call(cell: RNNCell, x: Tensor, state: TensorLike) -> Any:
    return lambda: cell(x, state)


def _fixed_batch_size(first: Any, flat_inputs: list[Any]) -> int | None:
    if first.shape.ndims == 1:
        return dimension_value(first.shape[0])
    fixed = first.shape.with_rank_at_least(2)[0]
    for each in flat_inputs:
        shape = each.shape.with_rank_at_least(2)
        fixed = fixed.merge_with(shape[0])
        for i, size in enumerate(shape.as_list()[1:]):
            if size is None:
                raise ValueError(
                    f"Input size (dimension {i} of inputs) must be accessible via shape "
                    "inference, but saw value None."
                )
    return dimension_value(fixed)


def _lengths(
    cell: RNNCell,
    sequence_length: TensorLike,
    batch_size: int | Tensor,
    fixed: int | None,
    kind: DType,
) -> tuple[Any, ...]:
    """What every step needs to know: lengths, the shortest, the longest, and an output of zeros."""
    lengths = ops.convert_to_tensor(sequence_length, name="sequence_length")
    if lengths.shape.ndims not in (None, 1):
        raise ValueError("sequence_length must be a vector of length batch_size")

    def zeros(size: Any) -> Tensor:
        output = ops.zeros(ops.stack(concat_shapes(batch_size, size)), kind)
        output.set_shape(TensorShape(concat_shapes(fixed, size, static=True)))
        return output

    flat = [zeros(size) for size in nest.flatten(cell.output_size)]
    zero_output = nest.pack_sequence_as(cell.output_size, flat)
    lengths = ops.cast(lengths, dtypes.int32)
    return lengths, ops.reduce_min(lengths), ops.reduce_max(lengths), zero_output


def reverse_seq(input_seq: Any, lengths: Any) -> list[Any]:
    """A list of inputs in reverse; with lengths, each row reversed up to its own end."""
    if lengths is None:
        return list(reversed(input_seq))
    columns = zip(*(nest.flatten(x) for x in input_seq))
    results: list[list[Any]] = [[] for _ in input_seq]
    for column in columns:
        shape = (
            TensorShape([None] * column[0].shape.ndims)
            if column[0].shape.ndims is not None
            else None
        )
        for x in column:
            shape = x.shape if shape is None else shape.merge_with(x.shape)
            x.set_shape(shape)
        reversed_rows = ops.reverse_sequence(ops.stack(column), lengths, 0, 1)
        for x, row in zip(ops.unstack(reversed_rows), results):
            x.set_shape(shape)
            row.append(x)
    return [nest.pack_sequence_as(x, row) for x, row in zip(input_seq, results)]


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: TensorLike,
    state_saver: Any,
    state_name: str,
    sequence_length: TensorLike | None = None,
    scope: VariableScope | str | None = None,
) -> tuple[list[Any], Any]:
    """``static_rnn`` whose first state comes from ``state_saver.state(name)`` and whose last goes
    to ``save_state``.
    """
    state_size = cell.state_size
    nested = nest.is_nested(state_size)
    if nested != nest.is_nested(state_name):
        raise ValueError(
            "state_name should be the same type as cell.state_size.  "
            f"state_name: {state_name}, cell.state_size: {state_size}"
        )
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(state_size)):
        raise ValueError(
            "#elems(state_name) != #elems(state_size): "
            f"{len(names)} vs. {len(nest.flatten(state_size))}"
        )
    first = nest.pack_sequence_as(state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, first, sequence_length=sequence_length, scope=scope)
    flat = nest.flatten(state)
    saves = [state_saver.save_state(name, part) for name, part in zip(names, flat)]
    with control_dependencies(saves):
        outputs[-1] = nest.map_structure(ops.identity, outputs[-1])
        state = nest.pack_sequence_as(state, [ops.identity(part) for part in flat])
    return outputs, state
