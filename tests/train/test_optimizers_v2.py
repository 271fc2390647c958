"""TF 2's optimizers against TensorFlow 1.15's ``tf.keras.optimizers`` (OptimizerV2), eagerly and in
functions.

The programs are in golden/optimizers_v2_programs.py, which also makes TensorFlow's numbers
(golden/optimizers_v2.json).
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf1
from headrace.api import v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401
from tests.golden import optimizers_v2_programs as programs

K = tf.optimizers
S = K.schedules

OPTIMIZERS: dict[str, Callable[[], Any]] = programs.optimizers(tf)
with open(os.path.join(os.path.dirname(programs.__file__), "optimizers_v2.json")) as _file:
    #: v, w after the dense program; v after the sparse one; number of weights.
    GOLDEN: dict[str, tuple[list[float], list[float], list[float], int]] = json.load(_file)

start = functools.partial(programs.start, tf)
dense_step = functools.partial(programs.dense_step, tf)
sparse_step = functools.partial(programs.sparse_step, tf)


def test_tables_agree() -> None:
    assert list(OPTIMIZERS) == list(GOLDEN)


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dense(name: str, in_function: bool) -> None:
    opt = OPTIMIZERS[name]()
    v, w = start()
    step = tf.function(dense_step) if in_function else dense_step
    for _ in range(4):
        step(opt, v, w)
    want_v, want_w, _, weights = GOLDEN[name]
    np.testing.assert_allclose(v.numpy().reshape(-1), want_v, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(w.numpy(), want_w, rtol=1e-5, atol=2e-6)
    assert int(opt.iterations) == 4
    assert len(opt.weights) == weights


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse(name: str, in_function: bool) -> None:
    opt = OPTIMIZERS[name]()
    v, _ = start()
    step = tf.function(sparse_step) if in_function else sparse_step
    for _ in range(4):
        step(opt, v)
    np.testing.assert_allclose(v.numpy().reshape(-1), GOLDEN[name][2], rtol=1e-5, atol=2e-6)


def test_minimize_and_the_learning_rate() -> None:
    opt, v = K.Adam(), tf.Variable(3.0)
    opt.minimize(lambda: v * v, [v])
    assert v.numpy() == pytest.approx(2.999, rel=1e-6)
    assert opt.get_slot(v, "m").numpy() == pytest.approx(0.6, rel=1e-5)
    opt.lr = 0.5
    assert opt.learning_rate.numpy() == opt.lr.numpy() == 0.5
    opt.minimize(lambda: v * v, lambda: [v])
    assert v.numpy() == pytest.approx(2.4990063, rel=1e-6)
    opt.learning_rate.assign(0.0)
    opt.minimize(lambda: v * v, [v])
    assert v.numpy() == pytest.approx(2.4990063, rel=1e-6)
    with tf.GradientTape() as tape:
        loss = v * v
    opt.learning_rate = 0.1
    opt.minimize(loss, [v], tape=tape)
    assert v.numpy() < 2.45
    with pytest.raises(ValueError, match=r"`tape` is required when a `Tensor` loss is passed"):
        opt.minimize(loss, [v])


def test_clipping() -> None:
    v = tf.Variable([3.0, 4.0])
    K.SGD(1.0, clipnorm=1.0).apply_gradients([(tf.constant([3.0, 4.0]), v)])
    np.testing.assert_allclose(v.numpy(), [2.4, 3.2], rtol=1e-6)
    K.SGD(1.0, clipvalue=0.5).apply_gradients([(tf.constant([3.0, -4.0]), v)])
    np.testing.assert_allclose(v.numpy(), [1.9, 3.7], rtol=1e-6)
    K.SGD(1.0, global_clipnorm=1.0).apply_gradients([(tf.constant([3.0, 4.0]), v)])
    np.testing.assert_allclose(v.numpy(), [1.3, 2.9], rtol=1e-6)


def test_constraint() -> None:
    v = tf.Variable([1.0, -1.0], constraint=lambda x: tf.maximum(x, 0.0))
    K.SGD(0.1).apply_gradients([(tf.constant([1.0, 1.0]), v)])
    np.testing.assert_allclose(v.numpy(), [0.9, 0.0], rtol=1e-6)


def test_weights_and_config() -> None:
    opt, v = K.Adam(0.01, epsilon=1e-5), tf.Variable([1.0, 2.0])
    opt.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    other, w = K.Adam.from_config(opt.get_config()), tf.Variable(v)
    assert other.get_config() == {
        "name": "Adam",
        "learning_rate": 0.01,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "decay": 0.0,
        "epsilon": 1e-5,
        "amsgrad": False,
    }
    other.apply_gradients([(tf.constant([5.0, 5.0]), w)])
    w.assign(v)
    other.set_weights(opt.get_weights())
    for o, x in ((opt, v), (other, w)):
        o.apply_gradients([(tf.constant([0.5, -0.5]), x)])
    assert v.numpy().tolist() == w.numpy().tolist()
    with pytest.raises(ValueError, match=r"weight list of length"):
        opt.set_weights([1])
    scheduled = K.SGD(S.ExponentialDecay(0.1, 10, 0.5))
    again = K.SGD.from_config(scheduled.get_config())
    assert float(again.learning_rate(10)) == pytest.approx(0.05)


def test_mistakes() -> None:
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"No gradients provided for any variable"):
        K.SGD().apply_gradients([(None, v)])
    with pytest.raises(TypeError, match=r"Unexpected keyword argument passed to optimizer"):
        K.SGD(bad=1)
    with pytest.raises(ValueError, match=r"`momentum` must be between"):
        K.SGD(0.1, momentum=2.0)
    with pytest.raises(ValueError, match=r"length of boundaries should be 1 less"):
        S.PiecewiseConstantDecay([1], [0.1])


def test_cosine_schedules() -> None:
    decay = S.CosineDecay(0.1, 10, alpha=0.1)
    assert [round(float(decay(s)), 6) for s in (0, 5, 10, 20)] == [0.1, 0.055, 0.01, 0.01]
    restarts = S.CosineDecayRestarts(0.1, 10)
    assert [round(float(restarts(s)), 5) for s in (0, 5, 10, 20, 29)] == [
        0.1,
        0.05,
        0.1,
        0.05,
        0.00062,
    ]


# TF 1's optimizers, eagerly ---------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf1.train.GradientDescentOptimizer(0.1),
        lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf1.train.AdamOptimizer(0.1),
        lambda: tf1.train.RMSPropOptimizer(0.01),
        lambda: tf1.train.AdagradOptimizer(0.1),
        lambda: tf1.train.AdadeltaOptimizer(0.1),
        lambda: tf1.train.FtrlOptimizer(0.1),
    ],
)
def test_v1_optimizers_give_the_sessions_numbers(make: Callable[[], Any], sparse: bool) -> None:
    def loss(v: Any, w: Any) -> Any:
        if sparse:
            return tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [0, 2, 0])))
        return tf.reduce_sum(tf.square(tf.matmul(v, w[:, None]))) + tf.reduce_sum(v * v)

    v, w = start()
    opt, step = make(), tf.Variable(0, dtype=tf.int64)
    for _ in range(3):
        assert opt.minimize(lambda: loss(v, w), global_step=step) is None
    with tf.Graph().as_default(), tf1.Session() as session:
        gv, gw = start()
        train = make().minimize(loss(gv, gw), var_list=[gv] if sparse else [gv, gw])
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        want = session.run([gv, gw])
    np.testing.assert_allclose(v.numpy(), want[0], rtol=1e-6)
    np.testing.assert_allclose(w.numpy(), want[1], rtol=1e-6)
    assert int(step) == 3


def test_v1_optimizers_want_a_function() -> None:
    opt, v = tf1.train.AdamOptimizer(0.1), tf.Variable(2.0)
    with pytest.raises(RuntimeError, match=r"should be a function when eager execution is enabled"):
        opt.minimize(v * v)
    with tf.GradientTape() as tape:
        y = v * v
    opt.apply_gradients(zip(tape.gradient(y, [v]), [v]))
    assert v.numpy() == pytest.approx(1.9, rel=1e-5)
    assert opt.get_slot(v, "m").numpy() == pytest.approx(0.4, rel=1e-5)
    assert sorted(x.name for x in opt.variables()) == [
        "Variable/Adam:0",
        "Variable/Adam_1:0",
        "beta1_power:0",
        "beta2_power:0",
    ]
