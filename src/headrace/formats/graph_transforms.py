"""Rewriting GraphDefs for inference: ``optimize_for_inference`` and ``TransformGraph``.

    TransformGraph(graph_def, ["x"], ["logits"],
                   ["strip_unused_nodes", "fold_constants(ignore_errors=true)", "fold_batch_norms"])

Headrace itself needs none of it, its own rewrites do the same when a graph is run; programs that
prepare graphs for other runtimes call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.graph import Graph
from headrace.core.infer import static_value
from headrace.core.opdef import traits_of
from headrace.formats.graphdef_reader import import_graph_def
from headrace.formats.subgraphs import (
    ensure_graph_is_valid,
    extract_sub_graph,
    remove_training_nodes,
    source_of,
    splice_out,
    strip_unused,
)
from headrace.formats.tensor_proto import to_array, to_message

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.core.annotations import Array

__all__ = ["TransformGraph", "ensure_graph_is_valid", "fold_batch_norms", "optimize_for_inference"]


def optimize_for_inference(
    input_graph_def: object,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: object,
    toco_compatible: bool = False,
) -> Any:
    """Cut, take training nodes out and fold batch norms into convolutions.

    TF also joins resizing and padding with convolutions into ops of its own (not with
    ``toco_compatible``); here they stay apart.
    """
    del toco_compatible  # both answers give the same graph here
    ensure_graph_is_valid(input_graph_def)
    graph = strip_unused(
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum
    )
    graph = remove_training_nodes(graph, output_node_names)
    graph = fold_batch_norms(graph)
    ensure_graph_is_valid(graph)
    return graph


def fold_batch_norms(input_graph_def: GraphDef) -> GraphDef:
    """Batch norms of constants behind a convolution of constants, folded into its weights and a
    bias.
    """
    nodes = {n.name: n for n in input_graph_def.node}
    readers: dict[str, int] = {}
    for node in input_graph_def.node:
        for text in node.input:
            readers[source_of(text)] = readers.get(source_of(text), 0) + 1
    replaced: dict[str, list[Any]] = {}
    for node in input_graph_def.node:
        if _is_norm(node):
            folded = _folded(node, nodes, readers)
            if folded is not None:
                replaced.update(folded)
    out = type(input_graph_def)()
    out.CopyFrom(input_graph_def)
    del out.node[:]
    for node in input_graph_def.node:
        out.node.extend(replaced.get(node.name, [node]))
    return out


def _is_norm(node: NodeDef) -> bool:
    fused = traits_of(node.op).role == "batch norm"
    return fused or node.op == "BatchNormWithGlobalNormalization"


def _folded(
    node: NodeDef, nodes: dict[str, Any], readers: dict[str, int]
) -> dict[str, list[Any]] | None:
    """What replaces which node, if this norm can be folded."""
    # epsilon's attribute, and the positions of the input, mean, variance, beta and gamma
    is_fused = traits_of(node.op).role == "batch norm"
    epsilon_attr = "epsilon" if is_fused else "variance_epsilon"
    order = (0, 3, 4, 2, 1) if is_fused else (0, 1, 2, 3, 4)
    conv, *statistics = [nodes.get(source_of(node.input[i])) for i in order]
    if (
        conv is None
        or conv.op not in ("Conv2D", "DepthwiseConv2dNative")
        or readers[conv.name] != 1
    ):
        return None
    if is_fused and node.attr["is_training"].b:
        return None
    weights = nodes.get(source_of(conv.input[1]))
    constants = [n for n in (weights, *statistics) if n is not None and n.op == "Const"]
    if weights is None or len(constants) != 5:
        return None
    w = to_array(weights.attr["value"].tensor)
    mean, var, beta, gamma = (to_array(n.attr["value"].tensor) for n in constants[1:])
    depth = conv.op == "DepthwiseConv2dNative"
    channels = w.shape[2] * w.shape[3] if depth else w.shape[3]
    if any(v.shape != (channels,) for v in (mean, var, beta, gamma)) or readers[weights.name] != 1:
        return None
    scale = 1.0 / np.sqrt(var.astype(np.float64) + node.attr[epsilon_attr].f)
    if node.op != "BatchNormWithGlobalNormalization" or node.attr["scale_after_normalization"].b:
        scale = scale * gamma
    scaled = (w * (scale.reshape(w.shape[2:]) if depth else scale)).astype(w.dtype)
    offset = _const(node, f"{conv.name}_bn_offset", (beta - mean * scale).astype(mean.dtype))
    bias = type(node)(
        name=node.name, op="BiasAdd", input=[conv.name, offset.name], device=node.device
    )
    bias.attr["T"].CopyFrom(conv.attr["T"])
    if "data_format" in conv.attr:
        bias.attr["data_format"].CopyFrom(conv.attr["data_format"])
    new: dict[str, list[Any]] = {n.name: [] for n in constants[1:] if readers[n.name] == 1}
    new[weights.name] = [_const(node, weights.name, scaled)]
    new[node.name] = [offset, bias]
    return new


def _const(like: Any, name: str, array: Array) -> Any:
    message = type(like)(name=name, op="Const")
    tensor = message.attr["value"].tensor
    to_message(array, None, tensor)
    message.attr["dtype"].type = tensor.dtype
    return message


# TransformGraph -----------------------------------------------------------------------------------


def TransformGraph(
    input_graph_def: object,
    inputs: Sequence[str],
    outputs: Sequence[str],
    transforms: Sequence[str],
) -> Any:
    """Apply transforms ("name" or "name(argument=value, …)") in order."""
    graph = input_graph_def
    for text in transforms:
        name, arguments = _parse(text)
        found = _TRANSFORMS.get(name)
        if found is None:
            raise ValueError(
                f"Transform '{name}' not recognized by Headrace, which has "
                f"{', '.join(sorted(_TRANSFORMS))}"
            )
        graph = found(graph, list(inputs), list(outputs), arguments)
    return graph


_TRANSFORM = re.compile(r"^\s*(\w+)\s*(?:\((.*)\))?\s*$", re.S)
_ARGUMENT = re.compile(r"(\w+)\s*=\s*(\"[^\"]*\"|[^,\s]+)")


def _parse(text: str) -> tuple[str, dict[str, list[str]]]:
    match = _TRANSFORM.match(text)
    if match is None:
        raise ValueError(f"cannot read the transform {text!r}")
    arguments: dict[str, list[str]] = {}
    for key, value in _ARGUMENT.findall(match.group(2) or ""):
        arguments.setdefault(key, []).append(value.strip('"'))
    return match.group(1), arguments


Transform = Callable[[Any, list[str], list[str], dict[str, list[str]]], Any]


def _names(texts: Iterable[str]) -> list[str]:
    return [source_of(t) for t in texts]


def _strip_unused_nodes(
    graph: GraphDef, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> GraphDef:
    """Between inputs and outputs.

    ``type`` and ``shape`` (one, or after ``name`` for each) of new placeholders.
    """
    kinds = _per_name(given, "type", _names(inputs))
    shapes = _per_name(given, "shape", _names(inputs))
    known = {n.name: n for n in graph.node}
    out = type(graph)()
    out.CopyFrom(graph)
    for node in out.node:
        if node.name in _names(inputs) and node.op != "Placeholder":
            fresh = type(node)(name=node.name, op="Placeholder")
            source = known[node.name].attr
            fresh.attr["dtype"].type = source["T"].type or source["dtype"].type or 1
            node.CopyFrom(fresh)
        if node.name in kinds:
            from headrace.core.dtypes import as_dtype

            node.attr["dtype"].type = as_dtype(kinds[node.name]).as_datatype_enum
        if node.name in shapes:
            message = node.attr["shape"].shape
            message.Clear()
            for size in shapes[node.name].split(","):
                message.dim.add().size = int(size)
    return extract_sub_graph(out, _names(outputs))


def _per_name(given: dict[str, list[str]], key: str, names: list[str]) -> dict[str, str]:
    if f"{key}_for_name" in given:
        return dict(zip(given.get("name", []), given[f"{key}_for_name"]))
    return dict.fromkeys(names, given[key][0]) if key in given else {}


def _remove_nodes(
    graph: GraphDef, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> GraphDef:
    """Nodes of the types ``op``, each of one data input, taken out."""
    kinds = set(given.get("op", ()))
    kept = {*_names(inputs), *_names(outputs)}
    touched = {
        name for n in graph.node for t in n.input if t[:1] == "^" for name in (t[1:], n.name)
    }
    gone = {
        n.name: n.input[0]
        for n in graph.node
        if n.op in kinds and n.input and n.name not in kept and n.name not in touched
    }
    return splice_out(graph, gone)


def _fold_constants(
    graph: Any, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> Any:
    """What depends on constants alone, computed."""
    cut = extract_sub_graph(graph, _names(outputs))
    built = Graph()
    with built.as_default():
        import_graph_def(cut, name="")
    kept = {*_names(inputs), *_names(outputs)}
    out = type(graph)()
    out.versions.CopyFrom(graph.versions)
    if graph.HasField("library"):
        out.library.CopyFrom(graph.library)
    for node in cut.node:
        op = built.get_operation_by_name(node.name)
        value = None
        if node.op != "Const" and node.name not in kept and len(op.outputs) == 1:
            value = static_value(op.outputs[0])
        out.node.append(node if value is None else _const(node, node.name, np.asarray(value)))
    return extract_sub_graph(out, _names(outputs))


def _fold_factors(graph: Any, *_: object) -> Any:
    """A product of constants behind a convolution or matrix product, folded into its weights."""
    nodes = {n.name: n for n in graph.node}
    readers: dict[str, int] = {}
    for node in graph.node:
        for text in node.input:
            readers[source_of(text)] = readers.get(source_of(text), 0) + 1
    replaced: dict[str, list[Any]] = {}
    for node in graph.node:
        if node.op == "Mul" and len(node.input) == 2:
            replaced.update(_folded_factor(node, nodes, readers) or {})
    out = type(graph)()
    out.CopyFrom(graph)
    del out.node[:]
    for node in graph.node:
        out.node.extend(replaced.get(node.name, [node]))
    return out


def _folded_factor(
    node: NodeDef, nodes: dict[str, Any], readers: dict[str, int]
) -> dict[str, list[Any]] | None:
    """What replaces which node, if this product can be folded."""
    product, factor = (nodes.get(source_of(text)) for text in node.input)
    if product is None or product.op not in ("Conv2D", "MatMul", "DepthwiseConv2dNative"):
        return None
    weights = nodes.get(source_of(product.input[1]))
    if weights is None or weights.op != "Const" or factor is None or factor.op != "Const":
        return None
    if readers[product.name] != 1 or readers[weights.name] != 1:
        return None
    if "transpose_b" in product.attr and product.attr["transpose_b"].b:
        return None
    w, scale = (to_array(n.attr["value"].tensor) for n in (weights, factor))
    depth = product.op == "DepthwiseConv2dNative"
    columns = w.shape[2] * w.shape[3] if depth else w.shape[-1]
    if scale.shape != (columns,):
        return None
    scaled = (w * (scale.reshape(w.shape[2:]) if depth else scale)).astype(w.dtype)
    new = type(node)()
    new.CopyFrom(product)
    new.name = node.name
    found: dict[str, list[Any]] = {product.name: [], node.name: [new]}
    found[weights.name] = [_const(node, weights.name, scaled)]
    if readers[factor.name] == 1:
        found[factor.name] = []
    return found


def _fold_norms(graph: object, *_: object) -> Any:
    return fold_batch_norms(graph)


def _remove_device(graph: Any, *_: Any) -> Any:
    out = type(graph)()
    out.CopyFrom(graph)
    for node in out.node:
        node.device = ""
    return out


def _remove_attribute(
    graph: Any, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> Any:
    out = type(graph)()
    out.CopyFrom(graph)
    kinds = given.get("op_name", ["*"])
    for node in out.node:
        if "*" in kinds or node.op in kinds:
            for name in given["attribute_name"]:
                if name in node.attr:
                    del node.attr[name]
    return out


def _rename_op(
    graph: Any, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> Any:
    out = type(graph)()
    out.CopyFrom(graph)
    table = dict(zip(given["old_op_name"], given["new_op_name"]))
    for node in out.node:
        node.op = table.get(node.op, node.op)
    return out


def _sort(graph: Any, *_: Any) -> Any:
    """Inputs before their users."""
    nodes = {n.name: n for n in graph.node}
    done: dict[str, None] = {}
    for first in nodes:
        stack = [(first, False)]
        while stack:
            name, is_ready = stack.pop()
            if is_ready:
                done.setdefault(name, None)
            elif name not in done:
                stack.append((name, True))
                loops = nodes[name].op == "Merge"
                for text in nodes[name].input:
                    source = source_of(text)
                    if source not in done and not (loops and nodes[source].op == "NextIteration"):
                        stack.append((source, False))
    out = type(graph)()
    out.CopyFrom(graph)
    del out.node[:]
    out.node.extend([nodes[n] for n in done])
    return out


def _merge_duplicates(
    graph: object, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> Any:
    """Equal constants, and equal stateless nodes of equal inputs, become one."""
    from headrace.formats.graphdef_nodes import op_definition

    kept = {*_names(inputs), *_names(outputs)}
    gone: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for node in _sort(graph).node:
        opdef = op_definition(node.op)
        if node.name in kept or opdef is None or opdef.traits.stateful or opdef.traits.writes:
            continue
        key = type(node)()
        key.CopyFrom(node)
        key.name = ""
        del key.input[:]
        for text in node.input:
            name, colon, index = text.partition(":")
            key.input.append(gone.get(name, name) + colon + index)
        first = seen.setdefault(key.SerializeToString(deterministic=True), node.name)
        if first != node.name and len(opdef.outputs) == 1 and not opdef.outputs[0].is_list:
            gone[node.name] = first
    return splice_out(graph, gone)


def _in_buckets(array: Array, steps: int) -> Any:
    """Every value becomes the middle of its bucket, of ``steps`` between the least and the largest.

    As in TF 1.15 the largest counts as zero where all are negative, and constant arrays get a range
    of their own.
    """
    low, high = np.float32(array.min()), max(np.float32(array.max()), np.finfo(np.float32).tiny)
    if low == high:
        high = np.float32(2.0) * low
    width = (high - low) / np.float32(steps)
    return low + width * (np.floor((array - low) / width).astype(np.float32) + np.float32(0.5))


def _round_weights(
    graph: Any, inputs: list[str], outputs: list[str], given: dict[str, list[str]]
) -> Any:
    """Float constants rounded to ``num_steps`` values, so that files compress well."""
    steps = int(given.get("num_steps", ["256"])[0])
    out = type(graph)()
    out.CopyFrom(graph)
    for node in out.node:
        if node.op == "Const" and node.attr["dtype"].type == 1:
            array = to_array(node.attr["value"].tensor)
            if array.size < 16:
                continue
            node.CopyFrom(_const(node, node.name, _in_buckets(array, steps)))
    return out


_TRANSFORMS: dict[str, Transform] = {
    "fold_batch_norms": _fold_factors,
    "fold_old_batch_norms": _fold_norms,
    "fold_constants": _fold_constants,
    "merge_duplicate_nodes": _merge_duplicates,
    "remove_attribute": _remove_attribute,
    "remove_device": _remove_device,
    "remove_nodes": _remove_nodes,
    "rename_op": _rename_op,
    "round_weights": _round_weights,
    "sort_by_execution_order": _sort,
    "strip_unused_nodes": _strip_unused_nodes,
}
