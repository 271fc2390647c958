"""Per-thread stacks (default graph, default session) and the few hooks by which lower layers reach
higher ones.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.device_spec import DeviceSpec

if TYPE_CHECKING:
    from headrace.core.graph import Graph
    from headrace.core.opdef import OpDef
    from headrace.core.tensor import Operation
    from headrace.session.session import BaseSession

__all__ = [
    "UNSET",
    "DefaultStack",
    "default_graphs",
    "default_sessions",
    "device_string",
    "node_def_of",
    "op_def_of",
    "session_for",
]


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


class DefaultStack(threading.local):
    """A stack of context-managed defaults, one per thread."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.enforce_nesting = True

    def get(self) -> Any:
        return self.items[-1] if self.items else None

    def entered(self, item: Graph | BaseSession) -> Entered:
        return Entered(self, item)

    def leave(self, item: object, enforce_nesting: bool = True) -> None:
        if self.items and self.items[-1] is item:
            self.items.pop()
        elif item in self.items:
            if self.enforce_nesting and enforce_nesting:
                raise AssertionError(
                    f"Nesting violated for default stack of {type(item)} objects: "
                    "leave the contexts in the reverse of the order in which you entered them"
                )
            self.items.remove(item)


class Entered:
    """``with stack.entered(item):`` makes the item the default inside.

    (A class: half the cost of a generator.)
    """

    __slots__ = ("enforce_nesting", "item", "stack")

    def __init__(self, stack: DefaultStack, item: object) -> None:
        self.stack = stack
        self.item = item
        self.enforce_nesting = True  # programs set it, as InteractiveSession does

    def __enter__(self) -> Any:
        self.stack.items.append(self.item)
        return self.item

    def __exit__(self, *exc: object) -> None:
        self.stack.leave(self.item, self.enforce_nesting)


default_sessions = DefaultStack()
default_graphs = DefaultStack()


def session_for(session: Any, graph: Graph, what: str) -> Any:
    """The session that ``eval``/``run`` on a graph element uses."""
    if session is None:
        session = default_sessions.get()
        if session is None:
            raise ValueError(
                f"Cannot {what}: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit "
                f"session to `{what.split('`')[1][:-2]}(session=sess)`"
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {what}: it belongs to a different graph. "
                "Pass the session of this graph explicitly."
            )
    elif session.graph is not graph:
        raise ValueError(
            f"Cannot use the given session to {what}: it belongs to a different graph."
        )
    return session


#: The eager context, once it is loaded (eager/eager_context.py).
eager_graph: Graph | None = None
#: Called with a graph whose collections and numbers ``tf.reset_default_graph`` forgets.
forgetters: list[Callable[[Graph], object]] = []

#: Set by headrace.formats: turns an operation into a NodeDef message.
node_def_encoder: Callable[[Operation], Any] | None = None
#: Likewise for a whole graph.
graph_def_encoder: Callable[[Graph, int | None, bool], Any] | None = None
#: Likewise for an attribute that TensorFlow shows as a message (a tensor, a shape, a function).
attr_encoder: Callable[[Operation, str], Any] | None = None
#: Set by core/call_records.py: what an operation that stands for a call is the call of.
call_of: Callable[[Operation], Any] = lambda op: None
#: The other way: the value of a kind (of an op's attribute) that an AttrValue message holds.
attr_decoder: Callable[[Any, str], Any] | None = None
#: Likewise for the definition of an op.
op_def_encoder: Callable[[OpDef], Any] | None = None


def op_def_of(definition: OpDef) -> OpDef:
    """The OpDef message of a definition; the definition itself while formats are not loaded."""
    return definition if op_def_encoder is None else op_def_encoder(definition)


def node_def_of(op: Operation) -> Any:
    if node_def_encoder is None:
        raise ImportError("NodeDef messages need headrace.formats, which is not loaded")
    return node_def_encoder(op)


def device_string(device: Any) -> str:
    """A device as TensorFlow writes it.

    "/cpu:0" is "/device:CPU:0". ValueError for what is no device's name.
    """
    if device is None:
        return ""
    return canonical(device) if isinstance(device, str) else device.to_string()


@functools.lru_cache(256)
def canonical(device: str) -> str:
    return DeviceSpec.from_string(device).to_string()
