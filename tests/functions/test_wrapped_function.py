"""``tf.compat.v1.wrap_function``: TF-1 code in eager programs."""

import numpy as np
import pytest

import headrace as tf1
import headrace.compat.v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401


def scaled(x, add):
    v = tf1.get_variable("v", initializer=2.0)
    moved = v.assign_add(x) if add else v.assign_sub(x)
    with tf1.control_dependencies([moved]):
        return v.read_value()


def test_is_called_once_and_keeps_its_variables():
    more = tf1.wrap_function(scaled, [tf.TensorSpec((), tf.float32), True])
    less = tf1.wrap_function(scaled, [tf.TensorSpec((), tf.float32), False])
    assert float(more(tf.constant(1.0))) == 3.0
    assert float(more(tf.constant(1.0))) == 4.0
    assert float(less(tf.constant(1.0))) == 1.0
    assert [v.name for v in more.variables] == ["v:0"]


def test_a_frozen_graph_is_a_function_from_feeds_to_fetches():
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf1.float32, [None, 2], name="x")
        y = tf1.matmul(x, tf1.constant([[1.0], [2.0]]), name="y")
        tf1.add(y, 1.0, name="z")
    definition = graph.as_graph_def()
    model = tf1.wrap_function(lambda: tf1.import_graph_def(definition, name=""), [])
    run = model.prune(
        model.graph.get_tensor_by_name("x:0"),
        {"y": model.graph.get_tensor_by_name("y:0"), "z": "z:0"},
    )
    found = run(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(found["y"].numpy(), [[5.0], [11.0]])
    np.testing.assert_allclose(found["z"].numpy(), [[6.0], [12.0]])
    np.testing.assert_allclose(run(x=np.ones([1, 2], np.float32))["y"].numpy(), [[3.0]])


def test_wrong_inputs_are_refused():
    more = tf1.wrap_function(scaled, [tf.TensorSpec((), tf.float32, name="by"), True])
    with pytest.raises(TypeError, match="takes 1 further inputs"):
        more()
    with pytest.raises(TypeError, match="no input named 'other'"):
        more(other=1.0)
