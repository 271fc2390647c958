"""Activations of NaN, infinities and zeros are TensorFlow's, however they are computed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from tests.golden import activation_programs

WANTED = json.loads(
    (Path(__file__).parents[2] / "golden" / "activations.json").read_text(encoding="utf-8")
)
NAMES = list(activation_programs.activations(tf))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("way", activation_programs.WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str, way: str, exact: bool) -> None:
    got = activation_programs.run_one(tf, way, name, {"exact": exact})
    want = [float(v) for v in WANTED[f"{name}, {way}"]]
    np.testing.assert_allclose(got, want, 2e-5, 1e-7)
    if name in ("relu", "relu6") and "alone" in way:
        assert [math.copysign(1, v) for v in got] == [math.copysign(1, v) for v in want]


def test_nan_in_training_is_not_hidden() -> None:
    """A diverged convolutional network has a loss that is NaN."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 4])
    h = x
    for depth in (4, 16):
        w = tf.Variable(tf.random_uniform([3, 3, depth, 16], -0.1, 0.1, seed=depth))
        h = tf.nn.bias_add(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"), tf.Variable(tf.zeros([16])))
        h = tf.nn.relu(h)
    loss = tf.reduce_mean(tf.square(h))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    fed = np.ones((4, 8, 8, 4), np.float32)
    assert np.isfinite(s.run([loss, step], {x: fed})[0])
    fed[0, 0, 0, 0] = np.nan
    assert np.isnan(s.run([loss, step], {x: fed})[0])
    assert np.isnan(s.run(loss, {x: np.ones_like(fed)}))  # the weights are NaN now


def test_minus_infinity_in_a_hidden_layer_of_a_training_step() -> None:
    x = tf.placeholder(tf.float32, [None, 128])
    start = np.zeros(256, np.float32)
    start[:3] = -np.inf
    w = [tf.Variable(np.full(s, 0.01, np.float32)) for s in ((128, 256), (256, 256), (256, 10))]
    h = tf.nn.relu(tf.matmul(x, w[0]) + tf.Variable(start, trainable=False))
    h = tf.nn.relu(tf.matmul(h, w[1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(h, w[2])))
    step = tf.train.GradientDescentOptimizer(1e-4).minimize(loss, var_list=w)
    results = {}
    for executor in ("numpy", "reference"):
        s = tf.Session(executor=executor)
        s.run(tf.global_variables_initializer())
        fed = np.ones((64, 128), np.float32)
        results[executor] = [s.run([loss, step], {x: fed})[0] for _ in range(12)]
    assert np.isfinite(results["numpy"]).all()
    np.testing.assert_allclose(results["numpy"], results["reference"], 1e-4)
