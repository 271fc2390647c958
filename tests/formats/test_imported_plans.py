"""Graphs that were read run as graphs that were built: the same plan, the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.session.session import Session

RNG = np.random.RandomState(0)


def _weights(*shape: int) -> Any:
    return tf.constant((RNG.normal(size=shape) * 0.2).astype(np.float32))


def conv_net() -> list[int]:
    shape = [4, 28, 28, 1]
    y: Any = tf.placeholder(tf.float32, shape, name="x")
    for before, after in ((1, 16), (16, 32)):
        y = tf.nn.conv2d(y, _weights(3, 3, before, after), [1, 1, 1, 1], "SAME")
        y = tf.nn.relu(tf.nn.bias_add(y, _weights(after)))
        y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = tf.reshape(y, [4, 7 * 7 * 32])
    tf.nn.softmax(tf.matmul(y, _weights(7 * 7 * 32, 10)) + _weights(10), name="y")
    return shape


def lstm() -> list[int]:
    shape = [8, 20, 32]
    x = tf.placeholder(tf.float32, shape, name="x")
    kernel, bias, zeros = _weights(96, 256), _weights(256), tf.zeros([8, 64])
    given = tf.TensorArray(tf.float32, 20).unstack(tf.transpose(x, [1, 0, 2]))

    def step(i: Any, h: Any, c: Any, out: Any) -> tuple[Any, ...]:
        gates = tf.matmul(tf.concat([given.read(i), h], 1), kernel) + bias
        into, new, forget, output = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(forget + 1.0) + tf.sigmoid(into) * tf.tanh(new)
        h = tf.tanh(c) * tf.sigmoid(output)
        return i + 1, h, c, out.write(i, h)

    state = [0, zeros, zeros, tf.TensorArray(tf.float32, 20)]
    tf.identity(tf.while_loop(lambda i, *_: i < 20, step, state)[3].stack(), name="y")
    return shape


def attention() -> list[int]:
    shape = [2, 32, 64]
    y: Any = tf.placeholder(tf.float32, shape, name="x")
    flat = tf.reshape(y, [64, 64])
    heads = [
        tf.transpose(
            tf.reshape(tf.matmul(flat, _weights(64, 64)) + _weights(64), [2, 32, 4, 16]),
            [0, 2, 1, 3],
        )
        for _ in range(3)
    ]
    scores = tf.nn.softmax(tf.matmul(heads[0], heads[1], transpose_b=True) * 0.25)
    out = tf.reshape(tf.transpose(tf.matmul(scores, heads[2]), [0, 2, 1, 3]), [64, 64])
    y = y + tf.reshape(tf.matmul(out, _weights(64, 64)) + _weights(64), shape)
    mean, variance = tf.nn.moments(y, [-1], keep_dims=True)
    y = (y - mean) * tf.rsqrt(variance + 1e-6) * _weights(64) + _weights(64)
    h = tf.matmul(tf.reshape(y, [64, 64]), _weights(64, 256)) + _weights(256)
    h = 0.5 * h * (1.0 + tf.tanh(0.79788 * (h + 0.044715 * h * h * h)))
    tf.add(y, tf.reshape(tf.matmul(h, _weights(256, 64)) + _weights(64), shape), name="y")
    return shape


def branches_and_loops() -> list[int]:
    x = tf.placeholder(tf.float32, [16, 16], name="x")
    w = _weights(16, 16)
    y = tf.cond(tf.reduce_sum(x) > -1e9, lambda: tf.nn.relu(tf.matmul(x, w)), lambda: x)
    loop = tf.while_loop(
        lambda i, _: i < 10, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), [0, y]
    )
    tf.identity(loop[1], name="y")
    return [16, 16]


def functional() -> list[int]:
    """The same with functions: If, While and a call in the file."""

    @tf.function
    def looped(y: Any, w: Any) -> Any:
        for _ in tf.range(10):
            if tf.reduce_sum(y) > -1e9:
                y = tf.tanh(tf.matmul(y, w))
            else:
                y = y * 2.0
        return y

    x = tf.placeholder(tf.float32, [16, 16], name="x")
    tf.identity(looped(x, _weights(16, 16)), name="y")
    return [16, 16]


def _plan(session: Any) -> list[str]:
    text = str(session.explain("y:0", ["x:0"]))
    return [
        line
        for line in text.splitlines()
        if re.match("  (rewrites|fused|buffers|kept|settled|steps|native) ", line)
    ]


@pytest.mark.parametrize("build", [conv_net, lstm, attention, branches_and_loops, functional])
def test_plans_are_equal(build: Callable[[], list[int]]) -> None:
    with tf.Graph().as_default() as built:
        shape = build()
    with tf.Graph().as_default() as read:
        tf.import_graph_def(built.as_graph_def(), name="")
    sessions = [Session(graph=built), Session(graph=read)]
    value = RNG.normal(size=shape).astype(np.float32)
    results = [[s.run("y:0", {"x:0": value}) for _ in range(3)] for s in sessions]
    np.testing.assert_array_equal(results[0], results[1])
    assert _plan(sessions[0]) == _plan(sessions[1])
    for session in sessions:
        session.close()
