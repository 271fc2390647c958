"""The plans of a graph, shared by its sessions: the least recently used one is forgotten first."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from headrace.core.graph import Graph
from headrace.executors import Executable
from headrace.runtime.fork_locks import held_at_fork

if TYPE_CHECKING:
    from headrace.session.session import BaseSession

__all__ = ["MAX_PLANS", "PlanCache", "plans_of"]

#: Plans that a graph remembers.
MAX_PLANS = 512


class PlanCache:
    """The plans of one graph, least recently used first."""

    def __init__(self) -> None:
        self.lock = held_at_fork(threading.Lock())
        self.plans: OrderedDict[Any, Executable] = OrderedDict()
        self.sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()
        self.changes = 0

    def get(self, key: Any) -> Executable | None:
        with self.lock:
            found = self.plans.get(key)
            if found is not None:
                self.plans.move_to_end(key)
            return found

    def put(self, key: object, executable: Executable) -> None:
        with self.lock:
            self.plans[key] = executable
            while len(self.plans) > MAX_PLANS:
                self.plans.popitem(last=False)

    def forget(self) -> None:
        """An existing operation changed: nothing that was planned may be used again."""
        with self.lock:
            self.plans.clear()
        for session in list(self.sessions):
            session._calls.clear()


def plans_of(graph: Graph) -> PlanCache:
    """The plan cache of a graph, made when it is first asked for."""
    cache: PlanCache | None = graph._plans
    if cache is None:
        with graph._lock:
            cache = graph._plans
            if cache is None:
                cache = graph._plans = PlanCache()
    return cache
