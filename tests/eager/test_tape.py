"""``tf.GradientTape``, ``custom_gradient``, ``ForwardAccumulator``: as in TensorFlow 2.21."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from headrace.api import v2 as tf
from headrace.api.contrib import eager as tfe
from headrace.eager.tape_record import ACTIVE, TAPES
from tests.eager_fixture import v2_behavior  # noqa: F401


def test_gradient() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x * tf.sin(x))
    want = 2 * x * tf.sin(x) + x * x * tf.cos(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), want.numpy(), rtol=1e-6)
    with pytest.raises(
        RuntimeError, match=r"A non-persistent GradientTape can only be used to compute one set"
    ):
        tape.gradient(y, x)


def test_structures_of_sources_and_targets() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        a, b = x * y, x * x
    got = tape.gradient({"a": a, "b": b}, {"x": x, "y": [y]}, {"a": tf.constant(10.0), "b": None})
    assert float(got["x"]) == 34.0
    assert float(got["y"][0]) == 20.0


def test_higher_orders() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = x**4
            dy = first.gradient(y, x)
        ddy = second.gradient(dy, x)
    assert [float(dy), float(ddy), float(third.gradient(ddy, x))] == [32, 48, 48]


def test_persistent() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert float(tape.gradient(z, x)) == 108.0
    assert float(tape.gradient(y, x)) == 6.0
    assert float(tape.gradient(z, y)) == 18.0


def test_unconnected() -> None:
    x, other = tf.constant([1.0, 2.0]), tf.Variable([[1.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.constant(1.0)
    assert tape.gradient(y, x) is None
    zero = tape.gradient(y, [x, other], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert [z.numpy().tolist() for z in zero] == [[0, 0], [[0]]]
    assert tape.gradient(x, x, unconnected_gradients="zero").numpy().tolist() == [1, 1]


def test_integers_and_stopped_gradients() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stop_gradient(x) * x
        n = tf.cast(x, tf.int32)
    assert float(tape.gradient(y, x)) == 3.0
    assert tape.gradient(n, x) is None


def test_variables_are_watched() -> None:
    v, w = tf.Variable(2.0), tf.Variable(5.0, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v * w
    assert float(tape.gradient(y, v)) == 20.0
    assert tape.gradient(y, w) is None
    assert [id(x) for x in tape.watched_variables()] == [id(v)]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    assert tape.gradient(y, v) is None
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = w * w
    assert float(tape.gradient(y, w)) == 10.0


def test_a_write_does_not_reach_what_was_recorded() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
        v.assign_add([10.0, 10.0])
    assert tape.gradient(y, v).numpy().tolist() == [2, 4]


def test_gathered_rows_give_slices() -> None:
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.embedding_lookup(v, [0, 2, 0])
        z = y + tf.gather(v, [1, 1, 1])
    got = tape.gradient(y, v)
    assert isinstance(got, tf.IndexedSlices)
    assert got.indices.numpy().tolist() == [0, 2, 0]
    assert tf.convert_to_tensor(got).numpy().tolist() == [[2, 2], [0, 0], [1, 1], [0, 0]]
    both = tape.gradient(z, v)
    assert tf.convert_to_tensor(both).numpy()[:, 0].tolist() == [2, 3, 1, 0]


def test_stop_recording_and_reset() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = x * 5.0
        w = y + z
    assert float(tape.gradient(w, x)) == 6.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * 3.0 + y
    assert float(tape.gradient(z, x)) == 3.0


def test_misuse() -> None:
    tape = tf.GradientTape()
    with tape, pytest.raises(ValueError, match=r"re-enter an already-active tape"):
        tape.__enter__()
    with tape, pytest.raises(ValueError, match=r"not tf.Tensor or tf.Variable"):
        tape.watch(3.0)
    assert TAPES.items == []
    assert ACTIVE[0] == 0


def test_an_exception_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError), tf.GradientTape():
        1 / 0  # noqa: B018
    assert ACTIVE[0] == 0


def test_a_tape_frees_what_it_kept() -> None:
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        kept = weakref.ref(y)
        z = y * 3.0
    tape.gradient(z, x)
    del y, z, tape
    gc.collect()
    assert kept() is None


def test_jacobians() -> None:
    x, w = tf.random.normal([3, 2]), tf.random.normal([2, 4])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.tanh(x @ w)
    full = tape.jacobian(y, x).numpy()
    assert full.shape == (3, 4, 3, 2)
    by_hand = np.einsum("bi,ji->bij", 1 - y.numpy() ** 2, w.numpy())
    np.testing.assert_allclose(np.einsum("bibj->bij", full), by_hand, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), by_hand, rtol=1e-5, atol=1e-6)
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.jacobian(y, [v])[0].numpy().tolist() == [[2, 0], [0, 4]]


# gradients of one's own ---------------------------------------------------------------------------


@tf.custom_gradient
def log1pexp(x: Any) -> Any:
    e = tf.exp(x)

    def grad(upstream: Any) -> Any:
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def test_custom_gradient() -> None:
    x = tf.constant(1.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = log1pexp(x)
        g = tape.gradient(y, x)
    s = 1 / (1 + np.exp(-1.0))
    assert float(g) == pytest.approx(s, rel=1e-6)
    assert float(outer.gradient(g, x)) == pytest.approx(s * (1 - s), rel=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(tf.constant(100.0) * x)
    assert float(tape.gradient(y, x)) == pytest.approx(100.0)


def test_custom_gradient_with_variables_and_keywords() -> None:
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x: Any, factor: float = 1.0) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            assert [id(u) for u in variables] == [id(v)]
            return dy * 100.0, [dy * factor]

        return x * v * factor, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, factor=2.0)
    assert float(y) == 12.0
    assert [float(g) for g in tape.gradient(y, [x, v])] == [100.0, 2.0]


def test_pass_through() -> None:
    x = tf.constant(1.7)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.grad_pass_through(tf.round)(x)
    assert [float(y), float(tape.gradient(y, x))] == [2.0, 1.0]


def test_recompute_grad() -> None:
    v = tf.Variable([1.0, 2.0])
    calls: list[int] = []

    @tf.recompute_grad
    def f(x: Any) -> Any:
        calls.append(1)
        return tf.sin(x) * v

    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dx, dv = tape.gradient(y, [x, v])
    assert len(calls) == 2
    assert float(dx) == pytest.approx(3 * np.cos(0.5), rel=1e-6)
    np.testing.assert_allclose(dv.numpy(), [np.sin(0.5)] * 2, rtol=1e-6)


# in functions -------------------------------------------------------------------------------------


def test_tapes_in_functions() -> None:
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x * x * v)
            dx, dv = tape.gradient(y, [x, v])
        return dx, dv, outer.gradient(dx, x)

    dx, dv, ddx = f(tf.constant([3.0, 4.0]))
    assert dx.numpy().tolist() == [6, 16]
    assert dv.numpy().tolist() == [9, 16]
    assert ddx.numpy().tolist() == [2, 4]


def test_tapes_around_functions() -> None:
    v = tf.Variable(2.0)
    f = tf.function(lambda x: x * x * v)
    x = tf.constant(3.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * 2.0
        assert [float(g) for g in tape.gradient(y, [x, v])] == [24.0, 18.0]


# other forms --------------------------------------------------------------------------------------


def test_forward_accumulator() -> None:
    x, w = tf.constant([1.0, 2.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    t = tf.constant([0.5, -1.0])
    with tf.autodiff.ForwardAccumulator(x, t) as acc:
        y = tf.linalg.matvec(w, tf.sin(x)) * x
        z = tf.constant(1.0)
    s, c = np.sin([1.0, 2.0]), np.cos([1.0, 2.0])
    want = w.numpy() @ (c * t.numpy()) * x.numpy() + w.numpy() @ s * t.numpy()
    np.testing.assert_allclose(acc.jvp(y).numpy(), want, rtol=1e-5)
    assert acc.jvp(z) is None
    with tf.autodiff.ForwardAccumulator(w, tf.ones([2, 2])) as acc:
        y = tf.reduce_sum(w * w)
    assert float(acc.jvp(y)) == 20.0
    assert ACTIVE[0] == 0


def test_contrib_eager() -> None:
    f = tfe.gradients_function(lambda x, y: x * x * y)
    assert [float(g) for g in f(3.0, 2.0)] == [12.0, 9.0]
    assert [float(g) for g in tfe.gradients_function(lambda x, y: x * y, params="y")(3.0, 2.0)] == [
        3.0
    ]
    value, grads = tfe.value_and_gradients_function(lambda x: x * x)(3.0)
    assert (float(value), float(grads[0])) == (9.0, 6.0)
    v = tfe.Variable(3.0)
    ((grad, variable),) = tfe.implicit_gradients(lambda: v * v)()
    assert float(grad) == 6.0
    assert variable is v
    with pytest.raises(ValueError, match=r"No trainable variables were accessed"):
        tfe.implicit_gradients(lambda: tf.constant(1.0))()
