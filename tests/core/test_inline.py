"""Operations of a function copied into another graph.

Branches, loops, effects, names, variables; functions in plain graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.func_graph import FuncGraph
from headrace.core.inline import inline
from headrace.core.specs import TensorSpec
from headrace.functions.tracing import TracedFunction, trace


def traced(f: Any, *specs: Any, name: str = "f") -> TracedFunction:
    return trace(f, specs, name=name, autograph=False)


def copied(function: TracedFunction, *args: Any) -> Any:
    graph = tf.get_default_graph()
    found = inline(function.graph, graph, dict(zip(function.inputs, args)))
    return [found[t] for t in function.outputs]


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feeds)


SCALAR = TensorSpec([], tf.float32)


# copying ----------------------------------------------------------------------------------------


def test_a_copy_computes_the_same_as_often_as_wanted() -> None:
    f = traced(lambda x, y: x * 2.0 + y, SCALAR, SCALAR)
    x = tf.placeholder(tf.float32, [])
    (a,) = copied(f, x, tf.constant(1.0))
    (b,) = copied(f, a, x)
    assert run([a, b], {x: 3.0}) == [7.0, 17.0]
    assert [t.op.name for t in (a, b)] == ["f/add", "f_1/add"]


def test_only_what_is_wanted_is_copied() -> None:
    f = traced(lambda x: (tf.sin(x), tf.cos(x)), SCALAR)
    graph = tf.get_default_graph()
    inline(f.graph, graph, {f.inputs[0]: tf.constant(1.0)}, [f.outputs[0]])
    assert sorted(op.type for op in graph.get_operations()) == ["Const", "Sin"]


def test_shapes_are_inferred_anew() -> None:
    f = traced(lambda x: tf.reshape(x, [-1]), TensorSpec(None, tf.float32))
    (y,) = copied(f, tf.zeros([2, 3]))
    assert y.shape.as_list() == [6]


def test_lines_are_those_of_the_function() -> None:
    def body(x: Any) -> Any:
        return tf.sqrt(x)

    (y,) = copied(traced(body, SCALAR), tf.constant(4.0))
    assert y.op.traceback[-1][2] == "body"


def test_branches_and_loops() -> None:
    def body(x: Any) -> Any:
        y = tf.cond(
            x > 0.0, lambda: tf.cond(x > 5.0, lambda: x * 10.0, lambda: x * 2.0), lambda: -x
        )
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), [0, y])[1]

    f = traced(body, SCALAR)
    x = tf.placeholder(tf.float32, [])
    (y,) = copied(f, x)
    for value, wanted in ((1.0, 8.0), (6.0, 240.0), (-1.0, 4.0)):
        assert run(y, {x: value}) == wanted


def test_inside_a_branch_and_a_loop() -> None:
    f = traced(lambda x: tf.cond(x > 2.0, lambda: x * 2.0, lambda: x + 1.0), SCALAR)
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0.0, lambda: copied(f, x)[0], lambda: x)
    z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, copied(f, a)[0]), [0, x])[1]
    for value, branch, loop in ((1.0, 2.0, 6.0), (3.0, 6.0, 24.0), (-1.0, -1.0, 2.0)):
        assert run([y, z], {x: value}) == [branch, loop]


def test_loops_in_loops() -> None:
    def body(x: Any) -> Any:
        def turn(i: Any, a: Any) -> Any:
            inner = tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b * x), [0, a])[1]
            return i + 1, inner + 1.0

        return tf.while_loop(lambda i, a: i < 2, turn, [0, x])[1]

    f = traced(body, SCALAR)
    assert run(copied(f, tf.constant(2.0))[0]) == run(body(tf.constant(2.0))) == 37.0


def test_tensor_arrays() -> None:
    f = traced(lambda x: tf.map_fn(lambda a: a * a, x), TensorSpec([None], tf.float32))
    (y,) = copied(f, tf.constant([1.0, 2.0, 3.0]))
    assert run(y).tolist() == [1.0, 4.0, 9.0]


def test_gradients_of_copies() -> None:
    def body(x: Any) -> Any:
        y = tf.cond(x > 0.0, lambda: x * x, lambda: -x)
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, y])[1]

    x = tf.placeholder(tf.float32, [])
    (y,) = copied(traced(body, SCALAR), x)
    (g,) = tf.gradients(y, x)
    assert run(g, {x: 2.0}) == 32.0  # x**4
    assert run(g, {x: -2.0}) == -12.0  # -x**3


def test_a_loop_whose_result_nobody_needs_is_left_out() -> None:
    def body(x: Any) -> Any:
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
        return x

    before = len(tf.get_default_graph().get_operations())
    copied(traced(body, SCALAR), tf.constant(1.0))
    assert len(tf.get_default_graph().get_operations()) == before + 1


def test_python_functions_live_as_long_as_a_copy() -> None:
    def make() -> Any:
        f = traced(lambda x: tf.py_func(lambda a: a + np.float32(1), [x], tf.float32), SCALAR)
        return copied(f, tf.constant(1.0))[0]

    assert run(make()) == 2.0


def test_variables_are_the_same_ones() -> None:
    v = tf.get_variable("v", initializer=3.0, use_resource=True)
    (y,) = copied(traced(lambda x: x * v, SCALAR), tf.constant(2.0))
    assert tf.gradients(y, v)[0] is not None
    assert run(y) == 6.0
    handles = [op for op in tf.get_default_graph().get_operations() if op.type == "VarHandleOp"]
    assert len(handles) == 1


def test_into_another_function() -> None:
    v = tf.get_variable("v", initializer=3.0, use_resource=True)
    inner = traced(lambda x: v.assign_add(x).read_value(), SCALAR)

    def outer(x: Any) -> Any:
        graph: FuncGraph = tf.get_default_graph()  # type: ignore[assignment]
        first = inline(inner.graph, graph, {inner.inputs[0]: x})[inner.outputs[0]]
        second = inline(inner.graph, graph, {inner.inputs[0]: x})[inner.outputs[0]]
        return first, second, v.read_value()

    f = traced(outer, SCALAR)
    found = copied(f, tf.constant(1.0))
    assert run(found[:2]) == [4.0, 5.0]
    assert list(f.graph.outer_handles) == ["v"]


# tf.function in a plain graph -------------------------------------------------------------------


def test_a_function_in_a_plain_graph() -> None:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        v.assign_add(x)
        if x > 0.0:
            return v * 2.0
        return v * 3.0

    x = tf.placeholder(tf.float32, [])
    y = f(x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(y, {x: 2.0}) == 6.0
        assert sess.run(y, {x: -2.0}) == 3.0
        assert sess.run(v) == 1.0


def test_effects_of_a_function_without_results() -> None:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    op = tf.function(lambda x: v.assign(x).op)(tf.constant(7.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        assert sess.run(v) == 7.0


def test_traces_belong_to_their_graph() -> None:
    traces = []

    @tf.function
    def f(x: Any) -> Any:
        traces.append(1)
        return x + tf.constant(1.0)

    for _ in range(2):
        with tf.Graph().as_default():
            a, b = f(tf.constant(1.0)), f(tf.constant(2.0))
            assert run([a, b]) == [2.0, 3.0]
    assert len(traces) == 2


def test_tensors_of_the_graph_around_are_captured() -> None:
    w = tf.placeholder(tf.float32, [])
    f = tf.function(lambda x: x * w)
    assert run(f(tf.constant(3.0)), {w: 5.0}) == 15.0
    concrete = f.get_concrete_function(tf.constant(3.0))
    assert concrete.graph.external_captures == [w]


def test_variables_made_by_a_function_are_lifted() -> None:
    made: list[Any] = []

    @tf.function
    def f(x: Any) -> Any:
        if not made:
            made.append(tf.Variable(tf.ones([2]) * 3.0, name="lifted"))
        return made[0] + x

    y = f(tf.constant(1.0))
    assert made[0].graph is tf.get_default_graph()
    assert run(y).tolist() == [4.0, 4.0]


def test_captures_of_a_trace_are_listed_for_the_caller() -> None:
    w = tf.constant([1.0, 2.0])
    f = traced(lambda x: x * w, SCALAR)
    assert [outer for outer, _ in f.captures] == [w]
    from headrace.lower.session_state import State

    assert f.bind(State(), [np.array([3.0, 4.0], np.float32)])(np.float32(2.0))[0].tolist() == [
        6.0,
        8.0,
    ]
    with pytest.raises(ValueError, match="its value is known in a session only"):
        f.bind(State())
