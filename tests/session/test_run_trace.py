"""Traced runs: step statistics in ``run_metadata``."""

import json

import numpy as np

import headrace as tf
from headrace.profiler.timeline import Timeline


def test_full_trace_has_every_operation_and_the_same_values():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(np.ones((3, 2), np.float32), name="w")
    y = tf.nn.relu(tf.matmul(x, w, name="product"), name="y")
    update = tf.assign_add(w, tf.ones_like(w), name="update")
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: np.ones((4, 3))}
        plain = sess.run(y, feed)
        traced, _ = sess.run([y, update], feed, options=options, run_metadata=metadata)
        np.testing.assert_array_equal(traced, plain)
        np.testing.assert_array_equal(sess.run(w), np.full((3, 2), 2.0))
    (device,) = metadata.step_stats.dev_stats
    nodes = {n.node_name: n for n in device.node_stats}
    assert {"product", "y", "update"} <= set(nodes)
    assert nodes["product"].timeline_label.startswith("product = MatMul(x, ")
    shape = nodes["y"].output[0].tensor_description.shape
    assert [d.size for d in shape.dim] == [4, 2]
    assert nodes["y"].all_start_micros >= nodes["product"].all_start_micros
    assert metadata.partition_graphs[0].node
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert {"MatMul", "Relu"} <= {e["name"] for e in events["traceEvents"]}


def test_loops_are_traced_iteration_by_iteration():
    total = tf.while_loop(lambda i: i < 3, lambda i: tf.add(i, 1, name="step"), [tf.constant(0)])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        assert sess.run(total, options=options, run_metadata=metadata) == 3
    names = [n.node_name for n in metadata.step_stats.dev_stats[0].node_stats]
    assert sum(n.endswith("step") for n in names) == 3


def test_without_trace_level_the_metadata_stays_empty():
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.constant(1), options=tf.RunOptions(), run_metadata=metadata)
    assert not metadata.step_stats.dev_stats
