"""``tf.image``.

Programs against TensorFlow 1.15's values (tests/golden/image_programs.py), errors, files of images.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.image.png import read_png, write_png
from headrace.ops.image.resize_images import resize_images_v2
from tests.golden import image_programs

PICTURES = Path(__file__).parents[2] / "golden" / "images"
PROGRAMS = image_programs.programs()


@functools.cache
def golden() -> dict[str, Any]:
    with np.load(str(Path(__file__).parents[2] / "golden" / "image_programs.npz")) as f:
        return {k: f[k] for k in f.files}


def run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def picture(name: str) -> bytes:
    return (PICTURES / name).read_bytes()


# programs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", PROGRAMS)
def test_program(key: str) -> None:
    values, shape = image_programs.run(tf, key)
    for i, got in enumerate(values):
        want = golden()[f"{key}|{i}"]
        assert got.shape == want.shape and got.dtype == want.dtype
        # an integer image may differ by one where a float fell on the other side of the cut
        if want.dtype.kind in "iu":
            assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
        else:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    if ":rot" not in key:  # Headrace knows the shape of a known rotation, TensorFlow does not
        assert shape == json.loads(str(golden()["shapes"]))[key]


# errors -------------------------------------------------------------------------------------------

IMAGE = tf.image
BUILD_ERRORS: list[tuple[Any, str]] = [
    (lambda x: IMAGE.random_contrast(x, 0.9, 0.3), "upper must be > lower."),
    (lambda x: IMAGE.random_saturation(x, -0.9, 0.3), "lower must be non-negative."),
    (lambda x: IMAGE.random_hue(x, 0.7), "max_delta must be <= 0.5."),
    (lambda x: IMAGE.random_brightness(x, -1.0), "max_delta must be non-negative."),
    (lambda x: IMAGE.adjust_gamma(x, -1.0), "Gamma should be a non-negative real number."),
    (lambda x: IMAGE.central_crop(x, 1.5), "central_fraction must be within (0, 1]"),
    (lambda x: IMAGE.crop_to_bounding_box(x, 5, 5, 5, 5), "width must be >= target + offset."),
    (lambda x: IMAGE.crop_to_bounding_box(x, -1, 0, 2, 2), "offset_height must be >= 0."),
    (lambda x: IMAGE.pad_to_bounding_box(x, 5, 5, 5, 5), "width must be <= target - offset"),
    (lambda x: IMAGE.resize_image_with_crop_or_pad(x, 0, 5), "target_height must be > 0."),
    (
        lambda x: IMAGE.resize_images(x, [3]),
        "'size' must be a 1-D Tensor of 2 elements: new_height, new_width",
    ),
    (lambda x: IMAGE.resize_images(x, [2.5, 3.0]), "'size' must be a 1-D int32 Tensor"),
    (lambda x: IMAGE.resize_images(x[0], [2, 2]), "'images' must have either 3 or 4 dimensions."),
    (lambda x: IMAGE.resize_images(x, [2, 2], method=9), "Resize method is not implemented."),
    (lambda x: IMAGE.flip_left_right(x[0]), "must be at least three-dimensional."),
    (lambda x: IMAGE.grayscale_to_rgb(x), "Last dimension of a grayscale image should be size 1"),
    (lambda x: IMAGE.total_variation(x[0]), "'images' must be either 3 or 4-dimensional."),
    (lambda x: IMAGE.decode_image("", channels=2), "channels must be in (None, 0, 1, 3, 4)"),
    (lambda x: IMAGE.rgb_to_hsv(x[:, :, :2]), "Dimension must be 3 but is 2"),
    (lambda x: IMAGE.resize_bilinear(x, [2, 2]), "Shape must be rank 4 but is rank 3"),
    (lambda x: IMAGE.encode_png(tf.zeros([2, 2], tf.uint8)), "Shape must be rank 3 but is rank 2"),
]


@pytest.mark.parametrize(("make", "text"), BUILD_ERRORS)
def test_errors_while_building(make: Any, text: str) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [7, 9, 3])
        with pytest.raises(ValueError) as caught:
            make(x)
        assert text in str(caught.value)


INVALID = tf.errors.InvalidArgumentError
RUN_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda: IMAGE.decode_jpeg(b"hello"),
        INVALID,
        "Expected image (JPEG, PNG, or GIF), got unknown format starting with 'hello'",
    ),
    (
        lambda: IMAGE.decode_jpeg(picture("444.jpg")[:200]),
        INVALID,
        "Invalid JPEG data or crop window, data size 200",
    ),
    (
        lambda: IMAGE.decode_jpeg(picture("444.jpg"), channels=4),
        INVALID,
        "channels must be 0, 1, or 3 for JPEG, got 4",
    ),
    (
        lambda: IMAGE.decode_png(picture("444.jpg"), dtype=tf.uint16),
        INVALID,
        "JPEG does not support uint16 output",
    ),
    (lambda: IMAGE.decode_png(picture("rgb.png")[:60]), INVALID, "Invalid PNG"),
    (
        lambda: IMAGE.decode_png(picture("frames.gif")),
        INVALID,
        "Got 3 frames, but animated gifs can only be decoded by",
    ),
    (lambda: IMAGE.decode_bmp(b"BM"), INVALID, "Incomplete bmp content"),
    (
        lambda: IMAGE.decode_bmp(picture("rgb.bmp"), channels=4),
        INVALID,
        "does not match bits per pixel from file 3",
    ),
    (lambda: IMAGE.extract_jpeg_shape(picture("rgb.png")), INVALID, "Invalid JPEG data, size"),
    (
        lambda: IMAGE.decode_and_crop_jpeg(picture("444.jpg"), [3, 5, 200, 3]),
        INVALID,
        "Invalid JPEG data or crop window",
    ),
    (
        lambda: IMAGE.resize_bilinear(tf.zeros([1, 2, 2, 1]), [0, 3]),
        INVALID,
        "output dimensions must be positive",
    ),
    (
        lambda: IMAGE.crop_and_resize(tf.zeros([1, 2, 2, 1]), [[0.0, 0, 1, 1]], [2], [2, 2]),
        tf.errors.OutOfRangeError,
        "box_index has values outside [0, batch_size)",
    ),
    (
        lambda: IMAGE.non_max_suppression([[0.0, 0, 1, 1]], [1.0], 3, iou_threshold=1.5),
        INVALID,
        "iou_threshold must be in [0, 1]",
    ),
    (
        lambda: IMAGE.sample_distorted_bounding_box([10, 10, 3], tf.zeros([1, 0, 4])),
        INVALID,
        "No bounding boxes provided",
    ),
    (
        lambda: IMAGE.encode_jpeg(tf.zeros([2, 2, 2], tf.uint8)),
        INVALID,
        "image must have 1 or 3 channels",
    ),
]


@pytest.mark.parametrize(("make", "error", "text"), RUN_ERRORS)
def test_errors_at_run_time(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        run(make)
    assert text in str(caught.value)


# files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("444.jpg", (10, 13, 3)),
        ("rgb.png", (10, 13, 3)),
        ("rgb.bmp", (10, 13, 3)),
        ("gray.png", (10, 13, 1)),
        ("one.gif", (1, 10, 13, 3)),
        ("frames.gif", (3, 10, 13, 3)),
    ],
)
def test_decode_image(name: str, shape: tuple[int, ...]) -> None:
    image = run(lambda: IMAGE.decode_image(picture(name)))
    assert image.shape == shape and image.dtype == np.uint8
    floats = run(lambda: IMAGE.decode_image(picture(name), dtype=tf.float32))
    np.testing.assert_allclose(floats, image / 255.0, rtol=1e-6)


def test_decode_image_options() -> None:
    assert run(
        lambda: IMAGE.decode_image(picture("frames.gif"), expand_animations=False)
    ).shape == (10, 13, 3)
    assert run(lambda: IMAGE.decode_image(picture("gray.png"), channels=3)).shape == (10, 13, 3)
    wide = run(lambda: IMAGE.decode_image(picture("gray16.png"), dtype=tf.uint16))
    assert wide.max() > 255
    assert run(lambda: IMAGE.decode_image(picture("444.jpg"), dtype=tf.uint16)).dtype == np.uint16
    with pytest.raises(INVALID, match="channels must be 0 or 3 for GIF, got 1"):
        run(lambda: IMAGE.decode_image(picture("one.gif"), channels=1))


def test_frames_are_composed() -> None:
    """A frame that holds only what changed (transparent elsewhere) is drawn over the one before,
    as TF 2 does.
    """
    frames = run(lambda: IMAGE.decode_gif(picture("frames.gif"))).astype(int)
    for i in (1, 2):
        # the palette of a GIF is rough
        assert np.abs(frames[i] - np.roll(frames[0], 4 * i, axis=1)).mean() < 12


def test_static_shapes_of_files() -> None:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        assert IMAGE.decode_jpeg(data, channels=3).shape.as_list() == [None, None, 3]
        assert IMAGE.decode_png(data).shape.as_list() == [None, None, None]
        assert IMAGE.decode_gif(data).shape.as_list() == [None, None, None, 3]
        assert IMAGE.decode_and_crop_jpeg(data, [1, 2, 3, 4], 3).shape.as_list() == [3, 4, 3]


def test_truncated_jpeg_is_recovered() -> None:
    data = picture("444.jpg")
    image = run(lambda: IMAGE.decode_jpeg(data[:-20], try_recover_truncated=True))
    assert image.shape == (10, 13, 3)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_round_trip(kind: Any, channels: int) -> None:
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, np.iinfo(kind).max, (6, 5, channels)).astype(kind)
    got = run(lambda: IMAGE.decode_png(IMAGE.encode_png(pixels), dtype=tf.as_dtype(kind)))
    assert got.dtype == kind and (got == pixels).all()


def test_wide_png_filters() -> None:
    """Rows filtered in each of the five ways."""
    import struct
    import zlib

    rng = np.random.default_rng(4)
    pixels = rng.integers(0, 65535, (5, 4, 3)).astype(np.uint16)
    raw = pixels.astype(">u2").view(np.uint8).reshape(5, -1).astype(int)
    step, rows = 6, []
    for y in range(5):
        left = np.concatenate([np.zeros(step, int), raw[y, :-step]])
        up = raw[y - 1] if y else np.zeros_like(raw[y])
        corner = np.concatenate([np.zeros(step, int), up[:-step]])
        base = left + up - corner
        nearest = np.where(
            (abs(base - left) <= abs(base - up)) & (abs(base - left) <= abs(base - corner)),
            left,
            np.where(abs(base - up) <= abs(base - corner), up, corner),
        )
        guess = [0, left, up, (left + up) // 2, nearest][y]
        rows.append(bytes([y]) + ((raw[y] - guess) % 256).astype(np.uint8).tobytes())
    plain = write_png(pixels)
    body = zlib.compress(b"".join(rows))
    at = plain.index(b"IDAT") - 4
    tail = plain[plain.index(b"IEND") - 4 :]
    chunk = (
        struct.pack(">I", len(body))
        + b"IDAT"
        + body
        + struct.pack(">I", zlib.crc32(b"IDAT" + body))
    )
    assert (read_png(plain[:at] + chunk + tail) == pixels).all()


def test_jpeg_quality_noise() -> None:
    image = image_programs.ONE
    rough = run(lambda: IMAGE.adjust_jpeg_quality(image, 20))
    fine = run(lambda: IMAGE.adjust_jpeg_quality(image, 100))
    assert rough.dtype == np.float32 and rough.shape == image.shape
    assert np.abs(fine - image).mean() < np.abs(rough - image).mean()
    assert run(lambda: IMAGE.random_jpeg_quality(image, 50, 90)).shape == image.shape


# resizing -----------------------------------------------------------------------------------------


def test_second_derivative_of_resize() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(image_programs.BATCH)
        y = tf.reduce_sum(tf.square(IMAGE.resize_bilinear(x, [3, 4])))
        first = tf.gradients(y, x)[0]
        second = tf.gradients(tf.reduce_sum(first), x)[0]
        # the sum of all rows of a constant matrix
        assert session.run(second).shape == image_programs.BATCH.shape
        assert np.isfinite(session.run(second)).all()


def test_resize_of_tf2_has_half_pixel_centres() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    got = run(lambda: resize_images_v2(x, [1, 8]))
    assert got.reshape(-1).tolist() == [0.0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0]
    assert run(lambda: resize_images_v2(x, [1, 2], "nearest")).reshape(-1).tolist() == [1.0, 3.0]


def bilinear(x: Any, size: tuple[int, int], align_corners: bool, half_pixel: bool) -> Any:
    """Pixel by pixel, in float32: columns, then rows."""
    f4, out = np.float32, np.empty((len(x), *size, x.shape[3]), np.float32)

    def neighbours(i: int, n: int, m: int) -> tuple[int, int, Any]:
        scale = f4(n - 1) / f4(m - 1) if align_corners and m > 1 else f4(n) / f4(m)
        at = (f4(i) + f4(0.5)) * scale - f4(0.5) if half_pixel else f4(i) * scale
        return max(int(np.floor(at)), 0), min(int(np.ceil(at)), n - 1), at - np.floor(at)

    for i in range(size[0]):
        top, bottom, dy = neighbours(i, x.shape[1], size[0])
        for j in range(size[1]):
            left, right, dx = neighbours(j, x.shape[2], size[1])
            upper, lower = (
                (low := x[:, y, left].astype(f4)) + (x[:, y, right].astype(f4) - low) * dx
                for y in (top, bottom)
            )
            out[:, i, j] = upper + (lower - upper) * dy
    return out


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((1, 7, 9, 3), (3, 4)),
        ((2, 3, 4, 1), (9, 7)),
        ((3, 40, 5, 2), (2, 11)),
        ((0, 4, 4, 3), (2, 2)),
        ((1, 1, 1, 1), (3, 2)),
    ],
)
def test_bilinear_bits(kind: Any, shape: Any, size: tuple[int, int]) -> None:
    x = (np.random.default_rng(5).random(shape) * 250).astype(kind)
    for align_corners, half_pixel in ((False, False), (True, False), (False, True)):
        got = run(lambda: IMAGE.resize_bilinear(x, size, align_corners, None, half_pixel))  # noqa: B023
        assert got.tobytes() == bilinear(x, size, align_corners, half_pixel).tobytes()


def test_resizing_in_several_threads() -> None:
    """Each has its own memory to work in, whatever sizes come one after the other."""
    from concurrent.futures import ThreadPoolExecutor

    from headrace.kernels.numpy import resample

    rng = np.random.default_rng(6)
    images = [
        rng.integers(0, 256, (1, *s, 3)).astype(np.uint8)
        for s in ((50, 40), (64, 64), (50, 40), (200, 300))
    ]
    wanted = [resample.bilinear(x, (32, 24), False, True) for x in images]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda i: resample.bilinear(images[i % 4], (32, 24), False, True), range(200)
        )
        for i, got in enumerate(found):
            assert got.tobytes() == wanted[i % 4].tobytes()


def test_gradient_of_an_integer_image_stops() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.uint8, [1, 4, 4, 1])
        y = IMAGE.resize_bilinear(x, [2, 2])
        assert tf.gradients(y, x) == [None]


def test_every_used_name_is_there() -> None:
    missing = [n for n in tf.image.__all__ if not callable(getattr(tf.image, n))]
    assert not missing
    assert tf.image.ResizeMethod.BICUBIC == 2
