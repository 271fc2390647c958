"""The cases as TensorFlow-1 programs: functions of the module ``tf``, the same text for Headrace
and TensorFlow.

A case is called with ``tf`` and a :class:`~benchmarks.scale.Scale` once in a process and returns
what measures a round:

    measure = scalar_add(tf, FULL)
    measure()                                     # {"run": [3.1e-06, 3.0e-06, ...]}
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.models.in_sessions import inference, training
from benchmarks.models.lenet import LeNet
from benchmarks.models.spec import Optimizer
from benchmarks.scale import QUICK, Samples, Scale
from benchmarks.timing import per_call, seconds_of, warm_up

__all__ = ["CASES", "Case", "Measure", "classifier_step"]

Measure = Callable[[], Samples]
Case = Callable[[Any, Scale], Measure]


def scalar_add(tf: Any, scale: Scale) -> Measure:
    """``run(c, {a: 1, b: 2})``."""
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float32)
        b = tf.placeholder(tf.float32)
        c = tf.add(a, b)
    return _measure_run(tf.Session(graph=graph), c, {a: 1, b: 2}, scale)


def linear_layer(tf: Any, scale: Scale) -> Measure:
    """One row of five numbers, fed as float64, through a layer of three."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, (1, 5))
        weights = tf.Variable(tf.random_normal((5, 3)))
        biases = tf.Variable(tf.random_normal((1, 3)))
        y = tf.matmul(x, weights) + biases
        session = _initialized(tf, graph)
    return _measure_run(session, y, {x: np.random.rand(1, 5)}, scale)


def logistic_step(tf: Any, scale: Scale) -> Measure:
    """A step of gradient descent on a softmax regression: 100 rows of 10 numbers, two classes."""
    with tf.Graph().as_default() as graph:
        x, labels, fetches = classifier_step(tf, (10, 2), tf.train.GradientDescentOptimizer(0.1))
        session = _initialized(tf, graph)
    feed = {x: np.random.rand(100, 10), labels: np.random.randint(0, 2, 100)}
    return _measure_run(session, fetches, feed, scale)


def mlp_adam(tf: Any, scale: Scale) -> Measure:
    """A step of Adam on a 784-512-512-10 network, 128 rows."""
    with tf.Graph().as_default() as graph:
        x, labels, fetches = classifier_step(tf, (784, 512, 512, 10), tf.train.AdamOptimizer(1e-3))
        session = _initialized(tf, graph)
    feed = {
        x: np.random.rand(128, 784).astype(np.float32),
        labels: np.random.randint(0, 10, 128).astype(np.int32),
    }
    return _measure_run(session, fetches, feed, scale)


def tanh_chain(tf: Any, scale: Scale) -> Measure:
    """``tanh(1.1 x + 0.1)`` ten times over a million floats."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, (None,))
        y = x
        for _ in range(10):
            y = tf.tanh(1.1 * y + 0.1)
    feed = {x: np.random.rand(1_000_000).astype(np.float32)}
    return _measure_run(tf.Session(graph=graph), y, feed, scale)


def sigmoid_loss(tf: Any, scale: Scale) -> Measure:
    """The mean sigmoid cross entropy of 128x784 logits, and its gradient."""
    with tf.Graph().as_default() as graph:
        logits, labels = (tf.placeholder(tf.float32, (128, 784)) for _ in range(2))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        fetches = [loss, *tf.gradients(loss, logits)]
    feed = {p: np.random.rand(128, 784).astype(np.float32) for p in (logits, labels)}
    return _measure_run(tf.Session(graph=graph), fetches, feed, scale)


def dropout(tf: Any, scale: Scale) -> Measure:
    """Dropout of 128x784 numbers, and its gradient."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, (128, 784))
        y = tf.nn.dropout(x, keep_prob=0.5)
        fetches = [y, *tf.gradients(y, x)]
    feed = {x: np.random.rand(128, 784).astype(np.float32)}
    return _measure_run(tf.Session(graph=graph), fetches, feed, scale)


def conv_forward(tf: Any, scale: Scale) -> Measure:
    """The LeNet-style net of :mod:`benchmarks.models`, 64 images, variables not frozen."""
    run = inference(tf, _lenet(scale), 64)
    return lambda: {"run": per_call(run, scale.seconds)}


def conv_step(tf: Any, scale: Scale) -> Measure:
    """Forward and backward with the cheapest optimizer."""
    step = training(tf, replace(_lenet(scale), optimizer=Optimizer("descent", 0.01)))
    return lambda: {"run": per_call(step, scale.seconds)}


def _lenet(scale: Scale) -> LeNet:
    return LeNet(side=8, batch=8) if scale is QUICK else LeNet()


def anew(tf: Any, scale: Scale) -> Measure:
    """Three new ops and a new session in every one of 1,000 iterations, all in one default
    graph.
    """
    count = scale.count(1_000)

    def measure() -> Samples:
        times = _iterations_anew(tf, count)
        return {"iteration": [sum(times) / count]}

    return measure


def anew_long(tf: Any, scale: Scale) -> Measure:
    """The same for 10,000 iterations: those around the 100th and the last ones."""
    count = scale.count(10_000)

    def measure() -> Samples:
        times = _iterations_anew(tf, count)
        width = min(50, count // 4)
        near_100 = min(100, count // 2)
        early = times[near_100 - width // 2 : near_100 + width // 2]
        return {"early": early, "late": times[-width:]}

    return measure


def _iterations_anew(tf: Any, count: int) -> list[float]:
    def iteration(i: int) -> None:
        a = tf.constant([i])
        b = tf.constant([i * 2])
        c = tf.add(a, b)
        with tf.Session() as session:
            session.run(c)

    gc.collect()
    with tf.Graph().as_default():
        return [seconds_of(iteration, i) for i in range(count)]


def classifier_step(tf: Any, sizes: tuple[int, ...], optimizer: Any) -> tuple[Any, Any, list[Any]]:
    """A classifier with relu layers of these sizes.

    The placeholders of rows and labels, and what a step fetches.
    """
    x = tf.placeholder(tf.float32, (None, sizes[0]))
    labels = tf.placeholder(tf.int32, (None,))
    y = x
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        weights = tf.Variable(tf.random_normal((inputs, outputs), stddev=inputs**-0.5))
        biases = tf.Variable(tf.zeros((outputs,)))
        y = tf.matmul(y if i == 0 else tf.nn.relu(y), weights) + biases
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
    loss = tf.reduce_mean(losses)
    return x, labels, [optimizer.minimize(loss), loss]


def _initialized(tf: Any, graph: Any) -> Any:
    session = tf.Session(graph=graph)
    session.run(tf.global_variables_initializer())
    return session


def _measure_run(session: Any, fetches: Any, feed: dict[Any, Any], scale: Scale) -> Measure:
    run = lambda: session.run(fetches, feed)
    warm_up(run, 3, scale.seconds)  # what is hot has been compiled then
    return lambda: {"run": per_call(run, scale.seconds)}


CASES: dict[str, Case] = {
    "scalar_add": scalar_add,
    "linear_layer": linear_layer,
    "logistic_step": logistic_step,
    "mlp_adam": mlp_adam,
    "tanh_chain": tanh_chain,
    "sigmoid_loss": sigmoid_loss,
    "dropout": dropout,
    "conv_forward": conv_forward,
    "conv_step": conv_step,
    "anew": anew,
    "anew_long": anew_long,
}
