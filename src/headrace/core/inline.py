"""Copying the operations of a function's graph into another graph.

    copied = inline(function_graph, graph, {placeholder: tensor, ...}, name="f")
    copied[function_graph.outputs[0]]        # the result in ``graph``

Tensors in ``known`` stand for themselves in the copy; everything else that is asked for is copied,
in program order, below a name scope. Branches and loops get contexts of their own; what is outside
of them belongs to wherever the target graph is just being built, as if the function's code stood
there. The order of effects is kept inside, and the whole takes its place in the order of effects
around it (core/effects.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core.contexts import Context
from headrace.core.effects import Entry, wait_for
from headrace.core.func_graph import is_function_graph
from headrace.core.graph import Graph
from headrace.core.opdef import lookup
from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.effects import Effects

__all__ = ["Copies", "handle_in", "inline"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-/]|^[^A-Za-z0-9.]+")
#: A context that is being copied brings nothing in: the ways in are copied too. Its predicate is
#: not there yet.
_WHILE_COPYING: dict[str, Any] = {
    "capture_inputs": lambda opdef, inputs: inputs,
    "control_inputs_for": lambda op, controls: controls,
    "pred": None,
}


def inline(
    source: Graph,
    target: Graph,
    known: dict[Tensor, Tensor],
    wanted: Iterable[Tensor | Operation] | None = None,
    name: str | None = None,
) -> Copies:
    """Copy what ``wanted`` (by default the outputs and effects of the function) needs."""
    copier = _Copier(source, target, known)
    if wanted is None:
        wanted = [*source.outputs, *source.control_outputs]  # type: ignore[attr-defined]
    given: str = name or getattr(source, "name", None) or ""
    scope = _NOT_IN_NAMES.sub("", given) or "function"
    with target.as_default(), target.name_scope(scope):
        copier.copy(list(wanted))
    target._py_funcs.extend(f for f in source._py_funcs if f not in target._py_funcs)
    return Copies(copier.tensors, copier.ops)


class Copies(dict[Tensor, Tensor]):
    """The copies of tensors, and of operations."""

    def __init__(self, tensors: dict[Tensor, Tensor], ops: dict[Operation, Operation]) -> None:
        super().__init__(tensors)
        self.ops = ops


class _Copier:
    def __init__(self, source: Graph, target: Graph, known: dict[Tensor, Tensor]) -> None:
        self.source = source
        self.target = target
        here = target._context
        self.tensors = (
            dict(known) if here is None else {k: here.capture(v) for k, v in known.items()}
        )
        self.ops: dict[Operation, Operation] = {}
        self.contexts: dict[Context | None, Context | None] = {None: here}
        self.made: list[Context] = []
        self.loop_merges: list[tuple[Operation, Operation]] = []
        self.late: list[
            tuple[Operation, Operation]
        ] = []  # some control inputs are copied after them
        self.extra: dict[Operation, list[Operation]] = {}  # what where an effect starts waits for

    def copy(self, wanted: list[Tensor | Operation]) -> None:
        roots = [w._op if isinstance(w, Tensor) else w for w in wanted if w not in self.tensors]
        needed = self._needed(roots)
        entries = self._entries(needed)
        effects = self.target._effects
        noting = effects is not None and effects.noting
        if effects is not None:
            self._order(entries, effects)
            effects.noting = False
        try:
            for op in sorted(needed, key=lambda o: o._id):
                self._one(op)
        finally:
            if effects is not None:
                effects.noting = noting
        for old, new in self.loop_merges:
            new._inputs = tuple([self.tensors[t] for t in old._inputs])
        for old, new in self.late:
            wait_for(new, [self.ops[c] for c in old._control_inputs if c in self.ops])
        for context in self.made:
            self._finish(context)
        if noting:
            self._note(entries, effects)

    def _needed(self, roots: list[Operation]) -> set[Operation]:
        """Everything behind the roots, and the pivots of its branches and loops.

        Later operations may hang on them.
        """
        while True:
            needed = needed_ops(roots, self.tensors)
            pivots = {p for op in needed for p in _pivots(op._context) if p not in needed}
            if not pivots:
                return needed
            roots = [*roots, *pivots]

    # effects ------------------------------------------------------------------------------------
    def _entries(self, needed: set[Operation]) -> list[Entry]:
        effects = self.source._effects
        return [] if effects is None else [e for e in effects.entries if e.op in needed]

    def _order(self, entries: list[Entry], effects: Effects) -> None:
        """Where effects of the copy start, they wait for what came before in the target."""
        region = effects.regions.get(self.target._context)
        if region is None or not entries:
            return
        reads, writes = set(), set()
        for e in entries:
            reads |= {self._variable(v) for v in e.reads}
            writes |= {self._variable(v) for v in e.writes}
        before = region.before(reads - writes, writes, any(e.other for e in entries))
        if not before:
            return
        if len(before) > 2:  # one operation that waits for all of them
            before = [
                self.target._add_op(
                    lookup("NoOp"), (), {}, self.target.unique_name("before"), tuple(before)
                )
            ]
        for e in entries:
            for start in e.starts:
                self.extra.setdefault(start, []).extend(before)

    def _variable(self, key: str) -> str:
        if not isinstance(key, Tensor):
            return key
        from headrace.core.effects import variable_of

        found = self.tensors.get(key)
        return key if found is None else variable_of(found)

    def _note(self, entries: list[Entry], effects: Effects) -> None:
        region = effects.regions.get(self.target._context)
        if region is None:
            return
        for e in entries:
            region.add(
                Entry(
                    self.ops[e.op],
                    tuple([self.ops[s] for s in e.starts if s in self.ops]),
                    frozenset([self._variable(v) for v in e.reads]),
                    frozenset([self._variable(v) for v in e.writes]),
                    e.other,
                )
            )

    # operations ---------------------------------------------------------------------------------
    def _one(self, op: Operation) -> None:
        if op._role == "handle":
            handle, here = handle_in(self.target, op), self.contexts[None]
            self.tensors[op._outputs[0]] = handle if here is None else here.capture(handle)
            self.ops[op] = handle._op
            return
        role = op._opdef.role
        is_loop_merge = role == "merge" and op._inputs[0]._op._opdef.role == "enter"
        old_inputs = (op._inputs[0],) * len(op._inputs) if is_loop_merge else op._inputs
        inputs = tuple([self.tensors[t] for t in old_inputs])
        controls = tuple([self.ops[c] for c in op._control_inputs if c in self.ops])
        new = self._add(op, inputs, controls)
        self.ops[op] = new
        if len(controls) != len(op._control_inputs):
            self.late.append((op, new))
        if is_loop_merge:
            self.loop_merges.append((op, new))
        for t, copied in zip(op._outputs, new._outputs):
            self.tensors.setdefault(t, copied)
            if is_loop_merge or role in ("enter", "exit", "next") or copied._shape is None:
                copied._shape = t._shape
        new.__dict__.update({k: self._mapped(v) for k, v in op.__dict__.items()})
        if op in self.extra:
            wait_for(new, self.extra[op])

    def _add(
        self, op: Operation, inputs: tuple[Tensor, ...], controls: tuple[Operation, ...]
    ) -> Operation:
        """The operation in the target.

        At home in the copy of its context, which it needs no way into.
        """
        target = self.target
        context = self._context(op._context)
        attrs = dict(op._attrs)
        if op._role == "enter" and context is not None:
            attrs["frame_name"] = context.name
        name = target.unique_name(op.name)
        if op._context is None:
            new = target._add_op(
                op._opdef, inputs, attrs, name, (*controls, *target._control_ops), depth=-1
            )
        else:
            here, target._context = target._context, context
            try:
                new = target._add_op(op._opdef, inputs, attrs, name, controls, depth=-1)
            finally:
                target._context = here
        new._frames = op._frames
        return new

    # contexts -----------------------------------------------------------------------------------
    def _context(self, context: Context | None) -> Context | None:
        if context in self.contexts:
            return self.contexts[context]
        assert context is not None
        outer = self._context(context.outer_context)
        made: Context = type(context).__new__(type(context))
        Context.__init__(made, self.target.unique_name(context.name), outer)
        made.__dict__.update(_WHILE_COPYING)
        self.contexts[context] = made
        self.made.append(context)
        return made

    def _finish(self, context: Context) -> None:
        """The copy of a context knows the copies of what the original knew."""
        made = self.contexts[context]
        assert made is not None
        for key in _WHILE_COPYING:
            del made.__dict__[key]
        kept = {"name", "outer_context", "_where", "_entered", "backward"}
        for key, value in context.__dict__.items():
            if key not in kept:
                made.__dict__[key] = self._mapped(value)
        made.__dict__["_entered"] = []
        made.__dict__["backward"] = None

    def _mapped(self, value: object) -> Any:
        if isinstance(value, Tensor):
            return self.tensors.get(value, value)
        if isinstance(value, Operation):
            return self.ops.get(value, value)
        if isinstance(value, Context):
            return self._context(value)
        if isinstance(value, dict):
            pairs = [(k, v) for k, v in value.items() if self._is_here(k) and self._is_here(v)]
            return {self._mapped(k): self._mapped(v) for k, v in pairs}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self._mapped(v) for v in value])
        if isinstance(value, list):
            return [self._mapped(v) for v in value if self._is_here(v)]
        return value

    def _is_here(self, value: object) -> bool:
        """Whether a part of the copied graph: what was not needed was left behind."""
        if isinstance(value, Tensor):
            return value in self.tensors
        if isinstance(value, tuple):
            return all(self._is_here(v) for v in value)
        return not isinstance(value, Operation) or value in self.ops


def _pivots(context: Context | None) -> Iterator[Operation]:
    while context is not None:
        pivot = getattr(context, "pivot", None)
        if pivot is not None:
            yield pivot._op if isinstance(pivot, Tensor) else pivot
        context = context.outer_context


def handle_in(target: Graph, op: Operation) -> Tensor:
    """The target's handle of the variable behind a handle of the function."""
    if is_function_graph(target):
        outer = op.graph.outer_handles if is_function_graph(op.graph) else {}
        return target.handle_like(op, outer.get(op._attrs.get("shared_name") or op.name))
    key = _handle_key(op)
    known = _handles_of(target)
    if key not in known:
        attrs = {**op._attrs, "shared_name": key[1]}
        attrs.pop("_class", None)
        context, target._context = target._context, None
        try:
            made = target._add_op(op._opdef, (), attrs, target._unique(op.name), ())
        finally:
            target._context = context
        known[key] = made._outputs[0]
    return known[key]


def _handle_key(op: Operation) -> tuple[str, str]:
    return (op._attrs.get("container") or "", op._attrs.get("shared_name") or op.name)


def _handles_of(graph: Graph) -> dict[tuple[str, str], Tensor]:
    """The first handle of each variable of a graph; kept, and brought up to date by what is new."""
    handles, seen = graph._handle_index
    for op in graph._ops[seen:]:
        if op._role == "handle":
            handles.setdefault(_handle_key(op), op._outputs[0])
    graph._handle_index = (handles, len(graph._ops))
    return handles
