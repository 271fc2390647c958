"""Random numbers in training steps that are bound to memory: the reference's, whatever fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.numpy import philox
from headrace.lower import bound_runs, select_bound
from tests.lower.bound_networks import bindings, like, needs_library

ROWS, WIDE, HIDDEN = 48, 40, 112
STEPS = bound_runs.MIN_TRAINING_RUNS + 5


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select_bound, "MIN_WORK", 1)
    monkeypatch.setattr(select_bound, "PRODUCTS_PER_ELEMENT", 0)


def network(known_rows: bool = True) -> Any:
    """Noise beside the inputs, dropout, integers that are drawn, labels that may be wrong."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [ROWS if known_rows else None, WIDE])
        at = tf.placeholder(tf.int32, [ROWS if known_rows else None])
        noise = tf.random_uniform([tf.shape(x)[0], 24], -1.0, 1.0, seed=5)
        n = WIDE + 24
        weights = tf.Variable(tf.random_normal([n, HIDDEN], stddev=0.2, seed=6))
        h = tf.nn.relu(tf.matmul(tf.concat([x, noise], 1), weights))
        h = tf.nn.dropout(h, keep_prob=0.7, seed=7)
        shift = tf.random_normal([HIDDEN], stddev=0.1, seed=8)
        signs = tf.random_uniform([HIDDEN], 0, 2, dtype=tf.int32, seed=9)
        h = tf.tanh(h + shift) * tf.cast(signs, tf.float32)
        made = tf.matmul(h, tf.Variable(tf.random_normal([HIDDEN, WIDE], stddev=0.2, seed=10)))
        both = tf.concat([made, x], 1)
        second = tf.Variable(tf.random_normal([2 * WIDE, 1], seed=11))
        wrong = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=at, logits=made)
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(both), second)))
        loss += tf.reduce_mean(wrong)
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
    return graph, x, at, [step, loss]


def sessions(graph: Any) -> tuple[Any, Any]:
    session = tf.Session(graph=graph)
    with graph.as_default():
        session.run(tf.global_variables_initializer())
    return session, like(session, graph)


def feed(x: Any, at: Any, index: int = 3) -> dict[Any, Any]:
    rng = np.random.default_rng(2)
    return {x: rng.normal(size=(ROWS, WIDE)).astype(np.float32), at: np.full(ROWS, index, np.int32)}


@needs_library
@pytest.mark.parametrize("known_rows", [True, False])
def test_a_bound_step_draws_what_the_reference_draws(known_rows: bool) -> None:
    graph, x, at, fetches = network(known_rows)
    session, other = sessions(graph)
    for n in range(STEPS):
        got, want = (s.run(fetches, feed(x, at))[1] for s in (session, other))
        np.testing.assert_allclose(got, want, rtol=2e-4, err_msg=f"step {n}")
    (found,) = bindings(session)
    assert not found.failures, found.failure
    listing = found.binding.compiled.listing
    draws = [i for i in listing.instrs[: listing.bound.steps] if i.implementation == "draw"]
    assert len(draws) == 4


@needs_library
def test_a_failed_step_gives_its_numbers_back() -> None:
    graph, x, at, fetches = network()
    session, other = sessions(graph)
    for n in range(STEPS + 4):
        if n >= STEPS - 2 and n % 2:
            for s in (session, other):
                with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
                    s.run(fetches, feed(x, at, index=99))
            continue
        got, want = (s.run(fetches, feed(x, at))[1] for s in (session, other))
        np.testing.assert_allclose(got, want, rtol=2e-4, err_msg=f"step {n}")
    assert bindings(session)


@needs_library
def test_a_step_that_the_generic_code_does_again_draws_the_same() -> None:
    graph, x, at, fetches = network()
    session, other = sessions(graph)
    for n in range(STEPS + 3):
        if n == STEPS:
            (found,) = bindings(session)
            whole = found.run

            def stumbling(*args: Any, whole: Any = whole, found: Any = found) -> Any:
                found.run = whole
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(philox.Guarded, "drawn", _fail_third(philox.Guarded.drawn))
                    return whole(*args)

            found.run = stumbling
        got, want = (s.run(fetches, feed(x, at))[1] for s in (session, other))
        np.testing.assert_allclose(got, want, rtol=2e-4, err_msg=f"step {n}")
    assert found.failures == 1


def _fail_third(drawn: Any) -> Any:
    calls = []

    def failing(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            raise ValueError("the third draw fails")
        return drawn(*args)

    return failing


@pytest.mark.parametrize("count", [3, 700, 5000])
def test_what_is_given_back_is_drawn_again(count: int) -> None:
    dtype = np.dtype(np.float32)
    plain, other = philox.Guarded(3, 4), philox.Guarded(3, 4)
    want = [plain.numbers(philox.uniform, count, dtype) for _ in range(12)]
    got = []
    for n in range(12):
        for _ in range(n % 3):
            _, start = other.drawn(philox.uniform, count, dtype)
            other.give_back(start, count)
        got.append(other.numbers(philox.uniform, count, dtype))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", [3, 700, 5000])
def test_stretches_of_threads_stay_apart(count: int) -> None:
    """Two draws, of which the earlier is given back: nobody gets the later one's numbers again."""
    dtype = np.dtype(np.float32)
    plain, other = philox.Guarded(3, 4), philox.Guarded(3, 4)
    want = [plain.numbers(philox.normal, count, dtype) for _ in range(6)]
    kept = [other.numbers(philox.normal, count, dtype)]
    _, early = other.drawn(philox.normal, count, dtype)
    late, start = other.drawn(philox.normal, count, dtype)
    other.give_back(early, count)
    kept += [other.numbers(philox.normal, count, dtype), late]
    other.give_back(start, count)
    kept[-1:] = [other.numbers(philox.normal, count, dtype) for _ in range(4)]
    np.testing.assert_array_equal(kept, want)
