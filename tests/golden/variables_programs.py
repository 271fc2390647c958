"""Small programs with variables, written for TF 1.15, whose graphs are compared op by op (name and
type).

Each is a function of the module that stands for ``tf``. Only ops whose own expansion is not at
issue are used beside variables, so that a difference is a difference in variables. Python 3.7
syntax.
"""

import numpy as np


def ref_basic(tf):
    v = tf.Variable([1.0, 2.0])
    tf.Variable(3, name="count", trainable=False)
    tf.Variable(np.zeros([2, 3], np.float32), name="w")
    tf.Variable([1.0], name="w")
    tf.identity(v, name="out")
    tf.global_variables_initializer()


def ref_callable(tf):
    tf.Variable(lambda: tf.constant([1.0, 2.0], name="c"), name="a")
    tf.Variable(lambda: [1.0, 2.0], dtype=tf.float32)


def ref_tensor(tf):
    c = tf.constant([1.0, 2.0])
    tf.Variable(c, name="b")
    with tf.name_scope("scope"):
        tf.Variable(c, name="b")
        with tf.name_scope("inner"):
            tf.Variable(1.0)


def ref_assign(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    v.assign([3.0, 4.0])
    v.assign_add([3.0, 4.0], name="add")
    v.assign_sub([3.0, 4.0])
    tf.assign(v, [1.0, 1.0])
    tf.assign_add(v, [1.0, 1.0], name="more")
    tf.assign_sub(v, [1.0, 1.0])
    v.read_value()
    tf.is_variable_initialized(v)
    with tf.name_scope("s"):
        tf.scatter_update(v, [0], [1.0])
        tf.scatter_add(v, [0], [1.0])
        tf.scatter_nd_update(v, [[0]], [1.0])
    c = tf.Variable(0, name="c")
    c.count_up_to(5)
    tf.count_up_to(c, 5)


def resource_basic(tf):
    v = tf.Variable([1.0, 2.0], use_resource=True)
    tf.Variable(lambda: tf.constant(3.0), use_resource=True, name="f")
    with tf.name_scope("s"):
        tf.Variable(3, use_resource=True, name="n", trainable=False)
    v.read_value()
    v.value()
    tf.identity(v, name="out")
    tf.global_variables_initializer()


def resource_assign(tf):
    v = tf.Variable([1.0, 2.0], use_resource=True, name="v")
    v.assign([3.0, 4.0])
    v.assign([3.0, 4.0], read_value=False)
    v.assign_add([3.0, 4.0], name="add")
    v.assign_sub([3.0, 4.0])
    tf.assign(v, [1.0, 1.0])
    tf.assign_add(v, [1.0, 1.0], name="more")
    tf.assign_sub(v, [1.0, 1.0])
    tf.scatter_update(v, [0], [1.0])
    tf.scatter_add(v, [0], [1.0], name="sc")
    v.sparse_read([0])
    tf.is_variable_initialized(v)


def get_variable_basic(tf):
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", [3, 4])
        b = tf.get_variable("b", [4], initializer=tf.zeros_initializer())
        tf.identity(w, name="x")
        tf.identity(b, name="y")
        n = tf.get_variable("n", [], dtype=tf.int32)
        tf.identity(n)
    with tf.variable_scope("layer", reuse=True):
        tf.identity(tf.get_variable("w"), name="x")
    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        tf.get_variable("w", [3, 4])
        tf.get_variable("extra", [1], initializer=tf.constant_initializer(2.0))
    tf.get_variable("value", initializer=[1.0, 2.0])
    tf.get_variable("tensor", initializer=tf.constant([1, 2]))


def get_variable_initializers(tf):
    tf.get_variable("a", [2, 3], initializer=tf.truncated_normal_initializer(stddev=0.1))
    tf.get_variable("b", [2, 3], initializer=tf.random_normal_initializer)
    tf.get_variable("c", [2, 3], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    tf.get_variable("d", [2, 3], initializer=tf.ones_initializer)
    tf.get_variable("e", initializer=lambda: tf.constant([1.0, 2.0]))


def get_variable_resource(tf):
    with tf.variable_scope("layer", use_resource=True):
        w = tf.get_variable("w", [3, 4])
        tf.get_variable("b", [4], initializer=tf.zeros_initializer())
        tf.identity(w, name="x")


def scope_names(tf):
    with tf.variable_scope("a"):
        tf.identity(1.0, name="x")
        with tf.variable_scope("b") as b:
            tf.get_variable("v", [1], initializer=tf.zeros_initializer())
            tf.identity(1.0, name="x")
    with tf.variable_scope("a"):
        tf.identity(1.0, name="x")
    with tf.variable_scope(b):
        tf.identity(1.0, name="x")
        tf.get_variable("u", [1], initializer=tf.zeros_initializer())
    with tf.variable_scope(b, auxiliary_name_scope=False):
        tf.identity(1.0, name="x")
        with tf.name_scope(b.original_name_scope):
            tf.identity(1.0, name="y")
    for _ in range(3):
        with tf.variable_scope(None, default_name="layer"):
            tf.get_variable("v", [1], initializer=tf.zeros_initializer())
            tf.identity(1.0, name="x")
    with tf.name_scope("ns"):
        with tf.variable_scope("a"):
            tf.get_variable("q", [1], initializer=tf.zeros_initializer())
            tf.Variable(1.0, name="plain")
            tf.identity(1.0, name="x")
    with tf.variable_scope(tf.get_variable_scope()):
        tf.identity(1.0, name="root")


def partitioned(tf):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [5, 2], initializer=tf.zeros_initializer())
    tf.identity(w, name="whole")
    tf.get_variable(
        "t",
        initializer=tf.constant(np.ones([4], np.float32)),
        partitioner=tf.fixed_size_partitioner(2),
    )
    tf.create_partitioned_variables([4], [2], tf.zeros_initializer(), name="old")


def templates(tf):
    def layer(x, n):
        v = tf.get_variable("v", [n], initializer=tf.zeros_initializer())
        return tf.identity(v, name="out")

    t = tf.make_template("tmpl", layer, n=2)
    t(1.0)
    t(2.0)
    u = tf.make_template("tmpl", layer, n=2)
    u(1.0)
    with tf.variable_scope("outer"):
        w = tf.make_template("tmpl", layer, n=2)
        w(1.0)
        w(1.0)
    q = tf.make_template("tq", layer, create_scope_now_=True, n=2)
    with tf.variable_scope("late"):
        q(1.0)


def regularized(tf):
    def reg(v):
        return tf.identity(v, name="loss")

    with tf.variable_scope("r", regularizer=reg):
        tf.get_variable("a", [2], initializer=tf.zeros_initializer())
        tf.get_variable("b", [2], initializer=tf.zeros_initializer(), regularizer=tf.no_regularizer)
        tf.get_variable("a2", [2], initializer=tf.zeros_initializer())


def initializer_ops(tf):
    tf.Variable(1.0, name="a")
    tf.get_local_variable("l", [1], initializer=tf.zeros_initializer())
    tf.global_variables_initializer()
    tf.local_variables_initializer()
    tf.variables_initializer(tf.global_variables(), name="mine")
    tf.variables_initializer([], name="none")
    tf.tables_initializer()
    tf.global_variables_initializer()


def dependent_initial_value(tf):
    a = tf.Variable([1.0, 2.0], name="a")
    tf.Variable(tf.identity(a, name="double"), name="b")
    tf.Variable(a.initialized_value(), name="c")
    a.initialized_value()


def in_control_dependencies(tf):
    with tf.control_dependencies([tf.no_op(name="first")]):
        with tf.name_scope("s"):
            v = tf.Variable(1.0, name="v")
            v.assign(2.0)
        tf.get_variable("g", [1], initializer=tf.zeros_initializer())


def caching(tf):
    with tf.variable_scope("s", caching_device="/cpu:0"):
        tf.get_variable("g", [1], initializer=tf.zeros_initializer())
        tf.get_variable("r", [1], initializer=tf.zeros_initializer(), use_resource=True)


def getters(tf):
    def suffix(getter, name, *args, **kwargs):
        return getter(name + "_x", *args, **kwargs)

    def twice(getter, name, shape=None, *args, **kwargs):
        return tf.identity(getter(name, shape, *args, **kwargs), name="seen")

    with tf.variable_scope("s", custom_getter=suffix):
        tf.get_variable("a", [1], initializer=tf.zeros_initializer())
        with tf.variable_scope("t", custom_getter=twice):
            tf.get_variable("b", [1], initializer=tf.zeros_initializer())


def explicit_dtype(tf):
    tf.get_variable("a", dtype=tf.float32, initializer=[1.0, 2.0])
    tf.get_variable("b", dtype=tf.int32, initializer=3)
    tf.get_variable("c", [2], dtype=tf.float64, initializer=tf.ones_initializer())


PROGRAMS = [
    ref_basic,
    ref_callable,
    ref_tensor,
    ref_assign,
    resource_basic,
    resource_assign,
    get_variable_basic,
    get_variable_initializers,
    get_variable_resource,
    scope_names,
    partitioned,
    templates,
    regularized,
    initializer_ops,
    dependent_initial_value,
    in_control_dependencies,
    caching,
    getters,
    explicit_dtype,
]
