"""contrib.eager's metrics in graphs, contrib.nn, contrib.training's sampling.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _numbers(*shape, **kwargs):
    random = np.random.RandomState(kwargs.get("seed", 0))
    return random.uniform(-1, 1, size=shape).astype(np.float32)


def _watch(tf, metric, *calls):
    found = []
    updates = [metric(*args) for args in calls]
    result = metric.result()
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for update in updates:
            found.append([sess.run(update), sess.run(result)])
        sess.run(metric.init_variables())
        found.append(sess.run(metric.variables))
    return [metric.name, [v.name for v in metric.variables], result.dtype.name, found]


def eager_metrics(tf):
    m = tf.contrib.eager.metrics
    labels, scores = [1, 0, 2], _numbers(3, 3)
    return [
        _watch(tf, m.Mean("average loss"), ([1.0, 2.0],), ([4.0], [0.5])),
        _watch(tf, m.Mean(dtype=tf.float32, use_global_variables=True), (3.0,)),
        _watch(tf, m.Accuracy(), (labels, [1, 1, 2]), (labels, labels, [1.0, 0.0, 2.0])),
        _watch(tf, m.CategoricalAccuracy(), (np.eye(3, dtype=np.float32), scores)),
        _watch(tf, m.BinaryAccuracy(0.4), ([1, 0, 1], [0.5, 0.3, 0.2])),
        _watch(tf, m.SparseAccuracy(name="right"), (labels, scores)),
        sorted(v.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)),
        [v.name for v in tf.global_variables()],
    ]


def softplus_and_transposed(tf):
    x, alpha = tf.constant(_numbers(3, 4) * 4), tf.constant(0.5)
    y = tf.contrib.nn.scaled_softplus(x, alpha)
    z = tf.contrib.nn.scaled_softplus(x, alpha, clip=1.0)
    found = [y, z] + tf.gradients(y, [x]) + tf.gradients(z, [x])
    wide = tf.contrib.nn.conv1d_transpose(
        tf.constant(_numbers(2, 4, 3)), tf.constant(_numbers(3, 5, 3, seed=1)), [2, 8, 5], 2
    )
    with tf.Session() as sess:
        return sess.run(found + [wide])


def rank_sampled(tf):
    weights, biases = tf.constant(_numbers(10, 4)), tf.constant(_numbers(10, seed=1))
    inputs = tf.constant(_numbers(3, 4, seed=2))
    sampled = (
        tf.constant([1, 3, 5, 7, 9], tf.int64), tf.constant(np.full((3, 1), 0.3, np.float32)),
        tf.constant(np.linspace(0.1, 0.5, 5).astype(np.float32)),
    )  # fmt: skip
    labels = tf.constant([[1], [2], [4]], tf.int64)
    found = []
    for strategy in ("div", "mod"):
        loss = tf.contrib.nn.rank_sampled_softmax_loss(
            weights, biases, labels, inputs, 5, 3, 10, 1, sampled, 1.5, True, strategy
        )
        found += [loss] + tf.gradients(loss, [inputs, biases])
    with tf.Session() as sess:
        return sess.run([tf.convert_to_tensor(f) for f in found])


def resampled(tf):
    t = tf.contrib.training
    x, y = tf.constant(np.arange(12.0).reshape(6, 2)), tf.range(6)
    found = t.resample_at_rate([x, y], [0.0, 1.0, 2.0, 0.5, 3.0, 1.0], seed=3)
    weighted, rates = t.weighted_resample([x, y], tf.constant([1.0, 2, 3, 1, 2, 3]), 2.0, seed=4)
    names = [v.name for v in tf.local_variables()]
    with tf.Session() as sess:
        sess.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        return names + [sess.run(found), [sess.run([weighted, rates])[1] for _ in range(2)]]


def _queued(tf, fetches, runs):
    with tf.Session() as sess:
        sess.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found = [sess.run(fetches) for _ in range(runs)]
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=20)
    return found


def stratified(tf):
    t = tf.contrib.training
    label = tf.random_uniform([8], 0, 2, tf.int32, seed=1)
    value = tf.cast(label, tf.float32) * 10
    data, labels = t.stratified_sample(
        [value], label, [0.0, 1.0], 4, init_probs=[0.5, 0.5], enqueue_many=True
    )
    first = _queued(tf, [data[0], labels], 3)
    counted, classes = t.stratified_sample([value[0]], label[0], [1.0, 0.0], 3)
    second = _queued(tf, [counted[0], classes], 2)
    kept = t.rejection_sample([label[0]], lambda x: tf.cast(x[0], tf.float32), 3)
    third = _queued(tf, kept, 2)
    return [first, second, third, data[0].shape.as_list(), labels.name]
