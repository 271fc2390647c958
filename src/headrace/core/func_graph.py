"""The graph of a traced function: tensors from outside are captured as further inputs.

    graph = FuncGraph("f")
    with graph.as_default():
        x = graph.add_input(tf.float32, [None])
        graph.outputs = [x * w]          # w of another graph, or eager: it becomes a capture
    graph.captures                       # [(w, placeholder that stands for it)]

A variable is not captured by value: its handle is made again inside, under the same key, so that
reads and writes in the function reach the variable of whatever state the function is run with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeGuard

from headrace import errors
from headrace.core import stacks, trace
from headrace.core.dtypes import DType
from headrace.core.effects import Effects
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import OpDef, lookup
from headrace.core.shapes import to_plain
from headrace.core.tensor import Operation, Tensor

__all__ = ["FuncGraph", "building_function", "is_function_graph", "out_of_scope"]

_numbers = itertools.count()
#: Elements of a captured eager tensor that is small enough to be told while building.
_MAX_KNOWN_ELEMENTS = 128


#: Collections that a function shares with the graph around it; of the others it has a copy.
_SHARED_COLLECTIONS = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
)


def _inherited_collections(outer: Graph) -> dict[Any, list[Any]]:
    """Variables and everything that is no user's collection (variable stores) are shared."""
    copies = {
        k: list(v) if isinstance(k, str) else v
        for k, v in outer._collections.items()
        if k not in _SHARED_COLLECTIONS
    }
    shared = (*_SHARED_COLLECTIONS, GraphKeys._VARIABLE_STORE_KEY, GraphKeys._VARSCOPESTORE_KEY)
    return {**copies, **{k: outer.get_collection_ref(k) for k in shared}}


def is_function_graph(graph: Graph) -> TypeGuard[FuncGraph]:
    """Whether a graph is the body of a function."""
    return graph._is_function


class FuncGraph(Graph):
    """A graph that is the body of a function."""

    _is_function = True

    def __init__(self, name: str, outer: Graph | None = None) -> None:
        super().__init__()
        self.name = name
        #: Tells functions of the same name apart.
        self.key = f"{name}@{next(_numbers)}"
        self.outer_graph = outer
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.structured_input_signature: Any = None
        self.structured_outputs: Any = None
        self.control_outputs: list[Operation] = []
        #: Operations of the graph around that the function waits for.
        self.control_captures: dict[Operation, None] = {}
        self._captured: dict[int, tuple[Any, Tensor]] = {}
        self._handles: dict[str, Tensor] = {}
        self._effects = Effects()
        #: The handles outside of the variables that are used: they keep the variables alive.
        self.outer_handles: dict[str, Tensor] = {}
        #: Makes a variable that the function creates (functions/function.py); None makes it
        #: outside.
        self.variable_maker: Callable[[dict[str, Any]], Any] | None = None
        around = get_default_graph() if outer is None else outer
        if outer is not None or around._is_eager:
            self._seed = around._seed
        if outer is not None:
            self._collections = _inherited_collections(outer)
        else:  # functions of eager programs have the seed of tf.random.set_seed
            self._seed = get_default_graph()._seed

    # building -----------------------------------------------------------------------------------
    def _add_op(
        self,
        opdef: OpDef,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        name: str,
        control_inputs: tuple[Operation, ...] | None = None,
        depth: int = 2,
    ) -> Operation:
        """As in any graph; operations with effects also get their place in program order."""
        op = super()._add_op(
            opdef, inputs, attrs, name, control_inputs, depth + 1 if depth >= 0 else depth
        )
        traits = opdef.traits
        if traits.stateful or traits.reads or traits.writes:
            self._effects.note(op)
        return op

    def finish(self, outputs: list[Tensor]) -> None:
        """Nothing more is added: these are the results, and every effect is to happen."""
        self.outputs = outputs
        self.control_outputs = self._effects.pending()

    # inputs -------------------------------------------------------------------------------------
    def add_input(self, dtype: DType, shape: object, name: str = "arg") -> Tensor:
        """A further argument of the function."""
        tensor = self._placeholder(dtype, shape, name)
        self.inputs.append(tensor)
        return tensor

    def _placeholder(self, dtype: DType, shape: object, name: str) -> Tensor:
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

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that are used and still there."""
        found = [_variable_of(h) for h in self.outer_handles.values()]
        return tuple([v for v in found if v is not None])

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple([v for v in self.variables if v.trainable])

    def capture(self, outside: Tensor, name: str | None = None) -> Tensor:
        """The tensor by which something from outside (a tensor of an outer graph, an eager tensor)
        is known inside.
        """
        if outside._op.graph is self:
            return outside
        known = self._captured.get(id(outside))
        if known is not None:
            return known[1]
        graph = outside._op.graph
        if not graph._is_eager and not self._is_within(graph):
            raise out_of_scope(outside)
        if outside._op._role == "handle":
            return self.handle_like(outside._op, outside)
        inner = self._placeholder(outside._dtype, outside._shape, name or "captured")
        if (
            graph._is_eager
            and outside._dtype._kind in "iubf"
            and outside._static.size <= _MAX_KNOWN_ELEMENTS
        ):
            inner._static = outside._static  # shapes and axes may be told by it
        self._captured[id(outside)] = (outside, inner)
        return inner

    def inside(self, outside: Tensor) -> Tensor | None:
        """The tensor by which something from outside is known here, None if it was not captured."""
        if outside._op.graph is self:
            return outside
        if outside._op._role == "handle":
            attrs = outside._op._attrs
            name = attrs.get("shared_name") or outside._op.name
            return self._handles.get(f"{attrs.get('container', '')}/{name}")
        known = self._captured.get(id(outside))
        return None if known is None else known[1]

    def _is_within(self, graph: Graph) -> bool:
        """Whether this function is being built inside of ``graph``."""
        outer = self.outer_graph
        while isinstance(outer, FuncGraph) and outer is not graph:
            outer = outer.outer_graph
        return outer is graph

    def handle_like(self, op: Operation, handle: Tensor | None = None) -> Tensor:
        """A handle in this graph for the variable behind a handle of another."""
        attrs = {**op._attrs, "shared_name": op._attrs.get("shared_name") or op.name}
        attrs.pop("_class", None)
        self.outer_handles.setdefault(
            attrs["shared_name"], op._outputs[0] if handle is None else handle
        )
        return self.variable_handle(attrs, op.name)

    def variable_handle(self, attrs: dict[str, Any], name: str) -> Tensor:
        """The handle of the variable with these attributes (shared_name, container, dtype, shape),
        made once.
        """
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
    def control_dependencies(self, control_inputs: Any) -> AbstractContextManager[None]:
        """Operations of the graph around are waited for by the call (eager ones have run
        already).
        """
        if control_inputs is not None:
            control_inputs = [c for c in control_inputs if not self._is_outside(c)]
        return super().control_dependencies(control_inputs)

    def _is_outside(self, item: object) -> bool:
        if hasattr(item, "_as_graph_element") and not hasattr(item, "handle"):
            item = item._as_graph_element()
        op = item if isinstance(item, Operation) else getattr(item, "op", None)
        if not isinstance(op, Operation) or op.graph is self:
            return False
        if not op.graph._is_eager:
            self.control_captures[op] = None
        return True

    def outermost(self) -> Graph | None:
        """The graph, if any, that the nested function graphs are built in."""
        graph: Graph | None = self
        while isinstance(graph, FuncGraph):
            graph = graph.outer_graph
        return graph


def _variable_of(handle: Tensor) -> Any:
    """The variable that a handle outside belongs to."""
    reference = getattr(handle, "variable", None)
    if reference is not None:
        return reference()
    graph: Graph = handle._op.graph
    for key in (
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
    ):
        for v in graph.get_collection(key):
            if getattr(v, "handle", None) is handle:
                return v
    return None


class OutOfScopeError(TypeError, errors.InaccessibleTensorError):
    """A tensor is used where it has no value: a TypeError in TF 2, in TF 1.15 the other, too."""


def out_of_scope(tensor: Tensor, is_outside: bool = False) -> OutOfScopeError:
    """A tensor of a function that is used where that function is not being built.

    ``is_outside``: by code outside of any function, where values are needed.
    """
    where = trace.user_line(tensor._op._frames)
    first = (
        'An op outside of the function building code is being passed a "Graph" tensor: '
        if is_outside
        else ""
    )
    return OutOfScopeError(
        f"{first}{tensor!r} is out of scope and cannot be used here: it is defined in another "
        "function or code block. Use return values, explicit Python locals or TensorFlow "
        "collections to access it.\nPlease see https://www.tensorflow.org/guide/function"
        "#all_outputs_of_a_tffunction_must_be_return_values for more information."
        + (f"\n\n{tensor!r} was defined here:\n    {where}" if where else "")
    )


def building_function() -> bool:
    items = stacks.default_graphs.items
    return bool(items) and items[-1]._is_function
