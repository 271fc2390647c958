"""Scopes that are entered again, left in the wrong order or looked at from inside of functions."""

from __future__ import annotations

import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


def test_a_name_scope_may_be_entered_inside_of_its_own_block():
    foo = tf.compat.v2.name_scope("foo")
    bar = tf.compat.v2.name_scope("bar")
    with foo as a:
        with foo as b:
            pass
        with bar as c:
            with foo as d:
                pass
    with bar as e:
        pass
    assert [a, b, c, d] == ["foo/", "foo/foo/", "foo/bar/", "foo/bar/foo/"]
    assert e == "bar/"
    assert tf.get_default_graph().get_name_scope() == ""


def test_names_that_end_with_a_slash_are_absolute():
    with tf.name_scope("foo/"):
        with tf.name_scope("/") as slash:
            pass
        with tf.name_scope("//") as slashes:
            pass
        with tf.name_scope("") as none:
            pass
    assert [slash, slashes, none] == ["/", "//", ""]


def test_eager_device_scopes_are_left_in_order():
    from headrace.eager.eager_context import eager_mode

    with eager_mode():
        scope = tf.device("/device:CPU:0")
        scope.__enter__()
        with tf.device(None), pytest.raises(RuntimeError, match="proper scope nesting"):
            scope.__exit__(None, None, None)


def test_init_scope_keeps_the_devices_of_the_function():
    made = {}

    @tf.function
    def f():
        with tf.device("/cpu:0"):
            with tf.init_scope():
                made["inside"] = tf.constant(1.0)
        return tf.constant(2.0)

    f()
    assert made["inside"].device == "/device:CPU:0"
    assert made["inside"].graph is tf.get_default_graph()


def test_group_waits_on_each_device():
    with tf.device("/cpu:0"):
        a = tf.constant(0, name="a")
    b = tf.constant(0, name="b")
    one = tf.group(a.op, name="one")
    assert one.name == "one" and one.device == "/device:CPU:0"
    root = tf.group(a.op, b.op, name="root")
    assert root.name == "root" and root.device == ""
    assert [(c.name, c.device) for c in root.control_inputs] == [
        ("root/NoOp", ""),
        ("root/NoOp_1", "/device:CPU:0"),
    ]


def test_op_def_and_start_lines():
    x = tf.constant(1.0) + 2.0
    assert [a.name for a in x.op.op_def.input_arg] == ["x", "y"]
    assert len(x.op.op_def.output_arg) == 1
    for plain, started in zip(x.op.traceback, x.op.traceback_with_start_lines):
        assert plain == started[:-1]
        assert 0 < started[-1] <= plain[1]


def test_bad_imports():
    message = tf.GraphDef()
    node = message.node.add(name="a", op="Placeholder")
    node.attr["dtype"].type = 1
    message.versions.producer = 100
    with pytest.raises(ValueError, match="requires a non-empty `name`"):
        tf.import_graph_def(message, {"a:0": tf.Variable(5.0)}, name="")
    with pytest.raises(ValueError, match="Cannot convert 'a:b:c' to a tensor name"):
        tf.import_graph_def(message, return_elements=["a:b:c"])
    message.versions.producer = -1
    with pytest.raises(ValueError, match="GraphDef producer version -1 below min producer 0"):
        tf.import_graph_def(message)
    message.versions.producer, message.versions.min_consumer = 100, 1 << 30
    with pytest.raises(ValueError, match="above current version 134 for TensorFlow"):
        tf.import_graph_def(message)
