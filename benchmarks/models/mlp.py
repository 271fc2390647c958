"""A multi-layer perceptron: MNIST's sizes, relu, Adam."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from benchmarks.models.spec import Array, Model, Optimizer, Weights, Work, dense_work, normal

__all__ = ["MLP"]

OPTIMIZER = Optimizer("adam", 1e-3)


@dataclass(frozen=True)
class MLP(Model):
    """Dense layers of these sizes."""

    sizes: tuple[int, ...] = (784, 512, 512, 10)
    batch: int = 128
    optimizer: Optimizer = OPTIMIZER
    name: str = "mlp"
    title: str = "MLP 784-512-512-10, Adam"

    @property
    def layers(self) -> int:
        return len(self.sizes) - 1

    def parameters(self) -> dict[str, Array]:
        random = np.random.RandomState(1)
        values: dict[str, Array] = {}
        for i, (inputs, outputs) in enumerate(pairwise(self.sizes)):
            values[f"dense{i}/weights"] = normal(random, (inputs, outputs), (2 / inputs) ** 0.5)
            values[f"dense{i}/biases"] = np.zeros(outputs, np.float32)
        return values

    def examples(self, batch: int) -> tuple[Array, Array]:
        random = np.random.RandomState(2)
        x = random.random_sample((batch, self.sizes[0])).astype(np.float32)
        return x, random.randint(0, self.sizes[-1], batch).astype(np.int32)

    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        y = x
        for i in range(self.layers):
            y = tf.nn.relu(y) if i else y
            y = tf.matmul(y, weights[f"dense{i}/weights"]) + weights[f"dense{i}/biases"]
        return y, {}

    def forward_work(self, batch: int) -> Work:
        return reduce(add, (dense_work(batch, i, o) for i, o in pairwise(self.sizes)))
