"""TFRecord files, text lines and records of one length.

Against files that TensorFlow wrote, and damaged ones.
"""

from __future__ import annotations

import gzip
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as tf
from headrace import errors
from headrace.wire import crc, tfrecord
from tests.golden import make_records

RECORDS = make_records.records()
GOLDEN = Path(make_records.FOLDER)
BUFFERS = [1, 7, 13, 300, None]


def until_error(make: Callable[[], Iterator[Any]]) -> tuple[list[Any], str]:
    """What came before the end, and the error that ended it ("" if none did)."""
    found = []
    try:
        for item in make():
            found.append(item)
    except errors.OpError as error:
        return found, f"{type(error).__name__}: {error}"
    return found, ""


def write(path: Path, records: list[bytes], options: Any = None) -> bytes:
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


def an_example() -> Any:
    feature = {
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3, -1])),
        "weight": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"bc"])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


# checksums ----------------------------------------------------------------------------------------


def test_checksum() -> None:
    assert crc.value(b"123456789") == 0xE3069283
    assert crc.unmask(crc.mask(0x12345678)) == 0x12345678
    assert crc.extend(crc.value(b"1234"), b"56789") == crc.value(b"123456789")


# TensorFlow's files -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", make_records.KINDS)
@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_reads_tensorflows_files(version: str, kind: str) -> None:
    path = GOLDEN / f"{version}.{kind}"
    for buffer in BUFFERS:
        found = list(tfrecord.record_reader(path, make_records.KINDS[kind], buffer))
        assert found[:-1] == RECORDS
        assert tf.train.Example.FromString(found[-1]) == an_example()


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_writes_tensorflows_bytes(version: str, tmp_path: Path) -> None:
    """Without compression the bytes are the same ones."""
    theirs = (GOLDEN / f"{version}.plain").read_bytes()
    ours = write(
        tmp_path / "x", [*RECORDS, list(tfrecord.record_reader(GOLDEN / f"{version}.plain"))[-1]]
    )
    assert ours == theirs


@pytest.mark.parametrize("kind", make_records.KINDS)
def test_round_trip(kind: str, tmp_path: Path) -> None:
    """Files for ``make_records.py read``."""
    compression = make_records.KINDS[kind]
    path = tmp_path / f"headrace.{kind}"
    write(path, [*RECORDS, an_example().SerializeToString()], tf.io.TFRecordOptions(compression))
    options = tf.python_io.TFRecordOptions(compression)
    assert list(tf.python_io.tf_record_iterator(str(path), options))[:-1] == RECORDS


@given(
    st.lists(st.binary(max_size=60), max_size=12),
    st.integers(1, 50),
    st.sampled_from(["", "GZIP", "ZLIB"]),
)
def test_any_records(tmp_path_factory: Any, records: list[bytes], buffer: int, kind: str) -> None:
    path = tmp_path_factory.mktemp("records") / "x"
    write(path, records, kind)
    assert list(tfrecord.record_reader(path, kind, buffer)) == records


def test_batches_are_whole_chunks(tmp_path: Path) -> None:
    write(tmp_path / "x", RECORDS * 50)
    batches = list(tfrecord.record_batches(tmp_path / "x", None, 1000))
    assert len(batches) > 5
    assert [r for b in batches for r in b] == RECORDS * 50


# damage -------------------------------------------------------------------------------------------

THREE = [b"x" * 10, b"", b"y" * 300]  # at 0, 26 and 42


def flipped(at: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= 1
        return bytes(changed)

    return damage


@pytest.mark.parametrize(
    ("damage", "good", "error"),
    [
        (flipped(13), 0, "corrupted record at 12"),
        (flipped(9), 0, "corrupted record at 0"),
        (flipped(0), 0, "corrupted record at 0"),
        (flipped(-1), 2, "corrupted record at 54"),
        (flipped(30), 1, "corrupted record at 26"),
        (lambda d: d[:20], 0, "truncated record at 0"),
        (lambda d: d[:-2], 2, "truncated record at 42"),
        (lambda d: d[:59], 2, "truncated record at 42"),
        (lambda d: d[:30], 1, ""),
        (lambda d: b"this is text, not records", 0, "corrupted record at 0"),
        (lambda d: b"abc", 0, ""),
        (lambda d: b"", 0, ""),
    ],
)
def test_damaged_files(
    damage: Callable[[bytes], bytes], good: int, error: str, tmp_path: Path
) -> None:
    """As TensorFlow 1.15.

    The good records first, then the place; a cut header is the end of the file.
    """
    path = tmp_path / "x"
    path.write_bytes(damage(write(path, THREE)))
    for buffer in BUFFERS:
        found, text = until_error(lambda: tfrecord.record_reader(path, None, buffer))  # noqa: B023
        assert found == THREE[:good]
        assert text == (f"DataLossError: {error}" if error else "")


def test_wrong_length_is_not_believed(tmp_path: Path) -> None:
    """A length of 2**60 with a wrong checksum must not be waited for."""
    (tmp_path / "x").write_bytes(struct.pack("<QI", 1 << 60, 0) + b"data")
    assert (
        until_error(lambda: tfrecord.record_reader(tmp_path / "x"))[1]
        == "DataLossError: corrupted record at 0"
    )


def test_compressed_damage(tmp_path: Path) -> None:
    path = tmp_path / "x"
    plain = write(path, THREE)
    for kind in ("GZIP", "ZLIB"):
        path.write_bytes(plain)
        error = "DataLossError: inflate() failed with error -3: incorrect header check"
        assert until_error(lambda: tfrecord.record_reader(path, kind)) == ([], error)  # noqa: B023
        whole = write(path, THREE, kind)
        path.write_bytes(whole[:-5])  # only the checksum at the end is cut
        assert until_error(lambda: tfrecord.record_reader(path, kind)) == (THREE, "")  # noqa: B023
    path.write_bytes(
        write(path, THREE, "GZIP") * 2
    )  # files that were put together, as TF 2 reads them
    assert list(tfrecord.record_reader(path, "GZIP", 10)) == THREE * 2


def test_missing_files(tmp_path: Path) -> None:
    found = until_error(lambda: tfrecord.record_reader(tmp_path / "none"))
    assert found == ([], f"NotFoundError: {tmp_path / 'none'}; No such file or directory")
    assert until_error(lambda: tfrecord.text_lines(tmp_path))[1].startswith(
        "FailedPreconditionError"
    )
    with pytest.raises(errors.NotFoundError, match="No such file"):
        tf.python_io.TFRecordWriter(str(tmp_path / "no" / "folder"))
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression_type"):
        tfrecord.record_reader(tmp_path / "x", "LZ4").__next__()


# options and the writer ---------------------------------------------------------------------------


def test_options() -> None:
    kinds = tf.python_io.TFRecordCompressionType
    string = tf.io.TFRecordOptions.get_compression_type_string
    assert [string(tf.io.TFRecordOptions(k)) for k in (kinds.NONE, kinds.ZLIB, kinds.GZIP)] == [
        "",
        "ZLIB",
        "GZIP",
    ]
    assert string(None) == string("") == "" and string("GZIP") == "GZIP"
    with pytest.raises(ValueError, match='Not a valid compression_type: "FOO"'):
        tf.io.TFRecordOptions("FOO")


def test_compression_level(tmp_path: Path) -> None:
    sizes = []
    for level in (0, 9):
        options = tf.io.TFRecordOptions("GZIP", compression_level=level)
        sizes.append(len(write(tmp_path / "x", [b"z" * 5000], options)))
    assert sizes[0] > 5000 > 500 > sizes[1]


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_flush_makes_records_readable(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    writer = tf.io.TFRecordWriter(str(path), kind)
    writer.write(b"one")
    writer.flush()
    assert list(tfrecord.record_reader(path, kind)) == [b"one"]
    writer.write(b"two")
    writer.close()
    writer.close()
    assert list(tfrecord.record_reader(path, kind)) == [b"one", b"two"]
    with pytest.raises(errors.FailedPreconditionError, match="previously closed"):
        writer.write(b"three")


def test_writer_takes_bytes(tmp_path: Path) -> None:
    with tf.io.TFRecordWriter(str(tmp_path / "x")) as writer:
        writer.write(memoryview(b"abc"))
        with pytest.raises(TypeError, match="expected bytes, str found"):
            writer.write("text")
    assert list(tfrecord.record_reader(tmp_path / "x")) == [b"abc"]


# lines and records of one length ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_text_lines(kind: str, tmp_path: Path) -> None:
    text = b"a\nb\r\n\r\nc\rd\n\n\re\r\r\nlast"
    data = {"": text, "GZIP": gzip.compress(text), "ZLIB": zlib.compress(text)}[kind]
    (tmp_path / "x").write_bytes(data)
    for buffer in BUFFERS:
        lines = list(tfrecord.text_lines(tmp_path / "x", kind, buffer))
        assert lines == [b"a", b"b", b"", b"cd", b"", b"e", b"last"]
    (tmp_path / "x").write_bytes(b"a\nb\n")
    assert list(tfrecord.text_lines(tmp_path / "x")) == [b"a", b"b"]


UNEVEN = (
    'Excluding the header ({} bytes) and footer ({} bytes), input file "{}" has body '
    "length {} bytes, which is not an "
    "exact multiple of the record length ({} bytes)."
)


@pytest.mark.parametrize(
    ("sizes", "want"),
    [
        ((4, 0, 0), [b"0123", b"4567", b"89ab", b"cdef"]),
        ((5, 0, 1), [b"01234", b"56789", b"abcde"]),
        ((4, 2, 2), [b"2345", b"6789", b"abcd"]),
        ((3, 1, 2), None),
        ((7, 0, 0), None),
    ],
)
def test_fixed_length_records(sizes: tuple[int, int, int], want: Any, tmp_path: Path) -> None:
    """A plain file is measured first; a compressed one shows its length at its end."""
    data = b"0123456789abcdef"
    plain, packed = tmp_path / "x", tmp_path / "z"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    record, header, footer = sizes
    for buffer in BUFFERS:
        one = until_error(lambda: tfrecord.fixed_length_records(plain, *sizes, None, buffer))  # noqa: B023
        two = until_error(lambda: tfrecord.fixed_length_records(packed, *sizes, "GZIP", buffer))  # noqa: B023
        if want is not None:
            assert one == two == (want, "")
            continue
        text = [
            UNEVEN.format(header, footer, p, 16 - header - footer, record) for p in (plain, packed)
        ]
        body = data[header : 16 - footer]
        whole = [body[i : i + record] for i in range(0, len(body) - record + 1, record)]
        assert one == ([], f"InvalidArgumentError: {text[0]}")
        assert two == (whole, f"DataLossError: {text[1]}")


# messages -----------------------------------------------------------------------------------------


def test_messages_are_tensorflows() -> None:
    example = an_example()
    assert example.DESCRIPTOR.full_name == "tensorflow.Example"
    assert tf.train.Example.FromString(example.SerializeToString()) == example
    assert pickle.loads(pickle.dumps(example)) == example
    assert example.features.feature["name"].WhichOneof("kind") == "bytes_list"
    one = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 300]))
    assert one.SerializeToString() == b"\x1a\x05\x0a\x03\x01\xac\x02"


def test_sequence_messages() -> None:
    steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[x])) for x in (1.0, 2.0)]
    lists = tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=steps)})
    message = tf.train.SequenceExample(feature_lists=lists)
    again = tf.train.SequenceExample.FromString(message.SerializeToString())
    assert [f.float_list.value[0] for f in again.feature_lists.feature_list["x"].feature] == [
        1.0,
        2.0,
    ]


def test_message_modules() -> None:
    from headrace.api.platform import messages

    assert messages.module("core.example.example_pb2").Example is tf.train.Example
    assert messages.module("core.example.feature_pb2").Feature is tf.train.Feature


def test_flush_mode_and_buffer_size_count(tmp_path: Path) -> None:
    """They do not change what is read."""
    records = [bytes([65 + i % 7]) * 5000 for i in range(200)] + [b"x" * 400_000, b""]
    sizes = []
    for options in (
        {},
        {"output_buffer_size": 100},
        {"flush_mode": zlib.Z_FULL_FLUSH},
        {"flush_mode": zlib.Z_FULL_FLUSH, "input_buffer_size": 4096},
    ):
        path = tmp_path / "records"
        given = tfrecord.TFRecordOptions("ZLIB", **options)
        with tfrecord.TFRecordWriter(path, given) as writer:
            for record in records:
                writer.write(record)
        assert list(tfrecord.tf_record_iterator(str(path), given)) == records
        sizes.append(path.stat().st_size)
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3]
