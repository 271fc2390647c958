"""The models as TensorFlow-1 programs: one text for Headrace and TensorFlow. Variables are
variables, never frozen.

step = training(tf, MODELS["mlp"])
step()                                        # 2.41, the loss
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.models.spec import Model, Optimizer

__all__ = ["inference", "loss_of", "training"]


def training(tf: Any, model: Model, **session_options: Any) -> Callable[[], float]:
    x, labels = model.examples(model.batch)
    with tf.Graph().as_default() as graph:
        inputs, targets = _placeholder(tf, x), _placeholder(tf, labels)
        weights = _variables(tf, model)
        logits, averages = model.logits(tf, weights, inputs, training=True)
        loss = loss_of(tf, logits, targets)
        updates = [tf.assign(weights[name], value) for name, value in averages.items()]
        step = tf.group(minimize(tf, model.optimizer, loss), *updates)
        initializer = tf.global_variables_initializer()
    session = tf.Session(graph=graph, **session_options)
    session.run(initializer)
    feed = {inputs: x, targets: labels}

    def train() -> float:
        value: float = session.run([step, loss], feed)[1]
        return value

    return train


def inference(tf: Any, model: Model, batch: int, **session_options: Any) -> Callable[[], Any]:
    x, _ = model.examples(batch)
    with tf.Graph().as_default() as graph:
        inputs = _placeholder(tf, x)
        logits, _ = model.logits(tf, _variables(tf, model), inputs, training=False)
        initializer = tf.global_variables_initializer()
    session = tf.Session(graph=graph, **session_options)
    session.run(initializer)
    return lambda: session.run(logits, {inputs: x})


def loss_of(tf: Any, logits: Any, labels: Any) -> Any:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def minimize(tf: Any, optimizer: Optimizer, loss: Any) -> Any:
    makers = {
        "adam": lambda rate: tf.train.AdamOptimizer(rate),
        "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
        "descent": lambda rate: tf.train.GradientDescentOptimizer(rate),
    }
    maker = makers[optimizer.kind](optimizer.rate)
    if optimizer.clip is None:
        return maker.minimize(loss)
    gradients, variables = zip(*maker.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, optimizer.clip)
    return maker.apply_gradients(zip(clipped, variables))


def _placeholder(tf: Any, example: Any) -> Any:
    """Of any batch size."""
    return tf.placeholder(tf.as_dtype(example.dtype), (None, *example.shape[1:]))


def _variables(tf: Any, model: Model) -> dict[str, Any]:
    return {
        name: tf.Variable(value, trainable=model.trains(name))
        for name, value in model.parameters().items()
    }
