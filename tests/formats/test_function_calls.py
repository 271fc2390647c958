"""Calls of functions in GraphDefs: Defun and tf.function, as TF 1.15 writes them, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.formats.graphdef_reader import parse_graph_def
from headrace.functions import defined_function as function
from tests.golden.functions import call_programs as programs

GOLDEN = Path(programs.__file__).parent
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())


def _run(graph: Any, names: Any) -> dict[str, Any]:
    with tf.Session(graph=graph) as session:
        session.run("v/Assign")
        return {k: session.run(t, {"x:0": programs.X}) for k, t in sorted(names.items())}


def _check(found: dict[str, Any], case: str) -> None:
    for name, value in found.items():
        np.testing.assert_allclose(value, ANSWERS[case]["values"][name], rtol=1e-6)


def _built(case: str) -> tuple[Any, dict[str, Any]]:
    with tf.Graph().as_default() as graph:
        made = programs.defun(tf, function) if case == "defun" else programs.calls(tf)
    return graph, made


@pytest.mark.parametrize("case", ["defun", "calls"])
def test_nodes_names_and_values_are_tensorflows(case: str) -> None:
    graph, made = _built(case)
    want = ANSWERS[case]
    assert {k: t.name for k, t in made.items() if k != "f"} == want["names"]
    assert programs.described(graph.as_graph_def()) == want["nodes"]
    _check(_run(graph, made), case)


def test_gradients_of_defun() -> None:
    graph, made = _built("defun")
    with graph.as_default():
        found = programs.defun_gradients(tf, made)
    _check(_run(graph, found), "defun")
    graph.as_graph_def()  # gradients use what is inside of calls: those are written expanded


@pytest.mark.parametrize("case", ["defun", "calls"])
@pytest.mark.parametrize("writer", ["tensorflow", "headrace"])
def test_read_and_written_again(case: str, writer: str) -> None:
    if writer == "tensorflow":
        message = parse_graph_def((GOLDEN / f"{case}.pb").read_bytes())
    else:
        message = _built(case)[0].as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
    _check(_run(graph, {k: f"out_{k}:0" for k in ANSWERS[case]["names"]}), case)
    again = graph.as_graph_def()
    assert programs.described(again) == programs.described(message)
    assert {f.signature.name for f in again.library.function} == {
        f.signature.name for f in message.library.function
    }
    assert list(again.library.gradient) == list(message.library.gradient)


@pytest.mark.parametrize("case", sorted(ANSWERS["imported"]))
@pytest.mark.parametrize("writer", ["tensorflow", "headrace"])
def test_gradient_functions_of_imported_functions(case: str, writer: str) -> None:
    """A library's gradient function is used; ``nested_10`` and ``nested_20`` have functions of the
    same names with other bodies.
    """
    message = parse_graph_def((GOLDEN / f"{case}.pb").read_bytes())
    if writer == "headrace":
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(message, name="")
        message = graph.as_graph_def()
    want = ANSWERS["imported"][case]
    found = programs.imported_gradients(tf, message, "abcdefg"[: len(want)])
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_a_gradient_function_is_registered_once() -> None:
    from headrace.autodiff import registry

    message = parse_graph_def((GOLDEN / "nested_10.pb").read_bytes())
    programs.imported_gradients(tf, message, "ad")
    known = len(registry._registered)
    programs.imported_gradients(tf, message, "ad")
    assert len(registry._registered) == known


def test_defun_in_detail() -> None:
    with tf.Graph().as_default() as graph:
        captured = tf.constant(2.0)

        @function.Defun(tf.float32)
        def twice(x: Any) -> Any:
            return x * captured

        assert twice.name.startswith("twice_")
        assert twice.declared_input_types == [tf.float32]
        assert twice.captured_inputs == [captured]
        assert twice.definition.signature.name == twice.name
        twice.add_to_graph(graph)
        assert [f.signature.name for f in graph.as_graph_def().library.function] == [twice.name]
        with pytest.raises(ValueError, match="Expected number of arguments: 1, received: 2"):
            twice(1.0, 2.0)
        declared = function.Declare(twice.name, [("x", tf.float32)], [("y", tf.float32)])
        with tf.Session() as session:
            assert session.run(declared(3.0)) == 6.0
    with pytest.raises(ValueError, match="more arguments than"):
        function.Defun(tf.float32)(lambda x, y: x)
    with pytest.raises(ValueError, match="fewer arguments than"):
        function.Defun(tf.float32, tf.float32)(lambda x: x)
    with pytest.raises(ValueError, match="defaults or keywords"):
        function.Defun(tf.float32)(lambda x=1.0: x)


def test_calls_in_branches_and_functions() -> None:
    @function.Defun(tf.float32, func_name="half")
    def half(x: Any) -> Any:
        return x / 2.0

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.cond(x > 0.0, lambda: half(x), lambda: half(half(x)))
        grad = tf.gradients(y, x)[0]
        message = graph.as_graph_def()
        with tf.Session() as session:
            assert session.run([y, grad], {x: 8.0}) == [4.0, 0.5]
            assert session.run([y, grad], {x: -8.0}) == [-2.0, 0.25]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert session.run(y.name, {"x:0": 8.0}) == 4.0


def test_frozen_graphs_have_no_calls() -> None:
    from headrace.formats.graphdef_writer import graph_def_of

    graph, _ = _built("calls")
    message = graph_def_of(graph, expand_calls=True)
    assert not message.library.function
    assert "StatefulPartitionedCall" not in {n.op for n in message.node}


def test_keywords_of_defun_are_attributes() -> None:
    assert json.loads(json.dumps(programs.attributes(tf, function))) == ANSWERS["attributes"]


def test_a_call_shows_its_function_and_arguments() -> None:
    """As TF 1.15 shows it, with and without a gradient function."""

    @function.Defun(tf.float32, tf.float32, func_name="five_times")
    def five_times(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
        return dy * 5

    @function.Defun(tf.float32, func_name="twice", grad_func=five_times)
    def twice(x: tf.Tensor) -> tf.Tensor:
        return x * 2

    @function.Defun(tf.float32, func_name="more")
    def more(x: tf.Tensor) -> tf.Tensor:
        return x + 1

    with tf.Graph().as_default():
        x = tf.constant(2.0)
        for call, kind in ((twice(x), "twice"), (more(x), "more")):
            assert call.op.type == kind
            assert list(call.op.inputs) == [x]
            assert list(call.op.outputs) == [call]
        grad = tf.gradients(twice(x) * more(x), x)[0]
        with tf.Session() as sess:
            assert sess.run(grad) == 5 * 3 + 4
