"""Op definitions as TensorFlow's OpDef messages: what MetaGraphs list of the ops that they use.

op_def(lookup("MatMul"))                       # an OpDef message
stripped_op_list(graph_def)                    # an OpList of the ops in a GraphDef
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.opdef import Arg, Attr, OpDef
from headrace.formats.attr_values import encode
from headrace.formats.graphdef_nodes import op_definition

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

__all__ = ["op_def", "strip_default_attrs", "stripped_op_list"]


def op_def(definition: OpDef) -> Any:
    """An OpDef message: arguments, attributes, their defaults and allowed types."""
    from tensorboard.compat.proto.op_def_pb2 import OpDef as Message

    message = Message(name=definition.name)
    for args, target in (
        (definition.inputs, message.input_arg),
        (definition.outputs, message.output_arg),
    ):
        for arg in args:
            _write_arg(arg, target.add())
    for attr in sorted(definition.attrs.values(), key=lambda a: a.name):
        _write_attr(attr, message.attr.add())
    message.is_stateful = definition.traits.is_stateful
    return message


def _write_arg(arg: Arg, message: Any) -> None:
    message.name = arg.name
    if arg.type_list_attr:
        message.type_list_attr = arg.type_list_attr
        return
    if arg.dtype is not None:
        message.type = arg.dtype._enum
    elif arg.type_attr:
        message.type_attr = arg.type_attr
    if arg.number_attr:
        message.number_attr = arg.number_attr
    message.is_ref = arg.is_ref


def _write_attr(attr: Attr, message: Any) -> None:
    message.name = attr.name
    message.type = attr.kind.replace("str", "string")
    if attr.has_default:
        encode(attr.default, attr.kind, message.default_value)
    if attr.allowed is not None and attr.kind in ("type", "list(type)"):
        message.allowed_values.list.type.extend(sorted(d._enum for d in attr.allowed))


def stripped_op_list(graph_def: GraphDef) -> Any:
    """The definitions of all ops that a GraphDef uses, its functions included."""
    from tensorboard.compat.proto.op_def_pb2 import OpList

    names = {n.op for n in graph_def.node}
    names |= {n.op for f in graph_def.library.function for n in f.node_def}
    out = OpList()
    for name in sorted(names):
        definition = op_definition(name)
        if definition is not None:
            out.op.append(op_def(definition))
    return out


def strip_default_attrs(graph_def: GraphDef) -> None:
    """Take out attributes that have their op's default value, in functions too."""
    defaults: dict[str, dict[str, Any]] = {}
    for node in [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]:
        if node.op not in defaults:
            definition = op_definition(node.op)
            attrs = [] if definition is None else op_def(definition).attr
            defaults[node.op] = {
                a.name: a.default_value for a in attrs if a.HasField("default_value")
            }
        for name, value in defaults[node.op].items():
            if name in node.attr and node.attr[name] == value:
                del node.attr[name]
