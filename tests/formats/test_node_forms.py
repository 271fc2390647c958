"""Nodes of one type share what was read of equal attributes (formats/node_forms.py), and nothing
else: types, devices, colocation, own shapes and attributes of their own stay apart.
"""

from __future__ import annotations

from typing import Any

import pytest

import headrace.api.v1 as tf

#: Lengths of names around those where protobuf writes the length in one more byte.
LENGTHS = (1, 60, 126, 127, 128, 129, 300)


def _imported(graph_def: Any, **options: Any) -> tf.Graph:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="", **options)
    return graph


@pytest.mark.parametrize("length", LENGTHS)
def test_names_of_any_length(length: int) -> None:
    with tf.Graph().as_default() as graph:
        for i, dtype in enumerate((tf.float32, tf.float64, tf.float32, tf.int32)):
            name = f"{'n' * (length - 1)}{i}"
            x = tf.placeholder(dtype, [2, 3], name=name)
            with tf.device(f"/device:CPU:{i % 2}"):
                tf.add(x, x, name=f"{'a' * (length - 1)}{i}")
                tf.reduce_sum(x, [i % 2], keepdims=i > 1, name=f"{'s' * (length - 1)}{i}")
                tf.transpose(x, name=f"{'t' * (length - 1)}{i}")
    message = graph.as_graph_def()
    assert _imported(message).as_graph_def() == message
    again = tf.GraphDef.FromString(message.SerializeToString())
    assert _imported(again).as_graph_def() == message


def test_equal_bytes_of_different_types_of_node() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4], name="x")
        for name in ("Relu", "Elu", "Selu", "Softplus", "Tanh"):
            getattr(tf.raw_ops, name)(
                **{"x" if name == "Tanh" else "features": x}, name=name.lower()
            )
    types = [op.type for op in _imported(graph.as_graph_def()).get_operations()]
    assert types == ["Placeholder", "Relu", "Elu", "Selu", "Softplus", "Tanh"]


def test_colocation_and_own_attributes_stay_apart() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4], name="x")
        y = tf.placeholder(tf.float32, [4], name="y")
        for i, other in enumerate((x, y, x)):
            with tf.colocate_with(other):
                tf.negative(x, name=f"n{i}")
            tf.negative(x, name=f"plain{i}")
    message = graph.as_graph_def()
    message.node[-1].attr["_mine"].i = 7
    found = _imported(message)
    groups = [found.get_operation_by_name(f"n{i}").colocation_groups() for i in range(3)]
    assert groups == [[b"loc:@x"], [b"loc:@y"], [b"loc:@x"]]
    assert found.get_operation_by_name("plain0").colocation_groups() == [b"loc:@plain0"]
    with pytest.raises(ValueError, match="_mine"):
        found.get_operation_by_name("plain0").get_attr("_mine")
    assert found.get_operation_by_name("plain2").get_attr("_mine") == 7


def test_changing_one_of_the_nodes_changes_no_other() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4], name="x")
        for i in range(3):
            tf.negative(x, name=f"n{i}")
    found = _imported(graph.as_graph_def())
    first, second = (found.get_operation_by_name(f"n{i}") for i in range(2))
    first._set_attr("_own", first.node_def.attr["T"])
    first._set_device("/device:CPU:1")
    assert "_own" not in second.node_def.attr
    assert second.device == ""


def test_shapes_that_the_writer_knew_belong_to_one_node() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        for i in range(3):
            tf.negative(x, name=f"n{i}")
    message = graph.as_graph_def()
    shape = message.node[2].attr["_output_shapes"].list.shape.add()
    shape.dim.add().size = 5
    found = _imported(message)
    shapes = [found.get_tensor_by_name(f"n{i}:0").shape for i in range(3)]
    assert shapes[1].as_list() == [5]
    assert shapes[0].ndims is shapes[2].ndims is None


def test_names_that_are_taken_are_refused_before_anything_is_made() -> None:
    with tf.Graph().as_default() as graph:
        tf.negative(tf.placeholder(tf.float32, [4], name="x"), name="n")
    message = graph.as_graph_def()
    with tf.Graph().as_default() as other:
        tf.placeholder(tf.float32, [4], name="n")
        with pytest.raises(ValueError, match="Node name 'n' already exists in the Graph"):
            tf.import_graph_def(message, name="")
        assert [op.name for op in other.get_operations()] == ["n"]
        assert tf.placeholder(tf.float32, name="x").name == "x:0"


def test_an_import_that_fails_leaves_the_graph_as_it_was() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4], name="x")
        tf.negative(x, name="n")
        tf.negative(tf.placeholder(tf.int32, [4], name="y"), name="m")
    message = graph.as_graph_def()
    wrong = tf.GraphDef.FromString(message.SerializeToString())
    wrong.node[3].attr["T"].CopyFrom(wrong.node[1].attr["T"])
    with tf.Graph().as_default() as other:
        z = tf.constant(3.0, name="z")
        for name in ("", None):
            with pytest.raises(ValueError, match="int32"):
                tf.import_graph_def(wrong, name=name)
        with pytest.raises(ValueError, match="nothing"):
            tf.import_graph_def(message, name="", return_elements=["nothing:0"])
        assert [op.name for op in other.get_operations()] == ["z"]
        tf.import_graph_def(message, name="")
        names = [op.name for op in other.get_operations()]
        assert names == ["z", *(node.name for node in message.node)]
        with tf.Session() as session:
            assert session.run([z, "n:0"], {"x:0": [1.0] * 4})[1].tolist() == [-1.0] * 4
