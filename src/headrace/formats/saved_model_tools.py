"""``tensorflow.python.tools.saved_model_utils``: what a SavedModel holds, without loading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.formats.saved_model import SavedModelLoader, read_saved_model

if TYPE_CHECKING:
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "read_saved_model"]


def get_saved_model_tag_sets(saved_model_dir: Any) -> list[list[str]]:
    """The tags of each MetaGraph, in their order in the file."""
    metas = read_saved_model(saved_model_dir).meta_graphs
    return [list(meta.meta_info_def.tags) for meta in metas]


def get_meta_graph_def(saved_model_dir: Any, tag_set: str) -> MetaGraphDef:
    """The MetaGraphDef with exactly the tags of ``tag_set``, which commas divide."""
    return SavedModelLoader(saved_model_dir).get_meta_graph_def_from_tags(tag_set.split(","))
