"""What monitored sessions need of savers and summaries, found when it is first used.

A graph without variables has no saver, and nothing to merge where there are no summaries: both are
None then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.train.saver import Saver

__all__ = [
    "checkpoint_state",
    "default_saver",
    "merged_summaries",
    "meta_graph_of",
    "new_saver",
    "only_saver",
    "session_log",
    "step_summary",
    "summary_writer",
    "write_training_graph",
]


def default_saver() -> Any:
    """The saver of the graph's collection, or a new one for all variables."""
    found = get_collection(GraphKeys.SAVERS)
    if found:
        if len(found) > 1:
            raise RuntimeError(
                "More than one item in collection savers. Please indicate which one to "
                "use by passing it to the "
                "constructor."
            )
        return found[0]
    from headrace.train.saver import Saver

    made = Saver(sharded=True, allow_empty=True)
    add_to_collection(GraphKeys.SAVERS, made)
    return made


def new_saver() -> Saver:
    """A saver of all variables."""
    from headrace.train.saver import Saver

    return Saver()


def only_saver() -> Any:
    """The saver of the collection; RuntimeError if there is none or more than one."""
    found = get_collection(GraphKeys.SAVERS)
    if not found:
        raise RuntimeError(
            "No items in collection savers. Please add a saver to the collection or "
            "provide a saver or scaffold."
        )
    return default_saver()


def checkpoint_state(folder: str) -> Any:
    """The CheckpointState of a folder, or None."""
    from headrace.train.checkpoint_files import get_checkpoint_state

    return get_checkpoint_state(folder)


def merged_summaries() -> Tensor | None:
    """``tf.summary.merge_all()``; None without summaries."""
    if not get_collection(GraphKeys.SUMMARIES):
        return None
    from headrace.train.summaries.summary_functions import merge_all

    return merge_all()


def summary_writer(folder: str, shared: bool = True) -> Any:
    """A writer of event files.

    With ``shared`` the one that all hooks of the process use for a folder.
    """
    from headrace.train.summaries.event_files import FileWriter, FileWriterCache

    return FileWriterCache.get(folder) if shared else FileWriter(folder)


def meta_graph_of(graph: Graph, saver: Saver) -> Any:
    """The MetaGraphDef for event files."""
    from headrace.train.saver import export_meta_graph

    with graph.as_default():
        return export_meta_graph(
            graph_def=graph.as_graph_def(), saver_def=saver.saver_def if saver else None
        )


def write_training_graph(graph: Graph, folder: str) -> None:
    """``graph.pbtxt`` in the folder."""
    from headrace.wire.graph_files import write_graph

    write_graph(graph.as_graph_def(add_shapes=True), folder, "graph.pbtxt")


def session_log(status: str, path: str | None = None) -> Any:
    """A SessionLog message: "START", "STOP" or "CHECKPOINT"."""
    from tensorboard.compat.proto.event_pb2 import SessionLog

    made = SessionLog(status=SessionLog.SessionStatus.Value(status))
    if path is not None:
        made.checkpoint_path = path
    return made


def step_summary(tag: str, value: float) -> Any:
    """A Summary message with one number."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary(value=[Summary.Value(tag=tag, simple_value=value)])
