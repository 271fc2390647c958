"""SavedModels of TF 1: a folder with MetaGraphs, variables and assets.

    builder = SavedModelBuilder("/tmp/model")
    builder.add_meta_graph_and_variables(sess, ["serve"], signature_def_map={...})
    builder.save()
    with tf.Session(graph=tf.Graph()) as sess:
        meta = load(sess, ["serve"], "/tmp/model")

The variables are a checkpoint (``variables/variables``), for which the MetaGraph has operations of
its own (SaveV2, RestoreV2), made in the written graph only. Reading refuses names of assets that
lead out of the folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.file_writes import refuse_file_writes
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.tensor import Operation, Tensor
from headrace.formats.meta_graph import (
    export_scoped_meta_graph,
    import_scoped_meta_graph_with_return_elements,
)
from headrace.formats.saver_nodes import add_saver, write_variables
from headrace.formats.signatures import predict_signature_def
from headrace.wire.graph_files import write_bytes
from headrace.wire.streams import os_errors

if TYPE_CHECKING:
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    from headrace.core.graph import Graph
    from headrace.session.session import BaseSession, Session
    from headrace.train.saver import Saver

__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "INIT_OP_SIGNATURE_KEY",
    "LEGACY_INIT_OP_KEY",
    "MAIN_OP_KEY",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "SavedModelBuilder",
    "SavedModelLoader",
    "TRAIN_OP_KEY",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
    "AssetFolder",
    "asset_path",
    "assets_of",
    "contains_saved_model",
    "load",
    "read_saved_model",
    "simple_save",
]

ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"
LEGACY_INIT_OP_KEY = "legacy_init_op"
MAIN_OP_KEY = "saved_model_main_op"
TRAIN_OP_KEY = "saved_model_train_op"
INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILENAME = "variables"


def saved_model_message() -> Any:
    from headrace.wire.saved_model_messages import saved_model_class

    return saved_model_class()()


# writing ------------------------------------------------------------------------------------------


class SavedModelBuilder:
    """Writes a SavedModel.

    First ``add_meta_graph_and_variables``, then any number of ``add_meta_graph``, then ``save``.
    """

    def __init__(self, export_dir: Any) -> None:
        self._export_dir: str = os.fspath(export_dir)
        self._saved_model = saved_model_message()
        self._saved_model.saved_model_schema_version = SAVED_MODEL_SCHEMA_VERSION
        if os.path.exists(self._export_dir):
            if os.path.isfile(self._export_dir) or os.listdir(self._export_dir):
                raise AssertionError(
                    "Export directory already exists, and isn't empty. Please choose a "
                    "different export directory, or delete "
                    f"all the contents of the specified directory: {self._export_dir}"
                )
        else:
            os.makedirs(self._export_dir)
        self._has_saved_variables = False

    def add_meta_graph_and_variables(
        self,
        sess: BaseSession,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Add the session's graph, and the values of its variables."""
        if self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. "
                "Please invoke `add_meta_graph()` instead."
            )
        folder = os.path.join(self._export_dir, VARIABLES_DIRECTORY)
        saver = saver or _saver_of_objects(sess.graph)
        with sess.graph.as_default():
            meta = self._meta_graph(
                sess.graph,
                tags,
                signature_def_map,
                assets_collection,
                legacy_init_op,
                clear_devices,
                main_op,
                strip_default_attrs,
                saver,
            )
            prefix = os.path.join(folder, VARIABLES_FILENAME)
            os.makedirs(folder, exist_ok=True)
            if saver is not None:
                saver.save(sess, prefix, write_meta_graph=False, write_state=False)
            else:
                write_variables(sess, prefix)
        self._saved_model.meta_graphs.append(meta)
        self._has_saved_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: object = None,
    ) -> None:
        """Add the default graph, for the variables that were saved already."""
        if not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        graph = get_default_graph()
        saver = saver or _saver_of_objects(graph)
        self._saved_model.meta_graphs.append(
            self._meta_graph(
                graph,
                tags,
                signature_def_map,
                assets_collection,
                legacy_init_op,
                clear_devices,
                main_op,
                strip_default_attrs,
                saver,
            )
        )

    def _meta_graph(
        self,
        graph: Graph,
        tags: object,
        signatures: Any,
        assets: Sequence[Tensor] | None,
        legacy_init_op: Any,
        clear_devices: bool,
        main_op: Any,
        strip_default_attrs: bool,
        saver: Any,
    ) -> MetaGraphDef:
        _check_signatures(signatures)
        for op, what in ((main_op, "main_op"), (legacy_init_op, "legacy_init_op")):
            if op is not None and not isinstance(op, Operation):
                raise TypeError(f"{what} needs to be an Operation: {op!r}")
        _add_main_op(graph, legacy_init_op if main_op is None else main_op)
        meta, _ = export_scoped_meta_graph(
            graph=graph,
            clear_devices=clear_devices,
            strip_default_attrs=strip_default_attrs,
            saver_def=None if saver is None else saver.as_saver_def(),
        )
        if saver is None:
            add_saver(meta, graph)
        meta.meta_info_def.tags.extend(tags)
        for key, signature in (signatures or {}).items():
            meta.signature_def[key].CopyFrom(signature)
        self._copy_assets(meta, assets)
        return meta

    def _copy_assets(self, meta: MetaGraphDef, assets: Sequence[Any] | None) -> None:
        """Files named by string tensors: copied into the folder, and listed."""
        from headrace.core.infer import static_value

        folder = AssetFolder(self._export_dir)
        for tensor in assets or ():
            value = static_value(tensor) if isinstance(tensor, Tensor) else None
            if value is None or value.shape != ():
                raise ValueError(
                    f"Failed to retrieve asset filepath from {tensor}: it must be a constant string"
                )
            entry = meta.asset_file_def.add(filename=folder.copy(value.item().decode()))
            entry.tensor_info.name = tensor.name
            packed = meta.collection_def[ASSETS_KEY].any_list.value.add()
            packed.type_url = "type.googleapis.com/tensorflow.AssetFileDef"
            packed.value = entry.SerializeToString()

    def save(self, as_text: bool = False) -> bytes:
        """Write the file; returns its path."""
        os.makedirs(self._export_dir, exist_ok=True)
        name = SAVED_MODEL_FILENAME_PBTXT if as_text else SAVED_MODEL_FILENAME_PB
        path = os.path.join(self._export_dir, name)
        if as_text:
            from google.protobuf import text_format

            write_bytes(path, text_format.MessageToString(self._saved_model).encode())
        else:
            write_bytes(path, self._saved_model.SerializeToString(deterministic=True))
        return path.encode()


def _add_main_op(graph: Graph, op: Operation | None) -> None:
    """What a loader runs after it restored the variables; a graph has one at most."""
    if op is None:
        return
    for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
        if graph.get_collection(key):
            raise ValueError(
                f"Graph already contains one or more main ops under the collection {key}."
            )
    graph.add_to_collection(MAIN_OP_KEY, op)


def _saver_of_objects(graph: Graph) -> Saver | None:
    """A saver for a graph with more to save than variables: tables that change, iterators."""
    if not graph.get_collection(GraphKeys.SAVEABLE_OBJECTS):
        return None
    from headrace.train.saver import Saver

    with graph.as_default():
        return Saver(sharded=True, allow_empty=True)


class AssetFolder:
    """The files beside a model that is being saved; equal base names get numbers."""

    def __init__(self, export_dir: str) -> None:
        self._folder = os.path.join(export_dir, ASSETS_DIRECTORY)
        self._sources: dict[str, str] = {}

    def copy(self, source: str) -> str:
        """Copy a file unless that was done already; returns its name in the folder."""
        base = os.path.basename(source)
        name, i = base, 0
        while self._sources.get(name, source) != source:
            i += 1
            name = f"{base}_{i}"
        if name not in self._sources:
            os.makedirs(self._folder, exist_ok=True)
            target = os.path.join(self._folder, name)
            # A model may be saved over the one that it was loaded from.
            with os_errors(target), contextlib.suppress(shutil.SameFileError):
                shutil.copyfile(source, target)
            self._sources[name] = source
        return name


def _check_signatures(signatures: Mapping[str, Any] | None) -> None:
    for key, signature in (signatures or {}).items():
        for group in (signature.inputs, signature.outputs):
            for name, info in group.items():
                kind = info.WhichOneof("encoding")
                if kind is None or (kind == "name" and not info.name):
                    raise AssertionError(
                        "All TensorInfo protos used in the SignatureDefs must have one "
                        "of the 'encoding' fields (e.g., name or "
                        f"coo_sparse) set: '{name}' of '{key}'"
                    )
                if kind != "composite_tensor" and not info.dtype:
                    raise AssertionError(
                        "All TensorInfo protos used in the SignatureDefs must have the "
                        "dtype field set: "
                        f"'{name}' of '{key}'"
                    )


def simple_save(
    session: BaseSession,
    export_dir: object,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    legacy_init_op: Operation | None = None,
) -> None:
    """A SavedModel for serving with one signature, ``inputs`` to ``outputs``.

    ``export_dir`` must not exist. ``inputs`` and ``outputs`` are dicts of tensors by the names of
    the signature "serving_default"; the graph has the tag "serve" and the values of ``session``.
    ``legacy_init_op`` is an operation that loading runs, for example ``tf.tables_initializer()``.
    For more signatures or tags use a ``SavedModelBuilder``.
    """
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        signature_def_map={"serving_default": predict_signature_def(inputs, outputs)},
        assets_collection=session.graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


# reading ------------------------------------------------------------------------------------------


def contains_saved_model(export_dir: str) -> bool:
    """Whether a folder holds a SavedModel: a file ``saved_model.pb`` or ``saved_model.pbtxt``."""
    folder = os.fspath(export_dir)
    names = (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT)
    return any(os.path.isfile(os.path.join(folder, n)) for n in names)


def read_saved_model(export_dir: str) -> Any:
    """The SavedModel message of a folder."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    folder = os.fspath(export_dir)
    binary, text = (
        os.path.join(folder, n) for n in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT)
    )
    message = saved_model_message()
    if os.path.isfile(binary):
        with open(binary, "rb") as file:
            try:
                message.ParseFromString(file.read())
            except DecodeError as error:
                raise OSError(f"Cannot parse file {binary}: {error}.") from None
        return message
    if os.path.isfile(text):
        with open(text, encoding="utf-8") as file:
            try:
                return text_format.Parse(file.read(), message)
            except (UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
                raise OSError(f"Cannot parse file {text}: {error}.") from None
    raise OSError(
        "SavedModel file does not exist at: "
        f"{folder}/{{{SAVED_MODEL_FILENAME_PBTXT}|{SAVED_MODEL_FILENAME_PB}}}"
    )


def asset_path(export_dir: str, filename: str) -> str:
    """Where an asset is; ValueError if its name leads out of the assets folder."""
    folder = os.path.join(export_dir, ASSETS_DIRECTORY)
    path: str = os.path.normpath(os.path.join(folder, filename))
    inside = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    if os.path.isabs(filename) or inside.split(os.sep)[0] == os.pardir or not filename:
        raise ValueError(
            f"the asset {filename!r} lies outside of the SavedModel's folder: the file is "
            "not trusted"
        )
    return path


def assets_of(meta: MetaGraphDef) -> list[tuple[str, str]]:
    """(name of the tensor, name of the file) of each asset.

    TF 1.15 lists them in a collection only.
    """
    found = list(meta.asset_file_def)
    if not found and ASSETS_KEY in meta.collection_def:
        from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

        for packed in meta.collection_def[ASSETS_KEY].any_list.value:
            entry = AssetFileDef()
            entry.ParseFromString(packed.value)
            found.append(entry)
    return [(a.tensor_info.name, a.filename) for a in found]


class SavedModelLoader:
    """Loads MetaGraphs of a SavedModel into graphs and sessions."""

    def __init__(self, export_dir: Any) -> None:
        self._export_dir: str = os.fspath(export_dir)
        self._saved_model = read_saved_model(export_dir)

    @property
    def export_dir(self) -> str:
        return self._export_dir

    @property
    def variables_path(self) -> str:
        return os.path.join(self._export_dir, VARIABLES_DIRECTORY, VARIABLES_FILENAME)

    @property
    def saved_model(self) -> Any:
        return self._saved_model

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> MetaGraphDef:
        wanted = {tags} if isinstance(tags, str) else set(tags)
        have = [set(m.meta_info_def.tags) for m in self._saved_model.meta_graphs]
        for meta, own in zip(self._saved_model.meta_graphs, have):
            if own == wanted:
                return meta
        raise RuntimeError(
            f"MetaGraphDef associated with tags {str(sorted(wanted)).strip('[]')} could "
            "not be found in SavedModel. To inspect "
            "available tag-sets in the SavedModel, please use `headrace inspect`: "
            f"available_tags: {[sorted(h) for h in have]}"
        )

    def load_graph(
        self,
        graph: Graph | None,
        tags: Iterable[str],
        import_scope: str | None = None,
        **kwargs: Any,
    ) -> tuple[Saver | None, Any]:
        """Import the MetaGraph of the tags.

        Returns its saver (None without variables) and the elements that ``return_elements`` names.
        """
        meta = self.get_meta_graph_def_from_tags(tags)
        graph = get_default_graph() if graph is None else graph
        variables, elements = import_scoped_meta_graph_with_return_elements(
            meta, import_scope=import_scope, graph=graph, **kwargs
        )
        from headrace.train.saver import saver_of_meta_graph

        with graph.as_default():
            return saver_of_meta_graph(meta, import_scope, variables), elements

    def restore_variables(
        self, sess: BaseSession, saver: Saver | None, import_scope: str | None = None
    ) -> None:
        """Give the variables their values with the saver of ``load_graph``."""
        from headrace.train.saver import Saver

        key = GraphKeys.GLOBAL_VARIABLES
        if isinstance(saver, Saver):
            with sess.graph.as_default():
                saver.restore(sess, self.variables_path)
        elif saver is not None or sess.graph.get_collection(key, import_scope):
            raise ValueError(
                "No tf.train.Saver object was passed to the function "
                "SavedModelLoader.restore_variables. Since there are variables in the graph, "
                "a saver is required."
            )

    def run_init_ops(
        self, sess: BaseSession, tags: Iterable[str], import_scope: str | None = None
    ) -> None:
        """Run the init operation of the MetaGraph of the tags, if it has one."""
        meta = self.get_meta_graph_def_from_tags(tags)
        self._initialize(sess, meta, f"{import_scope}/" if import_scope else "")

    def load(
        self,
        sess: Session,
        tags: Iterable[str],
        import_scope: str | None = None,
        **saver_kwargs: Any,
    ) -> Any:
        """Import, restore the variables, run the init operation; returns the MetaGraphDef."""
        scope = ""
        if import_scope:  # the scope that the import will be in
            scope = f"{sess.graph.unique_name(import_scope, mark_as_used=False)}/"
        meta = self.get_meta_graph_def_from_tags(tags)
        import_scoped_meta_graph_with_return_elements(
            meta, import_scope=import_scope, graph=sess.graph, **saver_kwargs
        )
        self._restore(sess, meta, scope)
        self._initialize(sess, meta, scope)
        return meta

    def _restore(self, sess: BaseSession, meta: MetaGraphDef, scope: str) -> None:
        if not meta.HasField("saver_def") or not os.path.exists(f"{self.variables_path}.index"):
            return
        saver = meta.saver_def
        restore: Any = sess.graph.as_graph_element(scope + saver.restore_op_name)
        refuse_file_writes([getattr(restore, "op", restore)], "restore operation")
        sess.run(
            scope + saver.restore_op_name, {scope + saver.filename_tensor_name: self.variables_path}
        )

    def _initialize(self, sess: BaseSession, meta: MetaGraphDef, scope: str) -> None:
        feeds = {
            scope + tensor: asset_path(self._export_dir, name) for tensor, name in assets_of(meta)
        }
        names: list[str] = []
        if INIT_OP_SIGNATURE_KEY in meta.signature_def:
            outputs = meta.signature_def[INIT_OP_SIGNATURE_KEY].outputs
            names = [i.name for i in outputs.values()]
        for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
            if not names and key in meta.collection_def:
                names = list(meta.collection_def[key].node_list.value)
        if len(names) > 1:
            raise RuntimeError(f"Expected at most one operation in {MAIN_OP_KEY}, found {names}")
        if names:
            element = sess.graph.as_graph_element(scope + names[0])
            refuse_file_writes([getattr(element, "op", element)], "init operation")
            sess.run(element, feeds)


def load(
    sess: Session,
    tags: Iterable[str],
    export_dir: str,
    import_scope: str | None = None,
    **saver_kwargs: object,
) -> Any:
    """Load the MetaGraph with exactly these tags into a session.

    Graph, variables, assets; returns the MetaGraphDef.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)
