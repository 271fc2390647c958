"""Mapped functions: Python functions called directly, arithmetic on whole batches, order that one map insists on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from headrace.api import v2 as tf
from headrace.data.functions import traced
from headrace.eager.context import eager_mode


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def numpy(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


# Python functions


def python(f: Callable[..., Any], types: Any, direct: bool = True) -> Callable[..., Any]:
    """A mapped function that is ``f``, or (not direct) the same with something else in its graph."""

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


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: np.int32(1), tf.errors.InvalidArgumentError, "int32, but expects float32"),
        (lambda x: (np.float32(1), np.float32(2)), tf.errors.InvalidArgumentError, "1 values.*returned 2"),
        (lambda x: {}[x], tf.errors.UnknownError, "KeyError"),
        (lambda x: x.nothing, tf.errors.UnknownError, "AttributeError"),
        (lambda x: int("x"), tf.errors.InvalidArgumentError, "ValueError: invalid literal"),
    ],
)  # fmt: skip
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


# arithmetic on batches

ROWS = np.random.default_rng(0).integers(0, 256, (50, 7)).astype(np.uint8)
LABELS = np.arange(50)

SAME = {
    "scaled": lambda x, y: (tf.cast(x, tf.float32) / 255.0 - 0.5, y),
    "types": lambda x, y: (tf.cast(x, tf.float64), tf.cast(y, tf.int32), tf.cast(y, tf.float32)),
    "numbers": lambda x, y: (y * 3 - 1, tf.abs(-y), y > 7, (y < 3) | (y >= 40)),
    "constants": lambda x, y: (tf.cast(x, tf.float32) * np.arange(7, dtype=np.float32) + 0.1, y),
    "wide": lambda x, y: (
        tf.sqrt(tf.cast(x, tf.float32)) + tf.square(tf.cast(x, tf.float32)) * 1e-3,
        y,
    ),
}
OTHERS = {
    "reduced": lambda x, y: tf.reduce_sum(tf.cast(x, tf.float32)),
    "ranks": lambda x, y: (
        tf.cast(x, tf.int64) * y
    ),  # a number and a row: the batch would be mixed up
    "not exact": lambda x, y: tf.exp(tf.cast(x, tf.float32)),
    "undefined": lambda x, y: tf.cast(tf.cast(x, tf.float32) * 1e9, tf.int32),
    "shapes": lambda x, y: tf.shape(x),
    "constant": lambda x, y: (y, tf.constant(3)),
    "random": lambda x, y: tf.cast(x, tf.float32) + tf.random.uniform([]),
    "text": lambda x, y: tf.strings.as_string(y),
    "larger constant": lambda x, y: y + np.arange(3),
}


def spec() -> Any:
    return tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).element_spec


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batch_has_the_same_bits(name: str, shuffled: bool) -> None:
    assert traced(SAME[name], spec(), "Dataset.map()").batched is not None
    ds = tf.data.Dataset.from_tensor_slices((ROWS, LABELS))
    if shuffled:
        ds = ds.shuffle(20, seed=1, reshuffle_each_iteration=False)
    mapped = ds.map(SAME[name])
    one_by_one = [np.stack(c) for c in zip(*numpy(mapped))]
    together = [np.concatenate(c) for c in zip(*numpy(mapped.batch(8)))]
    for a, b in zip(one_by_one, together):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_done_on_batches(name: str) -> None:
    assert traced(OTHERS[name], spec(), "Dataset.map()").batched is None
    ds = tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).map(OTHERS[name]).batch(8)
    assert len(numpy(ds)) == 7


def test_captured_values_on_batches() -> None:
    factor = tf.constant(2.5)
    ds = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.cast(x, tf.float32) * factor)
    assert np.array_equal(np.concatenate(numpy(ds.batch(9))), ROWS.astype(np.float32) * 2.5)
    twice = ds.map(lambda x: x + 1.0).repeat(2).batch(30).unbatch().take(3)
    assert np.array_equal(np.stack(numpy(twice)), ROWS[:3].astype(np.float32) * 2.5 + 1)


def test_a_batch_is_the_users_own() -> None:
    import headrace

    data = np.arange(8.0)
    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.from_tensor_slices(data).map(lambda x: x).batch(4).repeat()
        element = ds.make_one_shot_iterator().get_next()
        first = session.run(element)
        first[:] = -1
        session.run(element)
        assert session.run(element).tolist() == [0.0, 1.0, 2.0, 3.0]


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
