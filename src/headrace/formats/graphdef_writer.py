"""A graph as a GraphDef: a dump, since operations carry TensorFlow's types, inputs and attributes
already.

    graph.as_graph_def()                       # a GraphDef message
    op.node_def                                # a NodeDef message
    function_def_of(func_graph, "f")           # a FunctionDef message (function_defs.py)

Functions that attributes name (those of ``tf.data``) are written into the GraphDef's library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace.core import stacks
from headrace.core.call_records import CalledFunction, CallRecord
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph
from headrace.core.tensor import Operation
from headrace.formats.attr_values import FunctionName, encode, encode_scalars, encode_shape

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

__all__ = [
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "TF_VERSION",
    "Library",
    "attr_message",
    "graph_def_of",
    "node_def_of",
    "write_node",
]

#: The version of GraphDefs that are written: TF 1.15's.
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
#: The TensorFlow whose formats are read and written, as files and messages name it.
TF_VERSION = "1.15.5"


class Library:
    """The functions that a GraphDef names, each written once, under a name of its own."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.functions: list[tuple[str, FuncGraph | CalledFunction]] = []
        self.taken: set[str] = set()
        #: FunctionDefs that were imported, by name; they are written as they are.
        self.messages: dict[str, Any] = {}
        self.gradients: dict[str, str] = {}

    def name_of(self, function: object) -> str:
        """The name of a function (a FuncGraph or something traced that has one), which is added if
        it is new.
        """
        graph = function_graph(function)
        if graph is None:
            raise TypeError(f"{function!r} is not a function that a GraphDef can hold")
        known = self.names.get(id(graph))
        if known is not None:
            return known
        base = "".join(c if c.isalnum() or c in "_." else "_" for c in graph.name) or "function"
        name = self._free_name(base)
        self.names[id(graph)] = name
        self.functions.append((name, graph))
        return name

    def add_called(self, function: CalledFunction) -> str:
        """The name of a function that is called, which is added if it is new."""
        known = self.names.get(id(function.graph))
        if known is None:
            known = self.names[id(function.graph)] = self._free_name(function.name)
            self.functions.append((known, function))
            if function.gradient is not None:
                self.gradients[known] = self.add_called(function.gradient)
        return known

    def _free_name(self, base: str) -> str:
        name, i = base, 0
        while name in self.taken:
            i += 1
            name = f"{base}_{i}"
        self.taken.add(name)
        return name

    def add_messages(self, functions: Iterable[Any]) -> bool:
        """Add imported functions; False if another function has one of their names."""
        given = {f.signature.name: f for f in functions}
        for name, function in given.items():
            known = self.messages.get(name)
            if (known is None and name in self.taken) or (known is not None and known != function):
                return False
        self.messages.update(given)
        self.taken.update(given)
        return True

    def write(self, message: Any) -> None:
        """Fill in a FunctionDefLibrary; functions may name further functions."""
        from headrace.formats.function_defs import write_function

        for function in self.messages.values():
            message.function.add().CopyFrom(function)
        done = 0
        while done < len(self.functions):
            name, item = self.functions[done]
            if isinstance(item, CalledFunction):
                definition = message.function.add()
                write_function(
                    item.graph,
                    name,
                    definition,
                    self,
                    item.arguments,
                    item.output_names,
                    item.outputs,
                )
                encode_scalars(item.attrs, definition.attr)
            else:
                write_function(item, name, message.function.add(), self)
            done += 1
        for name, gradient in self.gradients.items():
            message.gradient.add(function_name=name, gradient_func=gradient)


def function_graph(value: object) -> FuncGraph | None:
    """The graph of a function that an attribute holds."""
    for _ in range(3):
        if isinstance(value, FuncGraph):
            return value
        value = getattr(value, "traced", None) or getattr(value, "graph", None)
    return None


def graph_def_of(
    graph: Graph,
    from_version: int | None = None,
    add_shapes: bool = False,
    expand_calls: bool = False,
) -> GraphDef:
    """A GraphDef of the graph, or of the operations made since ``graph.version`` was
    ``from_version``.

    Calls of functions are written as such, with their functions in the library, unless
    ``expand_calls`` is set or something else uses what is inside of them (gradients).
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    message = GraphDef()
    message.versions.producer = GRAPH_DEF_VERSION
    library = Library()
    with graph._lock:  # other threads may be building loops, whose operations change once
        ops = graph.get_operations()[from_version or 0 :]
        calls: dict[Operation, CallRecord] = {}
        hidden: set[Operation] = set()
        if graph._calls is not None and not expand_calls:
            from headrace.formats.call_nodes import calls_to_write, write_call

            calls, hidden = calls_to_write(graph, ops, library)
        for op in ops:
            if op in calls:
                write_call(calls[op], message.node.add(), library, add_shapes)
            elif op not in hidden:
                write_node(op, message.node.add(), library, add_shapes)
    if library.functions or library.messages:
        library.write(message.library)
    return message


def node_def_of(op: Operation) -> NodeDef:
    """A NodeDef of the operation; of a call if it stands for one."""
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    message = NodeDef()
    record = None if op.type is op._opdef.name else stacks.call_of(op)
    if record is None:
        write_node(op, message, Library())
    else:
        from headrace.formats.call_nodes import write_call

        write_call(record, message, Library(), add_shapes=False)
    return message


def attr_message(op: Operation, name: str) -> Any:
    """An attribute in the form in which TF's ``get_attr`` gives it.

    The message inside the AttrValue.
    """
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue

    message = AttrValue()
    _write_attr(op, name, op._attrs[name], message, Library())
    return getattr(message, message.WhichOneof("value"))


def write_node(
    op: Operation,
    message: Any,
    library: Library,
    add_shapes: bool = False,
    inputs: Callable[[Operation], Iterable[str]] | None = None,
) -> None:
    """Fill in a NodeDef; ``inputs`` names the data inputs (a GraphDef's way if not given)."""
    message.name = op.name
    message.op = op._opdef.name  # (a call that is written as its body is an IdentityN)
    message.input.extend(
        [t._as_node_def_input() for t in op._inputs] if inputs is None else inputs(op)
    )
    if op._control_inputs:
        message.input.extend(sorted(f"^{c.name}" for c in op._control_inputs))
    if op._device:
        message.device = op._device
    attrs = message.attr
    for name, value in op._attrs.items():
        _write_attr(op, name, value, attrs[name], library)
    if add_shapes and op._outputs:
        shapes = attrs["_output_shapes"].list
        for t in op._outputs:
            encode_shape(t._shape, shapes.shape.add())


def _write_attr(op: Operation, name: str, value: Any, message: Any, library: Library) -> None:
    attr = op._opdef.attrs.get(name)
    kind = "" if attr is None else attr.kind
    if kind == "func":
        value = getattr(value, "imported", None) or value
        if not isinstance(value, FunctionName):
            value = FunctionName(library.name_of(value))
    elif kind == "list(func)":
        value = [FunctionName(library.name_of(v)) for v in value]
    elif kind == "tensor":
        from headrace.formats.tensor_proto import to_message

        dtype = op._attrs.get("dtype")
        to_message(value, dtype, message.tensor)
        return
    try:
        encode(value, kind, message)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TypeError(
            f"attribute '{name}' of '{op.name}' ({op.type}) cannot be written to a NodeDef: {error}"
        ) from error
