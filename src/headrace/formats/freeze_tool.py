"""``tensorflow.python.tools.freeze_graph``.

A graph and a checkpoint, or a SavedModel, to one frozen GraphDef.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headrace.formats.freezing import freeze_graph_def, variable_nodes
from headrace.formats.graphdef_reader import read_graph_def
from headrace.formats.meta_graph import read_meta_graph
from headrace.formats.model_files import freeze_model
from headrace.formats.subgraphs import extract_sub_graph, strip_unused
from headrace.ops.io.checkpoint_ops import CheckpointFile, open_checkpoint
from headrace.train.checkpoint_files import checkpoint_exists
from headrace.wire.graph_files import write_bytes, write_graph
from headrace.wire.tensor_bundle import BundleReader

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef
    from tensorboard.compat.proto.saver_pb2 import SaverDef

__all__ = ["freeze_graph", "freeze_graph_with_def_protos", "strip_unused_from_files"]


def _names(text: Any) -> list[str]:
    parts = text.split(",") if isinstance(text, str) else list(text or ())
    return [p.strip() for p in parts if p.strip()]


def freeze_graph_with_def_protos(
    input_graph_def: GraphDef,
    input_saver_def: SaverDef,
    input_checkpoint: str,
    output_node_names: str,
    restore_op_name: str,
    filename_tensor_name: str,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: str | None = None,
    checkpoint_version: int = 2,
) -> Any:
    """The frozen GraphDef, also written to ``output_graph``; values are read from the checkpoint by
    the names of variables.

    ``input_saver_def``, ``restore_op_name``, ``filename_tensor_name``: how TensorFlow would find
    the values; not needed here.
    """
    del input_saver_def, restore_op_name, filename_tensor_name
    if checkpoint_version not in (1, 2):  # which one it is tells the file
        raise ValueError(f"checkpoint_version must be 1 or 2, not {checkpoint_version}")
    if _names(initializer_nodes):
        raise NotImplementedError(
            "initializer_nodes: run them in a session, then use convert_variables_to_constants"
        )
    outputs = _names(output_node_names)
    if not outputs:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    if input_saved_model_dir:
        frozen = freeze_model(input_saved_model_dir, outputs, _names(saved_model_tags) or ["serve"])
    else:
        source = (
            input_meta_graph_def.graph_def if input_meta_graph_def is not None else input_graph_def
        )
        frozen = _from_checkpoint(
            source,
            input_checkpoint,
            outputs,
            _names(variable_names_whitelist),
            _names(variable_names_blacklist),
        )
    if clear_devices:
        for node in frozen.node:
            node.device = ""
    if output_graph:
        write_bytes(os.fspath(output_graph), frozen.SerializeToString(deterministic=True))
    return frozen


def _from_checkpoint(
    source: object, checkpoint: str, outputs: list[str], allowed: list[str], denied: list[str]
) -> Any:
    if not checkpoint or not checkpoint_exists(checkpoint):
        raise ValueError(f"Input checkpoint '{checkpoint}' doesn't exist!")
    graph_def = extract_sub_graph(source, outputs)
    reader = open_checkpoint(checkpoint)
    values = {}
    for node in variable_nodes(graph_def):
        if (allowed and node.name not in allowed) or node.name in denied:
            continue
        values[node.name] = _value(reader, node)
    return freeze_graph_def(graph_def, values)


def _value(reader: CheckpointFile, node: NodeDef) -> Any:
    """A variable's value; a part of a partitioned variable is cut from the whole."""
    if node.name in reader:
        return reader.read(node.name)
    whole, _, part = node.name.rpartition("/part_")
    if part.isdigit() and whole in reader and isinstance(reader, BundleReader):
        pieces = sorted(reader.entry(whole).slices, key=lambda s: s.extents)
        if int(part) < len(pieces):
            extents = pieces[int(part)].extents
            value = reader.read(whole)
            return value[tuple(slice(None) if n < 0 else slice(s, s + n) for s, n in extents)]
    raise ValueError(f"the variable '{node.name}' is not in the checkpoint '{reader.prefix}'")


def strip_unused_from_files(
    input_graph: str,
    input_binary: bool,
    output_graph: str,
    output_binary: bool,
    input_node_names: str,
    output_node_names: str,
    placeholder_type_enum: Any,
) -> GraphDef:
    """``tensorflow.python.tools.strip_unused``: the part of a GraphDef file between inputs and
    outputs (names that commas divide), written to another file.
    """
    del input_binary  # text and binary are told apart by looking
    if not os.path.exists(input_graph):
        raise ValueError(f"Input graph file '{input_graph}' does not exist!")
    inputs, outputs = _names(input_node_names), _names(output_node_names)
    if not outputs:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    stripped = strip_unused(read_graph_def(input_graph), inputs, outputs, placeholder_type_enum)
    folder, name = os.path.split(os.path.abspath(output_graph))
    write_graph(stripped, folder, name, as_text=not output_binary)
    return stripped


def freeze_graph(
    input_graph: GraphDef,
    input_saver: str | None,
    input_binary: bool,
    input_checkpoint: str,
    output_node_names: str,
    restore_op_name: str,
    filename_tensor_name: str,
    output_graph: str,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: str | None = None,
    input_saved_model_dir: Any = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = 2,
) -> Any:
    """TF's tool: a GraphDef (or MetaGraph) file with a checkpoint, or a SavedModel, to a frozen
    GraphDef file.
    """
    del input_binary  # text and binary are told apart by looking
    graph_def = read_graph_def(input_graph) if input_graph else None
    meta = read_meta_graph(input_meta_graph) if input_meta_graph else None
    if graph_def is None and meta is None and not input_saved_model_dir:
        raise ValueError("give input_graph, input_meta_graph or input_saved_model_dir")
    return freeze_graph_with_def_protos(
        graph_def,
        input_saver,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta,
        input_saved_model_dir,
        saved_model_tags,
        checkpoint_version,
    )
