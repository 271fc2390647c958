"""``tf.train.Saver``: variables to checkpoints and back.

    saver = tf.train.Saver(max_to_keep=3)
    path = saver.save(sess, "/tmp/run/model", global_step=step)
    saver.restore(sess, tf.train.latest_checkpoint("/tmp/run"))

A saver adds operations to the graph when it is made (saver_builder.py); saving runs them, writes
the graph beside the checkpoint (``.meta``), lists the checkpoint in the folder's ``checkpoint``
file, and only then deletes what exceeds ``max_to_keep``.
"""

from __future__ import annotations

import logging
import numbers
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.collection_protos import register_proto_function
from headrace.core.file_writes import refuse_file_writes
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.runtime.file_paths import local_path
from headrace.train.checkpoint_files import (
    checkpoint_exists,
    get_checkpoint_mtimes,
    meta_graph_filename,
    remove_checkpoint,
    sync_checkpoint,
    write_checkpoint_state,
)
from headrace.train.global_step import global_step as read_global_step
from headrace.train.saveables import op_list_to_dict, validate_and_slice_inputs
from headrace.train.saver_builder import BulkSaverBuilder, _messages
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
    from tensorboard.compat.proto.saver_pb2 import SaverDef

    from headrace.core.annotations import TensorLike
    from headrace.core.graph import Graph
    from headrace.session.session import BaseSession

__all__ = ["Saver", "export_meta_graph", "import_meta_graph"]

_log = logging.getLogger("tensorflow")
_V2 = 2


def _all_saveable_objects(scope: str | None = None) -> list[Any]:
    graph = get_default_graph()
    return graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + graph.get_collection(
        GraphKeys.SAVEABLE_OBJECTS, scope
    )


class Saver:
    """Saves and restores variables.

    ``var_list``: a list of variables, saved under their names, or a dict of names and variables;
    all global variables if None. ``reshape``: values may have another shape in the checkpoint.
    ``sharded``: one data file per device. ``max_to_keep``: older checkpoints are deleted (None or
    0: none is), but one every ``keep_checkpoint_every_n_hours``. ``defer_build``: operations are
    added by ``build()``. ``pad_step_number``: steps have eight digits. ``save_relative_paths``: the
    ``checkpoint`` file names checkpoints relative to itself. ``restore_sequentially``, ``builder``,
    ``saver_def`` as in TF 1.15.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = _V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set "
                "defer_build=False or var_list=None."
            )
        self._eager = get_default_graph()._is_eager
        if self._eager and var_list is None:
            raise RuntimeError(
                "When eager execution is enabled, `var_list` must specify a list or dict "
                "of variables to save"
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._builder = builder
        self._is_built = False
        self._allow_empty = allow_empty
        self._is_empty = False
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._filename = filename
        self._last_checkpoints: list[tuple[str, float]] = []
        self._checkpoints_to_be_deleted: list[tuple[str, float]] = []
        self._save_relative_paths = save_relative_paths
        self._object_restore_saver: Saver | None = None
        self._next_checkpoint_time = time.time() + keep_checkpoint_every_n_hours * 3600
        if self._eager:
            self.saver_def = self._eager_saver_def()
        elif not defer_build:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def _eager_saver_def(self) -> Any:
        return _messages().SaverDef(
            max_to_keep=self._max_to_keep or 0,
            sharded=self._sharded,
            version=self._write_version,
            keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
        )

    def build(self) -> None:
        """Add the operations of the saver to the default graph, unless they are there."""
        if self._eager:
            raise RuntimeError("Use save/restore instead of build in eager mode.")
        if self._is_built:
            return
        self._is_built = True
        if not self.saver_def:
            if self._builder is None:
                self._builder = BulkSaverBuilder(self._write_version)
            if self._var_list is None:
                self._var_list = _all_saveable_objects()
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            self.saver_def = self._builder.build(
                self._var_list,
                reshape=self._reshape,
                sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
                name=self._name,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename,
            )
        elif self._name:
            from headrace.formats.meta_graph import prepend_name_scope

            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                value = prepend_name_scope(getattr(self.saver_def, field), self._name)
                setattr(self.saver_def, field, value)
        self._check_saver_def()
        hours = self.saver_def.keep_checkpoint_every_n_hours
        self._next_checkpoint_time = time.time() + hours * 3600

    def _check_saver_def(self) -> None:
        definition = self.saver_def
        if getattr(getattr(definition, "DESCRIPTOR", None), "name", "") != "SaverDef":
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {definition}")
        if self._eager:
            return
        if not definition.save_tensor_name:
            raise ValueError(f"saver_def must specify the save_tensor_name: {definition}")
        if not definition.restore_op_name:
            raise ValueError(f"saver_def must specify the restore_op_name: {definition}")

    # messages -------------------------------------------------------------------------------------
    def as_saver_def(self) -> Any:
        """The SaverDef that names the operations; None for an empty saver."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef without the names of a scope; None if the saver is outside of it."""
        if export_scope is None:
            return self.saver_def
        from headrace.formats.meta_graph import strip_name_scope

        fields = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        if not all(getattr(self.saver_def, f).startswith(export_scope) for f in fields):
            return None
        message = _messages().SaverDef()
        message.CopyFrom(self.saver_def)
        for field in fields:
            setattr(message, field, strip_name_scope(getattr(message, field), export_scope))
        return message

    @staticmethod
    def from_proto(saver_def: object, import_scope: str | None = None) -> Saver:
        """A saver over operations that are in the graph already."""
        return Saver(saver_def=saver_def, name=import_scope)

    # which checkpoints there are ------------------------------------------------------------------
    @property
    def last_checkpoints(self) -> list[str]:
        """Checkpoints that were not deleted yet, from old to new."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """The old way to tell the saver which checkpoints there are."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError("last_checkpoints must be a list")
        self._last_checkpoints = [(path, np.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: list[tuple[str, float]]
    ) -> None:
        """Tell the saver which checkpoints there are, with the times of their making."""
        if not isinstance(last_checkpoints_with_time, list):
            raise AssertionError("last_checkpoints_with_time must be a list")
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: Any) -> None:
        """After a restart: those of ``checkpoint_paths`` that exist count as this saver's."""
        found = []
        for path in checkpoint_paths:
            try:
                found += [(path, time) for time in get_checkpoint_mtimes([path])]
            except errors.NotFoundError:  # its folder is gone
                continue
        self.set_last_checkpoints_with_time(found)

    def _record(self, path: str) -> None:
        if not self.saver_def.max_to_keep:
            return
        self._last_checkpoints = [p for p in self._last_checkpoints if p[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix: str) -> None:
        if not self._checkpoints_to_be_deleted:
            return
        path, made = self._checkpoints_to_be_deleted.pop(0)
        if made > self._next_checkpoint_time:
            self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
            return
        if self._last_checkpoints:
            sync_checkpoint(self._last_checkpoints[0][0])
        try:
            remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)
        except Exception as error:
            _log.warning("Ignoring: %s", error)

    # saving ---------------------------------------------------------------------------------------
    def save(
        self,
        sess: BaseSession,
        save_path: str,
        global_step: TensorLike | None = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Save the variables of a session; returns the path to give to ``restore`` (None for an
        empty saver).

        ``global_step`` (a number or a tensor) is appended to ``save_path``. ``latest_filename`` is
        the name of the file that lists checkpoints. A checkpoint of the same path is replaced as a
        whole: a process that dies leaves the old one or the new.
        """
        if not self._is_built and not self._eager:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest = "checkpoint" if latest_filename is None else latest_filename
        if self._write_version != _V2:
            _log.warning(
                "TensorFlow's V1 checkpoint format has been deprecated. Consider "
                "switching to the more efficient V2 format: "
                "`tf.train.Saver(write_version=tf.train.SaverDef.V2)`, now on by default."
            )
        if os.path.split(latest)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        path = local_path(save_path)
        target = self._target(sess, path, global_step, latest)
        if not self._eager and not hasattr(sess, "run"):
            raise TypeError(f"'sess' must be a Session; {sess}")
        written = None
        if not self._is_empty:
            written = self._save(
                sess, path, target, latest if write_state else None, meta_graph_suffix
            )
        if write_meta_graph and not self._eager:
            with sess.graph.as_default():
                self.export_meta_graph(
                    meta_graph_filename(target, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs,
                    save_debug_info=save_debug_info,
                )
        return written

    def _target(self, sess: Any, path: str, global_step: Any, latest: str) -> str:
        if global_step is None:
            if os.path.basename(path) == latest and not self._sharded:
                raise ValueError(
                    f"'latest_filename' collides with 'save_path': '{latest}' and '{path}'"
                )
            return path
        if not isinstance(global_step, numbers.Integral):
            global_step = int(global_step) if self._eager else read_global_step(sess, global_step)
        return f"{path}-{global_step:08d}" if self._pad_step_number else f"{path}-{global_step:d}"

    def _save(self, sess: Any, path: str, target: str, latest: str | None, suffix: str) -> str:
        parent = os.path.dirname(path)
        try:
            if self._eager:
                written = self._save_eagerly(target)
            else:
                found = sess.run(
                    self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: target}
                )
                written = local_path(found)
            if latest is not None:
                self._record(written)
                write_checkpoint_state(
                    parent, written, self.last_checkpoints, latest, self._save_relative_paths
                )
                self._delete_old(suffix)
        except (errors.FailedPreconditionError, errors.NotFoundError, FileNotFoundError):
            if parent and not os.path.isdir(parent):
                raise ValueError(f"Parent directory of {path} doesn't exist, can't save.") from None
            raise
        return written

    def _named(self) -> dict[str, Any]:
        """Eager variables by name."""
        listed = self._var_list
        return listed if isinstance(listed, dict) else op_list_to_dict(listed)

    def _save_eagerly(self, target: str) -> str:
        from headrace.ops.io.checkpoint_ops import save_v2

        specs = [s for made in validate_and_slice_inputs(self._named()) for s in made.specs]
        specs.sort(key=lambda s: s.name)
        names, slices = [s.name for s in specs], [s.slice_spec for s in specs]
        save_v2(target, names, slices, [s.tensor for s in specs])
        return target

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: object = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> MetaGraphDef:
        """The default graph with its collections and this saver, as a MetaGraphDef.

        Written to ``filename`` if given.
        """
        return export_meta_graph(
            filename=filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            graph_def=None,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )

    # restoring ------------------------------------------------------------------------------------
    def restore(self, sess: Any, save_path: str | None) -> None:
        """Give the saver's variables the values of a checkpoint.

        They need not have been initialised.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = local_path(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        _log.info("Restoring parameters from %s", path)
        try:
            if self._eager:
                self._restore_eagerly(path)
            else:
                sess.run(
                    self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path}
                )
        except errors.NotFoundError as error:
            keys = _object_graph_keys(path)
            if keys is None:
                raise _explained(
                    error, "a Variable name or other graph key that is missing"
                ) from None
            self._restore_objects(sess, path, keys)
        except errors.InvalidArgumentError as error:
            raise _explained(error, "a mismatch between the current graph and the graph") from None

    def _restore_eagerly(self, path: str) -> None:
        from headrace.ops.io.checkpoint_ops import restore_v2

        saveables = validate_and_slice_inputs(self._named())
        specs = [s for made in saveables for s in made.specs]
        names, slices = [s.name for s in specs], [s.slice_spec for s in specs]
        values = iter(restore_v2(path, names, slices, [s.dtype for s in specs]))
        for made in saveables:
            parts = [next(values) for _ in made.specs]
            if isinstance(made.op, Variable):
                made.op.assign(parts[0])
            else:
                made.restore(parts, None)

    def _restore_objects(self, sess: object, path: str, keys: dict[str, str]) -> None:
        """A checkpoint of tf.train.Checkpoint: find the variables by the names that it also has."""
        _log.warning(
            "Restoring an object-based checkpoint using a name-based saver. This may be "
            "somewhat fragile, and will re-build the "
            "Saver. Instead, consider loading object-based checkpoints using tf.train.Checkpoint()."
        )
        listed = _all_saveable_objects() if self._var_list is None else self._var_list
        saveables = validate_and_slice_inputs(listed)
        current = {spec.name for saveable in saveables for spec in saveable.specs}
        if current - set(keys):
            raise errors.NotFoundError(
                None,
                None,
                "\n\nExisting variables not in the checkpoint: "
                f"{', '.join(sorted(current - set(keys)))}\n\nVariables names when "
                "this checkpoint was written which don't exist now: "
                f"{', '.join(sorted(set(keys) - current))}\n\n"
                f"({len(current & set(keys))} variable name(s) did match)\n\nCould not "
                "find some variables in the checkpoint (see "
                "names above). Saver was attempting to load an object-based checkpoint "
                "(saved using tf.train.Checkpoint or "
                "tf.keras.Model.save_weights) using variable names. If the checkpoint was "
                "written with eager execution enabled, "
                "it's possible that variable names have changed (for example missing a "
                "'_1' suffix). It's also possible that "
                "there are new variables which did not exist when the checkpoint was "
                "written. You can construct a Saver(var_list=...) "
                "with only the variables which previously existed, and if variable names "
                "have changed you may need to make this a "
                "dictionary with the old names as keys.",
            )
        if self._object_restore_saver is None:
            for saveable in saveables:
                for spec in saveable.specs:
                    spec.name = keys[spec.name]
            named = {saveable.specs[0].name: saveable for saveable in saveables}
            self._object_restore_saver = Saver(named)
        self._object_restore_saver.restore(sess, path)


def _object_graph_keys(path: str) -> dict[str, str] | None:
    """Keys of an object-based checkpoint by the names that variables had.

    None for any other checkpoint.
    """
    from headrace.train.object_checkpoints import object_graph_key_mapping

    try:
        return object_graph_key_mapping(path)
    except errors.NotFoundError:
        return None


def _explained(error: errors.OpError, reason: str) -> errors.OpError:
    return type(error)(
        error._node_def,
        error.op,
        f"Restoring from checkpoint failed. This is most likely due to {reason} from the "
        "checkpoint. Please ensure that you have "
        "not altered the graph expected based on the checkpoint. Original "
        f"error:\n\n{error.message}",
    )


# MetaGraphs -------------------------------------------------------------------------------------


def export_meta_graph(
    filename: object = None,
    meta_info_def: Any = None,
    graph_def: GraphDef | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> MetaGraphDef:
    """A MetaGraphDef of a graph (or of a name scope in it) with its collections.

    Written to ``filename`` if given.
    """
    from headrace.formats.meta_graph import export_scoped_meta_graph

    if get_default_graph()._is_eager and (graph_def is None or graph is None):
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager "
            "execution is enabled."
        )
    return export_scoped_meta_graph(
        filename=filename,
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        as_text=as_text,
        graph=graph,
        export_scope=export_scope,
        clear_devices=clear_devices,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        save_debug_info=save_debug_info,
        **kwargs,
    )[0]


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:
    """Add the graph and the collections of a MetaGraph to the default graph.

    Returns its saver (None without variables).
    """
    from headrace.formats.meta_graph import (
        import_scoped_meta_graph_with_return_elements,
        read_meta_graph,
    )

    if get_default_graph()._is_eager:
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager "
            "execution is enabled."
        )
    message = read_meta_graph(meta_graph_or_file)
    variables, _ = import_scoped_meta_graph_with_return_elements(
        message, clear_devices=clear_devices, import_scope=import_scope, **kwargs
    )
    return saver_of_meta_graph(message, import_scope, variables)


def saver_of_meta_graph(message: Any, scope: str | None, variables: dict[str, Any]) -> Saver | None:
    """The saver of an imported MetaGraph: its own, or one for the variables that were imported."""
    if message.HasField("saver_def"):
        if variables:  # the scope may have been made unique
            key, sample = next(iter(variables.items()))
            scope = sample.name[: -len(key)]
        definition = _messages().SaverDef()
        definition.CopyFrom(message.saver_def)
        saver = Saver(saver_def=definition, name=scope)
        name = saver.saver_def.restore_op_name
        found = get_default_graph()._by_name.get(name)
        refuse_file_writes([] if found is None else [found], "restore operation")
        return saver
    if _all_saveable_objects(scope):
        return Saver()
    _log.info("Saver not created because there are no variables in the graph to restore")
    return None


register_proto_function(
    GraphKeys.SAVERS,
    lambda: _messages().SaverDef,
    Saver.to_proto,
    Saver.from_proto,
)
