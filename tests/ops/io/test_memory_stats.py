"""``tf.contrib.memory_stats``: in TensorFlow for GPUs only, here of the process."""

import subprocess
import sys

import headrace as tf

_PROGRAM = """
import numpy as np
import headrace as tf
stats = tf.contrib.memory_stats
now, most, limit = stats.BytesInUse(), stats.MaxBytesInUse(), stats.BytesLimit()
assert (now.dtype, now.shape.as_list()) == (tf.int64, [])
with tf.Session() as sess:
    sess.run([now, most, limit])
    before = sess.run(now)
    held = np.ones(40_000_000, np.uint8)
    after, peak, there_is = sess.run([now, most, limit])
assert held.nbytes * 0.9 < after - before < held.nbytes * 2, (before, after)
assert 0 < after <= peak <= there_is, (after, peak, there_is)
"""


def test_bytes_follow_what_the_process_holds():
    """In a process of its own: another may have freed memory left to take."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_inner_path():
    from headrace.api import facades

    inner = facades.facade("contrib.memory_stats.python.ops.memory_stats_ops", "tensorflow")
    assert inner.BytesInUse is tf.contrib.memory_stats.BytesInUse
