"""A TensorFlow-1 program as people wrote them: a network that learns to read (made-up) digits.

It says ``import tensorflow`` and knows nothing of Headrace:

    headrace run --report examples/mnist_like_unmodified.py --steps 200
"""

import argparse

import numpy as np
import tensorflow as tf

BATCH = 128


def make_digits(random, count, patterns):
    """Pictures of 28 by 28: one of ten patterns, dimmed and with noise; and which one it is."""
    labels = random.randint(0, 10, count)
    brightness = random.uniform(0.5, 1.0, (count, 1))
    pictures = patterns[labels] * brightness + random.normal(0.0, 2.0, (count, 784))
    return pictures.astype(np.float32), labels.astype(np.int32)


def dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        init = tf.truncated_normal_initializer(stddev=0.05)
        weights = tf.get_variable("weights", [x.get_shape()[1].value, units], initializer=init)
        biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(x, weights), biases)
        return y if activation is None else activation(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps

    random = np.random.RandomState(0)
    patterns = (random.rand(10, 784) < 0.15).astype(np.float32)
    train_x, train_y = make_digits(random, 10000, patterns)
    test_x, test_y = make_digits(random, 2000, patterns)

    tf.set_random_seed(0)
    x = tf.placeholder(tf.float32, [None, 784], name="pictures")
    y = tf.placeholder(tf.int32, [None], name="labels")
    hidden = dense(x, 256, "hidden1", tf.nn.relu)
    hidden = dense(hidden, 128, "hidden2", tf.nn.relu)
    logits = dense(hidden, 10, "logits")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=global_step)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(steps):
            rows = random.randint(0, len(train_x), BATCH)
            _, value = sess.run([train_op, loss], feed_dict={x: train_x[rows], y: train_y[rows]})
            if step % 50 == 0:
                print(f"step {step}: loss {value:.4f}")
        result = sess.run(accuracy, feed_dict={x: test_x, y: test_y})
        print(f"accuracy {result:.4f} after {sess.run(global_step)} steps")


if __name__ == "__main__":
    main()
