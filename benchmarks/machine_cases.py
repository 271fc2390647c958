"""What the machine can do: the rate of large matrix products, and of copies in memory and in cache.

The best of all libraries is the machine's rate; no model can be faster than its floating-point
operations at that rate.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.rows import Rate, Row
from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import per_call, seconds_of

__all__ = ["CASES", "ROWS", "SIDE"]

#: Of the matrices.
SIDE = 2048
#: Floats of the arrays that are copied: too large for any cache; within a core's own.
IN_MEMORY = 1 << 26
IN_CACHE = 1 << 17

_COPIED = 2 * 4  # bytes read and written for a float

ROWS = [
    Row(
        f"product of {SIDE}² float32 matrices",
        "gemm",
        Rate("run", 2 * SIDE**3, "GFlop/s"),
    ),
    Row("copy in memory, all cores", "copy_memory", Rate("run", _COPIED * IN_MEMORY, "GB/s")),
    Row("copy in a core's cache, all cores", "copy_cache", Rate("run", _COPIED * IN_CACHE, "GB/s")),
]


def _matrices() -> tuple[Any, Any]:
    random = np.random.RandomState(0)
    a, b = (random.random_sample((SIDE, SIDE)).astype(np.float32) for _ in range(2))
    return a, b


def _gemm(product: Callable[[Any, Any, Any], Callable[[], Any]]) -> Case:
    def case(module: Any, scale: Scale) -> Measure:
        call = product(module, *_matrices())
        return lambda: {"run": per_call(call, scale.seconds)}

    return case


def _in_session(tf: Any, a: Any, b: Any) -> Callable[[], Any]:
    with tf.Graph().as_default() as graph:
        x, y = tf.placeholder(tf.float32, a.shape), tf.placeholder(tf.float32, b.shape)
        product = tf.matmul(x, y)[0, 0]  # handing out all of it is not the product
    session = tf.Session(graph=graph)
    return lambda: session.run(product, {x: a, y: b})


def _in_jax(jax: Any, a: Any, b: Any) -> Callable[[], Any]:
    product = jax.jit(lambda a, b: a @ b)
    x, y = jax.device_put((a, b))
    return lambda: product(x, y).block_until_ready()


def _in_torch(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
    x, y, out = torch.from_numpy(a), torch.from_numpy(b), torch.empty(a.shape)
    return lambda: torch.mm(x, y, out=out)


def _in_numpy(module: Any, a: Any, b: Any) -> Callable[[], Any]:
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)


def _copy(floats: int, repeats: int) -> Case:
    """Every thread copies its part again and again, so that starting it costs nothing."""

    def case(module: Any, scale: Scale) -> Measure:
        threads = len(os.sched_getaffinity(0))
        size = floats // threads
        pairs = [(np.zeros(size, np.float32), np.ones(size, np.float32)) for _ in range(threads)]

        def work(pair: tuple[Any, Any]) -> None:
            for _ in range(repeats):
                np.copyto(*pair)

        pool = ThreadPoolExecutor(threads)

        def copy() -> None:
            list(pool.map(work, pairs))

        def measure() -> Samples:
            copy()
            return {"run": [seconds_of(copy) / repeats for _ in range(8)]}

        return measure

    return case


CASES: dict[str, dict[str, Case]] = {
    "headrace": {"gemm": _gemm(_in_session)},
    "tf": {"gemm": _gemm(_in_session)},
    "jax": {"gemm": _gemm(_in_jax)},
    "torch": {"gemm": _gemm(_in_torch)},
    "numpy": {
        "gemm": _gemm(_in_numpy),
        "copy_memory": _copy(IN_MEMORY, 2),
        "copy_cache": _copy(IN_CACHE, 2_000),
    },
}
