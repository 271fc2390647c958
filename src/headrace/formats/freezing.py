"""Freezing: variables of a graph replaced by constants of their present values.

    frozen = convert_variables_to_constants(sess, sess.graph.as_graph_def(), ["logits"])

A TF-1 variable becomes a Const of its name. A resource variable's handle becomes a Const too, and
what is done with the handle changes with it: a read becomes Identity, a gather GatherV2; Switch,
Enter and their like carry the value instead; functions that are given the handle (If, While, calls)
get copies that take the value. Anything that writes to a frozen variable is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.dtypes import as_dtype
from headrace.core.opdef import FLOW, traits_of
from headrace.formats.attr_values import encode_shape
from headrace.formats.subgraphs import extract_sub_graph
from headrace.formats.tensor_proto import to_message
from headrace.program.variable_reads import variable_key

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.core.annotations import TensorLike
    from headrace.core.graph import Graph
    from headrace.core.tensor import Tensor

__all__ = ["convert_variables_to_constants", "freeze_graph_def", "variable_nodes"]

_log = logging.getLogger("tensorflow")

#: Ops that call functions: (attributes that name them, attribute with the types of the inputs,
#: inputs before those).
_CALLS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "PartitionedCall": (("f",), "Tin", 0),
    "StatefulPartitionedCall": (("f",), "Tin", 0),
    "If": (("then_branch", "else_branch"), "Tin", 1),
    "StatelessIf": (("then_branch", "else_branch"), "Tin", 1),
    "While": (("cond", "body"), "T", 0),
    "StatelessWhile": (("cond", "body"), "T", 0),
    "Case": (("branches",), "Tin", 1),
    "StatelessCase": (("branches",), "Tin", 1),
}


def convert_variables_to_constants(
    sess: object,
    input_graph_def: GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> GraphDef:
    """The part of ``input_graph_def`` that the outputs need, with variables as constants of their
    values in ``sess``.
    """
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    allowed = None if variable_names_whitelist is None else set(variable_names_whitelist)
    denied = set(variable_names_blacklist or ())
    nodes = [
        n
        for n in variable_nodes(graph_def)
        if (allowed is None or n.name in allowed) and n.name not in denied
    ]
    values = _read(sess, nodes)
    _log.info("Froze %d variables.", len(values))
    out = freeze_graph_def(graph_def, values)
    _log.info("Converted %d variables to const ops.", len(values))
    return out


def _forwards(node: NodeDef) -> bool:
    """Whether the output is the first input under another name."""
    role = traits_of(node.op).role
    return role in FLOW or role in ("identity", "stop gradient")


def variable_nodes(graph_def: GraphDef) -> list[Any]:
    """The nodes that are variables."""
    return [n for n in graph_def.node if traits_of(n.op).role in ("variable", "handle")]


def _read(sess: Any, nodes: Sequence[Any]) -> dict[str, Any]:
    """The values of variables in a session, by node name."""
    found = {n.name: _reading(sess.graph, n) for n in nodes}
    names = [name for name, tensor in found.items() if tensor is not None]
    values = dict(zip(names, sess.run([found[name] for name in names]))) if names else {}
    for node in nodes:
        if node.name not in values:  # nothing reads it outside of functions
            op = sess.graph.get_operation_by_name(node.name)
            values[node.name] = sess._state.need(variable_key(op), op)
    return {n.name: values[n.name] for n in nodes}


def _reading(graph: Graph, node: NodeDef) -> Tensor | None:
    """A tensor of the graph that has a variable's value, if there is one."""
    tensor = graph.get_tensor_by_name(f"{node.name}:0")
    if traits_of(node.op).role == "variable":
        return tensor
    for op in graph._consumers_of(tensor):
        if op.type == "ReadVariableOp" and op._context is None and not op._control_inputs:
            return op._outputs[0]
    return None


def freeze_graph_def(graph_def: object, values: Mapping[str, Any]) -> GraphDef:
    """The graph with the variable nodes named in ``values`` as constants."""
    return _Freezer(graph_def, values).run()


class _Freezer:
    def __init__(self, graph_def: GraphDef, values: Mapping[str, Any]) -> None:
        self.graph_def = graph_def
        self.values = values
        self.functions = {f.signature.name: f for f in graph_def.library.function}
        self.copies: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
        self.new_functions: list[Any] = []

    def run(self) -> Any:
        out = type(self.graph_def)()
        types = {
            (n.name, 0): n.attr["dtype"].type
            for n in self.graph_def.node
            if n.op == "VarHandleOp" and n.name in self.values
        }
        nodes = self._nodes(self.graph_def.node, types, _graph_source)
        for node in nodes:
            if node.name in self.values:
                _constant(out.node.add(), node, self.values[node.name])
            else:
                out.node.append(node)
        out.versions.CopyFrom(self.graph_def.versions)
        if self.graph_def.HasField("library"):
            out.library.CopyFrom(self.graph_def.library)
            out.library.function.extend(self.new_functions)
        return out

    def _nodes(
        self,
        nodes: Iterable[Any],
        types: dict[tuple[str, int], int],
        source: Callable[[str], tuple[str, int]],
    ) -> list[Any]:
        """Nodes with what they do to handles in ``types`` (output of a node -> type of the
        variable) done to values.
        """
        before = list(nodes)
        if not types:
            return before
        self._spread(before, types, source)
        out: list[Any] = []
        for node in before:
            frozen = {
                i: types[source(t)]
                for i, t in enumerate(node.input)
                if t[:1] != "^" and source(t) in types
            }
            out.extend(self._node(node, frozen) if frozen else [node])
        return out

    def _spread(
        self,
        nodes: Sequence[Any],
        types: dict[tuple[str, int], int],
        source: Callable[[str], tuple[str, int]],
    ) -> None:
        """Follow handles through operations that hand them on."""
        grown = True
        while grown:
            grown = False
            for node in nodes:
                for i, text in enumerate(node.input):
                    if text[:1] == "^" or source(text) not in types:
                        continue
                    for output in _handed_on(node, i):
                        if (node.name, output) not in types:
                            types[(node.name, output)] = types[source(text)]
                            grown = True

    def _node(self, node: NodeDef, frozen: dict[int, int]) -> list[Any]:
        new = type(node)()
        new.CopyFrom(node)
        if "_output_shapes" in new.attr:
            del new.attr["_output_shapes"]
        if node.op in _CALLS:
            self._call(new, frozen)
            return [new]
        if node.op == "IdentityN":
            for i, kind in frozen.items():
                new.attr["T"].list.type[i] = kind
            return [new]
        if _forwards(node):
            new.attr["T"].type = next(iter(frozen.values()))
            return [new]
        convert = _CONVERSIONS.get(node.op)
        if convert is None or set(frozen) != {0}:
            raise ValueError(
                f"Cannot freeze: '{node.name}' ({node.op}) uses a variable in another way "
                "than reading it. Freeze a graph for "
                "inference, or name the variable in variable_names_blacklist."
            )
        return convert(new, frozen[0])

    # functions ------------------------------------------------------------------------------------
    def _call(self, node: NodeDef, frozen: dict[int, int]) -> None:
        names, type_attr, first = _CALLS[node.op]
        types = node.attr[type_attr].list.type
        arguments = {i - first: t for i, t in frozen.items()}
        for i, t in arguments.items():
            types[i] = t
        for name in names:
            attr = node.attr[name]
            targets = attr.list.func if attr.WhichOneof("value") == "list" else [attr.func]
            for target in targets:
                target.name = self._copy(
                    target.name,
                    arguments,
                    node.op in ("While", "StatelessWhile") and name == "body",
                )
        if "output_shapes" in node.attr and node.op in ("While", "StatelessWhile"):
            listed = node.attr["output_shapes"].list.shape
            for i in arguments:
                if i < len(listed):
                    listed[i].Clear()
                    encode_shape(None, listed[i])

    def _copy(self, name: str, arguments: dict[int, int], is_body: bool) -> str:
        """A copy of a function in which these arguments are values."""
        key = (name, tuple(sorted(arguments.items())))
        known = self.copies.get(key)
        if known is not None:
            return known
        if name not in self.functions:
            raise ValueError(f"Function '{name}' is not in the library of the graph")
        new = type(self.functions[name])()
        new.CopyFrom(self.functions[name])
        fresh, i = f"{name}_frozen", 0
        while fresh in self.functions:
            i += 1
            fresh = f"{name}_frozen_{i}"
        self.copies[key] = fresh
        new.signature.name = fresh
        self.functions[fresh] = new
        types: dict[tuple[str, int], int] = {}
        for position, kind in arguments.items():
            arg = new.signature.input_arg[position]
            arg.type = kind
            arg.ClearField("handle_data")
            types[(arg.name, 0)] = kind
            if position in new.arg_attr:
                del new.arg_attr[position]
        source = _function_source(new)
        nodes = self._nodes(new.node_def, types, source)
        del new.node_def[:]
        new.node_def.extend(nodes)
        for arg in new.signature.output_arg:
            where = source(new.ret[arg.name])
            if where in types:
                arg.type = types[where]
        self.new_functions.append(new)
        return fresh


def _graph_source(text: str) -> tuple[str, int]:
    name, _, index = text.partition(":")
    return name, int(index or 0)


def _function_source(function: object) -> Callable[[str], tuple[str, int]]:
    """Inputs ``node:argument:index``.

    Of nodes that hand handles on only the first output, or the list of a call, matters.
    """
    second = {"output_true", "value_index"}

    def source(text: str) -> tuple[str, int]:
        parts = text.split(":")
        if len(parts) == 3:
            return parts[0], int(parts[2]) + (parts[1] in second)
        return parts[0], int(parts[1]) if len(parts) == 2 else 0

    return source


def _handed_on(node: NodeDef, i: int) -> Sequence[int]:
    """The outputs that are the handle which input ``i`` is."""
    if node.op in ("Switch",):
        return (0, 1) if i == 0 else ()
    if _forwards(node):
        return (0,)
    if node.op in ("IdentityN", "While", "StatelessWhile"):
        return (i,)
    return ()


def _read_op(node: NodeDef, kind: int) -> list[Any]:
    groups = [(k, v) for k, v in node.attr.items() if k == "_class"]
    new = type(node)(name=node.name, op="Identity", input=list(node.input), device=node.device)
    new.attr["T"].type = kind
    for key, value in groups:
        new.attr[key].CopyFrom(value)
    return [new]


def _gather_op(node: NodeDef, kind: int) -> list[Any]:
    batch = node.attr["batch_dims"].i if "batch_dims" in node.attr else 0
    axis = type(node)(name=f"{node.name}/axis", op="Const", device=node.device)
    index = node.attr["Tindices"].type
    axis.attr["dtype"].type = index
    to_message(np.asarray(batch, as_dtype(index).np_dtype), None, axis.attr["value"].tensor)
    new = type(node)(name=node.name, op="GatherV2", device=node.device)
    data = [t for t in node.input if t[:1] != "^"]
    reference = axis.name if not any(t.count(":") == 2 for t in data) else f"{axis.name}:output:0"
    new.input.extend([*data, reference, *[t for t in node.input if t[:1] == "^"]])
    new.attr["Tparams"].type, new.attr["Tindices"].type, new.attr["Taxis"].type = kind, index, index
    new.attr["batch_dims"].i = batch
    if "_class" in node.attr:
        new.attr["_class"].CopyFrom(node.attr["_class"])
    return [axis, new]


def _gather_nd_op(node: NodeDef, kind: int) -> list[Any]:
    new = type(node)(name=node.name, op="GatherNd", input=list(node.input), device=node.device)
    new.attr["Tparams"].type, new.attr["Tindices"].type = kind, node.attr["Tindices"].type
    return [new]


def _shape_op(node: NodeDef, kind: int) -> list[Any]:
    new = type(node)(name=node.name, op="Shape", input=list(node.input), device=node.device)
    new.attr["T"].type = kind
    new.attr["out_type"].type = node.attr["out_type"].type or 3
    return [new]


_CONVERSIONS: dict[str, Callable[[Any, int], list[Any]]] = {
    "ReadVariableOp": _read_op,
    "ResourceGather": _gather_op,
    "ResourceGatherNd": _gather_nd_op,
    "VariableShape": _shape_op,
}


def _constant(out: Any, node: NodeDef, value: TensorLike) -> None:
    dtype = as_dtype(node.attr["dtype"].type)
    out.name, out.op = node.name, "Const"
    out.attr["dtype"].type = dtype.as_datatype_enum
    to_message(np.asarray(value, dtype.np_dtype), dtype, out.attr["value"].tensor)
