"""TensorArrays whose every use is known before the run are values.

Once a loop is written out (loop_rounds.py) the indices at which a TensorArray is written and read
are constants, and operations follow each other in the order in which they run. Then ``unstack``
is one Unpack, a read is one of its results or what was written, and ``stack`` is one Pack:

    a.unstack(x); a.read(0) + a.read(1)      ->  x0, x1 = Unpack(x); x0 + x1
    a.write(0, p).write(1, q).stack()        ->  Pack(p, q)

A list is resolved as a whole or not at all. Whatever would be an error in the run (an index read
twice, an element of another shape, one that was never written) leaves the list as it is: the run
raises what it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.nodes import If, Node, Program, Statement, While
from headrace.rewrite.analysis.dims import dims_of
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["known_size", "resolve_lists"]


def known_size(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """The number of elements of a TensorArray that does not grow, made with a known one."""
    made = state.producers.get(node.inputs[0])
    if made is None or made.opdef.role != "list" or made.attrs["dynamic_size"]:
        return None
    size = state.constants.get(made.inputs[0])
    if size is None or int(size) < 0:
        return None
    return (state.constant(np.asarray(size, np.int32).reshape(()), node.outputs[0]),)


class _List:
    """A TensorArray as it is after the operations so far; ``None`` elements were never written."""

    def __init__(self, made: Node, size: int) -> None:
        self.dtype: dtypes.DType = made.attrs["dtype"]
        self.element_shape = made.attrs["element_shape"]
        self.clear: bool = made.attrs["clear_after_read"]
        self.items: list[int | None] = [None] * size
        self.was_read = [False] * size
        self.dims: Any = None  # of every element

    def write(self, index: int, value: int, dims: Any) -> bool:
        if not 0 <= index < len(self.items) or self.items[index] is not None:
            return False
        if self.was_read[index] or dims is None or self.dims not in (None, dims):
            return False
        if self.element_shape is not None and not _fits(self.element_shape, dims):
            return False
        self.items[index], self.dims = value, dims
        return True

    def read(self, index: int) -> int | None:
        if not 0 <= index < len(self.items):
            return None
        if self.was_read[index] and self.clear:
            return None
        self.was_read[index] = True
        return self.items[index]


def _fits(element_shape: Sequence[int | None], dims: Sequence[Any]) -> bool:
    """Whether elements certainly have the declared shape."""
    return len(element_shape) == len(dims) and all(
        want is None or want == have for want, have in zip(element_shape, dims)
    )


def resolve_lists(program: Program, state: RewriteState) -> Program:
    """The program with values in the place of TensorArrays; ``state`` is that of the walk before.

    Its shapes are used, and its values and constants go on from there.
    """
    handles = _private(program)
    if not handles:
        return program
    resolved = {}
    for nodes in handles.values():
        instead = _resolve(nodes, state)
        if instead is not None:
            resolved.update(instead)
    if not resolved:
        return program
    return _replaced(program, resolved, state)


def _private(program: Program) -> dict[int, list[Node]]:
    """Handles that only operations on lists outside of branches and loops have, with these
    operations in order, the one that makes the list first.
    """
    found: dict[int, list[Node]] = {}
    lost: set[int | None] = {*program.fetches, *program.effects}
    stack: list[tuple[Statement, bool]] = [(s, True) for s in reversed(program.body)]
    while stack:
        s, outside = stack.pop()
        if isinstance(s, Node):
            if s.opdef.role == "list" and outside:
                found[s.outputs[0]] = [s]
            elif s.opdef.role in _STEPS and outside and s.inputs[0] in found:
                found[s.inputs[0]].append(s)
                lost.update(s.inputs[1:])
            else:
                lost.update(s.inputs)
        elif isinstance(s, If):
            stack += [(inner, False) for inner in reversed(s.body)]
        else:
            assert isinstance(s, While)
            lost.update(x for v in s.values for x in (v.init, v.next))
            stack += [(inner, False) for inner in reversed((*s.test, *s.body))]
    return {h: nodes for h, nodes in found.items() if h not in lost and len(nodes) > 1}


class _Instead:
    """What takes the place of a node: another node (or none), and the values of its outputs."""

    __slots__ = ("node", "values")

    def __init__(self, node: Node | None, values: tuple[int, ...] = ()) -> None:
        self.node, self.values = node, values


def _resolve(nodes: list[Node], state: RewriteState) -> dict[int, _Instead] | None:
    """By the identity of each node what takes its place; None if the list stays."""
    made = nodes[0]
    size = state.constants.get(made.inputs[0])
    if size is None or made.attrs["dynamic_size"] or int(size) < 1:
        return None
    items = _List(made, int(size))
    flow = state.new_constant(np.zeros((), np.float32), dtypes.float32)
    instead = {id(made): _Instead(None, (made.outputs[0], flow))}
    for node in nodes[1:]:
        answer = _STEPS[node.opdef.role](node, items, flow, state)
        if answer is None:
            return None
        instead[id(node)] = answer
    return instead


def _write(node: Node, items: _List, flow: int, state: RewriteState) -> _Instead | None:
    index, value = state.constants.get(node.inputs[1]), node.inputs[2]
    if index is None or state.dtype(value) is not items.dtype or value in state.mutable:
        return None
    done = items.write(int(index), value, dims_of(value, state))
    return _Instead(None, (flow,)) if done else None


def _scatter(node: Node, items: _List, flow: int, state: RewriteState) -> _Instead | None:
    indices, value = state.constants.get(node.inputs[1]), node.inputs[2]
    dims = dims_of(value, state)
    if indices is None or not dims or indices.shape != (dims[0],) or value in state.mutable:
        return None
    kind, shape = state.dtype(value), state.shape(value)
    if kind is not items.dtype or shape is None:
        return None
    parts = tuple(state.new_value(kind, shape[1:]) for _ in indices)
    for part, index in zip(parts, indices):
        state.dims[part] = tuple(dims[1:])
        if not items.write(int(index), part, tuple(dims[1:])):
            return None
    attrs = {"num": len(parts), "T": kind, "axis": 0}
    return _Instead(Node(lookup("Unpack"), (value,), parts, attrs, node.op), (flow,))


def _read(node: Node, items: _List, flow: int, state: RewriteState) -> _Instead | None:
    index = state.constants.get(node.inputs[1])
    if index is None or node.attrs["dtype"] is not items.dtype:
        return None
    value = items.read(int(index))
    return None if value is None else _Instead(None, (value,))


def _gather(node: Node, items: _List, flow: int, state: RewriteState) -> _Instead | None:
    indices = state.constants.get(node.inputs[1])
    if indices is None or not indices.size or node.attrs["dtype"] is not items.dtype:
        return None
    values = [items.read(int(i)) for i in indices.reshape(-1)]
    if any(v is None for v in values):
        return None
    given = tuple(v for v in values if v is not None)
    attrs = {"N": len(given), "T": items.dtype, "axis": 0}
    return _Instead(Node(lookup("Pack"), given, node.outputs, attrs, node.op), node.outputs)


_STEPS: dict[str, Any] = {
    "list write": _write,
    "list scatter": _scatter,
    "list read": _read,
    "list gather": _gather,
}


def _replaced(program: Program, resolved: dict[int, _Instead], state: RewriteState) -> Program:
    became: dict[int, int] = {}
    body: list[Statement] = []
    for s in program.body:
        answer = resolved.get(id(s))
        node = s if answer is None else answer.node
        if answer is not None:
            assert isinstance(s, Node)
            values = [became.get(v, v) for v in answer.values]
            became.update((o, v) for o, v in zip(s.outputs, values) if o != v)
        if node is not None:
            body.append(_renamed(node, became))
    get = became.get
    return program._replace(
        body=tuple(body),
        values=state.values,
        constants=state.constants,
        fetches=tuple(None if f is None else get(f, f) for f in program.fetches),
        effects=tuple(get(e, e) for e in program.effects),
    )


def _renamed(s: Statement, became: dict[int, int]) -> Statement:
    """The statement with the values that others became; blocks inside blocks included."""
    get = became.get
    if isinstance(s, Node):
        inputs = tuple([get(i, i) for i in s.inputs])
        return s if inputs == s.inputs else s._replace(inputs=inputs)
    if isinstance(s, If):
        return If(get(s.pred, s.pred), s.branch, tuple(_renamed(i, became) for i in s.body))
    values = tuple(v._replace(init=get(v.init, v.init), next=get(v.next, v.next)) for v in s.values)
    test, body = (tuple(_renamed(i, became) for i in b) for b in (s.test, s.body))
    return While(values, test, get(s.cond, s.cond), body, s.op)
