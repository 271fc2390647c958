"""The cases that can be said with ``jax.jit``: the same work, with arrays instead of a session.

The figures are kind to jax: a result counts as there when it is ready, without making it a NumPy
array as ``run`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Measure
from benchmarks.timing import per_call, seconds_of

__all__ = ["CASES"]

JaxCase = Callable[[Any, Scale], Measure]
Params = list[tuple[Any, Any]]


def scalar_add(jax: Any, scale: Scale) -> Measure:
    add = jax.jit(lambda a, b: a + b)
    return _measure_call(lambda: add(1.0, 2.0).block_until_ready(), scale)


def linear_layer(jax: Any, scale: Scale) -> Measure:
    weights = jax.numpy.asarray(np.random.rand(5, 3).astype(np.float32))
    biases = jax.numpy.asarray(np.random.rand(1, 3).astype(np.float32))
    layer = jax.jit(lambda x, weights, biases: x @ weights + biases)
    x = np.random.rand(1, 5)
    return _measure_call(lambda: layer(x, weights, biases).block_until_ready(), scale)


def logistic_step(jax: Any, scale: Scale) -> Measure:
    trainer = Descent(jax, (10, 2))
    x = np.random.rand(100, 10)
    labels = np.random.randint(0, 2, 100)
    return _measure_call(lambda: trainer.step(x, labels), scale)


def mlp_adam(jax: Any, scale: Scale) -> Measure:
    params = _params((784, 512, 512, 10))
    zeros = jax.tree.map(np.zeros_like, params)
    state = [params, zeros, zeros, np.float32(0)]
    step = jax.jit(_adam_step(jax), donate_argnums=(0,))
    x = np.random.rand(128, 784).astype(np.float32)
    labels = np.random.randint(0, 10, 128).astype(np.int32)

    def train() -> None:
        state[:], loss = step(state, x, labels)
        loss.block_until_ready()

    return _measure_call(train, scale)


def tanh_chain(jax: Any, scale: Scale) -> Measure:
    @jax.jit  # type: ignore[untyped-decorator]  # jax is not there when this is checked
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = jax.numpy.tanh(1.1 * x + 0.1)
        return x

    x = np.random.rand(1_000_000).astype(np.float32)
    return _measure_call(lambda: chain(x).block_until_ready(), scale)


def new_sizes(jax: Any, scale: Scale) -> Measure:
    """Every new size is compiled, so a few sizes tell the cost of all."""
    rows = np.random.rand(1_000, 10).astype(np.float32)
    classes = np.random.randint(0, 2, 1_000).astype(np.int32)

    def measure() -> Samples:
        trainer = Descent(jax, (10, 32, 2))
        new: list[float] = []
        settled: list[float] = []
        for n in range(100, 110):
            times = [seconds_of(trainer.step, rows[:n], classes[:n]) for _ in range(6)]
            new.append(times[0])
            settled.append(min(times[2:]))
        return {"new": new[1:], "settled": settled[1:]}

    return measure


class Descent:
    """A classifier trained by gradient descent."""

    def __init__(self, jax: Any, sizes: tuple[int, ...]) -> None:
        loss = _loss(jax)

        def step(params: Params, x: Any, labels: Any) -> tuple[Params, Any]:
            value, slopes = jax.value_and_grad(loss)(params, x, labels)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

        self.params = _params(sizes)
        self.jitted = jax.jit(step)

    def step(self, x: Any, labels: Any) -> None:
        self.params, loss = self.jitted(self.params, x, labels)
        loss.block_until_ready()


def _params(sizes: tuple[int, ...]) -> Params:
    return [
        ((np.random.randn(i, o) * i**-0.5).astype(np.float32), np.zeros((o,), np.float32))
        for i, o in pairwise(sizes)
    ]


def _loss(jax: Any) -> Callable[[Params, Any, Any], Any]:
    def loss(params: Params, x: Any, labels: Any) -> Any:
        y = x
        for i, (weights, biases) in enumerate(params):
            y = (y if i == 0 else jax.nn.relu(y)) @ weights + biases
        chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(y), labels[:, None], axis=1)
        return -chosen.mean()

    return loss


def _adam_step(jax: Any) -> Callable[[list[Any], Any, Any], tuple[list[Any], Any]]:
    loss = _loss(jax)

    def step(state: list[Any], x: Any, labels: Any) -> tuple[list[Any], Any]:
        params, means, squares, count = state
        value, slopes = jax.value_and_grad(loss)(params, x, labels)
        count = count + 1
        rate = 1e-3 * jax.numpy.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, slopes)
        squares = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, squares, slopes)
        params = jax.tree.map(
            lambda p, m, v: p - rate * m / (jax.numpy.sqrt(v) + 1e-8), params, means, squares
        )
        return [params, means, squares, count], value

    return step


def _measure_call(call: Callable[[], Any], scale: Scale) -> Measure:
    return lambda: {"run": per_call(call, scale.seconds)}


CASES: dict[str, JaxCase] = {
    "scalar_add": scalar_add,
    "linear_layer": linear_layer,
    "logistic_step": logistic_step,
    "mlp_adam": mlp_adam,
    "tanh_chain": tanh_chain,
    "new_sizes": new_sizes,
}
