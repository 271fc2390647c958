"""Examples read together are the ones that are read one by one, and what is unusual is left to the
other reader.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.wire.example_columns import MAX_UNUSUAL_BATCHES, MIN_RECORDS, ColumnReader
from headrace.wire.example_reader import (
    BYTES,
    FLOAT,
    INT64,
    ExampleReader,
    WireError,
    packed_integers,
)

KEYS = (b"ids", b"x", b"text", b"none")


def feature(value: Any) -> Any:
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if value and isinstance(value[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def record(**values: Any) -> bytes:
    features = {k: feature(v) for k, v in values.items()}
    made = tf.train.Example(features=tf.train.Features(feature=features))
    return made.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)


@given(st.lists(integers, max_size=60))
def test_decoding_numbers(values: list[int]) -> None:
    data = tf.train.Int64List(value=values).SerializeToString()
    raw = data[1:] if data else b""
    while raw and raw[0] >= 0x80:
        raw = raw[1:]
    assert packed_integers(raw[1:] if values else b"").tolist() == values


def test_numbers_that_are_too_long_or_cut_off() -> None:
    for raw in (b"\x80", b"\x01\x80", b"\xff" * 10 + b"\x01"):
        with pytest.raises(WireError):
            packed_integers(raw)


rows = st.lists(
    st.tuples(
        st.lists(integers, max_size=20),
        st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9),
        st.binary(min_size=1, max_size=200),
    ),
    min_size=MIN_RECORDS,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_read_together_as_one_by_one(values: list[Any]) -> None:
    records = [record(ids=i, x=x, text=t, other=[1]) for i, x, t in values]
    found = ColumnReader(KEYS).read(records)
    assert found is not None and found[3] is None
    one_by_one: list[Any] = [ExampleReader(KEYS).read(r) for r in records]
    for n, kind in enumerate((INT64, FLOAT, BYTES)):
        column = found[n]
        assert column is not None and column.kind == kind
        wanted = [row[n][1] for row in one_by_one]
        assert column.counts.tolist() == [len(w) for w in wanted]
        assert list(column.values) == [v for w in wanted for v in w]


UNUSUAL = {
    "a key less": record(ids=[1]),
    "a key more": record(ids=[1], x=[1.0], more=[1]),
    "another kind": record(ids=[1.5], x=[1.0]),
    "no list": tf.train.Example(
        features=tf.train.Features(feature={"ids": tf.train.Feature(), "x": feature([1.0])})
    ).SerializeToString(deterministic=True),
    "empty": b"",
    "cut off": record(ids=[1, 2, 3], x=[1.0])[:-2],
    "damaged": b"\xff" * 30,
}


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("place", [0, 5, 9])
def test_what_is_unusual_is_not_read_together(name: str, place: int) -> None:
    records = [record(ids=list(range(i)), x=[0.5] * i + [1.0]) for i in range(1, 10)]
    records.insert(place, UNUSUAL[name])
    assert ColumnReader((b"ids", b"x")).read(records) is None


def test_it_gives_up_and_few_records_are_not_tried() -> None:
    odd = [record(**{f"k{i}": [i]}) for i in range(MIN_RECORDS)]
    reader = ColumnReader((b"ids",))
    alike = [record(ids=[i] * i) for i in range(MIN_RECORDS)]
    assert reader.read(alike[:-1]) is None
    for _ in range(MAX_UNUSUAL_BATCHES + 1):
        assert reader.read(odd) is None
    assert reader.read(alike) is None
    assert ColumnReader((b"ids",)).read(alike) is not None


@pytest.mark.parametrize("sizes", [[3] * 12, list(range(12)), [0] * 12, [5, 0] * 6])
def test_parse_example_of_lists_of_any_length(sizes: list[int]) -> None:
    """All three readers (one layout, the same keys, one by one) give one result."""
    rng = np.random.default_rng(0)
    lists = [rng.integers(-5, 10**6, n).tolist() for n in sizes]
    records = [record(ids=v, label=[i]) for i, v in enumerate(lists)]
    mixed = [*records, record(label=[99], ids=[], extra=[1])]
    features = {
        "label": tf.FixedLenFeature([], tf.int64),
        "ids": tf.VarLenFeature(tf.int64),
    }
    padded = {"ids": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-7)}
    with tf.Graph().as_default(), tf.Session() as session:
        data = tf.placeholder(tf.string, [None])
        outputs = tf.parse_example(data, features), tf.parse_example(data, padded)["ids"]
        for batch in (records, records, mixed):
            (parsed, filled) = session.run(outputs, {data: batch})
            width = max(map(len, lists))
            rest = len(batch) - len(lists)
            assert parsed["label"].tolist() == [*range(12), *[99] * rest]
            assert parsed["ids"].values.tolist() == [v for row in lists for v in row]
            assert parsed["ids"].dense_shape.tolist() == [len(batch), width]
            assert parsed["ids"].indices.tolist() == [
                [i, j] for i, row in enumerate(lists) for j in range(len(row))
            ]
            wanted = [row + [-7] * (width - len(row)) for row in lists] + [[-7] * width] * rest
            assert filled.tolist() == wanted
        if len(set(sizes)) > 1:
            fixed = tf.parse_example(data, {"ids": tf.FixedLenFeature([sizes[0]], tf.int64)})
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match=r"Key: ids, Index: 1\.  Number of int64 values",
            ):
                session.run(fixed, {data: records})
