"""Eager execution and ``tf.function`` as functions of TensorFlow 2's module: one text for Headrace
and TensorFlow.

Below them the same for PyTorch, NumPy and jax, where they have it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.rows import Best, Row, Target
from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import per_call, seconds_after_collecting

__all__ = ["CASES", "ROWS"]

ROWS = [
    Row("a + b, 10 floats", "eager_add", Best("run"), {"must": Target({"tf": 1})}, short="a + b"),
    Row(
        "MLP 32-64-64-10 forward, 16 rows, eager",
        "eager_mlp",
        Best("run"),
        {"must": Target({"tf": 1, "torch": 0.5})},
        short="MLP forward",
    ),
    Row(
        "… step of descent with GradientTape, eager",
        "tape_step",
        Best("run"),
        {"must": Target({"tf": 1})},
        short="tape step",
    ),
    Row(
        "call of tf.function(x + 1)",
        "function_call",
        Best("run"),
        {"must": Target({"tf": 10})},
        short="function call",
    ),
    Row(
        "… of the MLP, forward",
        "function_mlp",
        Best("run"),
        {"must": Target({"tf": 1})},
        short="function MLP",
    ),
    Row("first call of it with a new shape (retrace)", "retrace", Best("new"), short="retrace"),
]

SIZES = (32, 64, 64, 10)
BATCH = 16
RATE = 0.01


def _arrays() -> tuple[list[Any], Any, Any]:
    random = np.random.RandomState(0)
    weights: list[Any] = []
    for inputs, outputs in pairwise(SIZES):
        weights.append((random.standard_normal((inputs, outputs)) * 0.1).astype(np.float32))
        weights.append(np.zeros(outputs, np.float32))
    x = random.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    return weights, x, random.randint(0, SIZES[-1], BATCH)


def _repeated(call: Callable[[], Any], scale: Scale) -> Measure:
    return lambda: {"run": per_call(call, scale.seconds)}


def _retraced(make: Callable[[], Callable[[Any], Any]], scale: Scale) -> Measure:
    """Of one function, each call with a number of rows that it has not seen."""
    rows = iter(range(20, 1_000_000))

    def measure() -> Samples:
        function = make()
        function(np.zeros((next(rows), SIZES[0]), np.float32))
        inputs = [np.zeros((next(rows), SIZES[0]), np.float32) for _ in range(4)]
        return {"new": [seconds_after_collecting(function, x) for x in inputs]}

    return measure


# TensorFlow's API -------------------------------------------------------------------------------


def _forward(tf: Any, weights: list[Any], x: Any) -> Any:
    for i in range(0, len(weights), 2):
        x = tf.nn.relu(x) if i else x
        x = tf.matmul(x, weights[i]) + weights[i + 1]
    return x


def eager_add(tf: Any, scale: Scale) -> Measure:
    a, b = tf.constant(np.ones(10, np.float32)), tf.constant(np.ones(10, np.float32))
    return _repeated(lambda: a + b, scale)


def eager_mlp(tf: Any, scale: Scale) -> Measure:
    arrays, x, _ = _arrays()
    weights, x = [tf.Variable(w) for w in arrays], tf.constant(x)
    return _repeated(lambda: _forward(tf, weights, x), scale)


def tape_step(tf: Any, scale: Scale) -> Measure:
    arrays, x, labels = _arrays()
    weights, x, labels = [tf.Variable(w) for w in arrays], tf.constant(x), tf.constant(labels)

    def step() -> None:
        with tf.GradientTape() as tape:
            logits = _forward(tf, weights, x)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(losses)
        for weight, slope in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(RATE * slope)

    return _repeated(step, scale)


def function_call(tf: Any, scale: Scale) -> Measure:
    function = tf.function(lambda x: x + 1)
    x = tf.constant(np.ones(10, np.float32))
    return _repeated(lambda: function(x), scale)


def function_mlp(tf: Any, scale: Scale) -> Measure:
    arrays, x, _ = _arrays()
    weights, x = [tf.Variable(w) for w in arrays], tf.constant(x)
    function = tf.function(lambda x: _forward(tf, weights, x))
    return _repeated(lambda: function(x), scale)


def retrace(tf: Any, scale: Scale) -> Measure:
    weights = [tf.Variable(w) for w in _arrays()[0]]

    def make() -> Callable[[Any], Any]:
        function = tf.function(lambda x: _forward(tf, weights, x))
        return lambda x: function(tf.constant(x))

    return _retraced(make, scale)


# the others -------------------------------------------------------------------------------------


def _numpy_forward(weights: list[Any], x: Any) -> Any:
    for i in range(0, len(weights), 2):
        x = np.maximum(x, 0) if i else x
        x = x @ weights[i] + weights[i + 1]
    return x


def _numpy_add(module: Any, scale: Scale) -> Measure:
    a, b = np.ones(10, np.float32), np.ones(10, np.float32)
    return _repeated(lambda: a + b, scale)


def _numpy_mlp(module: Any, scale: Scale) -> Measure:
    weights, x, _ = _arrays()
    return _repeated(lambda: _numpy_forward(weights, x), scale)


def _torch_forward(torch: Any, weights: list[Any], x: Any) -> Any:
    for i in range(0, len(weights), 2):
        x = torch.relu(x) if i else x
        x = torch.addmm(weights[i + 1], x, weights[i])
    return x


def _torch_add(torch: Any, scale: Scale) -> Measure:
    a, b = torch.ones(10), torch.ones(10)
    return _repeated(lambda: a + b, scale)


def _torch_mlp(torch: Any, scale: Scale) -> Measure:
    arrays, x, _ = _arrays()
    weights, x = [torch.from_numpy(w) for w in arrays], torch.from_numpy(x)
    return _repeated(lambda: _torch_forward(torch, weights, x), scale)


def _torch_step(torch: Any, scale: Scale) -> Measure:
    arrays, x, labels = _arrays()
    weights = [torch.from_numpy(w).requires_grad_() for w in arrays]
    x, labels = torch.from_numpy(x), torch.from_numpy(labels)

    def step() -> None:
        logits = _torch_forward(torch, weights, x)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes):
                weight.sub_(slope, alpha=RATE)

    return _repeated(step, scale)


def _jax_call(jax: Any, scale: Scale) -> Measure:
    function = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.ones(10, np.float32))
    return _repeated(lambda: function(x).block_until_ready(), scale)


def _jax_forward(jax: Any) -> Callable[[list[Any], Any], Any]:
    def forward(weights: list[Any], x: Any) -> Any:
        for i in range(0, len(weights), 2):
            x = jax.nn.relu(x) if i else x
            x = x @ weights[i] + weights[i + 1]
        return x

    return forward


def _jax_mlp(jax: Any, scale: Scale) -> Measure:
    arrays, x, _ = _arrays()
    weights, x = jax.device_put((arrays, x))
    function = jax.jit(_jax_forward(jax))
    return _repeated(lambda: function(weights, x).block_until_ready(), scale)


def _jax_retrace(jax: Any, scale: Scale) -> Measure:
    weights = jax.device_put(_arrays()[0])

    def make() -> Callable[[Any], Any]:
        function = jax.jit(_jax_forward(jax))
        return lambda x: function(weights, x).block_until_ready()

    return _retraced(make, scale)


_TF: dict[str, Case] = {
    "eager_add": eager_add,
    "eager_mlp": eager_mlp,
    "tape_step": tape_step,
    "function_call": function_call,
    "function_mlp": function_mlp,
    "retrace": retrace,
}
CASES: dict[str, dict[str, Case]] = {
    "headrace": _TF,
    "tf": _TF,
    "torch": {"eager_add": _torch_add, "eager_mlp": _torch_mlp, "tape_step": _torch_step},
    "numpy": {"eager_add": _numpy_add, "eager_mlp": _numpy_mlp},
    "jax": {"function_call": _jax_call, "function_mlp": _jax_mlp, "retrace": _jax_retrace},
}
