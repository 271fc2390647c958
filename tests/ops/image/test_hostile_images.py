"""Pictures that are damaged or declare sizes that they do not have, as TF 1.15 treats them;
crops.
"""

from __future__ import annotations

import json
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.ops.image.png import read_png, write_png
from tests.golden import make_hostile_images as golden

_FOUND = json.loads((Path(golden.HERE) / "hostile_images.json").read_text())
_IMAGES = sorted((Path(golden.HERE) / "images").rglob("*.jpg"))


def test_damaged_pictures_and_declared_sizes_as_tensorflow() -> None:
    other = []
    for number, (case, want) in enumerate(zip(golden.cases(), _FOUND, strict=True)):
        found = golden.outcome(tf, *case)
        if found != want:
            other.append((number, case[0], found, want))
    assert not other


@pytest.mark.parametrize("path", _IMAGES, ids=lambda p: p.name)
@pytest.mark.parametrize(
    "options", [{}, {"ratio": 2}, {"channels": 3, "fancy_upscaling": False}], ids=str
)
def test_a_crop_is_part_of_the_picture(path: Path, options: dict[str, int]) -> None:
    data = path.read_bytes()
    with tf.Graph().as_default(), tf.Session() as sess:
        try:
            whole = sess.run(tf.image.decode_jpeg(data, **options))
        except tf.errors.InvalidArgumentError:
            return
        height, width, _ = whole.shape
        for y, x, h, w in (
            (0, 0, 1, 1),
            (0, 2, height // 3, 3),
            (height // 2, 0, 2, width),
            (height - 1, 0, 1, 2),
        ):
            crop = sess.run(tf.image.decode_and_crop_jpeg(data, [y, x, h, w], **options))
            np.testing.assert_array_equal(crop, whole[y : y + h, x : x + w])


def test_a_crop_decodes_the_rows_down_to_its_end() -> None:
    """12,000 rows of which 20 are asked for."""
    data = golden.jpeg(12000, 12000)
    with tf.Session() as sess:
        crop = tf.image.decode_and_crop_jpeg(data, [0, 5, 20, 20])
        start = time.process_time()
        assert sess.run(crop).shape == (20, 20, 3)
        assert time.process_time() - start < 1


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
def test_sixteen_bits_with_every_filter(channels: int, kind: int) -> None:
    """Against the definition of the filters, written out."""
    random = np.random.default_rng(kind)
    width, height, step = 5, 4, 2 * channels
    rows = random.integers(0, 256, (height, width * step), dtype=np.uint8)
    above, plain = np.zeros(width * step, np.int64), []
    for row in rows:
        out = np.zeros(width * step, np.int64)
        for i, value in enumerate(row.tolist()):
            a, b = (out[i - step] if i >= step else 0), above[i]
            c = above[i - step] if i >= step else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            out[i] = (value + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        plain.append(out)
        above = out
    raw = b"".join(bytes([kind]) + r.tobytes() for r in rows)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    found = read_png(golden.png(width, height, raw, 16, color))
    want = np.array(plain, np.uint8).view(">u2").reshape(height, width, channels)
    np.testing.assert_array_equal(found, want)


def test_large_sixteen_bit_pictures_do_not_take_a_loop_of_python() -> None:
    pixels = np.random.default_rng(0).integers(0, 65536, (1000, 1000, 3), dtype=np.uint16)
    data = bytearray(write_png(pixels, 1))
    start = time.process_time()
    np.testing.assert_array_equal(read_png(bytes(data)), pixels)
    assert time.process_time() - start < 5


def test_gif_frames_are_counted_before_they_are_decoded() -> None:
    frame = b"\x2c" + struct.pack("<HHHH", 0, 0, 3000, 3000) + b"\0\x02"
    blocks = (b"\xff" + b"\x24" * 255) * 20 + b"\0"
    screen = b"GIF89a" + struct.pack("<HH", 9, 9) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    data = screen + (frame + blocks) * 40 + b";"
    start = time.process_time()
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="Got 40 frames"):
        sess.run(tf.image.decode_png(data))
    assert time.process_time() - start < 2


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
def test_compressed_strings_have_a_limit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.ops.io import decoding

    monkeypatch.setattr(decoding, "MAX_INFLATED", 1000)
    packer = zlib.compressobj(wbits=15 if kind == "ZLIB" else 31)
    data = packer.compress(b"x" * 2000) + packer.flush()
    with tf.Session() as sess, pytest.raises(tf.errors.ResourceExhaustedError):
        sess.run(tf.io.decode_compressed(data, kind))
