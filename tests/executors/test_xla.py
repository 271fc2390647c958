"""``jit_compile=True``.

What XLA compiles (through jax), what it leaves to the numpy executor, and that it says why.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="XLA needs jax")

import headrace.compat.v2 as tf
from headrace.eager.eager_context import eager_mode
from headrace.session.events import listen
from tests.ops import test_samples

RNG = np.random.RandomState(0)


@pytest.fixture
def chosen() -> Iterator[list[tuple[str, Any]]]:
    """Which executor each function got, and why."""
    seen: list[tuple[str, Any]] = []

    def heard(name: str, data: dict[str, Any]) -> None:
        if name == "jit_compile":
            seen.append((data["executor"], data["why"]))

    stop = listen(heard)
    with eager_mode():
        yield seen
    stop()


def _one_of_each() -> list[Any]:
    first: dict[str, Any] = {}
    for pair in test_samples.PAIRS:
        first.setdefault(pair[2].op, pair)
    return list(first.values())


EACH = _one_of_each()


@pytest.mark.parametrize(("family", "key", "sample"), EACH, ids=[p[1] for p in EACH])
def test_values(family: str, key: str, sample: Any) -> None:
    """An operation has TensorFlow's values, compiled or not."""
    test_samples.test_values(family, key, sample, "xla")


USUAL = [
    "Add",
    "MatMul",
    "Conv2D",
    "Softmax",
    "Sum",
    "Reshape",
    "GatherV2",
    "Tanh",
    "ConcatV2",
    "ResourceApplyAdam",
]


@pytest.mark.parametrize("op", USUAL)
def test_the_usual_operations_are_compiled(op: str) -> None:
    sample = next(p[2] for p in EACH if p[2].op == op)
    case = test_samples.Case(sample)
    with test_samples.Session(graph=case.graph, executor="xla") as session:
        case.run(session, case.outputs or [case.op], sample.inputs)
        fetched = case.outputs or [case.op]
        made = session._executable(list(fetched), list(case.feeds(sample.inputs)))
        assert made.details.executor == "xla", made.details


def step_of(weights: Any, biases: Any, count: Any) -> Any:
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(tf.matmul(x, weights) + biases)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(losses)
        for v, g in zip((weights, biases), tape.gradient(loss, (weights, biases))):
            v.assign_sub(0.1 * g)
        count.assign_add(1)
        return loss

    return step


def test_a_training_step(chosen: list[tuple[str, Any]]) -> None:
    """Variables are read and written: the same losses and values as without XLA."""
    x, labels = RNG.rand(8, 4).astype(np.float32), RNG.randint(0, 3, 8)
    start = RNG.rand(4, 3).astype(np.float32)
    results = []
    for jit in (True, False):
        variables = [
            tf.Variable(start),
            tf.Variable(np.zeros(3, np.float32)),
            tf.Variable(0, dtype=tf.int64),
        ]
        step = tf.function(step_of(*variables), jit_compile=jit)
        losses = [float(step(x, labels)) for _ in range(5)]
        results.append([losses, *(v.numpy() for v in variables)])
    for compiled, plain in zip(*results):
        np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-6)
    assert results[0][3] == 5 and results[0][3].dtype == np.int64
    assert chosen == [("xla", None)]


def test_shapes_are_known_and_types_kept(chosen: list[tuple[str, Any]]) -> None:
    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 2], tf.float64)])
    def f(x: Any) -> Any:
        rows = tf.shape(x)[0]
        return tf.reshape(x, [rows * 2]), tf.cast(rows, tf.int64)

    for n in (1, 3):
        flat, rows = f(np.ones((n, 2)))
        assert flat.shape == (2 * n,) and flat.dtype == tf.float64
        assert rows.dtype == tf.int64 and int(rows) == n
    assert f.experimental_get_tracing_count() == 1 and chosen == [("xla", None)]


def test_results_are_the_users_own(chosen: list[tuple[str, Any]]) -> None:
    f = tf.function(lambda x: x + 1, jit_compile=True)
    first = f(np.zeros(3, np.float32)).numpy().copy()
    again = f(np.zeros(3, np.float32)).numpy()
    np.testing.assert_array_equal(first, again)
    assert chosen == [("xla", None)]


def test_loops(chosen: list[tuple[str, Any]]) -> None:
    @tf.function(jit_compile=True)
    def total(n: Any) -> Any:
        found = tf.constant(0)
        for i in tf.range(n):
            found += i
        return found

    @tf.function(jit_compile=True)
    def power(x: Any, n: Any) -> Any:
        i, y = tf.constant(0), tf.ones_like(x)
        while i < n:
            j = tf.constant(0)
            while j < 2:
                y, j = y + 0.5, j + 1
            y, i = tf.matmul(y, x) / 2.0, i + 1
        return y, i

    assert int(total(tf.constant(5))) == 10 and int(total(tf.constant(0))) == 0
    x = RNG.rand(3, 3).astype(np.float32)
    y, rounds = power(x, tf.constant(4))
    want = np.ones((3, 3), np.float32)
    for _ in range(4):
        want = (want + 1) @ x / 2
    np.testing.assert_allclose(y, want, rtol=1e-5)
    assert int(rounds) == 4 and chosen == [("xla", None)] * 2


def test_a_loop_that_grows_is_left_to_numpy(chosen: list[tuple[str, Any]]) -> None:
    @tf.function(jit_compile=True)
    def grown(n: Any) -> Any:
        x = tf.zeros([0])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None]))]
            )
            x = tf.concat([x, [tf.cast(i, tf.float32)]], 0)
        return x

    assert grown(tf.constant(3)).numpy().tolist() == [0, 1, 2]
    assert chosen[0][0] == "numpy" and "Error" in chosen[0][1]


def test_what_is_not_compiled(chosen: list[tuple[str, Any]]) -> None:
    @tf.function(jit_compile=True)
    def branch(x: Any) -> Any:
        return x * 2 if x > 0 else x - 1

    @tf.function(jit_compile=True)
    def dice() -> Any:
        return tf.random.uniform([3])

    @tf.function(jit_compile=True)
    def distinct(x: Any) -> Any:
        return tf.unique(x)[0]

    assert int(branch(tf.constant(5))) == 10
    assert dice().shape == (3,)
    assert distinct(np.array([1, 2, 1])).numpy().tolist() == [1, 2]
    assert int(branch(tf.constant(-4))) == -5 and distinct(
        np.array([3, 3, 3])
    ).numpy().tolist() == [3]
    executors, reasons = zip(*chosen)
    assert set(executors) == {"numpy"} and len(chosen) == 3
    assert reasons[0] == "it has a branch" and "RandomUniform" in reasons[1]
    assert "Error" in reasons[2]


def test_without_jax(chosen: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "jax":
            raise ImportError("no jax here")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    f = tf.function(lambda x: x * 2, jit_compile=True)
    assert float(f(tf.constant(4.0))) == 8
    assert chosen == [("numpy", "XLA needs jax: pip install 'headrace[xla]'")]


def test_an_error_of_the_program_is_its_own(chosen: list[tuple[str, Any]]) -> None:
    f = tf.function(
        lambda x: tf.reshape(x, [4]),
        jit_compile=True,
        input_signature=[tf.TensorSpec(None, tf.float32)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="reshape"):
        f(np.zeros(3, np.float32))
    assert f(np.zeros((2, 2), np.float32)).shape == (4,)  # and the next call is compiled
    assert f.get_concrete_function().compiled.executable.details.executor == "xla"
