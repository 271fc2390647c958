"""Two networks, each with its optimizer over the variables of its scope."""

from __future__ import annotations

import numpy as np

import headrace.compat.v1 as tf

tf.disable_v2_behavior()


def dense(x: tf.Tensor, units: int, scope: str, stddev: float | None = None) -> tf.Tensor:
    with tf.variable_scope(scope):
        w = tf.get_variable(
            "w", [x.get_shape()[1], units], initializer=tf.random_normal_initializer(stddev=0.1)
        )
        b = tf.get_variable("b", shape=[units], initializer=tf.constant_initializer(0.0))
        return tf.matmul(x, w) + b


def generator(z: tf.Tensor) -> tf.Tensor:
    with tf.variable_scope("G"):
        return dense(tf.nn.softplus(dense(z, 4, "g0")), 1, "g1")


def discriminator(x: tf.Tensor, reuse: bool = False) -> tf.Tensor:
    with tf.variable_scope("D", reuse=reuse) as scope:
        if reuse:
            scope.reuse_variables()
        hidden = tf.tanh(dense(x, 8, "d0"))
        return tf.sigmoid(dense(hidden, 1, "d1"))


def main(steps: int = 2) -> tuple[float, float]:
    tf.reset_default_graph()
    z = tf.placeholder(tf.float32, shape=(None, 1))
    x = tf.placeholder(tf.float32, shape=(None, 1))
    g = generator(z)
    real, fake = discriminator(x), discriminator(g, reuse=True)
    loss_d = tf.reduce_mean(-tf.log(real) - tf.log(1 - fake))
    loss_g = tf.reduce_mean(-tf.log(tf.maximum(fake, 1e-8)))
    d_vars = [v for v in tf.trainable_variables() if v.name.startswith("D/")]
    g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="G/")
    opt_d = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss_d, var_list=d_vars)
    opt_g = tf.train.RMSPropOptimizer(0.01).minimize(loss_g, var_list=g_vars)
    average = tf.train.ExponentialMovingAverage(decay=0.9)
    with tf.control_dependencies([opt_g]):
        opt_g = average.apply(g_vars)
    sess = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    for _ in range(steps):
        noise = np.random.RandomState(0).normal(size=(4, 1))
        lost_d, _ = sess.run([loss_d, opt_d], {x: noise + 1, z: noise})
        lost_g, _ = sess.run([loss_g, opt_g], {z: noise})
    sess.close()
    return float(lost_d), float(lost_g)


if __name__ == "__main__":
    print(main())
