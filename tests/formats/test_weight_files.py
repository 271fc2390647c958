"""Weights in checkpoints, .npz and .safetensors: round trips, damaged files, the command."""

from __future__ import annotations

import itertools
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace.cli.main import main
from headrace.formats.weight_files import convert, load_weights, open_weights, save_weights

RNG = np.random.RandomState(0)
WEIGHTS: dict[str, Any] = {
    "layer/kernel": RNG.normal(size=(3, 4)).astype(np.float32),
    "layer/bias": RNG.normal(size=4),
    "step": np.int64(7),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 3), np.float16),
    "bytes": np.arange(5, dtype=np.uint8),
}
ENDINGS = ["", ".npz", ".safetensors"]


def same(found: Any, wanted: Any) -> None:
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        assert found[name].dtype == np.asarray(value).dtype, name
        assert found[name].shape == np.shape(value), name
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize(("first", "second"), itertools.product(ENDINGS, ENDINGS))
def test_every_format_to_every_other(tmp_path: Path, first: str, second: str) -> None:
    a, b = tmp_path / f"a{first}", tmp_path / f"b{second}"
    save_weights(a, WEIGHTS)
    told: list[tuple[str, int, int]] = []
    convert(a, b, lambda *args: told.append(args))
    same(load_weights(b), WEIGHTS)
    assert [t[0] for t in told] == sorted(WEIGHTS)
    assert told[-1][1] == told[-1][2] == sum(np.asarray(v).nbytes for v in WEIGHTS.values())
    assert not [p for p in tmp_path.iterdir() if "tmp" in p.name]


def test_numpy_and_a_saver_read_them(tmp_path: Path) -> None:
    save_weights(tmp_path / "w.npz", WEIGHTS)
    with np.load(tmp_path / "w.npz") as found:
        same(dict(found), WEIGHTS)
    save_weights(tmp_path / "model", {"v": np.float32([1, 2])})
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", [2])
        tf.train.Saver().restore(sess, str(tmp_path / "model"))
        assert sess.run(v).tolist() == [1.0, 2.0]


def test_safetensors_are_those_of_the_library(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    save_weights(tmp_path / "w.safetensors", WEIGHTS)
    same(library.load_file(tmp_path / "w.safetensors"), WEIGHTS)
    library.save_file({k: np.asarray(v) for k, v in WEIGHTS.items()}, tmp_path / "x.safetensors")
    same(load_weights(tmp_path / "x.safetensors"), WEIGHTS)


def test_bfloat16_and_what_a_format_cannot_hold(tmp_path: Path) -> None:
    weights = {"w": np.array([1.5, 2], ml_dtypes.bfloat16)}
    save_weights(tmp_path / "w.safetensors", weights)
    same(load_weights(tmp_path / "w.safetensors"), weights)
    with pytest.raises(TypeError, match="cannot hold bfloat16"):
        save_weights(tmp_path / "w.npz", weights)
    with pytest.raises(TypeError, match="cannot hold complex64"):
        save_weights(tmp_path / "c.safetensors", {"c": np.complex64(1)})


def _header(entries: Any, data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 1 << 62) + b"{}",
        _header([1]),
        _header({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"\0" * 8),
        _header({"w": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 8]}}, b"\0" * 8),
        _header({"w": {"dtype": "F32", "shape": [-2, -1], "data_offsets": [0, 8]}}, b"\0" * 8),
        _header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, b"\0" * 8),
        _header({"w": {"dtype": "X", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8),
        b'\x10\x27\0\0\0\0\0\0' + b"[" * 10_000,
    ],
)  # fmt: skip
def test_damaged_safetensors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError):
        load_weights(path)


def test_damaged_npz(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(tf.errors.DataLossError):
        open_weights(path)
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w.npy", (header % (1 << 40)).ljust(127) + b"\n" + b"\0" * 8)
    with pytest.raises(tf.errors.DataLossError, match="cannot be read"):
        load_weights(path)
    with zipfile.ZipFile(path, "w") as archive:
        import pickle

        archive.writestr("w.npy", b"\x93NUMPY\x01\x00" + pickle.dumps(print))
    with pytest.raises(tf.errors.DataLossError):
        load_weights(path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parent.parent / "golden" / "objects" / "tf1-1"
    target = tmp_path / "w.safetensors"
    assert main(["convert", str(golden), str(target), "--progress"]) == 0
    reader = tf.train.NewCheckpointReader(str(golden))
    name = "net/w/.ATTRIBUTES/VARIABLE_VALUE"
    np.testing.assert_array_equal(load_weights(target)[name], reader.get_tensor(name))
    assert main(["convert", str(tmp_path / "none.npz"), str(target)]) == 1
    assert "none.npz" in capsys.readouterr().err
