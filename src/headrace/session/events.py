"""Counts of what sessions did. One stream of events, which ``explain`` and the report of
``headrace run --report`` read.

Counters are always on (a few additions where a plan is made); times of runs are taken only while
someone listens.

    >>> snapshot()["runs"]
    12
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.runtime import notices
from headrace.runtime.fork_locks import held_at_fork

if TYPE_CHECKING:
    from headrace.lower.executable import Executable
    from headrace.session.session import BaseSession

__all__ = ["EVENTS", "listen", "snapshot", "timing"]


class Events:
    """The process-wide counters."""

    def __init__(self) -> None:
        self.lock = held_at_fork(threading.Lock())
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        self.timing = False
        self.runs = 0
        self.run_seconds = 0.0
        self.sessions = 0
        self.sessions_closed = 0
        self.plans = 0
        self.plan_seconds = 0.0
        self.plan_hits = 0
        self.failed_runs = 0

    def emit(self, name: str, **data: object) -> None:
        for listener in self.listeners:
            listener(name, data)

    def emit_plan(self, session: BaseSession | None, executable: Executable) -> None:
        """A plan was made.

        "plan", "rewrite" for each rule that fired, "fallback" for what the machine cannot do.
        """
        program = executable.plan.program
        self.emit("plan", session=session, executable=executable)
        for firing in program.firings:
            self.emit("rewrite", session=session, rule=firing.rule, op=firing.op)
        way = program.weights_form
        if way is not None and way.falls_back:
            self.emit(
                "fallback",
                session=session,
                asked=f"weights in {way.asked}",
                done=way.way,
                why=way.reason,
            )


EVENTS = Events()
notices.listeners.append(EVENTS.emit)


def listen(listener: Callable[[str, dict[str, Any]], None]) -> Callable[[], None]:
    """Call ``listener(name, data)`` for every event from now on; returns a function that stops
    it.
    """
    EVENTS.listeners.append(listener)
    timing(True)

    def stop() -> None:
        EVENTS.listeners.remove(listener)
        timing(bool(EVENTS.listeners))

    return stop


def timing(on: bool) -> None:
    """Whether runs are timed (and each is an event)."""
    EVENTS.timing = on


def snapshot() -> dict[str, Any]:
    """The counters now."""
    from headrace.lower.emit_lines import COUNTS
    from headrace.lower.write_stage import WriteStage

    return {
        "runs": EVENTS.runs,
        "run_seconds": EVENTS.run_seconds,
        "failed_runs": EVENTS.failed_runs,
        "sessions": EVENTS.sessions,
        "sessions_closed": EVENTS.sessions_closed,
        "plans": EVENTS.plans,
        "plan_seconds": EVENTS.plan_seconds,
        "plan_hits": EVENTS.plan_hits,
        "code_compiled": COUNTS["compiled"],
        "code_shared": COUNTS["shared"],
        "kept_hits": WriteStage.counts.hits,
        "kept_misses": WriteStage.counts.misses,
    }
