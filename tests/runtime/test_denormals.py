"""Numbers too small to be normal.

Zero inside large runs, as in TensorFlow, and left alone outside.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.runtime import denormals
from headrace.runtime.thread_pool import parallel

TINY = np.full(64, 1e-40, np.float32)


def _is_known() -> bool:
    before = denormals.flush()
    denormals.restore(before)
    return before is not None


pytestmark = pytest.mark.skipif(
    not _is_known(), reason="the C library's floating-point setting is not known here"
)


def is_kept() -> bool:
    return bool(((TINY * np.float32(0.5)) != 0).all())


def test_flush_and_restore() -> None:
    assert is_kept()
    before = denormals.flush()
    assert not is_kept()
    denormals.restore(before)
    assert is_kept()


def test_of_one_thread_only() -> None:
    before = denormals.flush()
    denormals.restore(before)
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(is_kept()))
    thread.start()
    thread.join()
    assert seen == [True] and is_kept()


def test_workers_flush() -> None:
    seen: list[bool] = []
    parallel([lambda: None, lambda: seen.append(is_kept())])
    assert seen == [False] or is_kept()  # (one core: the task ran here)


def test_training_ends_at_zero_and_leaves_the_setting_alone() -> None:
    """What Adam remembers of a weight without gradient would otherwise stay a tiny number for
    ever.

    In a process of its own: threads of the kernel library have the setting that they started with,
    and another test may have started them by calling a kernel without a run.
    """
    program = "from tests.runtime import test_denormals as t; t.train_to_zero()"
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr


def train_to_zero() -> None:
    size = 400
    x = tf.placeholder(tf.float32, [None, size])
    w = tf.Variable(tf.zeros([size, size]))
    loss = tf.reduce_sum(tf.matmul(x, w))
    optimizer = tf.train.AdamOptimizer(1e-3)
    step = optimizer.minimize(loss)
    m = optimizer.get_slot(w, "m")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(m.initializer)
        m.load(np.full((size, size), 1e-38, np.float32), session)
        for _ in range(3):
            session.run(step, {x: np.zeros((200, size), np.float32)})
        assert np.all(session.run(m) == 0)
        assert is_kept()
        bad = tf.gather(tf.matmul(x, w), 10**6)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(bad, {x: np.zeros((200, size), np.float32)})
        assert is_kept()
