"""Small steps between the products of a bound training step, as native functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.kernels.native.llvm_library import status, why_not

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=status()),
    pytest.mark.skipif(accel.library() is None, reason=accel.status()),
]


class Coder:
    """A variational autoencoder: large products at both ends, small steps between them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)

        def dense(x: Any, wide: int, out: int) -> Any:
            weights = tf.Variable(rng.normal(0, 0.05, (wide, out)).astype(np.float32))
            return tf.matmul(x, weights) + tf.Variable(tf.zeros([out]))

        with tf.Graph().as_default() as graph:
            tf.set_random_seed(1)
            self.x = tf.placeholder(tf.float32, [None, 300])
            h = tf.tanh(dense(self.x, 300, 400))
            mean, spread = dense(h, 400, 20), dense(h, 400, 20)
            self.z = mean + tf.sqrt(tf.exp(spread)) * tf.random_normal([50, 20], seed=3)
            made = dense(tf.tanh(dense(self.z, 20, 400)), 400, 300)
            image = tf.reduce_sum(tf.square(made - self.x), 1)
            code = -0.5 * tf.reduce_sum(1 + spread - tf.square(mean) - tf.exp(spread), 1)
            self.loss = tf.reduce_mean(image + code)
            self.train = tf.train.AdamOptimizer(0.001).minimize(self.loss)
            self.session = tf.Session(graph=graph)
            self.session.run(tf.global_variables_initializer())
        self.feed = {self.x: rng.random((50, 300), np.float32)}

    def losses(self, steps: int, also: Any = ()) -> list[float]:
        fetches = [self.train, self.loss, also]
        return [float(self.session.run(fetches, self.feed)[1]) for _ in range(steps)]

    def steps(self, also: Any = ()) -> list[Any]:
        fetches = [self.train, self.loss, also]
        steps: list[Any] = self.session.explain(fetches, self.feed).steps
        return steps


def test_training_is_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "0")
    expected = Coder().losses(40)
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program = Coder()
    np.testing.assert_allclose(program.losses(40), expected, rtol=2e-4)
    by = {s.name: s.by for s in program.steps()}
    assert by["Exp"] == by["Sqrt"] == by["Square_1"] == "native"
    assert by["MatMul"] == "library"


def test_a_value_of_a_segment_may_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    one, other = Coder(), Coder()
    assert one.losses(40, one.z) == pytest.approx(other.losses(40), rel=2e-4)
    z = [one.session.run([one.train, one.loss, one.z], one.feed)[2] for _ in range(3)]
    assert not np.array_equal(z[0], z[1])  # each the caller's own
    assert not np.array_equal(z[1], z[2])


def test_which_run_changes_over_does_not_depend_on_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "hot")
    monkeypatch.setattr("headrace.lower.native_segments.HOT_BOUND", 300)
    monkeypatch.setattr("headrace.lower.native_segments.WORK_OF_COMPILING", 100)
    first, second = Coder(), Coder()
    assert first.losses(150) == second.losses(150)
    by = {s.name: s.by for s in first.steps()}
    assert by["Exp"] == "native"


def test_other_shapes_take_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program = Coder()
    program.losses(30)
    with pytest.raises(tf.errors.InvalidArgumentError):
        program.session.run(program.train, {program.x: np.zeros((7, 300), np.float32)})
    assert np.isfinite(program.losses(3)).all()
