"""Input: pictures prepared one by one in a Python loop, or by a dataset that works ahead of the
training step.

Both train on the same batches. The dataset batches first and prepares whole batches, and
``prefetch`` does so on a thread while the step computes. ``headrace.data.stats`` tells how long the
loop had to wait for input.
"""

from collections.abc import Iterator

import numpy as np
from _timing import finish, scaled, timed

import headrace.compat.v2 as tf
import headrace.data

BATCH = 64
PICTURES = BATCH * scaled(200)
random = np.random.RandomState(0)
pictures = random.randint(0, 256, (PICTURES, 28, 28)).astype(np.uint8)
labels = random.randint(0, 10, PICTURES).astype(np.int32)

w = tf.Variable(tf.zeros([784, 10]))
bias = tf.Variable(tf.zeros([10]))
optimizer = tf.optimizers.SGD(0.01)


@tf.function
def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        logits = tf.matmul(x, w) + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    optimizer.apply_gradients(zip(tape.gradient(loss, [w, bias]), [w, bias]))
    return loss


def python_batches() -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    x, y = [], []
    for picture, label in zip(pictures, labels):
        x.append(picture.reshape(784).astype(np.float32) / 255.0 - 0.5)
        y.append(label)
        if len(x) == BATCH:
            yield tf.constant(np.stack(x)), tf.constant(np.stack(y))
            x, y = [], []


def prepare(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.reshape(tf.cast(x, tf.float32), [-1, 784]) / 255.0 - 0.5, y


dataset = tf.data.Dataset.from_tensor_slices((pictures, labels))
dataset = dataset.batch(BATCH, drop_remainder=True).map(prepare).prefetch(tf.data.AUTOTUNE)


def train(batches: Iterator[tuple[tf.Tensor, tf.Tensor]]) -> float:
    w.assign(tf.zeros([784, 10]))
    bias.assign(tf.zeros([10]))
    return [float(step(x, y)) for x, y in batches][-1]


train(iter(dataset.take(2)))  # trace
slow, slow_loss = timed(train, python_batches())
iterator = iter(dataset)
fast, fast_loss = timed(train, iterator)
assert np.isclose(slow_loss, fast_loss, rtol=1e-5), (slow_loss, fast_loss)

stats = headrace.data.stats(iterator)
print(f"{stats['elements']} batches of {BATCH}, the last loss {fast_loss:.4f}")
print(
    f"the dataset: waited {stats['waiting_seconds'] * 1e3:.1f} ms for input, computed "
    f"{stats['between_seconds'] * 1e3:.1f} ms "
    f"({stats['waiting_share']:.0%} of the time was waiting)"
)
finish(slow, fast)
