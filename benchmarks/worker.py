"""A worker: one library in one process, which measures what it is asked over stdin and stdout, a JSON value a line.

It begins with a line about itself, then answers every request:

    $ python -m benchmarks.worker headrace 2
    {"version": "headrace 0.1.0", "cases": ["import", "scalar_add", ...]}
    {"case": "scalar_add", "quick": true}                     <- the request
    {"samples": {"run": [3.1e-06, ...]}}                      or {"error": "Traceback ..."}
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO

from benchmarks import graph_cases, jax_cases, memory_cases, session_cases
from benchmarks.scale import FULL, QUICK, Samples, Scale
from benchmarks.session_cases import Measure

__all__ = ["LIBRARIES", "Library", "main"]

SESSION_CASES = {**session_cases.CASES, **graph_cases.CASES, **memory_cases.CASES}


@dataclass(frozen=True)
class Library:
    """``statement`` imports it as a user would (and uses a name, so that a lazy import does its work)."""

    statement: str
    load: Callable[[], tuple[Any, str]]
    cases: dict[str, Callable[[Any, Scale], Measure]]


def _load_headrace() -> tuple[Any, str]:
    tf = import_module("headrace")
    return tf, f"headrace {tf.HEADRACE_VERSION}"


def _load_tensorflow() -> tuple[Any, str]:
    tf = import_module("tensorflow.compat.v1")
    tf.disable_v2_behavior()
    return tf, f"tensorflow {tf.version.VERSION}"


def _load_jax() -> tuple[Any, str]:
    jax = import_module("jax")
    return jax, f"jax {jax.__version__}"


LIBRARIES = {
    "headrace": Library("import headrace as tf; tf.Session", _load_headrace, SESSION_CASES),
    "tf": Library("import tensorflow.compat.v1 as tf; tf.Session", _load_tensorflow, SESSION_CASES),
    "jax": Library("import jax; jax.numpy.add; jax.jit", _load_jax, jax_cases.CASES),
}


def _import_case(library: Library) -> Callable[[Any, Scale], Measure]:
    program = (
        f"import time; t = time.perf_counter(); {library.statement}; print(time.perf_counter() - t)"
    )

    def measure() -> Samples:
        return {"import": [float(subprocess.check_output([sys.executable, "-c", program]))]}

    return lambda module, scale: measure


class Worker:
    """Keeps a prepared case for the next rounds."""

    def __init__(self, library: Library) -> None:
        self.module, self.version = library.load()
        self.cases = {"import": _import_case(library), **library.cases}
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
    """Threads over more processors than the others have would not be compared fairly. Not every system can do this."""
    with contextlib.suppress(AttributeError):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main(name: str, threads: int) -> None:
    answers = _own_stdout()

    def say(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    _limit_processors(threads)
    try:
        worker = Worker(LIBRARIES[name])
    except Exception:
        say({"error": traceback.format_exc()})
        return
    say({"version": worker.version, "cases": list(worker.cases)})
    for line in sys.stdin:
        say(worker.answer(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
