"""Training programs whose MetaGraphs TensorFlow 1.15 wrote.

python tests/golden/training_graphs/programs.py      # with TensorFlow 1.15: writes *.meta.gz
"""

from __future__ import annotations

from typing import Any

BATCH, CLASSES = 16, 10


def _variable(tf: Any, name: str, shape: list[Any]) -> Any:
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=0.05))


def _train(tf: Any, logits: Any, optimizer: Any) -> None:
    t = tf.placeholder(tf.int32, [logits.shape[0]], name="t")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits)
    optimizer.minimize(tf.reduce_mean(each, name="loss"), name="train")


def mlp(tf: Any) -> None:
    h = tf.placeholder(tf.float32, [BATCH, 784], name="x")
    for i, n in enumerate((128, 64)):
        product = tf.matmul(h, _variable(tf, f"w{i}", [h.shape[-1], n]))
        h = tf.nn.relu(product + _variable(tf, f"b{i}", [n]))
    logits = tf.matmul(h, _variable(tf, "wo", [64, CLASSES])) + _variable(tf, "bo", [CLASSES])
    _train(tf, logits, tf.train.AdamOptimizer(1e-3))


def conv(tf: Any) -> None:
    h = tf.placeholder(tf.float32, [BATCH, 28, 28, 1], name="x")
    for i, n in enumerate((8, 16)):
        w = _variable(tf, f"w{i}", [5, 5, h.shape[-1], n])
        h = tf.nn.bias_add(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"), _variable(tf, f"b{i}", [n]))
        h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.reshape(h, [BATCH, 7 * 7 * 16])
    logits = tf.matmul(h, _variable(tf, "wo", [784, CLASSES])) + _variable(tf, "bo", [CLASSES])
    _train(tf, logits, tf.train.GradientDescentOptimizer(1e-2))


def lstm(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [BATCH, 5, 32], name="x")
    cell = tf.nn.rnn_cell.BasicLSTMCell(32)
    state = cell.zero_state(BATCH, tf.float32)
    for i in range(5):
        out, state = cell(x[:, i], state)
    _train(
        tf, tf.matmul(out, _variable(tf, "wo", [32, 10])), tf.train.GradientDescentOptimizer(0.1)
    )


def attention(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [BATCH, 10, 32], name="x")
    p = tf.nn.softmax(tf.matmul(x, x, transpose_b=True) * 0.2)
    q = tf.nn.softmax(tf.matmul(tf.reduce_mean(tf.matmul(p, x), 1), _variable(tf, "wo", [32, 10])))
    _train(tf, q, tf.train.GradientDescentOptimizer(0.1))


PROGRAMS = {"mlp": mlp, "conv": conv, "lstm": lstm, "attention": attention}


def main() -> None:
    import gzip
    from pathlib import Path

    import tensorflow as tf

    for name, build in PROGRAMS.items():
        with tf.Graph().as_default():
            build(tf)
            meta = tf.train.export_meta_graph()
            path = Path(__file__).parent / f"{name}.meta.gz"
            path.write_bytes(gzip.compress(meta.SerializeToString()))


if __name__ == "__main__":
    main()
