"""Datasets in eager mode, in functions, in AutoGraph's loops; statistics and progress."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.api import v2 as tf
from headrace.eager.eager_context import eager_mode
from headrace.session.events import listen


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def numbers(dataset: Any) -> list[Any]:
    return [x.numpy().tolist() for x in dataset]


def test_iterating() -> None:
    ds = tf.data.Dataset.range(5).map(lambda x: x * 2)
    assert numbers(ds) == [0, 2, 4, 6, 8]
    assert list(ds.as_numpy_iterator()) == [0, 2, 4, 6, 8]
    iterator = iter(ds)
    assert next(iterator).numpy() == 0
    assert iterator.get_next().numpy() == 2
    assert list(iterator)[-1].numpy() == 8
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_len_and_cardinality() -> None:
    assert len(tf.data.Dataset.range(10).batch(3)) == 4
    assert tf.data.Dataset.range(10).batch(3, drop_remainder=True).cardinality().numpy() == 3
    with pytest.raises(TypeError, match="infinite"):
        len(tf.data.Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(tf.data.Dataset.range(3).filter(lambda x: x > 1))
    assert bool(tf.data.Dataset.range(0)) is True


def test_every_iteration_is_shuffled_anew() -> None:
    ds = tf.data.Dataset.range(50).shuffle(50, seed=1)
    first, second = numbers(ds), numbers(ds)
    assert first != second and sorted(first) == sorted(second) == list(range(50))
    fixed = tf.data.Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    assert numbers(fixed) == numbers(fixed)


def test_reduce() -> None:
    ds = tf.data.Dataset.range(5)
    assert ds.reduce(np.int64(0), lambda s, x: s + x).numpy() == 10
    count, total = ds.reduce((0, np.int64(1)), lambda s, x: (s[0] + 1, s[1] + x))
    assert (count.numpy(), total.numpy()) == (5, 11)
    grown = ds.reduce(tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0))
    assert grown.numpy().tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="must match the initial state"):
        ds.reduce(0, lambda s, x: tf.cast(s, tf.float32))


def test_variables_are_read_in_every_call() -> None:
    v = tf.Variable(1, dtype=tf.int64)
    ds = tf.data.Dataset.range(3).map(lambda x: x + v)
    assert numbers(ds) == [1, 2, 3]
    v.assign(10)
    assert numbers(ds) == [10, 11, 12]


def test_nested_datasets_and_sparse_tensors() -> None:
    windows = [numbers(w) for w in tf.data.Dataset.range(5).window(2)]
    assert windows == [[0, 1], [2, 3], [4]]
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    rows = list(tf.data.Dataset.from_tensor_slices(sparse))
    assert [r.indices.numpy().tolist() for r in rows] == [[[1]], [[0]]]
    batch = next(iter(tf.data.Dataset.from_tensor_slices(sparse).batch(2)))
    np.testing.assert_array_equal(tf.sparse.to_dense(batch).numpy(), [[0, 1, 0], [2, 0, 0]])


def test_optional() -> None:
    optional = iter(tf.data.Dataset.range(1)).get_next_as_optional()
    assert optional.has_value().numpy() and optional.get_value().numpy() == 0
    none = tf.data.experimental.Optional.empty(optional.element_spec)
    assert not none.has_value().numpy()


def test_single_element() -> None:
    assert tf.data.Dataset.range(3).batch(5).get_single_element().numpy().tolist() == [0, 1, 2]
    for ds, text in (
        (tf.data.Dataset.range(0), "empty"),
        (tf.data.Dataset.range(2), "more than one"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            ds.get_single_element()


def test_loops_in_functions() -> None:
    @tf.function
    def total(ds: Any) -> Any:
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    @tf.function
    def until(ds: Any, limit: Any) -> Any:
        s = tf.constant(0, tf.int64)
        for x in ds:
            if x > limit:
                break
            s += x
        return s

    ds = tf.data.Dataset.range(6)
    assert total(ds).numpy() == 15
    assert total(ds.take(0)).numpy() == 0
    assert until(ds, tf.constant(3, tf.int64)).numpy() == 6
    iterator = iter(ds)
    assert until(iterator, tf.constant(1, tf.int64)).numpy() == 1
    assert next(iterator).numpy() == 3  # 2 ended the loop, nothing after it was read


def test_iterators_in_functions() -> None:
    iterator = iter(tf.data.Dataset.range(5))

    @tf.function
    def step() -> Any:
        return next(iterator) * 10

    @tf.function
    def given(it: Any) -> Any:
        return it.get_next()

    assert [step().numpy(), given(iterator).numpy(), next(iterator).numpy()] == [0, 1, 2]


def test_datasets_made_in_functions() -> None:
    @tf.function
    def made(n: Any) -> Any:
        return tf.data.Dataset.range(n).map(lambda x: x * n).reduce(np.int64(0), lambda s, x: s + x)

    assert made(tf.constant(4, tf.int64)).numpy() == 24


def test_generators() -> None:
    calls = []

    def generate(n: Any) -> Any:
        calls.append(n)
        buffer = np.zeros(2, np.float32)
        for i in range(n):
            buffer += i
            yield i, buffer

    ds = tf.data.Dataset.from_generator(
        generate,
        output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((2,), tf.float32)),
        args=(3,),
    )
    assert not calls
    for _ in range(2):
        assert [(int(i), b.numpy().tolist()) for i, b in ds] == [
            (0, [0, 0]),
            (1, [1, 1]),
            (2, [3, 3]),
        ]
    assert calls == [3, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "could not be converted"), ([1.5], "shape"), ((1.0, 2.0), "shape")],
)
def test_generators_that_yield_something_else(value: Any, text: str) -> None:
    ds = tf.data.Dataset.from_generator(lambda: iter([value]), tf.float32, ())
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        next(iter(ds))


def test_errors_of_generators() -> None:
    def generate() -> Any:
        yield 1
        raise RuntimeError("no more")

    iterator = iter(tf.data.Dataset.from_generator(generate, tf.int32, ()))
    assert next(iterator).numpy() == 1
    with pytest.raises(tf.errors.UnknownError, match="RuntimeError: no more") as info:
        next(iterator)
    assert 'raise RuntimeError("no more")' in str(info.value)


def test_a_dropped_iterator_closes_its_generator() -> None:
    closed = []

    def generate() -> Any:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    iterator = iter(tf.data.Dataset.from_generator(generate, tf.int32, ()))
    next(iterator)
    del iterator
    assert closed


def test_cache_in_memory_calls_the_function_once() -> None:
    calls = []

    def note(x: Any) -> Any:
        calls.append(int(x))
        return x

    ds = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(note, [x], tf.int64)).cache()
    assert numbers(ds) == numbers(ds) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_cache_in_a_file(tmp_path: Any) -> None:
    where = str(tmp_path / "cache")
    calls = []

    def note(x: Any) -> Any:
        calls.append(int(x))
        return x

    def make() -> Any:
        ds = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(note, [x], tf.int64))
        return ds.map(lambda x: (x, tf.strings.as_string(x), tf.fill([2], x))).cache(where)

    wanted = [(0, b"0", [0, 0]), (1, b"1", [1, 1]), (2, b"2", [2, 2])]
    for _ in range(2):
        got = [(int(a), b.numpy(), c.numpy().tolist()) for a, b, c in make()]
        assert got == wanted
    assert calls == [0, 1, 2]
    other = make().take(2).cache(where + "2")
    next(iter(other))  # an incomplete pass leaves nothing behind
    assert not (tmp_path / "cache2.cache").exists()


def test_statistics() -> None:
    seen: list[Any] = []
    stop = listen(lambda name, data: seen.append(data["stats"]) if name == "iteration" else None)
    try:
        with headrace.data.measure():
            iterator = iter(tf.data.Dataset.range(20).map(lambda x: x + 1).batch(5).prefetch(2))
        list(iterator)
    finally:
        stop()
    stats = headrace.data.stats(iterator)
    assert stats["elements"] == 4
    assert 0 <= stats["waiting_share"] <= 1
    labels = []
    stage = stats["stages"]
    while True:
        labels.append((stage["stage"], stage["elements"]))
        assert stage["seconds"] >= stage["own_seconds"] >= 0
        if not stage["inputs"]:
            break
        stage = stage["inputs"][0]
    assert labels[:3] == [("Prefetch", 4), ("Batch", 4), ("Map", 20)]
    assert seen and seen[0]["elements"] == 4


def test_statistics_of_a_graphs_iterator() -> None:
    with headrace.Graph().as_default(), headrace.Session() as session:
        iterator = headrace.data.Dataset.range(5).make_one_shot_iterator()
        element = iterator.get_next()
        for _ in range(3):
            session.run(element)
        assert headrace.data.stats(iterator)["elements"] == 3


def test_progress_is_quiet_without_a_terminal(capsys: Any) -> None:
    bar = headrace.progress(tf.data.Dataset.range(7))
    assert len(bar) == 7
    assert [int(x) for x in bar] == list(range(7))
    assert (bar.count, bar.total) == (7, 7)
    assert 0 <= bar.waiting_share <= 1
    assert capsys.readouterr().out == ""


def test_progress_line() -> None:
    out = io.StringIO()
    for _ in headrace.progress(range(30), description="steps", force=True, file=out):
        pass
    assert "steps" in out.getvalue() and "30/30" in out.getvalue() and "waiting" in out.getvalue()
    endless = headrace.progress(iter([1, 2]))
    assert endless.total is None and list(endless) == [1, 2] and endless.count == 2


def test_options() -> None:
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    ds = tf.data.Dataset.range(30).map(lambda x: x, num_parallel_calls=2).with_options(options)
    assert ds.options().deterministic is False
    assert sorted(numbers(ds.map(lambda x: x + 1))) == list(range(1, 31))
    with pytest.raises(AttributeError, match="Cannot set"):
        options.nothing = 1


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda d: d.map(1), TypeError, "callable"),
        (lambda d: d.filter(lambda x: x), ValueError, "scalar boolean"),
        (lambda d: d.flat_map(lambda x: x), TypeError, "must return a `Dataset`"),
        (lambda d: d.interleave(lambda x: x), TypeError, "must return a `Dataset`"),
        (lambda d: d.concatenate(d.map(lambda x: (x, x))), TypeError, "different types"),
        (lambda d: d.unbatch(), ValueError, "scalar"),
        (lambda d: d.zip([d, d]), TypeError, "tuple instead"),
        (lambda d: d.zip((d, 1)), TypeError, "nested structure of `Dataset`"),
        (lambda d: d.apply(lambda _: 1), TypeError, "must return a `tf.data.Dataset`"),
        (lambda d: d.shard(2, 2), tf.errors.InvalidArgumentError, "Index must be"),
        (lambda d: d.padded_batch(2, padded_shapes=[3]), ValueError, "not compatible"),
        (lambda d: d.from_tensor_slices(([1, 2], [1, 2, 3])), ValueError, "not compatible"),
        (lambda d: d.from_tensor_slices(3), ValueError, "rank >= 1"),
        (lambda d: d.from_generator([1], tf.int32), TypeError, "callable"),
        (lambda d: d.map(lambda x: object()), TypeError, "Unsupported return value"),
    ],
)
def test_mistakes_while_building(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make(tf.data.Dataset.range(3))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda d: d.batch(0), "InvalidArgumentError", "Batch size must be greater than zero"),
        (
            lambda d: d.map(lambda x: tf.range(x)).batch(2),
            "InvalidArgumentError",
            "Cannot batch tensors with different shapes in component 0. First element had "
            "shape \\[0\\] and element 1 "
            "had shape \\[1\\]",
        ),
        (lambda d: d.window(0), "InvalidArgumentError", "Window size must be greater than zero"),
    ],
)
def test_mistakes_while_running(make: Any, error: str, text: str) -> None:
    with pytest.raises(getattr(tf.errors, error), match=text):
        list(make(tf.data.Dataset.range(3)))


def test_iterators_of_functions_shuffle_anew() -> None:
    ds = tf.data.Dataset.range(60).shuffle(60, seed=4)

    @tf.function
    def firsts() -> Any:
        s = tf.constant(0, tf.int64)
        for x in ds.take(5):
            s = s * 100 + x
        return s

    assert firsts().numpy() != firsts().numpy()


def test_pythons_functions_on_datasets_in_a_function() -> None:
    """``enumerate``, ``zip``, ``map``, ``filter`` and ``len`` of datasets are those of datasets
    (and so they end).
    """

    @tf.function
    def f(ds: Any) -> Any:
        total = tf.constant(0, tf.int64)
        for i, x in enumerate(ds):
            total += i * x
        for x, y in zip(ds, ds):
            total += x * y
        for x in map(lambda v: v * 100, filter(lambda v: v > 2, ds)):
            total += x
        return total, len(ds)

    total, n = f(tf.data.Dataset.range(4))
    assert int(total) == 14 + 14 + 300 and int(n) == 4


def test_statistics_are_of_iterators() -> None:
    import headrace.data
    from headrace.compat import v2

    with pytest.raises(TypeError, match=r"`it = iter\(dataset\)`.*this is DatasetV2"):
        headrace.data.stats(v2.data.Dataset.range(3))


def test_seeded_random_ops_begin_anew_with_every_iterator() -> None:
    source = tf.data.Dataset.range(3)
    numbers = source.map(lambda _: tf.random.uniform([], seed=5))
    first, second = ([float(x) for x in numbers] for _ in range(2))
    assert first == second and len(set(first)) == 3
    repeated = [float(x) for x in numbers.repeat(2)]  # one iterator: it goes on
    assert repeated[:3] == first and repeated[3:] != first
