"""MetaGraphs: a graph with its collections and its saver, in one message.

    tf.train.export_meta_graph("/tmp/model.meta")
    saver = tf.train.import_meta_graph("/tmp/model.meta")

Variables and savers in collections are messages of their own (core/collection_protos.py); tensors
and operations are names; numbers and strings are themselves. What cannot be written is left out
with a warning, as in TensorFlow.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.collection_protos import (
    get_collection_proto_type,
    get_from_proto_function,
    get_to_proto_function,
)
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scoped_names import prepend_name_scope, strip_name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.formats.debug_info import debug_path, graph_debug_info
from headrace.formats.graphdef_reader import import_graph_def
from headrace.formats.graphdef_writer import TF_VERSION
from headrace.formats.op_list import strip_default_attrs as strip_defaults
from headrace.formats.op_list import stripped_op_list
from headrace.ops.control.context_messages import CONTEXT_COLLECTIONS, context_messages
from headrace.runtime.file_paths import local_path
from headrace.variables import variable_proto as _variable_proto  # noqa: F401 (registers the collections of variables)
from headrace.wire.graph_files import write_bytes

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
    from tensorboard.compat.proto.saver_pb2 import SaverDef

    from headrace.core.annotations import TensorLike

__all__ = [
    "add_collection_def",
    "create_meta_graph_def",
    "export_scoped_meta_graph",
    "import_scoped_meta_graph",
    "import_scoped_meta_graph_with_return_elements",
    "read_meta_graph",
    "strip_name_scope",
    "prepend_name_scope",
]

_log = logging.getLogger("tensorflow")
_UNBOUND = "$unbound_inputs_"
_VARIABLES = frozenset(
    [
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
        GraphKeys.METRIC_VARIABLES,
        GraphKeys.MODEL_VARIABLES,
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.MOVING_AVERAGE_VARIABLES,
        GraphKeys.GLOBAL_STEP,
    ]
)
#: The version of TensorFlow whose files these are.
_GIT_VERSION = "unknown"


def _messages() -> Any:
    from tensorboard.compat.proto import meta_graph_pb2

    return meta_graph_pb2


# writing ------------------------------------------------------------------------------------------


def _included(item: TensorLike, scope: str | None, left_out: Iterable[str]) -> bool:
    """Whether a member of a collection belongs to what is exported."""
    if not isinstance(item, (Operation, Tensor)) and not hasattr(item, "name"):
        return True
    name = str(getattr(item, "name", ""))
    if name.partition(":")[0] in left_out:
        return False
    if not scope or isinstance(item, (str, bytes)):
        return True
    return name.startswith(scope)


def add_collection_def(
    meta_graph_def: MetaGraphDef,
    key: Any,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Iterable[str] | None = None,
    override_contents: Any = None,
) -> None:
    """Write one collection into a MetaGraphDef; a warning if it cannot be written."""
    if not isinstance(key, (str, bytes)):
        _log.warning(
            "Only collections with string type keys will be serialized. This key has %s", type(key)
        )
        return
    graph = graph or get_default_graph()
    items = override_contents or graph.get_collection(key)
    items = [i for i in items if _included(i, export_scope, set(exclude_nodes or ()))]
    if not items:
        return
    try:
        if key in CONTEXT_COLLECTIONS:
            _write_contexts(meta_graph_def, key, items, graph, export_scope)
        else:
            _write_collection(meta_graph_def.collection_def[key], key, items, export_scope)
    except Exception as error:
        _log.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of "
            "the items don't match field type in "
            "CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
            key,
            error,
        )
        if key in meta_graph_def.collection_def:
            del meta_graph_def.collection_def[key]


def _write_contexts(
    message: MetaGraphDef, key: str, contexts: Sequence[Any], graph: Graph, scope: str | None
) -> None:
    """Branches and loops whose nodes are in the message's graph."""
    prefix = f"{scope.rstrip('/')}/" if scope else ""
    written = {prefix + n.name for n in message.graph_def.node}
    made = context_messages(contexts, graph, scope, written)
    if made:
        data = [m.SerializeToString(deterministic=True) for m in made]
        message.collection_def[key].bytes_list.value.extend(data)


def _write_collection(message: Any, key: Any, items: Sequence[Any], scope: str | None) -> None:
    to_proto = get_to_proto_function(key)
    first = items[0]
    if to_proto is not None:
        for item in items:
            proto = to_proto(item, export_scope=scope)
            if proto is not None:
                message.bytes_list.value.append(proto.SerializeToString())
    elif isinstance(first, (str, bytes)):
        message.bytes_list.value.extend([i if isinstance(i, bytes) else i.encode() for i in items])
    elif isinstance(first, int) and not isinstance(first, bool):
        message.int64_list.value.extend(items)
    elif isinstance(first, float):
        message.float_list.value.extend(items)
    elif hasattr(first, "DESCRIPTOR"):
        for item in items:
            message.any_list.value.add().CopyFrom(item)
    else:
        for item in items:
            if not scope or item.name.startswith(scope):
                message.node_list.value.append(strip_name_scope(item.name, scope))


def create_meta_graph_def(
    meta_info_def: object = None,
    graph_def: object = None,
    saver_def: object = None,
    collection_list: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Iterable[str] | None = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> MetaGraphDef:
    """A MetaGraphDef of a graph (or of ``graph_def``) with its collections."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph, not {type(graph)}")
    for value, kind in (
        (meta_info_def, "MetaInfoDef"),
        (graph_def, "GraphDef"),
        (saver_def, "SaverDef"),
    ):
        if value and getattr(getattr(value, "DESCRIPTOR", None), "name", "") != kind:
            raise TypeError(f"{kind} expected, not {type(value)}")
    graph = graph or get_default_graph()
    message = _messages().MetaGraphDef()
    if meta_info_def:
        message.meta_info_def.MergeFrom(meta_info_def)
    message.meta_info_def.tensorflow_version = TF_VERSION
    message.meta_info_def.tensorflow_git_version = _GIT_VERSION
    message.graph_def.MergeFrom(graph_def or graph.as_graph_def(add_shapes=True))
    if not message.meta_info_def.stripped_op_list.op:
        message.meta_info_def.stripped_op_list.MergeFrom(stripped_op_list(message.graph_def))
    if strip_default_attrs:
        strip_defaults(message.graph_def)
        message.meta_info_def.stripped_default_attrs = True
    if saver_def:
        message.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        only = None
        if clear_extraneous_savers and key == GraphKeys.SAVERS:
            make = get_from_proto_function(key)
            only = [make(saver_def)] if make is not None else None
        add_collection_def(message, key, graph, export_scope, exclude_nodes, only)
    return message


def export_scoped_meta_graph(
    filename: Any = None,
    graph_def: object = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: object = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: object,
) -> tuple[Any, dict[str, Any]]:
    """A MetaGraphDef of (a name scope of) a graph, and the variables in it by their names.

    Written to ``filename`` if given; ``save_debug_info``: and the lines of the program that made
    the operations beside it (``.debug``).
    """
    graph = graph or get_default_graph()
    left_out: set[str] = set()
    unbound: list[str] = []
    if export_scope or clear_extraneous_savers or clear_devices:
        source = graph_def or graph.as_graph_def(add_shapes=True)
        if clear_extraneous_savers:
            left_out = _foreign_savers(source, saver_def)
        graph_def = _part_of(source, export_scope, clear_devices, left_out, unbound)
    if unbound:
        _log.warning(
            "WARNING: The graph has inputs from outside of the scope: %s", sorted(set(unbound))
        )
        if unbound_inputs_col_name:
            graph.clear_collection(unbound_inputs_col_name)
            for name in sorted(set(unbound)):
                graph.add_to_collection(unbound_inputs_col_name, name)
    variables = {
        strip_name_scope(v.name, export_scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
        if _included(v, export_scope, left_out)
    }
    message = create_meta_graph_def(
        graph_def=graph_def,
        graph=graph,
        export_scope=export_scope,
        exclude_nodes=left_out,
        clear_extraneous_savers=clear_extraneous_savers,
        saver_def=saver_def,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )
    if filename:
        path = local_path(filename)
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        except OSError as error:
            raise errors.os_error(error.filename, error) from None
        write_message(path, message, as_text)
        if save_debug_info:
            names = [node.name for node in message.graph_def.node]
            info = graph_debug_info(graph, names, export_scope)
            write_message(debug_path(path), info, as_text)
    return message, variables


def write_message(path: str, message: Any, as_text: bool = False) -> None:
    """A message to a file, whole or not at all."""
    if as_text:
        from google.protobuf import text_format

        write_bytes(path, text_format.MessageToString(message).encode())
    else:
        write_bytes(path, message.SerializeToString(deterministic=True))


def _part_of(
    source: Any, scope: str | None, clear_devices: bool, left_out: set[str], unbound: list[str]
) -> Any:
    """The nodes of a scope, without its name; inputs from outside get a name that marks them."""
    out = type(source)()
    out.versions.CopyFrom(source.versions)
    if source.HasField("library"):
        out.library.CopyFrom(source.library)
    prefix = f"{scope.rstrip('/')}/" if scope else ""
    for node in source.node:
        if node.name in left_out or not node.name.startswith(prefix):
            continue
        new = out.node.add()
        new.CopyFrom(node)
        if clear_devices:
            new.device = ""
        if not scope:
            continue
        new.name = strip_name_scope(node.name, scope)
        for i, text in enumerate(node.input):
            if text.lstrip("^").startswith(prefix):
                new.input[i] = strip_name_scope(text, scope)
            else:
                marked = text.lstrip("^")
                new.input[i] = ("^" if text[:1] == "^" else "") + _UNBOUND + marked
                unbound.append(new.input[i])
        if "frame_name" in new.attr:
            new.attr["frame_name"].s = strip_name_scope(node.attr["frame_name"].s, scope)
        if "_class" in new.attr:
            names = [
                s for s in new.attr["_class"].list.s if s.startswith(b"loc:@" + prefix.encode())
            ]
            new.attr["_class"].list.s[:] = [strip_name_scope(s, scope) for s in names]
    return out


def _foreign_savers(graph_def: GraphDef, saver_def: SaverDef) -> set[str]:
    """Nodes of savers other than ``saver_def``'s.

    All in name scopes that hold Save or Restore operations.
    """
    kinds = ("SaveV2", "RestoreV2", "SaveSlices", "Save", "Restore", "MergeV2Checkpoints")
    scopes = {n.name.rpartition("/")[0] for n in graph_def.node if n.op in kinds}
    own = saver_def.filename_tensor_name.rpartition("/")[0] if saver_def else None
    scopes -= {own}
    return {n.name for n in graph_def.node if any(n.name.startswith(f"{s}/") for s in scopes if s)}


# reading ------------------------------------------------------------------------------------------


def read_meta_graph(source: Any) -> MetaGraphDef:
    """The MetaGraphDef in a file, binary or text; a message as it is."""
    if getattr(getattr(source, "DESCRIPTOR", None), "name", "") == "MetaGraphDef":
        return source
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    path = local_path(source)
    if not os.path.exists(path):
        raise OSError(f"File {path} does not exist.")
    with open(path, "rb") as file:
        data = file.read()
    message = _messages().MetaGraphDef()
    try:
        message.ParseFromString(data)
        return message
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode("utf-8"), _messages().MetaGraphDef())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
        raise OSError(f"Cannot parse file {path}: {error}.") from None


def import_scoped_meta_graph(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Add a MetaGraph to the default graph; returns its variables by name. Arguments as below."""
    return import_scoped_meta_graph_with_return_elements(*args, **kwargs)[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: object,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Sequence[str] | None = None,
) -> tuple[dict[str, Any], Any]:
    """Add a MetaGraph to a graph.

    Its nodes below ``import_scope``, its collections. Returns variables by name and elements.
    """
    message = read_meta_graph(meta_graph_or_file)
    if unbound_inputs_col_name and unbound_inputs_col_name in message.collection_def:
        _check_bound(message.collection_def[unbound_inputs_col_name], input_map)
    graph = graph or get_default_graph()
    if graph._is_eager:
        raise ValueError(
            "Exporting/importing meta graphs is not supported when eager execution is enabled."
        )
    with graph.as_default():
        producer = None
        if message.meta_info_def.HasField("stripped_op_list"):
            producer = message.meta_info_def.stripped_op_list
        graph_def = message.graph_def
        # inside of a name scope and without an import scope: the name scope
        scope = graph.unique_name(import_scope or "", mark_as_used=False)
        graph_def = _adapted(graph_def, clear_devices, scope)
        elements = import_graph_def(
            graph_def,
            name=import_scope or scope,
            input_map=input_map,
            producer_op_list=producer,
            return_elements=return_elements,
        )
        _read_collections(
            message, graph, scope, unbound_inputs_col_name, restore_collections_predicate
        )
        variables = {
            strip_name_scope(v.name, scope): v
            for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope)
        }
    return variables, elements


def _adapted(graph_def: GraphDef, clear_devices: bool, scope: str) -> GraphDef:
    """The nodes without devices, and their loops with names below a scope."""
    loops = [n for n in graph_def.node if "frame_name" in n.attr] if scope else []
    if not (clear_devices or loops):
        return graph_def
    graph_def = type(graph_def).FromString(graph_def.SerializeToString())
    for node in graph_def.node:
        if clear_devices:
            node.device = ""
        if scope and "frame_name" in node.attr:
            name = node.attr["frame_name"].s.decode()
            node.attr["frame_name"].s = prepend_name_scope(name, scope).encode()
    return graph_def


def _check_bound(collection: Any, input_map: Mapping[str, Any] | None) -> None:
    names = [v.decode() for v in collection.bytes_list.value] or list(collection.node_list.value)
    if names and (not input_map or sorted(names) != sorted(input_map)):
        missing = ",".join(n for n in names if not input_map or n not in input_map)
        raise ValueError(
            f"Graph contains unbound inputs: {missing}. Must provide these inputs through "
            "input_map."
        )


def _read_collections(
    message: Any, graph: Graph, scope: str, unbound: str | None, wanted: Callable[[str], bool]
) -> None:
    version = [int(n) for n in re.findall(r"\d+", message.meta_info_def.tensorflow_version)[:2]]
    says_trainable = not version or version >= [1, 9]
    first = GraphKeys.TRAINABLE_VARIABLES
    made: dict[bytes, Any] = {}
    for key in sorted(message.collection_def, key=lambda k: (k != first, k)):
        if key == unbound or not wanted(key):
            continue
        stored = message.collection_def[key]
        kind = stored.WhichOneof("kind")
        if kind is None:
            _log.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        from_proto = get_from_proto_function(key)
        if from_proto is not None and kind == "bytes_list":
            for data in stored.bytes_list.value:
                shared = made.get(data) if key in _VARIABLES else None
                if shared is None:
                    proto = _parsed(key, data)
                    if key in _VARIABLES and not says_trainable:
                        proto.trainable = key == first
                    shared = from_proto(proto, import_scope=scope)
                    if key in _VARIABLES:
                        made[data] = shared
                if shared is not None:
                    graph.add_to_collection(key, shared)
        else:
            _read_plain(stored, kind, key, graph, scope)


def _parsed(key: str, data: bytes) -> Any:
    """A member of a collection as its message."""
    from google.protobuf.message import DecodeError

    try:
        return get_collection_proto_type(key).FromString(data)
    except DecodeError as error:
        raise ValueError(f"The collection '{key}' is damaged: {error}") from None


def _read_plain(stored: object, kind: str, key: str, graph: Graph, scope: str) -> None:
    for value in getattr(stored, kind).value:
        if kind == "node_list":
            item: Any = graph.as_graph_element(prepend_name_scope(value, scope))
        elif kind == "int64_list":
            item = int(value)
        elif kind == "bytes_list":
            # as TF 1.15: a string is taken for a name, and comes back as text below a scope
            item = prepend_name_scope(value.decode(), scope) if scope else value
        else:
            item = value
        graph.add_to_collection(key, item)
