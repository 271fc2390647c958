"""Which operations and tensors: by list, by regular expression, by walking along edges.

A *selection* may be given as an operation, a tensor, a graph, or any nesting of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor

__all__ = [
    "ControlOutputs",
    "check_graphs",
    "compute_boundary_ts",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_consuming_ops",
    "get_forward_walk_ops",
    "get_generating_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_tensors",
    "get_unique_graph",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "make_list_of_op",
    "make_list_of_t",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
]

_Filter = Callable[[Any], bool]


# lists --------------------------------------------------------------------------------------------


def _flat(values: object) -> list[Any]:
    """The leaves of nested lists, tuples, sets and dictionaries' values."""
    found, waiting = [], [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, (str, bytes, Tensor, Operation, Graph)) and hasattr(
            value, "__iter__"
        ):
            waiting.extend(reversed(list(value)))
        else:
            found.append(value)
    return found


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Any:
    """The one graph of all of them."""
    if isinstance(tops, Graph):
        return tops
    kinds = check_types or (Operation, Tensor)
    graph = None
    for item in _flat(tops):
        if not isinstance(item, kinds):
            raise TypeError(f"Expected a type in ({kinds}), got: {type(item)}")
        if graph is not None and item.graph is not graph:
            raise ValueError(f"Operation {item} does not belong to given graph")
        graph = item.graph
    if graph is None and not none_if_empty:
        raise ValueError("Can't find the unique graph of an empty list")
    return graph


def check_graphs(*args: Any) -> None:
    """All of them (None apart) belong to one graph."""
    graph = None
    for i, item in enumerate(args):
        if item is None:
            continue
        if graph is not None and item.graph is not graph:
            raise ValueError(f"Argument {i}: Wrong graph!")
        graph = item.graph


def make_list_of_op(
    ops: object, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """Operations as a list; ``ignore_ts`` leaves tensors out instead of refusing them.

    ``ops`` is an operation, any nesting of them, or a graph (unless ``allow_graph`` is False). With
    ``check_graph`` all must be of one graph.
    """
    whole = Graph.get_operations
    return _made_list(ops, "ops", Operation, whole, check_graph, allow_graph, ignore_ts)


def make_list_of_t(
    ts: object, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """Tensors as a list; ``ignore_ops`` leaves operations out instead of refusing them.

    ``ts`` is a tensor, any nesting of them, or a graph (unless ``allow_graph`` is False). With
    ``check_graph`` all must be of one graph.
    """
    return _made_list(ts, "ts", Tensor, get_tensors, check_graph, allow_graph, ignore_ops)


def _made_list(
    given: object,
    what: str,
    kind: type[Any],
    whole: Callable[[Graph], list[Any]],
    check_graph: bool,
    allow_graph: bool,
    ignore_others: bool,
) -> list[Any]:
    """Things of one ``kind`` as a list; ``whole`` gives those of a graph."""
    if isinstance(given, Graph):
        if not allow_graph:
            message = f"allow_graph is False: cannot convert a {type(given)} to a list of {what}"
            raise TypeError(message)
        return whole(given)
    found = _flat(given)
    if ignore_others:
        other = Tensor if kind is Operation else Operation
        found = [x for x in found if not isinstance(x, other)]
    if check_graph:
        get_unique_graph(found, None if ignore_others else (kind,), none_if_empty=True)
    return found


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [t for op in graph.get_operations() for t in op.outputs]


def get_generating_ops(ts: object) -> list[Operation]:
    """The operations that make the tensors."""
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: object) -> list[Operation]:
    """The operations that use the tensors, each once."""
    tensors = make_list_of_t(ts, allow_graph=False)
    return list(dict.fromkeys(op for t in tensors for op in t.consumers()))


class ControlOutputs:
    """For every operation of a graph those that wait for it by a control input."""

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        self._graph = graph
        self.update()

    def update(self) -> ControlOutputs:
        """Read the graph again."""
        self._outputs: dict[Operation, list[Operation]] = {}
        for op in self._graph.get_operations():
            for before in op.control_inputs:
                self._outputs.setdefault(before, []).append(op)
        return self

    def get_all(self) -> dict[Operation, list[Operation]]:
        """The whole table."""
        return self._outputs

    def get(self, op: Operation) -> list[Operation]:
        """Those that wait for ``op``."""
        return self._outputs.get(op, [])

    @property
    def graph(self) -> Graph:
        return self._graph


# filters ------------------------------------------------------------------------------------------


def _regex(pattern: Any) -> re.Pattern[str]:
    return re.compile(pattern) if isinstance(pattern, str) else pattern


def _input_ts(ops: Iterable[Operation]) -> list[Tensor]:
    return list(dict.fromkeys(t for op in ops for t in op.inputs))


def _output_ts(ops: Iterable[Operation]) -> list[Tensor]:
    return [t for op in ops for t in op.outputs]


def filter_ts(ops: Any, positive_filter: Any) -> list[Tensor]:
    """The input tensors of the operations that the filter (True: all) accepts, then the outputs."""
    listed = make_list_of_op(ops)
    found = _input_ts(listed)
    found += [t for t in _output_ts(listed) if t not in set(found)]
    return [t for t in found if positive_filter is True or positive_filter(t)]


def filter_ts_from_regex(ops: object, regex: object) -> list[Tensor]:
    """The tensors around the operations whose own names the pattern finds."""
    pattern = _regex(regex)
    return filter_ts(ops, lambda t: bool(pattern.search(t.name)))


def filter_ops(ops: Any, positive_filter: Any) -> list[Operation]:
    """The operations that the filter (True: all) accepts."""
    listed = make_list_of_op(ops)
    return listed if positive_filter is True else [op for op in listed if positive_filter(op)]


def filter_ops_from_regex(ops: object, regex: object) -> list[Operation]:
    """The operations whose names the pattern finds."""
    pattern = _regex(regex)
    return filter_ops(ops, lambda op: bool(pattern.search(op.name)))


def get_name_scope_ops(ops: object, scope: str) -> list[Operation]:
    """The operations below a name scope."""
    return filter_ops_from_regex(ops, f"^{scope.removesuffix('/')}(/.*)?$")


def _one_control_ios(
    control_inputs: object, control_outputs: object, control_ios: object
) -> tuple[bool, ControlOutputs | None]:
    """``control_ios`` stands for both of the others."""
    if control_ios is not None:
        if not isinstance(control_ios, ControlOutputs):
            raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_ios)}")
        if control_outputs is not None:
            raise ValueError("control_outputs should be None when using control_ios.")
        return True, control_ios
    if control_outputs is not None and not isinstance(control_outputs, ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    return bool(control_inputs), control_outputs


def get_ops_ios(
    ops: object,
    control_inputs: bool = False,
    control_outputs: object = None,
    control_ios: object = None,
) -> list[Operation]:
    """All operations next to the given ones, each once.

    Those that make its inputs and those that use its outputs. ``control_inputs`` (a bool) and
    ``control_outputs`` (a ``ControlOutputs``) add control dependencies; ``control_ios`` stands for
    both.
    """
    inputs, outputs = _one_control_ios(control_inputs, control_outputs, control_ios)
    found: dict[Operation, None] = {}
    for op in make_list_of_op(ops):
        found.update(dict.fromkeys(t.op for t in op.inputs))
        found.update(dict.fromkeys(c for t in op.outputs for c in t.consumers()))
        if inputs:
            found.update(dict.fromkeys(op.control_inputs))
        if outputs is not None:
            found.update(dict.fromkeys(outputs.get(op)))
    return list(found)


def compute_boundary_ts(ops: object) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """(tensors that come from outside, that go outside or nowhere, that stay inside)."""
    listed = make_list_of_op(ops)
    members = set(listed)
    inputs, outputs = _input_ts(listed), _output_ts(listed)
    made = set(outputs)
    inside = [t for t in inputs if t in made]
    only_inside = {t for t in inside if members.issuperset(t.consumers())}
    within = set(inside)
    return (
        [t for t in inputs if t not in within],
        [t for t in outputs if t not in only_inside],
        inside,
    )


# walks --------------------------------------------------------------------------------------------


def get_within_boundary_ops(
    ops: object,
    seed_ops: object,
    boundary_ops: object = (),
    inclusive: bool = True,
    control_inputs: bool = False,
    control_outputs: object = None,
    control_ios: object = None,
) -> list[Operation]:
    """What can be reached from the seeds among ``ops`` without crossing the boundary.

    From ``seed_ops`` in both directions, along inputs and outputs. ``inclusive`` has the operations
    of the boundary in the result; a seed on the boundary is a ValueError. The control arguments are
    those of ``get_ops_ios``.
    """
    inputs, outputs = _one_control_ios(control_inputs, control_outputs, control_ios)
    members, boundary = set(make_list_of_op(ops)), set(make_list_of_op(boundary_ops))
    found = dict.fromkeys(make_list_of_op(seed_ops))
    if any(op in boundary for op in found):
        raise ValueError("Boundary is intersecting with the seeds.")
    wave = list(found)
    while wave:
        fresh: dict[Operation, None] = {}
        for op in get_ops_ios(wave, inputs, outputs):
            if op in found or op not in members:
                continue
            if op in boundary:
                if inclusive:
                    found[op] = None
            else:
                fresh[op] = None
        found.update(fresh)
        wave = list(fresh)
    return [op for op in found if op in members]


def _walk(
    seeds: object,
    inclusive: bool,
    within_ops: object,
    within_ops_fn: _Filter | None,
    stop_at_ts: object,
    forward: bool,
    control: object,
) -> list[Operation]:
    listed = _flat(seeds)
    if listed and isinstance(listed[0], Tensor):
        tensors = make_list_of_t(listed, allow_graph=False)
        seed_ops = get_consuming_ops(tensors) if forward else get_generating_ops(tensors)
    else:
        seed_ops = make_list_of_op(listed, allow_graph=False)
    members = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))
    stops = set(make_list_of_t(stop_at_ts))
    seed_set = set(seed_ops)

    def is_within(op: Operation) -> bool:
        fits = within_ops_fn is None or within_ops_fn(op)
        return fits and (members is None or op in members)

    found = dict.fromkeys(seed_ops)
    wave = list(found)
    while wave:
        fresh: dict[Operation, None] = {}
        for op in wave:
            for near in _neighbours(op, stops, forward, control):
                if near not in found and near not in fresh and is_within(near):
                    fresh[near] = None
        found.update(fresh)
        wave = list(fresh)
    return [op for op in found if inclusive or op not in seed_set]


def _neighbours(
    op: Operation, stops: set[Tensor], forward: bool, control: Any
) -> Iterable[Operation]:
    if forward:
        for t in op.outputs:
            if t not in stops:
                yield from t.consumers()
        if control is not None:
            yield from control.get(op)
        return
    for t in op.inputs:
        if t not in stops:
            yield t.op
    if control:
        yield from op.control_inputs


def get_forward_walk_ops(
    seed_ops: object,
    inclusive: bool = True,
    within_ops: object = None,
    within_ops_fn: _Filter | None = None,
    stop_at_ts: object = (),
    control_outputs: object = None,
) -> list[Operation]:
    """The operations that depend on the seeds, found by a walk along the outputs.

    ``seed_ops`` are operations, or tensors, which stand for their consumers; ``inclusive`` has them
    in the result. The walk stays among ``within_ops`` and where ``within_ops_fn(op)`` is true, and
    does not cross the tensors ``stop_at_ts``. ``control_outputs`` is a ``ControlOutputs`` of the
    graph: it follows control dependencies as well.
    """
    _, control = _one_control_ios(False, control_outputs, None)
    return _walk(seed_ops, inclusive, within_ops, within_ops_fn, stop_at_ts, True, control)


def get_backward_walk_ops(
    seed_ops: object,
    inclusive: bool = True,
    within_ops: object = None,
    within_ops_fn: _Filter | None = None,
    stop_at_ts: object = (),
    control_inputs: bool = False,
) -> list[Operation]:
    """The operations that the seeds depend on, found by a walk along the inputs.

    ``seed_ops`` are operations, or tensors, which stand for what makes them; ``inclusive`` has them
    in the result. The walk stays among ``within_ops`` and where ``within_ops_fn(op)`` is true, and
    does not cross the tensors ``stop_at_ts``. ``control_inputs`` follows control dependencies as
    well.

        x = tf.constant(1.0)
        assert x.op in tf.contrib.graph_editor.get_backward_walk_ops([tf.exp(x).op])
    """
    return _walk(seed_ops, inclusive, within_ops, within_ops_fn, stop_at_ts, False, control_inputs)


def _both_walks(
    forward_seed_ops: object,
    backward_seed_ops: object,
    forward_inclusive: bool,
    backward_inclusive: bool,
    within: tuple[Any, Any],
    control: tuple[Any, Any, Any],
) -> tuple[list[Operation], list[Operation]]:
    inputs, outputs = _one_control_ios(*control)
    return (
        get_forward_walk_ops(forward_seed_ops, forward_inclusive, *within, control_outputs=outputs),
        get_backward_walk_ops(
            backward_seed_ops, backward_inclusive, *within, control_inputs=inputs
        ),
    )


def get_walks_intersection_ops(
    forward_seed_ops: object,
    backward_seed_ops: object,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: object = None,
    within_ops_fn: _Filter | None = None,
    control_inputs: bool = False,
    control_outputs: object = None,
    control_ios: object = None,
) -> list[Operation]:
    """What depends on the first and is needed by the second, in the order of the first walk.

    What lies between two sets of operations or tensors. The arguments are those of
    ``get_forward_walk_ops`` and ``get_backward_walk_ops``, ``forward_inclusive`` and
    ``backward_inclusive`` being their ``inclusive``; ``control_ios`` stands for ``control_inputs``
    and ``control_outputs``.
    """
    forward, backward = _both_walks(
        forward_seed_ops,
        backward_seed_ops,
        forward_inclusive,
        backward_inclusive,
        (within_ops, within_ops_fn),
        (control_inputs, control_outputs, control_ios),
    )
    wanted = set(backward)
    return [op for op in forward if op in wanted]


def get_walks_union_ops(
    forward_seed_ops: object,
    backward_seed_ops: object,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: object = None,
    within_ops_fn: _Filter | None = None,
    control_inputs: bool = False,
    control_outputs: object = None,
    control_ios: object = None,
) -> list[Operation]:
    """What depends on the first, then what the second needs beside.

    The arguments are those of ``get_walks_intersection_ops``; each operation comes once.
    """
    forward, backward = _both_walks(
        forward_seed_ops,
        backward_seed_ops,
        forward_inclusive,
        backward_inclusive,
        (within_ops, within_ops_fn),
        (control_inputs, control_outputs, control_ios),
    )
    return list(dict.fromkeys([*forward, *backward]))


# patterns -----------------------------------------------------------------------------------------


def _selected(
    args: Any, graph: Graph | None, positive_filter: Any, mark: str, other: str, strict: bool
) -> list[Any]:
    of_ops = mark == "(?#ops)"
    found: dict[Any, None] = {}
    for arg in args:
        if isinstance(arg, (str, re.Pattern)):
            if graph is None:
                raise ValueError("Use the keyword argument 'graph' to use regex.")
            pattern = _regex(arg)
            text = pattern.pattern
            if text.startswith(other) or (strict and not text.startswith(mark)):
                continue
            items: list[Any] = (
                filter_ops_from_regex(graph, pattern)
                if of_ops
                else filter_ts_from_regex(graph, pattern)
            )
        elif of_ops:
            items = list(make_list_of_op(arg, ignore_ts=True))
        else:
            items = list(make_list_of_t(arg, ignore_ops=True))
        found.update((i, None) for i in items if positive_filter is None or positive_filter(i))
    return list(found)


def _checked(graph: object) -> Graph | None:
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
    return graph


def select_ops(
    *args: object,
    graph: Graph | None = None,
    positive_filter: object = None,
    restrict_ops_regex: bool = False,
    restrict_ts_regex: bool = False,
) -> list[Operation]:
    """The operations of selections and of patterns of names (which need ``graph``).

    Each argument is an operation, a nesting of them or a regular expression that is searched in
    names. ``positive_filter(op)`` keeps operations that pass. An expression that begins with
    "(?#ops)" is for operations only, one with "(?#ts)" for tensors; ``restrict_ops_regex`` passes
    over expressions without the mark. ``restrict_ts_regex`` is for ``select_ts``.

        x = tf.constant(1.0, name="left/x")
        assert x.op in tf.contrib.graph_editor.select_ops("^left/", graph=x.graph)
    """
    return _selected(
        args, _checked(graph), positive_filter, "(?#ops)", "(?#ts)", restrict_ops_regex
    )


def select_ts(
    *args: object,
    graph: Graph | None = None,
    positive_filter: object = None,
    restrict_ts_regex: bool = False,
    restrict_ops_regex: bool = False,
) -> list[Tensor]:
    """The tensors of selections and of patterns of names (which need ``graph``).

    As ``select_ops``, for tensors: ``positive_filter(tensor)`` keeps those that pass, an expression
    that begins with "(?#ts)" is for tensors only, and ``restrict_ts_regex`` passes over expressions
    without the mark. ``restrict_ops_regex`` is for ``select_ops``.
    """
    return _selected(args, _checked(graph), positive_filter, "(?#ts)", "(?#ops)", restrict_ts_regex)


def select_ops_and_ts(*args: Any, **kwargs: Any) -> tuple[list[Operation], list[Tensor]]:
    """Both; of patterns only those that begin with (?#ts) give tensors."""
    ops = select_ops(*args, **{**kwargs, "restrict_ops_regex": False})
    return ops, select_ts(*args, **{**kwargs, "restrict_ts_regex": True})
