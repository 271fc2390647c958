"""Errors: TensorFlow's classes and words, the values, the operation, the user's own line."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors


def unknown(value: Any) -> Any:
    """A tensor of which nothing is known while the graph is built."""
    return tf.placeholder_with_default(np.asarray(value), None)


def floats(*shape: int) -> Any:
    return unknown(np.zeros(shape, np.float32))


# while building -----------------------------------------------------------------------------------

BUILD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3])),
        ValueError,
        r"Dimensions must be equal, but are 3 and 2 for 'MatMul' \(op: 'MatMul'\) with "
        r"input shapes: \[2,3\], \[2,3\]",
    ),
    (
        lambda: tf.matmul(tf.zeros([3]), tf.zeros([3, 2])),
        ValueError,
        "Shape must be rank 2 but is rank 1",
    ),
    (
        lambda: tf.zeros([2, 3]) + tf.zeros([4, 5]),
        ValueError,
        r"Dimensions must be equal, but are 2 and 4 for 'add' \(op: 'AddV2'\)",
    ),
    (
        lambda: tf.constant(1.0) + tf.constant(1),
        TypeError,
        "Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of argument 'x'",
    ),
    (
        lambda: tf.add(tf.constant(1.0), tf.constant(1)),
        TypeError,
        "Input 'y' of 'Add' Op has type int32",
    ),
    (lambda: tf.constant(1) + 1.5, TypeError, "float"),
    (
        lambda: tf.constant(True) * tf.constant(False),
        TypeError,
        "DataType bool not in list of allowed values",
    ),
    (lambda: tf.sqrt(tf.constant(4)), TypeError, "DataType int32 not in list of allowed values"),
    (
        lambda: tf.concat([tf.zeros([2, 3]), tf.zeros([4, 5])], 0),
        ValueError,
        "must be equal, but are 3 and 5",
    ),
    (
        lambda: tf.stack([tf.zeros([2]), tf.zeros([3])]),
        ValueError,
        "must be equal, but are 2 and 3",
    ),
    (
        lambda: tf.reshape(tf.zeros([2, 3]), [4, 4]),
        ValueError,
        r"Cannot reshape a tensor with 6 elements to shape \[4,4\] \(16 elements\)",
    ),
    (
        lambda: tf.constant("a", tf.float32),
        TypeError,
        "Expected float32, got 'a' of type 'str' instead",
    ),
    (
        lambda: tf.constant(1.5, tf.int32),
        TypeError,
        "Expected int32, got 1.5 of type 'float' instead",
    ),
    (lambda: tf.constant(None), ValueError, "None values not supported"),
    (lambda: tf.constant([[1], [1, 2]]), ValueError, "Argument must be a dense tensor"),
    (
        lambda: tf.argmax(tf.zeros([2, 3]), 5),
        ValueError,
        r"Dimension \(5\) must be in the range \[-2, 2\)",
    ),
    (
        lambda: tf.reduce_sum(tf.zeros([2, 3]), 7),
        ValueError,
        "Invalid reduction dimension 7 for input with 2 dimensions",
    ),
    (
        lambda: tf.gather(tf.zeros([2, 3]), [0.5]),
        TypeError,
        "DataType float32 not in list of allowed values: int32, int64",
    ),
    (
        lambda: tf.split(tf.zeros([5]), 2),
        ValueError,
        "Dimension size must be evenly divisible by 2 but is 5",
    ),
    (
        lambda: tf.zeros([2, 3])[0, 0, 0],
        ValueError,
        "Index out of range using input dim 2; input has only 2 dims",
    ),
    (lambda: tf.zeros([2, 3])[5], ValueError, "slice index 5 of dimension 0 out of bounds"),
    (
        lambda: tf.squeeze(tf.zeros([2, 3]), [0]),
        ValueError,
        r"Can not squeeze dim\[0\], expected a dimension of 1, got 2",
    ),
    (
        lambda: tf.nn.bias_add(tf.zeros([2, 3]), tf.zeros([4])),
        ValueError,
        "Dimensions must be equal, but are 3 and 4",
    ),
    (
        lambda: tf.unstack(tf.placeholder(tf.float32)),
        ValueError,
        "Cannot infer num from shape <unknown>",
    ),
    (lambda: tf.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0]), ValueError, r"\[2\] and \[3\]"),
    (
        lambda: tf.Variable([1.0, 2.0]).assign(tf.constant([1, 2])),
        TypeError,
        "has type int32 that does not match type float32",
    ),
    (lambda: tf.assign(tf.constant(1.0), 2.0), (AttributeError, TypeError, ValueError), "."),
    (
        lambda: tf.nn.softmax_cross_entropy_with_logits(tf.zeros([2, 3]), tf.zeros([2, 3])),
        ValueError,
        "named arguments",
    ),
    (lambda: [a for a in tf.zeros([2])], TypeError, "itera"),
    (lambda: tf.placeholder("nonsense"), TypeError, "nonsense"),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("make", "error", "match"), BUILD)
def test_wrong_graphs_fail_while_building(make: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_a_failed_op_is_not_in_the_graph() -> None:
    a, b = tf.zeros([2, 3]), tf.zeros([4, 5])
    before = len(tf.get_default_graph().get_operations())
    with pytest.raises(ValueError):
        a + b
    assert len(tf.get_default_graph().get_operations()) == before
    assert tf.Session().run(tf.constant(1) + 1) == 2


# while running ----------------------------------------------------------------------------------

RUN: list[tuple[Callable[[], Any], str, str]] = [
    (
        lambda: floats(2, 3) + floats(4, 5),
        "InvalidArgumentError",
        r"Incompatible shapes: \[2,3\] vs. \[4,5\]",
    ),
    (lambda: tf.matmul(floats(2, 3), floats(2, 3)), "InvalidArgumentError", r"\[2,3\]"),
    (
        lambda: tf.gather(floats(2, 3), [0, 7]),
        "InvalidArgumentError",
        r"indices\[1\] = 7 is not in \[0, 2\)",
    ),
    (
        lambda: tf.reshape(floats(2, 3), unknown([4, 4])),
        "InvalidArgumentError",
        "Input to reshape is a tensor with 6 values, but the requested shape has 16",
    ),
    (
        lambda: tf.concat([floats(2, 3), floats(2, 4)], 0),
        "InvalidArgumentError",
        "Dimensions of inputs should match",
    ),
    (lambda: floats(2, 3)[7], "InvalidArgumentError", "slice index 7 of dimension 0 out of bounds"),
    (
        lambda: tf.Assert(unknown(False), [tf.constant("data"), tf.constant(3)]),
        "InvalidArgumentError",
        r"assertion failed: \[data\] \[3\]",
    ),
    (
        lambda: tf.check_numerics(unknown(np.float32(np.nan)), "bad thing"),
        "InvalidArgumentError",
        "bad thing : Tensor had NaN values",
    ),
    (
        lambda: unknown(np.int32(1)) // unknown(np.int32(0)),
        "InvalidArgumentError",
        "Integer division by zero",
    ),
    (
        lambda: tf.py_func(lambda: 1 / 0, [], tf.float32),
        "UnknownError",
        "ZeroDivisionError: division by zero",
    ),
    (
        lambda: tf.cholesky(unknown(-np.eye(2, dtype=np.float32))),
        "InvalidArgumentError",
        "Cholesky decomposition was not successful",
    ),
    (lambda: tf.string_to_number(unknown(np.array("abc", object))), "InvalidArgumentError", "abc"),
    (
        lambda: tf.placeholder(tf.float32, name="inputs"),
        "InvalidArgumentError",
        "You must feed a value for placeholder tensor 'inputs'",
    ),
    (lambda: tf.Variable(1.0, name="weights"), "FailedPreconditionError", "weights"),
]


@pytest.mark.parametrize("executor", ["numpy", "reference"])
@pytest.mark.parametrize(("make", "error", "match"), RUN)
def test_wrong_values_fail_while_running(make: Any, error: str, match: str, executor: str) -> None:
    fetch = make()
    s = tf.Session(executor=executor)
    for _ in range(2):
        with pytest.raises(getattr(tf.errors, error), match=match) as failure:
            s.run(fetch)
        raised = failure.value
        assert isinstance(raised, tf.errors.OpError) and raised.op is not None
        assert raised.op.name in str(raised) and raised.message == str(raised)
    assert s.run(tf.constant(1)) == 1


@pytest.mark.parametrize("executor", ["numpy", "reference"])
def test_the_message_has_operation_and_line(executor: str) -> None:
    frame = inspect.currentframe()
    assert frame is not None
    x = tf.placeholder(tf.float32, [None])
    y = tf.add(x, tf.constant([1.0, 2.0, 3.0]), name="the_sum")
    line = frame.f_lineno - 1
    with pytest.raises(tf.errors.InvalidArgumentError) as failure:
        tf.Session(executor=executor).run(tf.reduce_sum(y * 2.0), {x: [1.0, 2.0]})
    text = str(failure.value)
    assert "[[node the_sum]]" in text and f"test_errors.py:{line}" in text
    assert 'name="the_sum"' in text
    assert failure.value.op is y.op and failure.value.error_code == tf.errors.INVALID_ARGUMENT


@pytest.mark.parametrize("size", [3, 70000, 300000])
def test_the_failing_member_of_a_fused_step_is_named(size: int) -> None:
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    y = tf.tanh(tf.exp(tf.add(tf.negative(a), b, name="culprit"), name="later") * 2.0, name="last")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"\[[0-9]+\] vs. \[[0-9]+\]"
    ) as failure:
        tf.Session().run(y, {a: np.zeros(size), b: np.zeros(size + 1)})
    assert failure.value.op.name == "culprit"


def test_an_error_in_a_loop_and_in_a_branch() -> None:
    x = tf.placeholder(tf.float32, [None])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i > 0, lambda: tf.add(a, x, name="inner"), lambda: a)

    loop = tf.while_loop(
        lambda i, a: i < 3,
        body,
        [0, tf.constant([1.0, 2.0, 3.0])],
        [tf.TensorShape([]), tf.TensorShape([None])],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[3\] vs. \[2\]") as failure:
        tf.Session().run(loop, {x: [1.0, 2.0]})
    assert failure.value.op.name.endswith("inner")


def test_an_error_in_a_gradient_names_an_operation() -> None:
    x = tf.placeholder(tf.float32, None)
    y = tf.reduce_sum(tf.gather(x, [5]))
    (g,) = tf.gradients(y, x)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.Session().run([y, g], {x: [1.0]})


# the classes ------------------------------------------------------------------------------------

CLASSES = [
    "CancelledError",
    "UnknownError",
    "InvalidArgumentError",
    "DeadlineExceededError",
    "NotFoundError",
    "AlreadyExistsError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "FailedPreconditionError",
    "AbortedError",
    "OutOfRangeError",
    "UnimplementedError",
    "InternalError",
    "UnavailableError",
    "DataLossError",
    "UnauthenticatedError",
]


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_its_code_and_travels(name: str) -> None:
    cls = getattr(tf.errors, name)
    made = cls(None, None, "what happened")
    assert isinstance(made, tf.errors.OpError) and isinstance(made, Exception)
    assert made.message == "what happened" == str(made)
    assert errors.error_class_for_code(made.error_code) is cls
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert (
            type(other) is cls
            and str(other) == "what happened"
            and other.error_code == made.error_code
        )


def test_an_error_of_a_run_can_be_pickled() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    with pytest.raises(tf.errors.InvalidArgumentError) as failure:
        tf.Session().run(x + tf.constant([1.0, 2.0, 3.0]), {x: [1.0, 2.0]})
    other = pickle.loads(pickle.dumps(failure.value))
    assert type(other) is tf.errors.InvalidArgumentError and str(other) == str(failure.value)


def test_out_of_range_is_what_ends_an_epoch() -> None:
    """Programs catch it by its class; nothing else may be caught with it."""
    assert not issubclass(tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)
    assert issubclass(tf.errors.OutOfRangeError, tf.OpError)


# errors of Python in the user's functions ---------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (ValueError, "InvalidArgumentError"),
        (TypeError, "InvalidArgumentError"),
        (StopIteration, "OutOfRangeError"),
        (MemoryError, "ResourceExhaustedError"),
        (NotImplementedError, "UnimplementedError"),
        (RuntimeError, "UnknownError"),
    ],
)
def test_python_errors_in_py_func(error: type[Exception], cls: str) -> None:
    def f() -> Any:
        raise error("my message")

    with pytest.raises(getattr(tf.errors, cls), match="my message"):
        tf.Session().run(tf.py_func(f, [], tf.float32))


def test_keyboard_interrupt_passes_through() -> None:
    def f() -> Any:
        raise KeyboardInterrupt

    v = tf.Variable(1.0)
    s = tf.Session()
    s.run(v.initializer)
    with pytest.raises(KeyboardInterrupt):
        s.run(tf.py_func(f, [], tf.float32))
    assert s.run(v) == 1.0
