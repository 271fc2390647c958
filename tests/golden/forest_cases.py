"""``tf.contrib.tensor_forest``. Run on TF 1.15 (make_cases.py) and on Headrace.

With a seed, one tree and small batches TensorFlow's growing is deterministic, so trees are compared
node by node. Bigger runs are compared by what does not depend on the random numbers.
"""

import importlib
import os
import tempfile

import numpy as np


def _resources(tf):
    if tf.__name__ == "tensorflow":
        return importlib.import_module("tensorflow.python.ops.resources")
    return importlib.import_module("headrace.ops.state.shared_resources")


def _handles(tf):
    """Functions that read a tree and its statistics."""
    if tf.__name__ == "tensorflow":
        from tensorflow.contrib.tensor_forest.python.ops import gen_model_ops, gen_stats_ops

        return gen_model_ops.tree_serialize, gen_stats_ops.fertile_stats_serialize
    return (
        lambda handle: tf.raw_ops.TreeSerialize(tree_handle=handle),
        lambda handle, params: tf.raw_ops.FertileStatsSerialize(stats_handle=handle, params=params),
    )


def _forest():
    return {"num_classes": 3, "num_features": 2, "num_trees": 1, "base_random_seed": 5}


def _grow(tf, steps=12, batch=3, spread=5, weights=None, data=None, **kwargs):
    forest = tf.contrib.tensor_forest.python.tensor_forest
    kwargs = dict(_forest(), max_nodes=15, split_after_samples=4, **kwargs)
    regression = kwargs.get("regression", False)
    width, classes = kwargs["num_features"], kwargs["num_classes"]
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, width])
        y = tf.placeholder(tf.float32, [None, classes] if regression else [None])
        params = forest.ForestHParams(**kwargs).fill()
        graphs = forest.RandomForestGraphs(params)
        more = {} if weights is None else {"input_weights": tf.constant(weights)}
        train_op, loss = graphs.training_graph(x, y, **more), graphs.training_loss(x, y)
        answers = graphs.inference_graph(x)
        rest = [graphs.average_size(), graphs.feature_importances(), graphs.validation_loss(x, y)]
        tree = _handles(tf)[0](graphs.variables[0].tree)
        resources = _resources(tf)
        shared = resources.shared_resources()
        found = {
            "names": [v.name for v in tf.global_variables()] + [r.handle.name for r in shared],
            "params": params.serialized_params_proto,
            "ops": [train_op.name, loss.name, answers[0].name],
        }
        trees = []
        with tf.Session() as sess:
            missing = resources.report_uninitialized_resources()
            found["before"] = sess.run(missing)
            sess.run([tf.global_variables_initializer(), resources.initialize_resources(shared)])
            found["after"] = sess.run(missing)
            rng = np.random.RandomState(0)
            found["fresh"] = sess.run(answers[0], {x: np.zeros([2, width])})
            for _ in range(steps):
                rows = rng.randint(0, spread, (batch, width)).astype("f")
                labels = rows[:, :1] * 2 + rows[:, 1:2] * np.arange(classes)
                if not regression:
                    labels = (rows[:, 0] + (rows[:, 1] > 2)) % classes
                sess.run(train_op, {x: rows, y: labels})
                trees.append(sess.run(tree))
            found["trees"] = trees
            grid = np.array([[i, j] for i in range(spread) for j in range(spread)], "f")
            grid = np.tile(grid, [1, width // 2])
            found["answers"] = sess.run([answers[0], answers[2], loss] + rest, {x: grid})
            if kwargs.get("inference_tree_paths"):
                found["paths"] = sess.run(answers[1], {x: grid})
    return found


def classification(tf):
    return _grow(tf)


def regression(tf):
    return _grow(tf, regression=True)


def strict_tests_and_few_nodes(tf):
    return _grow(tf, split_name="less", num_splits_to_consider=3), _grow(
        tf, num_splits_to_consider=2, inference_tree_paths=True, steps=5
    )


def weights(tf):
    return _grow(tf, weights=np.array([1.0, 2.0, 0.5], "f"))


def depth_dependent(tf):
    """Parameters as text of a message."""
    found = _grow(
        tf,
        num_splits_to_consider="threshold { on_value: 3 off_value: 2 threshold: 1 }",
        steps=10,
    )
    return found["trees"]


def several_trees(tf):
    forest = tf.contrib.tensor_forest.python.tensor_forest
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.placeholder(tf.int32, [None])
    params = forest.ForestHParams(**dict(_forest(), num_trees=4, split_after_samples=5)).fill()
    graphs = forest.RandomForestGraphs(params)
    train_op = graphs.training_graph(x, y)
    mean, _, variance = graphs.inference_graph(x)
    handles = [h.name for h in graphs.get_all_resource_handles()]
    resources = _resources(tf)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(resources.initialize_resources(resources.shared_resources()))
        rng = np.random.RandomState(2)
        for _ in range(10):
            rows = rng.rand(4, 2)
            sess.run(train_op, {x: rows, y: rows.sum(1).astype(int)})
        return handles, sess.run([mean, variance, graphs.average_size()], {x: rng.rand(9, 2)})


def filled_parameters(tf):
    forest = tf.contrib.tensor_forest.python.tensor_forest
    found = []
    for kwargs in (
        {},
        {"num_features": 5000, "num_trees": 3, "max_nodes": 50, "model_name": "all_sparse"},
        {"regression": True, "split_after_samples": "25", "split_name": "less"},
    ):
        kwargs = dict({"num_classes": 7, "num_features": 30}, **kwargs)
        params = forest.ForestHParams(**kwargs).fill()
        values = dict(params.values())
        found.append([values, forest.build_params_proto(params).SerializeToString()])
    bagged = forest.ForestHParams(
        num_classes=2, num_features=10, num_trees=3, feature_bagging_fraction=0.5
    ).fill()
    return found, [len(set(f)) for f in bagged.bagged_features]


def saved_and_restored(tf):
    """Trees and statistics go through a checkpoint."""
    forest = tf.contrib.tensor_forest.python.tensor_forest
    path = os.path.join(tempfile.mkdtemp(), "forest")
    rng = np.random.RandomState(4)
    batches = [rng.rand(5, 2) for _ in range(12)]
    found = []
    for restored in (False, True):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 2])
            y = tf.placeholder(tf.int32, [None])
            params = forest.ForestHParams(
                **dict(_forest(), split_after_samples=6, checkpoint_stats=True)
            ).fill()
            graphs = forest.RandomForestGraphs(params)
            train_op, (mean, _, _) = graphs.training_graph(x, y), graphs.inference_graph(x)
            resources = _resources(tf)
            saver = tf.train.Saver()
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(resources.initialize_resources(resources.shared_resources()))
                if restored:
                    saver.restore(sess, path)
                for rows in batches[7:] if restored else batches[:7]:
                    sess.run(train_op, {x: rows, y: rows.sum(1).astype(int)})
                if not restored:
                    saver.save(sess, path)
                found.append(sess.run([mean, graphs.average_size()], {x: batches[0]}))
    return found, sorted(name for name, _ in tf.train.list_variables(path))


def _learned(tf, regression):
    """A forest as tutorials write it, without a seed: only its quality can be compared."""
    forest = tf.contrib.tensor_forest.python.tensor_forest
    rng = np.random.RandomState(0)
    rows = rng.rand(2000, 8).astype("f")
    labels = ((rows[:, 0] > 0.5).astype(int) + 2 * (rows[:, 3] > 0.4)) % 4
    targets = (rows[:, :1] * 3 + (rows[:, 3:4] > 0.4) * 2).astype("f")
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, shape=[None, 8])
        y = tf.placeholder(
            tf.float32 if regression else tf.int32, [None, 1] if regression else [None]
        )
        params = forest.ForestHParams(
            num_classes=1 if regression else 4,
            num_features=8,
            num_trees=10,
            max_nodes=200,
            regression=regression,
            split_after_samples=40,
            bagging_fraction=0.8,
        ).fill()
        graphs = forest.RandomForestGraphs(params)
        train_op, loss = graphs.training_graph(x, y), graphs.training_loss(x, y)
        infer, _, _ = graphs.inference_graph(x)
        resources = _resources(tf)
        init = tf.group(
            tf.global_variables_initializer(),
            resources.initialize_resources(resources.shared_resources()),
        )
        with tf.Session() as sess:
            sess.run(init)
            losses = []
            for _ in range(15):
                feed = {x: rows[:1500], y: targets[:1500] if regression else labels[:1500]}
                losses.append(sess.run([train_op, loss], feed)[1])
            answer = sess.run(infer, {x: rows[1500:]})
    grows = losses[-1] < losses[0] and losses[-1] < -40
    if regression:
        return [bool(np.mean((answer - targets[1500:]) ** 2) < 0.25), bool(grows)]
    return [bool((answer.argmax(1) == labels[1500:]).mean() > 0.9), bool(grows)]


def learns_classes(tf):
    return _learned(tf, False)


def learns_numbers(tf):
    return _learned(tf, True)
