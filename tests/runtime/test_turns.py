"""Large steps of many threads take turns: all of them, in order, and nothing waits for ever."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.runtime.turns import Turns


def in_threads(count: int, work: Any) -> None:
    failed: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not failed, failed


@pytest.mark.parametrize("slots", [1, 3])
def test_so_many_at_a_time(slots: int) -> None:
    turns, lock, now, most = Turns(slots), threading.Lock(), 0, 0

    def work(_: int) -> None:
        nonlocal now, most
        for _ in range(30):
            with turns, turns:  # a thread may ask again
                with lock:
                    now += 1
                    most = max(most, now)
                time.sleep(0.0005)
                with lock:
                    now -= 1

    in_threads(8, work)
    assert most == slots and turns.working == 0 and not turns.waiting


def test_those_who_wait_come_in_their_order() -> None:
    turns, order = Turns(1), []

    def work(n: int) -> None:
        with turns:
            order.append(n)

    with turns:
        threads = []
        for n in range(6):
            threads.append(threading.Thread(target=work, args=(n,)))
            threads[-1].start()
            until = time.monotonic() + 60
            while len(turns.waiting) <= n and time.monotonic() < until:
                time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert order == list(range(6))


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns(1)
    for _ in range(3):
        with pytest.raises(KeyError), turns:
            raise KeyError
    assert turns.working == 0


def test_who_leaves_while_waiting_is_forgotten() -> None:
    """As Ctrl-C does, before or after the turn was handed over."""
    turns = Turns(1)
    mine = threading.Lock()
    turns.waiting.append(mine)
    turns._leave(mine)
    assert not turns.waiting
    with turns:
        turns.working += 1  # a turn that was handed over to one who left
        turns._leave(mine)
    assert turns.working == 0


def test_many_threads_train_one_model() -> None:
    """Every step counts once, and the session is as good as before."""
    x = tf.placeholder(tf.float32, [None, 256])
    w = tf.Variable(np.zeros((256, 256), np.float32), use_resource=True)
    loss = tf.reduce_mean(tf.matmul(x, w))
    step = tf.train.GradientDescentOptimizer(256 * 64.0).minimize(loss)
    data = np.ones((64, 256), np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        in_threads(8, lambda n: [session.run(step, {x: data}) for _ in range(20)])
        value = session.run(w)
    np.testing.assert_allclose(value, -8 * 20 * 64.0, rtol=1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_starts_with_free_turns() -> None:
    from headrace.runtime.turns import TURNS

    with TURNS:
        child = os.fork()
        if child == 0:
            os._exit(0 if TURNS.working == 0 and not TURNS.waiting else 1)
        assert os.waitpid(child, 0)[1] == 0
