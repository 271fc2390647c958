"""Files that are damaged, hostile or too long, and disks that are full.

``tf.errors``, linear time, nothing left behind.
"""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import textwrap
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf1
import headrace.compat.v2 as tf
from headrace.wire import crc, streams
from headrace.wire.tfrecord import TFRecordWriter
from tests.eager_fixture import v2_behavior

__all__ = ["v2_behavior"]


def _elements(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


def _in_graph(make: Any) -> list[Any]:
    """The elements of a dataset, through an iterator of a graph."""
    with tf1.Graph().as_default(), tf1.Session() as sess:
        iterator = tf1.data.make_initializable_iterator(make())
        following = iterator.get_next()
        sess.run(iterator.initializer)
        found = []
        while True:
            try:
                found.append(sess.run(following))
            except tf1.errors.OutOfRangeError:
                return found


# long records -----------------------------------------------------------------------------------


def _processor_seconds(dataset: Any, count: int) -> float:
    """Processor time of this process, which other processes on the machine do not change."""
    start = time.process_time()
    assert sum(1 for _ in dataset) == count
    return time.process_time() - start


@pytest.mark.parametrize("kind", ["lines", "quoted", "fields", "fixed", "records"])
def test_time_is_linear_in_the_length_of_a_record(kind: str, tmp_path: Path) -> None:
    """100 MB in one record took half a minute; 64 times 256 KB is enough to see a square."""
    size = 48 << 20
    path = str(tmp_path / "file")
    datasets = {
        "lines": lambda: (b"x" * size, tf.data.TextLineDataset(path), 1),
        "quoted": lambda: (
            b'"' + b"x" * size + b'"\n',
            tf.data.experimental.CsvDataset(path, [tf.string]),
            1,
        ),
        "fields": lambda: (
            b'"a"' + b"," * (1 << 20) + b"\n1,2\n",
            tf.data.experimental.CsvDataset(path, [""], select_cols=[0]),
            2,
        ),
        "fixed": lambda: (b"x" * size, tf.data.FixedLengthRecordDataset(path, size), 1),
    }
    if kind == "records":
        with TFRecordWriter(path) as writer:
            writer.write(b"x" * size)
        dataset, count = tf.data.TFRecordDataset(path), 1
    else:
        data, dataset, count = datasets[kind]()
        Path(path).write_bytes(data)
    # a quadratic reader takes more than ten minutes of processor time for this
    assert _processor_seconds(dataset, count) < 60


def test_a_record_longer_than_the_limit_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_RECORD_BYTES", 1 << 20)
    path = tmp_path / "long.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 23)))
    for dataset in (
        tf.data.TextLineDataset(str(path), "GZIP"),
        tf.data.experimental.CsvDataset(str(path), [""], "GZIP"),
        tf.data.FixedLengthRecordDataset(str(path), 1 << 23, compression_type="GZIP"),
    ):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="more than 1048576 bytes"):
            _elements(dataset)


def _record_head(size: int) -> bytes:
    length = struct.pack("<Q", size)
    return length + struct.pack("<I", crc.masked(length))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1, 1 << 31])
def test_a_record_that_declares_more_than_there_is(
    compression: str, size: int, tmp_path: Path
) -> None:
    data = _record_head(size) + b"\0" * 5_000_000
    packed = {"": data, "GZIP": gzip.compress(data), "ZLIB": zlib.compress(data)}[compression]
    path = tmp_path / "records"
    path.write_bytes(packed)
    with pytest.raises(tf.errors.DataLossError):
        _elements(tf.data.TFRecordDataset(str(path), compression))


# files of elements ------------------------------------------------------------------------------


def _dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices(
        (np.arange(6, dtype=np.float32).reshape(3, 2), [b"a", b"bc", b""])
    )


def _same(found: list[Any]) -> bool:
    want = _elements(_dataset())
    return len(found) == len(want) and all(
        np.array_equal(f[0], w[0]) and f[1] == w[1] for f, w in zip(found, want)
    )


def test_cache_files_that_were_changed_are_data_loss(tmp_path: Path) -> None:
    """Whichever byte is changed, dropped or added.

    The same elements or a DataLossError, never others.
    """
    cached = str(tmp_path / "cache")
    assert _same(_elements(_dataset().cache(cached)))
    whole = (tmp_path / "cache.cache").read_bytes()
    random = np.random.default_rng(1)
    changed = [whole[:n] for n in range(0, len(whole), 3)] + [whole + b"\0", whole + whole]
    for _ in range(150):
        data = bytearray(whole)
        data[random.integers(len(data))] ^= 1 << random.integers(8)
        changed.append(bytes(data))
    for data in changed:
        (tmp_path / "cache.cache").write_bytes(data)
        try:
            found = _elements(_dataset().cache(cached))
        except tf.errors.DataLossError:
            continue
        assert _same(found) and data.startswith(whole)  # a few bytes at the end are no record


def _element(count: int, rank: int, name: bytes, *dims: int, rest: bytes = b"") -> bytes:
    head = struct.pack("<IBB", count, rank, len(name)) + name
    return head + struct.pack(f"<{len(dims)}q", *dims) + rest


@pytest.mark.parametrize(
    "element",
    [
        _element(1, 1, b"", 1 << 28),
        _element(1, 1, b"", -1),
        _element(1, 2, b"", 0, -5),
        _element(1, 1, b"", 1, rest=struct.pack("<q", -1)),
        _element(1, 1, b"", 2, rest=struct.pack("<2q", 1 << 62, 1 << 62)),
        _element(1, 1, b"float32", 1, rest=b"1234"),
        _element(1, 1, b"object", 1, rest=b"12345678"),
        _element(1, 3, b"", 0, 1 << 62, 1 << 62),
        _element(1 << 31, 1, b"", 1),
        _element(0, 0, b""),
        b"",
    ],
)
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_elements_with_right_checksums_and_wrong_sizes(
    element: bytes, compression: str, tmp_path: Path
) -> None:
    folder = tmp_path / "elements"
    folder.mkdir()
    with TFRecordWriter(str(folder / "shard-0"), compression or None) as writer:
        for record in (b"headrace elements 1", element, b"headrace elements end 1"):
            writer.write(record)
    spec = tf.TensorSpec([None], tf.string)
    with pytest.raises(tf.errors.DataLossError):
        _elements(tf.data.Dataset.load(str(tmp_path), spec, compression or None))


def test_a_cache_of_another_dataset_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "cache")
    _elements(tf.data.Dataset.range(3).cache(path))
    for other in (
        tf.data.Dataset.from_tensor_slices([1.0]),
        tf.data.Dataset.from_tensors(np.zeros(2, np.int64)),
        tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3))),
    ):
        with pytest.raises(tf.errors.DataLossError, match="Remove it to write it anew"):
            _elements(other.cache(path))
    assert _elements(tf.data.Dataset.range(9).cache(path)) == [0, 1, 2]


def test_saved_datasets_that_were_damaged(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    _dataset().save(str(path))
    load = tf.data.Dataset.load
    assert _same(_elements(load(str(path))))
    with pytest.raises(tf.errors.DataLossError):
        _elements(load(str(path), tf.TensorSpec([2], tf.int32)))
    for text in (
        "",
        "{",
        "[]",
        '{"tensor": 3}',
        '{"tensor": [[-5], "float32"]}',
        '{"tensor": [[], "nothing"]}',
        "[" * 100_000,
    ):
        (path / "elements" / "spec.json").write_text(text)
        with pytest.raises(tf.errors.DataLossError):
            load(str(path))
    (path / "elements" / "spec.json").unlink()
    with pytest.raises(tf.errors.NotFoundError):
        load(str(path))
    (path / "elements" / "shard-0").write_bytes(b"\x1f\x8b" + b"\0" * 50)
    for compression in (None, "GZIP"):
        with pytest.raises(tf.errors.DataLossError):
            _elements(load(str(path), _dataset().element_spec, compression))


def test_load_and_save_in_a_graph(tmp_path: Path) -> None:
    path = str(tmp_path / "saved")
    with tf1.Graph().as_default(), tf1.Session() as sess:
        sess.run(tf1.data.Dataset.range(4).save(path))
    assert _in_graph(lambda: tf1.data.Dataset.load(path)) == [0, 1, 2, 3]
    with pytest.raises(tf1.errors.NotFoundError):
        _in_graph(
            lambda: tf1.data.Dataset.load(str(tmp_path / "no"), tf1.TensorSpec([], tf1.int64))
        )


# shards -----------------------------------------------------------------------------------------


def test_shard_func_and_reader_func_are_called(tmp_path: Path) -> None:
    path = str(tmp_path / "saved")
    tf.data.Dataset.range(7).save(path, shard_func=lambda x: x % 3)
    assert sorted(os.listdir(tmp_path / "saved" / "elements")) == [
        "shard-0",
        "shard-1",
        "shard-2",
        "spec.json",
    ]
    joined = tf.data.Dataset.load(path, reader_func=lambda shards: shards.flat_map(lambda s: s))
    assert _elements(joined) == [0, 3, 6, 1, 4, 2, 5]
    assert sorted(_elements(tf.data.Dataset.load(path))) == list(range(7))
    last = tf.data.Dataset.load(
        path, reader_func=lambda shards: shards.skip(2).flat_map(lambda s: s)
    )
    assert _elements(last) == [2, 5]
    with pytest.raises(TypeError, match="reader_func"):
        tf.data.Dataset.load(path, reader_func=lambda shards: 1)
    with pytest.raises(TypeError, match="shard_func"):
        tf.data.Dataset.range(3).save(path, shard_func=lambda x: "a")
    with pytest.raises(tf.errors.InvalidArgumentError, match="shard_func gave -1"):
        tf.data.Dataset.range(3).save(path, shard_func=lambda x: np.int64(-1))
    assert _elements(joined) == [0, 3, 6, 1, 4, 2, 5]  # what was there stays


def test_snapshot_calls_them_too(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    dataset = tf.data.Dataset.range(6).snapshot(
        path,
        shard_func=lambda x: x // 3,
        reader_func=lambda s: s.flat_map(lambda d: d.map(lambda v: v + 10)),
    )
    assert _elements(dataset) == [0, 1, 2, 3, 4, 5]
    assert _elements(dataset) == [10, 11, 12, 13, 14, 15]
    assert sorted(os.listdir(os.path.join(path, "elements"))) == ["shard-0", "shard-1"]


# full disks -------------------------------------------------------------------------------------

_FULL = """
    import os, resource, sys
    import numpy as np
    import headrace.compat.v2 as tf
    folder = sys.argv[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    dataset = tf.data.Dataset.range(3000).map(lambda x: tf.zeros([50]) + tf.cast(x, tf.float32))

    def fails(action):
        try:
            action()
        except tf.errors.ResourceExhaustedError as error:
            assert "File too large" in str(error), error
        else:
            raise AssertionError("the limit was not reached")

    fails(lambda: dataset.save(folder + "/a/b"))
    fails(lambda: list(dataset.cache(folder + "/cache")))
    fails(lambda: list(dataset.snapshot(folder + "/snap")))
    fails(lambda: tf.io.write_file(folder + "/text", b"x" * 200_000))
    writer = tf.io.TFRecordWriter(folder + "/records")
    fails(lambda: [writer.write(b"x" * 1000) for _ in range(1000)])
    writer = None
    os.unlink(folder + "/records"); os.unlink(folder + "/text")
    assert os.listdir(folder) == [], os.listdir(folder)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_full_disk_is_resource_exhausted_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = textwrap.dedent(_FULL)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_writing_where_there_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.data.Dataset.range(2).save(str(tmp_path / "file" / "inside"))
    with pytest.raises(tf.errors.NotFoundError):
        _elements(tf.data.Dataset.range(2).cache(str(tmp_path / "no" / "cache")))


def test_datasets_with_ops_of_our_own_work_in_graphs() -> None:
    def stopping() -> tf1.data.Dataset:
        parts = [tf1.data.Dataset.range(1), tf1.data.Dataset.range(5)]
        choice = tf1.data.Dataset.from_tensor_slices(np.array([0, 1, 0, 1], np.int64))
        return tf1.data.Dataset.choose_from_datasets(parts, choice, stop_on_empty_dataset=True)

    assert _in_graph(stopping) == [0, 0]
    again = _in_graph(lambda: tf1.data.Dataset.random(1, rerandomize_each_iteration=True).take(3))
    assert len(again) == 3
