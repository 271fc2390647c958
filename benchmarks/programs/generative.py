"""A variational autoencoder, a GAN and a conditional GAN on 28x28 images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.programs.drawing import Draw

__all__ = ["conditional_gan", "gan", "vae"]


def vae(tf: Any, session: Any) -> Callable[[], list[float]]:
    """variational autoencoder, 784-500-500-20, softplus, Adam, batch 100"""
    draw = Draw()
    x = tf.placeholder(tf.float32, [None, 784])

    def dense(y: Any, wide: int, out: int) -> Any:
        weights, bias = draw.layer(tf, wide, out)
        return tf.add(tf.matmul(y, weights), bias)

    h = tf.nn.softplus(dense(tf.nn.softplus(dense(x, 784, 500)), 500, 500))
    mean, log_sigma = dense(h, 500, 20), dense(h, 500, 20)
    eps = tf.random_normal((100, 20), 0, 1, dtype=tf.float32, seed=3)
    z = tf.add(mean, tf.multiply(tf.sqrt(tf.exp(log_sigma)), eps))
    h = tf.nn.softplus(dense(tf.nn.softplus(dense(z, 20, 500)), 500, 500))
    made = tf.nn.sigmoid(dense(h, 500, 784))
    image = -tf.reduce_sum(x * tf.log(1e-7 + made) + (1 - x) * tf.log(1e-7 + 1 - made), 1)
    code = -0.5 * tf.reduce_sum(1 + log_sigma - tf.square(mean) - tf.exp(log_sigma), 1)
    cost = tf.reduce_mean(image + code)
    train = tf.train.AdamOptimizer(learning_rate=0.001).minimize(cost)
    images = draw.uniform(100, 784)
    return lambda: [session.run((train, cost), feed_dict={x: images})[1]]


def _entropy(tf: Any, logits: Any, labels: Any) -> Any:
    losses = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels)
    return tf.reduce_mean(losses)


def gan(tf: Any, session: Any) -> Callable[[], list[float]]:
    """GAN, 100-128-784 and 784-128-1, Adam, batch 128"""
    draw = Draw()
    x, z = (tf.placeholder(tf.float32, [None, n]) for n in (784, 100))
    g1, g2 = draw.layer(tf, 100, 128), draw.layer(tf, 128, 784)
    d1, d2 = draw.layer(tf, 784, 128), draw.layer(tf, 128, 1)

    def judge(images: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(images, d1[0]) + d1[1]), d2[0]) + d2[1]

    made = tf.nn.sigmoid(tf.matmul(tf.nn.relu(tf.matmul(z, g1[0]) + g1[1]), g2[0]) + g2[1])
    real, fake = judge(x), judge(made)
    d_loss = _entropy(tf, real, tf.ones_like(real)) + _entropy(tf, fake, tf.zeros_like(fake))
    g_loss = _entropy(tf, fake, tf.ones_like(fake))
    d_step = tf.train.AdamOptimizer().minimize(d_loss, var_list=[*d1, *d2])
    g_step = tf.train.AdamOptimizer().minimize(g_loss, var_list=[*g1, *g2])
    images, noise = draw.uniform(128, 784), 2 * draw.uniform(128, 100) - 1

    def step() -> list[float]:
        _, first = session.run([d_step, d_loss], feed_dict={x: images, z: noise})
        _, second = session.run([g_step, g_loss], feed_dict={z: noise})
        return [first, second]

    return step


def conditional_gan(tf: Any, session: Any) -> Callable[[], list[float]]:
    """conditional GAN, leaky units, dropout, noise drawn in the graph, Adam, batch 128"""
    draw = Draw()
    x, y = (tf.placeholder(tf.float32, [None, n]) for n in (784, 10))
    g1, g2, g3 = (draw.layer(tf, *s) for s in ((110, 256), (256, 256), (256, 784)))
    d1, d2, d3 = (draw.layer(tf, *s) for s in ((794, 256), (256, 256), (256, 1)))

    def leaky(value: Any) -> Any:
        return tf.maximum(0.2 * value, value)

    def generate() -> Any:
        z = tf.random_uniform([tf.shape(y)[0], 100], -1.0, 1.0, seed=5)
        h = leaky(tf.matmul(tf.concat([z, y], 1), g1[0]) + g1[1])
        h = leaky(tf.matmul(h, g2[0]) + g2[1])
        return tf.tanh(tf.matmul(h, g3[0]) + g3[1])

    def judge(images: Any, seed: int) -> Any:
        h = leaky(tf.matmul(tf.concat([images, y], 1), d1[0]) + d1[1])
        h = tf.nn.dropout(h, keep_prob=0.7, seed=seed)
        h = tf.nn.dropout(leaky(tf.matmul(h, d2[0]) + d2[1]), keep_prob=0.7, seed=seed + 1)
        return tf.matmul(h, d3[0]) + d3[1]

    real, fake = judge(x, 11), judge(generate(), 13)
    d_loss = _entropy(tf, real, 0.9 * tf.ones_like(real)) + _entropy(tf, fake, tf.zeros_like(fake))
    g_loss = _entropy(tf, fake, tf.ones_like(fake))
    d_step = tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(d_loss, var_list=[*d1, *d2, *d3])
    g_step = tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(g_loss, var_list=[*g1, *g2, *g3])
    images, labels = 2 * draw.uniform(128, 784) - 1, draw.one_hot(128, 10)

    def step() -> list[float]:
        _, first = session.run([d_step, d_loss], feed_dict={x: images, y: labels})
        _, second = session.run([g_step, g_loss], feed_dict={y: labels})
        return [first, second]

    return step
