"""Taking back what was just added to a graph, when the rest of it turned out to be wrong.

with all_or_nothing(graph):
    ...  # an error in here leaves the graph as it was
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.core.graph import Graph

__all__ = ["all_or_nothing"]


@contextmanager
def all_or_nothing(graph: Graph) -> Iterator[None]:
    """Withdraw the operations that the block added, and their names, if it fails.

    Inside of a branch, a loop or a function, which know their operations too, they stay.
    """
    before, names = len(graph._ops), dict(graph._names_in_use)
    is_inner = graph._is_function or graph._context is not None
    try:
        yield
    except BaseException:
        if not is_inner:
            _withdraw(graph, before, names)
        raise


def _withdraw(graph: Graph, before: int, names: dict[str, int]) -> None:
    with graph._lock:
        for op in graph._ops[before:]:
            graph._by_name.pop(op.name, None)
        del graph._ops[before:]
        graph._names_in_use.clear()
        graph._names_in_use.update(names)
        graph._handle_index = ({}, 0)
        graph._inputs_changed()
