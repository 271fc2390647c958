"""AdamGS, LazyAdamGS and RegAdagrad. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def _trained(tf, make, resource, steps=3):
    """Values of all variables after some steps with a dense and a sparse gradient."""
    with tf.variable_scope("net", use_resource=resource):
        w = tf.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2) / 5)
        table = tf.get_variable("table", initializer=np.ones((4, 2), np.float32))
    step = tf.train.get_or_create_global_step()
    optimizer = make(step)
    rows = tf.gather(table, [1, 3, 1])
    loss = tf.reduce_sum(tf.square(w)) + tf.reduce_sum(rows * tf.constant([1.0, 2.0]))
    train = optimizer.minimize(loss, global_step=step)
    names = [[v.op.name, v.shape.as_list()] for v in tf.global_variables()]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(train)
        return [names, optimizer.get_slot_names(), sess.run(tf.global_variables())]


def adam_by_step(tf):
    return _trained(tf, lambda s: tf.contrib.opt.AdamGSOptimizer(s, 0.1), False)


def adam_by_step_resource(tf):
    return _trained(tf, lambda s: tf.contrib.opt.AdamGSOptimizer(s, 0.1, beta1=0.8), True)


def lazy_adam_by_step(tf):
    return _trained(tf, lambda s: tf.contrib.opt.LazyAdamGSOptimizer(s, 0.1), False)


def lazy_adam_by_step_resource(tf):
    return _trained(tf, lambda s: tf.contrib.opt.LazyAdamGSOptimizer(s, 0.1), True)


def adagrad(tf):
    return _trained(tf, lambda s: tf.contrib.opt.RegAdagradOptimizer(0.1), False)


def adagrad_without_slots(tf):
    found = []
    for resource in (False, True):
        with tf.variable_scope("kind%d" % resource, use_resource=resource):
            w = tf.get_variable("w", initializer=np.ones((3, 2), np.float32))
        optimizer = tf.contrib.opt.RegAdagradOptimizer(0.5, name="adagrad%d" % resource)
        dense = [(tf.constant(np.full((3, 2), 0.5, np.float32)), w)]
        sparse = [(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1])), w)]
        with optimizer.avoid_updating_slots():
            quiet = [optimizer.apply_gradients(dense), optimizer.apply_gradients(sparse)]
        loud = [optimizer.apply_gradients(dense), optimizer.apply_gradients(sparse)]
        slot = optimizer.get_slot(w, "accumulator")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for op in quiet + loud:
                sess.run(op)
                found.append(sess.run([w, slot]))
    return found
