"""Compiled kernels on OpenMP's threads: the same bits with any number of threads and for callers
on several threads, tiny numbers as on the caller's thread, and after a fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import headrace.compat.v1 as tf
from headrace.kernels import accel
from headrace.kernels.native import llvm_library
from headrace.kernels.native.openmp_team import openmp_team
from headrace.runtime.openmp_runtime import parallel_address
from headrace.runtime.thread_pool import limited, parallel


@pytest.fixture(autouse=True)
def team(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    if llvm_library.available() is None:
        pytest.skip(llvm_library.why_not())
    if accel.library() is None or not parallel_address():
        pytest.skip("no OpenMP runtime, or one thread")


def _run(values: np.ndarray, threads: int) -> np.ndarray:
    """A native group of a million elements, with so many threads, through the API."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.tanh(x * 0.5) * tf.exp(-x * x) + tf.sigmoid(x)
        config = tf.ConfigProto(intra_op_parallelism_threads=threads)
        with tf.Session(config=config) as sess:
            for _ in range(3):
                found: np.ndarray = sess.run(y, {x: values})
            return found


def test_the_number_of_threads_changes_no_bit() -> None:
    values = np.random.RandomState(0).randn(1000, 1001).astype(np.float32)
    values[::7] *= 1e-39  # results that are too small to be normal, on whatever thread
    alone, shared = _run(values, 1), _run(values, 2)
    assert alone.tobytes() == shared.tobytes()
    assert shared.tobytes() == _run(values, 4).tobytes()


def test_callers_on_many_threads() -> None:
    values = np.random.RandomState(1).randn(300, 1001).astype(np.float32)
    right = _run(values, 1)
    wrong: list[int] = []

    def work(n: int) -> None:
        if _run(values, 2).tobytes() != right.tobytes():
            wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_of_the_pool_start_no_team() -> None:
    """On a worker of the pool every kernel would start threads of its own."""
    seen: dict[int, bool] = {}
    gate = threading.Barrier(2, timeout=300)

    def task() -> None:
        gate.wait()  # so that two threads take one each
        seen[threading.get_ident()] = openmp_team() is None

    with limited(2):
        parallel([task, task])
    here = threading.get_ident()
    assert not seen.pop(here) and list(seen.values()) == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_wait_for_threads_that_are_not_there() -> None:
    code = """
import os, sys
import numpy as np
import headrace.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, None])
w = tf.Variable(np.ones((512, 512), np.float32))
y = tf.tanh(tf.matmul(x, w) * 1e-3) * tf.exp(-x)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
values = np.ones((512, 512), np.float32)
before = [sess.run(y, {x: values}) for _ in range(5)][-1]
child = os.fork()
if child == 0:
    same = np.allclose(sess.run(y, {x: values}), before, rtol=1e-4)
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "HEADRACE_NATIVE": "always"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=300, check=False)
    assert done.returncode == 0
