"""A mapped function on a whole batch at once, where that gives the same bits.

    dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y)).batch(128)

Arithmetic that is done element by element, and rounded exactly, has one result however many elements an array has. If a function
consists of nothing else, it is made once more with a batch dimension in front of its arguments, and a batch is one call.
Such operations cannot fail and have no effects, so that nothing else can be seen of it.
"""

from __future__ import annotations

from headrace.core.func_graph import FuncGraph
from headrace.core.tensor import Operation, Tensor
from headrace.session.function import GraphFunction

__all__ = ["over_batches"]

#: One operand's value, rounded exactly (or not at all), for each element.
EXACT = frozenset([
    "Abs", "Add", "AddV2", "Cast", "Equal", "Greater", "GreaterEqual", "Identity", "IsFinite", "IsInf", "IsNan", "Less",
    "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "Mul", "Neg", "NotEqual", "RealDiv", "Sign", "Sqrt", "Square",
    "Sub",
])  # fmt: skip
_NUMBERS = "biuf"


def over_batches(graph: FuncGraph, outputs: list[Tensor]) -> GraphFunction | None:
    """The function with a batch dimension before every argument and result; None if it may not be done so."""
    if not graph.inputs or graph.control_outputs:
        return None
    plan = _Plan(graph)
    if not all(plan.depends(t) for t in outputs) or not plan.fits():
        return None
    return plan.made(outputs)


def _exact_cast(op: Operation) -> bool:
    """A float that is no integer's value becomes another one in another loop."""
    return op._inputs[0]._dtype._kind != "f" or op._outputs[0]._dtype._kind == "f"


class _Plan:
    def __init__(self, graph: FuncGraph) -> None:
        self.graph = graph
        self.arguments = set(map(id, graph.inputs))
        self.captured = set(map(id, graph.internal_captures))
        self._depends: dict[Operation, bool] = {}
        for op in graph._ops:
            inputs = [self.depends(t) for t in op._inputs]
            first = bool(op._outputs) and id(op._outputs[0]) in self.arguments
            self._depends[op] = first or any(inputs)

    def depends(self, tensor: Tensor) -> bool:
        """Whether it differs from element to element."""
        return self._depends.get(tensor._op, False)

    def fits(self) -> bool:
        return all(self._allowed(op) for op in self.graph._ops)

    def _allowed(self, op: Operation) -> bool:
        if not op._outputs or op._control_inputs:
            return False
        out = op._outputs[0]
        if out._shape is None or out._dtype._kind not in _NUMBERS:
            return False
        if not self._depends[op]:
            return op.type == "Const" or id(out) in self.captured
        if id(out) in self.arguments:
            return True
        if op.type not in EXACT or (op.type == "Cast" and not _exact_cast(op)):
            return False
        rank = len(out._shape)
        return all(
            t._shape is not None and (len(t._shape) == rank if self.depends(t) else len(t._shape) <= rank)
            for t in op._inputs
        )  # fmt: skip

    def made(self, outputs: list[Tensor]) -> GraphFunction:
        """The operations again, in a graph whose arguments have one dimension more."""
        graph = FuncGraph(f"{self.graph.name}_batched")
        new: dict[int, Tensor] = {}
        with graph.as_default():
            for t in [*self.graph.inputs, *self.graph.internal_captures]:
                shape = (None, *t._shape) if id(t) in self.arguments else t._shape  # type: ignore[misc]
                new[id(t)] = graph.add_input(t._dtype, shape)
            for op in self.graph._ops:
                if id(op._outputs[0]) in new:
                    continue
                inputs = tuple(new[id(t)] for t in op._inputs)
                copy = graph._add_op(op._opdef, inputs, dict(op._attrs), graph._unique(op.name))
                new[id(op._outputs[0])] = copy._outputs[0]
        found = [new[id(t)] for t in outputs]
        return GraphFunction(graph, graph.inputs, found)
