"""Eager steps with GradientTape, tf.function and tf.Module."""

from __future__ import annotations

import headrace.compat.v2 as tf


class Linear(tf.Module):
    def __init__(self, n_in: int, n_out: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.w = tf.Variable(tf.random.normal([n_in, n_out], seed=1), name="w")
        self.b = tf.Variable(tf.zeros([n_out]), name="b")

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


model = Linear(3, 2)
optimizer = tf.optimizers.SGD(0.1)


@tf.function
def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def main() -> float:
    data = tf.data.Dataset.from_tensor_slices((tf.ones([4, 3]), tf.zeros([4, 2]))).batch(2)
    last = tf.constant(0.0)
    for x, y in data:
        last = step(x, y)
    total = tf.add_n([tf.reduce_sum(v) for v in model.trainable_variables])
    tf.debugging.assert_all_finite(total, "not finite")
    saved = tf.train.Checkpoint(model=model, optimizer=optimizer)
    assert saved is not None
    return float(last.numpy())


if __name__ == "__main__":
    print(main())
