"""A mapped function on a whole batch at once, where that gives the same bits.

    dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y)).batch(128)

Arithmetic that is done element by element, and rounded exactly, has one result however many
elements an array has; reshaping, slicing and parsing do not depend on it either. If a function
consists of nothing else (:mod:`headrace.data.functions.batch_rules`), it is made once more with a
batch dimension in front of its arguments, and a batch is one call. If such a call fails, the
elements are gone through one by one: the error is that of the element that it belongs to.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.func_graph import FuncGraph
from headrace.core.shapes import ranked
from headrace.core.tensor import Operation, Tensor
from headrace.data.functions.batch_rules import Builder, Unfit, is_sure, rule_of
from headrace.session.graph_function import GraphFunction

__all__ = ["OverBatches", "over_batches"]


class OverBatches(NamedTuple):
    """The function of batches; ``sure`` if it cannot fail."""

    function: GraphFunction
    sure: bool


def over_batches(graph: FuncGraph, outputs: list[Tensor]) -> OverBatches | None:
    """The function with a batch dimension before every argument and result.

    None if it may not be done so.
    """
    if not graph.inputs or graph.control_outputs or not outputs:
        return None
    try:
        return _Plan(graph, outputs).made()
    except Unfit:
        return None


class _Plan:
    def __init__(self, graph: FuncGraph, outputs: list[Tensor]) -> None:
        self.graph = graph
        self.outputs = outputs
        self.arguments = set(map(id, graph.inputs))
        self.given = self.arguments | set(map(id, graph.internal_captures))
        self._depends: dict[Operation, bool] = {}
        for op in graph._ops:
            inputs = [self.depends(t) for t in op._inputs]
            first = bool(op._outputs) and id(op._outputs[0]) in self.arguments
            self._depends[op] = first or any(inputs)

    def depends(self, tensor: Tensor) -> bool:
        """Whether it differs from element to element."""
        return self._depends.get(tensor._op, False)

    def made(self) -> OverBatches:
        """The operations again, in a graph whose arguments have one dimension more."""
        ops = self._needed()
        graph = FuncGraph(f"{self.graph.name}_batched")
        builder = Builder(graph, self.depends)
        with graph.as_default():
            for t in [*self.graph.inputs, *self.graph.internal_captures]:
                if t._shape is None and id(t) in self.arguments:
                    raise Unfit
                inside = id(t) in self.arguments
                shape = (None, *ranked(t._shape)) if inside else t._shape
                builder.new[id(t)] = graph.add_input(t._dtype, shape)
            for op in ops:
                rule = rule_of(op) if self._depends[op] else None
                made = builder.again(op) if rule is None else rule(builder, op)
                builder.new.update(zip(map(id, op._outputs), made))
            found = [builder.result(t) for t in self.outputs]
        return OverBatches(GraphFunction(graph, graph.inputs, found), all(map(self._sure, ops)))

    def _needed(self) -> list[Operation]:
        """What the results are made of. Whatever has effects stands in the way, needed or not."""
        needed = {t._op for t in self.outputs}
        ops = []
        for op in reversed(self.graph._ops):
            if op._outputs and id(op._outputs[0]) in self.given:
                continue
            traits = op._opdef.traits
            if traits.stateful or traits.reads or traits.writes or op._control_inputs:
                raise Unfit
            if op not in needed:
                continue
            if self._depends[op] and rule_of(op) is None:
                raise Unfit
            needed.update(t._op for t in op._inputs)
            ops.append(op)
        return ops[::-1]

    def _sure(self, op: Operation) -> bool:
        if not self._depends[op]:
            return op._role == "constant"
        shapes = [t._shape for t in (*op._inputs, *op._outputs)]
        return is_sure(op) and not any(s is None or None in s for s in shapes)
