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

__all__ = ["OpenScopes", "ThreadScopes", "thread_scope"]


class OpenScopes:
    """What one thread has entered in one graph; a thread begins outside of all scopes."""

    __slots__ = (
        "attrs",
        "colocation_stack",
        "container",
        "context",
        "control_ops",
        "control_stack",
        "device_stack",
        "gradient_overrides",
        "name_stack",
    )

    def __init__(self) -> None:
        self.name_stack = ""
        self.control_ops: tuple[Operation, ...] = ()
        self.container = ""
        self.context: Any = None  # control-flow context
        self.control_stack: list[Any] = []
        self.device_stack: list[Any] = []
        self.colocation_stack: list[Operation] = []
        self.gradient_overrides: dict[str, str] = {}
        self.attrs: dict[str, Any] = {}  # of every operation made here


class ThreadScopes(threading.local):
    """The open scopes of one graph: ``here`` are those of the calling thread."""

    def __init__(self) -> None:
        self.here = OpenScopes()


def thread_scope(name: str) -> Any:
    """A graph's attribute that is kept in its ``_scopes``, for each thread."""

    def write(graph: Any, value: object) -> None:
        setattr(graph._scopes.here, name, value)

    return property(operator.attrgetter(f"_scopes.here.{name}"), write)
