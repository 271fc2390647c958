"""What the tests of settled runs share.

Small layers, sessions, and the sizes from which steps are bound lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.kernels.numpy import attention_kernels as attention
from headrace.kernels.onednn import conv_primitives as conv
from headrace.kernels.onednn import pool_primitives as onednn_pool
from headrace.lower import bound_runs, select_packed

needs_library = pytest.mark.skipif(
    accel.library() is None, reason=f"no kernel library to bind to: {accel.status()}"
)
RNG = np.random.default_rng(0)
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small arrays go the ways that otherwise only large ones go."""
    monkeypatch.setattr(select_packed, "min_elements", lambda opdef: 0)
    monkeypatch.setattr(conv, "MIN_WORK", 1)
    monkeypatch.setattr(conv, "MIN_POINTWISE", 1)
    monkeypatch.setattr(onednn_pool, "MIN_SIZE", 1)
    monkeypatch.setattr(attention, "LIBRARY_FROM", 1)
    yield


def array(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32) * np.float32(0.3)


def bindings(session: Any) -> list[Any]:
    """What a session has settled."""
    tables = list(session._state.bindings.values())
    return [f for t in tables for f in t.values() if isinstance(f, bound_runs._Bound)]


def assert_settled(session: Any) -> None:
    found = bindings(session)
    assert found and not any(f.failures for f in found)


def started(graph: Any, **options: Any) -> Any:
    session = tf.Session(graph=graph, **options)
    with graph.as_default():
        session.run(tf.global_variables_initializer())
    return session


def like(session: Any, graph: Any) -> Any:
    """A session of the reference executor with the same variables."""
    other = tf.Session(graph=graph, executor="reference")
    with graph.as_default():
        for v in tf.global_variables():
            v.load(session.run(v), other)
    return other


def same(got: Any, want: Any, **tolerance: float) -> None:
    assert type(got) is type(want)
    if isinstance(got, list):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b, **tolerance)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, **{**TOLERANCE, **tolerance})


def check(
    build: Callable[[], tuple[Any, Any]],
    shapes: list[list[tuple[int, ...]]],
    primitives: int | None = None,
    **options: Any,
) -> Any:
    """Settled runs agree with the reference's for all these shapes of the feeds, in turn.

    The session comes back.
    """
    with tf.Graph().as_default() as graph:
        feeds, fetches = build()
    session = started(graph, **options)
    reference = like(session, graph)
    for _ in range(3):
        for sizes in shapes:
            feed = {p: array(*size) for p, size in zip(feeds, sizes)}
            same(session.run(fetches, feed), reference.run(fetches, feed))
    found = bindings(session)
    assert len(found) == len(shapes)
    if primitives is not None:
        assert [f.binding.notes["primitives"] for f in found] == [primitives] * len(shapes)
    assert not any(f.failures for f in found)
    return session


def placeholder(*shape: int | None) -> Any:
    return tf.placeholder(tf.float32, shape)


def dense(x: Any, wide: int, activation: Any = None, bias: bool = True) -> Any:
    y = tf.matmul(x, tf.Variable(array(int(x.shape[1]), wide)))
    y = y + tf.Variable(array(wide)) if bias else y
    return y if activation is None else activation(y)


def block(x: Any, channels: int) -> Any:
    """Two convolutions with batch normalisation, and a shortcut round them."""
    y = x
    for last in (False, True):
        w = tf.Variable(array(3, 3, channels, channels))
        y = tf.nn.conv2d(y, w, [1, 1, 1, 1], "SAME")
        scale, offset, mean = (tf.Variable(array(channels)) for _ in range(3))
        variance = tf.Variable(np.abs(array(channels)) + 1)
        y = tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3)
        y = tf.nn.relu(y + x if last else y)
    return y


def layer_norm(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    wide = int(x.shape[-1])
    scale, offset = tf.Variable(array(wide)), tf.Variable(array(wide))
    return (x - mean) * tf.rsqrt(variance + 1e-5) * scale + offset
