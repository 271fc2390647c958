"""Word vectors with noise-contrastive estimation, and a character model written in small ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs.drawing import Draw

__all__ = ["char_rnn", "word2vec"]

WORDS, WIDE, SAMPLED = 10_000, 128, 64
CHARACTERS, HIDDEN, STEPS, ROWS = 65, 128, 20, 32


def word2vec(tf: Any, session: Any) -> Callable[[], list[float]]:
    """word2vec, 10,000 words of 128 numbers, nce_loss with 64 samples, descent, batch 128"""
    draw = Draw()
    inputs = tf.placeholder(tf.int32, [128])
    labels = tf.placeholder(tf.int64, [128, 1])
    table = tf.Variable((2 * draw.uniform(WORDS, WIDE) - 1).astype(np.float32))
    weights = draw.weights(tf, WORDS, WIDE, scale=WIDE**-0.5)
    biases = tf.Variable(tf.zeros([WORDS]))
    sampled = tf.nn.log_uniform_candidate_sampler(labels, 1, SAMPLED, True, WORDS, seed=9)
    embedded = tf.nn.embedding_lookup(table, inputs)
    losses = tf.nn.nce_loss(
        weights=weights,
        biases=biases,
        labels=labels,
        inputs=embedded,
        num_sampled=SAMPLED,
        num_classes=WORDS,
        sampled_values=sampled,
    )
    loss = tf.reduce_mean(losses)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    feed = {inputs: draw.integers(WORDS, 128), labels: draw.integers(WORDS, 128, 1)}
    return lambda: [session.run([train, loss], feed_dict=feed)[1]]


def char_rnn(tf: Any, session: Any) -> Callable[[], list[float]]:
    """char-RNN, an LSTM of 128 in small ops, 20 steps, clipped Adam, batch 32"""
    draw = Draw()
    x, y = (tf.placeholder(tf.int32, [ROWS, STEPS]) for _ in range(2))
    table = draw.weights(tf, CHARACTERS, HIDDEN, scale=0.1)
    weights, bias = draw.layer(tf, 2 * HIDDEN, 4 * HIDDEN)
    out, out_bias = draw.layer(tf, HIDDEN, CHARACTERS)
    h = c = tf.zeros([ROWS, HIDDEN])
    states = []
    for letter in tf.unstack(tf.nn.embedding_lookup(table, x), axis=1):
        gates = tf.matmul(tf.concat([letter, h], 1), weights) + bias
        i, f, o, g = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        states.append(h)
    logits = tf.matmul(tf.reshape(tf.stack(states, axis=1), [-1, HIDDEN]), out) + out_bias
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        logits=logits, labels=tf.reshape(y, [-1])
    )
    loss = tf.reduce_mean(losses)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.AdamOptimizer(0.002).apply_gradients(zip(gradients, variables))
    text = draw.integers(CHARACTERS, ROWS, STEPS + 1)
    feed = {x: text[:, :-1], y: text[:, 1:]}
    return lambda: [session.run([loss, train], feed_dict=feed)[0]]
