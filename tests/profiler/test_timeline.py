"""A trace of a run of Headrace's (the format against TF 1.15's: golden/contrib_cases.py)."""

import json

import numpy as np

import headrace as tf
from headrace.profiler.timeline import Timeline


def test_timeline_of_a_traced_run():
    x = tf.placeholder(tf.float32, [None, 300])
    w = tf.Variable(np.ones((300, 200), np.float32))
    y = tf.reduce_sum(tf.matmul(x, w))
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(y, {x: np.ones((40, 300))}, options=options, run_metadata=metadata)
    text = Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    events = json.loads(text)["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    assert bars
    assert all(e["dur"] >= 0 and e["ts"] > 0 for e in bars)
