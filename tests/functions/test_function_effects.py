"""What a function does besides computing happens, once, in the order of the program.

As in TensorFlow 2.21.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.func_graph import FuncGraph
from headrace.core.specs import TensorSpec
from headrace.eager import eager_context as context
from headrace.eager import equality
from headrace.eager.tape import GradientTape
from headrace.functions.tracing import trace
from headrace.lower.session_state import State
from tests.functions import function_programs as programs

CASES = [(p, a) for p in programs.PROGRAMS for a in programs.ARGUMENTS]
IDS = [f"{p.__name__}({a})" for p, a in CASES]


@pytest.fixture(autouse=True, params=["identity", "value"])
def eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Eager execution, with tensors compared as in TF 1 and as in TF 2."""
    context.enable()
    if request.param == "value":
        equality.enable()
    yield
    equality.disable()
    context.disable()


@pytest.mark.parametrize(("program", "argument"), CASES, ids=IDS)
def test_as_tensorflow(program: Any, argument: float) -> None:
    assert (
        programs.run(tf, program, argument) == programs.EXPECTED[f"{program.__name__}({argument})"]
    )


@pytest.mark.parametrize(("program", "argument"), CASES, ids=IDS)
def test_prints_as_plain_python_does(
    program: Any, argument: float, capfd: pytest.CaptureFixture[str]
) -> None:
    programs.run(tf, program, argument, compiled=False)
    plain = capfd.readouterr().err
    programs.run(tf, program, argument)
    assert capfd.readouterr().err == plain


@pytest.mark.parametrize(("program", "argument"), CASES, ids=IDS)
def test_under_a_tape(program: Any, argument: float) -> None:
    with GradientTape():
        found = programs.run(tf, program, argument)
    assert found == programs.EXPECTED[f"{program.__name__}({argument})"]


@pytest.mark.parametrize(("program", "argument"), CASES, ids=IDS)
def test_inlined_into_another_function(program: Any, argument: float) -> None:
    def wrapped(module: Any, v: Any, w: Any) -> Any:
        inner = module.function(program(module, v, w))
        return lambda x: inner(x)

    found = programs.run(tf, wrapped, argument)
    assert found == programs.EXPECTED[f"{program.__name__}({argument})"]


# effects that are no variables ------------------------------------------------------------------


def test_effects_happen_with_every_call(capfd: pytest.CaptureFixture[str]) -> None:
    traces = []

    @tf.function
    def f(x: Any) -> None:
        traces.append(1)
        tf.print("run", x)

    f(tf.constant(1))
    f(tf.constant(2))
    assert capfd.readouterr().err == "run 1\nrun 2\n"
    assert len(traces) == 1


def test_a_failing_check_stops_what_follows() -> None:
    v = tf.Variable(1.0)

    @tf.function
    def f(x: Any) -> Any:
        v.assign(2.0)
        tf.Assert(x > 0.0, ["not positive", x])
        v.assign(3.0)
        return x

    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
        f(tf.constant(-1.0))
    assert float(v) == 2.0
    f(tf.constant(1.0))
    assert float(v) == 3.0


def test_python_functions_run_once_and_in_order() -> None:
    calls: list[str] = []

    def note(name: str) -> Any:
        def run(x: Any) -> Any:
            calls.append(name)
            return x

        return run

    @tf.function
    def f(x: Any) -> Any:
        tf.numpy_function(note("a"), [x], tf.float32)
        for _ in tf.range(2):
            tf.numpy_function(note("b"), [x], tf.float32)
        tf.numpy_function(note("c"), [x], tf.float32)
        return x

    f(tf.constant(1.0))
    assert calls == ["a", "b", "b", "c"]


def test_random_numbers_nobody_uses_are_not_drawn() -> None:
    def f() -> Any:
        tf.random_normal([3])
        return tf.constant(1.0)

    traced = trace(f, name="f", autograph=False)
    assert not traced.graph.control_outputs


def test_an_effect_in_a_loop_that_runs_no_time() -> None:
    v = tf.Variable(1.0)

    @tf.function
    def f(n: Any) -> Any:
        for _ in tf.range(n):
            v.assign_add(1.0)
        return v + 0.0

    assert float(f(tf.constant(0))) == 1.0
    assert float(f(tf.constant(3))) == 4.0


def test_a_write_does_not_reach_what_was_read_before() -> None:
    v = tf.Variable(np.arange(20_000, dtype=np.float32))

    @tf.function
    def f() -> Any:
        old = v.read_value()
        v.assign_add(tf.ones([20_000]))
        return old, v.read_value()

    for turn in range(3):
        old, new = f()
        assert old.numpy()[1] == 1.0 + turn
        assert new.numpy()[1] == 2.0 + turn
    kept = v.read_value()
    f()
    assert kept.numpy()[0] == 3.0


# through graphs and states alone ----------------------------------------------------------------


def test_over_any_state() -> None:
    context.disable()
    with tf.Graph().as_default():
        v = tf.get_variable("v", initializer=1.0, use_resource=True)

        def f(x: Any) -> Any:
            v.assign_add(x)
            return v.read_value() * 2.0

        traced = trace(f, [TensorSpec([])], name="f", autograph=False)
    first, second = State(), State()
    first.set("v", np.float32(1.0))
    second.set("v", np.float32(100.0))
    assert traced.bind(first)(np.float32(1.0)) == (4.0,)
    assert traced.bind(second)(np.float32(1.0)) == (202.0,)
    assert traced.bind(first)(np.float32(1.0)) == (6.0,)
    assert traced.stateful


def test_a_pure_function_waits_for_nothing() -> None:
    traced = trace(
        lambda x: tf.cond(x > 0.0, lambda: x * 2.0, lambda: x),
        [TensorSpec([])],
        name="f",
        autograph=False,
    )
    graph: FuncGraph = traced.graph
    assert not traced.stateful
    assert not graph.control_outputs
    merge = next(op for op in graph.get_operations() if op.type == "Merge")
    assert not merge.control_inputs


def test_the_result_of_an_assignment_is_the_variable_as_it_is_when_it_is_used() -> None:
    v = tf.Variable(0.0)

    @tf.function
    def f() -> Any:
        x = v.assign(1.0)
        y = x + 0.0
        v.assign(5.0)
        return x, y, x.assign_add(2.0)

    assert [float(t) for t in f()] == [7.0, 1.0, 7.0]


def test_a_read_that_nobody_asked_for_is_not_made() -> None:
    v = tf.Variable(0.0)

    def f() -> None:
        v.assign(1.0)
        v.assign(2.0)

    graph = trace(f, name="f", autograph=False).graph
    assert "ReadVariableOp" not in [op.type for op in graph.get_operations()]
