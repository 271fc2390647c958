"""MetaGraphs: a GraphDef with the collections, the saver and the signatures that belong to it.

    meta = export_meta_graph(graph=graph)     # a MetaGraphDef message
    import_meta_graph_def(meta)               # its nodes and collections in the default graph

Collections keep variables (as VariableDefs), tensors and operations (by name), strings and numbers.
What fits none of these is left out, with a warning that names the collection, as in TF 1.15. A kind
of object of its own is registered with ``register_proto_function``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.core.graph import Graph, GraphKeys, get_default_graph
from headrace.core.proto_functions import find_proto_function
from headrace.core.tensor import Operation, Tensor
from headrace.formats.graph_files import write_bytes
from headrace.formats.graphdef_reader import import_graph_def
from headrace.formats.op_list import stripped_op_list
from headrace.formats.subgraphs import source_of
from headrace.variables.variable import Variable

__all__ = [
    "GraphSaver",
    "Imported",
    "add_collections",
    "export_meta_graph",
    "import_meta_graph",
    "import_meta_graph_def",
    "read_meta_graph",
    "write_meta_graph",
]

_log = logging.getLogger("tensorflow")

#: Collections of variables, which are written as VariableDefs.
_VARIABLES = frozenset(
    [
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
        GraphKeys.MODEL_VARIABLES,
        GraphKeys.MOVING_AVERAGE_VARIABLES,
        GraphKeys.METRIC_VARIABLES,
        GraphKeys.GLOBAL_STEP,
        GraphKeys.CONCATENATED_VARIABLES,
        GraphKeys.TRAINABLE_RESOURCE_VARIABLES,
        GraphKeys.WEIGHTS,
        GraphKeys.BIASES,
    ]
)


def _message() -> Any:
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    return MetaGraphDef()


# writing ------------------------------------------------------------------------------------------


def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """A MetaGraphDef of a graph (the default one), also written to ``filename`` if that is given.

    ``collection_list``: the collections to write (all). ``export_scope``: only what is below this
    name scope, without the scope in its names. ``strip_default_attrs`` leaves attributes with their
    default value out, so that older readers can read it. ``save_debug_info`` is refused: a file has
    no place for it that readers of TF 1.15 know.
    """
    if kwargs:
        raise TypeError(
            f"export_meta_graph() got an unexpected keyword argument '{next(iter(kwargs))}'"
        )
    if save_debug_info:
        raise NotImplementedError(
            "save_debug_info is not supported: Headrace writes no debug info files"
        )
    graph = get_default_graph() if graph is None else graph
    if graph._is_eager:
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager "
            "execution is enabled."
        )
    meta = _message()
    if meta_info_def is not None:
        meta.meta_info_def.CopyFrom(meta_info_def)
    meta.graph_def.CopyFrom(_graph_def(graph, graph_def, export_scope, clear_devices))
    _fill_info(meta, strip_default_attrs)
    add_collections(meta, graph, collection_list, export_scope, clear_extraneous_savers)
    if saver_def is not None:
        meta.saver_def.CopyFrom(saver_def)
    if filename is not None:
        write_meta_graph(meta, os.fspath(filename), as_text)
    return meta


def write_meta_graph(meta: Any, path: str, as_text: bool = False) -> None:
    if as_text:
        from google.protobuf import text_format

        write_bytes(path, text_format.MessageToString(meta).encode())
    else:
        write_bytes(path, meta.SerializeToString(deterministic=True))


def _graph_def(graph: Graph, given: Any, scope: str | None, clear_devices: bool) -> Any:
    found = graph.as_graph_def(add_shapes=True) if given is None else given
    out = type(found)()
    out.CopyFrom(found)
    if scope:
        del out.node[:]
        out.node.extend(
            [
                _without_scope(n, scope.rstrip("/"))
                for n in found.node
                if n.name.startswith(scope.rstrip("/") + "/")
            ]
        )
    if clear_devices:
        for node in out.node:
            node.device = ""
    return out


def _without_scope(node: Any, scope: str) -> Any:
    """A node below ``scope`` under its own name.

    An input from outside is a ``$unbound_inputs_`` of its name.
    """
    new = type(node)()
    new.CopyFrom(node)
    new.name = node.name.removeprefix(f"{scope}/")
    del new.input[:]
    for text in node.input:
        mark = "^" if text[:1] == "^" else ""
        bare = text.removeprefix("^")
        if source_of(text).startswith(f"{scope}/"):
            new.input.append(mark + bare.removeprefix(f"{scope}/"))
        elif not mark:
            raise ValueError(
                f"'{node.name}' reads '{text}', which is outside of the export scope "
                f"'{scope}': export what it needs too"
            )
    if "_class" in new.attr:
        groups = [g for g in node.attr["_class"].list.s if g.startswith(f"loc:@{scope}/".encode())]
        del new.attr["_class"]
        if groups:
            new.attr["_class"].list.s.extend([b"loc:@" + g[len(scope) + 6 :] for g in groups])
    return new


def _fill_info(meta: Any, strip_default_attrs: bool) -> None:
    info = meta.meta_info_def
    info.stripped_op_list.CopyFrom(stripped_op_list(meta.graph_def))
    if strip_default_attrs:
        _strip_defaults(meta.graph_def, info.stripped_op_list)
        info.stripped_default_attrs = True
    info.tensorflow_version = "1.15.0"
    info.tensorflow_git_version = "headrace"


def _strip_defaults(graph_def: Any, op_list: Any) -> None:
    defaults = {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in op_list.op
    }
    groups = [graph_def.node, *[f.node_def for f in graph_def.library.function]]
    for node in (n for nodes in groups for n in nodes):
        known = defaults.get(node.op, {})
        for key in [k for k in node.attr if k in known and node.attr[k] == known[k]]:
            del node.attr[key]


def add_collections(
    meta: Any,
    graph: Graph,
    names: Any = None,
    scope: str | None = None,
    clear_extraneous_savers: bool = False,
) -> None:
    """Write the collections of a graph into a MetaGraphDef."""
    for key in list(names) if names is not None else graph.get_all_collection_keys():
        if clear_extraneous_savers and key == GraphKeys.SAVERS:
            continue
        items = [i for i in graph.get_collection(key) if not scope or _is_below(i, scope)]
        if not items and names is None:
            continue
        try:
            _write_collection(meta.collection_def[key], key, items, scope)
        except (TypeError, ValueError, AttributeError) as error:
            del meta.collection_def[key]
            _log.warning(
                "Issue encountered when serializing %s.\nType is unsupported, or the "
                "types of the items don't match field "
                "type in CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
                key,
                error,
            )


def _is_below(item: Any, scope: str) -> bool:
    name = getattr(item, "name", None)
    return isinstance(name, str) and name.startswith(scope.rstrip("/") + "/")


def _write_collection(message: Any, key: str, items: list[Any], scope: str | None) -> None:
    found = find_proto_function(key)
    if found is not None:
        for item in items:
            proto = found.to_proto(item, export_scope=scope)
            if proto is not None:
                message.bytes_list.value.append(proto.SerializeToString())
        return
    if items and all(isinstance(i, Variable) for i in items):
        for item in items:
            message.bytes_list.value.append(item.to_proto(scope).SerializeToString())
        return
    for item in items:
        if isinstance(item, (Tensor, Operation)):
            name = item.name
            message.node_list.value.append(
                name.removeprefix(scope.rstrip("/") + "/") if scope else name
            )
        elif isinstance(item, (str, bytes)):
            message.bytes_list.value.append(item.encode() if isinstance(item, str) else item)
        elif hasattr(item, "SerializeToString"):
            message.bytes_list.value.append(item.SerializeToString())
        elif isinstance(item, bool) or not isinstance(item, (int, float)):
            raise TypeError(f"'{type(item).__name__}' object cannot be written to a collection")
        elif isinstance(item, int):
            message.int64_list.value.append(item)
        else:
            message.float_list.value.append(item)
    if not items:
        message.bytes_list.SetInParent()


# reading ------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    """What importing a MetaGraphDef gave."""

    meta: Any
    variables: dict[str, Any]  # by their names in the file
    elements: list[Any] | None  # what return_elements asked for
    scope: str  # the name scope that they are in, or ""


def read_meta_graph(source: Any) -> Any:
    """A MetaGraphDef from a file (binary or text), or the message itself."""
    if getattr(getattr(source, "DESCRIPTOR", None), "name", "") == "MetaGraphDef":
        return source
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    path = os.fspath(source)
    if not os.path.exists(path):
        raise OSError(f"File {path} does not exist.")
    with open(path, "rb") as file:
        data = file.read()
    meta = _message()
    try:
        meta.ParseFromString(data)
        return meta
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode("utf-8"), _message())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
        raise OSError(f"Cannot parse file {path}: {error}.") from None


def import_meta_graph_def(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Any = None,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    graph: Graph | None = None,
) -> Imported:
    """Add the nodes and collections of a MetaGraphDef to a graph (the default one)."""
    graph = get_default_graph() if graph is None else graph
    if graph._is_eager:
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager "
            "execution is enabled."
        )
    meta = read_meta_graph(meta_graph_or_file)
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = type(graph_def)()
        graph_def.CopyFrom(meta.graph_def)
        for node in graph_def.node:
            node.device = ""
    info = meta.meta_info_def
    ops = info.stripped_op_list if info.HasField("stripped_op_list") else None
    with graph.as_default():
        # the scope that the import will be in
        scope = graph.unique_name(import_scope, mark_as_used=False) if import_scope else ""
        found = import_graph_def(
            graph_def,
            input_map=input_map,
            return_elements=return_elements,
            name=import_scope or "",
            producer_op_list=ops,
        )
        variables = _read_collections(meta, graph, scope, restore_collections_predicate)
    return Imported(meta, variables, found, scope)


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Any:
    """Add a MetaGraph to the default graph; returns a Saver for its variables, or None if it has
    none.

    ``kwargs``: ``input_map``, ``return_elements``, ``restore_collections_predicate`` (see
    import_meta_graph_def).
    """
    found = import_meta_graph_def(meta_graph_or_file, clear_devices, import_scope, **kwargs)
    return GraphSaver(found) if found.meta.HasField("saver_def") else None


class GraphSaver:
    """Saves and restores by the operations that an imported graph has for it."""

    def __init__(self, found: Imported) -> None:
        self.saver_def = found.meta.saver_def
        self._scope = f"{found.scope}/" if found.scope else ""

    def as_saver_def(self) -> Any:
        return self.saver_def

    def restore(self, sess: Any, save_path: Any) -> None:
        """Give the variables of a session the values of a checkpoint."""
        self._run(sess, self.saver_def.restore_op_name, os.fspath(save_path))

    def save(self, sess: Any, save_path: Any, global_step: Any = None) -> str:
        """Write a checkpoint.

        ``global_step`` (a number, a tensor or a variable) is added to its name. Returns its path.
        """
        path: str = os.fspath(save_path)
        if global_step is not None:
            step = global_step if isinstance(global_step, int) else int(sess.run(global_step))
            path = f"{path}-{step}"
        self._run(sess, self.saver_def.save_tensor_name, path)
        return path

    def _run(self, sess: Any, name: str, path: str) -> None:
        sess.run(self._scope + name, {self._scope + self.saver_def.filename_tensor_name: path})


def _read_collections(
    meta: Any, graph: Graph, scope: str, wanted: Callable[[str], bool]
) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for key in sorted(meta.collection_def):
        if not wanted(key):
            continue
        message = meta.collection_def[key]
        kind = message.WhichOneof("kind")
        if kind is None:
            _log.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        if kind == "bytes_list":
            _read_bytes(key, message.bytes_list.value, graph, scope, variables)
            continue
        for value in getattr(message, kind).value:
            if kind == "node_list":
                value = graph.as_graph_element(f"{scope}/{value}" if scope else value)
            graph.add_to_collection(key, int(value) if kind == "int64_list" else value)
    return variables


def _read_bytes(key: str, values: Any, graph: Graph, scope: str, variables: dict[str, Any]) -> None:
    found = find_proto_function(key)
    if found is not None:
        for data in values:
            message = found.message()
            message.ParseFromString(data)
            graph.add_to_collection(key, found.from_proto(message, import_scope=scope or None))
        return
    for data in values:
        variable = _variable(key, data, scope, variables)
        graph.add_to_collection(key, data if variable is None else variable)


def _variable(key: str, data: bytes, scope: str, variables: dict[str, Any]) -> Any:
    """The variable that a VariableDef describes.

    One object for each, in however many collections it is.
    """
    if key not in _VARIABLES:
        return None
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.variable_pb2 import VariableDef

    message = VariableDef()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    known = variables.get(message.variable_name)
    if known is None:
        known = variables[message.variable_name] = Variable.from_proto(
            message, import_scope=scope or None
        )
    return known
