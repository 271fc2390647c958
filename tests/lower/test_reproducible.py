"""Seeded training gives bitwise the same weights in two processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

START = """
    import hashlib
    import numpy as np
    import headrace as tf

    tf.set_random_seed(7)
    rng = np.random.default_rng(7)

    def weights(*shape):
        return tf.Variable(tf.truncated_normal(shape, stddev=0.1))

    def train(loss, optimizer, feeds):
        step = optimizer.minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for feed in feeds:
                session.run(step, feed)
            values = session.run(tf.trainable_variables())
        digest = hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest()
        print(digest, float(sum(np.abs(v).sum() for v in values)))
"""

PROGRAMS = {
    "mlp": """
        x, y = tf.placeholder(tf.float32, [None, 300]), tf.placeholder(tf.int32, [None])
        h = tf.nn.dropout(tf.nn.relu(tf.matmul(x, weights(300, 256)) + weights(256)), rate=0.3)
        out = tf.matmul(h, weights(256, 10)) + weights(10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out))
        feeds = [{x: rng.random((128, 300)), y: rng.integers(0, 10, 128)} for _ in range(8)]
        train(loss, tf.train.AdamOptimizer(0.01), feeds)
    """,
    "conv net": """
        x, y = tf.placeholder(tf.float32, [None, 20, 20, 3]), tf.placeholder(tf.int32, [None])
        h = tf.nn.relu(tf.nn.conv2d(x, weights(5, 5, 3, 16), [1, 1, 1, 1], "SAME") + weights(16))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        h, _, _ = tf.nn.fused_batch_norm(h, weights(16), weights(16))
        h = tf.nn.relu(tf.nn.conv2d(h, weights(3, 3, 16, 32), [1, 2, 2, 1], "VALID") + weights(32))
        h = tf.reshape(tf.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), [-1, 2 * 2 * 32])
        out = tf.matmul(h, weights(128, 10))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out))
        feeds = [{x: rng.random((32, 20, 20, 3)), y: rng.integers(0, 10, 32)} for _ in range(6)]
        train(loss, tf.train.MomentumOptimizer(0.01, 0.9), feeds)
    """,
    "lstm": """
        words = tf.placeholder(tf.int32, [20, None])
        table, kernel, bias = weights(500, 64), weights(128, 256), weights(256)
        inputs = tf.nn.embedding_lookup(table, words)

        def cell(t, h, c, out):
            i, j, f, o = tf.split(tf.matmul(tf.concat([inputs[:, t], h], 1), kernel) + bias, 4, 1)
            c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
            h = tf.sigmoid(o) * tf.tanh(c)
            return t + 1, h, c, out.write(t, h)

        steps = tf.shape(words)[1] - 1
        start = [0, tf.zeros([20, 64]), tf.zeros([20, 64]), tf.TensorArray(tf.float32, steps)]
        out = tf.while_loop(lambda t, *_: t < steps, cell, start)[3].stack()
        logits = tf.tensordot(tf.transpose(out, [1, 0, 2]), weights(64, 500), 1)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words[:, 1:], logits=logits)
        loss = tf.reduce_mean(loss)
        feeds = [{words: rng.integers(0, 500, (20, 12 + i % 3))} for i in range(6)]
        train(loss, tf.train.GradientDescentOptimizer(0.5), feeds)
    """,
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_bitwise_equal_in_two_processes(name: str) -> None:
    program = textwrap.dedent(START) + textwrap.dedent(PROGRAMS[name])
    printed = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert "nan" not in printed[0]
