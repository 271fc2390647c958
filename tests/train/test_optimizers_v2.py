"""TF 2's optimizers against TensorFlow 1.15's ``tf.keras.optimizers`` (OptimizerV2), eagerly and in functions.

The numbers are those that TensorFlow 1.15 with ``tf.compat.v2.enable_v2_behavior()`` gives for the programs below: v and w
after four steps on a dense loss, v after four steps on a loss of some of its rows, and how many weights the optimizer has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf1
from headrace.api import v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401

K = tf.optimizers
S = K.schedules

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: K.SGD(0.1),
    "momentum": lambda: K.SGD(0.1, 0.9),
    "nesterov": lambda: K.SGD(0.1, 0.9, nesterov=True),
    "Adam": lambda: K.Adam(0.1),
    "amsgrad": lambda: K.Adam(0.1, amsgrad=True),
    "RMSprop": lambda: K.RMSprop(0.01),
    "RMSprop momentum": lambda: K.RMSprop(0.01, momentum=0.5),
    "RMSprop centered": lambda: K.RMSprop(0.01, centered=True),
    "RMSprop both": lambda: K.RMSprop(0.01, momentum=0.5, centered=True),
    "Adagrad": lambda: K.Adagrad(0.1),
    "Adadelta": lambda: K.Adadelta(0.1),
    "Adamax": lambda: K.Adamax(0.1),
    "Nadam": lambda: K.Nadam(0.1),
    "Ftrl": lambda: K.Ftrl(0.1),
    "Ftrl shrinkage": lambda: K.Ftrl(
        0.1, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.1
    ),
    "ExponentialDecay": lambda: K.SGD(S.ExponentialDecay(0.1, 2, 0.5)),
    "PiecewiseConstantDecay": lambda: K.SGD(S.PiecewiseConstantDecay([1, 2], [0.1, 0.05, 0.01])),
    "PolynomialDecay": lambda: K.SGD(S.PolynomialDecay(0.1, 3)),
    "InverseTimeDecay": lambda: K.SGD(S.InverseTimeDecay(0.1, 2, 0.5)),
    "decay": lambda: K.Adam(0.1, decay=0.1),
    "function": lambda: K.SGD(lambda: 0.1),
}

#: v, w after the dense program; v after the sparse one; number of weights.
GOLDEN: dict[str, tuple[list[float], list[float], list[float], int]] = {
    "SGD": (
        [0.0579, 0.16489, 0.31719, 0.44745, 0.57648, 0.73],
        [0.45436, -0.34365],
        [0.01296, 0.05616, 0.76667, 1.1, 0.58709, 0.72363],
        1,
    ),
    "momentum": (
        [0.00491, -0.16115, -0.22634, -0.35221, -0.4576, -0.54327],
        [0.36777, -0.42965],
        [-0.081, -0.351, 0.76667, 1.1, -0.44233, -0.54519],
        3,
    ),
    "nesterov": (
        [-0.01718, -0.15406, -0.24063, -0.36992, -0.46407, -0.58579],
        [0.39532, -0.38768],
        [-0.03501, -0.15171, 0.76667, 1.1, -0.46558, -0.57385],
        3,
    ),
    "Adam": (
        [0.04075, 0.04816, 0.37601, 0.7024, 1.03761, 1.36775],
        [0.46093, -0.30685],
        [-0.04902, 0.05049, 0.76667, 1.1, 1.03567, 1.36843],
        5,
    ),
    "amsgrad": (
        [0.04075, 0.04816, 0.37601, 0.7024, 1.03761, 1.36775],
        [0.46093, -0.30685],
        [-0.04902, 0.05049, 0.76667, 1.1, 1.03567, 1.36843],
        7,
    ),
    "RMSprop": (
        [0.04807, 0.34509, 0.6788, 1.0099, 1.34445, 1.67613],
        [0.45064, -0.34071],
        [0.02728, 0.34581, 0.76667, 1.1, 1.34345, 1.6766],
        3,
    ),
    "RMSprop momentum": (
        [0.03455, 0.29285, 0.62697, 0.95597, 1.29173, 1.62181],
        [0.43802, -0.34786],
        [-0.00777, 0.29431, 0.76667, 1.1, 1.28979, 1.62278],
        5,
    ),
    "RMSprop centered": (
        [0.04655, 0.33443, 0.66804, 0.99862, 1.33339, 1.66472],
        [0.44983, -0.34035],
        [0.02204, 0.3353, 0.76667, 1.1, 1.33219, 1.66528],
        5,
    ),
    "RMSprop both": (
        [0.03402, 0.27784, 0.61186, 0.93981, 1.27603, 1.60541],
        [0.43806, -0.3473],
        [-0.0125, 0.27962, 0.76667, 1.1, 1.2737, 1.60659],
        7,
    ),
    "Adagrad": (
        [0.0328, 0.19851, 0.51593, 0.83436, 1.16949, 1.49517],
        [0.45063, -0.33565],
        [0.00025, 0.1951, 0.76667, 1.1, 1.16582, 1.49685],
        3,
    ),
    "Adadelta": (
        [0.09943, 0.43276, 0.76609, 1.09943, 1.43276, 1.76609],
        [0.49943, -0.30057],
        [0.09943, 0.43276, 0.76667, 1.1, 1.43276, 1.76609],
        5,
    ),
    "Adamax": (
        [0.03783, 0.09229, 0.42387, 0.71718, 1.07146, 1.37496],
        [0.44998, -0.32077],
        [-0.0512, 0.10324, 0.76667, 1.1, 1.05493, 1.38413],
        5,
    ),
    "Nadam": (
        [0.02709, 0.1486, 0.4663, 0.78369, 1.11922, 1.44433],
        [0.44877, -0.33203],
        [-0.00449, 0.15098, 0.76667, 1.1, 1.11517, 1.44606],
        6,
    ),
    "Ftrl": (
        [0.00416, 0.10426, 0.38645, 0.6892, 1.03202, 1.33941],
        [0.25091, -0.18553],
        [-0.00066, 0.13981, 0.76667, 1.1, 1.01823, 1.34677],
        5,
    ),
    "Ftrl shrinkage": (
        [0.0, 0.09175, 0.36558, 0.66569, 1.00809, 1.31357],
        [0.22225, -0.16508],
        [-0.00045, 0.1314, 0.76667, 1.1, 0.99344, 1.3213],
        5,
    ),
    "ExponentialDecay": (
        [0.07229, 0.23811, 0.44165, 0.63008, 0.811, 1.02204],
        [0.45297, -0.34816],
        [0.02956, 0.12807, 0.76667, 1.1, 0.8234, 1.01489],
        1,
    ),
    "PiecewiseConstantDecay": (
        [0.07189, 0.23322, 0.43461, 0.61854, 0.79733, 1.00387],
        [0.45537, -0.34451],
        [0.02765, 0.11981, 0.76667, 1.1, 0.80909, 0.99725],
        1,
    ),
    "PolynomialDecay": (
        [0.07798, 0.27078, 0.49581, 0.71062, 0.91363, 1.15046],
        [0.45171, -0.35119],
        [0.0381, 0.1651, 0.76667, 1.1, 0.92714, 1.14275],
        1,
    ),
    "InverseTimeDecay": (
        [0.06746, 0.21184, 0.3976, 0.56497, 0.72774, 0.9181],
        [0.4538, -0.34603],
        [0.02308, 0.10002, 0.76667, 1.1, 0.73937, 0.91132],
        1,
    ),
    "decay": (
        [0.03848, 0.09224, 0.42258, 0.75049, 1.08552, 1.41622],
        [0.45129, -0.32159],
        [-0.05301, 0.09427, 0.76667, 1.1, 1.08389, 1.41681],
        5,
    ),
    "function": (
        [0.0579, 0.16489, 0.31719, 0.44745, 0.57648, 0.73],
        [0.45436, -0.34365],
        [0.01296, 0.05616, 0.76667, 1.1, 0.58709, 0.72363],
        1,
    ),
}


def start() -> tuple[Any, Any]:
    return tf.Variable(np.arange(6, dtype="f").reshape(3, 2) / 3 + 0.1, name="v"), tf.Variable(
        [0.5, -0.3], name="w"
    )


def dense_step(opt: Any, v: Any, w: Any) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(v, w[:, None]))) + tf.reduce_sum(v * v)
    opt.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))


def sparse_step(opt: Any, v: Any) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [0, 2, 0])))
    opt.apply_gradients([(tape.gradient(loss, v), v)])


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
    np.testing.assert_allclose(v.numpy().reshape(-1), want_v, atol=2e-5)
    np.testing.assert_allclose(w.numpy(), want_w, atol=2e-5)
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
    np.testing.assert_allclose(v.numpy().reshape(-1), GOLDEN[name][2], atol=2e-5)


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
        "name": "Adam", "learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "decay": 0.0, "epsilon": 1e-5,
        "amsgrad": False,
    }  # fmt: skip
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


# TF 1's optimizers, eagerly ---------------------------------------------------------------------------


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
    assert sorted(x.name for x in opt.variables()) == ["Variable/Adam:0", "Variable/Adam_1:0", "beta1_power:0", "beta2_power:0"]  # fmt: skip
