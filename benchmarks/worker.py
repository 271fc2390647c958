"""A worker: one library in one process, which measures what it is asked over stdin and stdout, a
JSON value a line.

It begins with a line about itself, then answers every request:

    $ python -m benchmarks.worker engine headrace 2
    {"version": "headrace 0.1.0", "cases": ["import", "scalar_add", ...]}
    {"case": "scalar_add", "quick": true}                     <- the request
    {"samples": {"run": [3.1e-06, ...]}}                      or {"error": "Traceback ..."}
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from typing import Any, TextIO

from benchmarks.cases import load
from benchmarks.libraries import LIBRARIES
from benchmarks.scale import FULL, QUICK, Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import import_seconds

__all__ = ["main"]


def _import_case(statement: str) -> Case:
    return lambda module, scale: lambda: {"import": [import_seconds(statement)]}


class Worker:
    """Keeps a prepared case for the next rounds."""

    def __init__(self, group: str, library: str) -> None:
        self.module, self.version, cases = load(group, library)
        self.cases = {"import": _import_case(LIBRARIES[library].statement), **cases}
        self.prepared: dict[str, Measure] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"samples": self._measure(request["case"], QUICK if request["quick"] else FULL)}
        except Exception:
            return {"error": traceback.format_exc()}

    def _measure(self, case: str, scale: Scale) -> Samples:
        if case not in self.prepared:
            self.prepared[case] = self.cases[case](self.module, scale)
        return self.prepared[case]()


def _own_stdout() -> TextIO:
    """The real stdout for answers; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _limit_processors(count: int) -> None:
    """Threads over more processors than the others have would not be compared fairly.

    Not every system can do this.
    """
    with contextlib.suppress(AttributeError):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main(group: str, library: str, threads: int) -> None:
    answers = _own_stdout()

    def say(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    _limit_processors(threads)
    try:
        worker = Worker(group, library)
    except Exception:
        say({"error": traceback.format_exc()})
        return
    say({"version": worker.version, "cases": list(worker.cases)})
    for line in sys.stdin:
        say(worker.answer(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
