"""``jacobian`` and ``batch_jacobian`` of graphs (``tensorflow.python.ops.parallel_for``)."""

from __future__ import annotations

from typing import Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.gradients import gradients
from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.ops.array import array_shape, gathering, joining
from headrace.ops.control.parallel_loops import for_loop, pfor

__all__ = ["batch_jacobian", "jacobian"]


def jacobian(
    output: Tensor, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Any:
    """All derivatives of ``output``'s elements, of shape ``output.shape + input.shape`` for each
    input; None for an input that ``output`` does not depend on.
    """
    flat_inputs = [convert_to_tensor(x) for x in nest.flatten(inputs)]
    flat = array_shape.reshape(output, [-1])

    def row(i: Tensor) -> list[Tensor | None]:
        found = gradients(gathering.gather(flat, i), flat_inputs)
        return [None if g is None else as_dense(g) for g in found]

    size = flat._shape[0] if flat._shape and flat._shape[0] is not None else None
    rows = array_shape.size(flat) if size is None else size
    found = _loop(row, len(flat_inputs), rows, output, use_pfor, parallel_iterations)
    heads = array_shape.shape(output)
    results = [
        None if rows_of is None else _shaped(rows_of, heads, 1, output.shape, x.shape)
        for rows_of, x in zip(found, flat_inputs)
    ]
    return nest.pack_sequence_as(inputs, results) if nest.is_sequence(inputs) else results[0]


def batch_jacobian(
    output: Tensor, inp: Tensor, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Tensor | None:
    """The jacobian of each row of ``output`` with respect to the same row of ``inp``."""
    first = (output.shape[0], inp.shape[0])
    if not TensorShape(first[:1]).is_compatible_with(TensorShape(first[1:])):
        raise ValueError(
            f"Need first dimension of output shape ({output.shape}) and inp shape ({inp.shape}) "
            "to match."
        )
    batch = array_shape.shape(output)[0]
    flat = array_shape.reshape(output, joining.stack([batch, -1]))
    known = output.shape[1:].num_elements()
    columns = array_shape.shape(flat)[1] if known is None else known

    def column(i: Tensor) -> list[Tensor | None]:
        found = gradients(gathering.gather(flat, i, axis=1), inp)
        return [None if g is None else as_dense(g) for g in found]

    (found,) = _loop(column, 1, columns, output, use_pfor, parallel_iterations)
    if found is None:
        return None
    rank = len(inp.shape)
    swapped = array_shape.transpose(found, [1, 0, *range(2, rank + 1)])
    return _shaped(swapped, array_shape.shape(output), 2, output.shape, inp.shape[1:])


def _loop(
    function: Any, count: int, rounds: Any, output: Tensor, use_pfor: bool, parallel: int | None
) -> Any:
    if use_pfor:
        return pfor(function, rounds, parallel_iterations=parallel)
    return for_loop(function, [output.dtype] * count, rounds, parallel_iterations=parallel)


def _shaped(
    found: Tensor, heads: Tensor, skip: int, head: TensorShape, tail: TensorShape
) -> Tensor:
    """``found`` with its first ``skip`` axes replaced by the axes of ``output``."""
    rest = array_shape.shape(found)[skip:]
    shaped: Tensor = array_shape.reshape(found, joining.concat([heads, rest], 0))
    shaped.set_shape(head.concatenate(tail))
    return shaped
