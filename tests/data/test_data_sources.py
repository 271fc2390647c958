"""Generators, CSV and Example files, saved datasets, resampling.

What TensorFlow's behaviour table does not show.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.api import v2 as tf
from headrace.data.runtime import generator_stage as generators
from headrace.data.runtime.csv_records import csv_records
from headrace.data.runtime.stages import Context
from headrace.eager.eager_context import eager_mode
from headrace.wire.tfrecord import TFRecordWriter


@pytest.fixture
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def numpy(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


# generators


@pytest.mark.usefixtures("eager")
def test_a_generator_may_use_its_array_again() -> None:
    def numbers() -> Iterator[Any]:
        array = np.zeros(3, np.float32)
        for i in range(5):
            array[:] = i
            yield array, i

    signature = (tf.TensorSpec((3,), tf.float32), tf.TensorSpec((), tf.int64))
    ds = tf.data.Dataset.from_generator(numbers, output_signature=signature)
    assert [x[0].tolist() for x in numpy(ds)] == [[i] * 3 for i in range(5)]
    assert [x.tolist() for x, _ in numpy(ds.batch(2))] == [
        [[0] * 3, [1] * 3],
        [[2] * 3, [3] * 3],
        [[4] * 3],
    ]


@pytest.mark.usefixtures("eager")
def test_a_generator_is_not_read_further_than_is_wanted() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    ds = tf.data.Dataset.from_generator(numbers, tf.int64, [])
    assert len(numpy(ds.take(3).batch(8))[0]) == 3 and len(read) == 3
    read.clear()
    assert len(numpy(tf.data.Dataset.zip((tf.data.Dataset.range(3), ds)).batch(8))[0][0]) == 3
    assert len(read) <= 4
    read.clear()
    next(iter(ds.batch(4)))
    assert len(read) == 4
    read.clear()
    next(iter(ds.map(lambda x: x + 1).batch(4)))
    assert len(read) == 4


@pytest.mark.usefixtures("eager")
def test_large_batches_of_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch size that says "everything" reserves no more than a part."""
    monkeypatch.setattr(generators, "MAX_RESERVED", 1 << 10)
    ds = tf.data.Dataset.from_generator(lambda: iter(np.arange(1000)), tf.int64, [])
    assert numpy(ds.batch(10**12))[0].tolist() == list(range(1000))
    odd = tf.data.Dataset.from_generator(
        lambda: (np.zeros(2 + (i > 200)) for i in range(300)), tf.float64
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Cannot batch tensors with different shapes"
    ):
        numpy(odd.batch(10**9))


# CSV


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_records_do_not_depend_on_the_pieces(size: int, end: bytes) -> None:
    text = end.join([b"1,2", b'"a,""b""","c\nd"', b"", b'x"y,1', b'"p"q,2', b"3,4", b'"",5'])
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    found = [
        str(r).split(":")[-1] if isinstance(r, Exception) else r
        for r in csv_records(iter(pieces), b",", True)
    ]
    assert found == [
        [b"1", b"2"],
        [b'a,"b"', b"c\nd"],
        [b""],
        "Unquoted fields cannot have quotes inside",
        "Quote inside a string has to be escaped by another quote",
        [b"3", b"4"],
        [b"", b"5"],
    ]


def test_csv_in_a_graph(tmp_path: Path) -> None:
    name = str(tmp_path / "x.csv.gz")
    Path(name).write_bytes(gzip.compress(b"a,b\n1,x\n2,\n"))
    with headrace.Graph().as_default(), headrace.Session() as session:
        file = headrace.placeholder(headrace.string, [])
        ds = headrace.data.experimental.CsvDataset(file, [[0], ["none"]], "GZIP", header=True)
        assert ds.output_types == (headrace.int32, headrace.string)
        iterator = ds.batch(2).make_initializable_iterator()
        session.run(iterator.initializer, {file: name})
        numbers, texts = session.run(iterator.get_next())
    assert numbers.tolist() == [1, 2] and texts.tolist() == [b"x", b"none"]


@pytest.mark.usefixtures("eager")
def test_errors_of_csv(tmp_path: Path) -> None:
    make = tf.data.experimental.CsvDataset
    with pytest.raises(TypeError, match="bool"):
        make("x", [tf.bool])
    with pytest.raises(ValueError, match="strictly increasing"):
        make("x", [[0], [0]], select_cols=[2, 1])
    with pytest.raises(ValueError, match="do not match"):
        make("x", [[0]], select_cols=[1, 2])
    with pytest.raises(tf.errors.NotFoundError):
        numpy(make(str(tmp_path / "nothing"), [[0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 char"):
        numpy(make("x", [[0]], field_delim="--"))


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("error")
def test_csv_numbers_beyond_float32_are_infinite(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1e300,1\n-1e300,2\n")
    rows = tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), [tf.float32, tf.int32])
    for dataset in (rows.batch(2), rows.batch(1).unbatch().batch(2)):
        assert numpy(dataset)[0][0].tolist() == [np.inf, -np.inf]
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size should be positive"):
        numpy(tf.data.experimental.CsvDataset("x", [tf.float32], buffer_size=0))


@pytest.mark.usefixtures("eager")
def test_types_of_csv_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("i,l,f,d,t,n\n1,1,1.5,1,a,\n2,99999999999,2,1e200,b,\n")
    ds = tf.data.experimental.make_csv_dataset(
        str(tmp_path / "*.csv"), 2, num_epochs=1, shuffle=False
    )
    types = {k: s.dtype.name for k, s in ds.element_spec.items()}
    assert types == {
        "i": "int32",
        "l": "int64",
        "f": "float32",
        "d": "float64",
        "t": "string",
        "n": "int32",
    }


# Examples


def example(i: int, n: int) -> bytes:
    train = headrace.train
    features = {
        "label": train.Feature(int64_list=train.Int64List(value=[i])),
        "ids": train.Feature(int64_list=train.Int64List(value=range(1000, 1000 + n))),
    }
    return train.Example(features=train.Features(feature=features)).SerializeToString()  # type: ignore[no-any-return]


@pytest.fixture
def records(tmp_path: Path) -> str:
    for f in range(2):
        with TFRecordWriter(str(tmp_path / f"{f}.tfrecord")) as writer:
            for i in range(10):
                writer.write(example(10 * f + i, i))
    return str(tmp_path / "*.tfrecord")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("threads", [None, 2])
def test_batches_of_examples(records: str, threads: Any) -> None:
    features = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "ids": tf.io.VarLenFeature(tf.int64),
    }
    make = tf.data.experimental.make_batched_features_dataset
    ds = make(
        records,
        4,
        features,
        label_key="label",
        num_epochs=1,
        shuffle=False,
        reader_num_threads=threads,
    )
    labels = [int(x) for _, label in ds for x in label.numpy()]
    assert labels == list(range(20)) if threads is None else sorted(labels) == list(range(20))
    parsed, _ = next(iter(ds))
    assert set(parsed) == {"ids"} and parsed["ids"].dense_shape.numpy()[0] == 4
    forever = make(records, 6, features, shuffle_seed=1)
    assert forever.element_spec["label"].shape.as_list() == [6]
    assert len([x for _, x in zip(range(10), forever)]) == 10
    with pytest.raises(ValueError, match="label_key"):
        make(records, 4, features, label_key="none")


@pytest.mark.usefixtures("eager")
def test_parsing_a_dataset(records: str) -> None:
    parse = tf.data.experimental.parse_example_dataset
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    ds = tf.data.TFRecordDataset(tf.data.Dataset.list_files(records, shuffle=False)).batch(5)
    found = [x["label"].numpy().tolist() for x in ds.apply(parse(features, num_parallel_calls=2))]
    assert found == [list(range(i, i + 5)) for i in range(0, 20, 5)]
    with pytest.raises(TypeError, match="vectors of strings"):
        ds.unbatch().apply(parse(features))
    with pytest.raises(ValueError, match="Missing"):
        parse(None)


# saved datasets


@pytest.mark.usefixtures("eager")
def test_saved_datasets(tmp_path: Path) -> None:
    import ml_dtypes

    value = {
        "half": np.arange(4).astype(ml_dtypes.bfloat16),
        "text": np.array([[b"a", b"\0\n"]] * 4, object),
        "pair": (np.arange(8.0).reshape(4, 2), np.array([True, False] * 2)),
    }
    ds = tf.data.Dataset.from_tensor_slices(value)
    for compression in (None, "GZIP"):
        path = str(tmp_path / str(compression))
        ds.save(path, compression)
        back = tf.data.Dataset.load(path, compression=compression)
        assert back.element_spec == ds.element_spec
        for a, b in zip(numpy(ds), numpy(back)):
            assert str(a) == str(b)
    cached = ds.cache(str(tmp_path / "cache"))
    assert (
        [str(x) for x in numpy(cached)]
        == [str(x) for x in numpy(cached)]
        == [str(x) for x in numpy(ds)]
    )
    with pytest.raises(tf.errors.NotFoundError):
        tf.data.Dataset.load(str(tmp_path / "nothing"))
    with pytest.raises(TypeError, match="cannot be saved"):
        tf.data.Dataset.range(2).window(2).save(str(tmp_path / "windows"))


@pytest.mark.usefixtures("eager")
def test_a_snapshot_is_of_a_complete_pass(tmp_path: Path) -> None:
    calls: list[int] = []

    def noted(value: Any) -> Any:
        calls.append(int(value))
        return value

    ds = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(noted, [x], tf.int64))
    ds = ds.snapshot(str(tmp_path / "s"))
    next(iter(ds))
    folder = tmp_path / "s"
    assert not folder.exists() or all("unfinished" in p.name for p in folder.iterdir())
    assert numpy(ds) == [0, 1, 2, 3]
    before = len(calls)
    assert numpy(ds) == [0, 1, 2, 3] and len(calls) == before
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["elements"]


def test_a_damaged_cache(tmp_path: Path) -> None:
    with eager_mode():
        ds = tf.data.Dataset.range(4).cache(str(tmp_path / "c"))
        numpy(ds)
        (path,) = tmp_path.iterdir()
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(tf.errors.DataLossError, match=r"damaged|truncated"):
            numpy(tf.data.Dataset.range(4).cache(str(tmp_path / "c")))


def test_a_writer_in_a_graph(tmp_path: Path) -> None:
    with headrace.Graph().as_default(), headrace.Session() as session:
        name = str(tmp_path / "w")
        ds = headrace.data.Dataset.from_tensor_slices(["a", "b"])
        session.run(headrace.data.api.data_experimental.TFRecordWriter(name, "GZIP").write(ds))
        again = headrace.data.TFRecordDataset(name, "GZIP").make_one_shot_iterator().get_next()
        assert [session.run(again), session.run(again)] == [b"a", b"b"]


# others


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("initial", [None, [0.7, 0.3]])
def test_resampling(initial: Any) -> None:
    classes = np.array([0] * 7 + [1] * 3).repeat(300)
    np.random.default_rng(0).shuffle(classes)
    ds = tf.data.Dataset.from_tensor_slices((classes, np.arange(3000)))
    ds = ds.rejection_resample(lambda c, _: c, [0.5, 0.5], initial, seed=3)
    found = numpy(ds)
    share = Counter(int(c) for c, _ in found)
    assert len(found) > 1000 and 0.42 < share[0] / len(found) < 0.58
    assert all(int(c) == int(element[0]) for c, element in found)


def test_seeds_of_random_numbers() -> None:
    from headrace.data.runtime.sources import RandomStage

    def first(stage: Any) -> list[int]:
        a_pass = Context().start(stage)
        return [int(next(a_pass)[0]) for _ in range(4)]

    fixed, again = RandomStage(1, 2), RandomStage(1, 2, again=True)
    assert first(fixed) == first(fixed)
    assert first(again) != first(again)


@pytest.mark.parametrize("kind", ["types", "structure", "shapes", "session", "unset"])
def test_iterators_that_do_not_fit(kind: str) -> None:
    D = headrace.data.Dataset
    with headrace.Graph().as_default(), headrace.Session() as session:
        iterator = headrace.data.Iterator.from_structure(headrace.int64, [])
        if kind == "types":
            with pytest.raises(TypeError, match="output types"):
                iterator.make_initializer(D.from_tensors(1.5))
        elif kind == "structure":
            with pytest.raises(ValueError, match="output types"):
                iterator.make_initializer(D.zip((D.range(1), D.range(1))))
        elif kind == "shapes":
            with pytest.raises(TypeError, match="output shapes"):
                iterator.make_initializer(D.range(4).batch(2))
        elif kind == "unset":
            with pytest.raises(
                headrace.errors.FailedPreconditionError, match="not been initialized"
            ):
                session.run(iterator.get_next())
        else:
            one = D.range(3).make_one_shot_iterator()
            text = session.run(one.string_handle())
            handle = headrace.placeholder(headrace.string, [])
            element = headrace.data.Iterator.from_string_handle(
                handle, headrace.int64, []
            ).get_next()
            assert session.run(element, {handle: text}) == 0
            with headrace.Session() as other:
                with pytest.raises(headrace.errors.InvalidArgumentError, match="of this session"):
                    other.run(element, {handle: text})
            wrong = headrace.data.Iterator.from_string_handle(
                handle, headrace.float32, []
            ).get_next()
            with pytest.raises(headrace.errors.InvalidArgumentError, match="Data type mismatch"):
                session.run(wrong, {handle: text})
