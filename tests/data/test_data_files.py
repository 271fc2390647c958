"""Datasets of files.

Records, lines, records of one length; several files, compression, reading in parallel; list_files.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.api import v2 as tf
from headrace.eager.eager_context import eager_mode
from headrace.wire.tfrecord import TFRecordWriter


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield


def texts(dataset: Any) -> list[Any]:
    return [x.numpy() for x in dataset]


@pytest.fixture
def records(tmp_path: Path) -> list[str]:
    names = []
    for f in range(3):
        name = str(tmp_path / f"part-{f}.tfrecord")
        with TFRecordWriter(name) as writer:
            for i in range(f + 2):
                writer.write(b"file %d record %d" % (f, i))
        names.append(name)
    return names


def of_files(counts: list[int]) -> list[bytes]:
    return [b"file %d record %d" % (f, i) for f, n in enumerate(counts) for i in range(n)]


def test_records(records: list[str]) -> None:
    wanted = of_files([2, 3, 4])
    ds = tf.data.TFRecordDataset(records)
    assert texts(ds) == wanted
    assert ds.element_spec == tf.TensorSpec((), tf.string)
    assert texts(tf.data.TFRecordDataset(records[0])) == wanted[:2]
    assert texts(tf.data.TFRecordDataset(tf.data.Dataset.from_tensor_slices(records))) == wanted
    assert texts(tf.data.TFRecordDataset([Path(records[0])])) == wanted[:2]
    assert [t for batch in ds.batch(4) for t in batch.numpy().tolist()] == wanted
    assert texts(ds.shuffle(20, seed=1).take(9).map(tf.strings.length)) == [15] * 9


def test_parallel_reads(records: list[str]) -> None:
    for n in (1, 2, 3, 5):
        found = texts(tf.data.TFRecordDataset(records, num_parallel_reads=n))
        assert sorted(found) == of_files([2, 3, 4])
    assert found[:3] == [b"file 0 record 0", b"file 1 record 0", b"file 2 record 0"]
    assert (
        texts(tf.data.Dataset.from_tensor_slices(records).interleave(tf.data.TFRecordDataset, 3))
        == found
    )


def test_a_missing_file(records: list[str], tmp_path: Path) -> None:
    iterator = iter(tf.data.TFRecordDataset([records[0], str(tmp_path / "nothing"), records[1]]))
    assert [next(iterator).numpy() for _ in range(2)] == of_files([2])
    with pytest.raises(tf.errors.NotFoundError, match="nothing"):
        next(iterator)


def test_damaged_records(records: list[str]) -> None:
    path = Path(records[0])
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    iterator = iter(tf.data.TFRecordDataset(records))
    assert next(iterator).numpy() == b"file 0 record 0"
    with pytest.raises(tf.errors.DataLossError, match="corrupted record"):
        next(iterator)
    whole = texts(tf.data.TFRecordDataset(records).ignore_errors())
    assert whole == [b"file 0 record 0", *of_files([2, 3, 4])[2:]]


@pytest.mark.parametrize(
    ("kind", "pack"), [("", bytes), ("GZIP", gzip.compress), ("ZLIB", zlib.compress)]
)
def test_lines(tmp_path: Path, kind: str, pack: Any) -> None:
    name = str(tmp_path / "text")
    Path(name).write_bytes(pack(b"one\ntwo\r\n\nlast"))
    assert texts(tf.data.TextLineDataset(name, kind)) == [b"one", b"two", b"", b"last"]
    assert texts(tf.data.TextLineDataset([name, name], compression_type=kind).skip(3).take(2)) == [
        b"last",
        b"one",
    ]


@pytest.mark.parametrize(
    ("kind", "pack"), [("", bytes), ("GZIP", gzip.compress), ("ZLIB", zlib.compress)]
)
def test_records_of_one_length(tmp_path: Path, kind: str, pack: Any) -> None:
    name = str(tmp_path / "fixed")
    Path(name).write_bytes(pack(b"HHaabbccF"))
    ds = tf.data.FixedLengthRecordDataset(
        name, 2, header_bytes=2, footer_bytes=1, compression_type=kind, buffer_size=3
    )
    assert texts(ds) == [b"aa", b"bb", b"cc"]


def test_list_files(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{c}.txt") for c in "bac"]
    for name in names:
        Path(name).touch()
    (tmp_path / "d.txt").mkdir()
    pattern = str(tmp_path / "*.txt")
    wanted = [n.encode() for n in [*sorted(names), str(tmp_path / "d.txt")]]
    assert texts(tf.data.Dataset.list_files(pattern, shuffle=False)) == wanted
    shuffled = tf.data.Dataset.list_files([pattern, names[0]], seed=3)
    assert sorted(set(texts(shuffled))) == wanted
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        tf.data.Dataset.list_files(str(tmp_path / "nothing*"))


def test_list_files_in_a_graph(tmp_path: Path) -> None:
    import headrace

    (tmp_path / "x").touch()
    with headrace.Graph().as_default(), headrace.Session() as session:
        ds = headrace.data.Dataset.list_files(str(tmp_path / "*"))
        element = ds.make_one_shot_iterator().get_next()
        assert session.run(element) == str(tmp_path / "x").encode()
        bad = headrace.data.Dataset.list_files(str(tmp_path / "no*")).make_initializable_iterator()
        with pytest.raises(headrace.errors.InvalidArgumentError, match="No files matched"):
            session.run(bad.initializer)
