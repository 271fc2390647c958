"""Large temporaries are used again, and never by two at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executors import numpy_executor
from headrace.runtime import buffers

SHAPE = (1024, 512)


@pytest.fixture(autouse=True)
def fresh_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(buffers, "MIN_BYTES", 1 << 20)
    # (runs that are bound to their shapes have memory of their own)
    monkeypatch.setattr(numpy_executor, "runs_for", lambda *_: None)
    buffers.clear()
    yield
    buffers.set_limit(None)
    buffers.clear()


def test_comes_back() -> None:
    a = buffers.empty(SHAPE, np.float32)
    at = a.ctypes.data
    buffers.give(a)
    del a
    assert buffers.held_bytes() == 4 * 1024 * 512
    b = buffers.empty(SHAPE, np.float32)
    assert b.ctypes.data == at and buffers.held_bytes() == 0


def test_what_someone_holds_does_not_come_back() -> None:
    a = buffers.empty(SHAPE, np.float32)
    view = a[1:]
    buffers.give(a)
    assert buffers.held_bytes() == 0
    del view
    also = a
    buffers.give(a)
    assert buffers.held_bytes() == 0
    del also
    buffers.give(a)
    assert buffers.held_bytes() == a.nbytes


def test_what_was_never_asked_for_is_not_kept() -> None:
    a = np.empty(SHAPE, np.float32)
    buffers.give(a)
    assert buffers.held_bytes() == 0


def test_forgets_shapes_that_are_over() -> None:
    for n in range(300):
        a = buffers.empty((1000 + n, 512), np.float32)
        buffers.give(a)
        del a
    assert buffers.held_bytes() < 80 * 4 * 1300 * 512


def test_limit() -> None:
    a, b = buffers.empty(SHAPE, np.float32), buffers.empty(SHAPE, np.float32)
    buffers.set_limit(a.nbytes)
    buffers.give(a)
    buffers.give(b)
    assert buffers.held_bytes() == a.nbytes
    buffers.set_limit(0)
    assert buffers.held_bytes() == 0


def chain(x: Any) -> list[Any]:
    """Large values that die along the way."""
    y = tf.matmul(x, tf.ones([512, 600]) * 0.01)
    z = tf.nn.relu(tf.matmul(y, tf.ones([600, 512]) * 0.01))
    return [tf.reduce_sum(z), z]


def test_a_run_uses_the_memory_of_the_last() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 512])
        total, _ = chain(x)
        feed = {x: np.ones(SHAPE, np.float32)}
        session.run(total, feed)
        session.run(total, feed)
        kept = buffers.held_bytes()
        assert kept > 0
        for _ in range(5):
            session.run(total, feed)
            assert buffers.held_bytes() == kept
    assert buffers.held_bytes() == 0  # closed


def test_results_stay_what_they_are() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 512])
        fetches = chain(x)
        held = []
        for i in range(6):
            held.append((i, session.run(fetches, {x: np.full(SHAPE, i, np.float32)})))
        for i, (total, z) in held:
            np.testing.assert_allclose(z, np.full(SHAPE, i * 512 * 0.01 * 600 * 0.01), rtol=1e-4)
            np.testing.assert_allclose(total, z.sum(dtype=np.float64), rtol=1e-4)


def test_threads_do_not_share() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 512])
        fetches = chain(x)
        wrong: list[Any] = []

        def work(n: int) -> None:
            for _ in range(8):
                z = session.run(fetches, {x: np.full(SHAPE, n, np.float32)})[1]
                if not np.allclose(z, n * 512 * 0.01 * 600 * 0.01, rtol=1e-3):
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
