"""A language model of stacked LSTM cells (PTB's "small" sizes), gradient descent with clipped
gradients.

Written with plain ops: the steps one after another in Python, or with ``tf.while_loop``
(``loop=True``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.models.spec import Array, Model, Optimizer, Weights, Work, dense_work, normal

__all__ = ["LSTM"]

State = list[tuple[Any, Any]]  # of each layer: what it put out, and its cells

OPTIMIZER = Optimizer("descent", 1.0, clip=5.0)


@dataclass(frozen=True)
class LSTM(Model):
    """``hidden`` is the width of the embedding too.

    The gates of a kernel are in the order i, f, g, o.
    """

    vocabulary: int = 10_000
    hidden: int = 200
    layers: int = 2
    steps: int = 20
    loop: bool = False
    batch: int = 20
    optimizer: Optimizer = OPTIMIZER
    name: str = "lstm"
    title: str = "LSTM 2x200, 20 steps, vocabulary 10k, clipped descent"

    def parameters(self) -> dict[str, Array]:
        random = np.random.RandomState(7)
        width = self.hidden
        values = {"embedding": normal(random, (self.vocabulary, width), 0.1)}
        for i in range(self.layers):
            values[f"cell{i}/kernel"] = normal(random, (2 * width, 4 * width), (2 * width) ** -0.5)
            values[f"cell{i}/biases"] = np.zeros(4 * width, np.float32)
            values[f"cell{i}/biases"][width : 2 * width] = 1  # do not forget at first
        values["softmax/weights"] = normal(random, (width, self.vocabulary), width**-0.5)
        values["softmax/biases"] = np.zeros(self.vocabulary, np.float32)
        return values

    def examples(self, batch: int) -> tuple[Array, Array]:
        words = np.random.RandomState(8).randint(0, self.vocabulary, (batch, self.steps + 1))
        return words[:, :-1].astype(np.int32), words[:, 1:].astype(np.int32)

    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        words = tf.transpose(tf.nn.embedding_lookup(weights["embedding"], x), [1, 0, 2])
        zeros = tf.zeros([tf.shape(x)[0], self.hidden])
        state: State = [(zeros, zeros)] * self.layers
        run = self._looped if self.loop else self._unrolled
        outputs = run(tf, weights, words, state, training)
        y = tf.reshape(outputs, [-1, self.hidden])
        y = tf.matmul(y, weights["softmax/weights"]) + weights["softmax/biases"]
        if training:
            y = tf.reshape(y, [-1, self.steps, self.vocabulary])
        return y, {}

    def _unrolled(self, tf: Any, weights: Weights, words: Any, state: State, whole: bool) -> Any:
        outputs = []
        for word in tf.unstack(words, self.steps):
            state = self._step(tf, weights, word, state)
            outputs.append(state[-1][0])
        return tf.stack(outputs, 1) if whole else outputs[-1]

    def _looped(self, tf: Any, weights: Weights, words: Any, state: State, whole: bool) -> Any:
        inputs = tf.TensorArray(tf.float32, self.steps).unstack(words)
        outputs = tf.TensorArray(tf.float32, self.steps)

        def body(i: Any, state: State, outputs: Any) -> tuple[Any, State, Any]:
            state = self._step(tf, weights, inputs.read(i), state)
            return i + 1, state, outputs.write(i, state[-1][0])

        _, state, outputs = tf.while_loop(
            lambda i, *_: i < self.steps,
            body,
            (tf.constant(0), state, outputs),
            maximum_iterations=self.steps,  # without it XLA cannot differentiate the loop
        )
        return tf.transpose(outputs.stack(), [1, 0, 2]) if whole else state[-1][0]

    def _step(self, tf: Any, weights: Weights, word: Any, state: State) -> State:
        y = word
        after: State = []
        for i, (h, c) in enumerate(state):
            kernel, biases = weights[f"cell{i}/kernel"], weights[f"cell{i}/biases"]
            gates = tf.matmul(tf.concat([y, h], 1), kernel) + biases
            in_gate, forget_gate, new, out_gate = tf.split(gates, 4, axis=1)
            c = tf.sigmoid(forget_gate) * c + tf.sigmoid(in_gate) * tf.tanh(new)
            y = tf.sigmoid(out_gate) * tf.tanh(c)
            after.append((y, c))
        return after

    def forward_work(self, batch: int) -> Work:
        return self._work(batch, batch)

    def training_forward_work(self) -> Work:
        return self._work(self.batch, self.batch * self.steps)

    def _work(self, batch: int, predictions: int) -> Work:
        cell = dense_work(batch, 2 * self.hidden, 4 * self.hidden)
        last = dense_work(predictions, self.hidden, self.vocabulary)
        return cell * (self.layers * self.steps) + last
