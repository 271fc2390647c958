"""GraphDebugInfo: the lines of the user's program that made the operations of a graph.

    info = graph_debug_info(graph, ["y"])      # traces["y"].file_line_cols, innermost line first

TensorFlow writes it beside a MetaGraph (``g.debug`` for ``g.meta``) with ``save_debug_info=True``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.core.scoped_names import prepend_name_scope
from headrace.core.trace import describe

if TYPE_CHECKING:
    from headrace.core.graph import Graph

__all__ = ["debug_path", "graph_debug_info"]


def debug_path(path: str) -> str:
    """The file beside a MetaGraph's."""
    return f"{os.path.splitext(path)[0]}.debug"


def graph_debug_info(graph: Graph, names: Iterable[str], scope: str | None = None) -> Any:
    """A GraphDebugInfo of the operations with these names, which are below ``scope``."""
    from tensorboard.compat.proto.graph_debug_info_pb2 import GraphDebugInfo

    message = GraphDebugInfo()
    numbers: dict[str, int] = {}
    for name in names:
        op = graph.get_operation_by_name(prepend_name_scope(name, scope))
        trace = message.traces[op.name]
        for file, line, _, _ in reversed(describe(op._frames)):
            number = numbers.setdefault(file, len(numbers))
            trace.file_line_cols.add(file_index=number, line=line)
    message.files.extend(numbers)
    return message
