"""TensorFlow's file formats. Nothing is loaded until a format is used.

Importing this package gives graphs their GraphDefs: ``Graph.as_graph_def`` and
``Operation.node_def`` load the encoder at their first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import stacks

if TYPE_CHECKING:
    from headrace.core.graph import Graph
    from headrace.core.opdef import OpDef
    from headrace.core.tensor import Operation

__all__: list[str] = []


def _graph_def(graph: Graph, from_version: int | None, add_shapes: bool) -> Any:
    from headrace.formats.graphdef_writer import graph_def_of

    return graph_def_of(graph, from_version, add_shapes)


def _node_def(op: Operation) -> Any:
    from headrace.formats.graphdef_writer import node_def_of

    return node_def_of(op)


def _attr_message(op: Operation, name: str) -> Any:
    from headrace.formats.graphdef_writer import attr_message

    return attr_message(op, name)


def _op_def(definition: OpDef) -> Any:
    from headrace.formats.op_list import op_def

    return op_def(definition)


def _attr_value(message: object, kind: str) -> Any:
    from headrace.formats.attr_values import decode

    return decode(message, kind)


stacks.attr_decoder = _attr_value
stacks.op_def_encoder = _op_def
stacks.graph_def_encoder = _graph_def
stacks.node_def_encoder = _node_def
stacks.attr_encoder = _attr_message
