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

from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph
from headrace.core.tensor import Operation
from headrace.formats.attr_values import FunctionName, encode, encode_shape

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
        self.functions: list[tuple[str, FuncGraph]] = []
        self.taken: set[str] = set()

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
        name, i = base, 0
        while name in self.taken:
            i += 1
            name = f"{base}_{i}"
        self.taken.add(name)
        self.names[id(graph)] = name
        self.functions.append((name, graph))
        return name

    def write(self, message: Any) -> None:
        """Fill in a FunctionDefLibrary; functions may name further functions."""
        from headrace.formats.function_defs import write_function

        done = 0
        while done < len(self.functions):
            name, graph = self.functions[done]
            write_function(graph, name, message.function.add(), self)
            done += 1


def function_graph(value: object) -> FuncGraph | None:
    """The graph of a function that an attribute holds."""
    for _ in range(3):
        if isinstance(value, FuncGraph):
            return value
        value = getattr(value, "traced", None) or getattr(value, "graph", None)
    return None


def graph_def_of(
    graph: Graph, from_version: int | None = None, add_shapes: bool = False
) -> GraphDef:
    """A GraphDef of the graph, or of the operations made since ``graph.version`` was
    ``from_version``.
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    message = GraphDef()
    message.versions.producer = GRAPH_DEF_VERSION
    library = Library()
    for op in graph.get_operations()[from_version or 0 :]:
        write_node(op, message.node.add(), library, add_shapes)
    if library.functions:
        library.write(message.library)
    return message


def node_def_of(op: Operation) -> NodeDef:
    """A NodeDef of the operation."""
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    message = NodeDef()
    write_node(op, message, Library())
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
    message.op = op.type
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
        value = (
            FunctionName(library.name_of(value)) if not isinstance(value, FunctionName) else value
        )
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
