"""How long each step of a run takes: ``sess.explain(fetches, feed_dict, times=True)``.

A plan is a Python function with a line or more for every step (lower/emit.py). While runs are
measured, the interpreter tells when each of those lines begins; nothing is added to the code
itself, so what is measured is what runs. Being told takes about half a microsecond a line, which
small steps show.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import trace
from headrace.lower.bound_runs import BoundRuns
from headrace.lower.executable import Executable
from headrace.lower.listing import Listing, nodes_of
from headrace.lower.listing_text import seconds_text, shortened
from headrace.lower.select_updates import Grouped
from headrace.lower.session_state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike


__all__ = ["Span", "StepTime", "StepTimes", "cut", "measure", "timed_spans", "with_line"]

#: Runs before the measured ones: shapes settle and weights are packed in them.
WARM = 5
#: Steps that the text shows.
SHOWN = 40
#: The columns of the text.
WIDTH = 100


@dataclass(frozen=True)
class StepTime:
    """One step, as the median of all runs."""

    name: str
    op_type: str
    seconds: float
    share: float  # of the whole run
    line: str  # the user's


@dataclass(frozen=True)
class StepTimes:
    """The steps of a run in their order, and the run itself (medians)."""

    runs: int
    seconds: float
    steps: list[StepTime]
    #: Seconds by the identity of the plan's step: instructions of a listing have theirs.
    by_step: Mapping[int, float] = field(repr=False, default_factory=dict)

    @property
    def around(self) -> float:
        """What no step accounts for: looking up the plan, feeds, results."""
        return max(0.0, self.seconds - sum(s.seconds for s in self.steps))

    def lines(self) -> list[str]:
        """As text, the longest first."""
        out = [
            f"  times      median of {self.runs} runs: {seconds_text(self.seconds)}, of which "
            f"{seconds_text(self.around)} around the steps"
        ]
        ordered = sorted(self.steps, key=lambda s: -s.seconds)
        for s in ordered[:SHOWN]:
            text = f"      {seconds_text(s.seconds):>9} {100 * s.share:5.1f} %  {s.op_type[:40]}  "
            text += shortened(s.name, max(8, WIDTH - len(text)))
            out.append(with_line(text, s.line, " " * 26))
        if len(ordered) > SHOWN:
            rest = sum(s.seconds for s in ordered[SHOWN:])
            out.append(
                f"      {seconds_text(rest):>9}          {len(ordered) - SHOWN} further steps"
            )
        return out


def with_line(text: str, line: str, indent: str) -> str:
    """A line of text and the user's line: behind it if there is room, else below it."""
    if not line:
        return text
    if len(text) + len(line) + 6 <= WIDTH:
        return f"{text}   <- {line}"
    return f"{text}\n{cut(f'{indent}<- {line}')}"


def cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + " …"


def measure(
    run: Callable[[], Any], executable: Executable, state: State, runs: int = 20
) -> StepTimes:
    """The times of the steps of ``executable``, which ``run`` runs."""
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}.")
    for _ in range(WARM):
        run()
    codes = dict(_codes(executable, state))
    wholes: list[float] = []
    steps: dict[int, Any] = {}
    spent: dict[int, list[float]] = {}
    for _ in range(runs):
        start = time.perf_counter()
        found = _timed(run, codes)
        wholes.append(time.perf_counter() - start)
        for key, (step, seconds) in found.items():
            steps[key] = step
            spent.setdefault(key, []).append(seconds)
    whole = _median(wholes)
    by_step = {key: _median(times) for key, times in spent.items()}
    made = [_step_time(steps[key], seconds, whole) for key, seconds in by_step.items()]
    return StepTimes(runs, whole, made, by_step)


def _codes(executable: Executable, state: State) -> list[tuple[CodeType, Mapping[int, Any]]]:
    found = [executable, *[e for _, e in executable.planned_again(state)]]
    codes = [pair for e in found for pair in _codes_of(e, state)]
    return [(code, listing.steps) for code, listing in codes]


def _codes_of(executable: Executable, state: State) -> list[tuple[CodeType, Listing]]:
    codes = list(executable.details.codes)
    if executable.details.kept is not None:
        codes += executable.details.kept.details.codes
    run = executable.details.general_run or executable.run
    if isinstance(run, BoundRuns):
        codes += run.listings(state)
    return codes


class Span(NamedTuple):
    """A step's time in one run, by ``time.perf_counter``."""

    step: Any
    start: float
    end: float


def _timed(
    run: Callable[[], Any], codes: Mapping[CodeType, Mapping[int, Any]]
) -> dict[int, tuple[Any, float]]:
    """One run: the seconds of each step, by the step's identity."""
    spent: dict[int, tuple[Any, float]] = {}
    for step, start, end in _spans(run, codes)[1]:
        before = spent.get(id(step), (step, 0.0))[1]
        spent[id(step)] = step, before + end - start
    return spent


def timed_spans(
    run: Callable[[], Any], executable: Executable, state: State
) -> tuple[Any, list[Span]]:
    """The result of one run and the times of its steps, in their order."""
    return _spans(run, dict(_codes(executable, state)))


def _spans(
    run: Callable[[], Any], codes: Mapping[CodeType, Mapping[int, Any]]
) -> tuple[Any, list[Span]]:
    spans: list[Span] = []
    clock = time.perf_counter
    current: list[Any] = [None, 0.0]

    def close(now: float) -> None:
        if current[0] is not None:
            spans.append(Span(current[0], current[1], now))

    def local(frame: FrameType, event: str, _: Sequence[TensorLike] | None) -> Callable[..., Any]:
        now = clock()
        close(now)
        current[0] = codes[frame.f_code].get(frame.f_lineno) if event == "line" else None
        current[1] = clock()
        return local

    def begins(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        return local if frame.f_code in codes else None

    before = sys.gettrace()
    sys.settrace(begins)
    try:
        result = run()
    finally:
        sys.settrace(before)
    return result, spans


def _step_time(step: Any, seconds: float, whole: float) -> StepTime:
    nodes = nodes_of(step)
    kinds = " + ".join(n.opdef.name for n in nodes)
    if isinstance(step, Grouped):
        kinds = f"{nodes[0].opdef.name} x {len(nodes)}"
    last = nodes[-1]
    line = trace.user_line(last.op._frames)
    return StepTime(last.op.name, kinds, seconds, seconds / whole if whole else 0.0, line)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
