"""``run_metadata`` of runs with a trace level."""

from __future__ import annotations

import time

import numpy as np

import headrace as tf

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def test_times_of_the_steps() -> None:
    x = tf.placeholder(tf.float32, [None, 50])
    w = tf.Variable(tf.ones([50, 20]))
    product = tf.matmul(x, w, name="product")
    loss = tf.reduce_sum(product, name="loss")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {x: np.ones([30, 50], np.float32)}
        before = time.time()
        _, value = session.run([step, loss], feeds, FULL, metadata)
        after = time.time()
        assert value == 30 * 50 * 20
        assert session.run(w).max() < 1.0  # the step was done, once
        np.testing.assert_allclose(session.run(w), 1.0 - 0.1 * 30, rtol=1e-5)
    (device,) = metadata.step_stats.dev_stats
    assert device.device.endswith("/device:CPU:0")
    names = [n.node_name for n in device.node_stats]
    assert "product" in names and all(
        name in {op.name for op in tf.get_default_graph().get_operations()} for name in names
    )
    for node in device.node_stats:
        assert before * 1e6 - 2e3 <= node.all_start_micros <= after * 1e6 + 2e3
        assert 0 < node.all_end_rel_micros <= (after - before) * 1e6 + 2e3
        assert node.node_name in node.timeline_label


def test_only_when_asked_for() -> None:
    one = tf.constant(1.0)
    with tf.Session() as session:
        metadata = tf.RunMetadata()
        session.run(one, run_metadata=metadata)
        session.run(one, options=tf.RunOptions(), run_metadata=metadata)
        session.run(one, options=FULL)
        assert not metadata.HasField("step_stats")
        session.run(one, options=FULL, run_metadata=metadata)
        assert len(metadata.step_stats.dev_stats) == 1
        session.run(one, run_metadata=metadata)
        assert not metadata.HasField("step_stats")  # it is the last run's


def test_callables_and_timeouts() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        metadata = tf.RunMetadata()
        double = session.make_callable(tf.tanh(x) * 2.0, [x], accept_options=True)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=60000)
        assert double(0.0, options=options, run_metadata=metadata) == 0.0
        assert metadata.step_stats.dev_stats[0].node_stats


def test_the_graph_that_was_run() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    wanted = tf.add(x, 1.0, name="wanted")
    tf.add(x, 2.0, name="other")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(output_partition_graphs=True)
        assert session.run(wanted, {x: 1.0}, options, metadata) == 2.0
    names = {n.name for g in metadata.partition_graphs for n in g.node}
    assert "wanted" in names and "other" not in names
