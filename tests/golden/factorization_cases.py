"""``tf.contrib.factorization``. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def _points():
    rng = np.random.RandomState(3)
    centers = np.array([[0, 0, 1], [4, 4, 0], [-4, 3, 2], [5, -5, -3]], np.float32)
    return (centers[rng.randint(0, 4, 60)] + rng.randn(60, 3) * 0.4 + 0.5).astype(np.float32)


def _train(tf, steps=4, shards=1, **kwargs):
    """Centres, assignments and distances after some steps."""
    points = _points()
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = [tf.constant(p) for p in np.split(points, shards)]
        model = tf.contrib.factorization.KMeans(
            x if shards > 1 else x[0], kwargs.pop("num_clusters", 4), **kwargs
        )
        graph = model.training_graph()
        all_scores, idx, scores, initialized, init_op, train_op = graph
        names = [v.op.name for v in tf.global_variables()]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            before = sess.run(initialized)
            sess.run(init_op)
            after = sess.run(initialized)
            for _ in range(steps):
                sess.run(train_op)
            values = sess.run([all_scores[-1], idx[0], scores[0]] + tf.global_variables())
    return {
        "names": names,
        "initialized": [bool(before), bool(after)],
        "all_scores": values[0][:5],
        "idx": values[1],
        "scores": values[2],
        "variables": values[3:],
    }


def kmeans_initial_tensor(tf):
    first = _points()[[0, 9, 20, 33]]
    return [_train(tf, initial_clusters=first), _train(tf, initial_clusters=first, shards=3)]


def kmeans_random(tf):
    return _train(tf), _train(tf, random_seed=7, num_clusters=5)


def kmeans_plus_plus(tf):
    how = "kmeans_plus_plus"
    return (
        _train(tf, initial_clusters=how, steps=0),
        _train(tf, initial_clusters=how, steps=0, random_seed=5, kmeans_plus_plus_num_retries=0),
        _train(tf, initial_clusters=how, random_seed=11, kmeans_plus_plus_num_retries=-1),
    )


def kmeans_cosine(tf):
    first = _points()[[0, 9, 20, 33]]
    return (
        _train(tf, initial_clusters=first, distance_metric="cosine"),
        _train(tf, initial_clusters="kmeans_plus_plus", distance_metric="cosine", random_seed=2),
    )


def kmeans_mini_batch(tf):
    """TensorFlow's step reads counts and centres while it writes them: a race. Without it each
    centre is near the mean of its points, which assignments and counts show.
    """
    first = _points()[[0, 9, 20, 33]]
    found = []
    for kwargs in (
        {},
        {"mini_batch_steps_per_iteration": 3, "steps": 7},
        {"distance_metric": "cosine"},
        {"distance_metric": "cosine", "mini_batch_steps_per_iteration": 2, "steps": 5},
    ):
        result = _train(tf, initial_clusters=first, use_mini_batch=True, **kwargs)
        points, centers = _points(), result["variables"][0]
        if "distance_metric" in kwargs:
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            centers = centers / np.linalg.norm(centers, axis=1, keepdims=True)
        means = [points[result["idx"] == i].mean(0) for i in range(4)]
        near = bool(np.abs(np.array(means) - centers).max() < 1.0)
        rest = [v for v in result["variables"] if v.dtype == np.int64]
        if "distance_metric" in kwargs:  # where the race decides between near centres
            result["idx"], rest = [], [v.sum() for v in rest]
        found.append([result["names"], result["initialized"], result["idx"], near, rest])
    return found


def kmeans_function(tf):
    def choose(inputs, k):
        return inputs[0][:k] * 2.0

    return _train(tf, initial_clusters=choose)


def kmeans_kmc2(tf):
    """One chain a call: the centres come one by one."""
    points = _points()
    x = tf.constant(points)
    model = tf.contrib.factorization.KMeans(
        x, 3, initial_clusters="kmc2", random_seed=4, kmc2_chain_length=200
    )
    _, _, _, initialized, init_op, _ = model.training_graph()
    found = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(init_op)
            found.append([sess.run(tf.global_variables()[0]), bool(sess.run(initialized))])
    return found


def kmeans_small_batches(tf):
    """A batch with fewer rows than centres: all its rows become centres."""
    x = tf.placeholder(tf.float32, [None, 3])
    model = tf.contrib.factorization.KMeans(x, 5, use_mini_batch=True)
    _, idx, _, initialized, init_op, train_op = model.training_graph()
    points, found = _points(), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(3):
            batch = points[2 * i : 2 * i + 2]
            if not sess.run(initialized):
                sess.run(init_op, {x: batch})
            found.append([bool(sess.run(initialized)), sess.run(tf.global_variables()[0]).shape])
        sess.run(train_op, {x: points[:20]})
        found.append(sess.run(idx[0], {x: points[:20]}).shape)
    return found


def kmeans_refuses(tf):
    messages = []
    for kwargs in ({"initial_clusters": "best"}, {"distance_metric": "manhattan"}):
        try:
            tf.contrib.factorization.KMeans(tf.zeros([2, 2]), 2, **kwargs)
        except ValueError as error:
            messages.append(str(error))
    return messages


def kmeans_names(tf):
    f = tf.contrib.factorization
    return [f.COSINE_DISTANCE, f.SQUARED_EUCLIDEAN_DISTANCE, f.RANDOM_INIT, f.KMEANS_PLUS_PLUS_INIT]
