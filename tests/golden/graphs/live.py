"""Round trips through real TensorFlow, for every op sample and every whole model.

    python -m tests.golden.graphs.live /tmp/x --tf1 /env/tf1/bin/python --tf2 /env/tf2/bin/python

1. Every sample of tests/samples, and every program, built here: its GraphDef runs in each
   TensorFlow with equal results.
2. The same built in TensorFlow: its GraphDef runs here with equal results.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import headrace.api.v1 as tf
from headrace.core.graph import Graph
from tests.golden.graphs import programs
from tests.golden.graphs.cases import Case
from tests.tolerances import assert_close

THERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "there.py")


def run_steps(graph: Graph, steps: Any) -> list[list[Any]]:
    """The results of a case here."""
    with tf.Session(graph=graph) as session:
        return [session.run(list(fetches), dict(feeds)) for fetches, feeds in steps]


def compare(got: list[list[Any]], wanted: list[list[Any]], tol: float | None) -> None:
    for i, (row, want_row) in enumerate(zip(got, wanted)):
        for j, (value, want) in enumerate(zip(row, want_row)):
            if want is not None:
                assert_close(value, want, tol, f"step {i}, fetch {j}")


def check(case: Case) -> None:
    """Run a case that TensorFlow wrote, and compare."""
    message = tf.GraphDef()
    message.ParseFromString(case.graph)
    graph = Graph()
    with graph.as_default():
        tf.import_graph_def(message, name="")
    compare(run_steps(graph, case.steps), case.results, case.tol)


def load(path: str) -> Case:
    return Case.load(path, ml_dtypes.bfloat16)


# written here -------------------------------------------------------------------------------------


def sample_cases() -> Iterator[tuple[str, Case]]:
    """Every sample whose values TensorFlow can be asked for."""
    from tests.ops.test_samples import PAIRS
    from tests.ops.test_samples import Case as SampleCase

    for family, key, sample in PAIRS:
        if not sample.golden or sample.check is not None:
            continue
        built = SampleCase(sample)
        steps: list[Any] = []
        for name, variable in built.variables.items():
            steps.append(
                ([variable.assign.name], {variable.value.name: built.array(sample.inputs[name])})
            )
        feeds = {t.name: v for t, v in built.feeds(sample.inputs).items()}
        steps.append(([t.name for t in built.outputs] or [built.op.name], feeds))
        steps += [([v.read.name], {}) for v in built.variables.values()]
        results = run_steps(built.graph, steps)
        data = built.graph.as_graph_def().SerializeToString()
        yield f"{family}.{key.replace('/', '-')}", Case(data, steps, results, sample.tol)


def program_cases() -> Iterator[tuple[str, Case]]:
    for name, build in sorted(programs.PROGRAMS.items()):
        graph = Graph()
        with graph.as_default():
            tf.set_random_seed(1)
            steps = build(tf, np)
        yield (
            f"program.{name}",
            Case(graph.as_graph_def().SerializeToString(), steps, run_steps(graph, steps), 1e-4),
        )


def write_here(folder: str, only: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for source in (sample_cases, program_cases):
        for name, case in source():
            if only in name:
                case.save(os.path.join(folder, f"{name}.case"))


def compare_there(folder: str, label: str) -> int:
    """Compare what TensorFlow got with what Headrace had got."""
    bad = total = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".case"):
            continue
        base = os.path.join(folder, name[:-5])
        total += 1
        if os.path.exists(base + ".err"):
            bad += 1
            with open(base + ".err") as file:
                print(f"{label} {name}: {file.read()[:300]}")
            continue
        case, there = load(base + ".case"), load(base + ".out")
        try:
            assert case.results is not None
            compare(case.results, there.results, case.tol)
        except AssertionError as error:
            bad += 1
            print(f"{label} {name}: {str(error)[:300]}")
    print(f"{label}: {total - bad} of {total} graphs written here give the same there")
    return bad


def check_here(folder: str, label: str) -> int:
    bad = total = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".case"):
            continue
        total += 1
        try:
            check(load(os.path.join(folder, name)))
        except Exception as error:
            bad += 1
            print(f"{label} {name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{label}: {total - bad} of {total} graphs written there give the same here")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--tf1", help="Python with TensorFlow 1.15")
    parser.add_argument("--tf2", help="Python with TensorFlow 2")
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    bad = 0
    here = os.path.join(options.folder, "here")
    write_here(here, options.only)
    for label, python in (("tf1", options.tf1), ("tf2", options.tf2)):
        if not python:
            continue
        for name in os.listdir(here):
            if name.endswith((".out", ".err")):
                os.unlink(os.path.join(here, name))
        while subprocess.run([python, THERE, "run", here], check=False).returncode < 0:
            print(f"{label} crashed; going on behind the case that did it")
        bad += compare_there(here, label)
        there = os.path.join(options.folder, label)
        os.makedirs(there, exist_ok=True)
        for what in ("samples", "models") if label == "tf1" else ("models",):
            subprocess.run([python, THERE, what, there], check=True)
        bad += check_here(there, label)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
