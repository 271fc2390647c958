"""Cutting GraphDefs: parts that outputs need, training nodes taken out, inputs replaced by
placeholders.

small = extract_sub_graph(graph_def, ["logits"])
small = remove_training_nodes(small, protected_nodes=["logits"])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.core import dtypes
from headrace.core.graph import Graph
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation
from headrace.formats.graphdef_reader import is_graph_def

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

__all__ = [
    "ensure_graph_is_valid",
    "extract_sub_graph",
    "must_run_on_cpu",
    "remove_training_nodes",
    "source_of",
    "splice_out",
    "strip_unused",
    "tensor_shape_from_node_def_name",
]


def source_of(text: str) -> str:
    """The node that an input ("x", "x:1", "^x") comes from."""
    return text[1:] if text[:1] == "^" else text.partition(":")[0]


def _check(graph_def: object) -> None:
    if not is_graph_def(graph_def):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> GraphDef:
    """The nodes that ``dest_nodes`` (names of operations) depend on, in their order.

    Library and versions are kept.
    """
    _check(graph_def)
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    sources: dict[str, list[str]] = {}
    for node in graph_def.node:
        found = [source_of(i) for i in node.input]
        if "_class" in node.attr:  # nodes that it is colocated with are kept, as TF does
            groups = [g.decode() for g in node.attr["_class"].list.s]
            found += [g[5:] for g in groups if g.startswith("loc:@")]
        sources[node.name] = found
    for name in dest_nodes:
        assert name in sources, f"{name} is not in graph"
    wanted = set(dest_nodes)
    stack = list(wanted)
    while stack:
        for name in sources.get(stack.pop(), ()):
            if name not in wanted:
                wanted.add(name)
                stack.append(name)
    out = type(graph_def)()
    out.node.extend([n for n in graph_def.node if n.name in wanted])
    if graph_def.HasField("library"):
        out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def splice_out(graph_def: GraphDef, gone: dict[str, str]) -> GraphDef:
    """The graph without the nodes ``gone``.

    Their readers read what each name maps to, and no longer wait for them.
    """
    out = type(graph_def)()
    for node in graph_def.node:
        if node.name in gone:
            continue
        new = out.node.add()
        new.CopyFrom(node)
        del new.input[:]
        for text in node.input:
            name = source_of(text)
            if text[:1] == "^":
                if name not in gone:
                    new.input.append(text)
                continue
            seen: set[str] = set()
            while name in gone and name not in seen:
                seen.add(name)
                text = gone[name]
                name = source_of(text)
            new.input.append(text)
    return out


def remove_training_nodes(
    input_graph: GraphDef, protected_nodes: Iterable[str] | None = None
) -> GraphDef:
    """Without CheckNumerics, and without Identity nodes that control dependencies do not touch."""
    _check(input_graph)
    kept = set(protected_nodes or ())
    checks = {
        n.name: n.input[0]
        for n in input_graph.node
        if n.op == "CheckNumerics" and n.name not in kept
    }
    graph = splice_out(input_graph, checks)
    touched: set[str] = set()
    for node in graph.node:
        for text in node.input:
            if text[:1] == "^":
                touched.update((text[1:], node.name))
    identities = {
        n.name: n.input[0]
        for n in graph.node
        if n.op == "Identity" and n.name not in kept and n.name not in touched
    }
    return splice_out(graph, identities)


def strip_unused(
    input_graph_def: GraphDef,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: object,
) -> GraphDef:
    """The part between inputs and outputs.

    Inputs become placeholders of the given type (one, or one for each).
    """
    for name in input_node_names:
        if ":" in name:
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not a Operation.")
    kinds = placeholder_type_enum
    if not isinstance(kinds, (list, tuple)):
        kinds = [kinds] * len(input_node_names)
    wanted = dict(zip(input_node_names, kinds))
    replaced = type(input_graph_def)()
    replaced.CopyFrom(input_graph_def)
    for node in replaced.node:
        if node.name not in wanted:
            continue
        dtype = dtypes.as_dtype(wanted.pop(node.name)).as_datatype_enum
        known = {k: node.attr[k] for k in ("_output_shapes", "shape") if k in node.attr}
        name = node.name
        fresh = type(node)(name=name, op="Placeholder")
        fresh.attr["dtype"].type = dtype
        for key, value in known.items():
            fresh.attr[key].CopyFrom(value)
        node.CopyFrom(fresh)
    if wanted:
        raise KeyError(f"The following input nodes were not found: {set(wanted)}")
    return extract_sub_graph(replaced, output_node_names)


def ensure_graph_is_valid(graph_def: GraphDef) -> None:
    """ValueError if names occur twice or inputs are missing."""
    names: set[str] = set()
    for node in graph_def.node:
        if node.name in names:
            raise ValueError(f"Duplicate node names detected for {node.name}")
        names.add(node.name)
    for node in graph_def.node:
        for text in node.input:
            if source_of(text) not in names:
                raise ValueError(f"Input for {node.name} not found: {text}")


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor that a NodeDef names ("x" or "x:1")."""
    return graph.get_tensor_by_name(
        input_name if ":" in input_name else f"{input_name}:0"
    ).get_shape()


_VARIABLE_OPS = frozenset(
    [
        "Assign",
        "AssignAdd",
        "AssignSub",
        "Queue",
        "ScatterAdd",
        "ScatterSub",
        "ScatterUpdate",
        "TruncatedNormal",
        "Variable",
        "VariableV2",
    ]
)


def must_run_on_cpu(node: NodeDef, pin_variables_on_cpu: bool = False) -> bool:
    """TF 1.15's answer to which operations have no GPU kernel."""
    if isinstance(node, Operation):
        kind, types = (
            node.type,
            {k: v for k, v in node._attrs.items() if isinstance(v, dtypes.DType)},
        )
    else:
        kind = node.op
        types = {
            k: dtypes.as_dtype(v.type)
            for k, v in node.attr.items()
            if v.WhichOneof("value") == "type"
        }
    if pin_variables_on_cpu and kind in _VARIABLE_OPS:
        return True
    if kind == "Const":
        return types.get("dtype") in (dtypes.string, dtypes.int32)
    if kind in ("DynamicStitch", "ParallelDynamicStitch"):
        return types.get("T") is dtypes.int32
    return kind == "Cast" and types.get("SrcT") is dtypes.int32
