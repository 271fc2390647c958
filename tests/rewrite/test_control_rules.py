"""Rules about branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.program.nodes import If, Program, While, walk
from tests.rewrite.rewriting import check, ops_of, program_of, same


def test_dead_branch() -> None:
    x = tf.placeholder(tf.float32, [3])
    for flag, left in ((True, "Exp"), (False, "Tanh")):
        pred = tf.logical_and(tf.constant(flag), tf.constant(True))
        y = tf.cond(pred, lambda: tf.exp(x), lambda: tf.tanh(x))
        check("dead branch", y, {x: [1.0, 2.0, 3.0]}, [left])


def test_dead_branch_by_a_static_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.cond(tf.equal(tf.shape(x)[1], 3), lambda: x + 1.0, lambda: tf.tile(x, [1, 3]))
    check("dead branch", y, {x: np.ones((2, 3))}, ["AddV2"])


def test_nested_branches() -> None:
    x = tf.placeholder(tf.float32, [])
    no = tf.greater(tf.constant(1), 2)

    def inner() -> Any:
        return tf.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0)

    y = tf.cond(no, lambda: tf.exp(x), inner)
    program = program_of(y, [x])
    assert "Exp" not in [n.opdef.name for n in walk(program.body)]
    assert sum(isinstance(s, If) for s in program.body) == 2
    for value in (1.0, -1.0):
        same(y, {x: value})


def test_a_write_in_a_branch_that_is_taken_or_not() -> None:
    v = tf.Variable(1.0)
    for flag in (True, False):
        out = tf.cond(tf.constant(flag), lambda: v.assign_add(10.0), lambda: v.assign_sub(1.0))
        with tf.Session() as session:
            session.run(v.initializer)
            session.run(out)
            assert session.run(v) == (11.0 if flag else 0.0)


def test_a_fetch_from_a_dead_branch_fails() -> None:
    x = tf.placeholder(tf.float32, [])
    held: list[Any] = []

    def taken() -> Any:
        held.append(tf.exp(x))
        return held[0]

    y = tf.cond(tf.constant(False), taken, lambda: x)
    with tf.Session() as session:
        assert session.run(y, {x: 2.0}) == 2.0
        with pytest.raises(ValueError, match="marked as not fetchable"):
            session.run([y, held[0]], {x: 2.0})


# loops ------------------------------------------------------------------------------------------


def _loop(program: Program) -> While:
    return next(s for s in program.body if isinstance(s, While))


def _inside(program: Program) -> list[str]:
    loop = _loop(program)
    return [n.opdef.name for n in walk((*loop.test, *loop.body))]


def test_loop_invariant() -> None:
    x = tf.placeholder(tf.float32, [3])
    n = tf.placeholder(tf.int32, [])
    out = tf.while_loop(lambda i, a: i < n * 2, lambda i, a: (i + 1, a + tf.tanh(x) * 2.0), [0, x])[
        1
    ]
    program = program_of(out, [x, n])
    assert program.notes["loop invariant"] == 3  # the product in the test, tanh, and its product
    assert sorted(_inside(program)) == ["AddV2", "AddV2", "Less"]
    assert "Tanh" in _inside(program_of(out, [x, n], without="loop invariant"))
    for rounds in (0, 1, 3):
        same(out, {x: [1.0, 2.0, 3.0], n: rounds})


def test_a_variable_of_the_loop_that_stays_what_it_was() -> None:
    x = tf.placeholder(tf.float32, [3])
    out = tf.while_loop(
        lambda i, a, b: i < 4, lambda i, a, b: (i + 1, a + tf.exp(b), b), [0, x, x * 0.5]
    )
    program = program_of([out[1], out[2]], [x])
    assert len(_loop(program).values) == 2 and "Exp" not in _inside(program)
    same([out[1], out[2]], {x: [1.0, 2.0, 3.0]})


def test_what_may_fail_stays_in_the_body() -> None:
    x = tf.placeholder(tf.float32, [None])
    index = tf.placeholder(tf.int32, [])
    n = tf.placeholder(tf.int32, [])
    out = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a + tf.gather(x, index)), [0, 0.0]
    )[1]
    program = program_of(out, [x, index, n])
    assert "GatherV2" in _inside(program)
    assert any(
        m.rule == "loop invariant" and "might fail" in m.why_not for m in program.near_misses
    )
    same(out, {x: [1.0, 2.0], index: 9, n: 0})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(out, {x: [1.0, 2.0], index: 9, n: 1})


def test_sums_of_unknown_shapes_stay_products_of_known_ones_go() -> None:
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    n = tf.placeholder(tf.int32, [])
    out = tf.while_loop(
        lambda i, s: i < n, lambda i, s: (i + 1, s + tf.reduce_sum(a + b)), [0, 0.0]
    )[1]
    assert _inside(program_of(out, [a, b, n])).count("AddV2") == 3
    same(out, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0], n: 0})
    w = tf.placeholder(tf.float32, [4, 4])
    out = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.matmul(w, w)), [0, w])[1]
    assert "MatMul" not in _inside(program_of(out, [w]))
    same(out, {w: np.eye(4)}, 1e-6)


def test_random_numbers_and_variables_that_change_stay() -> None:
    v = tf.Variable(1.0, use_resource=True)

    def body(i: Any, a: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1, a + v.read_value() * 2.0

    out = tf.while_loop(lambda i, a: i < 3, body, [0, 0.0], parallel_iterations=1)[1]
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(out) == 2 * (2 + 3 + 4)
    noise = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.random_uniform([2])), [0, tf.zeros([2])]
    )[1]
    assert "RandomUniform" in _inside(program_of(noise))


def test_out_of_two_loops() -> None:
    x = tf.placeholder(tf.float32, [3])

    def outer(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b + tf.exp(x)), [0, a])[1]
        return i + 1, inner

    out = tf.while_loop(lambda i, a: i < 2, outer, [0, x])[1]
    program = program_of(out, [x])
    assert "Exp" not in _inside(program)
    same(out, {x: [0.1, 0.2, 0.3]})


def test_a_branch_in_a_loop_keeps_what_it_computes() -> None:
    x = tf.placeholder(tf.float32, [3])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i > 5, lambda: a + tf.exp(x), lambda: a)

    out = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    assert "Exp" in _inside(program_of(out, [x]))
    same(out, {x: [0.1, 0.2, 0.3]})


def test_gradients_through_a_loop_with_something_moved_out() -> None:
    x = tf.placeholder(tf.float32, [3])
    out = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.exp(x)), [0, x])[1]
    same([out, tf.gradients(out, x)[0]], {x: [0.1, 0.2, 0.3]}, 1e-5)


def test_large_values_are_not_kept_through_a_loop() -> None:
    x = tf.placeholder(tf.float32, [1, 5000])
    out = tf.while_loop(
        lambda i, a: i < 2, lambda i, a: (i + 1, a + tf.reduce_sum(x * tf.transpose(x))), [0, 0.0]
    )[1]
    program = program_of(out, [x])
    assert any("too large" in m.why_not for m in program.near_misses)
    assert "Mul" in ops_of(out, [x])
