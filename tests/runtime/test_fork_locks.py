"""Forks while other threads train: the child finds no lock taken and no variable missing."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.runtime import fork_locks
from headrace.runtime.fork_locks import held_at_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def _in_child(work: Any) -> int:
    """The exit code of a child that does something."""
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        try:
            os._exit(0 if work() else 3)
        except BaseException:
            os._exit(4)
    return os.waitpid(child, 0)[1]


def test_a_child_waits_for_nobody() -> None:
    """Forked from among threads that overwrite variables, again and again."""
    x = tf.placeholder(tf.float32, [None, 256])
    w = tf.Variable(np.full((256, 256), 1e-3, np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), w)))
    step = tf.train.AdamOptimizer(1e-4).minimize(loss)
    feed = {x: np.ones((64, 256), np.float32)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        end = threading.Event()

        def work() -> None:
            while not end.is_set():
                session.run(step, feed)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for n in range(15):
                time.sleep(0.002 * (n % 5))
                code = _in_child(lambda: np.isfinite(session.run([step, loss], feed)[1]))
                assert code == 0, n
        finally:
            end.set()
            for thread in threads:
                thread.join(60)
        assert np.isfinite(session.run(loss, feed))


def test_a_fork_waits_for_the_holder_of_a_lock() -> None:
    lock, steps = held_at_fork(threading.Lock()), [0]
    taken = threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            time.sleep(0.2)
            steps[0] += 1

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    assert _in_child(lambda: steps[0] == 1 and lock.acquire(timeout=0)) == 0
    assert not lock.locked()
    thread.join()


def test_a_lock_that_is_never_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork does not wait forever, and the child has a free lock."""
    monkeypatch.setattr(fork_locks, "MAX_WAIT_SECONDS", 0.05)
    lock, end, taken = held_at_fork(threading.RLock()), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    assert _in_child(lambda: lock.acquire(timeout=0)) == 0
    assert not lock.acquire(timeout=0)
    end.set()
    thread.join()
    assert lock.acquire(timeout=1)
    lock.release()
