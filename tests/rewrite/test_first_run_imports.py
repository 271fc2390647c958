"""The first run of a program looks at the ops that it has and loads no others."""

from __future__ import annotations

import subprocess
import sys
import textwrap

_PROGRAM = """
import sys
import numpy as np
import headrace as tf
from headrace.core import opdef

waiting = len(opdef.LOADERS)
x = tf.placeholder(tf.float32, [None, 3])
w = tf.Variable(tf.ones([3, 2]))
y = tf.nn.relu(tf.matmul(x, w) * 2 - 3)
loss = tf.reduce_mean(tf.square(y))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run([loss, train], {x: np.ones((4, 3))})[0])
    print(sess.run(tf.constant([1.0, 2.0]) * 2))
print(waiting > 0, len(opdef.LOADERS) == waiting, "headrace.ops.image" in sys.modules)
unused = ("io", "strings", "sparse", "image", "ragged", "queues")
print([m for m in sys.modules if m.startswith(tuple(f"headrace.ops.{part}" for part in unused))])
others = ("ml_dtypes", "google_crc32c", "llvmlite", "scipy", "google.protobuf")
print([m for m in others if m in sys.modules])
"""


def test_values_that_no_op_makes_load_no_ops():
    """Feeds, parameters and constants have no op type: looking "" up loaded all ops there are."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["9.0", "[2. 4.]", "True True False", "[]", "[]"]
