"""Large steps of many threads take turns: all of them, in order, and nothing waits forever."""

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
        thread.join(120)
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
    mine = (threading.Lock(), 2)
    turns.waiting.append(mine)
    turns._leave(mine)
    assert not turns.waiting
    with turns:
        turns.working += 2  # a turn that was handed over to one who left
        turns._leave(mine)
    assert turns.working == 0


def test_two_halves_are_one_turn() -> None:
    """Steps on one core and on several: never more than fit, none passed over, all get there."""
    turns, lock, now, most = Turns(1), threading.Lock(), 0, 0

    def work(n: int) -> None:
        nonlocal now, most
        size = 1 + n % 2
        for _ in range(30):
            with turns if size == 2 else turns.half, turns:
                with lock:
                    now += size
                    most = max(most, now)
                time.sleep(0.0003)
                with lock:
                    now -= size

    in_threads(8, work)
    assert most == 2 and turns.working == 0 and not turns.waiting


def test_a_session_of_several_threads() -> None:
    """Steps beside each other keep to one core, until one thread has been alone for long."""
    from headrace.lower.session_state import Stepping

    stepping = Stepping()
    for _ in range(3):
        with stepping as alone:
            assert alone
    seen: list[bool] = []

    def other(_: int) -> None:
        with stepping as alone:
            seen.append(alone)

    with stepping as alone:
        assert alone
        in_threads(1, other)
    assert seen == [False]
    found = []
    for _ in range(Stepping.ALONE + 2):
        with stepping as alone:
            found.append(alone)
    assert found == [False] * (Stepping.ALONE - 1) + [True] * 3


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


def test_steps_of_threads_run_on_one_team() -> None:
    """Sixteen threads start no sixteen teams of the kernel library, and errors come back."""
    x = tf.placeholder(tf.float32, [None, 512])
    w = tf.Variable(np.full((512, 512), 1e-3, np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), w)))
    step = tf.train.AdamOptimizer(1e-4).minimize(loss)
    data = np.ones((128, 512), np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        in_threads(1, lambda n: [session.run([step, loss], {x: data}) for _ in range(12)])
        before = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
        errors: list[Exception] = []

        def work(_: int) -> None:
            for _ in range(8):
                session.run([step, loss], {x: data})
            try:
                session.run([step, loss], {x: data[:, :7]})
            except (ValueError, tf.errors.InvalidArgumentError) as error:
                errors.append(error)

        in_threads(16, work)
        after = len(os.listdir("/proc/self/task")) if before else 0
        assert len(errors) == 16
        assert after <= before + 2  # those of the test have ended
        assert np.isfinite(session.run(loss, {x: data}))


def test_a_session_that_is_limited_stays_so_on_the_thread_of_steps() -> None:
    """ConfigProto's number of threads belongs to the session, wherever its steps run."""
    from headrace.lower.session_state import State
    from headrace.lower.step_threads import in_turn
    from headrace.runtime.thread_pool import limited, thread_count

    seen: list[int] = []

    def work(n: int) -> None:
        with limited(n + 1):
            seen.append(in_turn(lambda _: thread_count(), State()) - n)

    in_threads(3, work)
    assert seen == [1, 1, 1]
