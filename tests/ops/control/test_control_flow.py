"""cond, case, while_loop, TensorArray, map_fn, scan, folds.

Values and gradients against unrolled graphs.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf

executors = pytest.mark.parametrize("executor", ["numpy", "reference"])


def run(fetches: Any, feed: Any = None, executor: str = "numpy") -> Any:
    s = tf.Session(executor=executor)
    s.run(tf.global_variables_initializer())
    return s.run(fetches, feed)


def check_gradient(function: Callable[[Any], Any], at: Any, tol: float = 1e-5) -> None:
    """tf.gradients of a scalar function against central differences, in float64, on both
    executors.
    """
    at = np.asarray(at, np.float64)
    x = tf.placeholder(tf.float64, at.shape)
    y = function(x)
    (grad,) = tf.gradients(y, x)
    assert grad is not None
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    numeric = np.zeros_like(at)
    step = 1e-6
    for i in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[i] += step
        down[i] -= step
        numeric[i] = (s.run(y, {x: up}) - s.run(y, {x: down})) / (2 * step)
    got = s.run(grad, {x: at})
    np.testing.assert_allclose(got, numeric, tol, tol)
    other = tf.Session(executor="reference")
    other.run(tf.global_variables_initializer())
    np.testing.assert_allclose(other.run(grad, {x: at}), got, 1e-12, 1e-12)


# cond -------------------------------------------------------------------------------------------


@executors
def test_cond_values(executor: str) -> None:
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [2])
    y = tf.cond(p, lambda: x * 2.0, lambda: x - 1.0)
    for flag, want in ((True, [2, 4]), (False, [0, 1])):
        assert run(y, {p: flag, x: [1.0, 2.0]}, executor).tolist() == want


def test_only_the_taken_branch_runs() -> None:
    calls: list[str] = []

    def branch(name: str) -> Callable[[], Any]:
        def f(x: Any) -> Any:
            calls.append(name)
            return x

        return lambda: tf.py_func(f, [tf.constant(1.0)], tf.float32)

    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, branch("yes"), branch("no"))
    run(y, {p: True})
    assert calls == ["yes"]
    run(y, {p: False})
    assert calls == ["yes", "no"]


def test_ops_made_outside_always_run() -> None:
    """As in TF: what a branch uses from outside is computed whichever branch is taken."""
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x

    outside = tf.py_func(f, [tf.constant(1.0)], tf.float32)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: outside * 2.0, lambda: tf.constant(0.0))
    run(y, {p: False})
    assert calls == [1]


def test_cond_structures() -> None:
    Point = collections.namedtuple("Point", ["x", "y"])
    p = tf.placeholder(tf.bool, [])
    one, zero = tf.constant(1.0), tf.constant(0.0)
    single = tf.cond(p, lambda: [one], lambda: [zero])
    kept = tf.cond(p, lambda: [one], lambda: [zero], strict=True)
    assert isinstance(single, tf.Tensor) and isinstance(kept, list)
    pair = tf.cond(p, lambda: (one, zero), lambda: (zero, one))
    nested = tf.cond(p, lambda: {"a": one, "b": [zero]}, lambda: {"a": zero, "b": [one]})
    point = tf.cond(p, lambda: Point(one, zero), lambda: Point(zero, one))
    assert isinstance(point, Point)
    got = run([single, kept, pair, nested, point], {p: True})
    assert got == [1.0, [1.0], (1.0, 0.0), {"a": 1.0, "b": [0.0]}, Point(1.0, 0.0)]


def test_cond_returning_operations_and_nothing() -> None:
    v = tf.Variable(0.0)
    p = tf.placeholder(tf.bool, [])
    op = tf.cond(p, lambda: v.assign_add(1.0).op, lambda: tf.no_op())
    s = tf.Session()
    s.run(v.initializer)
    s.run(op, {p: True})
    s.run(op, {p: False})
    assert s.run(v) == 1.0


def test_cond_python_values_and_numbers() -> None:
    p = tf.placeholder(tf.bool, [])
    assert run(tf.cond(p, lambda: 1.5, lambda: 2.5), {p: False}) == 2.5
    assert run(
        tf.cond(p, lambda: np.float32([1, 2]), lambda: np.float32([3, 4])), {p: False}
    ).tolist() == [3, 4]


def test_cond_errors() -> None:
    p = tf.placeholder(tf.bool, [])
    one = tf.constant(1.0)
    with pytest.raises(TypeError, match="pred must not be a Python bool"):
        tf.cond(True, lambda: one, lambda: one)
    with pytest.raises(TypeError, match="true_fn must be callable"):
        tf.cond(p, one, lambda: one)
    with pytest.raises(TypeError, match="false_fn must be callable"):
        tf.cond(p, lambda: one, one)
    with pytest.raises((ValueError, TypeError)):
        tf.cond(p, lambda: one, lambda: tf.constant(1))
    with pytest.raises((ValueError, TypeError)):
        tf.cond(p, lambda: one, lambda: (one, one))
    with pytest.raises((ValueError, TypeError)):
        tf.cond(p, lambda: {"a": one}, lambda: {"b": one})
    with pytest.raises(ValueError, match="false_fn must have a return value"):
        tf.cond(p, lambda: one, lambda: None)
    with pytest.raises(ValueError, match="true_fn must have a return value"):
        tf.cond(p, lambda: None, lambda: None)
    with pytest.raises((ValueError, TypeError)):
        tf.cond(p, lambda: [one, None], lambda: [one, None])
    with pytest.raises((ValueError, TypeError)):
        tf.cond(tf.constant(1.0), lambda: one, lambda: one)
    # the graph is still in order
    assert run(tf.cond(p, lambda: one, lambda: one + 1.0), {p: False}) == 2.0


def test_an_exception_in_a_branch_leaves_the_graph_outside_of_it() -> None:
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(ZeroDivisionError):
        tf.cond(p, lambda: 1 / 0, lambda: tf.constant(1.0))  # type: ignore[arg-type, return-value]
    assert run(tf.constant(1.0) + 1.0) == 2.0
    with pytest.raises(ZeroDivisionError):
        tf.while_loop(lambda i: i < 3, lambda i: 1 / 0, [tf.constant(0)])
    assert run(tf.constant(1.0) + 1.0) == 2.0


def test_cond_shapes_are_generalised() -> None:
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.zeros([2, 3]), lambda: tf.zeros([2, 4]))
    assert y.shape.as_list() == [2, None]
    assert run(y, {p: False}).shape == (2, 4)
    z = tf.cond(p, lambda: tf.zeros([2, 3]), lambda: tf.zeros([2]))
    assert z.shape.ndims is None


@executors
def test_nested_cond(executor: str) -> None:
    p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    x = tf.constant(3.0)
    y = tf.cond(
        p,
        lambda: tf.cond(q, lambda: x * 2.0, lambda: x * 3.0) + 1.0,
        lambda: tf.cond(q, lambda: x - 2.0, lambda: tf.cond(p, lambda: x, lambda: -x)),
    )
    got = [run(y, {p: a, q: b}, executor) for a in (True, False) for b in (True, False)]
    assert got == [7.0, 10.0, 1.0, -3.0]


@pytest.mark.parametrize("flag", [True, False])
def test_gradient_of_cond(flag: bool) -> None:
    p = tf.constant(flag)
    w = tf.Variable([2.0, 3.0], dtype=tf.float64)
    u = tf.Variable([2.0, 3.0], dtype=tf.float64, use_resource=True)
    check_gradient(
        lambda x: tf.reduce_sum(tf.cond(p, lambda: x * x * w, lambda: tf.sin(x) * u)), [0.5, -1.0]
    )


def test_gradient_of_cond_on_the_value_itself() -> None:
    for at in (2.0, -2.0):
        tf.reset_default_graph()
        check_gradient(lambda x: tf.cond(x > 0.0, lambda: x**3, lambda: tf.exp(x)), at)


def test_gradient_of_nested_cond() -> None:
    for a in (True, False):
        for b in (True, False):
            tf.reset_default_graph()
            p, q = tf.constant(a), tf.constant(b)
            check_gradient(
                lambda x, p=p, q=q: tf.cond(
                    p,
                    lambda: tf.cond(q, lambda: x**2, lambda: x**3) * x,
                    lambda: tf.cond(q, lambda: tf.sin(x), lambda: -x),
                ),
                1.3,
            )


def test_gradients_of_cond_with_respect_to_variables() -> None:
    p = tf.placeholder(tf.bool, [])
    for resource in (False, True):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        y = tf.cond(p, lambda v=v: tf.reduce_sum(v * v), lambda: tf.constant(3.0))
        (g,) = tf.gradients(y, v)
        s = tf.Session()
        s.run(tf.global_variables_initializer())
        assert s.run(g, {p: True}).tolist() == [2, 4]
        assert s.run(g, {p: False}).tolist() == [0, 0]


def test_gradient_of_gather_in_cond() -> None:
    p = tf.constant(True)
    check_gradient(
        lambda x: tf.reduce_sum(tf.cond(p, lambda: tf.gather(x, [0, 2, 0]) ** 2, lambda: x)),
        [1.0, 2.0, 3.0],
    )


def test_gradients_called_inside_a_branch() -> None:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(3.0)
    outside = x * x

    def inner() -> Any:
        y = x**3
        return tf.gradients(y, x)[0] + tf.gradients(outside, x)[0]

    z = tf.cond(p, inner, lambda: tf.constant(0.0))
    assert run(z, {p: True}) == 27.0 + 6.0
    assert run(z, {p: False}) == 0.0


def test_second_derivative_through_cond() -> None:
    for flag, want in ((True, 6 * 2.0), (False, 2.0)):
        tf.reset_default_graph()
        x = tf.constant(2.0)
        y = tf.cond(tf.constant(flag), lambda x=x: x**3, lambda x=x: x * x)
        (g,) = tf.gradients(y, x)
        (h,) = tf.gradients(g, x)
        assert run([g, h]) == [12.0 if flag else 4.0, want]


def test_what_is_inside_of_branches_and_loops_is_neither_fetched_nor_fed() -> None:
    inside: list[Any] = []
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [])

    def branch() -> Any:
        inside.append(tf.multiply(x, 2.0, name="inner"))
        return inside[0]

    def body(i: Any) -> Any:
        inside.append(i + 1)
        return inside[1]

    r = tf.cond(p, branch, lambda: tf.constant(0.0))
    loop = tf.while_loop(lambda i: i < 3, body, [0])
    assert run([r, loop], {p: True, x: 1.0}) == [2.0, 3]
    for fetch in (*inside, inside[0].op):
        with pytest.raises(ValueError, match=r"marked as not fetchable.*inside of a branch"):
            run(fetch, {p: True, x: 1.0})
    with pytest.raises(ValueError, match="may not be fed"):
        run(loop, {inside[1]: 1})


def test_control_dependencies_around_and_inside_cond() -> None:
    v = tf.Variable(0.0)
    p = tf.placeholder(tf.bool, [])
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.cond(p, lambda: tf.constant(10.0), lambda: v.read_value())
    s = tf.Session()
    s.run(v.initializer)
    assert s.run(y, {p: True}) == 10.0
    assert s.run(v) == 1.0
    assert s.run(y, {p: False}) == 2.0

    def ordered() -> Any:
        with tf.control_dependencies([v.assign(50.0)]):
            return tf.identity(v.read_value())

    assert s.run(tf.cond(p, ordered, lambda: tf.constant(0.0)), {p: True}) == 50.0


def test_predicate_that_depends_on_a_write() -> None:
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        flag = v.read_value() > 1.5
    y = tf.cond(flag, lambda: v.read_value(), lambda: tf.constant(-1.0))
    s = tf.Session()
    s.run(v.initializer)
    assert s.run(y) == -1.0
    assert s.run(y) == 2.0


def test_fetching_many_conds_on_one_predicate() -> None:
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [])
    ys = []
    for k in range(20):
        previous = ys[-1] if ys else x
        ys.append(tf.cond(p, lambda a=previous: a + 1.0, lambda a=previous, k=k: a * float(k)))
    assert run(ys[-1], {p: True, x: 1.0}) == 21.0
    assert run(ys[:3], {p: False, x: 1.0}) == [0.0, 0.0, 0.0]


# case and switch_case -----------------------------------------------------------------------------


def test_case() -> None:
    i = tf.placeholder(tf.int32, [])
    pairs = [(tf.equal(i, k), lambda k=k: tf.constant(k * 10)) for k in range(4)]
    y = tf.case(pairs, default=lambda: tf.constant(-1))
    assert [run(y, {i: k}) for k in (0, 3, 7)] == [0, 30, -1]
    first = tf.case(
        [(i > 0, lambda: tf.constant(1)), (i > 1, lambda: tf.constant(2))],
        default=lambda: tf.constant(0),
    )
    assert run(first, {i: 5}) == 1
    exclusive = tf.case(
        {i > 0: lambda: tf.constant(1), i > 1: lambda: tf.constant(2)},
        default=lambda: tf.constant(0),
        exclusive=True,
    )
    assert run(exclusive, {i: 1}) == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(exclusive, {i: 5})


def test_case_without_default() -> None:
    i = tf.placeholder(tf.int32, [])
    y = tf.case([(i > 0, lambda: tf.constant(1)), (i < 0, lambda: tf.constant(2))])
    assert run(y, {i: 1}) == 1 and run(y, {i: -1}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(y, {i: 0})


def test_case_with_very_many_branches() -> None:
    """Deeper than Python lets blocks be nested."""
    i = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [])
    y = tf.case(
        [(tf.equal(i, k), lambda k=k: x + float(k)) for k in range(110)], default=lambda: -x
    )
    for k in (0, 1, 58, 59, 60, 61, 109):
        assert run(y, {i: k, x: 0.5}) == k + 0.5
    assert run(y, {i: 110, x: 0.5}) == -0.5
    (g,) = tf.gradients(y, x)
    assert run(g, {i: 100, x: 0.5}) == 1.0 and run(g, {i: 110, x: 0.5}) == -1.0


def test_case_errors() -> None:
    with pytest.raises((TypeError, ValueError)):
        tf.case([(tf.constant(True), tf.constant(1))])
    with pytest.raises((TypeError, ValueError)):
        tf.case([], default=None)
    with pytest.raises(TypeError):
        tf.case([(tf.constant(True), lambda: tf.constant(1))], default=tf.constant(1))


def test_switch_case() -> None:
    i = tf.placeholder(tf.int32, [])
    fns = [lambda: tf.constant(10), lambda: tf.constant(20), lambda: tf.constant(30)]
    y = tf.switch_case(i, fns)
    assert [run(y, {i: k}) for k in (0, 1, 2, 9, -1)] == [10, 20, 30, 30, 30]
    z = tf.switch_case(i, dict(enumerate(fns)), default=lambda: tf.constant(-1))
    assert [run(z, {i: k}) for k in (0, 2, 3)] == [10, 30, -1]


# while_loop ---------------------------------------------------------------------------------------


@executors
def test_while_values(executor: str) -> None:
    n = tf.placeholder(tf.int32, [])
    i, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), [0, 0])
    assert run([i, total], {n: 5}, executor) == [5, 10]
    assert run([i, total], {n: 0}, executor) == [0, 0]


def test_while_results_have_the_structure_of_the_body() -> None:
    one = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    assert isinstance(one, tf.Tensor)
    bare = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])
    assert isinstance(bare, tf.Tensor)
    same = tf.while_loop(
        lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)], return_same_structure=True
    )
    assert isinstance(same, list) and len(same) == 1
    Pair = collections.namedtuple("Pair", ["a", "b"])
    i, (pair, extra) = tf.while_loop(
        lambda i, s: i < 2,
        lambda i, s: (i + 1, (Pair(s[0].a + 1.0, s[0].b * 2.0), {"k": s[1]["k"] - 1.0})),
        (tf.constant(0), (Pair(tf.constant(0.0), tf.constant(1.0)), {"k": tf.constant(0.0)})),
    )
    assert isinstance(pair, Pair)
    assert run([i, pair, extra]) == [2, Pair(2.0, 4.0), {"k": -2.0}]


def test_maximum_iterations() -> None:
    x = tf.placeholder(tf.float32, [])
    limit = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda a: a < 100.0, lambda a: a * 2.0, [x], maximum_iterations=3)
    assert run(y, {x: 1.0}) == 8.0 and run(y, {x: 60.0}) == 120.0
    i, z = tf.while_loop(
        lambda i, a: a < 100.0, lambda i, a: [i + 1, a * 2.0], [0, x], maximum_iterations=limit
    )
    assert run([i, z], {x: 1.0, limit: 2}) == [2, 4.0]
    assert run([i, z], {x: 1.0, limit: 0}) == [0, 1.0]
    with pytest.raises(ValueError, match="maximum_iterations"):
        tf.while_loop(lambda a: a < 1.0, lambda a: a, [x], maximum_iterations=[1, 2])


def test_while_errors() -> None:
    i = tf.constant(0)
    with pytest.raises(TypeError, match="cond must be callable"):
        tf.while_loop(i, lambda i: i, [i])
    with pytest.raises(TypeError, match="body must be callable"):
        tf.while_loop(lambda i: i < 3, i, [i])
    with pytest.raises(ValueError, match="No loop variables provided"):
        tf.while_loop(lambda: True, lambda: [], [])
    with pytest.raises((ValueError, TypeError)):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1,), [i, i])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cast it in the body"):
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [i])
    with pytest.raises((ValueError, TypeError)):
        tf.while_loop(lambda i: i < 3, lambda i: None, [i])
    with pytest.raises(TypeError, match="expected type of bool"):
        tf.while_loop(lambda i: i + 1, lambda i: i + 1, [i])
    assert run(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [i])) == 3


def test_shape_invariants() -> None:
    x = tf.ones([1, 2])
    with pytest.raises(
        ValueError,
        match=r"enters the loop with shape \(1, 2\), but has shape \(2, 2\) after one iteration",
    ):
        tf.while_loop(lambda a: tf.shape(a)[0] < 4, lambda a: tf.concat([a, a], 0), [x])
    y = tf.while_loop(
        lambda a: tf.shape(a)[0] < 4,
        lambda a: tf.concat([a, a], 0),
        [x],
        shape_invariants=[tf.TensorShape([None, 2])],
    )
    assert y.shape.as_list() == [None, 2]
    assert run(y).shape == (4, 2)
    with pytest.raises(ValueError, match="shape invariant"):
        tf.while_loop(
            lambda a: tf.shape(a)[0] < 4,
            lambda a: a,
            [x],
            shape_invariants=[tf.TensorShape([None, 3])],
        )


@executors
def test_while_with_captured_values_and_many_dtypes(executor: str) -> None:
    step = tf.placeholder(tf.float64, [])
    flag, text, small, big = tf.while_loop(
        lambda f, t, s, b: tf.logical_not(f),
        lambda f, t, s, b: (
            b + step > 2.0,
            tf.string_join([t, "x"]),
            s + tf.constant(1, tf.int8),
            b + step,
        ),
        [
            tf.constant(False),
            tf.constant("a"),
            tf.constant(0, tf.int8),
            tf.constant(0.0, tf.float64),
        ],
    )
    got = run([flag, text, small, big], {step: 1.0}, executor)
    assert got[0] and got[1] == b"axxx" and got[2] == 3 and got[3] == 3.0


def test_while_swaps_its_variables() -> None:
    a, b, _ = tf.while_loop(lambda a, b, i: i < 3, lambda a, b, i: (b, a, i + 1), [1.0, 2.0, 0])
    assert run([a, b]) == [2.0, 1.0]


def test_while_swaps_large_variables() -> None:
    x = tf.placeholder(tf.float32, [30000])
    a, b, _ = tf.while_loop(
        lambda a, b, i: i < 3,
        lambda a, b, i: (b * 2.0, a + 1.0, i + 1),
        [x * 1.0, x + 1.0, tf.constant(0)],
    )
    given = np.arange(30000, dtype=np.float32)
    left, right = given * 1.0, given + 1.0
    for _ in range(3):
        left, right = right * 2.0, left + 1.0
    got = run([a, b], {x: given})
    np.testing.assert_array_equal(got[0], left)
    np.testing.assert_array_equal(got[1], right)


def test_a_constant_or_fed_start_value_is_not_written_to() -> None:
    x = tf.placeholder(tf.float32, [30000])
    y = tf.while_loop(
        lambda a, i: i < 3, lambda a, i: (tf.exp(a * 0.0) + a, i + 1), [x, tf.constant(0)]
    )[0]
    given = np.ones(30000, np.float32)
    s = tf.Session()
    for _ in range(2):
        np.testing.assert_array_equal(s.run(y, {x: given}), np.full(30000, 4, np.float32))
    assert given[0] == 1


@executors
def test_nested_loops(executor: str) -> None:
    n = tf.placeholder(tf.int32, [])

    def outer(i: Any, total: Any) -> Any:
        _, inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + i * j), [0, 0])
        return i + 1, total + inner

    _, y = tf.while_loop(lambda i, t: i < n, outer, [0, 0])
    want = sum(i * j for i in range(6) for j in range(i))
    assert run(y, {n: 6}, executor) == want


@executors
def test_cond_in_while_and_while_in_cond(executor: str) -> None:
    n = tf.placeholder(tf.int32, [])
    p = tf.placeholder(tf.bool, [])

    def body(i: Any, t: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: t + i, lambda: t * 2)

    _, y = tf.while_loop(lambda i, t: i < n, body, [0, 0])
    want = 0
    for i in range(7):
        want = want + i if i % 2 == 0 else want * 2
    assert run(y, {n: 7}, executor) == want
    z = tf.cond(
        p,
        lambda: tf.while_loop(lambda i, t: i < n, body, [0, 0])[1],
        lambda: tf.while_loop(lambda i: i < n * 2, lambda i: i + 3, [0]),
    )
    assert run(z, {p: True, n: 7}, executor) == want
    assert run(z, {p: False, n: 7}, executor) == 15


def test_python_function_in_a_loop() -> None:
    seen: list[int] = []

    def f(i: Any) -> Any:
        seen.append(int(i))
        return np.int32(i * i)

    def body(i: Any, t: Any) -> Any:
        value = tf.py_func(f, [i], tf.int32)
        value.set_shape([])
        return i + 1, t + value

    _, y = tf.while_loop(lambda i, t: i < 4, body, [0, 0])
    assert run(y) == 0 + 1 + 4 + 9
    assert seen == [0, 1, 2, 3]


def test_control_dependencies_around_and_inside_a_loop() -> None:
    v = tf.Variable(0.0)
    w = tf.Variable(0.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            with tf.control_dependencies([w.assign(v.read_value() * 10.0)]):
                return i + 1

    before = v.assign(100.0)
    with tf.control_dependencies([before]):
        y = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    with tf.control_dependencies([y]):
        after = tf.identity(v.read_value())
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    assert s.run([y, after]) == [3, 103.0]
    assert s.run(w) == 1030.0


def test_random_numbers_differ_from_iteration_to_iteration() -> None:
    tf.set_random_seed(1)
    ta = tf.TensorArray(tf.float32, 4)
    _, ta = tf.while_loop(
        lambda i, t: i < 4, lambda i, t: (i + 1, t.write(i, tf.random_uniform([]))), [0, ta]
    )
    assert len(set(run(ta.stack()).tolist())) == 4


def test_assert_in_a_loop() -> None:
    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.Assert(i < 3, [i])]):
            return i + 1

    y = tf.while_loop(lambda i: i < 5, body, [0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(y)


# gradients of loops -------------------------------------------------------------------------------


def test_gradient_of_a_loop_against_the_unrolled_graph() -> None:
    x = tf.placeholder(tf.float64, [3])
    w = tf.Variable(np.float64([[0.5, -0.2, 0.1], [0.3, 0.8, -0.5], [0.2, 0.1, 0.4]]))

    def step(h: Any) -> Any:
        return tf.tanh(tf.reshape(tf.matmul(tf.reshape(h, [1, 3]), w), [3]) + x)

    _, loop = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, step(h)), [0, x])
    flat = x
    for _ in range(4):
        flat = step(flat)
    grads = tf.gradients(tf.reduce_sum(loop**2), [x, w])
    wanted = tf.gradients(tf.reduce_sum(flat**2), [x, w])
    feed = {x: [0.1, -0.4, 0.7]}
    for executor in ("numpy", "reference"):
        a, b = run([[loop, *grads], [flat, *wanted]], feed, executor)
        for one, two in zip(a, b):
            np.testing.assert_allclose(one, two, 1e-12)


@pytest.mark.parametrize("resource", [False, True])
def test_gradient_of_a_loop_with_respect_to_variables(resource: bool) -> None:
    v = tf.Variable(2.0, dtype=tf.float64, use_resource=resource)
    _, y = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * v), [0, tf.constant(1.0, tf.float64)]
    )
    (g,) = tf.gradients(y, v)
    assert run([y, g]) == [8.0, 12.0]


def test_gradient_with_a_fed_number_of_iterations() -> None:
    n = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float64, [])
    _, y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, x])
    (g,) = tf.gradients(y, x)
    for k in range(5):
        assert run(g, {n: k, x: 2.0}) == (k + 1) * 2.0**k


def test_gradient_of_a_loop_that_stops_by_its_value() -> None:
    check_gradient(lambda x: tf.while_loop(lambda a: a < 50.0, lambda a: a * a + x, [x]), 1.7)


def test_gradient_of_nested_loops() -> None:
    def f(x: Any) -> Any:
        def outer(i: Any, a: Any) -> Any:
            _, b = tf.while_loop(
                lambda j, b: j <= i, lambda j, b: (j + 1, tf.sin(b) * x + a), [0, a]
            )
            return i + 1, b

        return tf.reduce_sum(tf.while_loop(lambda i, a: i < 3, outer, [0, x * 1.0])[1])

    check_gradient(f, [0.3, 1.1])


def test_gradient_of_cond_in_while() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(a) * x, lambda: a * a + x)

        return tf.reduce_sum(tf.while_loop(lambda i, a: i < 5, body, [0, x])[1])

    check_gradient(f, [0.3, 0.7])


def test_gradient_of_cond_on_the_loop_value() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.cond(a > 1.0, lambda: tf.log(a) + x, lambda: a * 3.0)

        return tf.while_loop(lambda i, a: i < 6, body, [0, x])[1]

    check_gradient(f, 0.4)


def test_gradient_of_while_in_cond() -> None:
    for flag in (True, False):
        tf.reset_default_graph()
        p = tf.constant(flag)

        def f(x: Any, p: Any = p) -> Any:
            return tf.cond(
                p,
                lambda: tf.while_loop(
                    lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) * x), [0, x]
                )[1],
                lambda: x * x,
            )

        check_gradient(f, 0.8)


def test_gradient_of_gather_in_a_loop() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return i + 1, a * tf.gather(x, i) + tf.reduce_sum(tf.gather(x, [0, i]))

        return tf.while_loop(lambda i, a: i < 3, body, [0, tf.constant(1.0, tf.float64)])[1]

    check_gradient(f, [0.5, -0.3, 1.2])


def test_gradient_of_slices_and_concat_in_a_loop() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.concat([a[1:], a[:1] * x[:1]], 0) * tf.reshape(x[i], [])

        return tf.reduce_sum(tf.while_loop(lambda i, a: i < 3, body, [0, x])[1])

    check_gradient(f, [0.5, -0.3, 1.2])


def test_two_results_and_a_part_that_does_not_matter() -> None:
    def f(x: Any) -> Any:
        _, a, _b, c = tf.while_loop(
            lambda i, a, b, c: i < 3,
            lambda i, a, b, c: (i + 1, a * b, b + x, c * 2.0),
            [0, x, x * 2.0, x],
        )
        return a + 0.0 * tf.cast(tf.size(c), tf.float64)

    check_gradient(f, 0.7)


def test_stop_gradient_in_a_loop() -> None:
    x = tf.constant(2.0)
    _, y = tf.while_loop(
        lambda i, a: i < 2, lambda i, a: (i + 1, a * tf.stop_gradient(a) * x), [0, x]
    )
    a, b = x, x
    for _ in range(2):
        b = b * tf.stop_gradient(b) * x
    got, want = run([tf.gradients(y, x)[0], tf.gradients(b, a)[0]])
    assert got == want


def test_gradients_called_inside_a_body() -> None:
    target = tf.constant(3.0)

    def body(i: Any, x: Any) -> Any:
        loss = (x - target) ** 2
        return i + 1, x - 0.25 * tf.gradients(loss, x)[0]

    _, y = tf.while_loop(lambda i, x: i < 20, body, [0, tf.constant(0.0)])
    assert abs(run(y) - 3.0) < 1e-4


def test_two_gradients_of_one_loop() -> None:
    x = tf.constant(1.5, tf.float64)
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * x, b + a), [0, x, x])
    ga, gb, gboth = tf.gradients(a, x)[0], tf.gradients(b, x)[0], tf.gradients([a, b], x)[0]
    v = 1.5
    got = run([ga, gb, gboth])
    np.testing.assert_allclose(
        got, [4 * v**3, 1 + 1 + 2 * v + 3 * v**2, 4 * v**3 + 2 + 2 * v + 3 * v**2], 1e-12
    )


def test_loop_without_gradient() -> None:
    x = tf.constant(1.0)
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)
    try:
        (g,) = tf.gradients(y, x)
    except LookupError:
        return
    assert g is None


def test_training_through_a_loop_lowers_the_loss() -> None:
    rng = np.random.RandomState(0)
    w = tf.get_variable("w", initializer=np.float32(rng.randn(3, 3) * 0.3))
    x = tf.constant(np.float32(rng.randn(4, 3)))
    _, h = tf.while_loop(
        lambda i, h: i < 5, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x)), [0, x]
    )
    loss = tf.reduce_mean((h - 0.5) ** 2)
    step = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    first = s.run(loss)
    for _ in range(30):
        s.run(step)
    assert s.run(loss) < first * 0.7


def test_second_order_through_a_loop_is_refused_with_tf_words() -> None:
    x = tf.constant(2.0)
    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x])[1]
    (g,) = tf.gradients(y, x)
    with pytest.raises(TypeError, match="Second-order gradient for while loops not supported"):
        tf.gradients(g, x)


# TensorArray --------------------------------------------------------------------------------------


@executors
def test_tensor_array_basics(executor: str) -> None:
    ta = tf.TensorArray(tf.float32, size=3)
    ta = ta.write(0, [1.0, 2.0]).write(2, [5.0, 6.0]).write(1, [3.0, 4.0])
    stacked = ta.stack()
    assert run(stacked, None, executor).tolist() == [[1, 2], [3, 4], [5, 6]]
    un = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(
        tf.constant([[1.0], [2.0], [3.0]])
    )
    got = run([un.read(1), un.size(), un.gather([2, 0]), un.concat()], None, executor)
    assert got[0].tolist() == [2] and got[1] == 3
    assert got[2].tolist() == [[3], [1]] and got[3].tolist() == [1, 2, 3]
    parts = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(
        tf.constant([1.0, 2.0, 3.0]), [1, 2]
    )
    assert run(parts.read(1), None, executor).tolist() == [2, 3]


def test_tensor_array_grows() -> None:
    ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    n = tf.placeholder(tf.int32, [])
    _, ta = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, i * i)), [0, ta])
    y, size = ta.stack(), ta.size()
    assert run(y, {n: 5}).tolist() == [0, 1, 4, 9, 16]
    assert run(size, {n: 2}) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda ta: ta.read(0), "has not yet been written|not been written"),
        (lambda ta: ta.write(5, 1.0).flow, "index 5"),
        (lambda ta: ta.write(0, 1.0).write(0, 2.0).flow, "already been written"),
        (lambda ta: ta.write(0, 1.0).write(1, 2.0).read(7), "index 7"),
        (lambda ta: ta.write(-1, 1.0).flow, "-1"),
    ],
)
def test_tensor_array_run_time_errors(make: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        run(make(tf.TensorArray(tf.float32, size=2, infer_shape=False)))


def test_tensor_array_reading_twice() -> None:
    ta = tf.TensorArray(tf.float32, size=1).write(0, 1.0)
    first = ta.read(0)
    with tf.control_dependencies([first]):
        second = ta.read(0)
    with pytest.raises(tf.errors.OpError, match="cleared after a previous read"):
        run([first, second])


def test_tensor_array_build_time_errors() -> None:
    ta = tf.TensorArray(tf.float32, size=2)
    ta = ta.write(0, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"[Ii]nconsistent shapes|shape"):
        ta.write(1, [1.0, 2.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"dtype|type"):
        ta.write(1, tf.constant([1, 2]))
    with pytest.raises(ValueError, match=r"[Ss]ize"):
        tf.TensorArray(tf.float32)


def test_gradient_of_tensor_array() -> None:
    def f(x: Any) -> Any:
        ta = tf.TensorArray(tf.float64, size=3, clear_after_read=False).unstack(x)
        a = ta.read(0) * ta.read(2) + ta.read(2)
        out = tf.TensorArray(tf.float64, size=2).write(0, a).write(1, ta.read(1) ** 2)
        return tf.reduce_sum(out.stack() ** 2)

    check_gradient(f, [[0.5], [1.5], [-0.7]])


def test_gradient_of_a_dynamic_tensor_array() -> None:
    def f(x: Any) -> Any:
        ta = tf.TensorArray(tf.float64, size=0, dynamic_size=True)
        _, ta, _ = tf.while_loop(
            lambda i, t, a: i < 4, lambda i, t, a: (i + 1, t.write(i, a * x), tf.sin(a)), [0, ta, x]
        )
        return tf.reduce_sum(ta.stack() * tf.constant([1.0, 2.0, 3.0, 4.0], tf.float64))

    check_gradient(f, 0.7)


def test_gradient_of_concat_and_split() -> None:
    def f(x: Any) -> Any:
        ta = tf.TensorArray(tf.float64, size=2, infer_shape=False, clear_after_read=False).split(
            x, [1, 2]
        )
        return tf.reduce_sum(ta.concat() ** 3) + tf.reduce_sum(ta.read(1))

    check_gradient(f, [0.5, 1.5, -0.7])


# map_fn, scan, folds ------------------------------------------------------------------------------


@executors
def test_map_fn(executor: str) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.map_fn(lambda r: r * tf.reduce_sum(r), x)
    assert y.shape.as_list() == [None, 2]
    given = np.float32([[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(run(y, {x: given}, executor), given * given.sum(1, keepdims=True))
    assert run(y, {x: np.zeros((0, 2))}, executor).shape == (0, 2)


def test_map_fn_structures_and_types() -> None:
    a, b = tf.constant([1, 2, 3]), tf.constant([10.0, 20.0, 30.0])
    total = tf.map_fn(lambda t: tf.cast(t[0], tf.float32) + t[1], (a, b), dtype=tf.float32)
    assert run(total).tolist() == [11, 22, 33]
    pair = tf.map_fn(
        lambda n: (n * 2, tf.cast(n, tf.float32) / 2.0), a, dtype=(tf.int32, tf.float32)
    )
    got = run(pair)
    assert (
        isinstance(pair, tuple)
        and got[0].tolist() == [2, 4, 6]
        and got[1].tolist() == [0.5, 1, 1.5]
    )
    as_dict = tf.map_fn(lambda d: {"s": d["x"] + 1}, {"x": a}, dtype={"s": tf.int32})
    assert run(as_dict)["s"].tolist() == [2, 3, 4]
    with pytest.raises((TypeError, ValueError)):
        tf.map_fn(lambda n: n, tf.constant(1))
    with pytest.raises(TypeError):
        tf.map_fn(3, a)


def test_map_fn_with_shapes_that_differ_is_an_error() -> None:
    y = tf.map_fn(lambda n: tf.zeros([n]), tf.constant([1, 2]), dtype=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(y)


def test_map_fn_of_text() -> None:
    y = tf.map_fn(lambda s: tf.string_join([s, "!"]), tf.constant(["a", "b"]))
    assert run(y).tolist() == [b"a!", b"b!"]


def test_gradient_of_map_fn() -> None:
    w = tf.Variable([1.0, 2.0], dtype=tf.float64)
    check_gradient(
        lambda x: tf.reduce_sum(tf.map_fn(lambda r: tf.sin(r) * w * tf.reduce_sum(x), x)),
        [[0.5, 1.5], [-0.7, 0.2]],
    )


def test_gradient_of_nested_map_fn() -> None:
    check_gradient(
        lambda x: tf.reduce_sum(tf.map_fn(lambda r: tf.map_fn(lambda e: e**3, r) * r, x)),
        [[0.5, 1.5], [-0.7, 0.2]],
    )


@executors
def test_scan(executor: str) -> None:
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    assert run(tf.scan(lambda a, b: a + b, x), None, executor).tolist() == [1, 3, 6, 10]
    assert run(tf.scan(lambda a, b: a + b, x, 10.0), None, executor).tolist() == [11, 13, 16, 20]
    assert run(tf.scan(lambda a, b: a + b, x, reverse=True), None, executor).tolist() == [
        10,
        9,
        7,
        4,
    ]
    a, b = run(tf.scan(lambda s, e: (s[0] + e, s[1] * e), x, (0.0, 1.0)), None, executor)
    assert a.tolist() == [1, 3, 6, 10] and b.tolist() == [1, 2, 6, 24]


def test_gradient_of_scan() -> None:
    w = tf.constant([0.5, -0.3], tf.float64)
    check_gradient(
        lambda x: tf.reduce_sum(
            tf.scan(lambda h, r: tf.tanh(h * w + r), x, tf.zeros([2], tf.float64)) ** 2
        ),
        [[0.5, 1.5], [-0.7, 0.2], [0.1, 0.9]],
    )
    check_gradient(
        lambda x: tf.reduce_sum(tf.scan(lambda a, b: a * b, x, reverse=True)), [0.5, 1.5, -0.7]
    )


@executors
def test_folds(executor: str) -> None:
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    got = run(
        [
            tf.foldl(lambda a, b: a - b, x),
            tf.foldr(lambda a, b: a - b, x),
            tf.foldl(lambda a, b: a - b, x, 100.0),
            tf.foldr(lambda a, b: a - b, x, 100.0),
        ],
        None,
        executor,
    )
    assert got == [-8.0, -2.0, 90.0, 90.0]


def test_gradient_of_folds() -> None:
    check_gradient(lambda x: tf.foldl(lambda a, b: a * b + tf.sin(a), x), [0.5, 1.5, -0.7])
    check_gradient(
        lambda x: tf.foldr(lambda a, b: a * b + tf.sin(a), x, tf.constant(2.0, tf.float64)),
        [0.5, 1.5, -0.7],
    )


def test_dynamic_decoding_loop() -> None:
    """The shape of a typical decoder.

    State, finished flags, outputs in a growing array, an embedding lookup.
    """
    table = tf.constant(np.eye(5, dtype=np.float32))

    def test(t: Any, token: Any, done: Any, outs: Any) -> Any:
        return tf.logical_and(t < 10, tf.logical_not(tf.reduce_all(done)))

    def body(t: Any, token: Any, done: Any, outs: Any) -> Any:
        row = tf.nn.embedding_lookup(table, token)
        following = tf.minimum(tf.argmax(row, 1, output_type=tf.int32) + 1, 4)
        done = tf.logical_or(done, tf.equal(following, 4))
        return t + 1, following, done, outs.write(t, following)

    outs = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    t, _, _, outs = tf.while_loop(
        test, body, [tf.constant(0), tf.constant([0, 2]), tf.constant([False, False]), outs]
    )
    steps, tokens = run([t, outs.stack()])
    assert steps == 4
    assert tokens.tolist() == [[1, 3], [2, 4], [3, 4], [4, 4]]


@pytest.mark.parametrize(
    ("scope", "name"), [("s", "gradients"), ("gradients_of_mine", "gradients"), ("s", "mine")]
)
def test_two_backward_passes_over_one_tensor_array_do_not_mix(scope: str, name: str) -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    ta = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
    one, two = ta.read(0) * 2.0, ta.read(0) * 5.0 + ta.read(1)
    with tf.name_scope(scope):
        a, b = tf.gradients(one, x, name=name)[0], tf.gradients(two, x, name=name)[0]
    got = run([a, b])
    assert got[0].tolist() == [2, 0, 0] and got[1].tolist() == [5, 1, 0]


@pytest.mark.parametrize("resource", [False, True])
def test_gradient_of_a_variable_in_cond_in_nested_loops(resource: bool) -> None:
    v = tf.Variable(1.5, dtype=tf.float64, use_resource=resource)

    def inner(j: Any, b: Any) -> Any:
        return j + 1, tf.cond(tf.equal(j % 2, 0), lambda: b * v, lambda: b + v)

    def outer(i: Any, a: Any) -> Any:
        return i + 1, tf.while_loop(lambda j, b: j < 3, inner, [0, a])[1]

    y = tf.while_loop(lambda i, a: i < 2, outer, [0, tf.constant(1.0, tf.float64)])[1]
    flat: Any = tf.constant(1.0, tf.float64)
    for _ in range(2):
        flat = (flat * v + v) * v
    got = run([y, flat, tf.gradients(y, v)[0], tf.gradients(flat, v)[0]])
    np.testing.assert_allclose(got[0], got[1])
    np.testing.assert_allclose(got[2], got[3])


def test_users_gradients_inside_a_loop() -> None:
    x = tf.constant(2.0)

    @tf.custom_gradient
    def f(a: Any) -> Any:
        return a * a, lambda dy: dy * 100.0

    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, f(a)), [0, x])[1]
    assert run([y, tf.gradients(y, x)[0]]) == [16.0, 10000.0]


def test_training_steps_inside_control_flow() -> None:
    v = tf.Variable(1.5)
    p = tf.placeholder(tf.bool, [])
    opt = tf.train.GradientDescentOptimizer(0.1)
    step = tf.cond(p, lambda: opt.minimize(v * v), lambda: tf.no_op())

    def body(i: Any) -> Any:
        with tf.control_dependencies([opt.minimize(tf.square(v))]):
            return i + 1

    several = tf.while_loop(lambda i: i < 3, body, [0])
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    s.run(step, {p: False})
    assert s.run(v) == 1.5
    s.run(step, {p: True})
    np.testing.assert_allclose(s.run(v), 1.2, 1e-6)
    s.run(several)
    np.testing.assert_allclose(s.run(v), 1.2 * 0.8**3, 1e-6)


def test_variables_made_inside_a_body() -> None:
    def body(i: Any, a: Any) -> Any:
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        return i + 1, a * w

    y = tf.while_loop(lambda i, a: i < 3, body, [0, 1.0])[1]
    assert run([y, *tf.gradients(y, tf.trainable_variables())]) == [8.0, 12.0]


def test_a_tensor_of_a_loop_is_not_known_outside() -> None:
    with tf.Graph().as_default():
        inside: list[Any] = []

        def body(i: Any) -> Any:
            inside.append(i * 2)
            return i + 1

        tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
        with pytest.raises(ValueError, match=r"in a while loop|different while loops"):
            tf.add(inside[0], 1)
        with pytest.raises(ValueError, match=r"in a while loop|different while loops"):
            tf.while_loop(lambda i: i < 3, lambda i: i + inside[0], [tf.constant(0)])


def test_gradients_through_a_switch_outside_of_cond():
    from headrace.ops.control.control_flow import merge, switch

    with tf.Graph().as_default():
        x, pred = tf.constant(2.0), tf.placeholder(tf.bool)
        off, on = switch(x, pred)
        both = merge([off * 3.0, on * on])[0]
        grads = [tf.gradients(y, x)[0] for y in (on, off, both)]
        with tf.Session() as sess:
            assert sess.run(grads[0], {pred: True}) == 1.0
            assert sess.run(grads[1], {pred: True}) == 0.0
            assert [sess.run(grads[2], {pred: p}) for p in (True, False)] == [4.0, 3.0]


def test_switch_of_composites():
    from headrace.ops.control.control_flow import switch

    with tf.Graph().as_default(), tf.Session() as sess:
        data = tf.IndexedSlices(tf.constant([1, 2]), tf.constant([0, 1]), tf.constant([3]))
        _, on = switch(data, tf.constant(True))
        assert sess.run(on.values).tolist() == [1, 2]
        assert sess.run(on.dense_shape).tolist() == [3]


def test_an_empty_structure_beside_a_limited_loop_variable_stays():
    with tf.Graph().as_default(), tf.Session() as sess:
        loop = lambda **k: tf.while_loop(
            lambda i, _: i < 10, lambda i, _: [i + 1, []], [tf.constant(0), []], **k
        )
        assert sess.run(loop()) == 10
        assert sess.run(loop(maximum_iterations=50)) == [10, []]
