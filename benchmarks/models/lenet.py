"""A LeNet-style conv net.

Two 5×5 convolutions with pooling, a wide dense layer, Adam (the "deep MNIST" of TF 1's tutorials).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.models.spec import (
    Array,
    Model,
    Optimizer,
    Weights,
    Work,
    conv_work,
    dense_work,
    normal,
)

__all__ = ["LeNet"]

OPTIMIZER = Optimizer("adam", 1e-4)


@dataclass(frozen=True)
class LeNet(Model):
    """Images of ``side``² pixels, a multiple of 4."""

    side: int = 28
    filters: tuple[int, int] = (32, 64)
    dense: int = 1024
    classes: int = 10
    batch: int = 64
    optimizer: Optimizer = OPTIMIZER
    name: str = "lenet"
    title: str = "LeNet-style, 5x5x32, 5x5x64, dense 1024, Adam"

    @property
    def flat(self) -> int:
        return (self.side // 4) ** 2 * self.filters[1]

    def parameters(self) -> dict[str, Array]:
        random = np.random.RandomState(3)
        first, second = self.filters
        shapes = {
            "conv0": (5, 5, 1, first),
            "conv1": (5, 5, first, second),
            "dense0": (self.flat, self.dense),
            "dense1": (self.dense, self.classes),
        }
        values: dict[str, Array] = {}
        for layer, shape in shapes.items():
            inputs = int(np.prod(shape[:-1]))
            values[f"{layer}/weights"] = normal(random, shape, (2 / inputs) ** 0.5)
            values[f"{layer}/biases"] = np.zeros(shape[-1], np.float32)
        return values

    def examples(self, batch: int) -> tuple[Array, Array]:
        random = np.random.RandomState(4)
        x = random.random_sample((batch, self.side, self.side, 1)).astype(np.float32)
        return x, random.randint(0, self.classes, batch).astype(np.int32)

    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        y = x
        for layer in ("conv0", "conv1"):
            y = tf.nn.conv2d(y, weights[f"{layer}/weights"], strides=[1, 1, 1, 1], padding="SAME")
            y = tf.nn.relu(y + weights[f"{layer}/biases"])
            y = tf.nn.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        y = tf.reshape(y, [-1, self.flat])
        y = tf.nn.relu(tf.matmul(y, weights["dense0/weights"]) + weights["dense0/biases"])
        return tf.matmul(y, weights["dense1/weights"]) + weights["dense1/biases"], {}

    def forward_work(self, batch: int) -> Work:
        first, second = self.filters
        convolutions = conv_work(batch, self.side, 5, 1, first, 1) + conv_work(
            batch, self.side // 2, 5, first, second, 1
        )
        dense = dense_work(batch, self.flat, self.dense)
        return convolutions + dense + dense_work(batch, self.dense, self.classes)
