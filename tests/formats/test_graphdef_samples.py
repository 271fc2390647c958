"""GraphDefs that TensorFlow 1.15 wrote for every op sample: they run here with TensorFlow's values,
and ours are equal.

The graphs are in ``golden/graphs/samples.xz`` (made by ``golden/graphs/there.py pack``), the values
in the sample table's files.
"""

from __future__ import annotations

import functools
import json
import lzma
import os
from typing import Any

import pytest

import headrace.api.v1 as tf
from headrace.core.graph import Graph
from tests.golden.graphs import cases
from tests.ops.test_samples import PAIRS, Case, wanted
from tests.tolerances import assert_close

HERE = os.path.dirname(os.path.abspath(cases.__file__))


@functools.cache
def packed() -> dict[str, tuple[bytes, dict[str, list[str]], str | None, dict[str, str]]]:
    with open(os.path.join(HERE, "samples.xz"), "rb") as file:
        body = lzma.decompress(file.read())
    size, _, rest = body.partition(b"\n")
    index, at = json.loads(rest[: int(size)]), int(size)
    out = {}
    for key, (length, feeds, init, variables) in index.items():
        out[key] = (rest[at : at + length], feeds, init, variables)
        at += length
    return out


WITH_GRAPH = [(f, k, s) for f, k, s in PAIRS if f"{f}:{k}" in packed()]
IDS = [f"{f}:{k}" for f, k, _ in WITH_GRAPH]


def graph_def_of(family: str, key: str) -> Any:
    message = tf.GraphDef()
    message.ParseFromString(packed()[f"{family}:{key}"][0])
    return message


def test_there_is_a_graph_for_nearly_every_sample() -> None:
    assert len(WITH_GRAPH) > 2300


@pytest.mark.parametrize(("family", "key", "sample"), WITH_GRAPH, ids=IDS)
def test_their_graphs_run_here(family: str, key: str, sample: Any) -> None:
    _, feeds, init, variables = packed()[f"{family}:{key}"]
    outputs, after = wanted(family, key, sample)
    graph = Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def_of(family, key), name="")
    op = graph.get_operation_by_name("sample")
    given = {}
    for name, tensors in feeds.items():
        value = sample.inputs[name]
        parts = value if isinstance(value, (list, tuple)) and len(tensors) > 1 else [value]
        if isinstance(value, (list, tuple)) and len(value) == 1 and len(tensors) == 1:
            parts = list(value)
        given.update(zip(tensors, parts))
    with tf.Session(graph=graph) as session:
        if init is not None:
            session.run(init)
        got = session.run(op.outputs, given) if op.outputs else session.run([op], given)
        got = got if op.outputs else []
        if sample.check is not None:
            sample.check(got, outputs)
        elif outputs is not None:
            for i, (g, w) in enumerate(zip(got, outputs)):
                assert_close(g, w, sample.tol, f"output {i}")
        for name, value in after.items():
            read = variables[name]
            found = session.run(_value_of(graph, read))
            assert_close(found, value, sample.tol, f"{name} after the run")


def _value_of(graph: Graph, name: str) -> Any:
    tensor = graph.get_tensor_by_name(name)
    if tensor.dtype is not tf.resource:
        return tensor
    with graph.as_default():
        return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=tensor.op._attrs["dtype"])


@pytest.mark.parametrize(("family", "key", "sample"), WITH_GRAPH, ids=IDS)
def test_our_nodes_are_theirs(family: str, key: str, sample: Any) -> None:
    """The NodeDef of the op itself: type, number of inputs, every attribute."""
    theirs = next(n for n in graph_def_of(family, key).node if n.name == "sample")
    ours = Case(sample).op.node_def
    assert (ours.op, len(ours.input)) == (theirs.op, len(theirs.input))
    assert sorted(ours.attr) == sorted(theirs.attr)
    for name in ours.attr:
        if name == "_class":  # the variables of the two graphs have different names
            assert len(ours.attr[name].list.s) == len(theirs.attr[name].list.s)
            continue
        assert ours.attr[name] == theirs.attr[name], name


@pytest.mark.parametrize(("family", "key", "sample"), WITH_GRAPH[::7], ids=IDS[::7])
def test_what_was_read_is_written_again(family: str, key: str, sample: Any) -> None:
    message = graph_def_of(family, key)
    graph = Graph()
    with graph.as_default():
        tf.import_graph_def(message, name="")
    again = {n.name: n.SerializeToString(deterministic=True) for n in graph.as_graph_def().node}
    assert again == {n.name: n.SerializeToString(deterministic=True) for n in message.node}
