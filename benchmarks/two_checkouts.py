"""Two checkouts of Headrace side by side: what a change of the engine costs or saves.

    python -m benchmarks.two_checkouts ../before . --case scalar_add --case mlp_adam --rounds 20

Each checkout has a process of its own; both are asked in turn, round after round, and which of them
is first alternates. The cases are this checkout's (engine, models and ``first_*`` below), run
with the packages of either. A line gives the median of all samples of both, their ratio (above 1:
the second is slower), the same of the best samples, and the median of the ratios of rounds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure, classifier_step
from benchmarks.timing import import_seconds, seconds_after_collecting

__all__ = ["main"]

ROOT = Path(__file__).parent.parent
#: How long a sample of repeated calls is taken in a round.
SECONDS = 0.15


def _first_of(build: Callable[[Any], tuple[Any, Any, Any]]) -> Case:
    """The first run of a graph that is made anew: pruning, rewriting, lowering, one run."""

    def case(tf: Any, scale: Scale) -> Measure:
        def measure() -> Samples:
            with tf.Graph().as_default() as graph:
                fetches, feed, initializer = build(tf)
            session = tf.Session(graph=graph)
            session.run(initializer)
            first = seconds_after_collecting(session.run, fetches, feed)
            session.close()
            gc.collect()
            return {"first": [first]}

        measure()
        return measure

    return case


def _mlp(tf: Any) -> tuple[Any, Any, Any]:
    sizes = (784, 128, 128, 10)
    x, labels, fetches = classifier_step(tf, sizes, tf.train.AdamOptimizer(1e-3))
    feed = {x: np.zeros((8, 784), np.float32), labels: np.zeros(8, np.int32)}
    return fetches, feed, tf.global_variables_initializer()


def _deep(tf: Any) -> tuple[Any, Any, Any]:
    """A training step of some 3,000 operations."""
    sizes = (16,) * 41
    x, labels, fetches = classifier_step(tf, sizes, tf.train.AdamOptimizer(1e-3))
    feed = {x: np.zeros((8, 16), np.float32), labels: np.zeros(8, np.int32)}
    return fetches, feed, tf.global_variables_initializer()


def _loop(tf: Any) -> tuple[Any, Any, Any]:
    """A dynamic_rnn and its gradient."""
    x = tf.placeholder(tf.float32, (None, 12, 16))
    h = tf.zeros_like(x[:, 0])
    w = tf.Variable(tf.random_normal((32, 16)))

    def body(i: Any, h: Any) -> tuple[Any, Any]:
        return i + 1, tf.tanh(tf.matmul(tf.concat([x[:, i], h], 1), w))

    _, h = tf.while_loop(lambda i, h: i < tf.shape(x)[1], body, (0, h))
    loss = tf.reduce_mean(h)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    feed = {x: np.zeros((4, 12, 16), np.float32)}
    return [step, loss], feed, tf.global_variables_initializer()


def _deep_network(tf: Any) -> tuple[Any, Any, Any]:
    """Inference of many dense layers with variables: packed and bound."""
    x = y = tf.placeholder(tf.float32, (None, 64))
    for inputs, outputs in pairwise((64,) * 33):
        w = tf.Variable(tf.random_normal((inputs, outputs)))
        y = tf.nn.relu(tf.matmul(y, w) + tf.Variable(tf.zeros((outputs,))))
    return y, {x: np.zeros((1, 64), np.float32)}, tf.global_variables_initializer()


FIRST = {
    "first_mlp": _first_of(_mlp),
    "first_deep": _first_of(_deep),
    "first_loop": _first_of(_loop),
    "first_inference": _first_of(_deep_network),
}


def _import_time(tf: Any, scale: Scale) -> Measure:
    return lambda: {"import": [import_seconds("import headrace as tf; tf.Session")]}


def _find(name: str) -> Case:
    if name in FIRST:
        return FIRST[name]
    if name == "import":
        return _import_time
    from benchmarks.cases import load

    for group in ("engine", "models", "inference"):
        cases = load(group, "headrace")[2]
        if name in cases:
            return cases[name]
    raise KeyError(name)


def _work() -> None:
    """A worker: a case by its name, then a round for every line of the input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import headrace as tf

    name = sys.stdin.readline().strip()
    measure = _find(name)(tf, Scale(SECONDS, 1))
    print(json.dumps({"from": tf.__file__}), file=answers, flush=True)
    for _ in sys.stdin:
        samples = measure()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"samples": samples, "peak": peak}), file=answers, flush=True)


class _Checkout:
    """The process of one checkout for one case."""

    def __init__(self, root: Path, case: str) -> None:
        paths = os.pathsep.join([str(root.resolve() / "src"), str(ROOT)])
        code = "from benchmarks.two_checkouts import _work; _work()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.samples: Samples = {}
        self.rounds: Samples = {}
        self.peak = 0.0
        found = self.ask(case)["from"]
        if not Path(found).is_relative_to(root.resolve()):
            raise RuntimeError(f"the package of {root} is {found}")

    def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        made: dict[str, Any] = json.loads(self.process.stdout.readline())
        return made

    def round(self) -> None:
        made = self.ask("round")
        for key, values in made["samples"].items():
            self.samples.setdefault(key, []).extend(values)
            self.rounds.setdefault(key, []).append(statistics.median(values))
        self.peak = made["peak"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _compared(before: Path, after: Path, case: str, rounds: int) -> Iterator[str]:
    both = [_Checkout(before, case), _Checkout(after, case)]
    for n in range(rounds):
        for one in both if n % 2 else both[::-1]:
            one.round()
    for one in both:
        one.close()
    old, new = both
    for key in old.samples:
        medians = [statistics.median(c.samples[key]) for c in both]
        bests = [min(c.samples[key]) for c in both]
        ratios = [n / o for o, n in zip(old.rounds[key], new.rounds[key])]
        yield (
            f"| {case} {key} | {_text(medians[0])} | {_text(medians[1])} "
            f"| {medians[1] / medians[0]:.3f} | {bests[1] / bests[0]:.3f} "
            f"| {statistics.median(ratios):.3f} "
            f"| {old.peak / 2**20:.0f} → {new.peak / 2**20:.0f} MB |"
        )


def _text(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])  # type: ignore[union-attr]
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    print("| case | before | after | median | best | of rounds | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for case in given.case:
        for line in _compared(given.before, given.after, case, given.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
