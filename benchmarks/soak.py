"""A soak: many runs of many kinds, with changing shapes, from several threads on one session.

    python -m benchmarks.soak                  100,000 runs on 4 threads; prints what it saw
    python -m benchmarks.soak --runs 5000

Random numbers and an optimizer's updates are among the runs, so that native kernels
(docs/native.md) are switched on and used.

Every result is compared with one that NumPy computes. Memory that is in use at the end is put
beside that after the warm-up: what is resident once the C library has given its free memory back,
because how much of that it keeps depends on how the threads happened to interleave. What was
resident before that is printed, too.

Even so the C library keeps the free end of each thread's heap (glibc's malloc_trim gives back the
main heap's end alone), as much as the thread once needed at the same time. So the bytes that are
allocated, which must not grow, are printed as well.
"""

from __future__ import annotations

import argparse
import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.timing import allocated_bytes, resident_bytes

__all__ = ["Account", "main", "soak"]

Check = Callable[[np.random.Generator], bool]


@dataclass
class Account:
    """What a soak saw."""

    runs: int
    wrong: int
    seconds: float
    warm_bytes: int
    end_bytes: int
    resident_bytes: int  # at the end, with memory that is free
    warm_allocated: int  # bytes that the C library has given out; 0 where it does not tell
    end_allocated: int

    @property
    def growth(self) -> float:
        return self.end_bytes / self.warm_bytes

    def __str__(self) -> str:
        memory = (
            f"{self.warm_bytes / 1e6:.0f} MB after the warm-up, {self.end_bytes / 1e6:.0f} MB "
            f"at the end ({self.resident_bytes / 1e6:.0f} MB with what is free); allocated "
            f"{self.warm_allocated / 1e6:.1f} and {self.end_allocated / 1e6:.1f} MB"
        )
        return (
            f"{self.runs:,} runs in {self.seconds:.0f} s, {self.wrong} wrong; {memory} "
            f"({self.growth:.3f}x)"
        )


class _Model:
    """The tensors of the soak: each check runs some of them."""

    def __init__(self, tf: Any) -> None:
        self.x = tf.placeholder(tf.float32, [None, None])
        self.vector = tf.placeholder(tf.float32, [None])
        self.image = tf.placeholder(tf.float32, [None, 12, 12, 3])
        self.count = tf.placeholder(tf.int32, [])
        self.w = tf.Variable(np.linspace(-1, 1, 64 * 32, dtype=np.float32).reshape(64, 32))
        kernel = np.linspace(-1, 1, 3 * 3 * 3 * 8, dtype=np.float32).reshape(3, 3, 3, 8)
        self.kernel = tf.Variable(kernel)
        self.steps = tf.Variable(np.int64(0), dtype=tf.int64)
        self.step = tf.assign_add(self.steps, 1)
        self.scale = tf.reduce_sum(tf.square(self.w))
        self.chain = tf.reduce_sum(tf.tanh(self.vector * 1.5 + 0.5))
        self.product = tf.nn.relu(tf.matmul(self.x, self.w) + 1.0)
        squares = tf.reduce_sum(tf.square(tf.matmul(self.x, self.w)))
        self.gradient = tf.gradients(squares, self.x)[0]
        self.conv = tf.nn.conv2d(self.image, self.kernel, [1, 1, 1, 1], "SAME")
        self.grown = tf.while_loop(
            lambda i, v: i < self.count,
            lambda i, v: (i + 1, tf.concat([v, v[-1:] + 1], 0)),
            [0, self.vector],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        )[1]
        self.drawn = tf.random_normal([self.count, 300], seed=3)
        self.trained = tf.Variable(np.full((200, 100), 3, np.float32))
        distance = tf.reduce_sum(tf.square(self.trained - 1.0))
        self.pull = tf.train.AdamOptimizer(1e-4).minimize(distance)
        positive = tf.reduce_sum(self.vector) > 0
        self.branch = tf.cond(positive, lambda: self.vector * 2, lambda: self.vector - 1)


class _Checks:
    """Kinds of runs; each draws its sizes and values and says whether the result was right."""

    def __init__(self, tf: Any, session: Any) -> None:
        self.model, self.run = _Model(tf), session.run
        self.run(tf.global_variables_initializer())
        self.w, self.kernel = self.run([self.model.w, self.model.kernel])

    def all(self) -> list[Check]:
        names = [name for name in dir(self) if name.startswith("check_")]
        return [getattr(self, name) for name in names]

    def check_product(self, rng: np.random.Generator) -> bool:
        a = _rows(rng)
        got = self.run(self.model.product, {self.model.x: a})
        return _close(got, np.maximum(a @ self.w + 1, 0))

    def check_gradient(self, rng: np.random.Generator) -> bool:
        a = _rows(rng)
        got = self.run(self.model.gradient, {self.model.x: a})
        return _close(got, 2 * (a @ self.w) @ self.w.T)

    def check_chain(self, rng: np.random.Generator) -> bool:
        v = rng.normal(size=int(rng.integers(1, 200_000))).astype(np.float32)
        want = np.tanh(v * 1.5 + 0.5, dtype=np.float64).sum()
        got = self.run(self.model.chain, {self.model.vector: v})
        return bool(abs(got - want) < 1e-3 * max(1.0, v.size))

    def check_conv(self, rng: np.random.Generator) -> bool:
        pictures = rng.normal(size=(int(rng.integers(1, 9)), 12, 12, 3)).astype(np.float32)
        result = self.run(self.model.conv, {self.model.image: pictures})
        patch = pictures[:, 4:7, 5:8, :].reshape(len(pictures), -1)
        return _close(result[:, 5, 6], patch @ self.kernel.reshape(-1, 8))

    def check_grown(self, rng: np.random.Generator) -> bool:
        n = int(rng.integers(0, 40))
        result = self.run(self.model.grown, {self.model.vector: [3.0], self.model.count: n})
        return _close(result, 3.0 + np.arange(n + 1))

    def check_branch(self, rng: np.random.Generator) -> bool:
        v = rng.normal(size=int(rng.integers(1, 50))).astype(np.float32)
        got = self.run(self.model.branch, {self.model.vector: v})
        return _close(got, v * 2) or _close(got, v - 1)

    def check_state(self, rng: np.random.Generator) -> bool:
        before = self.run(self.model.steps)
        self.run(self.model.step)
        grew = bool(self.run(self.model.steps) > before)
        return grew and _close(self.run(self.model.scale), np.square(self.w).sum())

    def check_draw(self, rng: np.random.Generator) -> bool:
        n = int(rng.integers(50, 400))
        numbers = self.run(self.model.drawn, {self.model.count: n})
        return numbers.shape == (n, 300) and abs(numbers.mean()) < 0.1 > abs(numbers.std() - 1)

    def check_update(self, rng: np.random.Generator) -> bool:
        self.run(self.model.pull)
        now = self.run(self.model.trained)
        return bool((now < 3.01).all() and (now > 0.9).all() and np.ptp(now) == 0)


def _rows(rng: np.random.Generator) -> Any:
    return rng.normal(size=(int(rng.integers(1, 200)), 64)).astype(np.float32)


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3))


def soak(runs: int, threads: int, warm_up: int) -> Account:
    """``warm_up`` runs, then ``runs`` more, over so many threads."""
    import headrace as tf

    with tf.Graph().as_default() as graph:
        session = tf.Session(graph=graph)
        checks = _Checks(tf, session).all()
    wrong = _on_threads(checks, warm_up, threads, seed=1)
    warm, warm_allocated = _bytes_in_use(), allocated_bytes()
    start = time.perf_counter()
    wrong += _on_threads(checks, runs, threads, seed=2)
    seconds = time.perf_counter() - start
    resident = resident_bytes()
    end, end_allocated = _bytes_in_use(), allocated_bytes()
    session.close()
    return Account(runs, wrong, seconds, warm, end, resident, warm_allocated, end_allocated)


def _bytes_in_use() -> int:
    from headrace.runtime.allocator import give_back

    gc.collect()
    give_back()
    return resident_bytes()


def _on_threads(checks: list[Check], runs: int, threads: int, seed: int) -> int:
    wrong: list[str] = []

    def work(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        for _ in range(-(-runs // threads)):
            check = checks[int(rng.integers(len(checks)))]
            try:
                if not check(rng):
                    wrong.append(check.__name__)
            except Exception as error:
                wrong.append(f"{check.__name__}: {error!r}")

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for line in sorted(set(wrong))[:10]:
        print("wrong:", line)
    return len(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--warm-up", type=int, default=20_000)
    options = parser.parse_args()
    print(soak(options.runs, options.threads, options.warm_up))


if __name__ == "__main__":
    main()
