"""``input_data.read_data_sets`` gives TensorFlow 1.15's batches, and says what to do without
files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.data.classic import mnist_files
from tests.golden.make_mnist import behaviour, write_files

GOLDEN = Path(__file__).parent.parent / "golden" / "mnist.json"


@pytest.mark.parametrize("packed", [True, False])
def test_batches_are_tensorflows(tmp_path: Path, packed: bool) -> None:
    write_files(tmp_path, packed)
    found = behaviour(mnist_files.read_data_sets, str(tmp_path))
    expected = json.loads(GOLDEN.read_text())
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a[0] == pytest.approx(b[0], rel=1e-6)
            assert a[1:] == b[1:]


def test_graph_seed_decides_the_order(tmp_path: Path) -> None:
    write_files(tmp_path)
    orders = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(5)
            data = mnist_files.read_data_sets(str(tmp_path), validation_size=10)
        orders.append(data.train.next_batch(30)[1].tolist())
    assert orders[0] == orders[1]


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(tf.errors.NotFoundError, match=r"t10k-labels-idx1-ubyte\.gz") as error:
        mnist_files.read_data_sets(str(tmp_path))
    assert str(tmp_path) in str(error.value)
    assert "train-images" not in str(error.value)


def test_refusals(tmp_path: Path) -> None:
    write_files(tmp_path)
    with pytest.raises(ValueError, match="between 0 and 60"):
        mnist_files.read_data_sets(str(tmp_path), validation_size=61)
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        mnist_files.read_data_sets(str(tmp_path), validation_size=1, dtype=tf.float64)
    with (
        open(tmp_path / "train-labels-idx1-ubyte.gz", "rb") as f,
        pytest.raises(ValueError, match="Invalid magic number 2049"),
    ):
        mnist_files.extract_images(f)


PROGRAM = """
    import headrace.dropin; headrace.dropin.install()
    import tensorflow as tf
    from tensorflow.examples.tutorials.mnist import input_data, mnist
    import tensorflow.examples.tutorials.mnist.input_data as again
    from tensorflow.contrib.learn.python.learn.datasets.mnist import DataSet, read_data_sets
    from tensorflow.contrib.learn.python.learn.datasets import base
    from tensorflow.contrib.learn.python.learn.datasets.base import Datasets
    data = input_data.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = data.train.next_batch(3, fake_data=True)
    print(len(images), len(images[0]), labels[0], data.train.num_examples)
    x = tf.placeholder(tf.float32, [None, mnist.IMAGE_PIXELS])
    y = tf.placeholder(tf.int32, [None])
    logits = mnist.inference(x, 8, 4)
    right, loss = mnist.evaluation(logits, y), mnist.loss(logits, y)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        print(sess.run([right, loss], {x: images, y: [0, 1, 2]})[0].dtype)
    print([v.op.name for v in tf.trainable_variables()])
    iris = tf.contrib.learn.datasets.load_dataset("iris")
    print(iris.data.shape, iris.data[0].tolist(), iris.target[:5].tolist())
    print(tf.contrib.learn.datasets.mnist.read_data_sets is read_data_sets)
"""


def test_names_under_dropin() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "3 784 [1, 0, 0, 0, 0, 0, 0, 0, 0, 0] 10000"
    assert lines[1] == str(np.dtype(np.int32))
    layers = ("hidden1", "hidden2", "softmax_linear")
    assert lines[2] == str([f"{layer}/{v}" for layer in layers for v in ("weights", "biases")])
    assert lines[3].startswith("(150, 4) [5.1, 3.5, 1.4, 0.2]")
    assert lines[4] == "True"
