"""GGT and Shampoo: variables and what the optimizers keep after some steps.

Run on TF 1.15 (make_cases.py) and on Headrace. Constants are large, so that roots of matrices do
not magnify rounding.
"""

import numpy as np

from tests.golden.inner_paths import inner


def _trained(tf, make, resource=False, sparse=False, size=3, steps=4):
    """All variables after some steps."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        start = np.random.RandomState(0).rand(size, 2).astype(np.float32)
        v = tf.get_variable("v", initializer=start, use_resource=resource)
        w = tf.get_variable("w", initializer=np.float32([1.0, -2.0]), use_resource=resource)
        x = tf.constant(np.random.RandomState(1).rand(4, size).astype(np.float32))
        if sparse:
            loss = tf.reduce_sum(tf.square(tf.gather(v, [0, 2]) - w))
        else:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, v) - w)) + tf.reduce_sum(w**4)
        step = tf.train.get_or_create_global_step()
        train = make(step).minimize(loss, global_step=step)
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(train)
        return {x.name: sess.run(x) for x in tf.global_variables()}


def _rows(tf, table):
    found = {}
    for name, run in sorted(table.items()):
        try:
            found[name] = run()
        except Exception as error:  # the error is what is compared
            found[name] = type(error).__name__
    return found


def ggt(tf):
    def run(resource=False, sparse=False, **kinds):
        kinds = dict(dict(svd_eps=0.1, sigma_eps=0.1), **kinds)
        return lambda: _trained(
            tf, lambda step: tf.contrib.opt.GGTOptimizer(0.05, **kinds), resource, sparse
        )

    return _rows(tf, {
        "plain": run(), "resource": run(True), "window": run(window=2), "eps": run(eps=10.0),
    })  # fmt: skip


def shampoo(tf):
    def run(resource=False, sparse=False, size=3, **kinds):
        kinds = dict(dict(learning_rate=0.1, epsilon=0.5), **kinds)
        return lambda: _trained(
            tf, lambda step: tf.contrib.opt.ShampooOptimizer(step, **kinds), resource, sparse, size
        )

    return _rows(tf, {
        "plain": run(), "resource": run(True), "diagonal": run(max_matrix_size=2),
        "momentum": run(gbar_decay=0.9, gbar_weight=0.1), "decay": run(mat_gbar_decay=0.9),
        "interval": run(svd_interval=2), "updates": run(precond_update_interval=2),
        "alpha": run(alpha=1.0), "function": run(gbar_decay=lambda t: 1.0 - 1.0 / t),
        "iterative": run(use_iterative_root=True), "sparse": run(sparse=True),
        "sparse diagonal": run(sparse=True, max_matrix_size=2),
    })  # fmt: skip


def paths(tf):
    path = "contrib.opt.python.training."
    return [inner(tf, path + "ggt", "GGTOptimizer").__name__,
            inner(tf, path + "shampoo", "ShampooOptimizer").__name__]  # fmt: skip
