"""The graph of a traced function: tensors from outside are captured as further inputs.

    graph = FuncGraph("f")
    with graph.as_default():
        x = graph.add_input(tf.float32, [None])
        graph.outputs = [x * w]          # w of another graph, or eager: it becomes a capture
    graph.captures                       # [(w, placeholder that stands for it)]

A variable is not captured by value: its handle is made again inside, under the same key, so that reads and writes in the
function reach the variable of whatever state the function is run with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.core import stacks
from headrace.core.dtypes import DType
from headrace.core.graph import Graph
from headrace.core.opdef import lookup
from headrace.core.shapes import to_plain
from headrace.core.tensor import Operation, Tensor

__all__ = ["FuncGraph"]


class FuncGraph(Graph):
    """A graph that is the body of a function."""

    _is_function = True

    def __init__(self, name: str, outer: Graph | None = None) -> None:
        super().__init__()
        self.name = name
        self.outer_graph = outer
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.structured_input_signature: Any = None
        self.structured_outputs: Any = None
        self.control_outputs: list[Operation] = []
        self._captured: dict[int, tuple[Any, Tensor]] = {}
        self._handles: dict[str, Tensor] = {}
        if outer is not None:
            self._seed = outer._seed
            self._collections = outer._collections

    @property
    def building_function(self) -> bool:
        return True

    # inputs -------------------------------------------------------------------------------------
    def add_input(self, dtype: DType, shape: Any, name: str = "arg") -> Tensor:
        """A further argument of the function."""
        tensor = self._placeholder(dtype, shape, name)
        self.inputs.append(tensor)
        return tensor

    def _placeholder(self, dtype: DType, shape: Any, name: str) -> Tensor:
        context, self._context = self._context, None
        controls, self._control_ops = self._control_ops, ()
        try:
            op = self._add_op(
                lookup("Placeholder"),
                (),
                {"dtype": dtype._base, "shape": to_plain(shape)},
                self._unique(name),
            )
        finally:
            self._context, self._control_ops = context, controls
        return op._outputs[0]

    @property
    def captures(self) -> list[tuple[Any, Tensor]]:
        """What the function takes from outside, with the placeholder that stands for it."""
        return list(self._captured.values())

    @property
    def external_captures(self) -> list[Any]:
        return [outer for outer, _ in self._captured.values()]

    @property
    def internal_captures(self) -> list[Tensor]:
        return [inner for _, inner in self._captured.values()]

    def capture(self, outside: Any, name: str | None = None) -> Tensor:
        """The tensor by which something from outside (a tensor of an outer graph, an eager tensor) is known inside."""
        if isinstance(outside, Tensor) and getattr(outside, "_op", None) is not None:
            if outside._op.graph is self:
                return outside
            if outside._op.type == "VarHandleOp":
                return self.handle_like(outside._op)
        known = self._captured.get(id(outside))
        if known is not None:
            return known[1]
        inner = self._placeholder(outside._dtype, outside._shape, name or "captured")
        self._captured[id(outside)] = (outside, inner)
        return inner

    def handle_like(self, op: Operation) -> Tensor:
        """A handle in this graph for the variable behind a handle of another."""
        attrs = {**op._attrs, "shared_name": op._attrs.get("shared_name") or op.name}
        attrs.pop("_class", None)
        return self.variable_handle(attrs, op.name)

    def variable_handle(self, attrs: dict[str, Any], name: str) -> Tensor:
        """The handle of the variable with these attributes (shared_name, container, dtype, shape), made once."""
        key = f"{attrs.get('container', '')}/{attrs['shared_name']}"
        known = self._handles.get(key)
        if known is None:
            context, self._context = self._context, None
            controls, self._control_ops = self._control_ops, ()
            try:
                op = self._add_op(lookup("VarHandleOp"), (), attrs, self._unique(name))
            finally:
                self._context, self._control_ops = context, controls
            known = self._handles[key] = op._outputs[0]
        return known

    def _captured_inputs(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for t in inputs:
            if t._op.graph is not self:
                return tuple([t if t._op.graph is self else self.capture(t) for t in inputs])
        return inputs

    # contexts -----------------------------------------------------------------------------------
    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations of other graphs, which have run when the function is called, are left out."""
        if control_inputs is not None:
            control_inputs = [c for c in control_inputs if not self._is_outside(c)]
        with super().control_dependencies(control_inputs):
            yield

    def _is_outside(self, item: Any) -> bool:
        if hasattr(item, "_as_graph_element"):
            item = item._as_graph_element()
        op = item if isinstance(item, Operation) else getattr(item, "op", None)
        return isinstance(op, Operation) and op.graph is not self

    def outermost(self) -> Graph | None:
        """The graph, if any, that the nested function graphs are built in."""
        graph: Graph | None = self
        while isinstance(graph, FuncGraph):
            graph = graph.outer_graph
        return graph


def building_function() -> bool:
    items = stacks.default_graphs.items
    return bool(items) and items[-1]._is_function
