"""Many processes and threads at once.

Nothing hangs, and every one computes what it would alone. (No times: benchmarks busy.)
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf

#: Everything here takes seconds; whatever takes this long hangs.
PATIENCE = 240

PROGRAM = """
import sys
import numpy as np
import headrace as tf

def make():
    rng = np.random.RandomState(0)
    with tf.Graph().as_default() as graph:
        x, labels = tf.placeholder(tf.float32, [None, 256]), tf.placeholder(tf.int32, [None])
        y = x
        for wide, out in ((256, 256), (256, 256), (256, 10)):
            y = tf.matmul(y, tf.Variable(rng.normal(0, 0.05, (wide, out)).astype("f")))
            y = tf.nn.relu(y) if out != 10 else y
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=y, labels=labels)
        loss = tf.reduce_mean(loss)
        step = tf.train.AdamOptimizer(1e-3).minimize(loss)
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    feed = {x: rng.rand(128, 256).astype("f"), labels: rng.randint(0, 10, 128).astype("i")}
    return lambda: session.run([step, loss], feed)[1]

def losses(count=10):
    step = make()
    return [float(step()) for _ in range(count)]
"""


def start(main: str, tmp_path: Any, name: str = "program.py") -> subprocess.Popen[str]:
    path = tmp_path / name
    path.write_text(PROGRAM + textwrap.dedent(main))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def finish(process: subprocess.Popen[str]) -> str:
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("a process hangs")
    assert process.returncode == 0, err
    return out


def test_eight_processes_at_once(tmp_path: Any) -> None:
    """A search over hyperparameters.

    All give the same losses, bit for bit, while they compete for the cores.
    """
    running = [start("print(losses())", tmp_path, f"p{i}.py") for i in range(8)]
    texts = {finish(process) for process in running}
    assert len(texts) == 1


def test_fork_after_a_run(tmp_path: Any) -> None:
    """Threads do not survive a fork.

    The child goes on without the kernel library, and so do its own children.
    """
    main = """
    import os
    first = losses()
    step = make()
    step()
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            again = losses()
            assert np.allclose(again, first, rtol=1e-3), (again, first)
            assert np.isfinite(step())  # a session of before the fork
            os._exit(0)
        children.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    assert losses() == first  # the parent is what it was
    print("done")
    """
    assert finish(start(main, tmp_path)) == "done\n"


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_multiprocessing(method: str, tmp_path: Any) -> None:
    main = f"""
    if __name__ == "__main__":
        import multiprocessing
        first = losses(3)
        with multiprocessing.get_context({method!r}).Pool(3) as pool:
            results = pool.map(losses, [3] * 6)
        for found in results:
            assert np.allclose(found, first, rtol=1e-3), (found, first)
        print("done")
    """
    assert finish(start(main, tmp_path)) == "done\n"


def test_sixteen_threads_on_one_session() -> None:
    """On any number of cores: each result is right, and nothing waits forever."""
    rng = np.random.RandomState(1)
    weights = [rng.normal(0, 0.1, (300, 300)).astype(np.float32) for _ in range(3)]
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 300])
        y = x
        for w in weights:
            y = tf.tanh(tf.matmul(y, tf.Variable(w)) + 0.1)
        total = tf.reduce_sum(y, 1)
        init = tf.global_variables_initializer()
    rows = [rng.rand(16 * (i + 1), 300).astype(np.float32) for i in range(16)]
    failures: list[Any] = []
    with tf.Session(graph=graph) as session:
        session.run(init)
        wanted = [session.run(total, {x: r}) for r in rows]

        def work(i: int) -> None:
            for _ in range(20):
                got = session.run(total, {x: rows[i]})
                if not np.allclose(got, wanted[i], rtol=1e-4, atol=1e-3):
                    failures.append((i, np.abs(got - wanted[i]).max()))

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE)
            assert not t.is_alive(), "a thread hangs"
    assert not failures
