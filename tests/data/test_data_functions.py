"""Mapped functions: Python functions called directly, order that one map insists on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from headrace.api import v2 as tf
from headrace.data.functions.direct import python_function
from headrace.data.functions.user_functions import traced
from headrace.eager.eager_context import eager_mode


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def numpy(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


# Python functions


def python(f: Callable[..., Any], types: Any, direct: bool = True) -> Callable[..., Any]:
    """A mapped function that is ``f``, or (not direct) the same with something else in its
    graph.
    """

    def mapped(*args: Any) -> Any:
        found = tf.numpy_function(f, list(args), types)
        return found if direct else tf.nest.map_structure(tf.stop_gradient, found)

    return mapped


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("calls", [None, 2])
def test_what_a_python_function_is_given(direct: bool, calls: Any) -> None:
    """NumPy scalars, bytes, and arrays that are its own."""
    kept = np.arange(6.0).reshape(3, 2)
    ds = tf.data.Dataset.from_tensor_slices((np.arange(3), ["a", "b", "c"], kept))
    seen: list[Any] = []
    lock = threading.Lock()

    def f(n: Any, text: Any, row: Any) -> Any:
        row *= 2
        with lock:
            seen.append((type(n), type(text), type(row)))
        return n + 1, text + b"!", row

    ds = ds.map(python(f, (tf.int64, tf.string, tf.float64), direct), calls)
    assert [(int(n), t, r.tolist()) for n, t, r in numpy(ds)] == [
        (i + 1, b"abc"[i : i + 1] + b"!", [4.0 * i, 4.0 * i + 2]) for i in range(3)
    ]
    assert set(seen) == {(np.int64, bytes, np.ndarray)}
    assert kept[2, 1] == 5.0


def called_directly(f: Callable[..., Any], dataset: Any) -> bool:
    function = traced(f, dataset.element_spec, "Dataset.map()").traced
    return python_function(function.graph, function.outputs) is not None


def twice(x: Any) -> Any:
    return np.array([x, x], np.float32)


def three(x: Any) -> Any:
    return np.float32(x), b"text", np.full((2, 3), x)


DIRECT = {
    "ensured": lambda x, y: tf.ensure_shape(tf.numpy_function(twice, [x], tf.float32), (2,)),
    "partly known": lambda x, y: tf.ensure_shape(
        tf.numpy_function(twice, [x], tf.float32), (None,)
    ),
    "reshaped": lambda x, y: tf.reshape(tf.numpy_function(twice, [x], tf.float32), [2, 1]),
    "both": lambda x, y: tf.ensure_shape(
        tf.reshape(tf.identity(tf.numpy_function(twice, [x], tf.float32)), [-1, 1]), (2, 1)
    ),
    "passed on": lambda x, y: (
        y,
        tf.ensure_shape(tf.numpy_function(twice, [x], tf.float32), (2,)),
        x,
    ),
    "constants": lambda x, y: tf.numpy_function(
        lambda a, b, c: a * b + c, [y, np.arange(3.0), 1.0], tf.float64
    ),
    "several": lambda x, y: tf.numpy_function(three, [x], (tf.float32, tf.string, tf.int64)),
    "another order": lambda x, y: tf.numpy_function(three, [x], (tf.float32, tf.string, tf.int64))[
        ::-1
    ],
    "some of them": lambda x, y: (
        tf.numpy_function(three, [x], (tf.float32, tf.string, tf.int64))[2],
        x,
    ),
    "eager": lambda x, y: tf.py_function(
        lambda a: tf.cast(a, tf.float32) * [1.0, 2.0], [x], tf.float32
    ),
    "eager texts": lambda x, y: tf.py_function(
        lambda a: (tf.strings.as_string(a), a), [x], (tf.string, tf.int64)
    ),
}
NOT_DIRECT = {
    "computed": lambda x, y: tf.numpy_function(twice, [x], tf.float32) + 1.0,
    "before": lambda x, y: tf.numpy_function(twice, [x + 1], tf.float32),
    "two": lambda x, y: [tf.numpy_function(twice, [v], tf.float32) for v in (x, y[0])],
    "the same twice": lambda x, y: [tf.numpy_function(twice, [x], tf.float32)] * 2,
    "a result that is given": lambda x, y: tf.numpy_function(
        twice, [tf.numpy_function(np.abs, [x], tf.int64)], tf.float32
    ),
}


def computed(t: Any) -> Any:
    """The same values by ops that are not passed over."""
    return tf.stack([t])[0]


def pairs() -> Any:
    return tf.data.Dataset.from_tensor_slices((np.arange(5), np.arange(15.0).reshape(5, 3)))


@pytest.mark.parametrize("name", DIRECT)
@pytest.mark.parametrize("calls", [None, 2])
def test_direct_calls_give_what_the_graph_gives(name: str, calls: Any) -> None:
    assert called_directly(DIRECT[name], pairs())
    mapped = lambda *args: tf.nest.map_structure(computed, DIRECT[name](*args))
    assert not called_directly(mapped, pairs())
    for ours, graphs in zip(numpy(pairs().map(DIRECT[name], calls)), numpy(pairs().map(mapped))):
        for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(graphs)):
            assert type(a) is type(b) and np.shape(a) == np.shape(b) and np.all(a == b)
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None)


@pytest.mark.parametrize("name", NOT_DIRECT)
def test_what_is_not_called_directly(name: str) -> None:
    assert not called_directly(NOT_DIRECT[name], pairs())
    assert len(numpy(pairs().map(NOT_DIRECT[name]))) == 5


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (
            lambda t: tf.ensure_shape(t, (3,)),
            r"Shape of tensor EnsureShape \[2\] is not compatible with expected shape \[3\]",
        ),
        (
            lambda t: tf.ensure_shape(t, (None, 1)),
            r"\[2\] is not compatible with expected shape \[\?,1\]",
        ),
        (
            lambda t: tf.reshape(t, [3]),
            "Input to reshape is a tensor with 2 values, but the requested shape has 3",
        ),
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_checks_of_results(check: Any, text: str, direct: bool) -> None:
    def f(x: Any) -> Any:
        found = check(tf.numpy_function(twice, [x], tf.float32))
        return found if direct else computed(found)

    ds = tf.data.Dataset.range(2)
    assert called_directly(f, ds) is direct
    iterator = iter(ds.map(f))
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text) as info:
            next(iterator)
        assert info.value.op.type in ("EnsureShape", "Reshape")
        assert "test_data_functions.py" in str(info.value)
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.parametrize("shape", [(2,), (None,)])
def test_a_function_may_use_its_array_again(shape: Any) -> None:
    buffer = np.zeros(2, np.float32)

    def f(x: Any) -> Any:
        buffer[:] = x
        return buffer

    ds = tf.data.Dataset.range(4).map(
        lambda x: tf.ensure_shape(tf.numpy_function(f, [x], tf.float32), shape)
    )
    assert np.concatenate(numpy(ds.batch(3))).tolist() == [[i, i] for i in range(4)]
    first = next(iter(ds)).numpy()
    assert buffer.tolist() == [0, 0]
    first[:] = 7
    assert buffer.tolist() == [0, 0]


def test_arguments_that_are_passed_on_are_copies() -> None:
    import headrace

    data = np.arange(4.0).reshape(2, 2)
    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.from_tensor_slices(data).repeat()
        ds = ds.map(lambda x: (x, headrace.py_func(np.sum, [x], headrace.float64)))
        element = ds.make_one_shot_iterator().get_next()
        session.run(element)[0][:] = -1
        session.run(element)
        assert session.run(element)[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: np.int32(1), tf.errors.InvalidArgumentError, "int32, but expects float32"),
        (
            lambda x: (np.float32(1), np.float32(2)),
            tf.errors.InvalidArgumentError,
            "1 values.*returned 2",
        ),
        (lambda x: {}[x], tf.errors.UnknownError, "KeyError"),
        (lambda x: x.nothing, tf.errors.UnknownError, "AttributeError"),
        (lambda x: int("x"), tf.errors.InvalidArgumentError, "ValueError: invalid literal"),
    ],
)
def test_errors_of_a_python_function(direct: bool, f: Any, error: Any, text: str) -> None:
    ds = tf.data.Dataset.range(3).map(python(f, tf.float32, direct))
    iterator = iter(ds)
    for _ in range(3):  # every element has its own
        with pytest.raises(error, match=text) as info:
            next(iterator)
        assert "test_data_functions.py" in str(info.value)
        assert info.value.op.type == "PyFunc"
    with pytest.raises(StopIteration):
        next(iterator)


def test_an_error_in_the_middle_of_a_batch() -> None:
    """The batch is lost; the next one begins after the element that failed."""

    def f(x: Any) -> Any:
        if x == 4:
            raise ValueError("four")
        return x

    iterator = iter(tf.data.Dataset.range(10).map(python(f, tf.int64)).batch(3))
    assert next(iterator).numpy().tolist() == [0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="four"):
        next(iterator)
    assert [x.numpy().tolist() for x in iterator] == [[5, 6, 7], [8, 9]]


def odd_results(x: Any) -> Any:
    """Rows, and now and then something that is made a row, or an error."""
    row = np.array([x, x + 1], np.float32)
    if x == 4:
        raise ValueError("four")
    if x in (7, 8):
        return row.astype(np.float64) if x == 7 else row[:1]
    return [row] if x % 5 == 1 else row


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("calls", [None, 2])
def test_rows_of_a_batch(direct: bool, calls: Any) -> None:
    def f(x: Any) -> Any:
        found = tf.ensure_shape(tf.numpy_function(odd_results, [x], tf.float32), (2,))
        return found if direct else computed(found)

    def seen(ds: Any) -> list[Any]:
        found: list[Any] = []
        iterator = iter(ds)
        while True:
            try:
                found.append(next(iterator).numpy().tolist())
            except StopIteration:
                return found
            except tf.errors.InvalidArgumentError as error:
                found.append(error.message.split("\n")[0])
                assert "test_data_functions.py" in error.message

    each = seen(tf.data.Dataset.range(12).map(f, calls))
    assert [e for e in each if isinstance(e, list)] == [
        [i, i + 1] for i in range(12) if i not in (4, 7, 8)
    ]
    assert "four" in each[4] and "float64" in each[7] and "not compatible" in each[8]
    batches = seen(tf.data.Dataset.range(12).map(f, calls).batch(3))
    assert batches == [each[:3], each[4], each[7], each[8], each[9:]]
    mixed = seen(tf.data.Dataset.range(12).map(f, calls).batch(3).unbatch())
    assert [e for e in mixed if isinstance(e, list)] == [*each[:3], *each[9:]]


def test_a_batch_of_rows_that_ends_with_the_function() -> None:
    import headrace

    def f(x: Any) -> Any:
        if x == 5:
            raise StopIteration
        return np.array([x])

    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.range(10).map_with_legacy_function(
            lambda x: headrace.ensure_shape(headrace.py_func(f, [x], headrace.int64), [1])
        )
        element = ds.batch(4).make_one_shot_iterator().get_next()
        assert session.run(element).tolist() == [[0], [1], [2], [3]]
        assert session.run(element).tolist() == [[4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="may not end its dataset"):
        for _ in (
            tf.data.Dataset.range(10)
            .map(lambda x: tf.ensure_shape(tf.numpy_function(f, [x], tf.int64), [1]))
            .batch(4)
        ):
            pass


def test_an_interrupted_batch_calls_no_function_again() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(int(x))
        if x == 2:
            raise KeyboardInterrupt
        return np.array([x])

    ds = tf.data.Dataset.range(8).map(
        lambda x: tf.ensure_shape(tf.numpy_function(f, [x], tf.int64), [1])
    )
    iterator = iter(ds.batch(4))
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert next(iterator).numpy().tolist() == [[3], [4], [5], [6]]
    assert seen == list(range(7))


def test_a_python_function_that_ends_the_dataset() -> None:
    import headrace

    def f(x: Any) -> Any:
        if x == 5:
            raise StopIteration
        return x

    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.range(10).map_with_legacy_function(
            lambda x: headrace.py_func(f, [x], headrace.int64)
        )
        element = ds.batch(4).make_one_shot_iterator().get_next()
        assert session.run(element).tolist() == [0, 1, 2, 3]
        assert session.run(element).tolist() == [4]


# order


def test_one_map_may_insist_on_its_order() -> None:
    """The first element is late: only a map that keeps its order waits for it."""
    options = tf.data.Options()
    options.deterministic = False

    def run(deterministic: bool | None) -> list[int]:
        others = threading.Event()

        def late(x: Any) -> Any:
            if x == 0:
                others.wait(0.5 if deterministic else 20)
            elif x == 3:
                others.set()
            return x

        ds = tf.data.Dataset.range(4).map(python(late, tf.int64), 4, deterministic)
        return [int(x) for x in ds.with_options(options)]

    assert run(True) == [0, 1, 2, 3]
    assert run(None)[-1] == 0 or run(None) != [0, 1, 2, 3]
    assert sorted(run(False)) == [0, 1, 2, 3]
