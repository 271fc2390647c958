"""Op definitions as OpDef messages: what a MetaGraph says of the ops of its graph, and how defaults are left out."""

from __future__ import annotations

import functools
from typing import Any

from headrace.core.opdef import Arg, Attr, OpDef
from headrace.formats.attr_values import encode
from headrace.formats.graphdef_nodes import op_definition

__all__ = ["op_def_message", "strip_default_attrs", "stripped_op_list_for_graph"]


@functools.cache
def op_def_message(name: str) -> Any:
    """The OpDef of an op; None for a name that is none (a function)."""
    opdef = op_definition(name)
    if opdef is None:
        return None
    from tensorboard.compat.proto.op_def_pb2 import OpDef as Message

    message = Message(name=name, is_stateful=opdef.traits.stateful or opdef.traits.random)
    for arg in opdef.inputs:
        _argument(message.input_arg.add(), arg)
    for arg in opdef.outputs:
        _argument(message.output_arg.add(), arg)
    for attr in opdef.attrs.values():
        _attribute(message.attr.add(), attr)
    return message


def _argument(message: Any, arg: Arg) -> None:
    message.name = arg.name
    message.is_ref = arg.is_ref
    if arg.dtype is not None:
        message.type = arg.dtype._base._enum
    message.type_attr = arg.type_attr or ""
    message.number_attr = arg.number_attr or ""
    message.type_list_attr = arg.type_list_attr or ""


def _attribute(message: Any, attr: Attr) -> None:
    message.name = attr.name
    message.type = attr.kind.replace("str", "string")
    if attr.has_default and attr.default is not None:
        encode(attr.default, attr.kind, message.default_value)
    if attr.least is not None:
        message.has_minimum, message.minimum = True, attr.least


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpList of the ops that a GraphDef uses, functions included."""
    from tensorboard.compat.proto.op_def_pb2 import OpList

    names = {n.op for n in graph_def.node}
    for function in graph_def.library.function:
        names.update(n.op for n in function.node_def)
    found = [op_def_message(name) for name in sorted(names)]
    return OpList(op=[m for m in found if m is not None])


def strip_default_attrs(graph_def: Any) -> None:
    """Take out attributes that have their op's default value."""
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    for node in nodes:
        opdef: OpDef | None = op_definition(node.op)
        message = None if opdef is None else op_def_message(node.op)
        for attr in () if message is None else message.attr:
            if attr.name in node.attr and attr.HasField("default_value") and node.attr[attr.name] == attr.default_value:  # fmt: skip
                del node.attr[attr.name]
