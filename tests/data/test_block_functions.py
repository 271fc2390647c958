"""Mapped functions on many elements at once: nothing can be seen of it but the time that it takes.

The same pipelines run with and without it (``over_batches`` says then that a function has no such
form): elements, errors, and their order are equal, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.api import v2 as tf
from headrace.data.functions import user_functions as functions
from headrace.data.functions.user_functions import traced
from headrace.data.runtime import block_functions, parallel
from headrace.data.runtime.batching import BatchStage
from headrace.data.runtime.block_functions import BlockFunction, rows_of
from headrace.data.runtime.file_stages import FilesStage
from headrace.data.runtime.parallel import ParallelMapStage
from headrace.data.runtime.simple_stages import TakeStage, ZipStage
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.eager.eager_context import eager_mode
from headrace.session.events import EVENTS


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def observed(dataset: Any) -> list[Any]:
    """Elements and errors in their order."""
    found: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            element = next(iterator)
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append((type(error).__name__, error.message))
            continue
        parts = [t.numpy() for t in tf.nest.flatten(element)]
        found.append([(np.asarray(p).dtype, np.shape(p), np.asarray(p).tolist()) for p in parts])


@pytest.fixture
def same(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[Any]]:
    """Runs a pipeline both ways and gives what was seen."""

    def both(make: Callable[[], Any]) -> list[Any]:
        ours = observed(make())
        with monkeypatch.context() as patch:
            patch.setattr(functions, "over_batches", lambda graph, outputs: None)
            one_by_one = observed(make())
        assert ours == one_by_one
        return ours

    return both


def calls(counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note how many rows each call had."""
    plain = BlockFunction.__call__

    def call(self: BlockFunction, block: Element) -> Any:
        found = plain(self, block)
        if found is not None:
            counted.append(len(block[0]))
        return found

    monkeypatch.setattr(BlockFunction, "__call__", call)


# what is done so --------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).integers(0, 256, (50, 7)).astype(np.uint8)
LABELS = np.arange(50)
TABLE = np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)


def floats(x: Any) -> Any:
    return tf.cast(x, tf.float32)


def slices() -> Any:
    return tf.data.Dataset.from_tensor_slices((ROWS, LABELS))


SAME: dict[str, Callable[..., Any]] = {
    "scaled": lambda x, y: (floats(x) / 255.0 - 0.5, y),
    "types": lambda x, y: (tf.cast(x, tf.float64), tf.cast(y, tf.int32), tf.cast(y, tf.float32)),
    "numbers": lambda x, y: (y * 3 - 1, tf.abs(-y), y > 7, (y < 3) | (y >= 40)),
    "constants": lambda x, y: (floats(x) * np.arange(7, dtype=np.float32) + 0.1, y),
    "wide": lambda x, y: (tf.sqrt(floats(x)) + tf.square(floats(x)) * 1e-3, y),
    "ranks": lambda x, y: tf.cast(x, tf.int64) * y,
    "larger constant": lambda x, y: y + np.arange(3),
    "larger both": lambda x, y: tf.cast(x, tf.int64) * y + np.arange(14).reshape(2, 7),
    "limits": lambda x, y: (
        tf.minimum(floats(x), 99.0),
        tf.maximum(y, 9),
        tf.clip_by_value(floats(x), 3.0, 90.0),
    ),
    "rounded": lambda x, y: (
        tf.floor(floats(x) / 7),
        tf.math.ceil(floats(x) / 7),
        tf.round(floats(x) / 2),
    ),
    "divided": lambda x, y: (y // 7, y % 7, floats(x) // 7.0),
    "differences": lambda x, y: tf.math.squared_difference(floats(x), 3.0),
    "chosen": lambda x, y: (tf.where(y > 7, y, -y), tf.where(x > 100, floats(x), 0.0)),
    "chosen rows": lambda x, y: tf.where(y % 2 == 0, floats(x), -floats(x)),
    "reshaped": lambda x, y: (
        tf.reshape(x[:6], [2, 3]),
        tf.reshape(x, [-1]),
        tf.reshape(y, [1, 1]),
    ),
    "dimensions": lambda x, y: (
        x[None],
        x[:, None],
        tf.expand_dims(x, -1),
        tf.squeeze(x[None, :, None]),
        tf.squeeze(x),
    ),
    "one squeezed": lambda x, y: (
        tf.squeeze(x[None, :, None], 0),
        tf.squeeze(x[None, :, None], [-1]),
    ),
    "transposed": lambda x, y: tf.transpose(tf.reshape(x[:6], [2, 3])),
    "transposed back": lambda x, y: tf.transpose(tf.reshape(x[:6], [1, 2, 3]), [2, 0, 1]),
    "reversed": lambda x, y: (
        x[::-1],
        tf.reverse(tf.reshape(x[:6], [2, 3]), [-1]),
        tf.reverse(x, [0]),
    ),
    "one hot": lambda x, y: (
        tf.one_hot(y, 60),
        tf.one_hot(x, 4, axis=0),
        tf.one_hot(x, 300, 5, -5, axis=-1),
    ),
    "parts": lambda x, y: (x[2:5], x[-1], x[::3], x[..., 1], x[1:-1, None], tf.slice(x, [1], [3])),
    "joined": lambda x, y: (
        tf.concat([x, x[:2]], 0),
        tf.stack([y, y + 1]),
        tf.stack([x, x + 1], -1),
    ),
    "split": lambda x, y: (
        tf.split(x[:6], 3),
        tf.unstack(x[:2]),
        tf.unstack(tf.reshape(x[:6], [3, 2]), axis=-1),
    ),
    "looked up": lambda x, y: (
        tf.gather(TABLE, y),
        tf.gather(x, [1, 1, 3]),
        tf.gather(tf.reshape(x[:6], [2, 3]), [2], axis=-1),
    ),
    "padded": lambda x, y: (
        tf.pad(x, [[1, 2]]),
        tf.pad(tf.reshape(x[:6], [2, 3]), [[0, 1], [2, 0]], constant_values=9),
    ),
    "repeated": lambda x, y: (tf.tile(x, [2]), tf.tile(x[None], [2, 1])),
    "the same for all": lambda x, y: (
        y,
        tf.shape(x),
        tf.constant(3),
        tf.constant([[b"a", b"b"]]),
        tf.zeros([2, 0]),
    ),
    "like": lambda x, y: (tf.zeros_like(x), tf.ones_like(y), tf.identity(x), tf.stop_gradient(y)),
    "ensured": lambda x, y: (tf.ensure_shape(x, [7]), tf.ensure_shape(y, [])),
    "text": lambda x, y: (
        tf.strings.as_string(y),
        tf.strings.length(tf.strings.as_string(tf.cast(x, tf.int32))),
    ),
    "not needed": lambda x, y: (tf.exp(floats(x)), y)[1],
    "computed constant": lambda x, y: (floats(x) * tf.reduce_sum(tf.range(4.0)), y),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "reduced": lambda x, y: tf.reduce_sum(floats(x)),
    "multiplied": lambda x, y: tf.linalg.matvec(TABLE[:7].T, floats(x)),
    "not exact": lambda x, y: tf.exp(floats(x)),
    "undefined": lambda x, y: tf.cast(floats(x) * 1e9, tf.int32),
    "random": lambda x, y: floats(x) + tf.random.uniform([]),
    "a dimension that depends": lambda x, y: tf.reshape(x, tf.stack([y - y + 7])),
    "an axis that depends": lambda x, y: tf.expand_dims(x, y - y),
    "parts that depend": lambda x, y: x[: y % 7],
    "looked up in rows": lambda x, y: tf.gather(x, y % 7),
    "joined with constants": lambda x, y: tf.concat([x, np.zeros(2, np.uint8)], 0),
    "checked": lambda x, y: (tf.debugging.assert_less(y, np.int64(99)), x)[1],
    "python": lambda x, y: (
        tf.ensure_shape(tf.numpy_function(abs, [floats(x)], tf.float32), [7]) + 1.0
    ),
    "branches": lambda x, y: tf.cond(y > 3, lambda: x, lambda: x + 1),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batch_has_the_same_bits(name: str, shuffled: bool, same: Any, monkeypatch: Any) -> None:
    assert traced(SAME[name], slices().element_spec, "Dataset.map()").batched is not None
    sizes: list[int] = []
    calls(sizes, monkeypatch)

    def make() -> Any:
        ds = slices()
        if shuffled:
            ds = ds.shuffle(20, seed=1, reshuffle_each_iteration=False)
        return ds.map(SAME[name]).batch(8)

    assert len(same(make)) == 7
    assert sizes == [8] * 6 + [2]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("number", [1, 3, tf.data.AUTOTUNE])
def test_parallel_maps_have_the_same_bits(name: str, number: int, same: Any) -> None:
    same(lambda: slices().map(SAME[name], number).batch(8))
    same(lambda: slices().shuffle(9, seed=2).map(SAME[name], number))


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_done_on_batches(name: str) -> None:
    assert traced(OTHERS[name], slices().element_spec, "Dataset.map()").batched is None
    assert len(observed(slices().map(OTHERS[name]).take(24).padded_batch(8))) == 3


def test_what_cannot_fail() -> None:
    """Of user's generators no more is read than is needed, unless a function is certain to
    succeed.
    """

    def sure(f: Any, spec: Any) -> bool:
        found = traced(f, spec, "Dataset.map()").batched
        assert found is not None
        return found.sure

    x = tf.TensorSpec([7], tf.float32)
    assert sure(lambda x: x / 255.0 - 0.5, x)
    assert not sure(lambda x: x // 2.0, x)
    assert not sure(lambda x: x + np.zeros(7, np.float32), tf.TensorSpec([None], tf.float32))
    assert not sure(lambda x: tf.io.decode_raw(x, tf.uint8), tf.TensorSpec([], tf.string))


def test_captured_values() -> None:
    factor = tf.constant(2.5)
    ds = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: floats(x) * factor)
    found = np.concatenate([b.numpy() for b in ds.batch(9)])
    assert np.array_equal(found, ROWS.astype(np.float32) * 2.5)
    twice = ds.map(lambda x: x + 1.0).repeat(2).batch(30).unbatch().take(3)
    assert np.array_equal(
        np.stack([b.numpy() for b in twice]), ROWS[:3].astype(np.float32) * 2.5 + 1
    )


def test_a_variable_is_read_for_each_element() -> None:
    variable = tf.Variable(1.0)
    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) * variable)
    iterator = iter(ds)
    assert next(iterator).numpy() == 0.0
    variable.assign(10.0)
    assert next(iterator).numpy() == 10.0


# records ----------------------------------------------------------------------------------------


def example(x: bytes, label: int | None = 1, kind: str = "int64_list") -> bytes:
    features = {"x": tf.train.Feature(bytes_list=tf.train.BytesList(value=[x]))}
    if label is not None:
        kinds = {"int64_list": tf.train.Int64List, "float_list": tf.train.FloatList}
        features["label"] = tf.train.Feature(**{kind: kinds[kind](value=[label])})
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


FEATURES = {"x": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
DEFAULTS = {
    **FEATURES,
    "more": tf.io.FixedLenFeature([2], tf.float32, [0.5, 1.5]),
    "label": tf.io.FixedLenFeature([], tf.int64, -3),
}


def parse(record: Any) -> Any:
    values = tf.io.parse_single_example(record, FEATURES)
    return floats(tf.io.decode_raw(values["x"], tf.uint8)) / 255.0, values["label"]


def parse_defaults(record: Any) -> Any:
    values = tf.io.parse_single_example(record, DEFAULTS)
    return (
        tf.reshape(tf.io.decode_raw(values["x"], tf.int16), [2, 1]),
        values["label"],
        values["more"],
    )


def parse_fixed(record: Any) -> Any:
    return tf.reshape(parse(record)[0], [2, 2])


def parse_text(line: Any) -> Any:
    a, b, c = tf.io.decode_csv(line, [0, 0.5, "none"])
    return a, b, c, tf.strings.to_number(b"1.5"), tf.strings.to_hash_bucket_fast(c, 100)


GOOD = [example(bytes([i, 1, 2, 3]), i) for i in range(20)]
RECORDS = {
    "good": GOOD,
    "a bad one": [*GOOD[:5], b"nonsense", *GOOD[5:]],
    "bad ones at both ends": [b"\xff", *GOOD, b"\xff"],
    "two bad ones": [*GOOD[:3], b"x", b"y", *GOOD[3:]],
    "without a label": [*GOOD[:7], example(b"abcd", None), *GOOD[7:]],
    "another type": [*GOOD[:7], example(b"abcd", 1, "float_list"), *GOOD[7:]],
    "another length": [*GOOD[:7], example(b"abcdef", 70), *GOOD[7:]],
    "no multiple": [*GOOD[:7], example(b"abc", 70), *GOOD[7:]],
    "all lengths": [example(b"ab" * (i % 4), i) for i in range(20)],
    "no records": [],
}
PIPELINES: dict[str, Callable[[Any, Any], Any]] = {
    "each": lambda ds, f: ds.map(f),
    "batch": lambda ds, f: ds.map(f).batch(4),
    "whole batches": lambda ds, f: ds.map(f).batch(4, drop_remainder=True),
    "two maps": lambda ds, f: ds.map(f).map(lambda *x: x[0]).batch(4),
    "shuffled": lambda ds, f: ds.shuffle(6, seed=1).map(f).batch(4),
    "parallel": lambda ds, f: ds.map(f, 3),
    "parallel batch": lambda ds, f: ds.map(f, 3).batch(4),
    "parallel tuned": lambda ds, f: ds.map(f, tf.data.AUTOTUNE).batch(4).prefetch(2),
    "parallel shuffled": lambda ds, f: ds.shuffle(6, seed=1).map(f, 2).batch(4),
    "parallel after parallel": lambda ds, f: ds.map(lambda x: x, 2).map(f, 2).batch(3),
    "errors ignored": lambda ds, f: ds.map(f).apply(tf.data.experimental.ignore_errors()).batch(4),
    "errors ignored, parallel": lambda ds, f: (
        ds.map(f, 2).apply(tf.data.experimental.ignore_errors()).batch(4)
    ),
    "taken": lambda ds, f: ds.map(f).take(7).batch(3),
    "taken, parallel": lambda ds, f: ds.map(f, 2).take(7).batch(3),
    "zipped": lambda ds, f: tf.data.Dataset.zip((ds.map(f), tf.data.Dataset.range(90))).batch(4),
    "zipped, parallel": lambda ds, f: tf.data.Dataset.zip(
        (tf.data.Dataset.range(90), ds.map(f, 2), ds.map(f))
    ).batch(4),
    "repeated": lambda ds, f: ds.map(f).repeat(2).batch(6),
    "windows": lambda ds, f: (
        ds.map(lambda r: parse(r)[1], 2).window(3).flat_map(lambda w: w.batch(2))
    ),
    "cached": lambda ds, f: ds.map(f, 2).cache().repeat(2).batch(5),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("records", RECORDS)
def test_records(pipeline: str, records: str, same: Any) -> None:
    data = np.array(RECORDS[records], object)

    def make() -> Any:
        return PIPELINES[pipeline](tf.data.Dataset.from_tensor_slices(data), parse)

    if not len(data):
        data = np.empty(0, "S1")
    found = same(make)
    if records == "good" and pipeline == "batch":
        assert len(found) == 5 and found[0][1][2] == [0, 1, 2, 3]


@pytest.mark.parametrize("pipeline", ["each", "batch", "parallel", "parallel batch"])
@pytest.mark.parametrize("records", ["good", "without a label", "another length", "all lengths"])
@pytest.mark.parametrize("f", [parse_defaults, parse_fixed])
def test_other_functions_of_records(pipeline: str, records: str, f: Any, same: Any) -> None:
    assert traced(f, tf.TensorSpec([], tf.string), "Dataset.map()").batched is not None
    data = np.array(RECORDS[records], object)
    same(lambda: PIPELINES[pipeline](tf.data.Dataset.from_tensor_slices(data), f))


def test_a_row_does_not_take_values_of_the_next_one(same: Any) -> None:
    """Rows of three and two of them make no three rows of two."""
    data = np.array([example(b"abc"), example(b"def")] * 4, object)

    def make() -> Any:
        ds = tf.data.Dataset.from_tensor_slices(data)
        return ds.map(lambda r: tf.reshape(parse(r)[0], [2])).batch(2)

    found = same(make)
    assert len(found) == 8 and "but the requested shape has 2" in found[0][1]


@pytest.mark.parametrize("number", [None, 2])
def test_lines(number: Any, same: Any) -> None:
    lines = np.array([b"1,2.5,a", b"2,,b", b"x,1,c", b"3,1.0,", b"4,1", b"5,0.1,d"] * 3, object)
    found = same(lambda: tf.data.Dataset.from_tensor_slices(lines).map(parse_text, number).batch(2))
    assert any(isinstance(e, tuple) for e in found) and any(isinstance(e, list) for e in found)


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("number", [None, 1, 2, tf.data.AUTOTUNE])
def test_record_files(damaged: bool, number: Any, same: Any, tmp_path: Path) -> None:
    """The records before damage are not lost, and the next file is read."""
    names = [str(tmp_path / f"{i}") for i in range(3)]
    for i, name in enumerate(names):
        with tf.io.TFRecordWriter(name) as writer:
            for record in GOOD[: 9 + i]:
                writer.write(record)
    if damaged:
        data = bytearray(Path(names[1]).read_bytes())
        data[len(data) // 2] ^= 1
        Path(names[1]).write_bytes(bytes(data))
    for batch in (None, 4):
        ds = tf.data.TFRecordDataset(names).map(parse, number)
        found = same(lambda: ds if batch is None else ds.batch(batch))  # noqa: B023
        assert sum(isinstance(e, tuple) for e in found) == damaged
        assert batch is not None or len(found) == (26 if damaged else 30)


def test_one_call_for_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sizes: list[int] = []
    calls(sizes, monkeypatch)
    name = str(tmp_path / "records")
    with tf.io.TFRecordWriter(name) as writer:
        for i in range(3000):
            writer.write(example(b"abcd", i))
    for number in (1, None):
        sizes.clear()
        ds = tf.data.TFRecordDataset(name).map(parse, number).batch(64)
        assert np.concatenate([y.numpy() for _, y in ds]).tolist() == list(range(3000))
        assert sum(sizes) == 3000
        assert len(sizes) < 1000 if number else sizes[:-1] == [64] * (len(sizes) - 1)


def test_it_is_given_up_where_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    plain = BlockFunction.__call__

    def call(self: BlockFunction, block: Element) -> Any:
        tried.append(0 if self.given_up else len(block[0]))
        return plain(self, block)

    monkeypatch.setattr(BlockFunction, "__call__", call)
    data = np.array([example(bytes(i % 5), i) for i in range(200)], object)
    ds = tf.data.Dataset.from_tensor_slices(data).map(parse).padded_batch(10)
    failed = EVENTS.failed_runs
    assert len(list(ds)) == 20
    assert [n for n in tried if n] == [10] * block_functions.MAX_FAILURES
    assert EVENTS.failed_runs == failed  # nobody saw anything fail


# memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [None, 1, 2])
@pytest.mark.parametrize("batch", [False, True])
def test_elements_are_the_users_own(number: Any, batch: bool) -> None:
    import headrace

    data = np.arange(600.0).reshape(200, 3)
    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.from_tensor_slices(data).map(lambda x: (x, x + 1.0, -x), number)
        if batch:
            ds = ds.batch(4)
        element = ds.repeat().make_one_shot_iterator().get_next()
        for _ in range(2):
            for i in range(0, 200, 4 if batch else 1):
                x, more, less = session.run(element)
                want = data[i : i + 4] if batch else data[i]
                assert (x == want).all() and (more == want + 1).all() and (less == -want).all()
                for part in (x, more, less):
                    part[...] = -7  # seen by nobody else
    assert data[0].tolist() == [0, 1, 2]


def test_an_element_does_not_keep_its_block() -> None:
    block = (np.zeros((100, 1000)), np.array([b"a"] * 100, object), np.arange(100))
    rows = rows_of(block)
    assert len(rows) == 100
    for x, text, number in rows[:3]:
        assert x.base is None and x.shape == (1000,)
        assert text.shape == () and text.item() == b"a" and text.base is None
        assert type(number) is np.int64


# the user's code --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [None, 1])
def test_a_generator_is_read_as_far_as_before(number: Any, same: Any) -> None:
    """When an element fails, a sequential map has read no other.

    A parallel one works ahead, but not by more than it did.
    """
    read: list[int] = []

    def records() -> Iterator[bytes]:
        for i, record in enumerate(RECORDS["two bad ones"] * 3):
            read.append(i)
            yield record

    def first_error() -> int:
        read.clear()
        ds = tf.data.Dataset.from_generator(records, tf.string, [])
        iterator = iter(ds.map(parse, number).batch(6))
        with pytest.raises(tf.errors.InvalidArgumentError):
            next(iterator)
        return len(read)

    if number is None:
        assert first_error() == 4
    else:
        assert 4 <= first_error() <= 4 + 4 * parallel.MAX_LIVE_JOB
    same(lambda: tf.data.Dataset.from_generator(records, tf.string, []).map(parse, number).batch(6))


@pytest.mark.parametrize("number", [None, 2])
def test_a_zip_calls_no_function_that_it_does_not_need(number: Any) -> None:
    """The other dataset ends after three elements.

    One more is asked for before that is known, by each of the last two batches.
    """
    called: list[int] = []

    def f(x: Any) -> Any:
        called.append(int(x))
        return np.array([x])

    def ones(x: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(f, [x], tf.int64), [1])

    D = tf.data.Dataset
    for ds in (
        D.range(100).map(ones),
        D.range(100).map(ones).map(lambda x: x + 1, number),
        D.range(100).map(lambda x: ones(x) + 1).map(lambda x: x // 2),
    ):
        called.clear()
        assert sum(len(x.numpy()) for x, _ in D.zip((ds, D.range(3))).batch(2)) == 3
        assert len(called) <= (5 if number is None else 5 + 6 * parallel.MAX_LIVE_JOB)
        assert called == list(range(len(called)))


def test_datasets_of_the_users_code_are_told_apart() -> None:
    """A flat_map of files may be read in blocks, one of generators may not."""

    def live(f: Any) -> bool:
        made = tf.data.Dataset.range(3).flat_map(f)
        a_pass = Context().start(made._variant_tensor._static)
        a_pass.close()
        return a_pass.live

    other = tf.data.Dataset.range(5)
    assert not live(lambda x: tf.data.Dataset.range(x))
    assert not live(lambda x: tf.data.TFRecordDataset(tf.strings.as_string(x)).map(lambda r: r))
    assert live(lambda x: tf.data.Dataset.from_generator(lambda: iter([1]), tf.int32, []))
    assert live(
        lambda x: tf.data.Dataset.range(x).map(lambda y: tf.numpy_function(abs, [y], tf.int64))
    )
    assert live(lambda x: other)


# passes -----------------------------------------------------------------------------------------


class Numbers(Stage):
    """0, 1, 2…; those in ``bad`` are errors."""

    def __init__(self, n: int, bad: tuple[int, ...] = (), blocks: bool = True) -> None:
        self.n, self.bad, self.blocks = n, bad, blocks

    def start(self, ctx: Context) -> Pass:
        return NumbersPass(self)


class NumbersPass(Pass):
    def __init__(self, stage: Numbers) -> None:
        self.stage = stage
        self.at = 0
        if stage.blocks:
            self.block = self._block

    def __next__(self) -> Element:
        i, self.at = self.at, self.at + 1
        if i >= self.stage.n:
            raise StopIteration
        if i in self.stage.bad:
            raise tf.errors.DataLossError(None, None, f"number {i}")
        return (np.int64(i),)

    def _block(self, n: int) -> Element:
        first = next(self)[0]
        stop = first + 1
        while stop < min(self.stage.n, first + n) and stop not in self.stage.bad:
            stop += 1
        self.at = int(stop)
        return (np.arange(first, stop),)


def drained(a_pass: Pass) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(tuple(np.asarray(p).tolist() for p in next(a_pass)))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(error.message)


def drained_blocks(a_pass: Pass, n: int) -> list[Any]:
    """Rows and errors, through ``block``; with an element taken alone here and there."""
    assert a_pass.block is not None
    found: list[Any] = []
    for i in range(1000):
        try:
            if i % 4 == 3:
                found.append(tuple(np.asarray(p).tolist() for p in next(a_pass)))
                continue
            block = a_pass.block(n)
            assert 1 <= len(block[0]) <= n
            found += list(zip(*[c.tolist() for c in block]))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(error.message)
    raise AssertionError("no end")


def plus(blocks: bool, bad: int = -1) -> Callable[[], BlockFunction | None]:
    def attempt(x: Any) -> Element | None:
        return None if bad in x else (x + 100,)

    return lambda: BlockFunction(attempt, bad < 0) if blocks else None


def one(x: Any, bad: int = 12) -> Element:
    if x == bad:
        raise tf.errors.InvalidArgumentError(None, None, f"value {x}")
    return (x + np.int64(100),)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("workers", [1, 3, -1])
@pytest.mark.parametrize("n", [1, 5, 64])
def test_blocks_of_a_parallel_map(blocks: bool, ordered: bool, workers: int, n: int) -> None:
    bad = (0, 7, 8, 40, 99)
    wanted = [
        f"number {i}" if i in bad else f"value {i}" if i == 12 else (i + 100,) for i in range(100)
    ]

    def start() -> Pass:
        source = Numbers(100, bad, blocks)
        return Context().start(
            ParallelMapStage(source, one, workers, ordered, True, plus(True, 12))
        )

    arranged: Any = list if ordered else lambda items: sorted(items, key=str)
    assert arranged(drained_blocks(start(), n)) == arranged(wanted)
    assert arranged(drained(start())) == arranged(wanted)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_what_was_read_before_an_error_is_given_out(n: int) -> None:
    def texts(path: str) -> Iterator[bytes]:
        for i in range(10):
            if i == 6:
                raise tf.errors.DataLossError(None, None, f"damage in {path}")
            yield f"{path}{i}".encode()

    stage = FilesStage([b"a", b"b"], texts, "Files")
    wanted = []
    for path in "ab":
        wanted += [(f"{path}{i}".encode(),) for i in range(6)] + [f"damage in {path}"]
    assert drained(Context().start(stage)) == wanted
    assert drained_blocks(Context().start(stage), n) == wanted


@pytest.mark.parametrize("n", [1, 3, 50])
def test_zipped_blocks_stay_in_step(n: int) -> None:
    parts = [Numbers(30, (3, 9)), Numbers(25, (9, 10, 24)), Numbers(99)]
    wanted = drained(Context().start(ZipStage([Numbers(p.n, p.bad, False) for p in parts])))
    assert wanted[3] == "number 3" and wanted[4] == (4, 4, 4) and len(wanted) == 25
    assert drained_blocks(Context().start(ZipStage(parts)), n) == wanted


def test_a_failed_element_is_one_of_those_that_are_taken() -> None:
    for count in (3, 4, 9):
        plain = drained(Context().start(TakeStage(Numbers(20, (3,), False), count)))
        assert drained_blocks(Context().start(TakeStage(Numbers(20, (3,)), count)), 4) == plain
        assert len(plain) == count


def test_batches_of_a_parallel_map_are_parts_of_its_blocks() -> None:
    stage = ParallelMapStage(Numbers(1000), one, 1, True, True, plus(True))
    batches = list(Context().start(BatchStage(stage, 10, True)))
    assert [b[0].tolist() for b in batches] == [
        list(range(i + 100, i + 110)) for i in range(0, 1000, 10)
    ]
    for first, second in pairwise(batches):
        assert not np.shares_memory(first[0], second[0])


def test_measured_stages_count_elements() -> None:
    import headrace

    ds = tf.data.Dataset.range(100).map(lambda x: x + 1, 2).batch(8)
    with headrace.data.measure():
        iterator = iter(ds)
    list(iterator)
    stages = headrace.data.stats(iterator)["stages"]
    assert stages["elements"] == 13 and stages["inputs"][0]["elements"] == 100


def test_closing_while_a_block_is_waited_for() -> None:
    import threading

    started, go_on = threading.Event(), threading.Event()

    def attempt(x: Any) -> Element:
        started.set()
        go_on.wait(120)
        return (x,)

    stage = ParallelMapStage(
        Numbers(50), lambda x: (x,), 2, True, True, lambda: BlockFunction(attempt, True)
    )
    a_pass = Context().start(stage)
    seen: list[str] = []

    def wait() -> None:
        try:
            a_pass.block(4)  # type: ignore[misc]
        except tf.errors.CancelledError:
            seen.append("cancelled")

    thread = threading.Thread(target=wait)
    thread.start()
    assert started.wait(120)
    time.sleep(0.05)
    a_pass.close()
    thread.join(120)
    go_on.set()
    assert seen == ["cancelled"]
