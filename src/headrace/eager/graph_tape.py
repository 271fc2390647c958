"""Tapes in the body of a function: the graph is the record, and ``tf.gradients`` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.autodiff.gradients import UnconnectedGradients
from headrace.autodiff.gradients import gradients as graph_gradients
from headrace.core.graph import Graph, get_default_graph
from headrace.core.tensor import Tensor
from headrace.eager.eager_tensor import EagerTensor

__all__ = ["Spans", "gradients", "is_symbolic"]


class Spans:
    """Which operations of which graph were made while a tape was recording: those between two counts."""

    def __init__(self) -> None:
        self.graph: Graph | None = None
        self.spans: list[tuple[int, int | None]] = []

    def start(self) -> None:
        graph = get_default_graph()
        if graph._is_eager:
            return
        if self.graph is not graph:
            self.graph, self.spans = graph, []
        self.spans.append((len(graph._ops), None))

    def stop(self) -> None:
        if self.graph is not None and self.spans and self.spans[-1][1] is None:
            self.spans[-1] = (self.spans[-1][0], len(self.graph._ops))

    def missed(self) -> list[Tensor]:
        """What was made between two recordings: gradients do not pass through it."""
        if self.graph is None:
            return []
        out: list[Tensor] = []
        for (_, end), (start, _) in zip(self.spans, self.spans[1:]):
            for op in self.graph._ops[end:start]:
                out.extend(op._outputs)
        return out


def is_symbolic(targets: Sequence[Any], sources: Sequence[Any]) -> bool:
    """Whether the derivative is one of tensors of a graph."""
    if any(isinstance(t, Tensor) and not isinstance(t, EagerTensor) for t in targets):
        return True
    return not get_default_graph()._is_eager and not any(
        isinstance(t, EagerTensor) for t in targets
    )


def gradients(
    spans: Spans,
    targets: Sequence[Any],
    sources: Sequence[Any],
    given: Sequence[Any],
    mode: UnconnectedGradients,
) -> list[Any]:
    """The gradients as tensors of the graph that is being built."""
    graph = get_default_graph()
    ys = [t for t in targets if t is not None]
    starts = [g for t, g in zip(targets, given) if t is not None]
    xs = [_inside(graph, s) for s in sources]
    missed = set(spans.missed()) - set(xs)
    return graph_gradients(
        ys,
        xs,
        grad_ys=None if all(g is None for g in starts) else starts,
        stop_gradients=list(missed) or None,
        unconnected_gradients=mode,
    )


def _inside(graph: Graph, source: Any) -> Any:
    """A source as the graph knows it: a variable by its handle there, an eager tensor by its capture."""
    handle = getattr(source, "handle", None)
    if handle is not None and not isinstance(source, Tensor):
        source = handle
    if isinstance(source, EagerTensor) and graph._is_function:
        return graph.capture(source)  # type: ignore[attr-defined]
    return source
