"""contrib's optimizers and metrics beyond float32 and reference variables."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_weight_decay_has_the_variables_dtype(dtype: tf.DType, sparse: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(tf.constant([[1.0], [2.0]], dtype))
        used = tf.gather(v, [1]) if sparse else v
        step = tf.contrib.opt.MomentumWOptimizer(0.1, 0.5, 0.0).minimize(tf.reduce_sum(used))
        session.run(tf.global_variables_initializer())
        session.run(step)
        expected = [[1.0], [2.0 * 0.9 - 0.5]] if sparse else [[0.4], [1.3]]
        np.testing.assert_allclose(session.run(v), expected, rtol=2e-3)


def test_adamax_has_one_accumulator() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0])
        optimizer = tf.contrib.opt.AdaMaxOptimizer(0.1)
        optimizer.minimize(tf.reduce_sum(v * v))
        assert optimizer._get_beta_accumulators().name == "beta1_power:0"


@pytest.mark.parametrize("method", ["SLSQP", "L-BFGS-B", "CG"])
def test_scipy_optimizes_float32(method: str) -> None:
    pytest.importorskip("scipy")
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        loss = tf.reduce_sum(tf.square(v - [3.0, 4.0]))
        equal = [v[0] - 1.0] if method == "SLSQP" else []
        interface = tf.contrib.opt.ScipyOptimizerInterface(loss, equalities=equal, method=method)
        session.run(tf.global_variables_initializer())
        interface.minimize(session)
        np.testing.assert_allclose(session.run(v), [1.0 if equal else 3.0, 4.0], atol=1e-3)


@pytest.mark.parametrize("use_resource", [False, True])
def test_concatenation_grows(use_resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", use_resource=use_resource):
            values = tf.placeholder(tf.int32, [None])
            value, update = tf.contrib.metrics.streaming_concat(values)
        session.run(tf.local_variables_initializer())
        for n in range(1, 5):
            session.run(update, {values: range(n)})
        expected = np.concatenate([np.arange(n) for n in range(1, 5)])
        np.testing.assert_array_equal(session.run(value), expected)


def test_a_resource_variable_without_the_check_takes_any_shape() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable(
            "v", initializer=tf.zeros([0, 2]), validate_shape=False, use_resource=True
        )
        rows = tf.placeholder(tf.float32, [None, 2])
        longer = tf.assign(v, tf.concat([v.value(), rows], 0), validate_shape=False)
        session.run(tf.global_variables_initializer())
        for n in (1, 2, 3):
            session.run(longer, {rows: np.ones((n, 2))})
        assert session.run(v).shape == (6, 2)
