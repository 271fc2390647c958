"""Weights and data with the same numbers in every library."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Draw"]

Array = np.ndarray[Any, Any]


class Draw:
    """A fixed generator; what it draws depends on the order of the calls only."""

    def __init__(self) -> None:
        self.rng = np.random.RandomState(0)

    def weights(self, tf: Any, *shape: int, scale: float | None = None) -> Any:
        """A variable of normal numbers, by default scaled for its inputs (Xavier)."""
        spread = scale if scale is not None else (2 / shape[0]) ** 0.5 / 2
        return tf.Variable(self.rng.normal(0, spread, shape).astype(np.float32))

    def layer(self, tf: Any, wide: int, out: int) -> tuple[Any, Any]:
        return self.weights(tf, wide, out), tf.Variable(tf.zeros([out]))

    def uniform(self, *shape: int) -> Array:
        return self.rng.rand(*shape).astype(np.float32)

    def normal(self, *shape: int) -> Array:
        return self.rng.normal(size=shape).astype(np.float32)

    def integers(self, high: int, *shape: int) -> Array:
        return self.rng.randint(0, high, shape).astype(np.int32)

    def one_hot(self, rows: int, classes: int) -> Array:
        return np.eye(classes, dtype=np.float32)[self.integers(classes, rows)]
