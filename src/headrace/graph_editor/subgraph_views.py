"""A view of a part of a graph: operations with the tensors that enter and leave it.

>>> view = make_view(a.op, b.op)
>>> view.inputs, view.outputs

Inputs and outputs may be reordered, dropped or repeated (``remap``) without touching the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor
from headrace.graph_editor import graph_selection as selection

__all__ = ["SubGraphView", "make_view", "make_view_from_scope"]


def _indices(given: Iterable[Any], tensors: Sequence[Tensor]) -> list[int]:
    """Positions, where tensors may stand for their positions."""
    places = [tensors.index(i) if isinstance(i, Tensor) else i for i in given]
    for place in places:
        if not 0 <= place < len(tensors):
            raise ValueError(f"Value {place} out of range [0, {len(tensors)}).")
    return places


class SubGraphView:
    """Operations ``inside_ops``, and tensors that only pass through."""

    def __init__(self, inside_ops: object = (), passthrough_ts: object = ()) -> None:
        self._ops = selection.make_list_of_op(inside_ops)
        self._graph = selection.get_unique_graph(
            [*self._ops, *selection.make_list_of_t(passthrough_ts)], none_if_empty=True
        )
        inputs, outputs, inside = selection.compute_boundary_ts(self._ops)
        around = {*inputs, *outputs, *inside}
        passing = selection.make_list_of_t(passthrough_ts)
        self._passthrough_ts = [t for t in passing if t not in around]
        self._input_ts = [*inputs, *self._passthrough_ts]
        self._output_ts = [*outputs, *self._passthrough_ts]

    def __copy__(self) -> SubGraphView:
        made = type(self).__new__(type(self))
        made._assign_from(self)
        return made

    def copy(self) -> SubGraphView:
        """Another view of the same."""
        return self.__copy__()

    def _assign_from(self, other: SubGraphView) -> None:
        if not isinstance(other, SubGraphView):
            raise TypeError(f"Expected SubGraphView, got: {type(other)}")
        self._graph, self._ops = other._graph, list(other._ops)
        self._input_ts, self._output_ts = list(other._input_ts), list(other._output_ts)
        self._passthrough_ts = list(other._passthrough_ts)

    # other inputs and outputs --------------------------------------------------------------------

    def remap(self, new_input_indices: Any = None, new_output_indices: Any = None) -> SubGraphView:
        """A view with these of its inputs and outputs (positions or tensors)."""
        made = self.copy()
        if new_input_indices is not None:
            places = _indices(new_input_indices, self._input_ts)
            if len(set(places)) != len(places):
                raise ValueError("All the values must be unique.")
            made._input_ts = [self._input_ts[i] for i in places]
        if new_output_indices is not None:
            places = _indices(new_output_indices, self._output_ts)
            made._output_ts = [self._output_ts[i] for i in places]
        return made

    def remap_inputs(self, new_input_indices: object) -> SubGraphView:
        """A view with these of its inputs."""
        return self.remap(new_input_indices=new_input_indices)

    def remap_outputs(self, new_output_indices: object) -> SubGraphView:
        """A view with these of its outputs."""
        return self.remap(new_output_indices=new_output_indices)

    def remap_default(
        self, remove_input_map: bool = True, remove_output_map: bool = True
    ) -> SubGraphView:
        """A view with all inputs or outputs again."""
        made, whole = self.copy(), SubGraphView(self._ops, self._passthrough_ts)
        if remove_input_map:
            made._input_ts = whole._input_ts
        if remove_output_map:
            made._output_ts = whole._output_ts
        return made

    def remap_outputs_make_unique(self) -> SubGraphView:
        """A view with each output once."""
        made = self.copy()
        made._output_ts = list(dict.fromkeys(self._output_ts))
        return made

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """A view with each output once for every operation that uses it."""
        made = self.remap_outputs_make_unique()
        made._output_ts = [t for t in made._output_ts for _ in t.consumers()]
        return made

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """A view of what its outputs need."""
        made = self.copy()
        made._ops = selection.get_walks_union_ops(
            self.connected_inputs,
            self.connected_outputs,
            within_ops=self._ops,
            control_inputs=control_inputs,
        )
        return made

    # what is in it -------------------------------------------------------------------------------

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def ops(self) -> list[Operation]:
        return list(self._ops)

    @property
    def inputs(self) -> list[Tensor]:
        return list(self._input_ts)

    @property
    def outputs(self) -> list[Tensor]:
        return list(self._output_ts)

    @property
    def connected_inputs(self) -> list[Tensor]:
        return [t for t in self._input_ts if not self.is_passthrough(t)]

    @property
    def connected_outputs(self) -> list[Tensor]:
        return [t for t in self._output_ts if not self.is_passthrough(t)]

    @property
    def passthroughs(self) -> list[Tensor]:
        return list(self._passthrough_ts)

    def __bool__(self) -> bool:
        return self._graph is not None

    def __enter__(self) -> SubGraphView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def op(self, op_id: int) -> Operation:
        """The operation at this place of the list."""
        return self._ops[op_id]

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor only passes through."""
        return t in self._passthrough_ts

    def input_index(self, t: Tensor) -> int:
        """The place of a tensor among the inputs."""
        return _place(t, self._input_ts, "input")

    def output_index(self, t: Tensor) -> int:
        """The place of a tensor among the outputs."""
        return _place(t, self._output_ts, "output")

    def consumers(self) -> list[Operation]:
        """The operations outside that use the outputs."""
        inside = set(self._ops)
        using = dict.fromkeys(op for t in self._output_ts for op in t.consumers())
        return [op for op in using if op not in inside]

    def find_op_by_name(self, op_name: str) -> Operation:
        """The operation of this name."""
        for op in self._ops:
            if op.name == op_name:
                return op
        raise AssertionError(f"{op_name} not in subgraph.")

    def __str__(self) -> str:
        if not self:
            return "SubGraphView: empty"
        lines = [f"SubGraphView (graphid={id(self._graph)}):"]
        star = set(self._passthrough_ts)
        for name, items in (
            ("ops", [op.name for op in self._ops]),
            ("inputs", [t.name + (" *" if t in star else "") for t in self._input_ts]),
            ("outputs", [t.name + (" *" if t in star else "") for t in self._output_ts]),
        ):
            lines += [f"** {name}[{len(items)}]:"] if items else [f"** {name}: empty"]
            lines += [f"  {item}" for item in items]
        return "\n".join([*lines, ""])


def _place(t: Tensor, tensors: list[Tensor], what: str) -> int:
    for i, each in enumerate(tensors):
        if each is t:
            return i
    raise AssertionError(f"Can't find {t.name} in {what} of subgraph.")


def make_view(*args: object, **kwargs: object) -> SubGraphView:
    """A view of operations, of tensors that pass through, of patterns of names (with ``graph``)."""
    graph = kwargs.get("graph")
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        view = args[0]
    else:
        view = SubGraphView(*selection.select_ops_and_ts(*args, **kwargs))
    if graph is not None and view and view.graph is not graph:
        raise ValueError("Graph mismatch.")
    return view


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of what is below a name scope."""
    return SubGraphView(selection.get_name_scope_ops(graph, scope))
