"""What a backward pass did, kept with the graph: by it, rewriting finds the gradient of several
operations at once.

for done in passes(graph):
    dy = done.arrived[op][0]          # the gradient that came in at an operation's output
    dx = done.sent[op][0]             # what it gave to its input
    done.given[x]                     # all that was given to x, and by whom
    done.sums[x]                      # the sum of it, if there were several
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor

__all__ = ["Given", "Pass", "passes"]


class Given(NamedTuple):
    """A gradient that a tensor got from one of its users.

    None: from a loop, or the pass began here.
    """

    by: Operation | None
    grad: Any


class Pass:
    """One backward pass over a graph.

    ``arrived`` and ``sent`` lack operations whose gradient function is the user's.
    """

    __slots__ = ("arrived", "given", "sent", "sums")

    def __init__(self) -> None:
        self.arrived: dict[Operation, Sequence[Any]] = {}
        self.sent: dict[Operation, Sequence[Any]] = {}
        self.given: dict[Tensor, list[Given]] = {}
        self.sums: dict[Tensor, Any] = {}


def passes(graph: Graph) -> list[Pass]:
    """The backward passes over a graph so far."""
    found: list[Pass] | None = graph._backward_passes
    if found is None:
        found = graph._backward_passes = []
    return found
