"""Images, losses, metrics, branches, cells and gradients of TF 1's namespaces, with their types."""

from __future__ import annotations

import numpy as np

import headrace as tf


def features(images: tf.Tensor) -> tf.Tensor:
    small = tf.image.resize_images(images, [8, 8])
    bright = tf.image.adjust_brightness(small, delta=0.1)
    filters = tf.get_variable("filters", [3, 3, 3, 4], initializer=tf.zeros_initializer())
    mapped = tf.nn.conv2d(bright, filters, strides=[1, 2, 2, 1], padding="SAME")
    pooled = tf.layers.max_pooling2d(tf.nn.elu(mapped), pool_size=2, strides=2)
    return tf.layers.flatten(pooled)


def damped(x: tf.Tensor) -> tf.Tensor:
    result: tf.Tensor = tf.cond(tf.reduce_max(x) > 1.0, lambda: x / 2.0, lambda: tf.identity(x))
    return result


def main() -> tuple[float, int]:
    tf.reset_default_graph()
    images = tf.placeholder(tf.float32, [None, 16, 16, 3])
    labels = tf.placeholder(tf.int32, [None])
    logits = tf.layers.dense(damped(features(images)), 3, use_bias=True)
    tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    loss = tf.losses.get_total_loss()
    predictions = tf.argmax(logits, axis=1, output_type=tf.int32)
    accuracy, update = tf.metrics.accuracy(labels=labels, predictions=predictions)
    cell = tf.nn.rnn_cell.GRUCell(2)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([1, 3, 2]), dtype=tf.float32)
    total = tf.reduce_sum(outputs) + tf.reduce_sum(state)
    gradients = tf.gradients(loss + total, tf.trainable_variables())
    names = tf.strings.join(["a", "b"], separator="-")
    norm = tf.norm(tf.concat([tf.reshape(g, [-1]) for g in gradients if g is not None], axis=0))
    count = tf.Variable(0, trainable=False, name="count")
    step = tf.assign_add(count, 1)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        feed = {images: np.ones((2, 16, 16, 3)), labels: [0, 1]}
        value, _, text, _ = sess.run([norm, update, names, step], feed_dict=feed)
        assert text == b"a-b" and 0.0 <= sess.run(accuracy) <= 1.0
        return float(value), int(sess.run(count))


if __name__ == "__main__":
    print(main())
