"""Checkpoints of objects, made by TensorFlow 1.15 and 2.21: run with either Python, this writes
objects/tf1.* or objects/tf2.* (the checkpoint) and what training went on to. Python 3.7 syntax.

    python -m tests.golden.object_programs --live FOLDER    # reads what Headrace wrote there
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "objects")


def model(tf):
    """A module with variables in attributes, lists and dicts, and its optimizer."""

    class Net(tf.Module):
        def __init__(self):
            super(Net, self).__init__(name="net")
            self.w = tf.Variable(np.ones((3, 2), np.float32), name="w")
            self.parts = [tf.Variable([0.5, 0.25], name="a"), {"inner": tf.Variable(2.0, name="i")}]
            self.named = {"x.y/z": tf.Variable([1, 2], name="count", trainable=False)}

        def loss(self, x):
            y = tf.matmul(x, self.w) * self.parts[1]["inner"] + self.parts[0]
            return tf.reduce_sum(y * y)

        def trained(self):
            return [self.w, self.parts[0], self.parts[1]["inner"]]

    return Net()


def train(tf, net, optimizer, steps):
    """The losses of some steps."""
    losses = []
    for i in range(steps):
        x = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3) / (i + 2))
        with tf.GradientTape() as tape:
            loss = net.loss(x)
        grads = tape.gradient(loss, net.trained())
        optimizer.apply_gradients(zip(grads, net.trained()))
        losses.append(float(loss))
    return losses


def adam(tf):
    """An optimizer with slots and variables of its own."""
    return tf.compat.v1.train.AdamOptimizer(0.1)


def written(tf, prefix):
    """Save after two steps; the losses of the next three."""
    net, optimizer = model(tf), adam(tf)
    train(tf, net, optimizer, 2)
    checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer, step=tf.Variable(7, name="step"))
    path = checkpoint.save(prefix)
    return path, train(tf, net, optimizer, 3)


def went_on(tf, path):
    """Restore into new objects, slots before they are made; the losses of the next three steps."""
    net, optimizer = model(tf), adam(tf)
    checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
    status = checkpoint.restore(path)
    losses = train(tf, net, optimizer, 3)
    checkpoint.step = tf.Variable(0, name="step")
    status.assert_consumed()
    return losses, int(checkpoint.step), int(checkpoint.save_counter)


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    if tensorflow.__version__.startswith("1"):
        tensorflow.enable_eager_execution()
    if "--live" in sys.argv:
        print(json.dumps(went_on(tensorflow, sys.argv[-1])))
        sys.exit()
    name = "tf" + tensorflow.__version__[0]
    if not os.path.isdir(FILES):
        os.makedirs(FILES)
    _, losses = written(tensorflow, os.path.join(FILES, name))
    os.remove(os.path.join(FILES, "checkpoint"))
    with open(os.path.join(FILES, name + ".json"), "w") as f:
        json.dump(losses, f)
        f.write("\n")
