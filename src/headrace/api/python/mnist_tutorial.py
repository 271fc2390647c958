"""``tensorflow.examples.tutorials.mnist.mnist``: the fully connected network of the tutorial.

>>> logits = mnist.inference(images, hidden1_units=128, hidden2_units=32)
>>> train_op = mnist.training(mnist.loss(logits, labels), learning_rate=0.01)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import headrace.api.v1 as tf

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "IMAGE_PIXELS",
    "IMAGE_SIZE",
    "NUM_CLASSES",
    "evaluation",
    "inference",
    "loss",
    "training",
]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def _linear(inputs: TensorLike, size: int, units: int) -> Tensor:
    stddev = 1.0 / math.sqrt(float(size))
    weights = tf.Variable(tf.truncated_normal([size, units], stddev=stddev), name="weights")
    biases = tf.Variable(tf.zeros([units]), name="biases")
    return tf.matmul(inputs, weights) + biases


def inference(images: TensorLike, hidden1_units: int, hidden2_units: int) -> Tensor:
    """The logits of rows of ``IMAGE_PIXELS`` pixels."""
    with tf.name_scope("hidden1"):
        hidden1 = tf.nn.relu(_linear(images, IMAGE_PIXELS, hidden1_units))
    with tf.name_scope("hidden2"):
        hidden2 = tf.nn.relu(_linear(hidden1, hidden1_units, hidden2_units))
    with tf.name_scope("softmax_linear"):
        return _linear(hidden2, hidden2_units, NUM_CLASSES)


def loss(logits: TensorLike, labels: TensorLike) -> Tensor:
    """The mean cross entropy of the labels, which are class numbers."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.cast(labels, tf.int64), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """The op of one step of gradient descent; a summary of the loss is made beside it."""
    getattr(tf, "summary").scalar("loss", loss)  # noqa: B009 (may be absent from the static names)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    global_step: Any = tf.Variable(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: object, labels: object) -> Tensor:
    """How many examples of the batch have the largest logit at their label."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
