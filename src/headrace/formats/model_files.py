"""A model from whatever file it is in: a GraphDef, a MetaGraph with its checkpoint, or a
SavedModel.

model = open_model("frozen.pb")
model.inputs, model.outputs                    # names -> tensors of model.graph
model.session.run(model.outputs["y"], {model.inputs["x"]: value})
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core.graph import Graph
from headrace.core.opdef import traits_of
from headrace.core.tensor import Operation, Tensor
from headrace.formats.freezing import freeze_graph_def, variable_nodes
from headrace.formats.function_calls import FunctionLibrary
from headrace.formats.graphdef_nodes import op_definition
from headrace.formats.graphdef_reader import import_graph_def, read_graph_def
from headrace.formats.graphdef_writer import graph_def_of
from headrace.formats.meta_graph import read_meta_graph
from headrace.formats.saved_model import (
    SavedModelLoader,
    assets_of,
    contains_saved_model,
    read_saved_model,
)
from headrace.formats.subgraphs import extract_sub_graph, source_of
from headrace.ops.io.checkpoint_ops import CHECKPOINT_OPS, open_checkpoint
from headrace.program.variable_reads import variable_key
from headrace.session.session import Session
from headrace.train.checkpoint_files import (
    checkpoint_exists,
    latest_checkpoint,
    meta_graph_filename,
)
from headrace.train.saver import import_meta_graph
from headrace.wire.slice_files import is_slice_file
from headrace.wire.tensor_bundle import BundleReader, bundle_exists

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

__all__ = [
    "Model",
    "Summary",
    "freeze_model",
    "kind_of_file",
    "missing_ops",
    "open_model",
    "summarize",
]


class Model(NamedTuple):
    """A graph with a session that has its variables, and what goes in and out."""

    graph: Graph
    session: Session
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


def kind_of_file(path: str) -> str:
    """ "saved_model", "meta", "checkpoint" or "graph"; OSError if there is no such file."""
    if os.path.isdir(path):
        if contains_saved_model(path):
            return "saved_model"
        if latest_checkpoint(path) is not None:
            return "checkpoint"
        raise OSError(
            f"the folder '{path}' holds no SavedModel (saved_model.pb) and no checkpoints"
        )
    if path.endswith(".meta"):
        return "meta"
    if path.endswith(".index") or (bundle_exists(path) and not os.path.exists(path)):
        return "checkpoint"
    if is_slice_file(path):
        return "checkpoint"
    if not os.path.exists(path):
        raise OSError(f"there is no file '{path}'")
    return "graph"


def open_model(path: str, tags: Sequence[str] | None = None, signature: str | None = None) -> Model:
    """Load a model.

    ``tags``: of a MetaGraph in a SavedModel; "serve", or those of the only one, if None.
    Of a SavedModel the inputs and outputs are those of a signature (``serving_default`` if there is
    one).
    """
    kind = kind_of_file(path)
    graph = Graph()
    session = Session(graph=graph)
    with graph.as_default():
        if kind == "saved_model":
            meta = SavedModelLoader(path).load(session, _tags(path, tags))
            chosen = _signature(meta, signature)
            if chosen is not None:
                return Model(
                    graph, session, _named(graph, chosen.inputs), _named(graph, chosen.outputs)
                )
        elif kind == "graph":
            import_graph_def(read_graph_def(path), name="")
        else:
            prefix = _prefix(path)
            saver = import_meta_graph(meta_graph_filename(prefix))
            if saver is not None and checkpoint_exists(prefix):
                saver.restore(session, prefix)
    return Model(graph, session, *_ends(graph))


def _prefix(path: str) -> str:
    """The prefix of a checkpoint, from a path that :func:`kind_of_file` knows."""
    found = latest_checkpoint(path) if os.path.isdir(path) else None
    return found or path.removesuffix(".meta").removesuffix(".index")


def _tags(path: str, wanted: Sequence[str] | None) -> Sequence[str]:
    """The wanted tags; if None "serve", or those of the only MetaGraph."""
    if wanted is not None:
        return wanted
    metas = read_saved_model(path).meta_graphs
    return list(metas[0].meta_info_def.tags) if len(metas) == 1 else ["serve"]


def _signature(meta: MetaGraphDef, name: str | None) -> Any:
    names = [n for n in meta.signature_def if not n.startswith("__")]
    if name is None:
        name = "serving_default" if "serving_default" in names else next(iter(sorted(names)), None)
    if name is None:
        return None
    if name not in names:
        raise ValueError(
            f"there is no signature '{name}'; the model has {', '.join(sorted(names))}"
        )
    return meta.signature_def[name]


def _named(graph: Graph, infos: Any) -> dict[str, Tensor]:
    return {k: graph.get_tensor_by_name(infos[k].name) for k in sorted(infos) if infos[k].name}


def _ends(graph: Graph) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Placeholders, and tensors of operations that nothing reads; without those of savers."""
    operations = graph.get_operations()
    scopes = _saver_scopes([(op.name, op.type) for op in operations])
    inputs = {
        op.name: op.outputs[0] for op in operations if op.type in ("Placeholder", "PlaceholderV2")
    }
    read = {t._op for op in operations for t in op._inputs}
    read.update(c for op in operations for c in op._control_inputs)
    outputs: dict[str, Tensor] = {}
    for op in operations:
        if op.outputs and op not in read and _computes(op) and not op.name.startswith(scopes):
            outputs.update(
                (op.name if i == 0 else f"{op.name}:{i}", t) for i, t in enumerate(op.outputs)
            )
    return inputs, outputs


def _computes(op: Operation) -> bool:
    """Whether an operation is a result rather than a constant or a step of training or saving."""
    traits = op._opdef.traits
    quiet = op.type == "Const" or traits.role in ("handle", "variable", "placeholder")
    return not (quiet or traits.writes)


def _saver_scopes(nodes: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The scopes of savers in a graph of (name, type)."""
    scopes = {name.rpartition("/")[0] for name, op in nodes if op in CHECKPOINT_OPS}
    return tuple(f"{scope}/" for scope in sorted(scopes) if scope)


def freeze_model(
    path: str,
    outputs: Sequence[str],
    tags: Sequence[str] | None = None,
    signature: str | None = None,
) -> Any:
    """A GraphDef of a model with its variables as constants.

    ``outputs`` default to the model's own.
    """
    model = open_model(path, tags, signature)
    names = list(outputs) or [t.op.name for t in model.outputs.values()]
    if not names:
        raise ValueError("the model has no outputs: name them")
    graph_def = extract_sub_graph(
        graph_def_of(model.graph, expand_calls=True), [source_of(n) for n in names]
    )
    state, values = model.session._state, {}
    for node in variable_nodes(graph_def):
        op = model.graph.get_operation_by_name(node.name)
        values[node.name] = state.need(variable_key(op), op)
    return freeze_graph_def(graph_def, values)


# looking at files ---------------------------------------------------------------------------------


class Summary(NamedTuple):
    """What is in a file, without running anything of it."""

    kind: str
    lines: list[str]
    missing: dict[str, int]  # op types that are not defined here, and how often they occur


def missing_ops(graph_def: GraphDef) -> dict[str, int]:
    """Op types of a GraphDef and its functions that cannot be run here."""
    library = FunctionLibrary(graph_def.library.function, graph_def.library.gradient)
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    counts = Counter(n.op for n in nodes if not library.is_call(n.op))
    return {op: n for op, n in sorted(counts.items()) if op_definition(op) is None}


def summarize(path: str) -> Summary:
    """The contents of a model file or checkpoint, in lines to print."""
    kind = kind_of_file(path)
    if kind == "checkpoint":
        return Summary(kind, _checkpoint_lines(_prefix(path)), {})
    if kind == "graph":
        graph_def = read_graph_def(path)
        return Summary(kind, _graph_lines(graph_def), missing_ops(graph_def))
    metas = [read_meta_graph(path)] if kind == "meta" else list(read_saved_model(path).meta_graphs)
    lines: list[str] = []
    missing: dict[str, int] = {}
    for meta in metas:
        lines += _meta_lines(meta)
        missing.update(missing_ops(meta.graph_def))
    return Summary(kind, lines, missing)


def _shape_text(shape: Any) -> str:
    if shape.unknown_rank:
        return "?"
    return "[" + ", ".join("?" if d.size < 0 else str(d.size) for d in shape.dim) + "]"


def _type_text(number: int) -> str:
    from headrace.core.dtypes import as_dtype

    try:
        return as_dtype(number).name
    except TypeError:
        return f"type {number}"


def _graph_lines(graph_def: GraphDef) -> list[str]:
    counts = Counter(n.op for n in graph_def.node)
    constants = sum(n.attr["value"].tensor.ByteSize() for n in graph_def.node if n.op == "Const")
    read = {source_of(t) for n in graph_def.node for t in n.input}
    lines = [
        f"{len(graph_def.node)} nodes, {len(counts)} op types, "
        f"{len(graph_def.library.function)} functions, "
        f"constants {constants:,} bytes, producer version {graph_def.versions.producer}"
    ]
    scopes = _saver_scopes([(n.name, n.op) for n in graph_def.node])
    own = [n for n in graph_def.node if not n.name.startswith(scopes)]
    for n in own:
        if traits_of(n.op).role == "placeholder":
            shape = _shape_text(n.attr["shape"].shape) if "shape" in n.attr else "?"
            lines.append(f"input   {n.name}  {_type_text(n.attr['dtype'].type)} {shape}")
    for n in own:
        quiet = n.op == "Const" or traits_of(n.op).role in ("nothing", "placeholder")
        if n.name not in read and not quiet:
            lines.append(f"output  {n.name}  ({n.op})")
    variables = variable_nodes(graph_def)
    lines += [
        f"variable {n.name}  {_type_text(n.attr['dtype'].type)} "
        f"{_shape_text(n.attr['shape'].shape)}"
        for n in variables
    ]
    lines += [f"{n:6} {op}" for op, n in counts.most_common()]
    return lines


def _meta_lines(meta: MetaGraphDef) -> list[str]:
    lines = [
        f"MetaGraph, tags: {', '.join(meta.meta_info_def.tags) or '-'}; written by "
        f"TensorFlow {meta.meta_info_def.tensorflow_version or '?'}"
    ]
    for name, signature in sorted(meta.signature_def.items()):
        lines.append(f"signature {name}  {signature.method_name}")
        for what, infos in (("input", signature.inputs), ("output", signature.outputs)):
            for key, info in sorted(infos.items()):
                lines.append(
                    f"  {what:6} {key}: {info.name}  {_type_text(info.dtype)} "
                    f"{_shape_text(info.tensor_shape)}"
                )
    lines += [f"asset {name} -> {tensor}" for tensor, name in assets_of(meta)]
    if meta.collection_def:
        lines.append(f"collections: {', '.join(sorted(meta.collection_def))}")
    return lines + _graph_lines(meta.graph_def)


def _checkpoint_lines(prefix: str) -> list[str]:
    reader = open_checkpoint(prefix)
    names = reader.names()
    total = sum(reader.stored_bytes(name) for name in names)
    files = f"{reader.shards} shards" if isinstance(reader, BundleReader) else "V1"
    return [
        f"checkpoint of {len(names)} tensors, {files}, {total:,} bytes",
        *(f"{n}  {_type_text(reader.dtype(n))} {list(reader.shape(n))}" for n in names),
    ]
