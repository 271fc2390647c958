"""Training steps while other processes want the same cores, many processes at once, many threads on
one session.

Other work is a Python loop for each core (``busy``) or one alone (``neighbour``), with the worker's
own affinity. Rows show the median and the 90th percentile of a step: the best of many is the one
that nobody disturbed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.busy_programs import PROGRAMS, WARM, Step, make_step
from benchmarks.rows import Quantile, Row, Target
from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure

__all__ = ["CASES", "ROWS"]

_LOOP = "while True: pass"
#: How many processes a hyperparameter search starts, and threads a server.
PROCESSES, THREADS = 8, 16
SECONDS = 2.0


@contextmanager
def _others(count: int) -> Iterator[None]:
    """So many processes that never wait."""
    running = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(count)]
    try:
        time.sleep(0.1 if count else 0.0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def _steps(tf: Any, scale: Scale, *, program: str, others: float) -> Measure:
    step = make_step(tf, program)
    cores = len(os.sched_getaffinity(0))

    def measure() -> Samples:
        times = []
        with _others(round(others * cores) if others in (0, 1) else 1):
            step()
            end = time.perf_counter() + SECONDS * scale.seconds / 0.4
            while time.perf_counter() < end or len(times) < 5:
                start = time.perf_counter()
                step()
                times.append(time.perf_counter() - start)
        return {"step": times}

    return measure


def _processes(tf: Any, scale: Scale, *, library: str) -> Measure:
    """Seconds a step, over all processes together."""
    seconds = SECONDS * scale.seconds / 0.4

    def measure() -> Samples:
        command = [sys.executable, "-m", "benchmarks.busy_programs", library, "mlp", str(seconds)]
        running = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]
        for process in running:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        steps = sum(int(process.communicate("\n")[0]) for process in _told(running))
        return {"step": [seconds / steps]}

    return measure


def _told(running: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return running


def _threads(tf: Any, scale: Scale, *, warm: int = 0) -> Measure:
    """Seconds a step, over all threads together, on one session.

    The main thread made ``warm`` steps before them, or a thread did; then all of them together.
    """
    step = make_step(tf, "mlp", warm)
    seconds = SECONDS * scale.seconds / 0.4
    if not warm:
        _in_threads(step, 1, 0.0, at_least=WARM)
    _in_threads(step, THREADS, seconds / 4)
    return lambda: {"step": [_in_threads(step, THREADS, seconds)]}


def _in_threads(step: Step, threads: int, seconds: float, at_least: int = 1) -> float:
    counts = [0] * threads
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        while time.perf_counter() < end or counts[number] < at_least:
            step()
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return (time.perf_counter() - start) / sum(counts)


_LOADS = {"idle": 0.0, "neighbour": 0.5, "busy": 1.0}
_WORDS = {
    "idle": "nobody else",
    "neighbour": "one other process",
    "busy": "another process on each core",
}


def cases(library: str) -> dict[str, Case]:
    """The cases of a library."""
    found: dict[str, Case] = {
        f"{program}.{load}": partial(_steps, program=program, others=others)
        for program in PROGRAMS
        for load, others in _LOADS.items()
    }
    found["mlp.processes"] = partial(_processes, library=library)
    found["mlp.threads"] = _threads
    found["mlp.threads_and_main"] = partial(_threads, warm=WARM)
    return found


CASES = {library: cases(library) for library in ("headrace", "tf")}
_LEVEL = {"must": Target({"tf": 1})}
ROWS = [
    Row(
        f"{program.upper()}, {_WORDS[load]}: {text}",
        f"{program}.{load}",
        Quantile("step", q),
        _LEVEL,
    )
    for load in _LOADS
    for program in PROGRAMS
    for q, text in ((0.5, "median"), (0.9, "90th percentile"))
] + [
    Row(
        f"MLP in {PROCESSES} processes at once, a step of all",
        "mlp.processes",
        Quantile("step", 0.5),
        _LEVEL,
    ),
    Row(
        f"MLP by {THREADS} threads on one session, a step of all",
        "mlp.threads",
        Quantile("step", 0.5),
        _LEVEL,
    ),
    Row(
        f"the same {THREADS} threads after the main thread has trained",
        "mlp.threads_and_main",
        Quantile("step", 0.5),
        _LEVEL,
    ),
]
