"""A sequence classifier with MultiRNNCell and dynamic_rnn, and a loop of the user's own."""

from __future__ import annotations

import numpy as np

import headrace as tf


def encoder(words: tf.Tensor, lengths: tf.Tensor, units: int) -> tf.Tensor:
    table = tf.get_variable("embedding", [20, 5], tf.float32, tf.random_uniform_initializer(-1, 1))
    inputs = tf.nn.embedding_lookup(table, words)
    cells = [tf.nn.rnn_cell.LSTMCell(units), tf.nn.rnn_cell.GRUCell(units)]
    stacked = tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=0.9) for cell in cells]
    )
    batch = tf.shape(words)[0]
    outputs, _ = tf.nn.dynamic_rnn(
        stacked,
        inputs,
        sequence_length=lengths,
        initial_state=stacked.zero_state(batch, tf.float32),
    )
    both, _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.BasicLSTMCell(units, forget_bias=1.0),
        tf.nn.rnn_cell.BasicRNNCell(units),
        outputs,
        sequence_length=lengths,
        dtype=tf.float32,
    )
    return tf.concat(both, axis=2)


def powers(x: tf.Tensor, n: int) -> tf.Tensor:
    _, product = tf.while_loop(
        lambda i, _: tf.less(i, n), lambda i, p: (i + 1, p * x), [tf.constant(0), tf.ones_like(x)]
    )
    result: tf.Tensor = product
    return result


def main() -> list[float]:
    tf.reset_default_graph()
    words = tf.placeholder(tf.int32, [None, 6])
    lengths = tf.placeholder(tf.int32, [None])
    target = tf.placeholder(tf.float32, [None, 1])
    features = tf.reduce_max(encoder(words, lengths, 4), axis=1)
    score = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(target, powers(score, 2))
    variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
    gradients = tf.gradients(loss, variables)
    train = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(gradients, variables))
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {words: np.ones((2, 6)), lengths: [6, 3], target: [[0.0], [1.0]]}
        for _ in range(2):
            value, _ = sess.run((loss, train), feed)
            values.append(float(value))
    return values


if __name__ == "__main__":
    print(main())
