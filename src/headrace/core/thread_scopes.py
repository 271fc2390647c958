"""The scopes of a graph that are open, for each thread.

What ``with tf.name_scope``, ``tf.device``, ``tf.control_dependencies`` and ``tf.cond`` set
holds for the thread that entered the block, so that several threads may build in one graph. A
graph's attribute reads and writes the value of the calling thread:

    class Graph:
        _name_stack = thread_scope("name_stack")
"""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.tensor import Operation

__all__ = ["ThreadScopes", "thread_scope"]


class ThreadScopes(threading.local):
    """The open scopes of one graph; a thread begins outside of all."""

    name_stack: str = ""
    control_ops: tuple[Operation, ...] = ()
    container: str = ""
    context: Any = None  # control-flow context

    def __init__(self) -> None:
        self.control_stack: list[Any] = []
        self.device_stack: list[Any] = []
        self.colocation_stack: list[Operation] = []
        self.gradient_overrides: dict[str, str] = {}
        self.attrs: dict[str, Any] = {}  # of every operation made here


def thread_scope(name: str) -> Any:
    """A graph's attribute that is kept in its ``_scopes``, for each thread."""

    def write(graph: Any, value: object) -> None:
        setattr(graph._scopes, name, value)

    return property(operator.attrgetter(f"_scopes.{name}"), write)
