"""Inputs that TF 1.15 refuses with an error of its own, or takes, and that were treated otherwise
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf

InvalidArgument = tf.errors.InvalidArgumentError


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feeds)


def test_a_delimiter_is_one_string() -> None:
    with pytest.raises(ValueError, match="rank 0"):
        tf.string_split(["a|b"], delimiter=["|", ""])


def test_sparse_add_does_not_look_at_the_shape() -> None:
    a = tf.SparseTensor([[1]], [1.0], [1])
    out = run(tf.sparse_add(a, a))
    assert out.indices.tolist() == [[1]]
    assert out.values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("shape", "variables", "message"),
    [([1], 1, "must have a save_slice_info"), ([1, 1], 1, "len"), ([2], 0, "empty")],
)
def test_partitioned_variables(shape: list[int], variables: int, message: str) -> None:
    from headrace.variables.partitioned_variable import PartitionedVariable

    parts = [tf.Variable([0]) for _ in range(variables)]
    with pytest.raises(ValueError, match=message):
        PartitionedVariable("two", shape, tf.int32, parts, [1])


@pytest.mark.parametrize("use_resource", [False, True])
def test_nothing_is_assigned_to_an_empty_slice(use_resource: bool) -> None:
    v = tf.Variable(np.arange(6.0).reshape(2, 3), use_resource=use_resource)
    out = run(v[1:1, 2:2].assign(np.zeros([1, 0])))
    np.testing.assert_array_equal(out, np.arange(6.0).reshape(2, 3))


def test_a_slice_of_a_resource_is_assigned_its_own_type() -> None:
    v = tf.Variable([1, 2], use_resource=True)
    with pytest.raises(ValueError, match="int64"):
        v[:].assign(tf.constant([3, 4], tf.int64))


def test_expand_dims_takes_one_axis() -> None:
    axis = tf.placeholder(tf.int32)
    with pytest.raises(InvalidArgument, match="must be a tensor with a single value"):
        run(tf.expand_dims(tf.placeholder_with_default([1.0, 2.0], None), axis), {axis: [0, 1]})


def test_batch_dims_in_a_vector() -> None:
    params = np.arange(12).reshape(2, 3, 2)
    indices = [[[0], [1]], [[2], [0]]]
    plain, vector = (tf.gather_nd(params, indices, batch_dims=b) for b in (1, tf.constant([1])))
    np.testing.assert_array_equal(*run([plain, vector]))


# tensor arrays ------------------------------------------------------------------------------------


def _array(**options: Any) -> Any:
    return tf.TensorArray(tf.float32, size=3, infer_shape=False, **options)


def test_tensor_array_concat() -> None:
    with pytest.raises(
        InvalidArgument, match="saw a scalar shape at index 1 but requires at least"
    ):
        run(_array().write(0, [1.0]).write(1, 4.0).write(2, [3.0]).concat())
    with pytest.raises(InvalidArgument, match="inconsistent shapes"):
        run(_array().write(0, [3.0]).write(1, [4.0]).write(2, [[3.0]]).concat())


def test_tensor_array_split() -> None:
    lengths = tf.placeholder(tf.int64)
    array = tf.TensorArray(tf.float32, size=3).split([1.0, 2.0, 3.0], lengths)
    with pytest.raises(InvalidArgument, match=r"lengths to be a vector, received shape: \[\]"):
        run(array.flow, {lengths: 1})
    with pytest.raises(InvalidArgument, match="at least a vector"):
        run(tf.TensorArray(tf.float32, size=1).split(1.0, [1]).flow)
    with pytest.raises(InvalidArgument, match=r"size of lengths \(2 vs\. 1\)"):
        run(tf.TensorArray(tf.float32, size=2).split([1.0], [1]).flow)
    equal = tf.TensorArray(tf.float32, size=3).split([[1.0, 2.0]] * 3, [1, 1, 1])
    assert equal.read(0).shape.as_list() == [1, 2]


def test_an_empty_tensor_array() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="has size zero, but element shape"):
        run(tf.TensorArray(tf.float32, size=0, infer_shape=False).stack())


# datasets -----------------------------------------------------------------------------------------


def test_a_function_that_gives_nothing() -> None:
    with pytest.raises(TypeError, match=r"passed to Dataset\.map\(\): None"):
        tf.data.Dataset.range(3).map(lambda x: None)


def test_shapes_beside_types() -> None:
    with pytest.raises(TypeError, match="must also be a sequence"):
        tf.data.Iterator.from_structure((tf.int64, tf.float64), [None])


def test_padded_shapes() -> None:
    data = tf.data.Dataset.from_tensors([1, 2, 3])
    with pytest.raises(ValueError, match=r"must be a 1-D tensor .* but its shape was \(2, 2\)"):
        data.padded_batch(5, padded_shapes=[[1, 1], [1, 1]])
    wanted = tf.placeholder(tf.int64, [2])
    with pytest.raises(ValueError, match=r"padded shape \(\?, \?\) is not compatible"):
        tf.data.Dataset.range(10).padded_batch(5, padded_shapes=wanted)


@pytest.mark.parametrize("axes", [1, [1], [0, 1], [[1]], [[0, 1]], [[0], [7]]])
def test_tensordot_by_axes_that_are_fed(axes: object) -> None:
    """An axis beyond the last one was taken modulo the rank."""
    x = tf.placeholder(tf.float32)
    given = tf.placeholder(tf.int32)
    product = tf.tensordot(x, x, given)
    value = np.ones((2, 2), np.float32)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(product, {x: value, given: axes})
        assert sess.run(product, {x: value, given: [[-1], [0]]}).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("make", [lambda d: d.shard(2, 2), lambda d: d.shuffle(0)])
def test_a_dataset_is_refused_when_it_runs(make: Callable[[Any], Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        dataset = make(tf.data.Dataset.range(6))
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(following)


def test_an_accumulator_of_rows_with_more_axes() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        sums = tf.SparseConditionalAccumulator(tf.float32, shape=[2, None])
        sess.run(sums.apply_grad([0], np.ones((1, 2, 3), np.float32)))
        assert sess.run(sums.take_indexed_slices_grad(1)).dense_shape.tolist() == [2, 2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape rank at least 2"):
            sess.run(sums.apply_grad([0], np.ones(1, np.float32), local_step=1))


def test_what_is_no_tensor_is_its_own_static_value() -> None:
    assert tf.get_static_value("hi") == "hi"
    with tf.Graph().as_default():
        assert tf.get_static_value(tf.Variable(1.0)) is None
        assert tf.get_static_value(tf.constant(3)) == 3


def test_padding_of_base64_completes_a_group() -> None:
    with tf.Graph().as_default():
        assert run(tf.decode_base64(["YQ==", "YQ", "YWI=", "YWJj", ""])).tolist() == [
            b"a", b"a", b"ab", b"abc", b"",
        ]  # fmt: skip
        for wrong in ("YQ=", "YWJj==", "YWJj====", "Y", "YQ==YQ=="):
            with pytest.raises(InvalidArgument, match=r"base64|1 modulo 4"):
                run(tf.decode_base64(wrong))


def test_functions_take_ragged_arrays() -> None:
    rows = tf.ragged.constant_value([[1, 2], [3]])
    with tf.Graph().as_default():
        assert run(tf.add(rows, 1)).to_list() == [[2, 3], [4]]
        assert run(tf.concat([rows, rows], 1)).to_list() == [[1, 2, 1, 2], [3, 3]]
        assert run(tf.reduce_sum(rows, 1)).tolist() == [3, 3]
        assert run(tf.batch_gather(rows, [[1], [0]])).tolist() == [[2], [3]]


def test_a_number_of_one_branch_is_a_scalar() -> None:
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.int32)
        chosen = tf.switch_case(fed, [lambda: tf.constant(1.0)])
        assert run(chosen, {fed: 3}) == 1.0
        with pytest.raises(InvalidArgument):
            run(chosen, {fed: [0]})
