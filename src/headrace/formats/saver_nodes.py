"""The operations by which a written MetaGraph saves and restores its variables, as NodeDefs.

A SavedModel brings its own way to its variables: SaveV2 and RestoreV2 with the names of all
variables, an assignment for each, and a SaverDef that names them. They are added to the written
graph only, the user's graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.formats.op_list import stripped_op_list
from headrace.formats.tensor_proto import to_message
from headrace.wire.bundle_entries import Slice
from headrace.wire.streams import os_errors
from headrace.wire.tensor_bundle import BundleWriter

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    from headrace.session.session import BaseSession

__all__ = [
    "Saved",
    "SavedTable",
    "add_saver",
    "add_saver_for",
    "saved_variables",
    "write_variables",
]

_STRING = 7


class Saved(NamedTuple):
    """A variable as a checkpoint knows it."""

    name: str  # of the tensor in the checkpoint
    variable: Any
    slice_text: str  # "" or the part of a larger variable that it is


class SavedTable(NamedTuple):
    """A changing table: its entries are the tensors ``<name>-keys`` and ``<name>-values``."""

    name: str
    handle: str  # the node
    key_type: int
    value_type: int


def saved_variables(graph: Graph) -> list[Saved]:
    """The variables that a saver of the whole graph has, by name."""
    out = []
    for variable in dict.fromkeys(graph.get_collection(GraphKeys.GLOBAL_VARIABLES)):
        info = variable._get_save_slice_info()
        name = variable.op.name if info is None else info.full_name
        out.append(Saved(name, variable, "" if info is None else info.spec))
    return sorted(out, key=lambda s: (s.name, s.slice_text))


def write_variables(sess: BaseSession, prefix: str) -> None:
    """The values of a session's variables as a checkpoint."""
    found = saved_variables(sess.graph)
    values = sess.run([s.variable for s in found]) if found else []
    with os_errors(prefix), BundleWriter(prefix) as writer:
        for saved, value in zip(found, values):
            info = saved.variable._get_save_slice_info()
            if info is None:
                writer.add(saved.name, value, saved.variable.dtype.base_dtype.as_datatype_enum)
            else:
                extents = tuple(zip(info.var_offset, info.var_shape))
                writer.add_slice(saved.name, info.full_shape, Slice(extents), value)


def add_saver(meta: object, graph: Graph) -> None:
    """Add the operations, and a SaverDef, to a MetaGraphDef; nothing if there are no variables."""
    add_saver_for(meta, saved_variables(graph))


def add_saver_for(meta: MetaGraphDef, found: Sequence[Saved | SavedTable]) -> None:
    """As ``add_saver``, for these variables and tables."""
    if not found:
        return
    taken = {n.name.partition("/")[0] for n in meta.graph_def.node}
    prefix, i = "save", 0
    while prefix in taken:
        i += 1
        prefix = f"save_{i}"
    nodes = _Nodes(meta.graph_def, prefix)
    nodes.filename()
    nodes.save(found)
    nodes.restore(found)
    saver = meta.saver_def
    saver.filename_tensor_name = f"{prefix}/Const:0"
    saver.save_tensor_name = f"{prefix}/control_dependency:0"
    saver.restore_op_name = f"{prefix}/restore_all"
    saver.max_to_keep, saver.keep_checkpoint_every_n_hours, saver.version = 5, 10000.0, 2
    meta.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list(meta.graph_def))


class _Nodes:
    def __init__(self, graph_def: GraphDef, prefix: str) -> None:
        self.graph_def = graph_def
        self.prefix = prefix

    def add(self, name: str, op: str, inputs: Sequence[str] = (), **types: object) -> str:
        """A node with type attributes; returns its full name."""
        node = self.graph_def.node.add(name=f"{self.prefix}/{name}", op=op, input=list(inputs))
        for key, value in types.items():
            if isinstance(value, list):
                node.attr[key].list.type.extend(value)
            else:
                node.attr[key].type = value
        return f"{self.prefix}/{name}"

    def strings(self, name: str, values: Sequence[str] | str) -> str:
        full = self.add(name, "Const", dtype=_STRING)
        array: Any = np.empty((), object)
        if isinstance(values, str):
            array[()] = values.encode()
        else:
            array = np.empty(len(values), object)
            array[:] = [v.encode() for v in values]
        to_message(array, None, self.graph_def.node[-1].attr["value"].tensor)
        return full

    def filename(self) -> None:
        default = self.strings("filename/input", "model")
        for name, source in (("filename", default), ("Const", f"{self.prefix}/filename")):
            self.add(name, "PlaceholderWithDefault", [source], dtype=_STRING)
            self.graph_def.node[-1].attr["shape"].shape.SetInParent()

    def save(self, found: Sequence[Saved | SavedTable]) -> None:
        names = self.strings("SaveV2/tensor_names", _tensor_names(found))
        slices = self.strings("SaveV2/shape_and_slices", _slice_texts(found))
        inputs = [tensor for i, saved in enumerate(found) for tensor in self.read(i, saved)]
        name = self.add(
            "SaveV2",
            "SaveV2",
            [f"{self.prefix}/Const", names, slices, *inputs],
            dtypes=_types(found),
        )
        self.add("control_dependency", "Identity", [f"{self.prefix}/Const", f"^{name}"], T=_STRING)

    def read(self, i: int, saved: Saved | SavedTable) -> list[str]:
        """The tensors that are saved of a variable or a table."""
        if isinstance(saved, SavedTable):
            kinds = {"Tkeys": saved.key_type, "Tvalues": saved.value_type}
            name = self.add(f"Export_{i}", "LookupTableExportV2", [saved.handle], **kinds)
            return [name, f"{name}:1"]
        handle = saved.variable.op
        if handle.type != "VarHandleOp":
            return [str(handle.name)]
        (kind,) = _types([saved])
        name = f"Read_{i}/ReadVariableOp"
        return [self.add(name, "ReadVariableOp", [handle.name], dtype=kind)]

    def restore(self, found: Sequence[Saved | SavedTable]) -> None:
        names = self.strings("RestoreV2/tensor_names", _tensor_names(found))
        slices = self.strings("RestoreV2/shape_and_slices", _slice_texts(found))
        source = self.add(
            "RestoreV2", "RestoreV2", [f"{self.prefix}/Const", names, slices], dtypes=_types(found)
        )
        done, at = [], 0
        for i, saved in enumerate(found):
            count = len(_types([saved]))
            values = [f"{source}:{k}" if k else source for k in range(at, at + count)]
            done.append(self.assign(saved, values, f"_{i}" if i else ""))
            at += count
        self.add("restore_all", "NoOp", [f"^{n}" for n in done])

    def assign(self, saved: Saved | SavedTable, values: Sequence[str], suffix: str) -> str:
        """The node that gives a variable or a table what was read."""
        if isinstance(saved, SavedTable):
            kinds = {"Tin": saved.key_type, "Tout": saved.value_type}
            inputs = [saved.handle, *values]
            return self.add(f"Import{suffix}", "LookupTableImportV2", inputs, **kinds)
        (kind,), op = _types([saved]), saved.variable.op
        if op.type == "VarHandleOp":
            value = self.add(f"Identity{suffix}", "Identity", values, T=kind)
            name = f"AssignVariableOp{suffix}"
            return self.add(name, "AssignVariableOp", [op.name, value], dtype=kind)
        name = self.add(f"Assign{suffix}", "Assign", [op.name, *values], T=kind)
        node = self.graph_def.node[-1]
        node.attr["use_locking"].b = node.attr["validate_shape"].b = True
        node.attr["_class"].list.s.append(f"loc:@{op.name}".encode())
        return name


def _tensor_names(found: Sequence[Saved | SavedTable]) -> list[str]:
    parts = [("-keys", "-values") if isinstance(s, SavedTable) else ("",) for s in found]
    return [saved.name + part for saved, own in zip(found, parts) for part in own]


def _slice_texts(found: Sequence[Saved | SavedTable]) -> list[str]:
    parts = [["", ""] if isinstance(s, SavedTable) else [s.slice_text] for s in found]
    return [text for own in parts for text in own]


def _types(found: Sequence[Saved | SavedTable]) -> list[int]:
    out: list[int] = []
    for saved in found:
        if isinstance(saved, SavedTable):
            out += [saved.key_type, saved.value_type]
        else:
            out.append(saved.variable.dtype.base_dtype.as_datatype_enum)
    return out
