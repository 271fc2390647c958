"""``tf.compat.v1.wrap_function``: captured variables, gradients, calls in graphs and functions."""

import numpy as np
import pytest

import headrace as tf1
import headrace.compat.v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401

SCALAR = [tf.TensorSpec((), tf.float32)]


def test_variables_and_tensors_from_outside_are_captured():
    w, c = tf.Variable(3.0), tf.constant(4.0)
    product = tf1.wrap_function(lambda x: x * w + c, SCALAR)
    assert float(product(tf.constant(2.0))) == 10.0
    w.assign(5.0)
    assert float(product(tf.constant(2.0))) == 14.0


def test_gradients_pass_through():
    w = tf.Variable(3.0)
    product = tf1.wrap_function(lambda x: x * x * w, SCALAR)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = product(x)
    dx, dw = tape.gradient(y, [x, w])
    assert (float(dx), float(dw)) == (12.0, 4.0)


def test_its_own_layers_are_trained():
    def model(x):
        h = tf1.layers.dense(x, 3, name="d")
        return tf1.reduce_sum(h * h)

    wrapped = tf1.wrap_function(model, [tf.TensorSpec([None, 2], tf.float32)])
    assert sorted(v.name for v in wrapped.variables) == ["d/bias:0", "d/kernel:0"]
    first = float(wrapped(tf.ones([4, 2])))
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = wrapped(tf.ones([4, 2]))
        grads = tape.gradient(loss, wrapped.variables)
        for v, g in zip(wrapped.variables, grads):
            v.assign_sub(0.01 * g)
    assert float(wrapped(tf.ones([4, 2]))) < first


def test_it_is_called_in_functions():
    w = tf.Variable(3.0)
    product = tf1.wrap_function(lambda x: x * w, SCALAR)

    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            y = product(x) + 1.0
        return y, tape.gradient(y, w)

    y, g = outer(tf.constant(2.0))
    assert (float(y), float(g)) == (7.0, 2.0)


def test_it_is_called_in_graphs():
    with tf1.Graph().as_default(), tf1.Session() as session:
        w = tf1.get_variable("w", initializer=3.0, use_resource=True)
        product = tf1.wrap_function(lambda x: x * w, SCALAR)
        y = product(tf1.constant(2.0))
        (g,) = tf1.gradients(y, w)
        session.run(tf1.global_variables_initializer())
        assert session.run([y, g]) == [6.0, 2.0]


def test_what_is_pruned_away_is_not_run():
    v = tf.Variable(0.0)

    def steps(x):
        doubled = tf1.identity(x * 2.0, name="doubled")
        moved = v.assign_add(doubled)
        with tf1.control_dependencies([moved]):
            return tf1.identity(doubled, name="after")

    wrapped = tf1.wrap_function(steps, SCALAR)
    pruned = wrapped.prune(wrapped.inputs[0], wrapped.graph.get_tensor_by_name("doubled:0"))
    assert float(pruned(tf.constant(3.0))) == 6.0
    assert float(v) == 0.0
    inner = wrapped.prune(
        wrapped.graph.get_tensor_by_name("doubled:0"), wrapped.graph.get_tensor_by_name("after:0")
    )
    assert float(inner(tf.constant(5.0))) == 5.0
    assert float(v) == 5.0


def test_reference_variables_of_an_imported_graph_have_a_session():
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf1.float32, [], name="x")
        v = tf1.Variable(2.0, use_resource=False, name="v")
        tf1.add(x, v, name="y")
        init = tf1.global_variables_initializer().name
    definition = graph.as_graph_def()
    model = tf1.wrap_function(lambda: tf1.import_graph_def(definition, name=""), [])
    model.prune([], model.graph.get_operation_by_name(init))()
    run = model.prune("x:0", "y:0")
    assert float(run(tf.constant(1.0))) == 3.0
    with pytest.raises(TypeError, match="further inputs"):
        run()
    np.testing.assert_equal(run(np.float32(4.0)).numpy(), 6.0)
