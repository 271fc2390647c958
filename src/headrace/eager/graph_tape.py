"""Tapes in graphs: which operations of a graph a tape recorded, and their derivative.

Nothing happens while operations are made. A tape notes, for each graph, between which positions in
the graph's list of operations it was recording, and at which position something began to be
watched. From that, ``Recorded`` goes through the list once, as the tape would have gone along: an
operation made while the tape recorded, one of whose inputs was watched by then, is recorded, and
its outputs are watched. ``tf.gradients`` then stays inside of what was recorded.

A loop counts as a whole: what comes round to its head (Merge, NextIteration) is watched in the body
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.autodiff.gradients import UnconnectedGradients, gradients_through
from headrace.core import dtypes
from headrace.core.func_graph import is_function_graph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.stacks import default_graphs
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_tensor import EagerTensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["GraphNotes", "Recorded", "TRAINABLE", "gradients", "is_symbolic"]

TRAINABLE = frozenset(
    [
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.bfloat16,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.resource,
        dtypes.variant,
    ]
)


class _Watch(NamedTuple):
    """Something is watched from this position of a graph on."""

    what: Any
    graph: Graph
    position: int


class Recorded(NamedTuple):
    """What a tape recorded in one graph."""

    ops: frozenset[Operation]
    watched: frozenset[Tensor]


class GraphNotes:
    """What a tape notes about graphs while it records."""

    def __init__(self) -> None:
        self.spans: dict[Graph, list[tuple[int, int | None]]] = {}
        self.watches: dict[tuple[int, int], _Watch] = {}
        #: Variables of the reference kind: what reads them was made before any tape.
        self.references: dict[int, Any] = {}

    # while recording ------------------------------------------------------------------------------
    def start(self) -> None:
        for graph in _open_graphs():
            self.spans.setdefault(graph, []).append((len(graph._ops), None))

    def stop(self) -> None:
        for graph in _open_graphs():
            self.spans.setdefault(graph, [(0, None)])
        for graph, spans in self.spans.items():
            if spans[-1][1] is None:
                spans[-1] = (spans[-1][0], len(graph._ops))

    def watch(self, what: TensorLike) -> None:
        graph = get_default_graph()
        if not graph._is_eager:
            watch = _Watch(what, graph, len(graph._ops))
            self.watches.setdefault((id(what), id(graph)), watch)

    # afterwards -----------------------------------------------------------------------------------
    def recorded(self, graph: Graph, eagerly: dict[int, Any]) -> Recorded:
        """The operations of ``graph`` that were recorded.

        ``eagerly``: what is watched among eager tensors, by id.
        """
        begin = [*self._begin(graph, eagerly)]
        ops = [op for a, b in self._spans(graph) for op in graph._ops[a:b]]
        merges = [op for op in ops if op._role == "merge"]
        heads: set[Operation] = set()
        while True:
            found = _walk(ops, begin, heads)
            late = [
                m for m in merges if m not in found.ops and not found.watched.isdisjoint(m._inputs)
            ]
            if not late:
                break
            heads.update(late)
        readers = {v._snapshot._op for v in self.references.values() if v.graph is graph}
        return Recorded(found.ops | readers, found.watched)

    def _noted(self, what: Tensor, graph: Graph) -> bool:
        return (id(what), id(graph)) in self.watches

    def _spans(self, graph: Graph) -> list[tuple[int, int | None]]:
        """A graph that was made while the tape recorded is recorded from its beginning."""
        return self.spans.get(graph, [(0, None)])

    def _begin(self, graph: Graph, eagerly: dict[int, Any]) -> Iterable[tuple[int, Tensor]]:
        """What is watched in the graph, with the position from which on."""
        for what, at, position in self.watches.values():
            inside = _inside(graph, what)
            if inside is not None:
                yield (position if at is graph else 0), inside
        for variable in self.references.values():
            if variable.graph is graph:
                yield 0, variable._ref()
                yield 0, variable._snapshot
        if not is_function_graph(graph):
            return
        outer: dict[Graph, Recorded] = {}
        for outside, inside in graph.captures:
            home = outside._op.graph
            if home._is_eager:
                if id(outside) in eagerly and not self._noted(outside, graph):
                    yield 0, inside
                continue
            if home not in outer:
                outer[home] = self.recorded(home, eagerly)
            if outside in outer[home].watched:
                yield 0, inside
        for handle in [*graph.outer_handles.values()]:
            if id(handle) in eagerly and not self._noted(handle, graph):
                here = graph.inside(handle)
                if here is not None:
                    yield 0, here


def _open_graphs() -> list[Graph]:
    """The graphs that are being built on this thread."""
    graphs = dict.fromkeys([*default_graphs.items, get_default_graph()])
    return [g for g in graphs if not g._is_eager]


def _walk(ops: list[Operation], begin: list[tuple[int, Tensor]], heads: set[Operation]) -> Recorded:
    """Operations with a watched input, in the order in which they were made.

    ``heads``: the heads of loops that get something watched from the end of the body.
    """
    coming = sorted(begin, key=lambda pair: -pair[0])
    watched: set[Tensor] = set()
    recorded: set[Operation] = set()
    for op in ops:
        while coming and coming[-1][0] <= op._id:
            watched.add(coming.pop()[1])
        used = [t for t in op._inputs if t in watched or _came_in(t, watched, recorded)]
        if used or op in heads:
            recorded.add(op)
            watched.update([t for t in op._outputs if t._dtype._base in TRAINABLE])
    watched.update([t for _, t in coming])
    return Recorded(frozenset(recorded), frozenset(watched))


def _came_in(tensor: Tensor, watched: set[Tensor], recorded: set[Operation]) -> bool:
    """Whether a tensor is what a branch or loop knows a watched one by.

    It may have come in before it was watched.
    """
    ways = []
    while tensor not in watched:
        if tensor._op._opdef.role not in ("enter", "switch"):
            return False
        ways.append(tensor)
        tensor = tensor._op._inputs[0]
    recorded.update([t._op for t in ways])
    watched.update(ways)
    return True


# derivatives ------------------------------------------------------------------------------------


def is_symbolic(targets: Sequence[Any], sources: Sequence[Any]) -> bool:
    """Whether the derivative is one of tensors of a graph."""
    if any(isinstance(t, Tensor) and not isinstance(t, EagerTensor) for t in targets):
        return True
    return not get_default_graph()._is_eager and not any(
        isinstance(t, EagerTensor) for t in targets
    )


def gradients(
    recorded: Recorded,
    targets: Sequence[Any],
    sources: Sequence[Any],
    given: Sequence[Any],
    mode: UnconnectedGradients,
) -> list[Any]:
    """The gradients as tensors of the graph that is being built.

    None where a source was not watched.
    """
    graph = get_default_graph()
    ys = [t for t in targets if t is not None]
    starts = [g for t, g in zip(targets, given) if t is not None]
    xs = [_inside(graph, s) for s in sources]
    known = [x is not None and (x in recorded.watched or x in ys) for x in xs]
    found = iter(
        gradients_through(
            recorded.ops,
            ys,
            [x for x, k in zip(xs, known) if k],
            grad_ys=None if all(g is None for g in starts) else starts,
        )
        if ys and any(known)
        else ()
    )
    out = [next(found) if k else None for k in known]
    if mode is UnconnectedGradients.ZERO:
        out = [_zeros(s) if g is None else g for s, g in zip(sources, out)]
    return out


def _zeros(source: Tensor) -> Tensor:
    from headrace.ops.array.filling import zeros_like

    return zeros_like(source)


def _inside(graph: Graph, source: Tensor) -> Tensor | None:
    """A source as the graph knows it.

    A variable by its handle there, something from outside by its capture.
    """
    if isinstance(source, IndexedSlices):
        source = source.values
    if not isinstance(source, Tensor):
        handle = getattr(source, "handle", None)
        if handle is None:
            reference = getattr(source, "_ref", None)
            return reference() if callable(reference) and source.graph is graph else None
        source = handle
    if source._op.graph is graph:
        return source
    return graph.inside(source) if is_function_graph(graph) else None
