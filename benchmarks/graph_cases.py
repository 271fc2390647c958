"""The cases about size: long graphs and changing batch sizes, as functions of ``tf`` (see
session_cases).

The graph of many ops is a chain that alternates ``y * x`` and ``y + z`` with ``x`` and ``z`` fed:
it has no constants to fold, no two equal ops to share and no run of additions to gather, so that
a run does 5,000 small operations.
"""

from __future__ import annotations

import gc
import statistics
from typing import Any

import numpy as np

from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure, classifier_step
from benchmarks.timing import per_call, seconds_after_collecting, seconds_of

__all__ = ["CASES"]

OPS = 5_000


def many_vectors(tf: Any, scale: Scale) -> Measure:
    """5,000 ops on vectors of ten."""
    return _many_ops(tf, scale, (10,))


def many_scalars(tf: Any, scale: Scale) -> Measure:
    """5,000 ops on scalars."""
    return _many_ops(tf, scale, ())


def _many_ops(tf: Any, scale: Scale, shape: tuple[int, ...]) -> Measure:
    count = scale.count(OPS)

    def measure() -> Samples:
        chain = Chain(tf, shape)
        build = seconds_after_collecting(chain.extend, count) / count
        first = seconds_after_collecting(chain.run)
        return {"build": [build], "first": [first], "later": per_call(chain.run, scale.seconds)}

    return measure


class Chain:
    """A graph that grows by alternating multiplications and additions, and a session for it."""

    def __init__(self, tf: Any, shape: tuple[int, ...] = (10,)) -> None:
        self.tf = tf
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, shape)
            self.z = tf.placeholder(tf.float32, shape)
        self.last = self.x
        self.feed = {
            self.x: np.full(shape, 0.999, np.float32),
            self.z: np.full(shape, 0.001, np.float32),
        }
        self.session = tf.Session(graph=self.graph)

    def extend(self, count: int) -> None:
        tf = self.tf
        y = self.last
        with self.graph.as_default():
            for _ in range(count // 2):
                y = tf.add(tf.multiply(y, self.x), self.z)
        self.last = y

    def run(self) -> Any:
        return self.session.run(self.last, self.feed)


def build_long(tf: Any, scale: Scale) -> Measure:
    """Building 100,000 ops: the time an op takes in the first tenth, in the last, and in all.

    The garbage collector goes through everything four or five times meanwhile, as long as a whole
    tenth takes. In which tenth it does so is chance, so a tenth counts by the median of its steps;
    what the collector takes is in the time of all.
    """
    step = max(2, scale.count(100_000) // 100)

    def measure() -> Samples:
        chain = Chain(tf)
        gc.collect()
        times = [seconds_of(chain.extend, step) / step for _ in range(100)]
        early, late = statistics.median(times[:10]), statistics.median(times[-10:])
        return {"early": [early], "late": [late], "whole": [sum(times) / 100]}

    return measure


def first_run_size(tf: Any, scale: Scale) -> Measure:
    """The first run, per op that it needs.

    Of 5,000, of 20,000, and of 5,000 in a graph that has 50,000.
    """
    count = scale.count(OPS)

    def first(needed: int, beside: int = 0) -> float:
        chain = Chain(tf)
        chain.extend(needed)
        wanted = chain.last
        chain.extend(beside)
        chain.last = wanted
        return seconds_after_collecting(chain.run) / needed

    def measure() -> Samples:
        samples: Samples = {"small": [], "large": [], "pruned": []}
        for _ in range(3):
            samples["small"].append(first(count))
            samples["large"].append(first(4 * count))
            samples["pruned"].append(first(count, beside=9 * count))
        return samples

    return measure


def long_graph(tf: Any, scale: Scale) -> Measure:
    """100,000 ops: their first and later runs per op, beside those of 5,000."""

    def runs(count: int) -> tuple[float, float]:
        chain = Chain(tf)
        chain.extend(count)
        first = seconds_after_collecting(chain.run) / count
        return first, min(per_call(chain.run, scale.seconds)) / count

    def measure() -> Samples:
        small, large = (runs(scale.count(count)) for count in (OPS, 20 * OPS))
        return {
            "small_first": [small[0]],
            "large_first": [large[0]],
            "small_later": [small[1]],
            "large_later": [large[1]],
        }

    return measure


def new_sizes(tf: Any, scale: Scale) -> Measure:
    """A training step with a batch size not seen before, a thousand times.

    And each size when it has settled.
    """
    sizes = _sizes(scale)
    rows = np.random.rand(max(sizes), 10).astype(np.float32)
    classes = np.random.randint(0, 2, max(sizes)).astype(np.int32)

    def times(repeats: int) -> list[list[float]]:
        gc.collect()
        with tf.Graph().as_default() as graph:
            x, labels, fetches = classifier_step(
                tf, (10, 32, 2), tf.train.GradientDescentOptimizer(0.1)
            )
            with tf.Session(graph=graph) as session:
                session.run(tf.global_variables_initializer())
                feeds = [{x: rows[:n], labels: classes[:n]} for n in sizes]
                return [
                    [seconds_of(session.run, fetches, feed) for _ in range(repeats)]
                    for feed in feeds
                ]

    def measure() -> Samples:
        new = [each[0] for each in times(1)]
        settled = [min(each[2:]) for each in times(6)]
        return {"new": new[_WARM_UP:], "settled": settled[_WARM_UP:]}

    return measure


_WARM_UP = 10


def _sizes(scale: Scale) -> list[int]:
    """A thousand batch sizes from 100 on in a fixed disorder, after those that warm up."""
    count = scale.count(1_000) + _WARM_UP
    order = np.random.RandomState(0).permutation(count)
    return [int(n) + 100 for n in order]


CASES: dict[str, Case] = {
    "many_vectors": many_vectors,
    "many_scalars": many_scalars,
    "build_long": build_long,
    "first_run_size": first_run_size,
    "long_graph": long_graph,
    "new_sizes": new_sizes,
}
