"""TensorArrays: gradients of parts, messages, empty arrays."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.eager.eager_context import eager_mode


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


def _run(value):
    with tf.Session() as sess:
        return sess.run(value)


def _refused(value, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _run(value)


def test_gradient_of_split_joins_what_split_made():
    ta = tf.TensorArray(tf.float32, size=3, dynamic_size=True)
    x = tf.constant([1.0, 2.0, 3.0])
    joined = ta.split(x, [1, 1, 1]).write(3, [4.0]).concat()
    grad = tf.gradients(joined, x)[0]
    np.testing.assert_array_equal(_run(joined), [1, 2, 3, 4])
    np.testing.assert_array_equal(_run(grad), [1, 1, 1])


def test_gradients_of_one_element_add_up_and_must_agree():
    ta = tf.TensorArray(tf.float32, size=3, tensor_array_name="foo", infer_shape=False)
    grads = ta.grad("grad")
    assert _run(grads.write(2, 3.0).write(2, 4.0).write(2, 5.0).read(2)) == 12.0
    _refused(
        ta.write(2, 3.0).write(2, 4.0).flow,
        r"TensorArray foo_\d+: Could not write to TensorArray index 2 because it has already been "
        "written to",
    )
    _refused(
        grads.write(1, 1.0).write(1, [1.0]).flow,
        r"Could not aggregate to TensorArray index 1 because the existing shape is \[\] but the "
        r"new input shape is \[1\]",
    )


def test_an_element_that_was_read_is_not_written_again():
    ta = tf.TensorArray(tf.float32, size=1, clear_after_read=False).write(0, 1.0)
    with tf.control_dependencies([ta.read(0)]):
        again = tf.TensorArray(tf.float32, handle=ta.handle, flow=tf.identity(ta.flow)).write(
            0, 2.0
        )
    _refused(again.flow, "because it has already been read")


def test_empty_arrays_have_the_shape_of_their_elements():
    ta = tf.TensorArray(tf.float32, size=0, element_shape=[3, 5])
    assert _run(ta.stack()).shape == (0, 3, 5)
    assert _run(ta.concat()).shape == (0, 5)
    ta.unstack(tf.zeros([0, 3, 5])).mark_used()
    with pytest.raises(tf.errors.UnimplementedError, match="size zero"):
        _run(tf.TensorArray(tf.float32, size=0).concat())


@pytest.mark.parametrize(
    ("size", "value", "lengths", "text"),
    [
        (3, [1.0, 2.0, 3.0], 1, r"Expected lengths to be a vector, received shape: \[\]"),
        (3, [1.0, 2.0, 3.0], [1], r"sum of lengths is 1 and value's shape is: \[3\]"),
        (1, 1.0, [1], r"value to be at least a vector, but received shape: \[\]"),
        (2, [1.0], [1], r"not equal to the size of lengths \(2 vs. 1\)"),
    ],
)
def test_wrong_splits_in_eager_mode(size, value, lengths, text):
    with eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.TensorArray(tf.float32, size=size).split(value, lengths)


def test_concat_of_scalars_in_eager_mode():
    with eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match="saw a scalar shape"):
        tf.TensorArray(tf.float32, size=1).write(0, 1.0).concat()
