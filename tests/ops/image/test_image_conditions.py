"""What the image functions require of sizes and offsets, known or not (texts of TF 1.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf

CROPS = [
    ((-1, 0, 3, 3), "offset_height must be >= 0"),
    ((0, -1, 3, 3), "offset_width must be >= 0"),
    ((0, 0, 0, 3), "target_height must be > 0"),
    ((0, 0, 3, 0), "target_width must be > 0"),
    ((2, 0, 3, 3), "height must be >= target + offset"),
    ((0, 2, 3, 3), "width must be >= target + offset"),
]
PADS = [
    ((-1, 0, 5, 5), "offset_height must be >= 0"),
    ((0, -1, 5, 5), "offset_width must be >= 0"),
    ((2, 0, 5, 5), "height must be <= target - offset"),
    ((0, 2, 5, 5), "width must be <= target - offset"),
]
RESIZES = [((0, 3), "target_height must be > 0"), ((3, 0), "target_width must be > 0")]
BAD = [
    *((tf.image.crop_to_bounding_box, *c) for c in CROPS),
    *((tf.image.pad_to_bounding_box, *c) for c in PADS),
    *((tf.image.resize_image_with_crop_or_pad, *c) for c in RESIZES),
]


@pytest.mark.parametrize(("function", "arguments", "message"), BAD)
def test_bad_arguments(function: Callable[..., Any], arguments: Any, message: str) -> None:
    image = np.zeros([4, 4, 1], np.float32)
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        function(image, *arguments)
    fed = tf.placeholder(tf.float32)
    numbers = [tf.placeholder(tf.int32, []) for _ in arguments]
    out = function(fed, *numbers)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"),
    ):
        sess.run(out, {fed: image, **dict(zip(numbers, arguments))})


@pytest.mark.parametrize("function", sorted({b[0] for b in BAD}, key=lambda f: f.__name__))
def test_an_empty_image(function: Callable[..., Any]) -> None:
    empty = np.zeros([0, 2, 2], np.float32)
    arguments = (1, 1) if function is tf.image.resize_image_with_crop_or_pad else (0, 0, 1, 1)
    with pytest.raises(ValueError, match=r"all dims of 'image\.shape' must be > 0"):
        function(empty, *arguments)
    fed = tf.placeholder(tf.float32)
    out = function(fed, *arguments)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"),
    ):
        sess.run(out, {fed: empty})


def test_good_arguments_that_are_fed() -> None:
    image = np.arange(16.0, dtype=np.float32).reshape(4, 4, 1)
    fed = tf.placeholder(tf.float32)
    numbers = [tf.placeholder(tf.int32, []) for _ in range(4)]
    out = tf.image.crop_to_bounding_box(fed, *numbers)
    with tf.Session() as sess:
        got = sess.run(out, {fed: image, **dict(zip(numbers, (1, 2, 3, 2)))})
    np.testing.assert_array_equal(got, image[1:4, 2:4])


def test_a_negative_gamma() -> None:
    image = tf.ones([2, 2, 3])
    with pytest.raises(ValueError, match="Gamma should be a non-negative real number"):
        tf.image.adjust_gamma(image, -1)
    out = tf.image.adjust_gamma(image, tf.constant(-1.0))
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="Gamma should be a non-negative"),
    ):
        sess.run(out)


def test_a_vector_is_no_gray_image() -> None:
    with pytest.raises(ValueError, match="A grayscale image must be at least two-dimensional"):
        tf.image.grayscale_to_rgb(tf.zeros([2]))


@pytest.mark.parametrize(
    ("boxes", "scores", "message"),
    [
        ([1, 3], [1], "Dimension must be 4 but is 3"),
        ([1, 4], [2], "Dimensions must be equal, but are 1 and 2"),
        ([1, 4], [1, 1], "Shape must be rank 1 but is rank 2"),
    ],
)
def test_boxes_and_scores_fit(boxes: list[int], scores: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.image.non_max_suppression(tf.zeros(boxes), tf.zeros(scores), 3, 0.5)
