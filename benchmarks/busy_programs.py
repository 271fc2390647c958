"""Training loops of small products, as TensorFlow-1 programs: what shares of a core, and other
threads, show in first.

A GAN (784-128-1 and 100-128-784), a variational autoencoder (784-512-32) and the MLP of the models;
Adam, batches of 128. Sixty steps come first: what is compiled or planned at the first calls is not
in the figures.

    step = make_step(tf, "gan", session)
    step()

As a program it is one of many processes: it says "ready", waits for a line, and answers with how
many steps it made:

    python -m benchmarks.busy_programs headrace mlp 3.0
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PROGRAMS", "WARM", "Step", "make_step"]

BATCH = 128
Step = Callable[[], Any]


class _Weights:
    """Makes layers with the same numbers in every library."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        self.rng = np.random.RandomState(0)

    def layer(self, wide: int, out: int) -> tuple[Any, Any]:
        weights = self.rng.normal(0, 0.05, (wide, out)).astype(np.float32)
        return self.tf.Variable(weights), self.tf.Variable(np.zeros(out, np.float32))


def _gan(tf: Any, session: Any) -> Step:
    make = _Weights(tf)
    x, z = (tf.placeholder(tf.float32, [None, n]) for n in (784, 100))
    g1, g2, d1, d2 = (make.layer(*s) for s in ((100, 128), (128, 784), (784, 128), (128, 1)))
    made = tf.nn.sigmoid(tf.matmul(tf.nn.relu(tf.matmul(z, g1[0]) + g1[1]), g2[0]) + g2[1])

    def judged(images: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(images, d1[0]) + d1[1]), d2[0]) + d2[1]

    def loss(logits: Any, label: Callable[[Any], Any]) -> Any:
        entropy = tf.nn.sigmoid_cross_entropy_with_logits
        return tf.reduce_mean(entropy(logits=logits, labels=label(logits)))

    real, fake = judged(x), judged(made)
    d_loss, g_loss = loss(real, tf.ones_like) + loss(fake, tf.zeros_like), loss(fake, tf.ones_like)
    d_step = tf.train.AdamOptimizer(1e-4).minimize(d_loss, var_list=[*d1, *d2])
    g_step = tf.train.AdamOptimizer(1e-4).minimize(g_loss, var_list=[*g1, *g2])
    images, noise = (make.rng.rand(BATCH, n).astype(np.float32) for n in (784, 100))
    return lambda: (
        session.run([d_step, d_loss], {x: images, z: noise}),
        session.run([g_step, g_loss], {z: noise}),
    )


def _vae(tf: Any, session: Any) -> Step:
    make = _Weights(tf)
    x = tf.placeholder(tf.float32, [None, 784])

    def dense(y: Any, wide: int, out: int) -> Any:
        weights, bias = make.layer(wide, out)
        return tf.matmul(y, weights) + bias

    hidden = tf.nn.relu(dense(x, 784, 512))
    mean, log = dense(hidden, 512, 32), dense(hidden, 512, 32)
    code = mean + tf.exp(log / 2) * tf.random_normal(tf.shape(mean))
    logits = dense(tf.nn.relu(dense(code, 32, 512)), 512, 784)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=x)
    divergence = -0.5 * tf.reduce_sum(1 + log - tf.square(mean) - tf.exp(log), 1)
    loss = tf.reduce_mean(tf.reduce_sum(entropy, 1) + divergence)
    step = tf.train.AdamOptimizer(1e-3).minimize(loss)
    images = make.rng.rand(BATCH, 784).astype(np.float32)
    return lambda: session.run([step, loss], {x: images})


def _mlp(tf: Any, session: Any) -> Step:
    make = _Weights(tf)
    x, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
    y: Any = x
    for wide, out in ((784, 512), (512, 512), (512, 10)):
        weights, bias = make.layer(wide, out)
        y = tf.matmul(y, weights) + bias
        y = tf.nn.relu(y) if out != 10 else y
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=y, labels=labels)
    loss = tf.reduce_mean(entropy)
    step = tf.train.AdamOptimizer(1e-3).minimize(loss)
    images = make.rng.rand(BATCH, 784).astype(np.float32)
    classes = make.rng.randint(0, 10, BATCH).astype(np.int32)
    return lambda: session.run([step, loss], {x: images, labels: classes})


PROGRAMS: dict[str, Callable[[Any, Any], Step]] = {"gan": _gan, "vae": _vae, "mlp": _mlp}


#: Steps that are not measured.
WARM = 60


def make_step(tf: Any, name: str, warm: int = WARM) -> Step:
    """A step of a program in a session of its own, after ``warm`` of them."""
    with tf.Graph().as_default() as graph:
        session = tf.Session(graph=graph)
        step = PROGRAMS[name](tf, session)
        session.run(tf.global_variables_initializer())
    for _ in range(warm):
        step()
    return step


def main(library: str, name: str, seconds: float) -> None:
    from benchmarks.cases import load

    step = make_step(load("busy", library)[0], name)
    print("ready", flush=True)
    sys.stdin.readline()
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        step()
        count += 1
    print(count, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
