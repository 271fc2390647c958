"""Namespaces that have a few names only."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def test_modes() -> None:
    modes = tf.estimator.ModeKeys
    assert (modes.TRAIN, modes.EVAL, modes.PREDICT) == ("train", "eval", "infer")
    with pytest.raises(AttributeError, match="does not have it yet"):
        tf.estimator.Estimator  # noqa: B018


def test_contrib_util() -> None:
    util = tf.contrib.util
    assert util.constant_value(tf.placeholder(tf.float32)) is None
    np.testing.assert_array_equal(util.constant_value(tf.constant([1, 2])), [1, 2])
    made = util.make_tensor_proto([[1.5, 2.5]], shape=[2, 1])
    np.testing.assert_array_equal(util.make_ndarray(made), [[1.5], [2.5]])


def test_an_inner_path_that_is_not_here_is_not_denied() -> None:
    from headrace.api.missing import explain

    text = explain("python.ops", "resources", [])
    assert text.startswith("Headrace does not have tensorflow.python.ops.resources")
