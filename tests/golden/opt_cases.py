"""``tf.contrib.opt``: optimizers. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def scipy_interface(tf):
    """SciPy versions differ in their path, not in the minimum."""
    found = []
    for kwargs in (
        {},
        {"options": {"maxiter": 50}},
        {"method": "CG"},
        {"method": "SLSQP", "equalities": True},
        {"method": "SLSQP", "inequalities": True},
        {"var_to_bounds": True},
    ):
        with tf.Graph().as_default():
            x = tf.Variable([7.0, 7.0], dtype=tf.float64, name="x")
            y = tf.Variable(3.0, dtype=tf.float64, name="y")
            loss = tf.reduce_sum(tf.square(x - [1.0, 2.0])) + tf.square(y + x[0])
            kwargs = dict(kwargs)
            if kwargs.get("equalities"):
                kwargs["equalities"] = [x[1] - 1.0]
            if kwargs.get("inequalities"):
                kwargs["inequalities"] = [y - 0.5]
            if kwargs.get("var_to_bounds"):
                kwargs["var_to_bounds"] = {x: ([2.0, -np.inf], [5.0, 0.0]), y: (-1.0, 1.0)}
            optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, **kwargs)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                optimizer.minimize(sess)
                found.append([round(float(v), 3) + 0.0 for v in [*sess.run(x), sess.run(y)]])
    return found


def scipy_feeds_callbacks_and_parts(tf):
    x = tf.Variable([7.0, 7.0], name="x")
    y = tf.Variable(3.0, name="y")
    target = tf.placeholder(tf.float32, [2])
    loss = tf.reduce_sum(tf.square(x - target)) + y * 0.0
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, var_list=[x])
    calls, steps = [], []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        optimizer.minimize(
            sess,
            feed_dict={target: [1.5, -2.0]},
            fetches=[loss, x],
            loss_callback=lambda value, at: calls.append((value.shape, at.shape)),
            step_callback=lambda at: steps.append(at.shape),
        )
        values = [round(float(v), 3) for v in [*sess.run(x), sess.run(y)]]
    return values, calls[0], steps[0], len(calls) > 1


def scipy_refuses(tf):
    x = tf.Variable([7.0, 7.0], name="x")
    messages = []
    for kwargs in ({"bounds": [(0, 1)]}, {"jac": False}):
        optimizer = tf.contrib.opt.ScipyOptimizerInterface(tf.reduce_sum(x * x), **kwargs)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            try:
                optimizer.minimize(sess)
            except ValueError as error:
                messages.append(str(error))
    try:
        tf.contrib.opt.ExternalOptimizerInterface(tf.reduce_sum(x * x)).minimize(tf.Session())
    except Exception as error:
        messages.append(type(error).__name__)
    return messages
