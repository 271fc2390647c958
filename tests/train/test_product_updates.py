"""Updates that take their gradient as a product train as the separate steps do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.native.llvm_library import status, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=status())

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.05),
    "momentum": lambda: tf.train.MomentumOptimizer(0.02, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.02),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.002, 0.9),
    "centered": lambda: tf.train.RMSPropOptimizer(0.002, 0.9, centered=True),
    "adam": lambda: tf.train.AdamOptimizer(0.002),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.02),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.02, 0.001, 0.001),
}


class Program:
    """Two layers, the second of which may be used twice; ``sizes`` are batch and widths."""

    def __init__(
        self,
        optimizer: str = "adam",
        sizes: tuple[int, int, int, int] = (37, 150, 131, 130),
        twice: bool = False,
        use_resource: bool = False,
    ) -> None:
        batch, wide, inner, out = sizes
        rng = np.random.default_rng(0)
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [None, wide])
            y = tf.placeholder(tf.float32, [None, out])
            self.weights = [
                tf.get_variable(
                    f"w{n}",
                    initializer=rng.normal(0, 0.1, shape).astype(np.float32),
                    use_resource=use_resource,
                )
                for n, shape in enumerate([(wide, inner), (inner, out)])
            ]
            first, second = self.weights
            made = tf.matmul(tf.tanh(tf.matmul(x, first)), second)
            if twice:
                made += tf.sin(tf.matmul(tf.tanh(tf.matmul(x * 0.5, first)), second))
            self.loss = tf.reduce_mean(tf.square(made - y))
            self.gradients = tf.gradients(self.loss, self.weights)
            pairs = zip(self.gradients, self.weights)
            self.train = OPTIMIZERS[optimizer]().apply_gradients(pairs)
            self.session = tf.Session(graph=graph)
            self.session.run(tf.global_variables_initializer())
        self.feed = {
            x: rng.normal(size=(batch, wide)).astype(np.float32),
            y: rng.normal(size=(batch, out)).astype(np.float32),
        }

    def values(self, steps: int = 6, extra: Any = ()) -> list[Any]:
        for _ in range(steps):
            self.session.run([self.train, self.loss, extra], self.feed)
        found: list[Any] = self.session.run(self.weights)
        return found

    def explained(self) -> str:
        return str(self.session.explain([self.train, self.loss, ()], self.feed))


def both(monkeypatch: pytest.MonkeyPatch, **how: Any) -> tuple[list[Any], list[Any], Program]:
    """The variables without native kernels and with them."""
    monkeypatch.setenv("HEADRACE_NATIVE", "0")
    expected = Program(**how).values()
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program = Program(**how)
    return expected, program.values(), program


def assert_close(found: list[Any], expected: list[Any]) -> None:
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer(
    monkeypatch: pytest.MonkeyPatch, optimizer: str, use_resource: bool
) -> None:
    expected, found, program = both(
        monkeypatch, optimizer=optimizer, twice=True, use_resource=use_resource
    )
    assert_close(found, expected)
    assert "products in updates 2" in program.explained()


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 129, 128, 129),
        (5, 140, 160, 129),
        (64, 182, 131, 144),
        (700, 129, 300, 135),
        (2049, 129, 130, 131),
    ],
)
def test_sizes_that_tiles_do_not_divide(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int, int]
) -> None:
    expected, found, _ = both(monkeypatch, sizes=sizes)
    assert_close(found, expected)


def test_the_same_bits_in_every_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    first, second = (Program(twice=True).values() for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second))


def test_a_gradient_that_is_fetched_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program, other = Program(), Program()
    found = program.values(extra=program.gradients)
    assert_close(found, other.values())
    explained = str(program.session.explain([program.train, program.gradients], program.feed))
    assert "products in updates 0" in explained or "products in updates" not in explained


def test_a_product_of_a_variable_is_taken_before_that_is_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gradient of ``w`` is ``v.T @ dy``, and ``v`` is updated in the same run."""

    def trained(setting: str) -> list[Any]:
        monkeypatch.setenv("HEADRACE_NATIVE", setting)
        rng = np.random.default_rng(1)
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            shapes = (140, 150), (150, 160)
            v, w = (tf.Variable(rng.normal(0, 0.1, s).astype(np.float32)) for s in shapes)
            loss = tf.reduce_sum(tf.square(tf.matmul(v, w) - 1.0))
            train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, var_list=[v, w])
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(train)
            found: list[Any] = session.run([v, w])
            return found

    assert_close(trained("always"), trained("0"))


def test_not_numbers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program = Program("descent")
    x = next(iter(program.feed))
    program.feed[x] = program.feed[x].copy()
    program.feed[x][3, 7] = np.nan
    first, _ = program.values(1)
    assert np.isnan(first).all()


def test_explain_says_who_computes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    program = Program(sizes=(64, 300, 200, 150))
    program.values()
    steps = program.session.explain([program.train, program.loss, ()], program.feed).steps
    by = {s.op_type: s.by for s in steps}
    assert by["MatMul + ApplyAdam"] == "native"
    assert by["MatMul"] in ("library", "NumPy or library")  # (without a library nothing is bound)
