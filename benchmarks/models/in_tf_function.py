"""The models' TensorFlow text inside ``tf.function(jit_compile=True)``: what XLA makes of them, in
TensorFlow 2.

``tf`` is TensorFlow 2's module; the models are given its ``compat.v1`` for the names, in a process
that is not in v1 mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.models.in_sessions import loss_of
from benchmarks.models.spec import Model, Optimizer

__all__ = ["inference", "training"]


def training(tf: Any, model: Model) -> Callable[[], float]:
    weights = _variables(tf, model)
    trained = [weights[name] for name in weights if model.trains(name)]
    update = _UPDATES[model.optimizer.kind](tf, model.optimizer, trained)

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]  # not there when this is checked
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits, averages = model.logits(tf.compat.v1, weights, x, training=True)
            loss = loss_of(tf, logits, labels)
        slopes = [tf.convert_to_tensor(slope) for slope in tape.gradient(loss, trained)]
        if model.optimizer.clip is not None:
            slopes, _ = tf.clip_by_global_norm(slopes, model.optimizer.clip)
        update(slopes)
        for name, value in averages.items():
            weights[name].assign(value)
        return loss

    x, labels = (tf.constant(array) for array in model.examples(model.batch))
    return lambda: step(x, labels).numpy()


def inference(tf: Any, model: Model, batch: int) -> Callable[[], Any]:
    weights = _variables(tf, model)

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def run(x: Any) -> Any:
        return model.logits(tf.compat.v1, weights, x, training=False)[0]

    x = tf.constant(model.examples(batch)[0])
    return lambda: run(x).numpy()


def _variables(tf: Any, model: Model) -> dict[str, Any]:
    return {name: tf.Variable(value) for name, value in model.parameters().items()}


Update = Callable[[list[Any]], None]


def _adam(tf: Any, optimizer: Optimizer, trained: list[Any]) -> Update:
    """With plain ops, so that XLA sees all of it."""
    means = [tf.Variable(tf.zeros_like(v)) for v in trained]
    squares = [tf.Variable(tf.zeros_like(v)) for v in trained]
    count = tf.Variable(0.0)

    def update(slopes: list[Any]) -> None:
        t = count.assign_add(1.0)
        rate = optimizer.rate * tf.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        for variable, mean, square, slope in zip(trained, means, squares, slopes):
            m = mean.assign(0.9 * mean + 0.1 * slope)
            v = square.assign(0.999 * square + 0.001 * slope * slope)
            variable.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))

    return update


def _momentum(tf: Any, optimizer: Optimizer, trained: list[Any]) -> Update:
    speeds = [tf.Variable(tf.zeros_like(v)) for v in trained]

    def update(slopes: list[Any]) -> None:
        for variable, speed, slope in zip(trained, speeds, slopes):
            variable.assign_sub(optimizer.rate * speed.assign(0.9 * speed + slope))

    return update


def _descent(tf: Any, optimizer: Optimizer, trained: list[Any]) -> Update:
    def update(slopes: list[Any]) -> None:
        for variable, slope in zip(trained, slopes):
            variable.assign_sub(optimizer.rate * slope)

    return update


_UPDATES: dict[str, Callable[[Any, Optimizer, list[Any]], Update]] = {
    "adam": _adam,
    "momentum": _momentum,
    "descent": _descent,
}
