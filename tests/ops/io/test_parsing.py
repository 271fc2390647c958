"""``tf.parse_example`` and its like, CSV, serialized tensors and files: wrappers, errors, and the
reader of the bytes.

The messages are TensorFlow 1.15's unless a comment says otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as tf
from headrace.wire.example_reader import BYTES, FLOAT, INT64, ExampleReader, WireError, varints
from tests.samples.parsing import example, feature, number, part, sequence

FIXED, VARIABLE, SEQUENCE = tf.FixedLenFeature, tf.VarLenFeature, tf.FixedLenSequenceFeature


def run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def fails(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        run(make)
    assert text in str(caught.value)


# the reader ---------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_packed_numbers(values: list[int]) -> None:
    raw = b"".join(number(v) for v in values)
    assert varints(b"??" + raw + b"!", 2, 2 + len(raw)).tolist() == values


@pytest.mark.parametrize(
    "raw", [b"\x80", b"\x01\x80", b"\xff" * 11, b"\x80" * 40, b"\x01" * 20 + b"\x80"]
)
def test_broken_numbers(raw: bytes) -> None:
    with pytest.raises(WireError):
        varints(raw, 0, len(raw))


VALUES = st.one_of(
    st.none(),
    st.lists(st.binary(max_size=200), min_size=1, max_size=4),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=30),
)
TABLES = st.dictionaries(st.sampled_from(["a", "bb", "key", "long" * 40]), VALUES)


@given(st.lists(TABLES, min_size=1, max_size=4), st.booleans())
def test_reader_agrees_with_protobuf(tables: list[Any], packed: bool) -> None:
    """Every record twice over: the second time by its layout."""
    keys = [b"a", b"bb", b"key", b"long" * 40, b"none"]
    reader = ExampleReader(keys)
    for table in tables * 3:
        record = example(packed, **table)
        message = tf.train.Example.FromString(record).features.feature
        for key, found in zip(keys, reader.read(record)):
            name = key.decode()
            kind = message[name].WhichOneof("kind") if name in message else None
            if kind is None:
                assert found is None
                continue
            assert found is not None
            assert found[0] == {"bytes_list": BYTES, "float_list": FLOAT, "int64_list": INT64}[kind]
            assert list(found[1]) == list(getattr(message[name], kind).value)


@given(st.binary(max_size=60))
def test_reader_survives_anything(data: bytes) -> None:
    """Bytes that are no message give a WireError, or what protobuf makes of them."""
    reader = ExampleReader([b"a"])
    try:
        found = reader.read(data)
    except WireError:
        return
    assert found[0] is None or found[0][0] in (BYTES, FLOAT, INT64)


def test_layout_is_not_believed() -> None:
    """A record as long as another, with other keys or sizes, is read afresh."""
    reader = ExampleReader([b"a", b"b"])
    first, second = example(a=[b"xx"], b=[1]), example(b=[b"xx"], a=[1])
    third, fourth = example(a=[b"x"], b=[300]), example(a=[b"b"], c=[1, 2])
    assert len({len(r) for r in (first, second)}) == 1
    for record in (first, second, third, fourth) * 3:
        message = tf.train.Example.FromString(record).features.feature
        found = reader.read(record)
        assert (found[0] is not None) == ("a" in message)
        assert (found[1] is not None) == ("b" in message)
        if "b" in message and message["b"].int64_list.value:
            assert found[1][1].tolist() == list(message["b"].int64_list.value)  # type: ignore[index]


def test_broken_values_stay_broken() -> None:
    """Also when the same record comes again and again."""
    record = part(1, part(1, part(1, b"a") + part(2, part(2, part(1, b"12345")))))
    reader = ExampleReader([b"a"])
    for _ in range(4):
        with pytest.raises(WireError):
            reader.read(record)


def test_later_entries_win() -> None:
    twice = part(
        1,
        part(1, part(1, b"a") + part(2, feature([1])))
        + part(1, part(1, b"a") + part(2, feature([2]))),
    )
    assert run(lambda: tf.parse_single_example(twice, {"a": FIXED([], tf.int64)}))["a"] == 2
    halves = example(a=[1]) + example(b=[2])  # two Features in one Example are put together
    got = run(lambda: tf.parse_single_example(halves, {k: FIXED([], tf.int64) for k in "ab"}))
    assert got == {"a": 1, "b": 2}


def test_batches_of_one_layout() -> None:
    """Read together from the second batch on.

    A number of another size sends it back to one by one.
    """
    features = {
        "n": FIXED([], tf.int64),
        "x": FIXED([2], tf.float32),
        "s": FIXED([], tf.string),
        "v": VARIABLE(tf.int64),
    }
    with tf.Graph().as_default(), tf.Session() as session:
        records = tf.placeholder(tf.string, [None])
        parsed = tf.parse_example(records, features)
        for numbers in (
            [1, 2, 3],
            [4, 5, 6],
            [7, 1000, 8],
            [1000, 1001, 1002],
            [1003, 2, 1004],
            [9, 10, 11],
        ):
            made = [
                example(n=[n], x=[n / 2.0, 1.0], s=[b"s%d" % (n % 10)], v=[n, 1]) for n in numbers
            ]
            got = session.run(parsed, {records: made})
            assert got["n"].tolist() == numbers
            assert got["x"].tolist() == [[n / 2.0, 1.0] for n in numbers]
            assert got["s"].tolist() == [b"s%d" % (n % 10) for n in numbers]
            assert got["v"].values.tolist() == [v for n in numbers for v in (n, 1)]
            assert got["v"].indices.tolist() == [[i, j] for i in range(3) for j in range(2)]
            got["x"][0] = 7.0  # results are the caller's own


# parse_example, parse_single_example --------------------------------------------------------------


def test_results_are_writable() -> None:
    got = run(lambda: tf.parse_single_example(example(a=[1.0, 2.0]), {"a": FIXED([2], tf.float32)}))
    got["a"][0] = 5.0
    sparse = run(
        lambda: tf.parse_single_example(example(a=[1.0, 2.0]), {"a": VARIABLE(tf.float32)})
    )["a"]
    sparse.values[0] = 5.0


def test_static_shapes() -> None:
    with tf.Graph().as_default():
        features = {
            "a": FIXED([2, 3], tf.float32),
            "b": SEQUENCE([4], tf.int64, True),
            "c": VARIABLE(tf.string),
        }
        batch = tf.parse_example(tf.placeholder(tf.string, [7]), features)
        assert batch["a"].shape.as_list() == [7, 2, 3]
        assert batch["b"].shape.as_list() == [7, None, 4]
        single = tf.parse_single_example(tf.placeholder(tf.string, []), features)
        assert single["a"].shape.as_list() == [2, 3]
        assert single["b"].shape.as_list() == [None, 4]
        assert set(batch) == set(features)
        assert single["a"].op.name == "ParseSingleExample/ParseSingleExample"


SPARSE = tf.io.SparseFeature


def test_sparse_feature() -> None:
    record = example(ix=[3, 1], iy=[0, 5], val=[1.0, 2.0])
    one = run(lambda: tf.parse_single_example(record, {"a": SPARSE("ix", "val", tf.float32, 10)}))[
        "a"
    ]
    assert one.indices.tolist() == [[1], [3]] and one.values.tolist() == [2.0, 1.0]
    two = {"a": SPARSE(["ix", "iy"], "val", tf.float32, [10, 10])}
    found = run(lambda: tf.parse_example([record], two))
    assert list(found) == ["a"]
    assert found["a"].indices.tolist() == [[0, 1, 5], [0, 3, 0]]
    assert found["a"].dense_shape.tolist() == [1, 10, 10]


def test_padding_of_sequences() -> None:
    records = [example(a=[1, 2, 3]), example(), example(a=[4])]
    got = run(lambda: tf.parse_example(records, {"a": SEQUENCE([], tf.int64, True)}))
    assert got["a"].tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    got = run(lambda: tf.parse_example(records, {"a": SEQUENCE([], tf.int64, True, -1)}))
    assert got["a"].tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1]]
    words = [example(a=[b"x", b"y"]), example(a=[b"z"])]
    got = run(lambda: tf.parse_example(words, {"a": SEQUENCE([], tf.string, True)}))
    assert got["a"].tolist() == [[b"x", b"y"], [b"z", b""]]


INVALID = tf.errors.InvalidArgumentError
ERRORS = [
    (
        example(b=[1]),
        FIXED([], tf.int64),
        "Feature: a (data type: int64) is required but could not be found.",
    ),
    (
        example(a=None),
        FIXED([], tf.int64),
        "Feature: a (data type: int64) is required but could not be found.",
    ),
    (
        example(a=[1]),
        FIXED([], tf.float32),
        "Data types don't match. Data type: int64 but expected type: float",
    ),
    (
        example(a=[1]),
        VARIABLE(tf.float32),
        "Data types don't match. Expected type: float, Actual type: int64",
    ),
    (b"\x01\x02hello", FIXED([], tf.float32), "Could not parse example input, value: '"),
    (example(a=[1, 2, 3])[:-1], FIXED([3], tf.int64), "Could not parse example input, value: '"),
]


@pytest.mark.parametrize(("record", "spec", "text"), ERRORS)
def test_bad_records(record: bytes, spec: Any, text: str) -> None:
    fails(lambda: tf.parse_single_example(record, {"a": spec}), INVALID, text)
    fails(lambda: tf.parse_example([record], {"a": spec}), INVALID, text)
    fails(lambda: tf.parse_example([example(a=[7]), record], {"a": spec}), INVALID, "")


def test_wrong_counts() -> None:
    record, spec = example(a=[1, 2, 3]), {"a": FIXED([2], tf.int64)}
    text = (
        "Key: a, Index: 0.  Number of int64 values != expected.  Values size: 3 but output "
        "shape: [2]"
    )
    fails(lambda: tf.parse_example([record], spec), INVALID, f"Name: <unknown>, {text}")
    fails(
        lambda: tf.parse_example([record], spec, example_names=["ex0"]),
        INVALID,
        f"Name: ex0, {text}",
    )
    # TensorFlow stops after the first sentence
    fails(
        lambda: tf.parse_single_example(record, spec),
        INVALID,
        "Key: a.  Can't parse serialized Example. It has 3",
    )
    ragged = {"a": SEQUENCE([2], tf.int64, True)}
    text = "is not a multiple of stride length. Saw 3 values but output shape is: [?,2]"
    fails(lambda: tf.parse_example([record], ragged), INVALID, text)
    many = [example(a=[1, 2])] * 3 + [example(a=[1])]
    fails(lambda: tf.parse_example(many, spec), INVALID, "Key: a, Index: 3.")


def test_example_name_of_one() -> None:
    fails(
        lambda: tf.parse_single_example(example(), {"a": FIXED([], tf.int64)}, example_names="ex0"),
        INVALID,
        "Name: ex0, Feature: a (data type: int64) is required",
    )
    got = run(
        lambda: tf.parse_single_example(
            example(a=[1], b=[2, 3]),
            {"a": FIXED([], tf.int64), "b": VARIABLE(tf.int64)},
            example_names="ex0",
        )
    )
    assert got["a"] == 1
    assert got["b"].indices.tolist() == [[0], [1]] and got["b"].dense_shape.tolist() == [2]


@pytest.mark.parametrize(
    ("features", "error", "text"),
    [
        ({}, ValueError, "Missing"),
        (None, ValueError, "Missing"),
        ({"a": 3}, ValueError, "Invalid feature a:3."),
        ({"a": FIXED(None, tf.int64)}, ValueError, "Missing shape for feature a."),
        ({"a": FIXED([None], tf.int64)}, ValueError, "Consider using FixedLenSequenceFeature."),
        ({"a": FIXED([], None)}, ValueError, "Missing type for feature a."),
        (
            {"a": FIXED([], tf.int32)},
            TypeError,
            "DataType int32 not in list of allowed values: float32, int64, string",
        ),
        (
            {"a": SEQUENCE([], tf.int64)},
            ValueError,
            "FixedLenSequenceFeature requires allow_missing to be True.",
        ),
        ({"a": FIXED([2], tf.int64, 7)}, ValueError, "Cannot reshape a tensor with 1 elements"),
    ],
)
def test_bad_features(features: Any, error: type[Exception], text: str) -> None:
    for call in (
        lambda: tf.parse_example([b""], features),
        lambda: tf.parse_single_example(b"", features),
    ):
        with tf.Graph().as_default(), pytest.raises(error, match=None) as caught:
            call()
        assert text in str(caught.value)


def test_wrong_rank_fails_while_building() -> None:
    spec = {"a": FIXED([], tf.int64)}
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
            tf.parse_example(tf.placeholder(tf.string, []), spec)
        with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
            tf.parse_single_example(tf.placeholder(tf.string, [2]), spec)


# sequence examples --------------------------------------------------------------------------------

WORDS = sequence({"n": [3]}, {"t": [[1], [2], [3]], "w": [[b"a", b"b"], [b"-"], [b"c"]]})


def test_single_sequence_example() -> None:
    context, lists = run(
        lambda: tf.parse_single_sequence_example(
            WORDS,
            {"n": FIXED([], tf.int64), "m": FIXED([], tf.float32, 2.0)},
            {
                "t": SEQUENCE([], tf.int64),
                "w": VARIABLE(tf.string),
                "z": SEQUENCE([2], tf.int64, True),
            },
        )
    )
    assert context == {"n": 3, "m": 2.0}
    assert lists["t"].tolist() == [1, 2, 3] and lists["z"].shape == (0, 2)
    assert lists["w"].indices.tolist() == [[0, 0], [0, 1], [1, 0], [2, 0]]
    assert lists["w"].dense_shape.tolist() == [3, 2]


def test_batch_of_sequence_examples() -> None:
    short = sequence({"n": [1]}, {"t": [[5]]})
    context, lists, lengths = run(
        lambda: tf.io.parse_sequence_example(
            [WORDS, short],
            {"n": VARIABLE(tf.int64)},
            {"t": SEQUENCE([], tf.int64), "w": VARIABLE(tf.string)},
        )
    )
    assert context["n"].values.tolist() == [3, 1]
    assert lists["t"].tolist() == [[1, 2, 3], [5, 0, 0]] and lengths["t"].tolist() == [3, 1]
    assert lists["w"].dense_shape.tolist() == [2, 3, 2]


def test_bad_sequence_examples() -> None:
    parse = tf.parse_single_sequence_example
    text = "Feature list 'z' is required but could not be found.  Did you mean to include it in"
    fails(lambda: parse(WORDS, None, {"z": SEQUENCE([], tf.int64)}), INVALID, text)
    text = "Context feature 'k' is required but could not be found."
    fails(
        lambda: parse(WORDS, {"k": FIXED([], tf.int64)}, example_name="foo"),
        INVALID,
        f"Name: foo, {text}",
    )
    text = "Feature list: t, Index: 0.  Data types don't match. Expected type: float"
    fails(lambda: parse(WORDS, None, {"t": SEQUENCE([], tf.float32)}), INVALID, text)
    text = (
        "Key: t, Index: 0.  Number of int64 values != expected.  values size: 1 but output "
        "shape: [2]"
    )
    fails(lambda: parse(WORDS, None, {"t": SEQUENCE([2], tf.int64)}), INVALID, text)
    fails(
        lambda: parse(b"\x01\x02h", None, {"t": SEQUENCE([], tf.int64)}),
        INVALID,
        "Could not parse example input",
    )
    with pytest.raises(ValueError, match=r"feature_list_dense_defaults\[t\] must be None"):
        parse(WORDS, None, {"t": SEQUENCE([], tf.int64, True, 3)})
    with pytest.raises(ValueError, match="Missing features"):
        parse(WORDS)


# CSV ----------------------------------------------------------------------------------------------

WORD, WHOLE = [[""]], [[0]]
CSV_ERRORS: list[tuple[list[str], Any, str]] = [
    (["1,2", "3"], WHOLE * 2, "Expect 2 fields but have 1 in record 1"),
    (["1,2,3"], WHOLE * 2, "Expect 2 fields but have 3 in record 0"),
    ([""], WORD, "Expect 1 fields but have 0 in record 0"),
    (["1,x"], WHOLE * 2, "Field 1 in record 0 is not a valid int32: x"),
    (["1,x"], [[0], [0.0]], "Field 1 in record 0 is not a valid float: x"),
    (["1.0"], WHOLE, "Field 0 in record 0 is not a valid int32: 1.0"),
    (["1", "3000000000"], WHOLE, "Field 0 in record 1 is not a valid int32: 3000000000"),
    (["1_0"], WHOLE, "Field 0 in record 0 is not a valid int32: 1_0"),
    (['a"b,1'], WORD * 2, "Unquoted fields cannot have quotes/CRLFs inside"),
    (["1,2\r\n"], WHOLE * 2, "Unquoted fields cannot have quotes/CRLFs inside"),
    (['"ab"c,1'], WORD * 2, "Quote inside a string has to be escaped by another quote"),
    (['"ab,1'], WORD * 2, "Quoted field has to end with quote followed by delim or end"),
]


@pytest.mark.parametrize(("records", "defaults", "text"), CSV_ERRORS)
def test_bad_csv(records: list[str], defaults: Any, text: str) -> None:
    fails(lambda: tf.decode_csv(records, defaults), INVALID, text)


def test_csv() -> None:
    number, word = run(lambda: tf.decode_csv("7, a ", [[0.5], ["x"]]))
    assert number == 7.0 and word == b" a "
    columns = run(lambda: tf.decode_csv(['"a\nb",1', '"",'], [["x"], [5]]))
    assert [c.tolist() for c in columns] == [[b"a\nb", b"x"], [1, 5]]
    required = [np.array([], np.int32)]
    fails(lambda: tf.decode_csv(["1", " "], required), INVALID, "is not a valid int32")
    fails(
        lambda: tf.decode_csv(["1", '""'], required),
        INVALID,
        "Field 0 is required but missing in record 1!",
    )


def test_csv_arguments() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="select_cols is not strictly increasing"):
            tf.decode_csv(["1,2"], [[0], [0]], select_cols=[1, 0])
        with pytest.raises(
            ValueError, match="Length of select_cols and record_defaults do not match"
        ):
            tf.decode_csv(["1,2"], [[0], [0]], select_cols=[1])
        with pytest.raises(ValueError, match="at most rank 1 but is rank 2"):
            tf.decode_csv(["1"], [[[1]]])
        with pytest.raises(ValueError, match="length-0 or length-1 vector"):
            tf.decode_csv(["1"], [[1, 2]])
        with pytest.raises(TypeError, match="DataType bool not in list of allowed values"):
            tf.decode_csv(["1"], [tf.constant([True])])


# tensors and files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["float16", "float64", "int8", "uint16", "bool", "complex128", "bfloat16"]
)
def test_serialized_tensors(kind: str) -> None:
    dtype = tf.as_dtype(kind)
    value = np.arange(6).reshape(2, 3).astype(dtype.as_numpy_dtype)
    got = run(lambda: tf.io.parse_tensor(tf.io.serialize_tensor(value), dtype))
    assert got.dtype == value.dtype and (got == value).all()


def test_bad_tensors() -> None:
    text = "Type mismatch between parsed tensor (float) and dtype (int32)"
    fails(lambda: tf.io.parse_tensor(tf.io.serialize_tensor(1.0), tf.int32), INVALID, text)
    text = "Could not parse `serialized` as TensorProto: 'hello'"
    fails(lambda: tf.io.parse_tensor(b"hello", tf.int32), INVALID, text)


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "folder" / "x")
    with tf.Graph().as_default(), tf.Session() as session:
        name = tf.placeholder(tf.string, [])
        write, read = tf.write_file(name, "text"), tf.read_file(name)
        assert session.run(write, {name: path}) is None
        assert session.run(read, {name: path}) == b"text"
        Path(path).write_bytes(b"other")  # read again in every run
        assert session.run(read, {name: path}) == b"other"
        with pytest.raises(tf.errors.NotFoundError, match="none; No such file or directory"):
            session.run(read, {name: str(tmp_path / "none")})
        with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
            session.run(read, {name: str(tmp_path)})


@pytest.mark.parametrize("size", [0, 1, 4096, 3 << 20])
def test_files_of_any_size(size: int, tmp_path: Path) -> None:
    data = np.random.default_rng(0).bytes(size)
    (tmp_path / "x").write_bytes(data)
    assert run(lambda: tf.read_file(str(tmp_path / "x"))) == data


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_files_that_come_in_parts(tmp_path: Path) -> None:
    """A pipe says that it has no bytes, and a read of it gives what is there now."""
    name = str(tmp_path / "pipe")
    os.mkfifo(name)

    def write() -> None:
        with open(name, "wb", buffering=0) as file:
            for part in (b"first", b" and ", b"second"):
                file.write(part)
                time.sleep(0.02)

    thread = threading.Thread(target=write)
    thread.start()
    assert run(lambda: tf.read_file(name)) == b"first and second"
    thread.join()


def test_matching_files(tmp_path: Path) -> None:
    for name in "bca":
        (tmp_path / f"{name}.txt").write_text(name)
    at = os.path.join(str(tmp_path), "")
    found = run(lambda: tf.matching_files(f"{at}*.txt")).tolist()
    assert found == [f"{at}{n}.txt".encode() for n in "abc"]
    found = run(lambda: tf.matching_files([f"{at}c*", f"{at}a*", f"{at}z*"])).tolist()
    assert found == [f"{at}{n}.txt".encode() for n in "ac"]
    fails(
        lambda: tf.matching_files(f"{at}no/*"), tf.errors.NotFoundError, "No such file or directory"
    )
    with tf.Graph().as_default(), tf.Session() as session:
        files = tf.train.match_filenames_once(f"{at}*.txt")
        session.run(tf.local_variables_initializer())
        (tmp_path / "d.txt").write_text("d")
        assert len(session.run(files)) == 3


def test_decode_raw_of_one_length() -> None:
    from headrace.ops.io.decoding import decode_raw_v2

    got = run(lambda: decode_raw_v2(["abcd", "ab"], tf.uint8, fixed_length=3))
    assert got.tolist() == [[97, 98, 99], [97, 98, 0]]
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="must be evenly divisible by 2 but is 3"),
    ):
        decode_raw_v2(["abcd"], tf.int16, fixed_length=3)


def test_nothing_of_this_is_imported_early() -> None:
    program = (
        "import sys, headrace as tf; tf.constant(1); tf.train; tf.io\n"
        "late = [m for m in sys.modules if m.startswith(('headrace.formats.', "
        "'headrace.ops.image', "
        "'headrace.ops.io.parsing', 'headrace.ops.example', 'PIL', 'google_crc32c'))]\n"
        "assert not late, late\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (b'"' + b'""' * 1_000_000 + b'"', b'"' * 1_000_000),
        (b'"' + b'a""' * 400_000 + b'"', b'a"' * 400_000),
        (b'"' + b"a" * 2_000_000 + b'"', b"a" * 2_000_000),
        (b'"' * 2_000_001, None),
        (b'"' + b'""' * 1_000_000 + b"a", None),
        (b'"' * 2_000_000 + b"a", None),
    ],
)
def test_csv_of_many_quotes(record: bytes, field: bytes | None) -> None:
    """A field is found in one search, whatever it is made of."""
    with tf.Graph().as_default(), tf.Session() as sess:
        (column,) = tf.decode_csv([record], [[""]])
        if field is not None:
            assert sess.run(column)[0] == field
            return
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"[Qq]uote"):
            sess.run(column)
