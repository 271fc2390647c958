"""The account that ``headrace run --report`` prints.

What ran, how often, how long, with how much memory.
"""

from __future__ import annotations

import atexit
import sys
import time
import weakref
from typing import Any

from headrace.cli.machine import machine_rows
from headrace.session import events

__all__ = ["Account"]


class Account:
    """Listens from :meth:`start` to the end of the process, then prints."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.graph_ops = 0
        self.variable_bytes = 0
        self.sessions: weakref.WeakSet[Any] = weakref.WeakSet()

    def start(self) -> None:
        events.listen(self._on_event)
        atexit.register(self._finish)

    def _on_event(self, name: str, data: dict[str, Any]) -> None:
        # sizes are taken when a plan is made, not at every run: graphs and variables settle with
        # the plans
        if name == "plan" and data["session"] is not None:
            self.sessions.add(data["session"])
            self._measure()

    def _measure(self) -> None:
        live = list(self.sessions)
        self.graph_ops = max([self.graph_ops, *(len(s.graph._ops) for s in live)])
        self.variable_bytes = max(self.variable_bytes, sum(s._state.nbytes() for s in live))

    def _finish(self) -> None:
        self._measure()
        print(self.text(events.snapshot(), time.perf_counter() - self.began), file=sys.stderr)

    def rows(self, counts: dict[str, Any], seconds: float) -> list[tuple[str, str]]:
        runs = counts["runs"]
        plans = counts["plans"]
        each = f", {_time(counts['run_seconds'] / runs)} each" if runs else ""
        failed = f", {counts['failed_runs']} failed" if counts["failed_runs"] else ""
        return [
            ("wall time", _time(seconds)),
            ("runs", f"{runs:,}, {_time(counts['run_seconds'])} in them{each}{failed}"),
            (
                "plans",
                f"{plans:,} made in {_time(counts['plan_seconds'])}, "
                f"{max(runs - plans, 0):,} runs found theirs made",
            ),
            (
                "kept values",
                f"{counts['kept_hits']:,} times good, {counts['kept_misses']:,} times made",
            ),
            ("sessions", f"{counts['sessions']:,} opened, {counts['sessions_closed']:,} closed"),
            ("graph", f"{self.graph_ops:,} ops"),
            ("variables", _size(self.variable_bytes)),
            ("peak memory", _size(_peak_memory())),
            *machine_rows(short=True),
        ]

    def text(self, counts: dict[str, Any], seconds: float) -> str:
        lines = [f"  {head:<12} {value}" for head, value in self.rows(counts, seconds)]
        return "\n".join(["headrace report", *lines])


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} µs"


def _size(count: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} bytes"


def _peak_memory() -> int:
    """The most that was resident, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024
