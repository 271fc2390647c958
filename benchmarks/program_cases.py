"""Training steps of small programs (:mod:`benchmarks.programs`), random numbers and updates.

A program's time is that of one step of its loop, ``run`` calls and feeds included. Random ops give
their numbers to the caller; updates are applied to a 784x625 variable with a gradient that lies in
a constant, so that nothing else is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.rows import Best, Row, Target
from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import per_call, warm_up

__all__ = ["CASES", "CHECKS", "ROWS"]

#: Steps, and seconds (in units of the measurement's), before measuring: plans, bindings and
#: compiled kernels are there then.
WARM, WARM_SECONDS = 60, 2.5
#: Steps whose losses are compared.
CHECKED = 20
SHAPES = {"128x784": (128, 784), "1M": (1_000_000,)}
SAMPLERS = ("random_normal", "random_uniform", "truncated_normal")
UPDATED = (784, 625)


def _program(tf: Any, scale: Scale, *, name: str) -> Measure:
    step = programs.make_step(tf, name)
    warm_up(step, scale.count(WARM), WARM_SECONDS * scale.seconds)
    return lambda: {"run": per_call(step, scale.seconds)}


def _losses(tf: Any, scale: Scale, *, name: str) -> Measure:
    return lambda: {"losses": programs.losses(tf, name, CHECKED)}


def _random(tf: Any, scale: Scale, *, sampler: str, shape: tuple[int, ...]) -> Measure:
    with tf.Graph().as_default() as graph:
        numbers = getattr(tf, sampler)(shape, seed=7)
        session = tf.Session(graph=graph)
    return _warm(lambda: session.run(numbers), scale)


def _cross_entropy(tf: Any, scale: Scale) -> Measure:
    """Sigmoid cross entropy with its gradient, 128x784."""
    x, labels = (np.random.rand(128, 784).astype(np.float32) for _ in range(2))
    with tf.Graph().as_default() as graph:
        logits = tf.placeholder(tf.float32, [None, 784])
        losses = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels)
        loss = tf.reduce_mean(losses)
        fetches = [loss, *tf.gradients(loss, logits)]
        session = tf.Session(graph=graph)
    return _warm(lambda: session.run(fetches, {logits: x}), scale)


def _dropout(tf: Any, scale: Scale) -> Measure:
    """Dropout with its gradient, 128x784."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.nn.dropout(x, keep_prob=0.5, seed=3)
        fetches = [y, *tf.gradients(y, x)]
        session = tf.Session(graph=graph)
    feed = {x: np.random.rand(128, 784).astype(np.float32)}
    return _warm(lambda: session.run(fetches, feed), scale)


#: By the name that a row has. Rates are so small that a variable stays finite.
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda tf: tf.train.GradientDescentOptimizer(1e-6),
    "momentum": lambda tf: tf.train.MomentumOptimizer(1e-6, 0.9),
    "nesterov": lambda tf: tf.train.MomentumOptimizer(1e-6, 0.9, use_nesterov=True),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(1e-6),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(1e-6),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(1e-6, 0.9),
    "rmsprop_centered": lambda tf: tf.train.RMSPropOptimizer(1e-6, 0.9, centered=True),
    "adam": lambda tf: tf.train.AdamOptimizer(1e-6),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(1e-6),
}


def _update(tf: Any, scale: Scale, *, optimizer: str) -> Measure:
    gradient = (np.random.rand(*UPDATED) - 0.5).astype(np.float32)
    with tf.Graph().as_default() as graph:
        variable = tf.Variable(np.random.rand(*UPDATED).astype(np.float32))
        pairs = [(tf.constant(gradient), variable)]
        train = OPTIMIZERS[optimizer](tf).apply_gradients(pairs)
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    return _warm(lambda: session.run(train), scale)


def _warm(call: Callable[[], Any], scale: Scale) -> Measure:
    warm_up(call, scale.count(WARM), WARM_SECONDS * scale.seconds)

    def measure() -> Samples:
        return {"run": per_call(call, scale.seconds)}

    return measure


CHECKS = [f"{name}.losses" for name in programs.PROGRAMS]
CASES: dict[str, Case] = {
    **{f"{name}.step": partial(_program, name=name) for name in programs.PROGRAMS},
    **{f"{name}.losses": partial(_losses, name=name) for name in programs.PROGRAMS},
    **{
        f"{sampler}.{size}": partial(_random, sampler=sampler, shape=shape)
        for sampler in SAMPLERS
        for size, shape in SHAPES.items()
    },
    "sigmoid_cross_entropy": _cross_entropy,
    "dropout.128x784": _dropout,
    **{f"{name}.update": partial(_update, optimizer=name) for name in OPTIMIZERS},
}


def _must(times: float) -> dict[str, Target]:
    return {"must": Target({"tf": times})}


ROWS = [
    *(
        Row(title, f"{name}.step", Best("run"), _must(1.3), short=name)
        for name, title in programs.TITLES.items()
    ),
    *(
        Row(f"{sampler}, {size}", f"{sampler}.{size}", Best("run"), _must(1.3))
        for sampler in SAMPLERS
        for size in SHAPES
    ),
    Row(
        "sigmoid cross entropy with its gradient, 128x784",
        "sigmoid_cross_entropy",
        Best("run"),
        _must(1.5),
    ),
    Row("dropout with its gradient, 128x784", "dropout.128x784", Best("run"), _must(1.5)),
    *(
        Row(f"update of 784x625, {name}", f"{name}.update", Best("run"), _must(1.3))
        for name in OPTIMIZERS
    ),
]
