"""Random graphs of layers and of what stands between them.

Bound to their shapes they give what the reference executor gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.kernels import accel
from headrace.kernels.numpy import attention_kernels as attention
from headrace.kernels.onednn import conv_primitives as conv
from headrace.kernels.onednn import pool_primitives as onednn_pool
from headrace.lower import bound_runs, fusion, select_bound, select_packed
from headrace.lower import fused_code as fused
from headrace.lower import stage_split as kept

pytestmark = pytest.mark.skipif(
    accel.library() is None, reason=f"no kernel library to bind to: {accel.status()}"
)


@pytest.fixture(params=["plain", "fused", "moving"])
def sizes(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small arrays go the ways of large ones."""
    monkeypatch.setattr(select_packed, "min_elements", lambda opdef: 0)
    monkeypatch.setattr(conv, "MIN_WORK", 1)
    monkeypatch.setattr(conv, "MIN_POINTWISE", 1)
    monkeypatch.setattr(onednn_pool, "MIN_SIZE", 1)
    monkeypatch.setattr(attention, "LIBRARY_FROM", 1)
    if request.param != "plain":
        monkeypatch.setattr(fusion, "MIN_ELEMENTS", 1)
        monkeypatch.setattr(fused, "THREADS_FROM", 8)
        monkeypatch.setattr(kept, "MIN_ELEMENTS", 1)
        monkeypatch.setattr(select_bound, "MAX_COPIED_ELEMENTS", 1)
    if request.param == "moving":  # feeds and results of kernels are left where they are
        monkeypatch.setattr(select_bound, "MIN_BYTES_LEFT_IN_PLACE", 1)
    yield


class Network:
    """Draws one layer after the other over a pool of tensors, all of them with the batch as their
    first axis.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self.rng = np.random.RandomState(data.draw(st.integers(0, 1000)))
        self.pool: list[Any] = []

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))  # type: ignore[no-any-return]

    def of(self, choices: list[Any]) -> Any:
        return self.data.draw(st.sampled_from(choices))

    def variable(self, *shape: int) -> Any:
        value = (self.rng.standard_normal(shape) * 0.4).astype(np.float32)
        return self.of([tf.Variable, tf.constant])(value)

    def pick(self, rank: int | None = None) -> Any:
        """A tensor, of some rank if that is asked for."""
        x = self.of(self.pool)
        shape = [int(d) for d in x.shape[1:]]
        if rank is None or len(shape) + 1 == rank:
            return x
        n = int(np.prod(shape))
        if rank == 2:
            return tf.reshape(x, [-1, n])
        first = self.of([d for d in range(1, n + 1) if n % d == 0])
        if rank == 3:
            return tf.reshape(x, [-1, first, n // first])
        rest = n // first
        second = self.of([d for d in range(1, rest + 1) if rest % d == 0])
        return tf.reshape(x, [-1, first, second, rest // second])

    def dense(self) -> Any:
        x = self.pick(2)
        wide = self.number(1, 9)
        turned = self.of([False, True])
        n = int(x.shape[1])
        w = self.variable(wide, n) if turned else self.variable(n, wide)
        y = tf.matmul(x, w, transpose_b=turned)
        if self.of([False, True]):
            y = y + self.variable(wide)
        return self.of([tf.identity, tf.nn.relu, tf.tanh, tf.sigmoid])(y)

    def convolution(self) -> Any:
        x = self.pick(4)
        k, out = self.number(1, 3), self.number(1, 9)
        stride = self.number(1, 2)
        w = self.variable(k, k, int(x.shape[3]), out)
        y = tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME")
        if self.of([False, True]):
            y = tf.nn.bias_add(y, self.variable(out))
        if self.of([False, True]) and x.shape.as_list() == y.shape.as_list():
            y = y + x
        return self.of([tf.identity, tf.nn.relu])(y)

    def pool_layer(self) -> Any:
        f = self.of([tf.nn.max_pool, tf.nn.avg_pool])
        k, stride = self.number(1, 3), self.number(1, 2)
        return f(self.pick(4), [1, k, k, 1], [1, stride, stride, 1], "SAME")

    def norm(self) -> Any:
        x = self.pick(self.of([2, 3]))
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        wide = int(x.shape[-1])
        scaled = (x - mean) * tf.rsqrt(variance + 0.1)
        return scaled * self.variable(wide) + self.variable(wide)

    def attend(self) -> Any:
        x = self.pick(3)
        scores = tf.matmul(x, x, transpose_b=True) * np.float32(self.of([0.5, 0.3]))
        if self.of([False, True]):
            rows = int(x.shape[1])
            scores = scores + np.triu(np.full((rows, rows), -1e9, np.float32), 1)
        return tf.matmul(tf.nn.softmax(scores), x)

    def between(self) -> Any:
        kind = self.of(
            [
                "transpose",
                "split",
                "concat",
                "slice",
                "mean",
                "softmax",
                "unary",
                "stack",
                "weights",
            ]
        )
        if kind == "transpose":
            return tf.transpose(self.pick(3), [0, 2, 1])
        if kind in ("split", "stack"):
            parts = tf.unstack(self.pick(3), axis=self.of([1, 2]))
            self.pool.append(tf.stack(parts[::-1], 1))
            return self.of(parts)
        if kind == "concat":
            return tf.concat([self.pick(2), self.pick(2)], 1)
        if kind == "slice":
            x = self.pick(2)
            return x[:, self.number(0, int(x.shape[1]) - 1) :: self.of([1, 2])]
        if kind == "mean":
            x = self.pick(self.of([3, 4]))
            axes = self.of([[1], [-1], [1, 2]])
            return self.of([tf.reduce_mean, tf.reduce_max, tf.reduce_sum])(x, axes, keepdims=True)
        if kind == "softmax":
            return tf.nn.softmax(self.pick())
        if kind == "weights":  # a view of a variable with every row
            x = self.pick(2)
            w = self.variable(2, int(x.shape[1]))
            return x * self.of(
                [w[1], tf.reshape(w, [-1])[: int(x.shape[1])], tf.transpose(tf.transpose(w))[0]]
            )
        return self.of([tf.nn.relu, tf.tanh, tf.square, tf.negative, lambda x: x * 2.0 + 1.0])(
            self.pick()
        )

    def combined(self) -> Any:
        """Of two that fit: sums that products may take in, and others."""
        a = self.pick()
        fitting = [t for t in self.pool if t.shape.as_list() == a.shape.as_list()]
        b = self.of([*fitting, self.variable(1)])
        return self.of([tf.add, tf.add, tf.multiply, tf.subtract, tf.maximum])(a, b)

    def grow(self) -> None:
        layers = [self.dense, self.dense, self.convolution, self.pool_layer, self.norm, self.attend]
        made = self.of([*layers, self.between, self.between, self.combined, self.combined])()
        if int(np.prod([int(d) for d in made.shape[1:]])) <= 400:
            self.pool.append(
                tf.clip_by_value(made, -50.0, 50.0) if self.of([True, False, False]) else made
            )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_networks(sizes: None, data: Any) -> None:
    with tf.Graph().as_default() as graph:
        network = Network(data)
        side, channels = network.number(1, 4), network.number(1, 9)
        x = tf.placeholder(tf.float32, [None, side, side, channels])
        network.pool.append(x)
        for _ in range(network.number(2, 9)):
            network.grow()
        network.pool.append(network.dense())
        fetches = [network.of(network.pool) for _ in range(network.number(1, 3))] + network.pool[
            -1:
        ]
        variables = tf.global_variables()
        init = tf.global_variables_initializer()
        change = tf.group(*[tf.assign(v, v * 0.5) for v in variables])
    sessions = [tf.Session(graph=graph, executor=e) for e in ("numpy", "reference")]
    for s in sessions:
        s.run(init)
    values = {rows: network.rng.standard_normal((rows, side, side, channels)) for rows in (2, 3)}
    results: list[tuple[Any, Any]] = []
    for turn in range(3):
        for value in values.values():
            results.append(tuple(s.run(fetches, {x: value}) for s in sessions))  # type: ignore[arg-type]
        if turn == 1:
            for s in sessions:
                s.run(change)
    for got, want in results:
        for a, b in zip(got, want):
            assert a.shape == b.shape and a.dtype == b.dtype
            size = max(1.0, float(np.abs(b).max(initial=0)))
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * size)
    for table in sessions[0]._state.bindings.values():
        assert not any(f.failures for f in table.values() if isinstance(f, bound_runs._Bound))
    for s in sessions:
        s.close()
