"""The graph itself.

Names, scopes, lookups, collections, dependencies, devices, and the user's line.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import headrace as tf


def graph() -> tf.Graph:
    return tf.get_default_graph()


# names ------------------------------------------------------------------------------------------


def test_default_and_unique_names() -> None:
    names = [tf.constant(1.0).op.name for _ in range(3)] + [
        tf.constant(1.0, name="c").name,
        tf.constant(1.0, name="c").name,
    ]
    assert names == ["Const", "Const_1", "Const_2", "c:0", "c_1:0"]
    a = tf.placeholder(tf.float32)
    assert [(a + 1.0).op.name, (a + 1.0).op.name, tf.add(a, 1.0).op.name] == [
        "add",
        "add_1",
        "Add_2",
    ]


def test_case_does_not_distinguish_names() -> None:
    assert [tf.no_op("A").name, tf.no_op("a").name, tf.no_op("A").name] == ["A", "a_1", "A_2"]


def test_names_that_look_numbered() -> None:
    assert [tf.no_op(n).name for n in ("x_1", "x", "x", "x", "x_1")] == [
        "x_1",
        "x",
        "x_2",
        "x_3",
        "x_1_1",
    ]


def test_name_scopes() -> None:
    with tf.name_scope("a") as scope:
        assert scope == "a/"
        assert tf.no_op("x").name == "a/x"
        with tf.name_scope("b"):
            assert tf.no_op("x").name == "a/b/x"
        with tf.name_scope("b"):
            assert tf.no_op("x").name == "a/b_1/x"
        with tf.name_scope(None):
            assert tf.no_op("x").name == "x"
        with tf.name_scope(""):
            assert tf.no_op("x").name == "x_1"
    with tf.name_scope("a"):
        assert tf.no_op("x").name == "a_1/x"
    with tf.name_scope("a/"):
        assert tf.no_op("y").name == "a/y"
    with tf.name_scope(scope):
        assert tf.no_op("y").name == "a/y_1"
    assert graph().get_name_scope() == ""
    with graph().name_scope("q"):
        assert graph().get_name_scope() == "q"


def test_name_scope_default_name_and_values() -> None:
    with tf.name_scope(None, "default"):
        assert tf.no_op("x").name == "default/x"
    with tf.name_scope("given", "default", [tf.constant(1)]):
        assert tf.no_op("x").name == "given/x"


def test_scope_is_left_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), tf.name_scope("inner"):
        raise ZeroDivisionError
    assert tf.no_op("x").name == "x"


@pytest.mark.parametrize("bad", ["a b", "-x", "_x", "x!", "é", "a:b"])
def test_invalid_names(bad: str) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        tf.no_op(bad)
    with pytest.raises(ValueError, match="is not a valid scope name"):
        with tf.name_scope(bad):
            pass


def test_unique_name() -> None:
    g = graph()
    assert g.unique_name("n") == "n"
    assert g.unique_name("n", mark_as_used=False) == "n_1"
    assert g.unique_name("n", mark_as_used=False) == "n_1"
    assert g.unique_name("n") == "n_1"
    with g.name_scope("s"):
        assert g.unique_name("n") == "s/n"


def test_constants_are_named_after_the_argument_they_are_made_for() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.add(x, 2.0, name="sum")
    assert y.op.inputs[1].op.name == "sum/y"


# lookups ----------------------------------------------------------------------------------------


def test_lookups() -> None:
    a, b = tf.split(tf.constant([1.0, 2.0]), 2, name="s")
    g = graph()
    assert g.get_tensor_by_name("s:1") is b and g.get_operation_by_name("s") is a.op
    assert g.as_graph_element("s:0") is a and g.as_graph_element("s") is a.op
    assert g.as_graph_element(b) is b and g.as_graph_element(b.op) is b.op
    v = tf.Variable(1.0, name="v")
    assert g.as_graph_element(v).op.name.startswith("v")
    assert g.get_operations()[-1].graph is g


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda g: g.get_tensor_by_name("nope:0"),
            KeyError,
            "refers to a Tensor which does not exist",
        ),
        (lambda g: g.get_tensor_by_name("c:7"), KeyError, "only has 1 outputs"),
        (lambda g: g.get_tensor_by_name("c"), ValueError, "refers to an Operation, not a Tensor"),
        (
            lambda g: g.get_tensor_by_name("nope"),
            ValueError,
            "looks like an .invalid. Operation name",
        ),
        (lambda g: g.get_tensor_by_name("c:x"), ValueError, "is not a valid one"),
        (lambda g: g.get_tensor_by_name(3), TypeError, "Tensor names are strings"),
        (
            lambda g: g.get_operation_by_name("nope"),
            KeyError,
            "refers to an Operation not in the graph",
        ),
        (
            lambda g: g.get_operation_by_name("c:0"),
            ValueError,
            "appears to refer to a Tensor, not a Operation",
        ),
        (lambda g: g.get_operation_by_name(None), TypeError, "Operation names are strings"),
        (
            lambda g: g.as_graph_element(3.5),
            TypeError,
            "Can not convert a float into a Tensor or Operation",
        ),
        (
            lambda g: g.as_graph_element(tf.no_op(), allow_operation=False),
            TypeError,
            "into a Tensor",
        ),
        (lambda g: g.as_graph_element("c", False, False), ValueError, "can't both be False"),
    ],
)
def test_lookup_errors(call: Any, error: Any, match: str) -> None:
    tf.constant(1.0, name="c")
    with pytest.raises(error, match=match):
        call(graph())


def test_element_of_another_graph() -> None:
    c = tf.constant(1.0)
    other = tf.Graph()
    with pytest.raises(ValueError, match="is not an element of this graph"):
        other.as_graph_element(c)
    with pytest.raises(ValueError, match="is not an element of this graph"):
        other.as_graph_element(c.op)
    with other.as_default():
        d = tf.constant(1.0)
    with pytest.raises(ValueError, match="must be from the same graph"):
        tf.add(c, d)


def test_ops_join_the_graph_of_their_inputs() -> None:
    with tf.Graph().as_default() as g:
        c = tf.constant(1.0)
    assert (c + 1.0).graph is g
    assert graph().get_operations() == []


# life -------------------------------------------------------------------------------------------


def test_finalize() -> None:
    c = tf.constant(1.0)
    graph().finalize()
    assert graph().finalized
    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(2.0)
    assert tf.Session().run(c) == 1.0


def test_reset_inside_a_with_block() -> None:
    with tf.Graph().as_default(), pytest.raises(AssertionError, match="nested graphs"):
        tf.reset_default_graph()
    before = graph()
    tf.reset_default_graph()
    assert graph() is not before


def test_nesting_of_default_graphs() -> None:
    outer = graph()
    a, b = tf.Graph(), tf.Graph()
    with a.as_default():
        with b.as_default():
            assert graph() is b
        assert graph() is a
    assert graph() is outer


def test_version_grows() -> None:
    before = graph().version
    tf.no_op()
    assert graph().version > before


# collections ------------------------------------------------------------------------------------


def test_collections() -> None:
    g = graph()
    x, y = tf.constant(1.0, name="s/x"), tf.constant(2.0, name="y")
    tf.add_to_collection("mine", x)
    g.add_to_collections(["mine", "other", "mine"], y)
    assert tf.get_collection("mine") == [x, y]
    assert tf.get_collection("mine", scope="s") == [x]
    assert tf.get_collection("nothing") == []
    tf.get_collection("mine").append("not kept")
    assert len(tf.get_collection("mine")) == 2
    tf.get_collection_ref("mine").append("kept")
    assert tf.get_collection("mine")[-1] == "kept"
    assert tf.get_collection("mine", scope=".*") == [x, y]
    assert set(g.get_all_collection_keys()) >= {"mine", "other"}
    g.clear_collection("mine")
    assert tf.get_collection("mine") == []
    assert tf.GraphKeys.GLOBAL_VARIABLES == "variables"


# control dependencies ---------------------------------------------------------------------------


def test_control_dependencies_are_recorded() -> None:
    a, b, c = tf.no_op("a"), tf.constant(1.0, name="b"), tf.no_op("c")
    with tf.control_dependencies([a, b]):
        x = tf.constant(2.0)
        with tf.control_dependencies([c]):
            y = tf.identity(b)
            with tf.control_dependencies(None):
                z = tf.constant(3.0)
    w = tf.constant(4.0)
    assert x.op.control_inputs == [a, b.op]
    assert y.op.control_inputs == [a, c]  # b is an input already
    assert z.op.control_inputs == [] and w.op.control_inputs == []
    with tf.control_dependencies([]):
        assert tf.constant(1.0).op.control_inputs == []
    with pytest.raises(TypeError):
        with tf.control_dependencies([3.5]):
            pass


def test_control_dependencies_are_honoured() -> None:
    order: list[str] = []

    def note(name: str) -> Any:
        return tf.py_func(lambda: order.append(name) or np.float32(0), [], tf.float32)

    last = note("first")
    for name in ("second", "third"):
        with tf.control_dependencies([last]):
            last = note(name)
    later = note("unrelated")
    tf.Session().run([last, later])
    assert [o for o in order if o != "unrelated"] == ["first", "second", "third"]


def test_a_dependency_that_is_added_later_is_honoured() -> None:
    order: list[str] = []

    def note(name: str) -> Any:
        return tf.py_func(lambda: order.append(name) or np.float32(0), [], tf.float32)

    early, late = note("early"), note("late")
    early.op._add_control_input(late.op)
    tf.Session().run(early)
    assert order == ["late", "early"]


def test_group_tuple_and_with_dependencies() -> None:
    v = tf.Variable(0.0)
    up = v.assign_add(1.0)
    s = tf.Session()
    s.run(v.initializer)
    a, b = s.run(tf.tuple([tf.constant(1.0), tf.constant(2.0)], control_inputs=[up]))
    assert (a, b) == (1.0, 2.0) and s.run(v) == 1.0
    assert s.run(tf.group(up, v.assign_add(1.0))) is None
    assert s.run(v) == 3.0


def test_control_inputs_that_an_input_implies_are_left_out() -> None:
    a, b = tf.constant(1.0), tf.constant(1.0)
    with tf.control_dependencies([a]):
        c, d = tf.constant(1.0), tf.identity(b)
        e = tf.identity(c)
        with tf.control_dependencies([b]):
            f = c + d
    assert c.op.control_inputs == [a.op] and d.op.control_inputs == [a.op]
    assert e.op.control_inputs == [] and f.op.control_inputs == [b.op]


def test_device_scopes_are_left_in_order() -> None:
    scope = tf.get_default_graph().device("/cpu:0")
    scope.__enter__()
    with tf.device("/cpu:1"), pytest.raises(RuntimeError, match="nesting"):
        scope.__exit__(None, None, None)


def test_collections_inside_a_function_are_copies() -> None:
    tf.add_to_collection("numbers", 1)

    @tf.function
    def f() -> tf.Tensor:
        assert tf.get_collection("numbers") == [1]
        tf.add_to_collection("numbers", 2)
        return tf.constant(0)

    f()
    assert tf.get_collection("numbers") == [1]


# devices and colocation ---------------------------------------------------------------------------


def test_devices_are_recorded() -> None:
    assert tf.constant(1.0).device == ""
    with tf.device("/gpu:0"):
        a = tf.constant(1.0)
        with tf.device("/cpu:1"):
            b = tf.constant(1.0)
        with tf.device(None):
            c = tf.constant(1.0)
        with tf.Graph().as_default(), tf.device("/gpu:0"), tf.device("/job:worker/task:3"):
            d = tf.constant(1.0)
    assert (
        a.device.lower().endswith("gpu:0") and b.device.lower().endswith("cpu:1") and c.device == ""
    )
    assert "/job:worker" in d.device and "/task:3" in d.device and "gpu:0" in d.device.lower()
    with tf.device(lambda op: "/cpu:0" if op.type == "Const" else "/gpu:7"):
        e = tf.constant(1.0)
        f = tf.identity(e)
    assert e.device.lower().endswith("cpu:0") and f.device.lower().endswith("gpu:7")
    soft = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    assert soft.run([a, b, f]) == [1.0, 1.0, 1.0]


def test_colocation_is_recorded() -> None:
    with tf.device("/cpu:0"):
        a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.constant(2.0)
        with tf.colocate_with(None, ignore_existing=True):
            c = tf.constant(3.0)
    assert b.op.colocation_groups() == [b"loc:@a"] and b.device == a.device
    assert c.op.colocation_groups() == [b"loc:@" + c.op.name.encode()]
    with pytest.raises(ValueError):
        with tf.colocate_with(None):
            pass


# operations and tensors ---------------------------------------------------------------------------


def test_operation_properties() -> None:
    a = tf.constant([[1.0, 2.0]])
    b = tf.matmul(a, a, transpose_b=True, name="m")
    op = b.op
    assert (op.name, op.type, list(op.inputs), op.outputs, op.graph) == (
        "m",
        "MatMul",
        [a, a],
        [b],
        graph(),
    )
    assert op.get_attr("transpose_b") is True and op.get_attr("T") == tf.float32
    with pytest.raises(ValueError, match="nothing"):
        op.get_attr("nothing")
    assert a.consumers() == [op, op]  # once for each use, as in TF 1.15
    assert b.consumers() == []
    c = tf.identity(b)
    assert b.consumers() == [c.op]
    assert b.value_index == 0 and b.shape.as_list() == [1, 1] and b.get_shape() == b.shape
    assert repr(b) == "<tf.Tensor 'm:0' shape=(1, 1) dtype=float32>"
    assert str(b) == 'Tensor("m:0", shape=(1, 1), dtype=float32)'


def test_tensor_is_not_a_bool_a_sequence_or_an_array() -> None:
    x = tf.constant([1.0, 2.0])
    with pytest.raises(
        TypeError, match=r"(?i)using a `tf.Tensor` as a Python `bool` is not allowed"
    ):
        bool(x)
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises((NotImplementedError, TypeError, ValueError)):
        np.asarray(x, np.float32)
    assert (x == x) is True and x in [x] and len({x, x, tf.identity(x)}) == 2


def test_set_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    x.set_shape([2, None])
    assert x.shape.as_list() == [2, 3]
    with pytest.raises(ValueError):
        x.set_shape([2, 4])
    with pytest.raises(ValueError):
        x.set_shape([2])


# the user's line --------------------------------------------------------------------------------


def test_traceback_points_to_the_users_line() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    here = frame.f_lineno
    x = tf.placeholder(tf.float32, [None])
    y = x * 2.0
    z = tf.reduce_mean(
        tf.nn.softmax(y),
    )
    for tensor, line in ((x, here + 1), (y, here + 2)):
        file, number, function, text = tensor.op.traceback[-1][:4]
        assert (
            file == __file__
            and number == line
            and function == "test_traceback_points_to_the_users_line"
        )
        assert tensor is x or text == "y = x * 2.0"
    assert z.op.traceback[-1][0] == __file__ and here + 3 <= z.op.traceback[-1][1] <= here + 5


def test_traceback_of_ops_made_in_the_users_functions() -> None:
    def layer(x: Any) -> Any:
        return tf.nn.relu(x)

    y = layer(tf.constant([1.0]))
    functions = [f[2] for f in y.op.traceback]
    assert functions[-2:] == ["test_traceback_of_ops_made_in_the_users_functions", "layer"]


# conversion -------------------------------------------------------------------------------------


class Money:
    def __init__(self, amount: float) -> None:
        self.amount = amount


class Silver(Money):
    pass


def test_register_tensor_conversion_function() -> None:
    calls: list[Any] = []

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        calls.append(dtype)
        return tf.constant(value.amount, dtype or tf.float32, name=name)

    tf.register_tensor_conversion_function(Money, convert)
    assert tf.Session().run(tf.convert_to_tensor(Money(2.5))) == 2.5
    assert tf.Session().run(tf.constant(1.0) + Money(2.0)) == 3.0
    assert tf.convert_to_tensor(Silver(1.0), tf.float64).dtype == tf.float64
    tf.register_tensor_conversion_function(
        Silver, lambda v, dtype=None, name=None, as_ref=False: tf.constant(-v.amount), priority=10
    )
    assert tf.Session().run(tf.convert_to_tensor(Silver(1.0))) == -1.0
    tf.register_tensor_conversion_function(Silver, lambda *a, **k: NotImplemented, priority=5)
    assert tf.Session().run(tf.convert_to_tensor(Silver(1.0))) == -1.0
    with pytest.raises(TypeError):
        tf.register_tensor_conversion_function("not a type", convert)
    with pytest.raises(TypeError):
        tf.register_tensor_conversion_function(Money, "not a function")


def test_devices_that_functions_give() -> None:
    """They are kept as they are spelled, unless an outer device is merged; TF 1.15 does so."""
    with tf.device(lambda op: "/gpu:2" if op.type == "MatMul" else "/cpu:1"):
        assert tf.matmul([[1.0]], [[1.0]]).device == "/gpu:2"
        assert tf.constant(1).op.device == "/cpu:1"
    with tf.device("/job:x/task:3"), tf.device(lambda op: "/gpu:2"):
        assert tf.constant(1).device == "/job:x/task:3/device:GPU:2"
    with tf.device("/cpu:0"):
        assert tf.constant(1).device == "/device:CPU:0"
    with tf.device(lambda op: None), pytest.raises(TypeError, match="got None"):
        tf.constant(1)
