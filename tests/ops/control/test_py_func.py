"""``tf.py_func`` and ``tf.py_function``.

What they return, and the errors of their functions (values of TF 1.15).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.api import v2
from headrace.eager.eager_context import eager_mode


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


class _Weird(Exception):
    pass


FAILURES = [
    (ValueError, tf.errors.InvalidArgumentError),
    (TypeError, tf.errors.InvalidArgumentError),
    (StopIteration, tf.errors.OutOfRangeError),
    (MemoryError, tf.errors.ResourceExhaustedError),
    (NotImplementedError, tf.errors.UnimplementedError),
    (_Weird, tf.errors.UnknownError),
]
TEXT = re.compile(r": blah.*in outer.*in inner.*: blah", re.DOTALL)


def _raising(error: type[Exception]) -> Any:
    def inner() -> None:
        raise error("blah")

    def outer() -> None:
        inner()

    return outer


@pytest.mark.parametrize(("raised", "expected"), FAILURES)
@pytest.mark.parametrize("make", [tf.py_func, tf.py_function])
def test_the_error_holds_the_traceback_of_the_function(
    raised: type[Exception], expected: type[Exception], make: Any
) -> None:
    op = make(_raising(raised), [], [])
    with tf.Session() as sess, pytest.raises(expected, match=TEXT):
        sess.run(op)


@pytest.mark.parametrize(("raised", "expected"), FAILURES)
def test_eagerly_a_py_function_raises_the_error_of_an_operation(
    raised: type[Exception], expected: type[Exception]
) -> None:
    with eager_mode(), pytest.raises(expected, match=TEXT):
        v2.py_function(_raising(raised), [], [])


def test_without_results() -> None:
    calls: list[Any] = []
    stateful = tf.py_func(calls.append, [tf.constant(2)], [])
    stateless = tf.py_func(calls.append, [tf.constant(2)], [], stateful=False)
    eager = tf.py_function(lambda: calls.append(3), [], [])
    assert isinstance(stateful, tf.Operation)
    assert isinstance(eager, tf.Operation)
    assert stateless == []
    with tf.Session() as sess:
        assert sess.run(stateful) is None
        assert sess.run(eager) is None
        assert sess.run(stateless) == []
    assert calls == [2, 3]


def test_eagerly_without_results() -> None:
    with eager_mode():
        assert v2.py_function(lambda: None, [], []) == []


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.array([], [("foo", np.float32)]), "Unsupported numpy data type"),
        ({"foo": 1}, "Unsupported object type"),
        ([object()], "Unsupported object type"),
    ],
)
def test_a_result_that_is_no_array(result: Any, message: str) -> None:
    (y,) = tf.py_func(lambda: result, [], [tf.float32])
    with tf.Session() as sess, pytest.raises(tf.errors.InternalError, match=message):
        sess.run(y)


@pytest.mark.parametrize("make", [tf.py_func, tf.py_function, tf.numpy_function])
def test_what_cannot_be_called_is_refused_at_once(make: Any) -> None:
    with pytest.raises(ValueError, match="callable"):
        make(tf.constant("x"), [], tf.string)


def test_a_py_function_that_returns_a_variable() -> None:
    def variable() -> Any:
        return v2.Variable(0.0)

    y = tf.py_function(variable, [], tf.float32)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.UnknownError, match="Attempting to return a variable"),
    ):
        sess.run(y)


def _runs_of(make: Callable[[Callable[..., Any]], Any], runs: int = 6) -> list[Any]:
    """What a function that counts its calls gives in several runs."""
    calls = itertools.count()
    with tf.Graph().as_default(), tf.Session() as sess:
        made = make(lambda *_: np.int64(next(calls)))
        sess.run(tf.global_variables_initializer())
        return [sess.run(made).tolist() for _ in range(runs)]


def test_function_without_state_of_constants_is_called_once() -> None:
    def once(f: Any) -> Any:
        return tf.py_func(f, [], tf.int64, stateful=False)

    assert _runs_of(once) == [0] * 6
    assert _runs_of(lambda f: once(f) + 10 * once(f)) == [10] * 6  # two calls are two operations
    assert _runs_of(lambda f: 2 * tf.py_func(f, [1.0, "a"], tf.int64, stateful=False)) == [0] * 6
    assert _runs_of(lambda f: tf.py_func(f, [tf.constant(1.0) + 2.0], tf.int64, False)) == [0] * 6
    assert _runs_of(lambda f: tf.cond(tf.constant(True), lambda: once(f), lambda: 5 * once(f))) == (
        [0] * 6
    )


def test_function_of_what_changes_is_called_in_every_run() -> None:
    def of(x: Any) -> Callable[[Any], Any]:
        return lambda f: tf.py_func(f, [x() if callable(x) else x], tf.int64, stateful=False)

    assert _runs_of(of(lambda: tf.Variable(1.0))) == list(range(6))
    assert _runs_of(of(lambda: tf.random_uniform([]))) == list(range(6))
    assert _runs_of(lambda f: tf.py_func(f, [1.0], tf.int64)) == list(range(6))


def test_constants_of_equal_shape_are_not_taken_for_each_other() -> None:
    """One function of a graph is called for each constant that its copies are given."""
    with tf.Graph().as_default(), tf.Session() as sess:

        @tf.function
        def call(x: Any) -> Any:
            return tf.py_func(lambda v: v * 2.0, [x], tf.float32, stateful=False)

        a, b = call(tf.constant([1.0, 2.0])), call(tf.constant([3.0, 4.0]))
        assert sess.run([a, b])[1].tolist() == [6.0, 8.0]
        assert sess.run([a, b])[0].tolist() == [2.0, 4.0]


def test_function_without_state_that_fails_fails_in_the_run() -> None:
    def fail() -> Any:
        raise ValueError("no")

    with tf.Graph().as_default(), tf.Session() as sess:
        bad = tf.py_func(fail, [], tf.int64, stateful=False)
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: no"):
                sess.run(bad)
