"""Variables with values: as in TensorFlow 2.21."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf1
from headrace import errors
from headrace.api import v2 as tf
from headrace.api.contrib import eager as tfe
from headrace.eager.eager_context import STATE
from tests.eager_fixture import v2_behavior  # noqa: F401


def test_what_a_variable_is() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    assert isinstance(v, tf.Variable)
    assert isinstance(v, tf1.Variable)
    assert not isinstance(tf.constant(1.0), tf.Variable)
    assert (
        repr(v)
        == "<tf.Variable 'v:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    )
    assert (v.name, v.shape, v.dtype, v.trainable) == ("v:0", (2,), tf.float32, True)
    assert v.device.endswith("CPU:0")
    assert tf.is_tensor(v)
    assert tf.Variable(1).name == "Variable:0"
    assert tf.Variable(lambda: 2.0).numpy() == 2.0
    assert tf.Variable(1.0, trainable=False).trainable is False
    assert tf.Variable(1, dtype=tf.float64).dtype is tf.float64


def test_what_needs_a_graph_says_so() -> None:
    v = tf.Variable(1.0)
    with pytest.raises(AttributeError):
        _ = v.op
    with pytest.raises(AttributeError):
        _ = v.graph
    with pytest.raises(RuntimeError):
        v.eval()
    with pytest.raises(RuntimeError):
        _ = v.initial_value
    assert v.initializer is None
    with pytest.raises(ValueError, match=r"initial_value must be specified"):
        tf.Variable()


def test_assignments() -> None:
    v = tf.Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]).numpy().tolist() == [3, 4]
    assert v.assign_add([1, 1]).numpy().tolist() == [4, 5]
    assert v.assign_sub(tf.constant([1.0, 1.0])).numpy().tolist() == [3, 4]
    assert v.assign([0.0, 0.0], read_value=False) is None
    with pytest.raises(
        ValueError,
        match=r"Shape mismatch.The variable shape \(2,\), and the assigned value shape \(3,\)",
    ):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(
        ValueError, match=r"Tensor conversion requested dtype float32 for Tensor with dtype int32"
    ):
        v.assign(tf.constant([1, 2]))
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"Cannot update variable with shape \[2\] using a Tensor with shape \[\]",
    ):
        v.assign_add(1.0)


def test_slices_of_variables() -> None:
    v = tf.Variable(np.zeros((3, 2)))
    v[1].assign([1, 2])
    v[:, 0].assign([7.0, 8.0, 9.0])
    assert v.numpy().tolist() == [[7, 0], [8, 2], [9, 0]]
    assert v[1, 1].numpy() == 2
    v.scatter_nd_update([[0, 1]], [5.0])
    v.scatter_add(tf.IndexedSlices(tf.ones([1, 2], tf.float64), tf.constant([2])))
    assert v.numpy().tolist() == [[7, 5], [8, 2], [10, 1]]
    assert v.sparse_read([2, 0]).numpy().tolist() == [[10, 1], [7, 5]]


def test_unknown_shapes() -> None:
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))
    v.assign([1.0, 2.0, 3.0])
    assert v.shape.as_list() == [None]
    assert tf.reduce_sum(v).numpy() == 6
    with pytest.raises(ValueError, match=r"not compatible with the explicitly supplied `shape`"):
        tf.Variable([1.0], shape=[2])


def test_expressions() -> None:
    v = tf.Variable(3.0)
    assert float(v + 1) == 4.0
    assert float(2 * v - v / 2) == 4.5
    assert float(-v) == -3.0
    assert bool(v > 2)
    assert (int(v), float(v)) == (3, 3.0)
    assert np.asarray(v) == 3.0
    assert float(tf.add_n([v, v])) == 6.0
    assert tf.stack([v, 1.0]).numpy().tolist() == [3, 1]
    assert tf.matmul(tf.Variable([[2.0]]), [[4.0]]).numpy().tolist() == [[8]]


def test_equality_and_hashing() -> None:
    v = tf.Variable([1.0, 2.0])
    assert (v == [1.0, 3.0]).numpy().tolist() == [True, False]
    with pytest.raises(TypeError, match=r"Variable is unhashable. Instead, use variable.ref"):
        hash(v)
    assert v.ref() == v.ref()
    assert v.ref().deref() is v


def test_reading_gives_the_value_of_then() -> None:
    big = np.ones(100_000, np.float32)
    v = tf.Variable(big)
    before = v.value()
    source = tf.constant(big)
    v.assign(source)
    v.assign_add(source)
    held = v.read_value()
    v.assign_sub(source)
    assert before.numpy()[0] == 1
    assert held.numpy()[0] == 2
    assert source.numpy()[0] == 1
    assert v.numpy()[0] == 1


def test_large_variables_are_updated_in_place() -> None:
    v = tf.Variable(np.ones(100_000, np.float32))
    address = STATE.values[v._key].ctypes.data
    one = tf.ones([100_000])
    for _ in range(3):
        v.assign_add(one)
    assert STATE.values[v._key].ctypes.data == address
    assert v.numpy()[0] == 4


def test_values_go_with_their_variables() -> None:
    gc.collect()
    before = len(STATE.values)
    variables = [tf.Variable(np.zeros(10)) for _ in range(20)]
    assert len(STATE.values) == before + 20
    handle = variables[0].handle
    del variables
    assert len(STATE.values) == before + 1
    del handle
    assert len(STATE.values) == before


def test_copies() -> None:
    v = tf.Variable([1.0, 2.0], name="v", trainable=False)
    for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        other.assign_add([1.0, 1.0])
        assert (other.name, other.trainable) == ("v:0", False)
        assert other.numpy().tolist() == [2, 3]
    assert v.numpy().tolist() == [1, 2]


def test_constraint_and_properties() -> None:
    v = tf.Variable(1.0, constraint=tf.abs, synchronization=tf.VariableSynchronization.ON_READ)
    assert v.constraint is tf.abs
    assert v.trainable is False
    assert v.aggregation is tf.VariableAggregation.NONE


def test_in_functions() -> None:
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x: Any) -> Any:
        before = v + 0.0
        v.assign_add(x)
        v[0].assign(100.0)
        return before, v.read_value(), tf.nn.embedding_lookup(v, [1])

    before, after, row = f(tf.constant([1.0, 1.0]))
    assert before.numpy().tolist() == [1, 2]
    assert after.numpy().tolist() == [100, 3]
    assert row.numpy().tolist() == [3]
    f(tf.constant([1.0, 1.0]))
    assert v.numpy().tolist() == [100, 4]


def test_threads_lose_no_update() -> None:
    v = tf.Variable(np.zeros(50_000))
    one = tf.ones([50_000], tf.float64)

    def work() -> None:
        for _ in range(20):
            v.assign_add(one)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (v.numpy() == 80).all()


def test_get_variable() -> None:
    with tf1.variable_scope("s"):
        a, b = tf1.get_variable("w", [2, 2]), tf1.get_variable("w", [2, 2])
    assert a.name == b.name == "s/w:0"
    assert a is not b
    with pytest.raises(RuntimeError, match=r"only supported when an EagerVariableStore is active"):
        with tf1.variable_scope("s", reuse=True):
            tf1.get_variable("w", [2, 2])
    store = tfe.EagerVariableStore()
    with store.as_default():
        a, b = tf1.get_variable("w", [2, 2]), tf1.get_variable("w", [2, 2])
    assert a is b
    assert [v.name for v in store.trainable_variables()] == ["w:0"]
    # as in TF 1.15, a store's variables are in the collections
    assert any(v is a for v in tf1.global_variables())
    assert any(v is a for v in tf1.trainable_variables())


def test_global_step() -> None:
    step = tf1.train.get_or_create_global_step()
    assert tf1.train.get_or_create_global_step() is step
    step.assign_add(3)
    rate = tf1.train.exponential_decay(0.1, step, 10, 0.5)
    assert float(rate()) == pytest.approx(0.1 * 0.5**0.3, rel=1e-6)
    tf1.reset_default_graph()


def test_the_class_of_resource_variables_makes_eager_ones() -> None:
    from headrace.variables.resource_variable import ResourceVariable

    v = ResourceVariable([1.0, 2.0], name="direct", trainable=False)
    assert isinstance(v, ResourceVariable) and not v.trainable and v.name == "direct:0"
    v.assign_add([1.0, 1.0])
    assert v.numpy().tolist() == [2.0, 3.0]
