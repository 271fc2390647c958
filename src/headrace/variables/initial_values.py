"""Initial values: what may be one, and values that depend on other variables.

``b = tf.Variable(a * 2)`` must work when one run initialises both: every variable that b's initial
value reads is replaced, in a copy of the expression, by "its value, or its initial value while it
has none", as TF 1.15 does.
"""

from __future__ import annotations

from headrace.core.build import create_op
from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.tensor import Operation, Tensor

__all__ = ["checked_initial_value", "guarded"]


def checked_initial_value(initial_value: object, constraint: object) -> None:
    if initial_value is None:
        raise ValueError("initial_value must be specified.")
    if constraint is not None and not callable(constraint):
        raise ValueError("The `constraint` argument must be a callable.")


def guarded(scope: str, value: Tensor) -> Tensor:
    """``value`` computed without reading a variable that may be uninitialised."""
    if not value._op._inputs:
        return value
    ancestors = _ancestors(value._op)
    if ancestors is None or not any(op._opdef.role in ("variable", "handle") for op in ancestors):
        return value
    replaced: dict[Tensor, Tensor] = {}
    for op in ancestors:
        if op._opdef.role in ("variable", "handle"):
            found = _initialized_value(op)
            if found is not None:
                replaced[op._outputs[0]] = found
        elif not _is_read(op) and any(t in replaced for t in op._inputs):
            copy = _copied(op, [replaced.get(t, t) for t in op._inputs], f"{op.name}_{scope}")
            replaced.update(zip(op._outputs, copy._outputs))
    return replaced.get(value, value)


def _is_read(op: Operation) -> bool:
    """Whether an operation asks a variable for its value, or whether it has one."""
    return op._opdef.role in ("read", "is initialized")


def _copied(op: Operation, inputs: list[Tensor], name: str) -> Operation:
    """The same operation on other inputs; in a branch of a tf.cond it stays in that branch."""
    op_type = op.type.removeprefix("Ref") if op.type in ("RefSwitch", "RefMerge") else op.type
    copy = create_op(op.graph, op_type, inputs, name.replace(":", "_"), dict(op._attrs))
    copy._context = op._context
    copy.__dict__.update(op.__dict__)  # what control flow noted there
    return copy


def _ancestors(op: Operation) -> list[Operation] | None:
    """What ``op`` depends on, itself included, inputs first; None if there is a loop among it."""
    seen = {op}
    stack = [op]
    while stack:
        current = stack.pop()
        if _is_read(current):
            continue
        for tensor in current._inputs:
            if tensor._op._id > current._id:  # only a loop's back edge comes from a younger op
                return None
            if tensor._op not in seen:
                seen.add(tensor._op)
                stack.append(tensor._op)
    return sorted(seen, key=lambda o: o._id)


def _initialized_value(op: Operation) -> Tensor | None:
    graph: Graph = op.graph
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            if getattr(variable, "op", None) is op:
                value: Tensor = variable.initialized_value()
                return value
    return None
