"""Streaming metrics, sets and weights.

Two batches each. Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _batches(*shape, high=2, seed=0):
    state = np.random.RandomState(seed)
    return [
        {
            "labels": state.randint(0, high, shape),
            "classes": state.randint(0, high, shape),
            "values": state.uniform(size=shape).astype(np.float32),
            "targets": state.uniform(size=shape).astype(np.float32),
            "weights": state.uniform(size=shape).astype(np.float32),
        }
        for _ in range(2)
    ]


def _run(tf, build, batches, unknown=False):
    """Names, collections and, per batch, (update, value after it)."""
    tensors = {
        k: tf.placeholder(tf.as_dtype(v.dtype), None if unknown else v.shape, name=k)
        for k, v in batches[0].items()
    }
    value, update = build(tf, tensors)
    found = {
        "names": [value.name, update.name],
        "local": [[v.name, v.shape.as_list()] for v in tf.local_variables()],
        "metric": [v.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)],
        "global": [v.name for v in tf.global_variables()],
        "runs": [],
    }
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        found["first"] = sess.run(value)
        for batch in batches:
            feed = {tensors[k]: v for k, v in batch.items()}
            found["runs"].append([sess.run(update, feed), sess.run(value)])
        found["variables"] = sess.run(tf.local_variables())
    return found


def _weighted_and_not(tf, name, first="labels", second="classes", high=2, **kwargs):
    def plain(tf, t):
        return getattr(tf.metrics, name)(t[first], t[second], **kwargs)

    def weighted(tf, t):
        return getattr(tf.metrics, name)(t[first], t[second], weights=t["weights"], **kwargs)

    found = {}
    for build in (plain, weighted):
        with tf.Graph().as_default():
            found[build.__name__] = _run(tf, build, _batches(4, 3, high=high))
    return found


def metric_mean(tf):
    return [
        _run(tf, lambda tf, t: tf.metrics.mean(t["values"]), _batches(4)),
        _run(
            tf,
            lambda tf, t: tf.metrics.mean(t["values"], t["weights"][:, :1], name="m"),
            _batches(4, 3),
        ),
    ]


def metric_mean_unknown_shapes(tf):
    return _run(tf, lambda tf, t: tf.metrics.mean(t["values"], t["weights"]), _batches(4, 3), True)


def metric_mean_tensor(tf):
    return _run(tf, lambda tf, t: tf.metrics.mean_tensor(t["values"], t["weights"]), _batches(4, 3))


def metric_accuracy(tf):
    return _weighted_and_not(tf, "accuracy")


def metric_accuracy_in_collections(tf):
    def build(tf, t):
        with tf.variable_scope("eval"):
            return tf.metrics.accuracy(
                t["labels"], t["values"], metrics_collections=["m"], updates_collections=["u", "w"]
            )

    found = _run(tf, build, _batches(4, 1))
    found["kept"] = {k: [x.name for x in tf.get_collection(k)] for k in ("m", "u", "w")}
    return found


def metric_accuracy_unknown_shapes(tf):
    return _run(tf, lambda tf, t: tf.metrics.accuracy(t["labels"], t["classes"]), _batches(4), True)


def metric_errors(tf):
    return {
        name: _weighted_and_not(tf, name, "targets", "values")
        for name in ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error")
    }


def metric_mean_relative_error(tf):
    return _run(
        tf,
        lambda tf, t: tf.metrics.mean_relative_error(
            t["targets"], t["values"], tf.cast(t["labels"], tf.float32)
        ),
        _batches(5),
    )


def metric_mean_cosine_distance(tf):
    return _run(
        tf,
        lambda tf, t: tf.metrics.mean_cosine_distance(
            tf.nn.l2_normalize(t["targets"], 1), tf.nn.l2_normalize(t["values"], 1), dim=1
        ),
        _batches(4, 3),
    )


def metric_percentage_below(tf):
    return _run(tf, lambda tf, t: tf.metrics.percentage_below(t["values"], 0.4), _batches(9))


def metric_mean_iou(tf):
    return _weighted_and_not(tf, "mean_iou", high=3, num_classes=4)


def metric_mean_per_class_accuracy(tf):
    return _weighted_and_not(tf, "mean_per_class_accuracy", high=3, num_classes=3)


def metric_counts(tf):
    names = ("true_positives", "false_positives", "true_negatives", "false_negatives")
    return {name: _weighted_and_not(tf, name) for name in names}


def metric_precision_and_recall(tf):
    return {name: _weighted_and_not(tf, name) for name in ("precision", "recall")}


def metric_at_thresholds(tf):
    names = [
        f"{n}_at_thresholds"
        for n in (
            "true_positives",
            "false_positives",
            "true_negatives",
            "false_negatives",
            "precision",
            "recall",
        )
    ]
    return {n: _weighted_and_not(tf, n, "labels", "values", thresholds=[0.2, 0.7]) for n in names}


def metric_auc(tf):
    found = {}
    for curve in ("ROC", "PR"):
        for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
            found[curve + method] = _weighted_and_not(
                tf,
                "auc",
                "labels",
                "values",
                num_thresholds=20,
                curve=curve,
                summation_method=method,
            )["weighted"]["runs"]
    found["given"] = _weighted_and_not(tf, "auc", "labels", "values", thresholds=[0.3, 0.6, 0.1])
    return found


def metric_points_on_curves(tf):
    return [
        _weighted_and_not(tf, "sensitivity_at_specificity", "labels", "values", specificity=0.6),
        _weighted_and_not(tf, "specificity_at_sensitivity", "labels", "values", sensitivity=0.6),
    ]


def _ranked(tf, metric, labels, **kwargs):
    state = np.random.RandomState(3)
    batches = [
        {
            "labels": state.randint(0, 5, labels),
            "scores": state.uniform(size=(4, 5)).astype(np.float32),
        }
        for _ in range(2)
    ]
    return _run(
        tf,
        lambda tf, t: getattr(tf.metrics, metric)(t["labels"], t["scores"], k=2, **kwargs),
        batches,
    )


def metric_recall_at_k(tf):
    return [
        _ranked(tf, "recall_at_k", (4, 2)),
        _ranked(tf, "recall_at_k", (4,)),
        _ranked(tf, "recall_at_k", (4, 3), class_id=2),
        _ranked(tf, "recall_at_k", (4, 3), weights=np.float32([1, 0.5, 2, 0])),
    ]


def metric_precision_at_k(tf):
    return [
        _ranked(tf, "precision_at_k", (4, 2)),
        _ranked(tf, "precision_at_k", (4, 3), class_id=1),
        _ranked(tf, "sparse_precision_at_k", (4, 2), name="p"),
    ]


def metric_average_precision_at_k(tf):
    return [
        _ranked(tf, "average_precision_at_k", (4, 2)),
        _ranked(tf, "sparse_average_precision_at_k", (4, 3)),
        _ranked(tf, "average_precision_at_k", (4, 2), weights=np.float32([1, 0.5, 2, 0])),
    ]


def metric_with_sparse_labels(tf):
    labels = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 0], tf.int64), [3, 2])
    scores = tf.constant(np.random.RandomState(5).uniform(size=(3, 5)).astype(np.float32))
    pairs = [
        tf.metrics.recall_at_k(labels, scores, 2),
        tf.metrics.precision_at_k(labels, scores, 3),
        tf.metrics.average_precision_at_k(labels, scores, 3),
        tf.metrics.recall_at_top_k(labels, tf.constant([[1, 2], [3, 0], [0, 4]])),
    ]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        return sess.run([u for _, u in pairs]), sess.run([v for v, _ in pairs])


def set_operations(tf):
    a = tf.constant([[1, 2, 2], [3, 4, 9]])
    b = tf.constant([[2, 5], [4, 3]])
    s = tf.SparseTensor([[0, 0], [1, 0], [1, 3]], tf.constant([2, 3, 7]), [2, 4])
    results = {
        "i": tf.sets.intersection(a, b),
        "d": tf.sets.difference(a, b),
        "e": tf.sets.difference(a, b, aminusb=False),
        "u": tf.sets.union(a, b),
        "si": tf.sets.intersection(a, s),
        "sd": tf.sets.difference(s, a),
        "ss": tf.sets.union(s, s),
    }
    size = tf.sets.size(results["u"])
    names = tf.sets.union([[b"x", b"y"]], [[b"z", b"x"]])
    shapes = {k: [v.indices.shape.as_list(), v.values.shape.as_list()] for k, v in results.items()}
    with tf.Session() as sess:
        return sess.run(results), sess.run(size), sess.run(names), shapes
