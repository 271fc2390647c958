"""``tf.nn.dynamic_rnn``: a cell in a while loop over time, for any number of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.graph import get_default_graph
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape, as_shape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import assert_like_rnncell, concat_shapes
from headrace.layers.rnn.rnn_step import (
    cache_variables,
    infer_state_dtype,
    initial_state_of,
    rnn_step,
)
from headrace.ops.control.tensor_array import TensorArray
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.variables.scope_state import VariableScope

__all__ = ["dynamic_rnn", "static_shape_of", "transpose_batch_time"]


def transpose_batch_time(x: Tensor) -> Tensor:
    """(batch, time, …) to (time, batch, …) and back; tensors of lower rank stay."""
    shape = x.shape
    if shape.ndims is not None and shape.ndims < 2:
        return x
    order = ops.concat(([1, 0], ops.range(2, ops.rank(x))), axis=0)
    result = ops.transpose(x, order)
    if shape.ndims is not None:
        sizes = shape.as_list()
        result.set_shape([sizes[1], sizes[0], *sizes[2:]])
    return result


def best_effort_batch_size(flat_input: Sequence[Tensor]) -> Any:
    """The batch size of inputs (time, batch, …): a number if one of them has it."""
    for each in flat_input:
        if each.shape.ndims is None:
            continue
        if each.shape.ndims < 2:
            raise ValueError(f"Expected input tensor {each} to have rank at least 2")
        size = dimension_value(each.shape[1])
        if size is not None:
            return size
    return ops.shape(flat_input[0])[1]


def static_shape_of(size: TensorLike) -> Any:
    """A size as a shape; a tensor's, as far as its value is known."""
    if isinstance(size, Tensor):
        known = ops.static_value(size)
        return as_shape(None if known is None else known.tolist())
    return size


def dynamic_rnn(
    cell: object,
    inputs: Tensor,
    sequence_length: Any = None,
    initial_state: object = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any]:
    """Run ``cell`` over ``inputs`` (batch, time, …), or (time, batch, …) with ``time_major``.

    Returns ``(outputs, final_state)``. With ``sequence_length`` (one number per row) outputs past a
    row's end are zero and its state stays what it was at its end.

    Example::

        cell = tf.nn.rnn_cell.LSTMCell(128)
        outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=n, dtype=tf.float32)
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        flat_input = nest.flatten(inputs)
        if not time_major:
            flat_input = [ops.convert_to_tensor(x) for x in flat_input]
            flat_input = [transpose_batch_time(x) for x in flat_input]
        if sequence_length is not None:
            sequence_length = ops.cast(sequence_length, dtypes.int32)
            if sequence_length.shape.ndims not in (None, 1):
                raise ValueError(
                    "sequence_length must be a vector of length batch_size, but saw shape: "
                    f"{sequence_length.shape}"
                )
            sequence_length = ops.identity(sequence_length, name="sequence_length")
        batch_size = best_effort_batch_size(flat_input)
        state = initial_state_of(
            cell,
            initial_state,
            batch_size,
            dtype,
            "If there is no initial_state, you must give a dtype.",
        )
        if sequence_length is not None and not get_default_graph()._is_eager:
            with control_dependencies([_assert_has_shape(sequence_length, [batch_size])]):
                sequence_length = ops.identity(sequence_length, name="CheckSeqLen")
        inputs = nest.pack_sequence_as(inputs, flat_input)
        outputs, final = _loop(
            cell, inputs, state, parallel_iterations or 32, swap_memory, sequence_length, dtype
        )
        if not time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
        return outputs, final


def _assert_has_shape(x: Any, shape: list[Any]) -> Any:
    have, want = ops.shape(x), ops.stack(shape)
    same = ops.reduce_all(ops.equal(have, want))
    text = f"Expected shape for Tensor {x.name} is "
    return ops.Assert(same, [text, want, " but saw shape: ", have])


def _check_sizes(shapes: list[TensorShape]) -> tuple[Any, Any]:
    """(steps, batch size) as far as they are known; they must be the same for all inputs."""
    steps, batch = shapes[0].as_list()[:2]
    for shape in shapes:
        if not shape[2:].is_fully_defined():
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but "
                "saw value None."
            )
        own_steps, own_batch = shape.as_list()[:2]
        if own_steps != steps:
            raise ValueError(
                "Time steps is not the same for all the elements in the input in a batch."
            )
        if own_batch != batch:
            raise ValueError("Batch_size is not the same for all the elements in the input.")
    return steps, batch


def _lengths(sequence_length: Any, time_steps: Tensor) -> tuple[Any, Any, Any]:
    """(lengths of rows, the shortest, the longest); without lengths all rows have all steps."""
    if sequence_length is None:
        return None, None, time_steps
    return sequence_length, ops.reduce_min(sequence_length), ops.reduce_max(sequence_length)


def _read(arrays: Sequence[Any], shapes: Sequence[TensorShape], time: Tensor) -> list[Tensor]:
    """The inputs of one step; ``shapes`` are those of whole inputs (time, batch, …)."""
    now = [ta.read(time) for ta in arrays]
    for x, shape in zip(now, shapes):
        x.set_shape(shape[1:])
    return now


def _loop(
    cell: Any,
    inputs: TensorLike,
    initial_state: TensorLike,
    parallel_iterations: int,
    swap_memory: bool,
    sequence_length: Any,
    dtype: DTypeLike | None,
) -> tuple[Any, Any]:
    """The while loop, over inputs (time, batch, …)."""
    flat_input = nest.flatten(inputs)
    sizes = nest.flatten(cell.output_size)
    time_steps = ops.shape(flat_input[0])[0]
    batch_size = best_effort_batch_size(flat_input)
    shapes = [x.shape.with_rank_at_least(3) for x in flat_input]
    static_steps, static_batch = _check_sizes(shapes)
    kind = infer_state_dtype(dtype, initial_state)
    zeros = [ops.zeros(ops.stack(concat_shapes(batch_size, size)), kind) for size in sizes]
    zero_output = nest.pack_sequence_as(cell.output_size, zeros)
    lengths = _lengths(sequence_length, time_steps)
    time = ops.constant(0, dtype=dtypes.int32, name="time")
    with name_scope("dynamic_rnn") as base_name:
        pass

    def array(name: str, shape: TensorShape, kind: DType) -> Any:
        name = base_name + name
        return TensorArray(kind, size=time_steps, element_shape=shape, tensor_array_name=name)

    row = TensorShape([static_batch])
    output_arrays = tuple(
        array(f"output_{i}", row.concatenate(static_shape_of(size)), kind)
        for i, size in enumerate(sizes)
    )
    input_arrays = [array(f"input_{i}", x.shape[1:], x.dtype) for i, x in enumerate(flat_input)]
    input_arrays = [ta.unstack(x) for ta, x in zip(input_arrays, flat_input)]

    def step(time: Tensor, arrays: Sequence[Any], state: Any) -> Any:
        packed = nest.pack_sequence_as(inputs, _read(input_arrays, shapes, time))
        if sequence_length is None:
            output, new_state = cell(packed, state)
        else:
            output, new_state = rnn_step(
                time, *lengths, zero_output, state, lambda: cell(packed, state), True
            )
        written = [ta.write(time, out) for ta, out in zip(arrays, nest.flatten(output))]
        return time + 1, tuple(written), new_state

    bound = ops.minimum(time_steps, ops.maximum(1, lengths[2]))
    _, arrays, final = ops.while_loop(
        cond=lambda time, *_: time < bound,
        body=step,
        loop_vars=(time, output_arrays, initial_state),
        parallel_iterations=parallel_iterations,
        maximum_iterations=time_steps,
        swap_memory=swap_memory,
    )
    outputs = [ta.stack() for ta in arrays]
    for output, size in zip(outputs, sizes):
        output.set_shape(concat_shapes([static_steps, static_batch], size, static=True))
    return nest.pack_sequence_as(cell.output_size, outputs), final
