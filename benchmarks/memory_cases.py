"""The cases about memory, as functions of ``tf`` (see session_cases). Each wants a process of its
own.

They give the resident memory after a warm-up of a tenth (at most a thousand) of the work, and at
the end.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure, classifier_step
from benchmarks.timing import resident_bytes

__all__ = ["CASES"]


class Step:
    """A small training program: the graph, and how a session is made and run for some rows."""

    def __init__(self, tf: Any, max_rows: int) -> None:
        self.tf = tf
        self.rows = np.random.rand(max_rows, 10).astype(np.float32)
        self.classes = np.random.randint(0, 2, max_rows).astype(np.int32)
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x, self.labels, self.fetches = classifier_step(
                tf, (10, 32, 2), tf.train.GradientDescentOptimizer(0.1)
            )
            self.initializer = tf.global_variables_initializer()

    def session(self) -> Any:
        session = self.tf.Session(graph=self.graph)
        session.run(self.initializer)
        return session

    def run(self, session: Any, rows: int) -> None:
        feed = {self.x: self.rows[:rows], self.labels: self.classes[:rows]}
        session.run(self.fetches, feed)


def memory_runs(tf: Any, scale: Scale) -> Measure:
    """100,000 runs of one session."""
    step = Step(tf, 20)
    session = step.session()
    return _watched(lambda i: step.run(session, 20), scale.count(100_000))


def memory_sessions(tf: Any, scale: Scale) -> Measure:
    """10,000 sessions opened, used and dropped without being closed."""
    step = Step(tf, 20)
    return _watched(lambda i: step.run(step.session(), 20), scale.count(10_000))


def memory_sizes(tf: Any, scale: Scale) -> Measure:
    """1,000 batch sizes, the largest of them first."""
    count = scale.count(1_000)
    step = Step(tf, count)
    session = step.session()
    return _watched(lambda i: step.run(session, count - i), count)


def _watched(work: Callable[[int], None], count: int) -> Measure:
    def measure() -> Samples:
        warm_up = min(count // 10, 1_000)
        for i in range(warm_up):
            work(i)
        warm = _settled_bytes()
        for i in range(warm_up, count):
            work(i)
        return {"warm": [warm], "end": [_settled_bytes()]}

    return measure


def _settled_bytes() -> float:
    gc.collect()
    return float(resident_bytes())


CASES: dict[str, Case] = {
    "memory_runs": memory_runs,
    "memory_sessions": memory_sessions,
    "memory_sizes": memory_sizes,
}
