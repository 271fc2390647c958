"""The blocks that graphs are built in by the thousand: name scopes, control dependencies,
colocation.

They are classes, since a generator under ``contextmanager`` takes three times as long to enter and
to leave. A block sets fields of the calling thread's scopes (thread_scopes.py) and puts back what
was there.

    with NameScope(graph, "layer") as prefix:      # graph.name_scope("layer")
        ...
"""

from __future__ import annotations

import re
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from typing import Self

    from headrace.core.graph_scopes import GraphScopes
    from headrace.core.thread_scopes import OpenScopes

__all__ = ["VALID_OP_NAME", "Colocation", "ControlDependencies", "ControlScope", "NameScope"]

VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\\-/]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\\-/]*$")


class ControlDependencies:
    """One ``with control_dependencies`` block.

    ``seen`` are the operations that were made inside: what takes one of them as an input waits for
    ``ops`` by it and needs no control inputs of its own.
    """

    __slots__ = ("clear", "ops", "seen")

    def __init__(self, ops: tuple[Operation, ...], clear: bool) -> None:
        self.ops = ops
        self.clear = clear
        self.seen: set[Operation] = set()


class _Block(ContextDecorator):
    """A block of one graph; as a decorator it is entered anew for each call."""

    graph: GraphScopes
    here: OpenScopes  # the scopes of the thread that entered it


class NameScope(_Block):
    """``graph.name_scope``: gives the scope's name with a slash, or an empty text."""

    def __init__(self, graph: GraphScopes, name: str | None) -> None:
        self.graph, self.name = graph, name

    def _recreate_cm(self) -> Self:
        return type(self)(self.graph, self.name)

    def __enter__(self) -> str:
        graph, name = self.graph, self.name
        self.here = here = graph._scopes.here
        self.old = here.name_stack
        if not name:
            here.name_stack = ""
            return ""
        if isinstance(name, bytes):
            name = name.decode()
        valid = _VALID_SCOPE_NAME if self.old else VALID_OP_NAME
        if not valid.match(name):
            raise ValueError(f"'{name}' is not a valid scope name")
        here.name_stack = new = name[:-1] if name[-1] == "/" else graph.unique_name(name)
        return new + "/"

    def __exit__(self, *exc: object) -> None:
        self.here.name_stack = self.old


class ControlScope(_Block):
    """``graph.control_dependencies``; None drops those of enclosing blocks."""

    def __init__(self, graph: GraphScopes, control_inputs: Any) -> None:
        self.graph, self.control_inputs = graph, control_inputs

    def _recreate_cm(self) -> Self:
        return type(self)(self.graph, self.control_inputs)

    def _entry(self) -> ControlDependencies:
        if self.control_inputs is None:
            return ControlDependencies((), True)
        ops = []
        for item in self.control_inputs:
            element = item
            if hasattr(element, "handle") and hasattr(element, "op"):
                element = element.op  # a resource variable: it is not read, a write is waited for
            elif hasattr(element, "_as_graph_element"):
                element = element._as_graph_element()
            if not isinstance(element, (Operation, Tensor)) and hasattr(element, "op"):
                element = element.op  # IndexedSlices, SparseTensor
            element = self.graph.as_graph_element(element)
            ops.append(element._op if isinstance(element, Tensor) else element)
        return ControlDependencies(tuple(dict.fromkeys(ops)), False)

    def __enter__(self) -> None:
        entry = self._entry()
        self.here = here = self.graph._scopes.here
        here.control_stack.append(entry)
        self.old_ops, self.old_context, self.clears = here.control_ops, here.context, entry.clear
        if entry.clear:
            here.control_ops = ()
            here.context = None
        else:
            here.control_ops = tuple(dict.fromkeys(here.control_ops + entry.ops))

    def __exit__(self, *exc: object) -> None:
        here = self.here
        here.control_stack.pop()
        here.control_ops = self.old_ops
        if self.clears:
            here.context = self.old_context


class Colocation(_Block):
    """``graph.colocate_with``."""

    def __init__(self, graph: GraphScopes, op: Any, ignore_existing: bool) -> None:
        self.graph, self.op, self.ignore_existing = graph, op, ignore_existing

    def _recreate_cm(self) -> Self:
        return type(self)(self.graph, self.op, self.ignore_existing)

    def __enter__(self) -> None:
        op = self.op
        if op is None and not self.ignore_existing:
            raise ValueError(
                "Trying to reset colocation (op is None) but ignore_existing is not True"
            )
        self.here = here = self.graph._scopes.here
        self.old, self.devices = here.colocation_stack, here.device_stack
        stack = [] if self.ignore_existing else list(self.old)
        if op is not None:
            element = op._as_graph_element() if hasattr(op, "_as_graph_element") else op
            element = getattr(element, "op", element)
            if isinstance(element, Operation):  # an eager variable has none
                stack.append(element)
        here.colocation_stack = stack
        here.device_stack = []  # it is stronger than devices around it, as in TensorFlow

    def __exit__(self, *exc: object) -> None:
        self.here.colocation_stack, self.here.device_stack = self.old, self.devices
