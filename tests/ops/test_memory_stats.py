"""``tf.contrib.memory_stats``: in TensorFlow for GPUs only, here of the process."""

import numpy as np

import headrace as tf


def test_bytes_follow_what_the_process_holds():
    stats = tf.contrib.memory_stats
    now, most, limit = stats.BytesInUse(), stats.MaxBytesInUse(), stats.BytesLimit()
    assert (now.dtype, now.shape.as_list()) == (tf.int64, [])
    with tf.Session() as sess:
        before = sess.run(now)
        held = np.ones(40_000_000, np.uint8)
        after, peak, there_is = sess.run([now, most, limit])
    assert held.nbytes * 0.9 < after - before < held.nbytes * 2
    assert 0 < after <= peak <= there_is


def test_inner_path():
    from headrace.api import paths

    inner = paths.facade("contrib.memory_stats.python.ops.memory_stats_ops", "tensorflow")
    assert inner.BytesInUse is tf.contrib.memory_stats.BytesInUse
