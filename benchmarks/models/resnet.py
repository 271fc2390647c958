"""A ResNet-18 for images of 32×32 pixels: 3×3 stem, four stages of two basic blocks, batch norm,
momentum.

The block list is data, so that the texts of the other libraries walk over the same one:

    for block in ResNet().blocks:
        block.name, block.inputs, block.outputs, block.stride
"""

from __future__ import annotations

from collections.abc import Iterator
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

__all__ = ["DECAY", "EPSILON", "Block", "Conv", "ResNet"]

#: Of the batch norms: added to the variance; how much of a moving average stays.
EPSILON = 1e-5
DECAY = 0.9

OPTIMIZER = Optimizer("momentum", 0.05)


@dataclass(frozen=True)
class Conv:
    """A convolution with the batch norm that follows it; ``side`` is that of its input."""

    name: str
    window: int
    inputs: int
    outputs: int
    stride: int
    side: int


@dataclass(frozen=True)
class Block:
    """Two convolutions around which the input goes, through a 1×1 convolution where the shape
    changes.
    """

    first: Conv
    second: Conv
    shortcut: Conv | None


@dataclass(frozen=True)
class ResNet(Model):
    """``widths`` are those of the stages; each but the first halves the side."""

    side: int = 32
    widths: tuple[int, ...] = (64, 128, 256, 512)
    depth: int = 2  # blocks of a stage
    classes: int = 10
    batch: int = 32
    optimizer: Optimizer = OPTIMIZER
    name: str = "resnet"
    title: str = "ResNet-18-style, 32x32, batch norm, momentum"

    @property
    def stem(self) -> Conv:
        return Conv("stem", 3, 3, self.widths[0], 1, self.side)

    @property
    def blocks(self) -> list[Block]:
        blocks: list[Block] = []
        inputs, side = self.widths[0], self.side
        for stage, width in enumerate(self.widths):
            for i in range(self.depth):
                stride = 2 if stage > 0 and i == 0 else 1
                name = f"stage{stage}/block{i}"
                first = Conv(f"{name}/conv0", 3, inputs, width, stride, side)
                changes = stride > 1 or inputs != width
                shortcut = Conv(f"{name}/shortcut", 1, inputs, width, stride, side)
                side //= stride
                second = Conv(f"{name}/conv1", 3, width, width, 1, side)
                blocks.append(Block(first, second, shortcut if changes else None))
                inputs = width
        return blocks

    def convolutions(self) -> Iterator[Conv]:
        yield self.stem
        for block in self.blocks:
            yield from (block.first, block.second)
            if block.shortcut is not None:
                yield block.shortcut

    def parameters(self) -> dict[str, Array]:
        random = np.random.RandomState(5)
        values: dict[str, Array] = {}
        for conv in self.convolutions():
            shape = (conv.window, conv.window, conv.inputs, conv.outputs)
            scale = (2 / (conv.window**2 * conv.inputs)) ** 0.5
            values[f"{conv.name}/weights"] = normal(random, shape, scale)
            values[f"{conv.name}/scale"] = np.ones(conv.outputs, np.float32)
            values[f"{conv.name}/offset"] = np.zeros(conv.outputs, np.float32)
            values[f"{conv.name}/mean"] = np.zeros(conv.outputs, np.float32)
            values[f"{conv.name}/variance"] = np.ones(conv.outputs, np.float32)
        width = self.widths[-1]
        values["dense/weights"] = normal(random, (width, self.classes), width**-0.5)
        values["dense/biases"] = np.zeros(self.classes, np.float32)
        return values

    def examples(self, batch: int) -> tuple[Array, Array]:
        random = np.random.RandomState(6)
        x = random.standard_normal((batch, self.side, self.side, 3)).astype(np.float32)
        return x, random.randint(0, self.classes, batch).astype(np.int32)

    def logits(
        self, tf: Any, weights: Weights, x: Any, training: bool
    ) -> tuple[Any, dict[str, Any]]:
        layers = _Layers(tf, weights, training)
        y = tf.nn.relu(layers.conv(x, self.stem))
        for block in self.blocks:
            shortcut = y if block.shortcut is None else layers.conv(y, block.shortcut)
            inner = tf.nn.relu(layers.conv(y, block.first))
            y = tf.nn.relu(layers.conv(inner, block.second) + shortcut)
        y = tf.reduce_mean(y, axis=[1, 2])
        return tf.matmul(y, weights["dense/weights"]) + weights["dense/biases"], layers.averages

    def forward_work(self, batch: int) -> Work:
        work = dense_work(batch, self.widths[-1], self.classes)
        for conv in self.convolutions():
            work += conv_work(batch, conv.side, conv.window, conv.inputs, conv.outputs, conv.stride)
        return work


class _Layers:
    """Convolutions with batch norm, and the moving averages that they ask for."""

    def __init__(self, tf: Any, weights: Weights, training: bool) -> None:
        self.tf = tf
        self.weights = weights
        self.training = training
        self.averages: dict[str, Any] = {}

    def conv(self, x: Any, conv: Conv) -> Any:
        stride, around = conv.stride, conv.window // 2
        y = self.tf.nn.conv2d(
            x,
            self.weights[f"{conv.name}/weights"],
            strides=[1, stride, stride, 1],
            padding=[[0, 0], [around, around], [around, around], [0, 0]],
        )
        return self._norm(y, conv.name)

    def _norm(self, x: Any, name: str) -> Any:
        kept = {} if self.training else {k: self.weights[f"{name}/{k}"] for k in _AVERAGES}
        y, mean, variance = self.tf.nn.fused_batch_norm(
            x,
            self.weights[f"{name}/scale"],
            self.weights[f"{name}/offset"],
            epsilon=EPSILON,
            is_training=self.training,
            **kept,
        )
        if self.training:
            for key, value in zip(_AVERAGES, (mean, variance)):
                old = self.weights[f"{name}/{key}"]
                self.averages[f"{name}/{key}"] = old + (1 - DECAY) * (value - old)
        return y


_AVERAGES = ("mean", "variance")
