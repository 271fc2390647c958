"""What a model says about itself, so that every library trains and runs the same one.

A model is a frozen dataclass of its sizes. It gives its first weights and its data as NumPy arrays,
counts its own work, and computes logits with TensorFlow's functions (:meth:`Model.logits`, the one
text for Headrace and TensorFlow). The other libraries have texts of their own (``in_jax``,
``in_torch``, …) over the same names of weights:

    model = MLP(sizes=(784, 512, 512, 10))
    model.parameters()["dense0/weights"].shape    # (784, 512)
    model.forward_work(batch=128).flops           # 171,180,032
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Array", "Model", "Optimizer", "Weights", "Work", "conv_work", "dense_work", "normal"]

Array = np.ndarray[Any, np.dtype[Any]]
#: Arrays, variables or tensors of a library, by the names that ``parameters`` gives.
Weights = dict[str, Any]

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Work:
    """Floating-point operations of the products and convolutions (2 a multiply-add), and the bytes
    that they must move: weights, inputs and outputs, each once. Element-wise work is left out: it
    can hide behind the products.
    """

    flops: int = 0
    bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, times: int) -> Work:
        return Work(self.flops * times, self.bytes * times)


def dense_work(rows: int, inputs: int, outputs: int) -> Work:
    """A product of ``rows × inputs`` and ``inputs × outputs``."""
    floats = rows * inputs + inputs * outputs + rows * outputs
    return Work(2 * rows * inputs * outputs, FLOAT_BYTES * floats)


def conv_work(batch: int, side: int, window: int, inputs: int, outputs: int, stride: int) -> Work:
    """A convolution of square images of ``side`` pixels that keeps their size but for the
    stride.
    """
    out = -(-side // stride)
    floats = batch * (side**2 * inputs + out**2 * outputs) + window**2 * inputs * outputs
    return Work(2 * batch * out**2 * window**2 * inputs * outputs, FLOAT_BYTES * floats)


@dataclass(frozen=True)
class Optimizer:
    """``kind`` is "adam", "momentum" (0.9) or "descent".

    Gradients are scaled down to a global norm of ``clip``.
    """

    kind: str
    rate: float
    clip: float | None = None

    @property
    def passes(self) -> int:
        """How many times an update reads or writes an array of the variable's size, at least."""
        return {"adam": 7, "momentum": 5, "descent": 3}[self.kind]


class Model(ABC):
    """The interface of the models; ``name`` is in the names of the cases, ``title`` in the
    tables.
    """

    name: str
    title: str
    batch: int  # of a training step
    optimizer: Optimizer

    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """The first values of the weights, the same in every process."""

    @abstractmethod
    def examples(self, batch: int) -> tuple[Array, Array]:
        """Inputs and labels (class numbers, int32), the same in every process."""

    @abstractmethod
    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        """With TensorFlow's functions: the logits, and new values of weights that training writes
        besides the optimizer. A language model gives the logits of each position when training,
        else of the last.
        """

    @abstractmethod
    def forward_work(self, batch: int) -> Work:
        """Of an inference."""

    def training_work(self) -> Work:
        """Forward once and backward twice, for inputs and weights (the first layer's inputs need no
        gradient: that little is not taken off), and the optimizer's passes.
        """
        weights = sum(array.size for name, array in self.parameters().items() if self.trains(name))
        forward = self.training_forward_work()
        return forward * 3 + Work(0, FLOAT_BYTES * weights * self.optimizer.passes)

    def training_forward_work(self) -> Work:
        return self.forward_work(self.batch)

    def trains(self, name: str) -> bool:
        """Whether the optimizer updates this weight.

        The moving averages of a batch norm are updated otherwise.
        """
        return not name.endswith(("/mean", "/variance"))


def normal(random: np.random.RandomState, shape: tuple[int, ...], scale: float) -> Array:
    return (random.standard_normal(shape) * scale).astype(np.float32)
