"""A program for feeds of given shapes: every static shape that follows from them.

People declare placeholders as ``[None, 784]`` or without a shape, and then feed one shape thousands
of times. ``with_fed_shapes`` gives the program that they would have got by declaring that shape:
the shape rules of the ops are asked again, in order, with the shapes of the feeds and the values
that follow from shapes. Only ``Program.values`` changes; rules, fusion and lowering do the rest.

    with_fed_shapes(program, [(128, 784)])      # x: [?, 784] is [128, 784], x @ w is [128, 500]

The result is right for feeds of these shapes only. Inside of loops and branches shapes are followed
from what is known outside; a loop variable keeps its declared shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core import shapes
from headrace.core.infer import Inference
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.program.nodes import Node, Program, ValueInfo, walk

__all__ = ["with_fed_shapes"]


class _StandIn:
    """An operation whose inputs are values of the program, for shape rules to look at."""

    def __init__(self, op: Operation | None, node: Node | None, inputs: list[Tensor]) -> None:
        self._real = op
        self._inputs = inputs
        self._outputs: tuple[Tensor, ...] = ()
        if node is not None:
            self._opdef, self._attrs = node.opdef, node.attrs
            self.type = node.opdef.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Source(_StandIn):
    """Where a value comes from that the program does not compute: nothing is known of it."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.type, self.name, self._context, self._attrs = "Placeholder", "", None, {}


def with_fed_shapes(program: Program, fed: Sequence[tuple[int, ...]]) -> Program:
    """The program with all shapes that follow from those of its feeds.

    ValueError if they contradict what the program says of itself.
    """
    values = list(program.values)
    for value, shape in zip(program.feeds, fed):
        values[value] = values[value]._replace(shape=shapes.merge(values[value].shape, shape))
    tensors: dict[int, Tensor] = {}
    for node in walk(program.body):
        inputs = [_tensor(i, tensors, values, program) for i in node.inputs]
        stand_in = _StandIn(node.op, node, inputs)
        found = _shapes_of(node, stand_in)
        outputs = []
        for k, value in enumerate(node.outputs):
            info = values[value]
            known: Shape = info.shape
            if found is not None and shapes.num_elements(known) is None:
                known = shapes.merge(known, found[k])
                values[value] = info._replace(shape=known)
            tensor = Tensor(stand_in, k, info.dtype, known)  # type: ignore[arg-type]
            outputs.append(tensor)
            tensors[value] = tensor
        stand_in._outputs = tuple(outputs)
    return program._replace(values=values)


def _tensor(
    value: int, tensors: dict[int, Tensor], values: list[ValueInfo], program: Program
) -> Tensor:
    found = tensors.get(value)
    if found is None:
        info = values[value]
        found = tensors[value] = Tensor(_Source(), 0, info.dtype, info.shape)  # type: ignore[arg-type]
        found._static = program.constants.get(value)
    return found


def _shapes_of(node: Node, stand_in: _StandIn) -> Sequence[Shape] | None:
    """What the shape rule says; None where it has nothing to say here."""
    if len(node.inputs) != len(node.op._inputs):
        return None  # control flow and resources: the rule is of another list of inputs
    try:
        found = node.opdef.shape(Inference(stand_in))  # type: ignore[arg-type]
    except (ValueError, AttributeError, TypeError, KeyError):
        return None  # it needs the graph; or the run will say what is wrong with these shapes
    return found if len(found) == len(node.outputs) else None
