"""Small training programs written for TF 1.15: optimizers, moving averages, schedules.

A program is a function of the module that stands for ``tf``; it builds a graph and returns the op
of one step. Three steps are run; the values of all variables afterwards, and the names and types of
all operations, are compared. Python 3.7 syntax.
"""

import collections

import numpy as np

Program = collections.namedtuple("Program", "name build same_ops")

START = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]])
OFFSET = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]])

OPTIMIZERS = [
    ("sgd", lambda tf, step: tf.train.GradientDescentOptimizer(0.1)),
    ("sgd_callable", lambda tf, step: tf.train.GradientDescentOptimizer(lambda: tf.constant(0.1))),
    ("momentum", lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9)),
    ("nesterov", lambda tf, step: tf.train.MomentumOptimizer(0.1, lambda: 0.9, use_nesterov=True)),
    ("adam", lambda tf, step: tf.train.AdamOptimizer(0.1)),
    (
        "adam_named",
        lambda tf, step: tf.train.AdamOptimizer(tf.constant(0.1), 0.5, 0.8, 1e-3, name="MyAdam"),
    ),
    ("rmsprop", lambda tf, step: tf.train.RMSPropOptimizer(0.1, 0.8, momentum=0.5, epsilon=0.01)),
    (
        "rmsprop_centered",
        lambda tf, step: tf.train.RMSPropOptimizer(0.1, epsilon=0.1, centered=True),
    ),
    ("adagrad", lambda tf, step: tf.train.AdagradOptimizer(0.1)),
    ("adadelta", lambda tf, step: tf.train.AdadeltaOptimizer(0.5, 0.9, 1e-3)),
    (
        "ftrl",
        lambda tf, step: tf.train.FtrlOptimizer(
            0.1, l1_regularization_strength=0.05, l2_regularization_strength=0.02
        ),
    ),
    (
        "ftrl_power",
        lambda tf, step: tf.train.FtrlOptimizer(
            0.1, -0.3, 0.2, accum_name="acc", linear_name="lin"
        ),
    ),
    (
        "ftrl_shrink",
        lambda tf, step: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.05),
    ),
    ("proximal_sgd", lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.05, 0.02)),
    ("proximal_adagrad", lambda tf, step: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.05, 0.02)),
    ("adagrad_da", lambda tf, step: tf.train.AdagradDAOptimizer(0.1, step, 0.1, 0.05, 0.02)),
]


def _gradient(tf, w, sparse):
    if not sparse:
        return w * 0.5 + tf.constant(OFFSET, w.dtype.base_dtype)
    indices = tf.constant([2, 0, 2])
    rows = tf.gather(tf.identity(w), indices)
    return tf.IndexedSlices(rows * 0.5, indices, tf.constant([3, 2]))


def _optimizer_program(make, resource, sparse, double):
    def build(tf):
        dtype = tf.float64 if double else tf.float32
        step = tf.Variable(0, name="step", trainable=False, use_resource=resource, dtype=tf.int64)
        w = tf.Variable(tf.constant(START, dtype), name="w", use_resource=resource)
        return make(tf, step).apply_gradients([(_gradient(tf, w, sparse), w)], global_step=step)

    return build


def _optimizer_programs():
    for name, make in OPTIMIZERS:
        for resource in (False, True):
            for sparse in (False, True):
                if name == "sgd_callable" and resource and sparse:
                    continue  # TensorFlow forgets to call it
                label = "%s-%s-%s" % (
                    name,
                    "resource" if resource else "ref",
                    "sparse" if sparse else "dense",
                )
                yield Program(label, _optimizer_program(make, resource, sparse, False), True)
        if not name.startswith("proximal"):  # TensorFlow does not cast their hyperparameters
            yield Program(name + "-ref-double", _optimizer_program(make, False, False, True), True)


# whole programs ---------------------------------------------------------------------------------


def two_variables(tf):
    """Variables in scopes, one without gradient, no global step, a second optimizer on the same
    variables.
    """
    with tf.variable_scope("net"):
        a = tf.get_variable("a", initializer=tf.constant([1.0, 2.0]))
        b = tf.get_variable("b", initializer=tf.constant([3.0, 4.0]))
        c = tf.get_variable("c", initializer=tf.constant(0.5))
    grads = [(a * 2.0, a), (None, c), (b * a, b)]
    first = tf.train.AdamOptimizer(0.05).apply_gradients(grads)
    with tf.control_dependencies([first]):
        second = tf.train.AdamOptimizer(0.01, name="Second").apply_gradients(
            grads[:1], name="second"
        )
    return tf.group(first, second)


def scoped(tf):
    """Where slots and their names go when the optimizer is used inside scopes, twice."""
    with tf.variable_scope("net"):
        w = tf.get_variable("w", initializer=tf.constant([1.0, 2.0]))
        with tf.name_scope("part"):
            first = tf.train.RMSPropOptimizer(0.1).apply_gradients([(w * 0.5, w)])
    with tf.variable_scope("train"):
        second = tf.train.AdamOptimizer(0.1).apply_gradients([(w * 0.5, w)])
        third = tf.train.AdamOptimizer(0.2).apply_gradients([(tf.constant([1.0, 1.0]), w)])
    with tf.control_dependencies([first]):
        after = tf.group(second)
    return tf.group(after) if third is None else after


def unknown_shapes(tf):
    """Slots of a variable whose shape is not known while building."""
    w = tf.Variable(tf.placeholder_with_default([1.0, 2.0], None), validate_shape=False, name="w")
    step = tf.train.MomentumOptimizer(0.1, 0.5).apply_gradients([(tf.constant([1.0, 2.0]), w)])
    return tf.group(step)


def partitioned(tf):
    """A variable in two parts has slots in two parts."""
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    pairs = [(part * 0.5, part) for part in w]
    return tf.train.AdagradOptimizer(0.1).apply_gradients(pairs)


def constrained(tf):
    w = tf.Variable([1.0, -0.5], name="w", constraint=lambda v: tf.maximum(v, 0.0))
    return tf.train.GradientDescentOptimizer(0.4).apply_gradients([(tf.constant([1.0, 2.0]), w)])


def constrained_resource(tf):
    w = tf.Variable(
        [1.0, 0.5], name="w", constraint=lambda v: tf.maximum(v, 0.0), use_resource=True
    )
    return tf.train.MomentumOptimizer(0.4, 0.9).apply_gradients([(tf.constant([1.0, 2.0]), w)])


def minimized(tf):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=tf.constant([[0.5, -1.0], [2.0, 0.25]]))
    b = tf.get_variable("b", shape=[2], initializer=tf.zeros_initializer())
    y = tf.matmul(tf.constant([[1.0, 2.0], [3.0, -1.0]]), w) + b
    loss = tf.reduce_mean(tf.square(y - tf.constant([[1.0, 0.0], [0.0, 1.0]])))
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    return tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)


def embedded(tf):
    table = tf.get_variable("table", initializer=tf.constant(START.astype(np.float32)))
    rows = tf.gather(table, [0, 2, 0])
    loss = tf.reduce_sum(tf.square(rows))
    return tf.train.AdagradOptimizer(0.3).minimize(loss)


# moving averages --------------------------------------------------------------------------------


def _averaged(tf, resource, **options):
    w = tf.Variable([1.0, 2.0], name="w", use_resource=resource)
    with tf.control_dependencies([w.assign_add([1.0, -0.5])]):
        ema = tf.train.ExponentialMovingAverage(0.9, **options)
        return ema.apply([w])


def ema(tf):
    return _averaged(tf, False)


def ema_resource(tf):
    return _averaged(tf, True)


def ema_updates(tf):
    step = tf.Variable(3, name="count", trainable=False)
    return _averaged(tf, False, num_updates=step, name="averages")


def ema_tensor(tf):
    x = tf.multiply(tf.constant([1.0, 3.0]), 2.0, name="x")
    return tf.train.ExponentialMovingAverage(0.8, zero_debias=True).apply([x])


def ema_tensor_biased(tf):
    x = tf.multiply(tf.constant([1.0, 3.0]), 2.0, name="x")
    return tf.train.ExponentialMovingAverage(0.8).apply([x])


def moving_average(tf):
    with tf.variable_scope("outer"):
        v = tf.get_variable("v", initializer=tf.constant([0.0, 0.0]))
        first = tf.moving_averages.assign_moving_average(v, tf.constant([1.0, 2.0]), 0.75)
        with tf.control_dependencies([first]):
            second = tf.moving_averages.assign_moving_average(v, tf.constant([1.0, 4.0]), 0.5)
    return tf.group(first, second)


def moving_average_plain(tf):
    v = tf.get_variable("v", initializer=tf.constant([1.0, 0.0]))
    return tf.moving_averages.assign_moving_average(
        v, tf.constant([3.0, 2.0]), tf.constant(0.75), zero_debias=False
    )


def weighted_average(tf):
    value, weight = tf.constant([1.0, 2.0]), tf.constant([0.5, 2.0])
    average = tf.moving_averages.weighted_moving_average(value, 0.75, weight)
    return average.op


def _with_same_ops(*functions):
    return [Program(f.__name__, f, True) for f in functions]


PROGRAMS = (
    list(_optimizer_programs())
    + _with_same_ops(
        two_variables,
        scoped,
        unknown_shapes,
        partitioned,
        constrained,
        constrained_resource,
        ema,
        ema_resource,
        ema_updates,
        ema_tensor,
        ema_tensor_biased,
        moving_average,
        moving_average_plain,
        weighted_average,
    )
    + [Program("minimized", minimized, False), Program("embedded", embedded, False)]
)


# schedules: tensors of the step -----------------------------------------------------------------

STEPS = [0, 1, 5, 10, 13, 20, 37, 1000]
SCHEDULES = [
    ("exponential", lambda tf, s: tf.train.exponential_decay(0.1, s, 10, 0.9)),
    (
        "exponential_stairs",
        lambda tf, s: tf.train.exponential_decay(0.1, s, 10, 0.9, staircase=True, name="decay"),
    ),
    ("natural", lambda tf, s: tf.train.natural_exp_decay(0.1, s, 10, 0.5)),
    ("natural_stairs", lambda tf, s: tf.train.natural_exp_decay(0.1, s, 10, 0.5, staircase=True)),
    ("inverse", lambda tf, s: tf.train.inverse_time_decay(0.1, s, 10, 0.5)),
    ("inverse_stairs", lambda tf, s: tf.train.inverse_time_decay(0.1, s, 10, 0.5, staircase=True)),
    ("polynomial", lambda tf, s: tf.train.polynomial_decay(0.1, s, 20, 0.01, power=0.5)),
    ("polynomial_default", lambda tf, s: tf.train.polynomial_decay(0.1, s, 20)),
    (
        "polynomial_cycle",
        lambda tf, s: tf.train.polynomial_decay(0.1, s, 7, 0.01, power=2.0, cycle=True),
    ),
    ("piecewise", lambda tf, s: tf.train.piecewise_constant(s, [5, 13], [1.0, 0.5, 0.1])),
    ("piecewise_one", lambda tf, s: tf.train.piecewise_constant(s, [10], [1.0, 0.5])),
    ("cosine", lambda tf, s: tf.train.cosine_decay(0.1, s, 30)),
    ("cosine_alpha", lambda tf, s: tf.train.cosine_decay(0.1, s, 30, alpha=0.2)),
    (
        "restarts",
        lambda tf, s: tf.train.cosine_decay_restarts(0.1, s, 6, t_mul=2.0, m_mul=0.9, alpha=0.1),
    ),
    (
        "restarts_equal",
        lambda tf, s: tf.train.cosine_decay_restarts(0.1, s, 6, t_mul=1.0, m_mul=0.5),
    ),
    (
        "linear_cosine",
        lambda tf, s: tf.train.linear_cosine_decay(
            0.1, s, 30, num_periods=1.5, alpha=0.1, beta=0.01
        ),
    ),
    (
        "exponential_double",
        lambda tf, s: tf.train.exponential_decay(tf.constant(0.1, tf.float64), s, 10, 0.9),
    ),
]
#: Schedules whose operations are TensorFlow's too (the others choose without branches, or share a
#: cast).
SAME_OPS = {
    "exponential",
    "exponential_stairs",
    "exponential_double",
    "natural",
    "natural_stairs",
    "inverse",
    "inverse_stairs",
}


def run_program(tf, program):
    """(values of all variables after three steps by name, [[name, type] of each operation])."""
    with tf.Graph().as_default() as graph:
        step = program.build(tf)
        ops = [[op.name, op.type] for op in graph.get_operations()]
        variables = tf.global_variables()
        init = tf.global_variables_initializer()
        with tf.Session() as session:
            session.run(init)
            for _ in range(3):
                session.run(step)
            return {v.op.name: session.run(v) for v in variables}, ops


def run_schedule(tf, make):
    with tf.Graph().as_default() as graph:
        step = tf.placeholder(tf.int64, [])
        rate = make(tf, step)
        ops = [[op.name, op.type] for op in graph.get_operations()]
        with tf.Session() as session:
            return np.array([session.run(rate, {step: s}) for s in STEPS]), ops
