"""Ops that occur in programs whose results are compared with TensorFlow's.

Found by building the programs and looking.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace as tf
from headrace.compat import v2
from headrace.core.graph import Graph
from tests.data.data_cases import CASES, CASES_V2
from tests.golden import flow_programs, handle_programs, make_cases, queue_programs
from tests.golden.graphs import live


@contextlib.contextmanager
def _recorded(types: set[str]) -> Iterator[None]:
    """Every op type that any graph is given meanwhile."""
    add = Graph._add_op

    def noting(graph: Graph, opdef: Any, *args: Any, **kwargs: Any) -> Any:
        types.add(opdef.name)
        return add(graph, opdef, *args, **kwargs)

    Graph._add_op = noting  # type: ignore[method-assign]
    try:
        yield
    finally:
        Graph._add_op = add  # type: ignore[method-assign]


@functools.cache
def ops_in_programs() -> frozenset[str]:
    """Op types in handle_programs, flow_programs (v1 graphs) and data_cases (TensorFlow 1.15's and
    2's).
    """
    types: set[str] = set()
    with _recorded(types), tempfile.TemporaryDirectory() as folder:
        for build in handle_programs.PROGRAMS.values():
            with tf.Graph().as_default():
                build(tf.compat.v1, folder)
        for build, modes in flow_programs.PROGRAMS.values():
            if flow_programs.GRAPH in modes:
                _attempted(functools.partial(build, tf))
        for name in make_cases.MODULES:
            module = importlib.import_module(f"tests.golden.{name}")
            for case in make_cases.cases(module).values():
                make_cases.outcome(tf, case)
        for run in queue_programs.PROGRAMS:
            with tf.Graph().as_default(), tempfile.TemporaryDirectory() as own:
                run(tf, own)
        for make in CASES.values():
            with tf.Graph().as_default():
                tf.data.make_initializable_iterator(make(tf)).get_next()
        for make in CASES_V2.values():
            _attempted(functools.partial(make, v2))
    return frozenset(types | _ops_in_graph_files())


def _ops_in_graph_files() -> set[str]:
    """Op types in GraphDefs that TensorFlow wrote and tests/formats runs against TensorFlow's
    results.
    """
    graphs = Path(__file__).parent / "graphs"
    types: set[str] = set()
    for path in sorted(graphs.glob("tf?/*.case")):
        graph = tf.GraphDef()
        graph.ParseFromString(live.load(str(path)).graph)
        nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
        types.update(n.op for n in nodes)
    return types


def _attempted(build: Any) -> None:
    """Some flow programs are about errors, and a dataset that was saved eagerly cannot be loaded
    here.
    """
    with contextlib.suppress(Exception), tf.Graph().as_default():
        build()
