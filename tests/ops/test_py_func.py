"""``tf.py_func`` and ``tf.py_function``.

What they return, and the errors of their functions (values of TF 1.15).
"""

from __future__ import annotations

import re
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
