"""Tensor bundles: byte for byte TensorFlow's, partitioned variables, and files that are damaged."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from headrace import errors
from headrace.wire.bundle_entries import Slice, slice_key
from headrace.wire.sorted_table import read_table, write_table
from headrace.wire.tensor_bundle import BundleReader, BundleWriter

GOLDEN = Path(__file__).parent.parent / "golden" / "bundles"
VALUES: dict[str, Any] = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b/Adam": np.array([1, 2], np.int64),
    "s": np.array([b"abc", b"", b"x" * 300], object),
    "sc": np.float64(3.0),
    "e": np.zeros([0, 3], np.int32),
    "flag": np.array([True, False]),
}


def written(prefix: str) -> None:
    with BundleWriter(prefix) as writer:
        for name in sorted(VALUES):
            writer.add(name, VALUES[name])


def test_bytes_are_tensorflows(tmp_path: Path) -> None:
    written(str(tmp_path / "x"))
    for suffix in (".index", ".data-00000-of-00001"):
        assert (tmp_path / f"x{suffix}").read_bytes() == (GOLDEN / f"tf1{suffix}").read_bytes()


def test_reading() -> None:
    reader = BundleReader(str(GOLDEN / "tf1"))
    assert reader.names() == sorted(VALUES)
    for name, value in VALUES.items():
        np.testing.assert_array_equal(reader.read(name), value)
        assert reader.shape(name) == np.shape(value)


def test_partitioned_variables(tmp_path: Path) -> None:
    reader = BundleReader(str(GOLDEN / "parts"))
    whole = np.arange(30, dtype=np.float32)
    assert reader.names() == ["p"]
    entry = reader.entry("p")
    assert [s.extents[0] for s in entry.slices] == [(0, 4), (4, 3), (7, 3)]
    assert reader.read("p").shape == (10, 3)
    with BundleWriter(str(tmp_path / "x")) as writer:
        for start, n in ((0, 4), (4, 6)):
            rows = whole.reshape(10, 3)[start : start + n]
            writer.add_slice("p", (10, 3), Slice(((start, n), (0, -1))), rows)
    np.testing.assert_array_equal(BundleReader(str(tmp_path / "x")).read("p"), whole.reshape(10, 3))


def test_keys_of_slices_are_those_of_tensorflow() -> None:
    with open(GOLDEN / "parts.index", "rb") as file:
        keys = {k for k, _ in read_table(file.read())}
    assert slice_key("p", Slice(((4, 3), (0, 3)))) in keys


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "uint64", "int8"])
def test_types(dtype: str, tmp_path: Path) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    array = np.arange(5).astype(kind)
    with BundleWriter(str(tmp_path / "x")) as writer:
        writer.add("v", array)
    back = BundleReader(str(tmp_path / "x")).read("v")
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_many_tensors_need_several_blocks(tmp_path: Path) -> None:
    names = [f"layer_{i:05d}/kernel" for i in range(12000)]
    with BundleWriter(str(tmp_path / "x")) as writer:
        for i, name in enumerate(names):
            writer.add(name, np.int32(i))
    reader = BundleReader(str(tmp_path / "x"))
    assert reader.names() == names
    assert reader.read(names[7777]) == 7777


def test_tables(tmp_path: Path) -> None:
    items = [(f"{i:06d}".encode(), bytes([i % 256]) * (i % 50)) for i in range(30000)]
    with open(tmp_path / "t", "wb") as file:
        write_table(file, items)
    assert list(read_table((tmp_path / "t").read_bytes())) == items


def test_an_abandoned_writer_leaves_nothing(tmp_path: Path) -> None:
    written(str(tmp_path / "x"))
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with contextlib.suppress(RuntimeError), BundleWriter(str(tmp_path / "x")) as writer:
        writer.add("other", np.zeros(10))
        raise RuntimeError
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_missing_and_damaged(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        BundleReader(str(tmp_path / "nothing"))
    prefix = str(tmp_path / "x")
    written(prefix)
    with pytest.raises(errors.NotFoundError, match="Key q not found"):
        BundleReader(prefix).read("q")
    data = Path(prefix + ".data-00000-of-00001")
    raw = bytearray(data.read_bytes())
    raw[-3] ^= 1
    data.write_bytes(raw)
    with pytest.raises(errors.DataLossError, match="checksum"):
        BundleReader(prefix).read("w")
    data.unlink()
    with pytest.raises(errors.NotFoundError):
        BundleReader(prefix).read("w")


def test_random_damage_is_an_error_of_ours(tmp_path: Path) -> None:
    prefix = str(tmp_path / "x")
    written(prefix)
    index = Path(prefix + ".index")
    good = index.read_bytes()
    random = np.random.RandomState(0)
    for _ in range(400):
        raw = bytearray(good)
        for _ in range(random.randint(1, 4)):
            raw[random.randint(len(raw))] = random.randint(256)
        index.write_bytes(raw[: random.randint(len(raw))] if random.rand() < 0.3 else raw)
        with contextlib.suppress(errors.OpError):
            reader = BundleReader(prefix)
            for name in reader.names():
                with contextlib.suppress(errors.OpError):
                    reader.read(name)
