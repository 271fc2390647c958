"""Optimizers of contrib.opt.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np

from tests.golden.inner_paths import inner

_DECAYS = "contrib.opt.python.training.sign_decay"


def _train(tf, make, resource, steps=3):
    with tf.Graph().as_default():
        w = tf.get_variable(
            "w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2),
            use_resource=resource,
        )  # fmt: skip
        halves = np.array([0.5, -0.5], np.float32)
        b = tf.get_variable("b", initializer=halves, use_resource=resource)
        rows = tf.nn.embedding_lookup(w, [0, 2, 0])
        # gradients do not read the variables: when TensorFlow's decay comes is a race
        scale = tf.placeholder(tf.float32, [])
        loss = scale * (tf.reduce_sum(rows * [[1.0, -2.0], [0.5, 1.0], [3.0, 0.1]]) + b[0] - b[1])
        step = tf.train.get_or_create_global_step()
        op = make(tf, [w, b]).minimize(loss, global_step=step)
        names = sorted(v.name for v in tf.global_variables())
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            values = []
            for i in range(steps):
                sess.run(op, {scale: [1.0, 3.0, -2.0][i]})
                values.append(sess.run([w, b, step]))
            slots = {v.name: sess.run(v) for v in tf.global_variables()}
    return [names, values, slots]


def _both(tf, make):
    return [_train(tf, make, False), _train(tf, make, True)]


def lazy_adam(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.LazyAdamOptimizer(0.1))


def nadam(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.NadamOptimizer(0.1))


def adamax(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.AdaMaxOptimizer(0.1))


def adam_w(tf):
    return _both(tf, lambda tf, v: tf.contrib.opt.AdamWOptimizer(0.01, 0.1))


def momentum_w(tf):
    make = tf.contrib.opt.MomentumWOptimizer
    return _both(tf, lambda tf, v: make(0.01, 0.1, 0.9, use_nesterov=True))


def extended(tf):
    make = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)
    return _both(tf, lambda tf, v: make(0.01, learning_rate=0.1))


def decay_list(tf):
    w = tf.get_variable("w", initializer=np.ones(2, np.float32))
    b = tf.get_variable("b", initializer=np.ones(2, np.float32))
    loss = tf.reduce_sum(w * 0.5 + b * 0.25)
    op = tf.contrib.opt.MomentumWOptimizer(0.5, 0.1, 0.9).minimize(loss, decay_var_list=[w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        return sess.run([w, b])


def power_sign(tf):
    opt = tf.contrib.opt
    decay = inner(tf, _DECAYS, "get_linear_decay_fn")(3)
    return [
        _train(tf, lambda tf, v: opt.PowerSignOptimizer(0.1), False),
        _train(tf, lambda tf, v: opt.PowerSignOptimizer(0.1, 2.0, sign_decay_fn=decay), False),
        _dense(tf, lambda tf, v: opt.PowerSignOptimizer(0.1), True),
    ]


def add_sign(tf):
    opt = tf.contrib.opt
    decay = inner(tf, _DECAYS, "get_cosine_decay_fn")(4)
    return [
        _train(tf, lambda tf, v: opt.AddSignOptimizer(0.1), False),
        _train(tf, lambda tf, v: opt.AddSignOptimizer(0.1, 2.0, sign_decay_fn=decay), False),
        _dense(tf, lambda tf, v: opt.AddSignOptimizer(0.1), True),
    ]


def sign_decays(tf):
    linear, cosine, restart = (
        inner(tf, _DECAYS, "get_%s_decay_fn" % n) for n in ("linear", "cosine", "restart")
    )
    step = tf.placeholder(tf.int32, [])
    made = [
        linear(10), cosine(10), cosine(10, num_periods=2, zero_after=1.5), restart(10, 3),
        restart(10, 3, zero_after=2),
    ]  # fmt: skip
    values = [f(step) for f in made]
    with tf.Session() as sess:
        return [sess.run(values, {step: s}) for s in (0, 3, 7, 10, 12)]


def _dense(tf, make, resource, steps=3):
    """Two variables with dense gradients that depend on them."""
    with tf.Graph().as_default():
        w = tf.get_variable(
            "w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2),
            use_resource=resource,
        )  # fmt: skip
        b = tf.get_variable("b", initializer=np.float32([0.5, -0.5]), use_resource=resource)
        loss = tf.reduce_sum(tf.square(w - 2.0)) + tf.reduce_sum(tf.square(b) * 3.0)
        step = tf.train.get_or_create_global_step()
        op = make(tf, [w, b]).minimize(loss, global_step=step)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(op)
            return {v.name: sess.run(v) for v in tf.global_variables()}


def lars(tf):
    make = tf.contrib.opt.LARSOptimizer
    return [
        _dense(tf, lambda tf, v: make(0.5), False), _dense(tf, lambda tf, v: make(0.5), True),
        _dense(tf, lambda tf, v: make(0.5, use_nesterov=True, skip_list=["b"]), False),
        _train(tf, lambda tf, v: make(0.5), False),
    ]  # fmt: skip


def moving_average(tf):
    import shutil
    import tempfile

    v = tf.get_variable("v", initializer=np.float32([1.0, 2.0]))
    opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.5), 0.5)
    op = opt.minimize(tf.reduce_sum(v * v))
    folder = tempfile.mkdtemp()
    saver = opt.swapping_saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run(op)
        values = {x.name: sess.run(x) for x in tf.global_variables()}
        saver.save(sess, folder + "/m")
        saved = {n: tf.train.load_variable(folder, n) for n, _ in tf.train.list_variables(folder)}
    shutil.rmtree(folder)
    return [values, saved, op.name]


def variable_clipping(tf):
    make = tf.contrib.opt.VariableClippingOptimizer

    def wrapped(tf, v):
        return make(tf.train.AdagradOptimizer(0.5), {v[0]: [1], v[1]: [0]}, 0.7)

    return [_dense(tf, wrapped, False), _dense(tf, wrapped, True), _train(tf, wrapped, False)]


def drop_stale(tf):
    make = tf.contrib.opt.DropStaleGradientOptimizer

    def wrapped(tf, v):
        return make(tf.train.GradientDescentOptimizer(0.1), staleness=0)

    return _dense(tf, wrapped, False)


def multitask(tf):
    opt = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
    x = tf.placeholder(tf.float32, [])
    w = tf.get_variable("w", initializer=np.float32([1.0, 2.0]))
    pairs = opt.compute_gradients(tf.reduce_sum(w * x))
    clipped, norm = tf.contrib.opt.clip_gradients_by_global_norm(pairs, 0.5)
    op = opt.apply_gradients(clipped)
    seen = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value in (1.0, 0.0, -2.0):
            sess.run(op, {x: value})
            seen.append(sess.run([w, opt.get_slot(w, "momentum"), norm], {x: value}))
    return seen
