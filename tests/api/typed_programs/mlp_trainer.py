"""A classifier with placeholders, tf.layers, summaries and a Saver, as in a TF-1 tutorial."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import numpy.typing as npt

import headrace as tf


def model(images: tf.Tensor, training: tf.Tensor, classes: int = 3) -> tf.Tensor:
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(
            images,
            16,
            activation=tf.nn.relu,
            kernel_initializer=tf.glorot_uniform_initializer(seed=1),
            kernel_regularizer=tf.contrib.layers.l2_regularizer(1e-4),
        )
        hidden = tf.layers.batch_normalization(hidden, training=training)
        hidden = tf.layers.dropout(hidden, rate=0.2, training=training)
        return tf.layers.dense(hidden, classes, name="logits")


def batches(n: int) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    rng = np.random.RandomState(0)
    return [(rng.rand(8, 4).astype(np.float32), rng.randint(0, 3, 8)) for _ in range(n)]


def main(steps: int = 3) -> float:
    tf.reset_default_graph()
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    training = tf.placeholder_with_default(False, [], name="training")
    logits = model(x, training)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses) + tf.losses.get_regularization_loss()
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.01, global_step, 100, 0.9, staircase=True)
    optimizer = tf.train.AdamOptimizer(learning_rate=rate)
    pairs = optimizer.compute_gradients(loss, tf.trainable_variables())
    gradients = [g for g, _ in pairs]
    clipped, norm = tf.clip_by_global_norm(gradients, 5.0)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = optimizer.apply_gradients(
            zip(clipped, tf.trainable_variables()), global_step=global_step
        )
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("norm", norm)
    for variable in tf.trainable_variables():
        tf.summary.histogram(variable.op.name, variable)
    merged = tf.summary.merge_all()
    saver = tf.train.Saver(max_to_keep=2)
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    with tempfile.TemporaryDirectory() as folder, tf.Session(config=config) as sess:
        writer = tf.summary.FileWriter(folder, sess.graph)
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for images, labels in batches(steps):
            feed = {x: images, y: labels, training: True}
            _, summary, step = sess.run([train, merged, global_step], feed_dict=feed)
            writer.add_summary(summary, step)
        path = saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=global_step)
        saver.restore(sess, path)
        assert tf.train.latest_checkpoint(folder) == path
        result = sess.run(accuracy, {x: images, y: labels})
        writer.close()
    return float(result)


if __name__ == "__main__":
    print(main())
