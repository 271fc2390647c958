"""JPEG files.

Pixels as TensorFlow's (tests/golden/make_jpeg.py) with simplejpeg, near them with Pillow; what is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.image import jpeg_turbo as image_turbo
from tests.golden import make_jpeg

GOLDEN = json.loads(Path(make_jpeg.GOLDEN).read_text())
WAYS = dict(make_jpeg.ways())
turbo = pytest.mark.skipif(image_turbo._library() is None, reason="simplejpeg is not installed")


@pytest.fixture
def without_turbo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(image_turbo, "_library", lambda: None)
    yield


def decoded(data: bytes, **attrs: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.image.decode_jpeg(data, **attrs))


@turbo
def test_pixels_are_tensorflows() -> None:
    assert make_jpeg.digests(tf) == GOLDEN


@pytest.mark.parametrize("name", ["444", "420", "gray", "rgb", "cmyk", "progressive"])
def test_sizes_without_turbo(name: str, without_turbo: None) -> None:
    """The same sizes, and errors in the same cases."""
    found = make_jpeg.digests(tf)[name]
    sizes = {key: text and text.split()[0] for key, text in found.items()}
    assert sizes == {key: text and text.split()[0] for key, text in GOLDEN[name].items()}


@turbo
@pytest.mark.parametrize("name", ["444", "422", "420", "gray", "cmyk"])
def test_both_decoders_are_near(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_jpeg.contents(name)
    ours = decoded(data, channels=3).astype(int)
    monkeypatch.setattr(image_turbo, "_library", lambda: None)
    pillows = decoded(data, channels=3).astype(int)
    assert np.abs(ours - pillows).mean() < 2.5


def test_a_result_is_the_users_own() -> None:
    data = make_jpeg.contents("444")
    first, second = decoded(data), decoded(data)
    first[:] = 0
    assert first.flags.writeable and second.any()


@pytest.mark.parametrize("with_turbo", [pytest.param(True, marks=turbo), False])
@pytest.mark.parametrize("name", ["444", "420", "gray", "progressive"])
@pytest.mark.parametrize("part", [0.3, 0.7, 0.99])
def test_files_that_end_too_early(
    name: str, part: float, with_turbo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_turbo:
        monkeypatch.setattr(image_turbo, "_library", lambda: None)
    whole = make_jpeg.contents(name)
    start = whole.index(b"\xff\xda")
    data = whole[: start + int(part * (len(whole) - start))]
    text = f"Invalid JPEG data or crop window, data size {len(data)}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        decoded(data)
    if with_turbo or name != "progressive":  # of which Pillow wants all
        assert decoded(data, try_recover_truncated=True).shape == decoded(whole).shape


@pytest.mark.parametrize("data", [b"\xff\xd8\xff", b"\xff\xd8\xff\xe0" + bytes(50)])
def test_files_that_are_none(data: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid JPEG data"):
        decoded(data)


@turbo
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (8, 8), (9, 200), (1, 17), (16, 15)])
def test_sizes_at_a_smaller_scale(ratio: int, size: tuple[int, int]) -> None:
    """Small pictures have one size at several scales: the decoder may not choose another one."""
    import simplejpeg

    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    data = simplejpeg.encode_jpeg(pixels, 90, "RGB", "444")
    image = decoded(data, ratio=ratio)
    assert image.shape == (-(-size[0] // ratio), -(-size[1] // ratio), 3)
    if image_turbo.decode(data, 3, ratio, True, False, "") is None:
        assert ratio > 1 and min(size) < 9
    if size == (1, 1):  # whatever the scale, it is about the mean
        assert np.abs(image.astype(int) - decoded(data)).max() < 128
