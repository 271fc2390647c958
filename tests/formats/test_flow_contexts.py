"""Branches and loops in MetaGraphs: TensorFlow's files read here, and what is written here."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest

import headrace as tf
from headrace.wire.control_flow_messages import control_flow_message
from tests.golden import flow_contexts as cases

with open(os.path.join(os.path.dirname(cases.__file__), "flow_contexts.json")) as _file:
    GOLDEN = json.load(_file)
KINDS = {"cond_context": "CondContextDef", "while_context": "WhileContextDef"}


def _meta(name: str) -> Any:
    return tf.MetaGraphDef.FromString(base64.b64decode(GOLDEN[name]["meta"]))


def _contexts(meta: Any) -> list[Any]:
    return [
        control_flow_message(kind).FromString(data)
        for key, kind in KINDS.items()
        if key in meta.collection_def
        for data in meta.collection_def[key].bytes_list.value
    ]


def _described(message: Any) -> Any:
    """What does not depend on the names of operations inside."""
    plain = {
        f.name: value
        for f, value in message.ListFields()
        if f.name in ("context_name", "branch", "back_prop", "swap_memory", "parallel_iterations")
    }
    plain["external"] = len(message.values_def.external_values)
    if message.DESCRIPTOR.name == "WhileContextDef":
        plain["ends"] = (len(message.loop_enter_names), len(message.loop_exit_names))
        plain["limit"] = bool(message.maximum_iterations_name)
    nested = [getattr(n, n.WhichOneof("ctxt")) for n in message.nested_contexts]
    return plain, [_described(n) for n in nested]


@pytest.mark.parametrize("name", sorted(cases.PROGRAMS))
@pytest.mark.parametrize("scope", ["", "again"])
def test_files_of_tensorflow_are_read_and_differentiated(name: str, scope: str) -> None:
    assert cases.is_equal(GOLDEN[name], cases.read(tf, _meta(name), scope))


@pytest.mark.parametrize("name", sorted(cases.PROGRAMS))
def test_contexts_are_written_as_tensorflow_writes_them(name: str) -> None:
    meta, results = cases.write(tf, name)
    assert cases.is_equal(GOLDEN[name], results)
    for scope in ("", "again"):
        assert cases.is_equal(GOLDEN[name], cases.read(tf, meta, scope))
    written, there = _contexts(meta), _contexts(_meta(name))
    assert [w.context_name for w in written] == [t.context_name for t in there]
    # gradients are fewer operations here, and map_fn's loop has no limit
    if name not in ("differentiated", "mapped"):
        assert [_described(w) for w in written] == [_described(t) for t in there]
    tensors = {f"{n.name}:{i}" for n in meta.graph_def.node for i in range(4)}
    for message in written:
        assert set(message.values_def.values) <= tensors


def test_a_context_becomes_a_message_and_is_found_again() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [])
        cases.nested(tf, x)
        (context,) = graph.get_collection(tf.GraphKeys.WHILE_CONTEXT)
        message = context.to_proto()
        again = type(context).from_proto(message)
        assert again is context and again.to_proto() == message
        assert context.to_proto(export_scope="elsewhere") is None


def test_contexts_of_a_scope_lose_its_name() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        with tf.name_scope("part"):
            tf.identity(cases.powers(tf, x, 3), name="y")
        meta = tf.train.export_meta_graph(export_scope="part")
    (message,) = _contexts(meta)
    assert message.context_name == "while/while_context"
    assert set(message.loop_enter_names) <= set(message.values_def.values)
    frames = {n.attr["frame_name"].s for n in meta.graph_def.node if n.op == "Enter"}
    assert frames == {b"while/while_context"}
    with tf.Graph().as_default() as graph:
        start = tf.constant(2.0)
        inputs = {n: start for n in _unbound(meta)}
        tf.train.import_meta_graph(meta, import_scope="new", input_map=inputs)
        y = graph.get_tensor_by_name("new/y:0")
        with tf.Session() as session:
            assert session.run([y, tf.gradients(y, start)[0]]) == [16.0, 32.0]


def _unbound(meta: Any) -> list[str]:
    return [v.decode() for v in meta.collection_def["unbound_inputs"].bytes_list.value]


def test_a_context_that_names_what_is_no_branch_is_left_out(caplog: Any) -> None:
    meta = _meta("branch")
    contexts = _contexts(meta)
    contexts[0].pivot_name = "x:0"
    stored = meta.collection_def["cond_context"].bytes_list.value
    stored[:] = [c.SerializeToString() for c in contexts]
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        assert len(graph.get_collection("cond_context")) == 1
    assert "cond/cond_text" in caplog.text
    contexts[0].pivot_name = "nowhere:0"
    stored[:] = [c.SerializeToString() for c in contexts]
    with tf.Graph().as_default(), pytest.raises(KeyError, match="nowhere"):
        tf.train.import_meta_graph(meta)
