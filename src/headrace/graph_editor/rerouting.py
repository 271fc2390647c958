"""Give operations other inputs: reroute, swap, connect, detach.

In "a to b" the users of b get a instead; a's own users stay.
"""

from __future__ import annotations

from typing import Any

from headrace.core.tensor import Operation, Tensor
from headrace.graph_editor import graph_selection as selection
from headrace.graph_editor.copying import make_placeholder_from_tensor
from headrace.graph_editor.subgraph_views import SubGraphView, make_view

__all__ = [
    "add_control_inputs",
    "bypass",
    "connect",
    "detach",
    "detach_control_inputs",
    "detach_control_outputs",
    "detach_inputs",
    "detach_outputs",
    "remove_control_inputs",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]


def _check_pairs(ts0: list[Tensor], ts1: list[Tensor]) -> None:
    if len(ts0) != len(ts1):
        raise ValueError(f"ts0 and ts1 have different sizes: {len(ts0)} != {len(ts1)}")
    for a, b in zip(ts0, ts1):
        if a.dtype != b.dtype:
            raise TypeError(f"Dtypes {a.dtype} and {b.dtype} are not compatible.")
        if not a.get_shape().is_compatible_with(b.get_shape()):
            raise ValueError(f"Shapes {a.get_shape()} and {b.get_shape()} are not compatible.")


def _replace(old: Tensor, new: Tensor, users: list[Operation]) -> int:
    count = 0
    for op in users:
        for i, t in enumerate(op.inputs):
            if t is old:
                op._update_input(i, new)
                count += 1
    return count


def _reroute(
    ts0: object, ts1: object, both: bool, can_modify: object, cannot_modify: object
) -> int:
    first, second = selection.make_list_of_t(ts0), selection.make_list_of_t(ts1)
    _check_pairs(first, second)
    allowed = None if can_modify is None else set(selection.make_list_of_op(can_modify))
    refused = set(selection.make_list_of_op(cannot_modify or ()))

    def users(t: Tensor) -> list[Operation]:
        found = [op for op in t.consumers() if op not in refused]
        return found if allowed is None else [op for op in found if op in allowed]

    plan = [(a, b, users(a), users(b)) for a, b in zip(first, second) if a is not b]
    count = 0
    for a, b, users_a, users_b in plan:
        count += _replace(b, a, users_b)
        if both:  # an operation that used both uses b twice now, as in TensorFlow
            count += _replace(a, b, users_a)
    return count


def reroute_ts(
    ts0: object, ts1: object, can_modify: object = None, cannot_modify: object = None
) -> int:
    """The users of ``ts1`` use ``ts0`` instead; the number of inputs that changed.

    ``ts0`` and ``ts1`` are tensors or lists of equal length, of one graph. Only operations in
    ``can_modify`` and none in ``cannot_modify`` are changed. A session sees the change in its next
    run.

        a, b = tf.constant(1.0), tf.constant(2.0)
        doubled = 2 * a
        tf.contrib.graph_editor.reroute_ts(b, a)
        doubled  # 4.0
    """
    return _reroute(ts0, ts1, False, can_modify, cannot_modify)


def swap_ts(
    ts0: object, ts1: object, can_modify: object = None, cannot_modify: object = None
) -> int:
    """The users of each use the other; the number of inputs that changed.

    The arguments are those of ``reroute_ts``. An operation that used both uses the second twice
    afterwards, as in TensorFlow.
    """
    return _reroute(ts0, ts1, True, can_modify, cannot_modify)


# views --------------------------------------------------------------------------------------------


def _views(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    a, b = make_view(sgv0), make_view(sgv1)
    selection.check_graphs(a, b)
    return a, b


def _inputs(sgv0: object, sgv1: object, both: bool) -> tuple[SubGraphView, SubGraphView]:
    a, b = _views(sgv0, sgv1)
    changeable = [*a.ops, *b.ops, *selection.get_consuming_ops(a.passthroughs)]
    changeable += selection.get_consuming_ops(b.passthroughs)
    _reroute(a.inputs, b.inputs, both, changeable, None)
    before_a, before_b = a.copy(), b.copy()
    _take_inputs(b, before_a, before_b)
    if both:
        _take_inputs(a, before_b, before_a)
    return a, b


def _take_inputs(view: SubGraphView, source: SubGraphView, before: SubGraphView) -> None:
    """The view has the inputs of ``source`` now; what passes through it changed with them."""
    view._input_ts = list(source._input_ts)
    view._passthrough_ts = list(source._passthrough_ts)
    for i, t in enumerate(before._output_ts):
        if t in source._passthrough_ts:
            view._output_ts[i] = view._input_ts[source._input_ts.index(t)]


def _outputs(sgv0: object, sgv1: object, both: bool) -> tuple[SubGraphView, SubGraphView]:
    a, b = _views(sgv0, sgv1)
    _reroute(a.outputs, b.outputs, both, None, [*a.ops, *b.ops])
    return a, b


def reroute_inputs(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """``sgv1`` takes the inputs of ``sgv0``."""
    return _inputs(sgv0, sgv1, False)


def swap_inputs(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """Each takes the inputs of the other."""
    return _inputs(sgv0, sgv1, True)


def reroute_outputs(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """What used the outputs of ``sgv1`` uses those of ``sgv0``."""
    return _outputs(sgv0, sgv1, False)


def swap_outputs(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """What used the outputs of one uses those of the other."""
    return _outputs(sgv0, sgv1, True)


def reroute_ios(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """``reroute_outputs`` and then ``reroute_inputs``: ``sgv0`` takes the place of ``sgv1``."""
    a, b = _outputs(sgv0, sgv1, False)
    return _inputs(a, b, False)


def swap_ios(sgv0: object, sgv1: object) -> tuple[SubGraphView, SubGraphView]:
    """Exchange the outputs of two subgraphs, then their inputs."""
    a, b = _outputs(sgv0, sgv1, True)
    return _inputs(a, b, True)


def connect(sgv0: object, sgv1: object, disconnect_first: bool = False) -> tuple[Any, Any]:
    """The outputs of ``sgv0`` become the inputs of ``sgv1``.

    Both are SubGraphViews or what makes one. ``disconnect_first`` detaches what used the outputs of
    ``sgv0`` before. Returns both views.
    """
    a, b = _views(sgv0, sgv1)
    if disconnect_first:
        detach_outputs(a)
    outside = SubGraphView(passthrough_ts=a.outputs)
    reroute_inputs(outside, b)
    return a, b


def bypass(sgv: object) -> tuple[SubGraphView, list[Any]]:
    """Detach the inputs and let what used the outputs use them."""
    view = make_view(sgv)
    inputs = list(view.inputs)
    view, detached = detach_inputs(view)
    reroute_ts(inputs, view.outputs)
    return view, detached


# detaching ----------------------------------------------------------------------------------------


def detach_inputs(sgv: object, control_inputs: bool = False) -> tuple[SubGraphView, list[Any]]:
    """Placeholders take the place of the inputs."""
    view = make_view(sgv)
    with view.graph.as_default():
        placeholders = [make_placeholder_from_tensor(t) for t in view.inputs]
    reroute_inputs(SubGraphView(passthrough_ts=placeholders), view)
    if control_inputs:
        detach_control_inputs(view)
    return view, placeholders


def detach_outputs(sgv: object, control_outputs: object = None) -> tuple[SubGraphView, list[Any]]:
    """Placeholders take the place of the outputs for those who used them."""
    view = make_view(sgv)
    used = [t for t in view.outputs if t.consumers()]
    with view.graph.as_default():
        placeholders = [make_placeholder_from_tensor(t) for t in used]
    reroute_outputs(SubGraphView(passthrough_ts=placeholders), view.remap_outputs(used))
    if control_outputs is not None:
        detach_control_outputs(view, control_outputs)
    return view, placeholders


def detach(
    sgv: object,
    control_inputs: bool = False,
    control_outputs: object = None,
    control_ios: object = None,
) -> tuple[SubGraphView, list[Any], list[Any]]:
    """Take a subgraph out: detach its inputs and its outputs.

    Returns the view, and the placeholders that stand for its inputs and outputs.
    """
    inputs, outputs = selection._one_control_ios(control_inputs, control_outputs, control_ios)
    _, detached_inputs = detach_inputs(sgv, inputs)
    view, detached_outputs = detach_outputs(sgv, outputs)
    return view, detached_inputs, detached_outputs


def detach_control_inputs(sgv: object) -> None:
    """Nothing of the view waits for anything outside of it any more."""
    view = make_view(sgv)
    inside = set(view.ops)
    for op in view.ops:
        outside = [c for c in op.control_inputs if c not in inside]
        if outside:
            remove_control_inputs(op, outside)


def detach_control_outputs(sgv: Any, control_outputs: Any) -> None:
    """Nothing outside of the view waits for it any more."""
    view = make_view(sgv)
    inside = set(view.ops)
    for op in view.ops:
        for waiting in control_outputs.get(op):
            if waiting not in inside:
                remove_control_inputs(waiting, op)
    control_outputs.update()


def remove_control_inputs(op: Operation, cops: object) -> None:
    """``op`` does not wait for these any more."""
    given = selection.make_list_of_op(cops, allow_graph=False)
    for before in given:
        if before not in op.control_inputs:
            raise ValueError(f"{op.name} is not a control_input of {before.name}")
    kept = [c for c in op.control_inputs if c not in given]
    op._remove_all_control_inputs()
    op._add_control_inputs(kept)


def add_control_inputs(op: Operation, cops: object) -> None:
    """Let ``op`` wait for further operations, which must not be among its control inputs."""
    given = selection.make_list_of_op(cops, allow_graph=False)
    for before in given:
        if before in op.control_inputs:
            raise ValueError(f"{before.name} is already a control_input of {op.name}")
    op._add_control_inputs(given)
