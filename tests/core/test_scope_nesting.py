"""Scopes that are entered again, left in the wrong order or looked at from inside of functions."""

from __future__ import annotations

import threading

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


def test_references_are_written_on_their_device():
    with tf.device("/cpu:0"):
        v = tf.Variable(0.0, use_resource=False)
    with tf.device("/job:worker/task:7"):
        write = v.assign(1.0)
    assert write.device == v.device == "/device:CPU:0"


def test_create_op_takes_attr_values():
    from headrace.formats.attr_values import encode

    graph = tf.get_default_graph()
    value, kind = tf.AttrValue(), tf.AttrValue(type=tf.float32.as_datatype_enum)
    value.tensor.CopyFrom(tf.make_tensor_proto([1.0, 2.0]))
    op = graph.create_op("Const", [], [tf.float32], attrs={"value": value, "dtype": kind})
    encode(True, "bool", flag := tf.AttrValue())
    product = graph.create_op(
        "MatMul", [tf.reshape(op.outputs[0], [1, 2])] * 2, attrs={"transpose_b": flag}
    )
    with tf.Session() as sess:
        assert sess.run(product.outputs[0]).tolist() == [[5.0]]


def test_variables_with_custom_gradients():
    @tf.custom_gradient
    def reference(x):
        w = tf.get_variable("w", [], use_resource=False)
        return x * w, lambda dy, variables=None: (dy, [dy])

    @tf.custom_gradient
    def unprepared(x):
        w = tf.get_variable("u", [], use_resource=True)
        return x * w, lambda dy: dy

    with pytest.raises(TypeError, match="must be `ResourceVariable`s"):
        reference(tf.constant(1.0))
    with pytest.raises(TypeError, match="must accept a 'variables' keyword"):
        unprepared(tf.constant(1.0))


def test_gather_nd_of_unknown_rank():
    params, indices = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    for batch, p, i in (
        (1, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[[1], [2]], [[0], [0]]]),
        (2, [[[0.0, 1.0]], [[2.0, 3.0]]], [[[1]], [[0]]]),
    ):
        want = tf.gather_nd(tf.constant(p), tf.constant(i), batch_dims=batch)
        have = tf.gather_nd(params, indices, batch_dims=batch)
        with tf.Session() as sess:
            assert sess.run(have, {params: p, indices: i}).tolist() == sess.run(want).tolist()


def test_threads_have_scopes_of_their_own():
    graph = tf.get_default_graph()
    graph.switch_to_thread_local()
    first = tf.constant(1.0, name="first")
    entered, go_on, names = threading.Event(), threading.Event(), []

    def build(number):
        with graph.as_default(), tf.name_scope(f"t{number}"), tf.control_dependencies([first]):
            entered.set()
            assert go_on.wait(60)
            names.append((tf.constant(2.0, name="c").op, number))

    threads = [threading.Thread(target=build, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
        assert entered.wait(60)
        entered.clear()
    here = tf.constant(3.0, name="c")
    go_on.set()
    for t in threads:
        t.join(120)
    assert here.op.name == "c" and here.op.control_inputs == []
    assert sorted((op.name, n) for op, n in names) == [(f"t{i}/c", i) for i in range(3)]
    assert all(op.control_inputs == [first.op] for op, _ in names)


def test_containers_of_all_state():
    with tf.container("box"):
        q = tf.FIFOQueue(10, tf.float32)
    assert q.queue_ref.op.get_attr("container") == b"box"


@pytest.mark.parametrize("use_resource", [False, True])
def test_device_functions_are_asked_once_for_what_belongs_to_a_variable(use_resource: bool) -> None:
    """An assignment stands where its variable is: round-robin devices count variables (TF 1.15)."""
    asked = []

    def choose(op: tf.Operation) -> str:
        asked.append(op.type)
        return f"/job:ps/task:{len(asked) % 4}"

    with tf.Graph().as_default(), tf.device(choose):
        a = tf.get_variable("a", [2], use_resource=use_resource)
    if use_resource:
        assert asked == ["VarHandleOp", "VarIsInitializedOp", "ReadVariableOp"]
    else:
        assert asked == ["VariableV2"]
        assert a.device == a.initializer.device == "/job:ps/task:1"
    with tf.Graph().as_default(), tf.device("/cpu:1"):
        x = tf.constant(1.0)
        with tf.device("/cpu:2"), tf.colocate_with(x):
            assert tf.constant(2.0).device == "/device:CPU:1"
